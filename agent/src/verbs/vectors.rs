//! How the completion queues that applications make are shared out over a device's completion vectors, that is its
//! interrupts.
//!
//! Counted since the agent began: a queue that is gone counts on, for a process that ends gives none of its queues back
//! by a call that could be seen. What is told is how queues are placed, not how many there are.

use std::collections::BTreeMap;
use std::sync::Arc;

use analysis::evidence::Evidence;
use analysis::port::Finding;
use analysis::skew::{VECTOR_RATIO_MAX, vectors};

use crate::counters::findings::{About, Judged};
use crate::counters::readout::{Kind, Place};
use crate::host::device_number::DeviceNumber;
use crate::host::rdma::RdmaFacts;
use crate::kernel::state::CqCounts;

/// The detector's name.
pub(crate) const VECTOR_SKEW: &str = "vector_skew";

/// Vectors of a device that are looked at: none has so many.
const VECTORS_MAX: u64 = 4096;

/// Queues by vector, of each device whose number of vectors is known and that had any made.
pub(crate) fn queues(counts: &CqCounts, host: &RdmaFacts) -> BTreeMap<String, Vec<u64>> {
    let mut found: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for (rdev, vector, count) in &counts.made {
        let Some(device) = host.device_of(DeviceNumber::from_kernel(*rdev)) else { continue };
        let Some(all) = counts.vectors.get(rdev).filter(|all| (1..=VECTORS_MAX).contains(*all)) else { continue };
        let all = usize::try_from(*all).unwrap_or(0);
        let queues = found.entry(device.to_owned()).or_insert_with(|| vec![0; all]);
        // Drivers take a number beyond the last one as they please.
        if let Some(queues) = usize::try_from(*vector).ok().and_then(|vector| queues.get_mut(vector)) {
            *queues = queues.saturating_add(*count);
        }
    }
    found.retain(|_, queues| queues.iter().any(|count| *count > 0));
    found
}

/// What the detector says of each device.
pub(crate) fn judged(counts: &CqCounts, host: &RdmaFacts) -> Vec<Judged> {
    let judge = |(device, queues): (String, Vec<u64>)| {
        let verdict = vectors(&queues, VECTOR_RATIO_MAX).map(|found| vec![Evidence::Vectors(found)]);
        Judged {
            about: About { place: Place { kind: Kind::Rdma, device, port: None }, netdev: None, object: None },
            finding: Finding { detector: VECTOR_SKEW, lane: None, verdict },
            rows: Arc::default(),
        }
    };
    queues(counts, host).into_iter().map(judge).collect()
}

#[cfg(test)]
mod tests {
    use analysis::port::State;

    use super::*;
    use crate::daemon::fake;

    #[test]
    fn queues_are_told_by_device_and_vector_where_the_number_of_vectors_is_known() {
        let (first, second) = (fake::rdev(0), fake::rdev(1));
        let made = vec![(first, 0, 9), (first, 3, 1), (first, 9, 5), (second, 0, 9), (77, 0, 3)];
        let counts = CqCounts { made, vectors: BTreeMap::from([(first, 4), (77, 4)]) };
        let host = fake::devices(2);
        assert_eq!(queues(&counts, &host), BTreeMap::from([("mlx5_0".to_owned(), vec![9, 0, 0, 1])]));
    }

    #[test]
    fn all_queues_on_one_of_many_vectors_fire_and_a_few_do_not() {
        let host = fake::devices(1);
        for (count, expected) in [(4, State::Quiet), (5, State::Firing)] {
            let (made, vectors) = (vec![(fake::rdev(0), 0, count)], BTreeMap::from([(fake::rdev(0), 16)]));
            let found = judged(&CqCounts { made, vectors }, &host);
            let found: Vec<_> = found.iter().map(|one| (one.about.to_string(), one.finding.state())).collect();
            assert_eq!(found, [("mlx5_0".to_owned(), Some(expected))]);
        }
    }
}

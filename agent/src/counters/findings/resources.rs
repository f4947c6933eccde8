//! What devices hold against the most that they can hold, over the last readings.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use analysis::evidence::Evidence;
use analysis::port::Finding;
use analysis::resource::{USE, exhaustion};

use super::{About, Judged, Rows};
use crate::config::limits;
use crate::counters::readout::{Kind, Place};
use crate::health::resources::Used;

/// The detector's name.
pub(crate) const EXHAUSTION: &str = "resource_exhaustion";

/// Objects of every kind on every device.
#[derive(Debug)]
pub(super) struct Resources {
    samples_max: usize,
    kinds: BTreeMap<(String, String), Held>,
    rows: Arc<Rows>,
}

#[derive(Debug)]
struct Held {
    /// The oldest first; absent where it was not told.
    used: VecDeque<Option<u64>>,
    limit: Option<u64>,
}

impl Resources {
    pub(super) fn new(samples_max: usize) -> Self {
        Self { samples_max, kinds: BTreeMap::new(), rows: Arc::default() }
    }

    /// Takes the next reading.
    pub(super) fn take(&mut self, resources: &[Used]) {
        for held in self.kinds.values_mut() {
            held.used.push_back(None);
        }
        for Used { device, kind, count, limit } in resources {
            let key = (device.clone(), kind.clone());
            if !self.kinds.contains_key(&key) && self.kinds.len() >= limits::FINDING_RESOURCES {
                continue;
            }
            let held = self.kinds.entry(key).or_insert_with(|| Held { used: VecDeque::from([None]), limit: None });
            if let Some(last) = held.used.back_mut() {
                *last = Some(*count);
            }
            held.limit = *limit;
        }
        let samples_max = self.samples_max;
        self.kinds.retain(|_, held| {
            let surplus = held.used.len().saturating_sub(samples_max);
            held.used.drain(..surplus);
            // A device that is gone is no longer told of.
            held.used.iter().any(Option::is_some)
        });
    }

    /// What the detector says of each kind.
    pub(super) fn findings(&self) -> impl Iterator<Item = Judged> {
        self.kinds.iter().map(|((device, object), held)| {
            let used: Vec<Option<u64>> = held.used.iter().copied().collect();
            let verdict = exhaustion(&used, held.limit, USE).map(|found| vec![Evidence::Exhaustion(found)]);
            let place = Place { kind: Kind::Rdma, device: device.clone(), port: None };
            Judged {
                about: About { place, netdev: None, object: Some(object.clone()) },
                finding: Finding { detector: EXHAUSTION, lane: None, verdict },
                rows: Arc::clone(&self.rows),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use analysis::port::State;

    use super::*;

    fn state(resources: &Resources) -> Vec<(String, Option<State>)> {
        resources.findings().map(|judged| (judged.about.to_string(), judged.finding.state())).collect()
    }

    fn used(kind: &str, count: u64, limit: Option<u64>) -> Used {
        Used { device: "mlx5_0".to_owned(), kind: kind.to_owned(), count, limit }
    }

    #[test]
    fn what_runs_out_fires_until_it_is_well_below_and_what_has_no_limit_is_not_looked_at() {
        let mut resources = Resources::new(10);
        let rows = [(89, State::Quiet), (90, State::Firing), (80, State::Firing), (79, State::Quiet)];
        for (count, expected) in rows {
            resources.take(&[used("qp", count, Some(100)), used("mr", count, None)]);
            let found = state(&resources);
            assert_eq!(found, [("mlx5_0 mr".to_owned(), None), ("mlx5_0 qp".to_owned(), Some(expected))]);
        }
    }

    #[test]
    fn what_is_gone_is_forgotten_and_the_number_of_kinds_is_bounded() {
        let mut resources = Resources::new(3);
        resources.take(&[used("qp", 95, Some(100))]);
        for _ in 0..3 {
            assert_eq!(resources.kinds.len(), 1);
            resources.take(&[]);
        }
        assert!(resources.kinds.is_empty());
        let many: Vec<_> = (0..limits::FINDING_RESOURCES + 9).map(|at| used(&at.to_string(), 1, Some(2))).collect();
        resources.take(&many);
        assert_eq!(resources.kinds.len(), limits::FINDING_RESOURCES);
    }
}

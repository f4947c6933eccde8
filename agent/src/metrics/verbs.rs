//! The series of verbs calls: by device and verb, by error, by duration.

use std::collections::{BTreeMap, HashMap};

use agent_common::histogram::{BUCKETS, upper_bound};
use agent_common::record::VerbCounters;
use agent_common::verb::{VerbKey, interface};

use super::page::{Page, Value};
use super::seats::{OTHER, Seats, UNKNOWN};
use super::table::Metric;
use crate::host::device_number::DeviceNumber;
use crate::host::errno::errno_name;
use crate::host::rdma::RdmaFacts;
use crate::kernel::state::Snapshot;
use crate::probes::Hook;
use crate::verbs::names::{VerbClass, is_named, lifecycle_names, verb_class, verb_name};

/// Life-cycle verbs that applications use on every device. Their failures are there from 0, since the increase of a
/// series that begins with 1 is 0, and one failure ends a job. The other verbs' failures are there from the first call.
const FROM_ZERO: &[&str] = &[
    "alloc_async_event",
    "alloc_pd",
    "create_ah",
    "create_comp_channel",
    "create_cq",
    "create_qp",
    "create_srq",
    "dealloc_pd",
    "dereg_mr",
    "destroy_ah",
    "destroy_cq",
    "destroy_qp",
    "destroy_srq",
    "mmap",
    "modify_qp",
    "open",
    "open_device",
    "reg_dmabuf_mr",
    "reg_mr",
];

/// Verbs whose calls have a place of their own on every device, whatever is called first: those that build what a job
/// communicates by, so that its failures can be told as a share.
const CALLS_KEPT: &[&str] = &["create_cq", "create_qp", "modify_qp", "reg_dmabuf_mr", "reg_mr"];

/// As [`FROM_ZERO`] for devices of one driver: the verbs' names begin with it.
const FROM_ZERO_OF: &[(&str, &[&str])] =
    &[("mlx5_ib", &["mlx5.devx_obj_create", "mlx5.devx_obj_modify", "mlx5.devx_umem_reg", "mlx5.uar_alloc"])];

/// Upper bounds of the histogram's buckets in powers of two of a nanosecond, so that each is a bound of the kernel
/// side's finer buckets: 16 us to 4.3 s.
const BOUNDS: [u32; 7] = [14, 17, 20, 23, 26, 29, 32];

/// Kinds of registered memory.
const HOST_MEMORY: &str = "host";
const DMABUF: &str = "dmabuf";

const NANO: f64 = 1e-9;

/// Device numbers whose names have been seen: a device that is gone still has its counts.
#[derive(Debug, Default)]
pub(super) struct DeviceNames(HashMap<u32, String>);

impl DeviceNames {
    /// Learns the devices of this moment.
    pub(super) fn learn(&mut self, devices: &RdmaFacts) {
        for node in &devices.uverbs {
            self.0.insert(node.number.to_kernel(), node.device.clone());
        }
    }

    /// Empty for what is asked of no device.
    fn name(&self, rdev: u32, key: VerbKey) -> &str {
        if key.interface() == interface::UCMA {
            return "";
        }
        debug_assert_eq!(DeviceNumber::from_kernel(rdev).to_kernel(), rdev);
        self.0.get(&rdev).map_or(UNKNOWN, String::as_str)
    }
}

/// The verb's name, or one for all that have none: numbers come from user space.
fn verb_label(key: VerbKey) -> std::borrow::Cow<'static, str> {
    if is_named(key) { verb_name(key) } else { OTHER.into() }
}

/// Adds what the devices of this moment have before anything is called.
pub(super) fn add_from_zero(page: &mut Page, seats: &mut Seats, devices: &RdmaFacts) {
    for device in &devices.devices {
        let own = seats.device(&device.name);
        for kind in [HOST_MEMORY, DMABUF].into_iter().filter(|kind| seats.take(own, Metric::MrRegistrations, kind)) {
            page.add(Metric::MrRegistrations, &[own, kind], Value::Whole(0));
        }
        for verb in CALLS_KEPT {
            seats.take(own, Metric::VerbsCalls, verb);
        }
    }
    let mut zero = |device: &str, verbs: &mut dyn Iterator<Item = &'static str>| {
        let device = seats.device(device);
        for verb in verbs {
            let verb = if seats.take(device, Metric::VerbsFailures, verb) { verb } else { OTHER };
            page.add(Metric::VerbsFailures, &[device, verb], Value::Whole(0));
        }
        page.add(Metric::VerbsFailures, &[device, OTHER], Value::Whole(0));
    };
    for device in &devices.devices {
        let driver = device.driver.as_deref();
        let own = FROM_ZERO_OF.iter().filter(|(name, _)| Some(*name) == driver).flat_map(|(_, verbs)| *verbs);
        zero(&device.name, &mut FROM_ZERO.iter().chain(own).copied());
    }
    if devices.rdma_cm.is_some() {
        zero("", &mut lifecycle_names().filter(|verb| verb.starts_with("rdma_")));
    }
}

/// Adds calls, failures, refused probes and registrations of memory.
pub(super) fn add_calls(page: &mut Page, seats: &mut Seats, names: &DeviceNames, snapshot: &Snapshot) {
    let mut sums: BTreeMap<(&str, std::borrow::Cow<'static, str>), VerbCounters> = BTreeMap::new();
    for (rdev, key, counters) in &snapshot.calls {
        let sum = sums.entry((names.name(*rdev, *key), verb_label(*key))).or_default();
        sum.calls = sum.calls.saturating_add(counters.calls);
        sum.failures = sum.failures.saturating_add(counters.failures);
        sum.probes = sum.probes.saturating_add(counters.probes);
    }
    for ((device, verb), sum) in &sums {
        let device = seats.device(device);
        let mut add = |metric, count| {
            let verb = if verb != OTHER && seats.take(device, metric, verb) { verb } else { OTHER };
            page.add(metric, &[device, verb], Value::Whole(count));
        };
        add(Metric::VerbsFailures, sum.failures);
        add(Metric::VerbsCalls, sum.calls);
        if sum.probes > 0 {
            add(Metric::ProbeRejections, sum.probes);
        }
        let kind = match verb.as_ref() {
            "reg_mr" => HOST_MEMORY,
            "reg_dmabuf_mr" => DMABUF,
            _ => continue,
        };
        if seats.take(device, Metric::MrRegistrations, kind) {
            let count = sum.calls.saturating_sub(sum.failures).saturating_sub(sum.probes);
            page.add(Metric::MrRegistrations, &[device, kind], Value::Whole(count));
        }
    }
}

/// Adds failures by layer and errno.
pub(super) fn add_errors(page: &mut Page, seats: &mut Seats, names: &DeviceNames, snapshot: &Snapshot) {
    let mut sums: BTreeMap<[String; 4], u64> = BTreeMap::new();
    for (rdev, key, errno, hook, count) in &snapshot.errors {
        let layer = Hook::by_number(*hook).map_or(UNKNOWN, |hook| hook.layer.name());
        let labels =
            [names.name(*rdev, *key), &verb_label(*key), layer, &errno_name(i32::from(*errno))].map(str::to_owned);
        let sum = sums.entry(labels).or_default();
        *sum = sum.saturating_add(*count);
    }
    for ([device, verb, layer, errno], count) in &sums {
        let device = seats.device(device);
        let own = [device, verb, layer, errno];
        let labels = if seats.take_error(own) { own } else { [device, OTHER, OTHER, OTHER] };
        page.add(Metric::VerbsErrors, &labels, Value::Whole(*count));
    }
}

/// Adds the durations of life-cycle calls. A verb of which none was measured has no histogram.
pub(super) fn add_durations(page: &mut Page, seats: &mut Seats, snapshot: &Snapshot) {
    let mut sums: BTreeMap<std::borrow::Cow<'static, str>, ([u64; BUCKETS], u64)> = BTreeMap::new();
    let is_lifecycle = |key: VerbKey| matches!(verb_class(key), VerbClass::Lifecycle(_));
    for (key, counts) in snapshot.durations.iter().filter(|(key, _)| is_lifecycle(*key)) {
        let (sum, _) = sums.entry(verb_name(*key)).or_insert(([0; BUCKETS], 0));
        for (sum, count) in sum.iter_mut().zip(counts) {
            *sum = sum.saturating_add(*count);
        }
    }
    for (_, key, counters) in &snapshot.calls {
        if let Some((_, nanoseconds)) = sums.get_mut(&verb_name(*key)) {
            *nanoseconds = nanoseconds.saturating_add(counters.duration_ns);
        }
    }
    sums.retain(|_, (counts, _)| counts.iter().any(|count| *count > 0));
    let mut others: Option<([u64; BUCKETS], u64)> = None;
    for (verb, (counts, nanoseconds)) in sums {
        if seats.take_histogram(&verb) {
            page.add(Metric::CallDuration, &[&verb], histogram(&counts, nanoseconds));
        } else {
            let (sum, total) = others.get_or_insert(([0; BUCKETS], 0));
            sum.iter_mut().zip(&counts).for_each(|(sum, count)| *sum = sum.saturating_add(*count));
            *total = total.saturating_add(nanoseconds);
        }
    }
    if let Some((counts, nanoseconds)) = others {
        page.add(Metric::CallDuration, &[OTHER], histogram(&counts, nanoseconds));
    }
}

/// The kernel side's fine buckets as the page's coarse ones.
#[expect(clippy::cast_precision_loss, reason = "a sum of seconds needs no more than 53 bits")]
fn histogram(counts: &[u64; BUCKETS], nanoseconds: u64) -> Value {
    let mut buckets: Vec<(f64, u64)> = BOUNDS.iter().map(|power| ((1u64 << power) as f64 * NANO, 0)).collect();
    buckets.push((f64::INFINITY, 0));
    for (fine, count) in counts.iter().enumerate() {
        let place = match upper_bound(fine) {
            Some(bound) => BOUNDS.iter().position(|power| bound <= 1 << power).unwrap_or(BOUNDS.len()),
            None => BOUNDS.len(),
        };
        buckets[place].1 = buckets[place].1.saturating_add(*count);
    }
    Value::Histogram { buckets, sum: nanoseconds as f64 * NANO }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_from_zero_is_a_life_cycle_verb() {
        let all: Vec<_> = lifecycle_names().collect();
        for verb in FROM_ZERO.iter().chain(FROM_ZERO_OF.iter().flat_map(|(_, verbs)| *verbs)) {
            assert!(all.contains(verb), "{verb}");
        }
    }

    #[test]
    fn coarse_buckets_are_made_of_whole_fine_ones() {
        let fine: Vec<_> = (0..BUCKETS).filter_map(upper_bound).collect();
        for power in BOUNDS {
            assert!(fine.contains(&(1 << power)), "{power}");
        }
        let mut counts = [0; BUCKETS];
        for nanoseconds in [1, 16_383, 16_384, 131_071, 4_294_967_295, 4_294_967_296, u64::MAX] {
            counts[agent_common::histogram::bucket(nanoseconds)] += 1;
        }
        let Value::Histogram { buckets, sum } = histogram(&counts, 1_500_000_000) else {
            unreachable!("it is one");
        };
        assert_eq!(buckets.iter().map(|(_, count)| *count).collect::<Vec<_>>(), [2, 2, 0, 0, 0, 0, 1, 2]);
        assert!((sum - 1.5).abs() < 1e-9);
    }
}

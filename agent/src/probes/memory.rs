//! Kernel memory of the maps, computed from the records they hold.

use agent_common::counter;
use agent_common::health::{self, DevicePath, DropKey, HealthKey, NETDEV, PATHS};
use agent_common::histogram::BUCKETS;
use agent_common::place::PLACES;
use agent_common::record::{Call, CqKey, DeviceEventKey, ErrorKey, Qp, QpKey, VerbCounterKey, VerbCounters};
use agent_common::settings::Settings;

/// What a hash map's element has beside key and value (`struct htab_elem`, kernel/bpf/hashtab.c).
const ELEMENT: usize = 48;
/// A bucket's head and lock (`struct bucket`, kernel/bpf/hashtab.c); there are as many as entries, rounded up to a
/// power of two.
const BUCKET: usize = 16;

/// How a map lays out its entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// One value for each key, all there from the start.
    Hash,
    /// One value for each key and possible CPU, all there from the start.
    PerCpuHash,
    /// One value for each index and possible CPU.
    PerCpuArray,
    /// One value for each index.
    Array,
    /// So many bytes, and a page each for both positions.
    Ring,
}

/// One map of the kernel side: name, layout, entries (bytes of a ring), bytes of key and value.
#[derive(Clone, Copy, Debug)]
struct Map {
    name: &'static str,
    kind: Kind,
    entries: usize,
    key: usize,
    value: usize,
}

const fn map<K, V>(name: &'static str, kind: Kind, entries: usize) -> Map {
    Map { name, kind, entries, key: size_of::<K>(), value: size_of::<V>() }
}

/// The kernel side's maps; a test holds the numbers against the object file.
const MAPS: &[Map] = &[
    map::<u32, [u64; PLACES]>("OWNERS", Kind::Array, 1),
    map::<u32, Call>("CALLS", Kind::Array, PLACES),
    map::<VerbCounterKey, VerbCounters>("VERBS", Kind::PerCpuHash, 1024),
    map::<ErrorKey, u64>("ERRORS", Kind::PerCpuHash, 1024),
    map::<u64, [u64; BUCKETS]>("HISTOGRAM", Kind::PerCpuHash, 96),
    map::<u32, u64>("LOST", Kind::PerCpuArray, counter::TABLE.len()),
    map::<u32, u64>("CM_EVENTS", Kind::PerCpuArray, 32),
    map::<DeviceEventKey, u64>("DEVICE_EVENTS", Kind::PerCpuHash, 256),
    map::<QpKey, Qp>("QPS", Kind::Hash, 8192),
    map::<CqKey, u64>("CQS", Kind::PerCpuHash, 512),
    map::<u32, Settings>("SETTINGS", Kind::Array, 1),
    map::<HealthKey, u64>("HEALTH", Kind::PerCpuHash, 256),
    map::<[u8; NETDEV], u64>("NAPI", Kind::PerCpuHash, 128),
    map::<DropKey, u64>("DROPS", Kind::PerCpuHash, 512),
    map::<u32, health::Settings>("HEALTH_SETTINGS", Kind::Array, 1),
    map::<u32, DevicePath>("HEALTH_PATHS", Kind::Array, PATHS),
    map::<(), ()>("EVENTS", Kind::Ring, 1 << 20),
];

impl Map {
    fn bytes(&self, cpus: usize) -> usize {
        let value = self.value.next_multiple_of(8);
        let element = ELEMENT + self.key.next_multiple_of(8);
        let buckets = self.entries.next_power_of_two() * BUCKET;
        match self.kind {
            Kind::Hash => buckets + self.entries * (element + value),
            // The element holds a pointer to the values.
            Kind::PerCpuHash => buckets + self.entries * (element + 8 + value * cpus),
            Kind::PerCpuArray => self.entries * (8 + value * cpus),
            Kind::Array => self.entries * value,
            Kind::Ring => self.entries + 2 * 4096,
        }
    }
}

/// Bytes of kernel memory that the maps take on a host with so many possible CPUs. Programs, links and the return
/// instances of kprobes come on top.
pub(crate) fn map_bytes(cpus: usize) -> usize {
    by_map(cpus).map(|(_, bytes)| bytes).sum()
}

/// The same by map.
fn by_map(cpus: usize) -> impl Iterator<Item = (&'static str, usize)> {
    MAPS.iter().map(move |map| (map.name, map.bytes(cpus)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_grows_with_the_cpus_by_the_per_cpu_values_only() {
        let per_cpu: usize = MAPS
            .iter()
            .filter(|map| matches!(map.kind, Kind::PerCpuHash | Kind::PerCpuArray))
            .map(|map| map.entries * map.value)
            .sum();
        assert_eq!(map_bytes(3) - map_bytes(2), per_cpu);
        let big: Vec<_> = by_map(256).filter(|(_, bytes)| *bytes > 16 << 20).collect();
        assert!(big.is_empty(), "{big:?}");
    }

    #[test]
    fn the_numbers_are_the_object_file_s() {
        let shapes = crate::kernel::map_shapes();
        if shapes.is_empty() {
            eprintln!("skipped: built without the kernel side");
            return;
        }
        for map in MAPS {
            let shape = shapes.iter().find(|shape| shape.0 == map.name);
            let expected = if map.kind == Kind::Ring { [0, 0, map.entries] } else { [map.key, map.value, map.entries] };
            assert_eq!(shape.map(|shape| shape.1), Some(expected), "{}", map.name);
        }
        assert_eq!(shapes.len(), MAPS.len(), "{shapes:?}");
    }

    #[test]
    fn the_agent_fits_a_large_host() {
        // What the documentation says: 27 MiB on 256 CPUs, 4 MiB on two.
        let mib = |cpus| (map_bytes(cpus) + (1 << 19)) >> 20;
        assert_eq!((mib(256), mib(2)), (27, 4));
    }
}

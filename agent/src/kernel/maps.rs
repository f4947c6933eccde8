//! Reading the kernel side's maps. Values are bytes until they are decoded here.

use std::borrow::Borrow;

use agent_common::health::{NAME, NETDEV, PART};
use agent_common::histogram::BUCKETS;
use agent_common::place::PLACES;
use agent_common::record::{CqKey, DEVICE_NAME, VerbCounters};
use agent_common::settings::Settings;
use agent_common::verb::VerbKey;
use anyhow::Context as _;
use aya::Pod;
use aya::maps::{Array, Map, MapData, MapError, PerCpuArray, PerCpuHashMap, PerCpuValues};

use super::health::Told;
use super::object::Object;
use super::state::{CqCounts, ErrorRow, HealthCount, InFlight, Snapshot};

/// Bytes of the values and keys (see `agent_common::record`).
const CALL: usize = 200;
const VERB_KEY: usize = 16;
const VERB_VALUE: usize = 4;
const ERROR_KEY: usize = 16;
const DEVICE_KEY: usize = 72;
const CQ_KEY: usize = 8;
const HEALTH_KEY: usize = 56;
const DROP_KEY: usize = 24;
/// More entries than any map has: an iteration that is disturbed by deletions starts over, and must end all the same.
const STEPS: usize = 20_000;

const _: () = {
    use agent_common::record::{Call, DeviceEventKey, ErrorKey, VerbCounterKey};
    assert!(size_of::<Call>() == CALL && size_of::<VerbCounterKey>() == VERB_KEY);
    assert!(size_of::<VerbCounters>() == VERB_VALUE * 8 && size_of::<ErrorKey>() == ERROR_KEY);
    assert!(size_of::<DeviceEventKey>() == DEVICE_KEY && size_of::<CqKey>() == CQ_KEY);
    use agent_common::health::{DropKey, HealthKey};
    assert!(size_of::<HealthKey>() == HEALTH_KEY && size_of::<DropKey>() == DROP_KEY);
};

/// Gives the kernel side its settings.
///
/// # Errors
///
/// If the kernel refuses.
pub(crate) fn set_settings(object: &mut Object, settings: &Settings) -> anyhow::Result<()> {
    let mut map: Array<_, [u32; Settings::WORDS]> = Array::try_from(object.map_mut("SETTINGS")?)?;
    map.set(0, settings.words(), 0).context("writing the kernel side's settings")
}

/// Reads all counters.
///
/// # Errors
///
/// If a map cannot be read.
pub(crate) fn snapshot(object: &Object, told: &Told) -> anyhow::Result<Snapshot> {
    Ok(Snapshot {
        calls: calls(object.map("VERBS")?)?,
        cqs: cqs(object.map("CQS")?)?,
        errors: errors(object.map("ERRORS")?)?,
        durations: durations(object.map("HISTOGRAM")?)?,
        lost: array(object.map("LOST")?)?,
        cm_events: array(object.map("CM_EVENTS")?)?,
        device_events: device_events(object.map("DEVICE_EVENTS")?)?,
        health: health(object.map("HEALTH")?)?,
        napi: napi(object.map("NAPI")?)?,
        drops: drops(object.map("DROPS")?, told)?,
        in_flight: in_flight(object.map("OWNERS")?, object.map("CALLS")?)?,
    })
}

fn calls(map: &Map) -> anyhow::Result<Vec<(u32, VerbKey, VerbCounters)>> {
    let entries: Vec<([u8; VERB_KEY], PerCpuValues<[u64; VERB_VALUE]>)> = entries(map)?;
    let row = |(key, values): &([u8; VERB_KEY], PerCpuValues<[u64; VERB_VALUE]>)| {
        let [calls, failures, probes, duration_ns] = sum(values);
        (word(key, 8), VerbKey(long(key, 0)), VerbCounters { calls, failures, probes, duration_ns })
    };
    Ok(entries.iter().map(row).collect())
}

fn cqs(map: &Map) -> anyhow::Result<CqCounts> {
    let entries: Vec<([u8; CQ_KEY], PerCpuValues<u64>)> = entries(map)?;
    let mut found = CqCounts::default();
    for (key, values) in &entries {
        let (rdev, vector) = (word(key, 0), word(key, 4));
        if vector == CqKey::VECTORS {
            found.vectors.insert(rdev, values.iter().copied().max().unwrap_or(0));
        } else {
            found.made.push((rdev, vector, values.iter().sum()));
        }
    }
    Ok(found)
}

fn errors(map: &Map) -> anyhow::Result<Vec<ErrorRow>> {
    let entries: Vec<([u8; ERROR_KEY], PerCpuValues<u64>)> = entries(map)?;
    let row = |(key, values): &([u8; ERROR_KEY], PerCpuValues<u64>)| {
        let packed = word(key, 12);
        let (errno, hook) = if cfg!(target_endian = "little") {
            (packed as u16, (packed >> 16) as u16)
        } else {
            ((packed >> 16) as u16, packed as u16)
        };
        (word(key, 8), VerbKey(long(key, 0)), errno, hook, values.iter().sum())
    };
    Ok(entries.iter().map(row).collect())
}

fn durations(map: &Map) -> anyhow::Result<Vec<(VerbKey, [u64; BUCKETS])>> {
    let entries: Vec<([u8; 8], PerCpuValues<[u64; BUCKETS]>)> = entries(map)?;
    Ok(entries.iter().map(|(key, values)| (VerbKey(long(key, 0)), sum(values))).collect())
}

fn device_events(map: &Map) -> anyhow::Result<Vec<(String, u32, u32, u64)>> {
    let entries: Vec<([u8; DEVICE_KEY], PerCpuValues<u64>)> = entries(map)?;
    let row = |(key, values): &([u8; DEVICE_KEY], PerCpuValues<u64>)| {
        let name = text(key.get(..DEVICE_NAME).unwrap_or_default());
        (name, word(key, DEVICE_NAME), word(key, DEVICE_NAME + 4), values.iter().sum())
    };
    Ok(entries.iter().map(row).collect())
}

fn health(map: &Map) -> anyhow::Result<Vec<HealthCount>> {
    let entries: Vec<([u8; HEALTH_KEY], PerCpuValues<u64>)> = entries(map)?;
    let row = |(key, values): &([u8; HEALTH_KEY], PerCpuValues<u64>)| HealthCount {
        hook: word(key, NAME + PART) as u16,
        device: text(key.get(..NAME).unwrap_or_default()),
        part: text(key.get(NAME..NAME + PART).unwrap_or_default()),
        count: values.iter().sum(),
    };
    Ok(entries.iter().map(row).collect())
}

fn napi(map: &Map) -> anyhow::Result<Vec<(String, u64)>> {
    let entries: Vec<([u8; NETDEV], PerCpuValues<u64>)> = entries(map)?;
    let row = |(key, values): &([u8; NETDEV], PerCpuValues<u64>)| {
        // What the event says where a CPU takes packets from its own backlog: of lo, veth, or spread by RPS.
        let name = text(key);
        (if name == "(no device)" { String::new() } else { name }, values.iter().sum())
    };
    Ok(entries.iter().map(row).collect())
}

fn drops(map: &Map, told: &Told) -> anyhow::Result<Vec<(String, String, u64)>> {
    let entries: Vec<([u8; DROP_KEY], PerCpuValues<u64>)> = entries(map)?;
    let row = |(key, values): &([u8; DROP_KEY], PerCpuValues<u64>)| {
        let netdev = text(key.get(..NETDEV).unwrap_or_default());
        (netdev, told.reason(word(key, NETDEV)), values.iter().sum())
    };
    Ok(entries.iter().map(row).collect())
}

fn in_flight(owners: &Map, calls: &Map) -> anyhow::Result<Vec<InFlight>> {
    let owners: Array<_, [u64; PLACES]> = Array::try_from(owners)?;
    let calls: Array<_, [u8; CALL]> = Array::try_from(calls)?;
    let mut found = Vec::new();
    for (place, thread) in (0..).zip(owners.get(&0, 0)?).filter(|(_, thread)| *thread != 0) {
        let call = calls.get(&place, 0)?;
        found.push((place, thread, call));
    }
    // A call that ended while it was looked at is no longer in flight, and its place may be another one's.
    let owners = if found.is_empty() { [0; PLACES] } else { owners.get(&0, 0)? };
    found.retain(|(place, thread, _)| owners.get(*place as usize) == Some(thread));
    let call = |(_, thread, call): &(u32, u64, [u8; CALL])| InFlight {
        pid: (thread >> 32) as u32,
        tid: *thread as u32,
        start_ns: long(call, 0),
        key: VerbKey(long(call, 8)),
        rdev: word(call, 184),
    };
    Ok(found.iter().map(call).collect())
}

const _: () = assert!(std::mem::offset_of!(agent_common::record::Call, rdev) == 184);

fn array(map: &Map) -> anyhow::Result<Vec<u64>> {
    let map: PerCpuArray<_, u64> = PerCpuArray::try_from(map)?;
    let values: Result<Vec<_>, MapError> = map.iter().collect();
    Ok(values?.iter().map(|values| values.iter().sum()).collect())
}

/// The entries of a per-CPU map.
fn entries<K: Pod + PartialEq, V: Pod>(map: &Map) -> anyhow::Result<Vec<(K, PerCpuValues<V>)>> {
    let map: PerCpuHashMap<&MapData, K, V> = PerCpuHashMap::try_from(map)?;
    iterate(&map)
}

fn iterate<T: Borrow<MapData>, K: Pod, V: Pod>(
    map: &PerCpuHashMap<T, K, V>,
) -> anyhow::Result<Vec<(K, PerCpuValues<V>)>> {
    let entries: Result<Vec<_>, MapError> = map.iter().take(STEPS).collect();
    Ok(entries?)
}

fn sum<const N: usize>(values: &PerCpuValues<[u64; N]>) -> [u64; N] {
    let mut total = [0u64; N];
    for value in values.iter() {
        for (sum, one) in total.iter_mut().zip(value) {
            *sum = sum.wrapping_add(*one);
        }
    }
    total
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_ne_bytes)
}

fn long(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_ne_bytes)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned()
}

//! The JSON layout of the public Millisampler data set: one object a host, an array a measure, one element a sample.
//!
//! <https://github.com/facebookresearch/Millisampler-data>, which comes without a description: what keys mean is taken
//! from programs that read it. Samples of a millisecond have the `sampling_freq` 1000, samples a second. The start
//! stands in `burst_result` only, as the key of the bursts received, in microseconds; where that is missing, time begins
//! at 1970. `connections` is one number for both directions and becomes a sketch that stands for as many. What the
//! layout has no place for is kept under the key `fabricscope`, which other readers pass over.
//!
//! Bursts are written where the line rate is known: `Position` and `Length` in samples, `ingressMax` in bytes,
//! `maxConnections`. Those of the data set are not read: they are found anew.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};

use analysis::answer::Answer;
use analysis::burst::{Burst, Share, bursts};
use analysis::series::{Direction, DurationNs, Fields, Sample, Series, Sketch, Span, Traffic, UtcNs};
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};

use super::encode::estimate;
use super::error::Fault;
use super::meta::Meta;
use crate::config::limits;

/// What a file that gzip packed begins with.
const GZIP: &[u8] = &[0x1f, 0x8b];

/// One file.
#[derive(Deserialize, Serialize)]
struct Layout {
    /// A name, or a number.
    server_hostname: serde_json::Value,
    /// A name, or a number; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rack_id: Option<serde_json::Value>,
    /// Samples a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sampling_freq: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fabricscope: Option<Meta>,
    /// By direction, then by start.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    burst_result: BTreeMap<String, BTreeMap<String, serde_json::Value>>,
    #[serde(flatten)]
    arrays: Arrays,
}

/// A burst of `burst_result`, as it is written.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BurstRecord {
    #[serde(rename = "Position")]
    position: u64,
    #[serde(rename = "Length")]
    length: usize,
    ingress_max: u64,
    max_connections: Option<u64>,
}

/// A measure that is not there is absent or empty.
#[derive(Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct Arrays {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ingress_bytes: Vec<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    egress_bytes: Vec<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    in_rxmit_bytes: Vec<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    out_rxmit_bytes: Vec<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    in_congestion_experienced_bytes: Vec<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    connections: Vec<u64>,
}

/// One array: where it stands, whether a series has it, and what it is in a sample.
struct Measure {
    array: fn(&mut Arrays) -> &mut Vec<u64>,
    measured: fn(&Fields) -> bool,
    note: fn(&mut Fields),
    get: fn(&Sample) -> u64,
    set: fn(&mut Sample, u64),
}

const MEASURES: &[Measure] = &[
    Measure {
        array: |arrays| &mut arrays.ingress_bytes,
        measured: |_| true,
        note: |_| {},
        get: |sample| sample.rx.bytes,
        set: |sample, value| sample.rx.bytes = value,
    },
    Measure {
        array: |arrays| &mut arrays.egress_bytes,
        measured: |_| true,
        note: |_| {},
        get: |sample| sample.tx.bytes,
        set: |sample, value| sample.tx.bytes = value,
    },
    Measure {
        array: |arrays| &mut arrays.in_rxmit_bytes,
        measured: |fields| fields.retransmits_rx,
        note: |fields| fields.retransmits_rx = true,
        get: |sample| sample.rx.retransmit_bytes,
        set: |sample, value| sample.rx.retransmit_bytes = value,
    },
    Measure {
        array: |arrays| &mut arrays.out_rxmit_bytes,
        measured: |fields| fields.retransmits_tx,
        note: |fields| fields.retransmits_tx = true,
        get: |sample| sample.tx.retransmit_bytes,
        set: |sample, value| sample.tx.retransmit_bytes = value,
    },
    Measure {
        array: |arrays| &mut arrays.in_congestion_experienced_bytes,
        measured: |fields| fields.ce,
        note: |fields| fields.ce = true,
        get: |sample| sample.rx.ce_bytes,
        set: |sample, value| sample.rx.ce_bytes = value,
    },
    Measure {
        array: |arrays| &mut arrays.connections,
        measured: |fields| fields.flows,
        note: |fields| fields.flows = true,
        get: connections,
        set: |sample, value| {
            sample.rx.flows = sketch_of(value);
            sample.tx.flows = sample.rx.flows;
        },
    },
];

/// Connections of both directions.
fn connections(sample: &Sample) -> u64 {
    u64::try_from(estimate(Sketch(sample.rx.flows.0 | sample.tx.flows.0))).unwrap_or_default()
}

/// Whether gzip packed these bytes.
pub(super) fn is_packed(bytes: &[u8]) -> bool {
    bytes.starts_with(GZIP)
}

/// The series that a file holds, packed or not.
pub(super) fn from_bytes(bytes: &[u8]) -> Result<Series, Fault> {
    if !is_packed(bytes) {
        return from_json(bytes);
    }
    let limit = limits::SAMPLE_FILE_BYTES;
    let mut text = Vec::new();
    let unpacked = MultiGzDecoder::new(bytes).take(limit as u64 + 1).read_to_end(&mut text);
    unpacked.map_err(|error| Fault::Damaged(format!("it cannot be unpacked: {error}")))?;
    if text.len() > limit {
        return Err(Fault::TooLarge("more bytes once unpacked than a sample file has".to_owned(), limit as u64));
    }
    from_json(&text)
}

fn from_json(text: &[u8]) -> Result<Series, Fault> {
    let layout: Layout = serde_json::from_slice(text).map_err(|error| match error.classify() {
        serde_json::error::Category::Eof => Fault::Damaged(format!("its JSON ends too early: {error}")),
        _ => Fault::NotSamples(format!("as the JSON of Millisampler: {error}")),
    })?;
    let Layout { server_hostname, rack_id, sampling_freq, fabricscope, burst_result, mut arrays } = layout;
    if arrays.ingress_bytes.is_empty() || arrays.egress_bytes.is_empty() {
        let why = "it lacks ingressBytes or egressBytes: nothing was measured on that host";
        return Err(Fault::NotSamples(why.to_owned()));
    }
    let mut fields = Fields::default();
    let mut count = arrays.ingress_bytes.len();
    for measure in MEASURES {
        let array = (measure.array)(&mut arrays);
        if !array.is_empty() {
            (measure.note)(&mut fields);
            count = count.min(array.len());
        }
    }
    if count > limits::SAMPLES_PER_FILE {
        return Err(Fault::TooLarge(format!("{count} samples"), limits::SAMPLES_PER_FILE as u64));
    }
    let mut series = match fabricscope {
        Some(meta) => meta.series()?,
        None => Series {
            host: name(server_hostname),
            rack: rack_id.map(name).unwrap_or_default(),
            interval: interval(sampling_freq)?,
            ..Series::default()
        },
    };
    series.fields = fields;
    let from = match series.covered.first() {
        Some(span) => span.start,
        None => start(&burst_result),
    };
    // Both are within bounds: a second at most, a million times.
    let time = |index: usize| from.after(DurationNs(series.interval.0.saturating_mul(index as u64)));
    series.covered = vec![Span { start: from, end: time(count) }];
    for index in 0..count {
        let mut sample = Sample { start: time(index), length: series.interval, ..Sample::default() };
        for measure in MEASURES {
            if let Some(value) = (measure.array)(&mut arrays).get(index) {
                (measure.set)(&mut sample, *value);
            }
        }
        if (&sample.rx, &sample.tx) != (&Traffic::default(), &Traffic::default()) {
            series.samples.push(sample);
        }
    }
    Ok(series)
}

/// A name that may be a number in the data set.
fn name(value: serde_json::Value) -> String {
    match value {
        serde_json::Value::String(name) => name,
        serde_json::Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// A name as the data set has it: numbers are no text there.
fn value(name: &str) -> serde_json::Value {
    let number = name.parse::<u64>().ok().filter(|number| number.to_string() == name);
    number.map_or_else(|| name.into(), Into::into)
}

/// The interval by samples a second; some readers take the value for the interval in milliseconds, and for the lengths
/// that the sampler has no number means both.
fn interval(sampling_freq: Option<f64>) -> Result<DurationNs, Fault> {
    let known = [
        (10_000.0, 100_000),
        (1000.0, 1_000_000),
        (100.0, 10_000_000),
        (0.1, 100_000),
        (1.0, 1_000_000),
        (10.0, 10_000_000),
    ];
    let Some(given) = sampling_freq else { return Ok(DurationNs(1_000_000)) };
    let found = known.iter().find(|(value, _)| *value == given);
    found.map(|(_, interval)| DurationNs(*interval)).ok_or_else(|| {
        let known = "100, 1000 or 10000 samples a second (or an interval of 10, 1 or 0.1 milliseconds)";
        Fault::NotSamples(format!("its sampling_freq is {given}, not {known}"))
    })
}

/// The time of the first sample.
fn start(bursts: &BTreeMap<String, BTreeMap<String, serde_json::Value>>) -> UtcNs {
    let microseconds = bursts.values().flat_map(BTreeMap::keys).filter_map(|key| key.parse::<i64>().ok()).min();
    UtcNs(microseconds.and_then(|time| time.checked_mul(1000)).unwrap_or_default())
}

/// A sketch that stands for this number of flows: which bits are set says nothing.
fn sketch_of(flows: u64) -> Sketch {
    let bits = f64::from(agent_common::bucket::SKETCH_BITS);
    let set = (bits * (1.0 - (-(flows as f64) / bits).exp())).round();
    // At most 128, of which all would be the sketch that is full.
    Sketch((0..set as u32).fold(0, |sketch, bit| sketch | 1 << bit))
}

/// The file that holds this series.
pub(super) fn to_json(series: &Series) -> Result<Vec<u8>, Fault> {
    let [Span { start, end }] = series.covered[..] else {
        let count = series.covered.len();
        let why = format!("it was measured in {count} spans of time, and this layout has room for one");
        return Err(Fault::Unfit(why));
    };
    let interval = series.interval.0.max(1);
    let count = end.since(start).0.div_ceil(interval);
    if count > limits::SAMPLES_PER_FILE as u64 {
        return Err(Fault::TooLarge(format!("{count} samples"), limits::SAMPLES_PER_FILE as u64));
    }
    let mut arrays = Arrays::default();
    for measure in MEASURES.iter().filter(|measure| (measure.measured)(&series.fields)) {
        let mut array = vec![0_u64; usize::try_from(count).unwrap_or_default()];
        for sample in &series.samples {
            let index = usize::try_from(sample.start.since(start).0 / interval).ok();
            let cell = index.filter(|_| sample.start >= start).and_then(|index| array.get_mut(index));
            let cell = cell.ok_or_else(|| Fault::Unfit("a sample lies outside of what was measured".to_owned()))?;
            // Samples that share a place are of a source without a fixed interval.
            *cell = cell.saturating_add((measure.get)(sample));
        }
        *(measure.array)(&mut arrays) = array;
    }
    let layout = Layout {
        server_hostname: series.host.clone().into(),
        rack_id: (!series.rack.is_empty()).then(|| value(&series.rack)),
        sampling_freq: Some(1e9 / interval as f64),
        fabricscope: Some(Meta::of(series)),
        burst_result: burst_result(series, start)?,
        arrays,
    };
    serde_json::to_vec(&layout).map_err(|error| Fault::Unfit(error.to_string()))
}

/// The bursts received, under the time of the first sample; nothing where there is no telling.
fn burst_result(series: &Series, start: UtcNs) -> Result<BTreeMap<String, BTreeMap<String, serde_json::Value>>, Fault> {
    let found = match bursts(series, Direction::Rx, Share::DEFAULT) {
        Answer::Found(found) => found,
        Answer::Quiet => Vec::new(),
        Answer::CannotTell(_) => return Ok(BTreeMap::new()),
    };
    let record = |burst: &Burst| {
        let within = series.samples.partition_point(|sample| sample.start < burst.start);
        let samples = series.samples.iter().skip(within).take(burst.samples);
        BurstRecord {
            position: burst.start.since(start).0 / series.interval.0.max(1),
            length: burst.samples,
            ingress_max: samples.clone().map(|sample| sample.rx.bytes).max().unwrap_or_default(),
            max_connections: samples.map(connections).max().filter(|_| series.fields.flows),
        }
    };
    let records: Vec<BurstRecord> = found.iter().map(record).collect();
    let records = serde_json::to_value(records).map_err(|error| Fault::Unfit(error.to_string()))?;
    let microseconds = start.0.div_euclid(1000).to_string();
    Ok(BTreeMap::from([("ingress".to_owned(), BTreeMap::from([(microseconds, records)]))]))
}

/// Packs a file by gzip.
pub(super) fn pack(bytes: &[u8]) -> Result<Vec<u8>, Fault> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    packer.write_all(bytes).and_then(|()| packer.finish()).map_err(|error| Fault::Unfit(error.to_string()))
}

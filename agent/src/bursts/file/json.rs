//! The JSON layout of the public Millisampler data set: one object a host, an array a measure, one element a sample.
//!
//! <https://github.com/facebookresearch/Millisampler-data>, which comes without a description: what keys mean is taken
//! from programs that read it. Samples of a millisecond have the `sampling_freq` 1000, samples a second. The start
//! stands in `burst_result` only, as the key of the bursts received, in microseconds; where that is missing, time begins
//! at 1970. `connections` is one number for both directions and becomes a sketch that stands for as many. An array that
//! is absent or empty was not measured: there are files without `ingressBytes`. What the layout has no place for is kept
//! under the key `fabricscope`, which other readers pass over, so that what is written comes back: the metadata of a
//! sample file, and `columns`.
//!
//! Bursts are written where they can be told. Those of the data set are not read: they are found anew.

mod further;
mod result;

use std::io::{Read as _, Write as _};

use analysis::series::{DurationNs, Fields, Measured, Sample, Series, Sketch, Span, Traffic, UtcNs};
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};

use super::encode::estimate;
use super::error::Fault;
use super::meta::Meta;
use crate::config::limits;
use further::{Columns, Further};
use result::BurstResult;

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
    fabricscope: Option<Further>,
    #[serde(default, skip_serializing_if = "BurstResult::is_empty")]
    burst_result: BurstResult,
    #[serde(flatten)]
    arrays: Arrays,
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

/// One array: where it stands, whether a series has it, which column of a sample file it is, and what it is in a sample.
struct Measure {
    array: fn(&mut Arrays) -> &mut Vec<u64>,
    of: fn(&mut Fields) -> &mut bool,
    column: &'static str,
    get: fn(&Sample) -> u64,
    set: fn(&mut Sample, u64),
}

/// All arrays but `connections`, which is of both directions.
const MEASURES: &[Measure] = &[
    Measure {
        array: |arrays| &mut arrays.ingress_bytes,
        of: |fields| &mut fields.rx.bytes,
        column: "rx_bytes",
        get: |sample| sample.rx.bytes,
        set: |sample, value| sample.rx.bytes = value,
    },
    Measure {
        array: |arrays| &mut arrays.egress_bytes,
        of: |fields| &mut fields.tx.bytes,
        column: "tx_bytes",
        get: |sample| sample.tx.bytes,
        set: |sample, value| sample.tx.bytes = value,
    },
    Measure {
        array: |arrays| &mut arrays.in_rxmit_bytes,
        of: |fields| &mut fields.rx.retransmits,
        column: "rx_retransmit_bytes",
        get: |sample| sample.rx.retransmit_bytes,
        set: |sample, value| sample.rx.retransmit_bytes = value,
    },
    Measure {
        array: |arrays| &mut arrays.out_rxmit_bytes,
        of: |fields| &mut fields.tx.retransmits,
        column: "tx_retransmit_bytes",
        get: |sample| sample.tx.retransmit_bytes,
        set: |sample, value| sample.tx.retransmit_bytes = value,
    },
    Measure {
        array: |arrays| &mut arrays.in_congestion_experienced_bytes,
        of: |fields| &mut fields.rx.ce,
        column: "rx_ce_bytes",
        get: |sample| sample.rx.ce_bytes,
        set: |sample, value| sample.rx.ce_bytes = value,
    },
];

/// What the layout has a place for: of received packets the marks too.
const PLACES: Fields = {
    let tx = Measured { retransmits: true, flows: true, ..Measured::BYTES };
    Fields { rx: Measured { ce: true, ..tx }, tx }
};

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
    let (meta, columns) = fabricscope.map(|further| (further.meta, further.columns)).unzip();
    let columns = columns.flatten();
    let mut series = match meta {
        Some(meta) => meta.series()?,
        None => Series {
            host: name(server_hostname),
            rack: rack_id.map(name).unwrap_or_default(),
            interval: interval(sampling_freq)?,
            fields: arrays.fields(),
            ..Series::default()
        },
    };
    series.fields = arrays.there(if columns.is_some() { series.fields } else { series.fields.and(PLACES) });
    let lengths = arrays.shortest().into_iter().chain(columns.as_ref().and_then(Columns::shortest));
    let Some(count) = lengths.min() else {
        let why = "it has none of the arrays ingressBytes, egressBytes and so on: nothing was measured on that host";
        return Err(Fault::NotSamples(why.to_owned()));
    };
    if count > limits::SAMPLES_PER_FILE {
        return Err(Fault::TooLarge(format!("{count} samples"), limits::SAMPLES_PER_FILE as u64));
    }
    let from = match series.covered.first() {
        Some(span) => span.start,
        None => result::start(&burst_result),
    };
    // Both are within bounds: a second at most, a million times.
    let time = |index: usize| from.after(DurationNs(series.interval.0.saturating_mul(index as u64)));
    series.covered = vec![Span { start: from, end: time(count) }];
    let sample = |index| Sample { start: time(index), length: series.interval, ..Sample::default() };
    series.samples = (0..count).map(sample).collect();
    arrays.put(&mut series);
    match columns {
        Some(columns) => columns.put(&mut series)?,
        None => put_connections(&arrays.connections, &mut series),
    }
    series.samples.retain(|sample| (&sample.rx, &sample.tx) != (&Traffic::default(), &Traffic::default()));
    Ok(series)
}

impl Arrays {
    /// What they say was measured. Connections are those of the directions whose bytes are there, or of both.
    fn fields(&mut self) -> Fields {
        let mut fields = self.there(PLACES);
        let either = fields.rx.bytes || fields.tx.bytes;
        for measured in [&mut fields.rx, &mut fields.tx] {
            measured.flows &= measured.bytes || !either;
        }
        fields
    }

    /// Of these fields, those whose array is there, and those that have none.
    fn there(&mut self, mut fields: Fields) -> Fields {
        for measure in MEASURES {
            *(measure.of)(&mut fields) &= !(measure.array)(self).is_empty();
        }
        for measured in [&mut fields.rx, &mut fields.tx] {
            measured.flows &= !self.connections.is_empty();
        }
        fields
    }

    /// How many samples the shortest has.
    fn shortest(&mut self) -> Option<usize> {
        let mut lengths: Vec<usize> = MEASURES.iter().map(|measure| (measure.array)(self).len()).collect();
        lengths.push(self.connections.len());
        lengths.into_iter().filter(|length| *length > 0).min()
    }

    /// Puts what is measured into the samples of a series, which stand in its order.
    fn put(&mut self, series: &mut Series) {
        for measure in MEASURES.iter().filter(|measure| *(measure.of)(&mut series.fields)) {
            let values = (measure.array)(self).iter();
            series.samples.iter_mut().zip(values).for_each(|(sample, value)| (measure.set)(sample, *value));
        }
    }
}

/// Sketches that stand for these numbers, in the directions that have sketches.
fn put_connections(connections: &[u64], series: &mut Series) {
    let fields = series.fields;
    for (sample, count) in series.samples.iter_mut().zip(connections) {
        let sketch = sketch_of(*count);
        for (measured, traffic) in [(fields.rx, &mut sample.rx), (fields.tx, &mut sample.tx)] {
            traffic.flows = if measured.flows { sketch } else { Sketch(0) };
        }
    }
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

/// A sketch that stands for this number of flows: which bits are set says nothing.
fn sketch_of(flows: u64) -> Sketch {
    let bits = f64::from(agent_common::bucket::SKETCH_BITS);
    let set = (bits * (1.0 - (-(flows as f64) / bits).exp())).round();
    // At most 128, of which all would be the sketch that is full.
    Sketch((0..set as u32).fold(0, |sketch, bit| sketch | 1 << bit))
}

/// Where the samples of a series stand in arrays.
struct Places {
    start: UtcNs,
    interval: u64,
    count: usize,
}

impl Places {
    fn of(series: &Series) -> Result<Self, Fault> {
        let [Span { start, end }] = series.covered[..] else {
            let count = series.covered.len();
            let why = format!("it was measured in {count} spans of time, and this layout has room for one");
            return Err(Fault::Unfit(why));
        };
        let interval = series.interval.0.max(1);
        let count = end.since(start).0.div_ceil(interval);
        match usize::try_from(count).ok().filter(|count| *count <= limits::SAMPLES_PER_FILE) {
            Some(count) => Ok(Self { start, interval, count }),
            None => Err(Fault::TooLarge(format!("{count} samples"), limits::SAMPLES_PER_FILE as u64)),
        }
    }

    /// An array. Samples that share a place are of a source without a fixed interval, and are added up.
    fn fill<T: Clone + Default>(&self, series: &Series, add: impl Fn(&mut T, &Sample)) -> Result<Vec<T>, Fault> {
        let mut array = vec![T::default(); self.count];
        for sample in &series.samples {
            let index = usize::try_from(sample.start.since(self.start).0 / self.interval).ok();
            let cell = index.filter(|_| sample.start >= self.start).and_then(|index| array.get_mut(index));
            let cell = cell.ok_or_else(|| Fault::Unfit("a sample lies outside of what was measured".to_owned()))?;
            add(cell, sample);
        }
        Ok(array)
    }
}

/// The file that holds this series.
pub(super) fn to_json(series: &Series) -> Result<Vec<u8>, Fault> {
    let places = Places::of(series)?;
    let mut arrays = Arrays::default();
    for measure in MEASURES.iter().filter(|measure| *(measure.of)(&mut { series.fields })) {
        let add = |sum: &mut u64, sample: &Sample| *sum = sum.saturating_add((measure.get)(sample));
        *(measure.array)(&mut arrays) = places.fill(series, add)?;
    }
    if series.fields.rx.flows || series.fields.tx.flows {
        let add = |sum: &mut u64, sample: &Sample| *sum = sum.saturating_add(connections(sample));
        arrays.connections = places.fill(series, add)?;
    }
    let layout = Layout {
        server_hostname: series.host.clone().into(),
        rack_id: (!series.rack.is_empty()).then(|| value(&series.rack)),
        sampling_freq: Some(1e9 / places.interval as f64),
        fabricscope: Some(Further { meta: Meta::of(series), columns: Some(Columns::of(series, &places)?) }),
        burst_result: result::result(series, places.start)?,
        arrays,
    };
    serde_json::to_vec(&layout).map_err(|error| Fault::Unfit(error.to_string()))
}

/// Packs a file by gzip.
pub(super) fn pack(bytes: &[u8]) -> Result<Vec<u8>, Fault> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    packer.write_all(bytes).and_then(|()| packer.finish()).map_err(|error| Fault::Unfit(error.to_string()))
}

//! Samples of network devices, to the wire and back: columns there, samples here.

use analysis::series::{
    BitsPerSecond, Direction, DurationNs, Fields, Measured, Roce, Sample, Series, Sketch, Span, Traffic, UtcNs,
};
use proto::v1;

use super::{Result, WireError, required};
use crate::rpc::limits;

/// A field on the wire: the directions it tells of, and its place in what is measured there.
struct Field {
    wire: v1::SampleField,
    directions: &'static [Direction],
    of: fn(&mut Measured) -> &mut bool,
}

const BOTH: &[Direction] = &Direction::ALL;

/// Which field is which.
const FIELDS: [Field; 9] = [
    Field { wire: v1::SampleField::Bytes, directions: BOTH, of: |measured| &mut measured.bytes },
    Field { wire: v1::SampleField::Packets, directions: BOTH, of: |measured| &mut measured.packets },
    Field { wire: v1::SampleField::Ce, directions: BOTH, of: |measured| &mut measured.ce },
    Field {
        wire: v1::SampleField::RetransmitsTx,
        directions: &[Direction::Tx],
        of: |measured| &mut measured.retransmits,
    },
    Field {
        wire: v1::SampleField::RetransmitsRx,
        directions: &[Direction::Rx],
        of: |measured| &mut measured.retransmits,
    },
    Field { wire: v1::SampleField::Regions, directions: BOTH, of: |measured| &mut measured.regions },
    Field { wire: v1::SampleField::Flows, directions: BOTH, of: |measured| &mut measured.flows },
    Field { wire: v1::SampleField::Roce, directions: BOTH, of: |measured| &mut measured.roce },
    Field { wire: v1::SampleField::Napi, directions: &[Direction::Rx], of: |measured| &mut measured.napi },
];

impl Field {
    fn is_measured(&self, fields: &Fields, direction: Direction) -> bool {
        self.directions.contains(&direction) && *(self.of)(&mut fields.of(direction).clone())
    }

    /// Whether the series tells of it: in at least one direction. Of bytes it need not.
    fn is_told(&self, fields: &Fields) -> bool {
        self.wire != v1::SampleField::Bytes && Direction::ALL.iter().any(|of| self.is_measured(fields, *of))
    }

    /// Whether this direction has to say that it is without.
    fn is_missing(&self, fields: &Fields, direction: Direction) -> bool {
        let expected = self.wire == v1::SampleField::Bytes || self.is_told(fields);
        expected && self.directions.contains(&direction) && !self.is_measured(fields, direction)
    }
}

/// What is measured, of the fields that a series tells of, and those that each direction is without.
fn fields(told: &[i32], without: &[(Direction, Vec<i32>)]) -> Fields {
    let mut fields = Fields::default();
    for field in &FIELDS {
        let wire = field.wire.into();
        if field.wire != v1::SampleField::Bytes && !told.contains(&wire) {
            continue;
        }
        for (direction, missing) in without.iter().filter(|(direction, _)| field.directions.contains(direction)) {
            *(field.of)(fields.of_mut(*direction)) = !missing.contains(&wire);
        }
    }
    fields
}

/// A column of whole numbers: its name, and its place on the wire and in a sample.
struct Column<W, D> {
    name: &'static str,
    wire: fn(&mut v1::SampleColumns) -> &mut Vec<W>,
    domain: fn(&mut Traffic) -> &mut D,
}

const WIDE: [Column<u64, u64>; 6] = [
    Column { name: "bytes", wire: |wire| &mut wire.bytes, domain: |traffic| &mut traffic.bytes },
    Column { name: "packets", wire: |wire| &mut wire.packets, domain: |traffic| &mut traffic.packets },
    Column { name: "ce_bytes", wire: |wire| &mut wire.ce_bytes, domain: |traffic| &mut traffic.ce_bytes },
    Column {
        name: "retransmit_bytes",
        wire: |wire| &mut wire.retransmit_bytes,
        domain: |traffic| &mut traffic.retransmit_bytes,
    },
    Column {
        name: "cross_region_bytes",
        wire: |wire| &mut wire.cross_region_bytes,
        domain: |traffic| &mut traffic.cross_region_bytes,
    },
    Column { name: "roce_bytes", wire: |wire| &mut wire.roce_bytes, domain: |traffic| &mut traffic.roce.bytes },
];

const NARROW: [Column<u32, u32>; 7] = [
    Column { name: "roce_packets", wire: |wire| &mut wire.roce_packets, domain: |traffic| &mut traffic.roce.packets },
    Column { name: "roce_cnps", wire: |wire| &mut wire.roce_cnps, domain: |traffic| &mut traffic.roce.cnps },
    Column {
        name: "roce_nak_sequence",
        wire: |wire| &mut wire.roce_nak_sequence,
        domain: |traffic| &mut traffic.roce.nak_sequence,
    },
    Column { name: "roce_nak_rnr", wire: |wire| &mut wire.roce_nak_rnr, domain: |traffic| &mut traffic.roce.nak_rnr },
    Column {
        name: "roce_nak_other",
        wire: |wire| &mut wire.roce_nak_other,
        domain: |traffic| &mut traffic.roce.nak_other,
    },
    Column { name: "roce_retries", wire: |wire| &mut wire.roce_retries, domain: |traffic| &mut traffic.roce.retries },
    Column {
        name: "napi_exhausted",
        wire: |wire| &mut wire.napi_exhausted,
        domain: |traffic| &mut traffic.napi_exhausted,
    },
];

/// A series as parts that each fit into a message.
pub(crate) fn series_to_wire(series: Series) -> impl Iterator<Item = v1::Samples> {
    let count = series.samples.len().div_ceil(limits::SAMPLES_PER_MESSAGE).max(1);
    (0..count).map(move |part| {
        let samples = series.samples.chunks(limits::SAMPLES_PER_MESSAGE).nth(part).unwrap_or_default();
        // What belongs to the whole series goes with its first part.
        part_to_wire(&series, samples, part == 0)
    })
}

fn part_to_wire(series: &Series, samples: &[Sample], first: bool) -> v1::Samples {
    let starts = samples.windows(2).filter_map(|pair| match pair {
        [before, after] => Some(after.start.since(before.start).0),
        _ => None,
    });
    let even = samples.iter().all(|sample| sample.length == series.interval);
    let told = FIELDS.iter().filter(|field| field.is_told(&series.fields));
    let spans = series.covered.iter().filter(|_| first);
    v1::Samples {
        host: series.host.clone(),
        boot_id: series.boot_id.clone(),
        netdev: series.netdev.clone(),
        interval_ns: series.interval.0,
        line_rate_bps: series.line_rate.map(|rate| rate.0),
        clock_error_ns: series.clock_error.map(|error| error.0),
        fields: told.map(|field| field.wire.into()).collect(),
        first_ns: samples.first().map_or(0, |sample| sample.start.0),
        steps_ns: starts.collect(),
        lengths_ns: samples.iter().filter(|_| !even).map(|sample| sample.length.0).collect(),
        rx: Some(columns(samples, &series.fields, Direction::Rx)),
        tx: Some(columns(samples, &series.fields, Direction::Tx)),
        covered: spans.map(|span| v1::MeasuredSpan { start_ns: span.start.0, end_ns: span.end.0 }).collect(),
        lost: if first { series.lost } else { 0 },
    }
}

fn columns(samples: &[Sample], fields: &Fields, direction: Direction) -> v1::SampleColumns {
    let without = FIELDS.iter().filter(|field| field.is_missing(fields, direction));
    let mut wire =
        v1::SampleColumns { without: without.map(|field| field.wire.into()).collect(), ..Default::default() };
    let mut traffic: Vec<Traffic> = samples.iter().map(|sample| *direction.of(sample)).collect();
    for column in &WIDE {
        *(column.wire)(&mut wire) = shortened(traffic.iter_mut().map(|traffic| *(column.domain)(traffic)));
    }
    for column in &NARROW {
        *(column.wire)(&mut wire) = shortened(traffic.iter_mut().map(|traffic| *(column.domain)(traffic)));
    }
    let sketch = |shift: u32| traffic.iter().map(move |traffic| (traffic.flows.0 >> shift) as u64);
    wire.sketch_low = shortened(sketch(0));
    wire.sketch_high = shortened(sketch(64));
    wire
}

/// A column, or nothing if all of it is 0.
fn shortened<T: PartialEq + Default>(values: impl Iterator<Item = T>) -> Vec<T> {
    let values: Vec<T> = values.collect();
    if values.iter().all(|value| *value == T::default()) { Vec::new() } else { values }
}

/// A part of a series.
pub(crate) fn series_from_wire(wire: v1::Samples) -> Result<Series> {
    let (mut rx, mut tx) = (required("rx", wire.rx)?, required("tx", wire.tx)?);
    let without = [(Direction::Rx, std::mem::take(&mut rx.without)), (Direction::Tx, std::mem::take(&mut tx.without))];
    let (rx, tx) = (traffic(rx)?, traffic(tx)?);
    let count = rx.len().max(tx.len());
    let mut start = UtcNs(wire.first_ns);
    let starts = [0].into_iter().chain(wire.steps_ns).map(|step| {
        start = start.after(DurationNs(step));
        start
    });
    let lengths = padded("lengths_ns", wire.lengths_ns, count, wire.interval_ns)?;
    let (rx, tx) = (full("rx", rx, count)?, full("tx", tx, count)?);
    let samples: Vec<Sample> = starts
        .zip(lengths)
        .zip(rx.into_iter().zip(tx))
        .map(|((start, length), (rx, tx))| Sample { start, length: DurationNs(length), rx, tx })
        .collect();
    if samples.len() != count {
        return Err(WireError::OutOfRange("steps_ns"));
    }
    let span = |span: &v1::MeasuredSpan| Span { start: UtcNs(span.start_ns), end: UtcNs(span.end_ns) };
    Ok(Series {
        host: wire.host,
        boot_id: wire.boot_id,
        // An agent does not know it.
        rack: String::new(),
        netdev: wire.netdev,
        interval: DurationNs(wire.interval_ns),
        line_rate: wire.line_rate_bps.map(BitsPerSecond),
        clock_error: wire.clock_error_ns.map(DurationNs),
        fields: fields(&wire.fields, &without),
        samples,
        covered: wire.covered.iter().map(span).collect(),
        lost: wire.lost,
    })
}

/// The samples of one direction: as many as its longest column has values.
fn traffic(mut wire: v1::SampleColumns) -> Result<Vec<Traffic>> {
    let wide = WIDE.iter().map(|column| (column.wire)(&mut wire).len()).max().unwrap_or_default();
    let narrow = NARROW.iter().map(|column| (column.wire)(&mut wire).len()).max().unwrap_or_default();
    let count = wide.max(narrow).max(wire.sketch_low.len()).max(wire.sketch_high.len());
    if count > limits::SAMPLES_PER_MESSAGE {
        return Err(WireError::TooLong("samples", limits::SAMPLES_PER_MESSAGE));
    }
    let mut all = vec![Traffic { roce: Roce::default(), ..Traffic::default() }; count];
    for column in &WIDE {
        let values = padded(column.name, std::mem::take((column.wire)(&mut wire)), count, 0)?;
        all.iter_mut().zip(values).for_each(|(traffic, value)| *(column.domain)(traffic) = value);
    }
    for column in &NARROW {
        let values = padded(column.name, std::mem::take((column.wire)(&mut wire)), count, 0)?;
        all.iter_mut().zip(values).for_each(|(traffic, value)| *(column.domain)(traffic) = value);
    }
    let low = padded("sketch_low", wire.sketch_low, count, 0)?;
    let high = padded("sketch_high", wire.sketch_high, count, 0)?;
    for ((traffic, low), high) in all.iter_mut().zip(low).zip(high) {
        traffic.flows = Sketch(u128::from(low) | u128::from(high) << 64);
    }
    Ok(all)
}

/// A column that was left out if all of it had one value.
fn padded<T: Clone>(field: &'static str, values: Vec<T>, count: usize, value: T) -> Result<Vec<T>> {
    match values.len() {
        0 => Ok(vec![value; count]),
        length if length == count => Ok(values),
        _ => Err(WireError::OutOfRange(field)),
    }
}

fn full(field: &'static str, traffic: Vec<Traffic>, count: usize) -> Result<Vec<Traffic>> {
    padded(field, traffic, count, Traffic::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at: i64, length: u64) -> Sample {
        let number = at.unsigned_abs();
        let rx = Traffic {
            bytes: number * 1_500,
            packets: number,
            ce_bytes: 7,
            flows: Sketch(1 << 127 | u128::from(number)),
            roce: Roce { cnps: 3, bytes: number, ..Roce::default() },
            ..Traffic::default()
        };
        let tx = Traffic { retransmit_bytes: number, cross_region_bytes: 1, ..Traffic::default() };
        Sample { start: UtcNs(1_700_000_000_000_000_000 + at * 1_000_000), length: DurationNs(length), rx, tx }
    }

    fn series(samples: Vec<Sample>) -> Series {
        Series {
            host: "gpu-17".into(),
            boot_id: "b00t".into(),
            rack: String::new(),
            netdev: "eth0".into(),
            interval: DurationNs(1_000_000),
            line_rate: Some(BitsPerSecond(100_000_000_000)),
            clock_error: Some(DurationNs(12_345)),
            fields: Fields::both(Measured { packets: true, ce: true, roce: true, ..Measured::BYTES }),
            samples,
            covered: vec![Span { start: UtcNs(5), end: UtcNs(9) }, Span { start: UtcNs(12), end: UtcNs(i64::MAX) }],
            lost: 4,
        }
    }

    #[track_caller]
    fn check(series: &Series, parts: usize) {
        let wire: Vec<_> = series_to_wire(series.clone()).collect();
        assert_eq!(wire.len(), parts);
        let mut back = Vec::new();
        for part in wire {
            back.push(series_from_wire(part).unwrap());
        }
        let mut whole = back.remove(0);
        for part in back {
            assert!(part.covered.is_empty() && part.lost == 0, "told once");
            whole.samples.extend(part.samples);
        }
        assert_eq!(&whole, series);
    }

    #[test]
    fn a_series_comes_back_as_it_went() {
        check(&series(Vec::new()), 1);
        check(&series(vec![sample(1, 1_000_000)]), 1);
        check(&series(vec![sample(1, 1_000_000), sample(2, 999_999), sample(77, 1_000_000)]), 1);
        let many = (0..=limits::SAMPLES_PER_MESSAGE as i64).map(|at| sample(at, 1_000_000)).collect();
        check(&series(many), 2);
        let mut bare = series(vec![sample(1, 1_000_000)]);
        (bare.line_rate, bare.clock_error, bare.fields) = (None, None, Fields::both(Measured::BYTES));
        check(&bare, 1);
        for measured in [Measured::BYTES, Measured { ce: true, retransmits: true, flows: true, ..Measured::NOTHING }] {
            bare.fields = Fields { tx: measured, ..Fields::default() };
            check(&bare, 1);
            bare.fields =
                Fields { rx: Measured { napi: true, ..measured }, tx: Measured { packets: true, ..measured } };
            check(&bare, 1);
        }
    }

    #[test]
    fn columns_of_different_length_are_refused() {
        let good = series_to_wire(series(vec![sample(1, 1), sample(2, 2)])).next().unwrap();
        type Spoil = fn(&mut v1::Samples);
        let rows: [(Spoil, &str); 5] = [
            (|wire| wire.rx = None, "rx"),
            (|wire| wire.steps_ns.clear(), "steps_ns"),
            (|wire| wire.lengths_ns.push(1), "lengths_ns"),
            (|wire| wire.rx.as_mut().unwrap().packets.truncate(1), "packets"),
            (|wire| wire.tx.as_mut().unwrap().sketch_low = vec![1], "sketch_low"),
        ];
        for (spoil, field) in rows {
            let mut wire = good.clone();
            spoil(&mut wire);
            let error = series_from_wire(wire).unwrap_err();
            assert!(error.to_string().contains(field), "{error}");
        }
    }
}

//! Bursts: maximal runs of samples above a share of line rate.

use std::fmt;

use crate::answer::Answer;
use crate::series::{BitsPerSecond, Direction, DurationNs, Sample, Series, Sketch, Span, UtcNs};
use crate::sketch::Flows;

/// A share of line rate: more than 0, at most 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Share(f64);

impl Share {
    /// The share above which a sample belongs to a burst, as in the literature on millisecond bursts.
    pub const DEFAULT: Self = Self(0.5);

    /// `None` if out of range.
    #[must_use]
    pub fn new(share: f64) -> Option<Self> {
        (share > 0.0 && share <= 1.0).then_some(Self(share))
    }

    /// As a number.
    #[must_use]
    pub const fn value(self) -> f64 {
        self.0
    }

    /// This share of `rate`.
    #[must_use]
    pub fn of(self, rate: BitsPerSecond) -> BitsPerSecond {
        BitsPerSecond((rate.0 as f64 * self.0).round() as u64)
    }
}

impl Default for Share {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Why there is no telling whether there were bursts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// Neither does the device state a line rate nor was one given.
    NoLineRate,
    /// No time was measured.
    NotMeasured,
    /// The bytes of this direction were not.
    NoBytes(Direction),
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoLineRate => f.write_str("the line rate is not known"),
            Self::NotMeasured => f.write_str("no time was measured"),
            Self::NoBytes(direction) => write!(f, "{} bytes were not measured", direction.name()),
        }
    }
}

/// A maximal run of samples above the threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// Which way.
    pub direction: Direction,
    /// When its first sample began.
    pub start: UtcNs,
    /// From there to the end of its last sample.
    pub length: DurationNs,
    /// How many samples it has.
    pub samples: usize,
    /// Bytes on the wire.
    pub bytes: u64,
    /// Packets on the wire, where they are counted.
    pub packets: Option<u64>,
    /// The rate of its fastest sample.
    pub peak: BitsPerSecond,
    /// Its bytes over its length.
    pub average: BitsPerSecond,
    /// Flows that were active in it, where there are sketches.
    pub flows: Option<Flows>,
    /// Of its bytes, those marked ECN `CE`, where they are counted.
    pub ce_bytes: Option<u64>,
    /// Payload bytes sent again (tx) or suspected of it (rx), where they are counted.
    pub retransmit_bytes: Option<u64>,
    /// The time before it was not measured: it may have begun earlier.
    pub cut_before: bool,
    /// The time after it was not measured: it may have lasted longer.
    pub cut_after: bool,
}

impl Burst {
    /// From its start to its end.
    #[must_use]
    pub const fn span(&self) -> Span {
        Span { start: self.start, end: self.start.after(self.length) }
    }

    /// Its marked bytes as a share of all, where they are counted.
    #[must_use]
    pub fn ce_share(&self) -> Option<f64> {
        self.ce_bytes.map(|bytes| bytes as f64 / self.bytes as f64)
    }

    /// Its bytes sent again as a share of all, where they are counted. Payload over wire bytes: less than 1 even if all
    /// was sent again.
    #[must_use]
    pub fn retransmit_share(&self) -> Option<f64> {
        self.retransmit_bytes.map(|bytes| bytes as f64 / self.bytes as f64)
    }
}

/// Bursts of one direction in order of time.
///
/// Works for samples of any length: a sample is above if its bytes over its measured length are. Samples follow each
/// other if less than half an interval lies between them: times come from a clock that is corrected as it runs.
#[must_use]
pub fn bursts(series: &Series, direction: Direction, threshold: Share) -> Answer<Vec<Burst>, Unknown> {
    if series.covered.is_empty() {
        return Answer::CannotTell(Unknown::NotMeasured);
    }
    if !series.fields.of(direction).bytes {
        return Answer::CannotTell(Unknown::NoBytes(direction));
    }
    let Some(line_rate) = series.line_rate.filter(|rate| rate.0 > 0) else {
        return Answer::CannotTell(Unknown::NoLineRate);
    };
    let limit = threshold.of(line_rate);
    let mut found = Vec::new();
    let mut open: Option<Run> = None;
    for sample in &series.samples {
        let above = is_above(sample, direction, limit);
        if let Some(run) = open.take_if(|run| !above || !run.is_followed_by(sample, series.interval)) {
            found.push(run.close(series));
        }
        if above {
            open.get_or_insert_with(|| Run::new(direction, sample.start)).add(sample);
        }
    }
    found.extend(open.map(|run| run.close(series)));
    if found.is_empty() { Answer::Quiet } else { Answer::Found(found) }
}

fn is_above(sample: &Sample, direction: Direction, limit: BitsPerSecond) -> bool {
    // Compared as products: a quotient would round. A sample without length has no rate.
    let bits = u128::from(direction.of(sample).bytes) * 8_000_000_000;
    sample.length.0 > 0 && bits > u128::from(limit.0) * u128::from(sample.length.0)
}

/// Gaps between bursts: from the end of each to the start of the next, if all of that time was measured.
#[must_use]
pub fn gaps(series: &Series, bursts: &[Burst]) -> Vec<DurationNs> {
    let between = bursts.windows(2).filter_map(|pair| match pair {
        [first, second] => Some(Span { start: first.span().end, end: second.start }),
        _ => None,
    });
    between.filter(|gap| series.covers(*gap)).map(Span::length).collect()
}

/// A burst that may go on.
struct Run {
    direction: Direction,
    start: UtcNs,
    end: UtcNs,
    samples: usize,
    /// Without what lies between samples.
    length: DurationNs,
    bytes: u64,
    packets: u64,
    ce_bytes: u64,
    retransmit_bytes: u64,
    peak: BitsPerSecond,
    sketch: Sketch,
}

impl Run {
    fn new(direction: Direction, start: UtcNs) -> Self {
        let (bytes, packets, ce_bytes, retransmit_bytes) = (0, 0, 0, 0);
        let (length, peak, sketch) = (DurationNs(0), BitsPerSecond(0), Sketch(0));
        Self {
            direction,
            start,
            end: start,
            samples: 0,
            length,
            bytes,
            packets,
            ce_bytes,
            retransmit_bytes,
            peak,
            sketch,
        }
    }

    fn is_followed_by(&self, sample: &Sample, interval: DurationNs) -> bool {
        sample.start.since(self.end).0 <= interval.0 / 2
    }

    fn add(&mut self, sample: &Sample) {
        let traffic = self.direction.of(sample);
        self.end = sample.end();
        self.samples += 1;
        self.length.0 = self.length.0.saturating_add(sample.length.0);
        self.bytes = self.bytes.saturating_add(traffic.bytes);
        self.packets = self.packets.saturating_add(traffic.packets);
        self.ce_bytes = self.ce_bytes.saturating_add(traffic.ce_bytes);
        self.retransmit_bytes = self.retransmit_bytes.saturating_add(traffic.retransmit_bytes);
        self.peak = self.peak.max(sample.rate(self.direction).unwrap_or(BitsPerSecond(0)));
        self.sketch = self.sketch.or(traffic.flows);
    }

    fn close(self, series: &Series) -> Burst {
        let measured = series.fields.of(self.direction);
        // The sample before and the one after it, if they were measured, were not above.
        let near = series.interval;
        let before = Span { start: UtcNs(self.start.0.saturating_sub_unsigned(near.0)), end: self.start };
        let after = Span { start: self.end, end: self.end.after(near) };
        Burst {
            direction: self.direction,
            start: self.start,
            length: self.end.since(self.start),
            samples: self.samples,
            bytes: self.bytes,
            packets: measured.packets.then_some(self.packets),
            peak: self.peak,
            average: BitsPerSecond::of(self.bytes, self.length).unwrap_or(self.peak),
            flows: measured.flows.then(|| self.sketch.flows()),
            ce_bytes: measured.ce.then_some(self.ce_bytes),
            retransmit_bytes: measured.retransmits.then_some(self.retransmit_bytes),
            cut_before: !series.covers(before),
            cut_after: !series.covers(after),
        }
    }
}

#[cfg(test)]
mod tests;

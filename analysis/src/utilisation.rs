//! How much of a line was used, over time and in all.

use crate::series::{BitsPerSecond, Direction, DurationNs, Measured, Sample, Series, Span};

/// What one direction carried in all of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Total {
    /// Bytes on the wire, where they are counted.
    pub bytes: Option<u64>,
    /// Packets on the wire, where they are counted.
    pub packets: Option<u64>,
    /// Of the bytes, those marked ECN `CE`, where they are counted.
    pub ce_bytes: Option<u64>,
    /// Payload bytes sent again (tx) or suspected of it (rx), where they are counted.
    pub retransmit_bytes: Option<u64>,
    /// Polls that used up their budget, where they are counted: of rx alone.
    pub napi_exhausted: Option<u64>,
    /// The bytes over the measured time; `None` if there is none, or bytes are not counted.
    pub mean: Option<BitsPerSecond>,
    /// The rate of the fastest sample; `None` if no time was measured, or bytes are not counted.
    pub peak: Option<BitsPerSecond>,
}

/// Sums up one direction.
#[must_use]
pub fn total(series: &Series, direction: Direction) -> Total {
    let sum = |value: fn(&crate::series::Traffic) -> u64| {
        series.samples.iter().fold(0, |sum: u64, sample| sum.saturating_add(value(direction.of(sample))))
    };
    let measured = series.fields.of(direction);
    let bytes = measured.bytes.then(|| sum(|traffic| traffic.bytes));
    let mean = bytes.and_then(|bytes| BitsPerSecond::of(bytes, series.measured()));
    let peak = series.samples.iter().filter_map(|sample| sample.rate(direction)).max();
    Total {
        bytes,
        packets: measured.packets.then(|| sum(|traffic| traffic.packets)),
        ce_bytes: measured.ce.then(|| sum(|traffic| traffic.ce_bytes)),
        retransmit_bytes: measured.retransmits.then(|| sum(|traffic| traffic.retransmit_bytes)),
        napi_exhausted: measured.napi.then(|| sum(|traffic| u64::from(traffic.napi_exhausted))),
        mean,
        // Measured, and not one sample: nothing passed.
        peak: mean.and(peak.or(Some(BitsPerSecond(0)))),
    }
}

/// One of the equal parts that a span is divided into.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bin {
    /// When.
    pub span: Span,
    /// How much of it was measured.
    pub measured: DurationNs,
    /// Bytes on the wire, where they are counted; of a sample that reaches into several bins, each has its share by
    /// time.
    pub bytes: Option<f64>,
    /// Of the bytes, those marked ECN `CE`, where they are counted.
    pub ce_bytes: Option<f64>,
    /// Payload bytes sent again (tx) or suspected of it (rx), where they are counted.
    pub retransmit_bytes: Option<f64>,
    /// A poll in it used up its budget.
    pub napi_exhausted: bool,
    /// The rate of the fastest sample; `None` if no time was measured, or bytes are not counted.
    pub peak: Option<BitsPerSecond>,
}

impl Bin {
    /// Bits a second over what was measured; `None` if nothing was.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        self.rate(self.bytes)
    }

    /// Such bytes of this bin in bits a second; `None` if no time was measured, or they are not counted.
    #[must_use]
    pub fn rate(&self, bytes: Option<f64>) -> Option<f64> {
        bytes.filter(|_| self.measured.0 > 0).map(|bytes| bytes * 8.0 / self.measured.seconds())
    }
}

/// One direction in `count` equal parts of a span of time.
#[must_use]
pub fn bins(series: &Series, direction: Direction, over: Span, count: usize) -> Vec<Bin> {
    let measured = series.fields.of(direction);
    let empty = |span| empty(span, measured);
    let mut bins: Vec<Bin> = (0..count).filter_map(|number| part(over, number, count)).map(empty).collect();
    for covered in &series.covered {
        for (bin, both) in touched(&mut bins, over, *covered) {
            bin.measured.0 += both.length().0;
            bin.peak = bin.peak.or(measured.bytes.then_some(BitsPerSecond(0)));
        }
    }
    for sample in &series.samples {
        for (bin, both) in touched(&mut bins, over, sample.span()) {
            add(bin, sample, direction, both.length());
        }
    }
    bins
}

fn empty(span: Span, measured: &Measured) -> Bin {
    Bin {
        span,
        measured: DurationNs(0),
        bytes: measured.bytes.then_some(0.0),
        ce_bytes: measured.ce.then_some(0.0),
        retransmit_bytes: measured.retransmits.then_some(0.0),
        napi_exhausted: false,
        peak: None,
    }
}

fn add(bin: &mut Bin, sample: &Sample, direction: Direction, both: DurationNs) {
    let traffic = direction.of(sample);
    let share = both.0 as f64 / sample.length.0 as f64;
    let parts = [
        (&mut bin.bytes, traffic.bytes),
        (&mut bin.ce_bytes, traffic.ce_bytes),
        (&mut bin.retransmit_bytes, traffic.retransmit_bytes),
    ];
    for (sum, more) in parts {
        *sum = sum.map(|sum| sum + more as f64 * share);
    }
    // A sample that only reaches in by the correction of a clock would show in two bins. One of the bins it touches
    // has at least half of it, or is half filled by it.
    if both.0 >= sample.length.0.min(bin.span.length().0) / 2 {
        bin.peak = bin.peak.max(bin.bytes.and(sample.rate(direction)));
        bin.napi_exhausted |= traffic.napi_exhausted > 0;
    }
}

/// The part with this number, of `count`; `None` if it has no length.
fn part(over: Span, number: usize, count: usize) -> Option<Span> {
    let edge = |number: usize| {
        let after = u128::from(over.length().0) * number as u128 / count as u128;
        // No more than the length.
        over.start.after(DurationNs(u64::try_from(after).unwrap_or(u64::MAX)))
    };
    let span = Span { start: edge(number), end: edge(number + 1) };
    (span.start < span.end).then_some(span)
}

/// The bins that a span lies in, each with what both have.
fn touched(bins: &mut [Bin], over: Span, span: Span) -> impl Iterator<Item = (&mut Bin, Span)> {
    let inside = over.overlap(span);
    let first = inside.map_or(bins.len(), |inside| bins.partition_point(|bin| bin.span.end <= inside.start));
    let after = bins.get_mut(first..).unwrap_or_default().iter_mut();
    after.map_while(move |bin| bin.span.overlap(inside?).map(|both| (bin, both)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::series;

    /// Per bin: mean and peak in tenths of line rate; `-` where nothing was measured.
    #[track_caller]
    fn check(pattern: &str, count: usize, expected: &str) {
        let series = series(pattern);
        let bins = bins(&series, Direction::Rx, series.window().unwrap(), count);
        let tenths = |rate: f64| (rate / 8e8).round();
        let shown: Vec<String> = bins
            .iter()
            .map(|bin| match (bin.mean(), bin.peak) {
                (Some(mean), Some(peak)) => format!("{}/{}", tenths(mean), tenths(peak.0 as f64)),
                _ => "-".to_owned(),
            })
            .collect();
        assert_eq!(shown.join(" "), expected, "{pattern}");
    }

    #[test]
    fn bins_have_a_mean_and_a_peak() {
        check("2468", 4, "2/2 4/4 6/6 8/8");
        check("2468", 2, "3/4 7/8");
        check("24..68..", 4, "3/4 0/0 7/8 0/0");
        check("24??68", 3, "3/4 - 7/8");
        check("8?", 1, "8/8");
        check("?8?8", 3, "8/8 - 8/8");
        // Wider samples than bins.
        check("28", 4, "2/2 2/2 8/8 8/8");
        // Neither: the middle has a share of both.
        check("28", 3, "2/2 5/8 8/8");
    }

    #[test]
    fn totals_say_what_was_measured() {
        let mut series = series("24??6.");
        let rx = total(&series, Direction::Rx);
        assert_eq!((rx.bytes, rx.packets), (Some(1_200_000), Some(1_200)));
        assert_eq!((rx.ce_bytes, rx.retransmit_bytes), (Some(600_000), Some(120_000)));
        assert_eq!((rx.mean, rx.peak), (Some(BitsPerSecond(2_400_000_000)), Some(BitsPerSecond(4_800_000_000))));
        assert_eq!(total(&series, Direction::Tx).retransmit_bytes, None);
        series.samples.clear();
        assert_eq!(total(&series, Direction::Rx).peak, Some(BitsPerSecond(0)));
        series.covered.clear();
        let none = total(&series, Direction::Rx);
        assert_eq!((none.bytes, none.mean, none.peak), (Some(0), None, None));
    }

    #[test]
    fn what_is_not_measured_is_in_no_bin_and_no_total() {
        let mut series = series("24??6.");
        series.fields.rx = Measured { ce: true, ..Measured::NOTHING };
        let rx = total(&series, Direction::Rx);
        assert_eq!((rx.bytes, rx.packets, rx.mean, rx.peak), (None, None, None, None));
        assert_eq!((rx.ce_bytes, rx.retransmit_bytes), (Some(600_000), None));
        let bins = bins(&series, Direction::Rx, series.window().unwrap(), 6);
        assert!(bins.iter().all(|bin| bin.bytes.is_none() && bin.mean().is_none() && bin.peak.is_none()));
        assert!(bins.iter().all(|bin| bin.retransmit_bytes.is_none()));
        let marked: Vec<_> = bins.iter().map(|bin| bin.rate(bin.ce_bytes).map(|rate| rate / 8e8)).collect();
        assert_eq!(marked, [Some(1.0), Some(2.0), None, None, Some(3.0), Some(0.0)]);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_in_bins(pattern in "[0-9.?#]{1,60}[0-9]", count in 1usize..100) {
            let series = series(&pattern);
            let bins = bins(&series, Direction::Rx, series.window().unwrap(), count);
            let total = total(&series, Direction::Rx);
            let bytes: f64 = bins.iter().filter_map(|bin| bin.bytes).sum();
            prop_assert!((bytes - total.bytes.unwrap() as f64).abs() <= 1e-6 * bytes.max(1.0));
            prop_assert_eq!(bins.iter().filter_map(|bin| bin.peak).max(), total.peak);
            prop_assert_eq!(bins.iter().map(|bin| bin.measured.0).sum::<u64>(), series.measured().0);
        }
    }
}

//! Series for tests, written as text.

use crate::series::{BitsPerSecond, DurationNs, Fields, Measured, Sample, Series, Sketch, Span, Traffic, UtcNs};

/// Bytes that pass in a sample at line rate.
pub(crate) const FULL: u64 = 1_000_000;

/// The length of a sample.
pub(crate) const INTERVAL: DurationNs = DurationNs(1_000_000);

/// When the first sample starts.
pub(crate) const START: i64 = 1_000_000_000_000_000_000;

/// A series of 1 ms samples at 8 Gbit/s, one for each character: a digit is tenths of line rate towards the host, `#`
/// all of it, `.` nothing (the sample is left out), `?` a time that was not measured. The first sample of a digit has
/// the first sketch bit, and so on; half of what comes is marked, a tenth sent again.
pub(crate) fn series(pattern: &str) -> Series {
    let mut series = Series {
        interval: INTERVAL,
        line_rate: Some(BitsPerSecond(FULL * 8 * 1_000)),
        clock_error: Some(DurationNs(100_000)),
        fields: Fields {
            rx: Measured { packets: true, ce: true, retransmits: true, flows: true, ..Measured::BYTES },
            tx: Measured { packets: true, ce: true, flows: true, ..Measured::BYTES },
        },
        ..Series::default()
    };
    for (number, character) in pattern.chars().enumerate() {
        let start = UtcNs(START).after(DurationNs(INTERVAL.0 * number as u64));
        let end = start.after(INTERVAL);
        if character == '?' {
            series.lost += 1;
            continue;
        }
        match series.covered.last_mut().filter(|span| span.end == start) {
            Some(span) => span.end = end,
            None => series.covered.push(Span { start, end }),
        }
        let bytes = match character {
            '.' => continue,
            '#' => FULL,
            tenths => u64::from(tenths.to_digit(10).unwrap()) * FULL / 10,
        };
        let flows = Sketch(1 << (number % 128));
        let (ce_bytes, retransmit_bytes) = (bytes / 2, bytes / 10);
        let rx = Traffic { bytes, packets: bytes / 1000, ce_bytes, retransmit_bytes, flows, ..Traffic::default() };
        series.samples.push(Sample { start, length: INTERVAL, rx, tx: Traffic::default() });
    }
    series
}

//! Times, rates, and series as wholes and parts.

use super::*;
use crate::testing::{START, series};

fn span(start: i64, end: i64) -> Span {
    Span { start: UtcNs(start), end: UtcNs(end) }
}

#[test]
fn a_span_is_covered_only_as_a_whole() {
    let series = Series { covered: vec![span(0, 10), span(20, 30)], ..Series::default() };
    let rows = [
        (span(0, 10), true),
        (span(3, 4), true),
        (span(9, 11), false),
        (span(10, 20), false),
        (span(20, 21), true),
        (span(29, 31), false),
        (span(0, 30), false),
        (span(40, 41), false),
    ];
    for (asked, expected) in rows {
        assert_eq!(series.covers(asked), expected, "{asked:?}");
    }
    assert!(!Series::default().covers(span(0, 1)));
}

#[test]
fn times_do_not_overflow() {
    assert_eq!(UtcNs(i64::MAX).after(DurationNs(u64::MAX)), UtcNs(i64::MAX));
    assert_eq!(UtcNs(i64::MIN).since(UtcNs(0)), DurationNs(0));
    assert_eq!(UtcNs(i64::MAX).since(UtcNs(i64::MIN)), DurationNs(u64::MAX));
}

#[test]
fn rates_are_read_by_people() {
    let rows =
        [(100_000_000_000, "100 Gbit/s"), (2_500_000_000, "2.5 Gbit/s"), (10_000_000, "10 Mbit/s"), (7, "7 bit/s")];
    for (rate, expected) in rows {
        assert_eq!(BitsPerSecond(rate).to_string(), expected);
    }
    assert_eq!(BitsPerSecond(8_000_000_000).bytes_in(DurationNs(1_000_000)), 1_000_000.0);
    assert_eq!(BitsPerSecond::of(1_000_000, DurationNs(1_000_000)), Some(BitsPerSecond(8_000_000_000)));
    assert_eq!(BitsPerSecond::of(u64::MAX, DurationNs(1)), Some(BitsPerSecond(u64::MAX)));
    assert_eq!(BitsPerSecond::of(1, DurationNs(0)), None);
}

#[test]
fn pieces_of_one_source_are_one_series() {
    let all = series("12.4?6.8");
    let piece = |from: i64, to: i64| {
        let within = span(START + from * 1_000_000, START + to * 1_000_000);
        let mut piece = all.clone();
        piece.samples.retain(|sample| within.overlap(sample.span()).is_some());
        piece.covered = all.covered.iter().filter_map(|covered| covered.overlap(within)).collect();
        piece.lost = u64::from(from == 2);
        piece
    };
    assert_eq!(Series::join(vec![piece(0, 2), piece(2, 8)]), all);
    assert_eq!(Series::join(vec![piece(2, 8), piece(0, 2)]), all, "in any order");
    assert_eq!(Series::join(vec![piece(0, 4), piece(2, 8)]), all, "what is in both is there once");
    assert_eq!(Series::join(Vec::new()), Series::default());
    let mut second = piece(2, 8);
    second.clock_error = None;
    second.fields.ce = false;
    let whole = Series::join(vec![piece(0, 2), second]);
    assert_eq!((whole.clock_error, whole.fields.ce, whole.fields.flows), (None, false, true));
}

#[test]
fn a_part_of_a_series_is_a_series() {
    let at = |ms: i64| START + ms * 1_000_000;
    let all = series("12.4?6.8?");
    let part = |from: i64, to: i64| all.clone().within(span(from, to));
    let shown = |part: &Series| (part.samples.len(), part.measured().0 / 1_000_000, part.lost);
    assert_eq!(shown(&part(i64::MIN, i64::MAX)), (5, 7, 1));
    assert_eq!(shown(&part(at(1), at(4))), (2, 3, 0));
    // Half of a sample is all of it.
    assert_eq!(shown(&part(at(1) + 500_000, at(5) + 500_000)), (3, 4, 1));
    assert_eq!(shown(&part(at(2), at(3))), (0, 1, 0));
    assert_eq!(shown(&part(at(20), at(30))), (0, 0, 0));
    assert_eq!(shown(&part(at(3), at(1))), (0, 0, 0));
}

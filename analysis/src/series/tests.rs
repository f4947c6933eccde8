//! Times, rates, and what is covered.

use super::*;

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

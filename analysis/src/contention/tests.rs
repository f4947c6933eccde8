//! Groups of series that are written as text.

use proptest::prelude::*;

use super::*;
use crate::series::UtcNs;
use crate::testing::{INTERVAL, series};

const RX: Options = Options { direction: Direction::Rx, threshold: Share::DEFAULT, bin: None };

fn compared(group: &[Series], options: Options) -> Result<Comparison, Unknown> {
    compare(&group.iter().collect::<Vec<_>>(), options)
}

fn group(patterns: &[&str]) -> Vec<Series> {
    patterns.iter().map(|pattern| series(pattern)).collect()
}

/// Moves a series in time.
fn shifted(pattern: &str, ns: i64) -> Series {
    let mut series = series(pattern);
    series.samples.iter_mut().for_each(|sample| sample.start.0 += ns);
    for span in &mut series.covered {
        span.start.0 += ns;
        span.end.0 += ns;
    }
    series
}

#[track_caller]
fn check(patterns: &[&str], contention: &[u32], distribution: &[u64], pairs: &[(usize, usize, u64, u64)]) {
    let found = compared(&group(patterns), RX).unwrap();
    assert_eq!(found.contention, contention, "{patterns:?}");
    assert_eq!(found.distribution, distribution, "{patterns:?}");
    let seen: Vec<_> = found.pairs.iter().map(|pair| (pair.first, pair.second, pair.both, pair.measured)).collect();
    assert_eq!(seen, pairs, "{patterns:?}");
}

#[test]
fn contention_counts_who_bursts_at_once() {
    check(&["..66..", "...66."], &[0, 0, 1, 2, 1, 0], &[3, 2, 1], &[(0, 1, 1, 6)]);
    check(&[".66...", "...66."], &[0, 1, 1, 1, 1, 0], &[2, 4, 0], &[(0, 1, 0, 6)]);
    check(&["......", "...66."], &[0, 0, 0, 1, 1, 0], &[4, 2, 0], &[]);
    // The pair that overlaps most comes first; what was not measured is not counted.
    check(
        &["..66..", "..6?..", "...66."],
        &[0, 0, 2, 2, 1, 0],
        &[3, 1, 1, 0],
        &[(0, 1, 1, 5), (0, 2, 1, 6), (1, 2, 0, 5)],
    );
}

#[test]
fn only_the_common_time_is_compared() {
    let found = compared(&[series("66....6"), shifted("6...", 3 * 1_000_000)], RX).unwrap();
    assert_eq!(found.contention, [1, 0, 0, 1]);
    assert_eq!(found.window.length(), DurationNs(4 * INTERVAL.0));
    assert_eq!(found.contention_mean(), Some(0.5));
    let apart = [series("66."), shifted("66.", 3 * 1_000_000)];
    assert_eq!(compared(&apart, RX).unwrap_err(), Unknown::NoCommonTime);
}

#[test]
fn buckets_that_begin_at_other_times_are_bursts_of_one_bin() {
    for shift in [100_000, 400_000, -400_000] {
        let found = compared(&[series(".....6....."), shifted(".....6.....", shift)], RX).unwrap();
        assert_eq!(found.pairs.len(), 1);
        assert_eq!(found.pairs[0].overlap(), Some(1.0), "{shift}");
    }
}

#[test]
fn overlap_and_lift_tell_how_far_it_is_chance() {
    let found = compared(&group(&["66..66..", "66..66..", "6.6.6.6."]), RX).unwrap();
    let told: Vec<_> = found.pairs.iter().map(|pair| (pair.overlap().unwrap(), pair.lift().unwrap())).collect();
    // In half of all bins each: together in all of those is twice, together in a quarter is chance.
    assert_eq!(told, [(1.0, 2.0), (2.0 / 6.0, 1.0), (2.0 / 6.0, 1.0)]);
    let members: Vec<_> = found.members.iter().map(|member| (member.bursting_bins, member.contended_bins)).collect();
    assert_eq!(members, [(4, 4), (4, 4), (4, 2)]);
}

#[test]
fn clocks_decide_what_can_be_compared() {
    let mut group = group(&[".6.6.6.", ".6.6.6."]);
    group[0].clock_error = Some(DurationNs(600_000));
    group[1].clock_error = Some(DurationNs(700_000));
    let apart = DurationNs(1_300_000);
    assert_eq!(compared(&group, RX).unwrap_err(), Unknown::ClocksApart(0, 1, apart));
    let wide = Options { bin: Some(DurationNs(2_000_000)), ..RX };
    assert_eq!(compared(&group, wide).unwrap().clocks_apart, apart);
    group[1].clock_error = None;
    assert_eq!(compared(&group, wide).unwrap_err(), Unknown::NoClockError(1));
    for series in &mut group {
        series.boot_id = "one boot".to_owned();
    }
    assert_eq!(compared(&group, RX).unwrap().clocks_apart, DurationNs(0));
}

#[test]
fn what_cannot_be_compared_is_named() {
    let two = || group(&[".6.", ".6."]);
    assert_eq!(compared(&two()[..1], RX).unwrap_err(), Unknown::TooFew);
    let mut no_rate = two();
    no_rate[1].line_rate = None;
    assert_eq!(compared(&no_rate, RX).unwrap_err(), Unknown::Bursts(1, burst::Unknown::NoLineRate));
    let fine = Options { bin: Some(DurationNs(999_999)), ..RX };
    assert_eq!(compared(&two(), fine).map(|found| found.bin).unwrap_err(), Unknown::TooFine(1, INTERVAL));
    let mut long = two();
    for series in &mut long {
        series.covered = vec![Span { start: series.covered[0].start, end: UtcNs(i64::MAX) }];
    }
    assert!(matches!(compared(&long, RX).unwrap_err(), Unknown::TooManyBins(_)));
    for series in &mut long {
        series.interval = DurationNs(0);
        series.clock_error = Some(DurationNs(0));
    }
    assert_eq!(compared(&long, RX).unwrap_err(), Unknown::NoCommonTime);
}

#[test]
fn a_short_burst_in_a_wide_bin_counts() {
    let group = group(&["..............................6.........", "......................................6."]);
    let found = compared(&group, Options { bin: Some(DurationNs(10_000_000)), ..RX }).unwrap();
    assert_eq!(found.contention, [0, 0, 0, 2]);
}

proptest! {
    #[test]
    fn every_bin_is_counted_once(patterns in prop::collection::vec("\\.[0-9.?]{1,40}\\.", 2..5)) {
        let group: Vec<Series> = patterns.iter().map(|pattern| series(pattern)).collect();
        let found = compared(&group, RX).unwrap();
        let bursting: u64 = found.contention.iter().map(|count| u64::from(*count)).sum();
        prop_assert_eq!(bursting, found.members.iter().map(|member| member.bursting_bins).sum::<u64>());
        prop_assert!(found.complete_bins() <= found.contention.len() as u64);
        for pair in &found.pairs {
            prop_assert!(pair.both <= pair.by_first.min(pair.by_second));
            prop_assert!(pair.overlap().is_none_or(|overlap| (0.0..=1.0).contains(&overlap)));
        }
        for member in &found.members {
            prop_assert!(member.contended_bins <= member.bursting_bins);
            prop_assert!(member.bursting_bins <= member.measured_bins);
        }
    }
}

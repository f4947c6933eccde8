//! Bursts of series that are written as text, and what holds for all series.

use proptest::prelude::*;

use super::*;
use crate::series::{Fields, Measured, Traffic};
use crate::testing::{FULL, INTERVAL, START, series};
use crate::utilisation::total;

fn rx(series: &Series) -> Answer<Vec<Burst>, Unknown> {
    bursts(series, Direction::Rx, Share::DEFAULT)
}

fn found(series: &Series) -> Vec<Burst> {
    match rx(series) {
        Answer::Found(bursts) => bursts,
        Answer::Quiet => Vec::new(),
        Answer::CannotTell(why) => panic!("{why}"),
    }
}

/// Each burst as `first sample+samples`, with `<` or `>` where it is cut.
#[track_caller]
fn check(pattern: &str, expected: &str) {
    let shown: Vec<String> = found(&series(pattern))
        .iter()
        .map(|burst| {
            let first = (burst.start.0 - START) / 1_000_000;
            let (before, after) = (if burst.cut_before { "<" } else { "" }, if burst.cut_after { ">" } else { "" });
            assert_eq!(burst.length.0, burst.samples as u64 * INTERVAL.0);
            format!("{before}{first}+{}{after}", burst.samples)
        })
        .collect();
    assert_eq!(shown.join(" "), expected, "{pattern}");
}

#[test]
fn runs_above_the_threshold_are_bursts() {
    check("..66..", "2+2");
    check("..6.6..", "2+1 4+1");
    check(".###8#7.", "1+6");
    check("..1234..", "");
    // Exactly half is not above half.
    check("..55..", "");
    check("1661", "1+2");
}

#[test]
fn what_was_not_measured_cuts_a_burst() {
    check("66..", "<0+2");
    check("..66", "2+2>");
    check("66", "<0+2>");
    check(".6?6.", "1+1> <3+1");
    check(".6?.6.", "1+1> 4+1");
    check("?.6.", "2+1");
}

#[test]
fn a_burst_tells_what_passed() {
    let bursts = found(&series("..68#."));
    let bytes = 24 * FULL / 10;
    let expected = Burst {
        direction: Direction::Rx,
        start: UtcNs(START + 2_000_000),
        length: DurationNs(3_000_000),
        samples: 3,
        bytes,
        packets: Some(bytes / 1000),
        peak: BitsPerSecond(8_000_000_000),
        average: BitsPerSecond(6_400_000_000),
        flows: Some(Flows::About(3)),
        ce_bytes: Some(bytes / 2),
        retransmit_bytes: Some(bytes / 10),
        cut_before: false,
        cut_after: false,
    };
    assert_eq!(bursts, [expected]);
    assert_eq!((expected.ce_share(), expected.retransmit_share()), (Some(0.5), Some(0.1)));
}

#[test]
fn what_is_not_measured_is_absent() {
    let mut series = series(".6.");
    series.fields = Fields::both(Measured::BYTES);
    let burst = found(&series)[0];
    assert_eq!((burst.packets, burst.flows, burst.ce_bytes, burst.retransmit_bytes), (None, None, None, None));
    assert_eq!((burst.ce_share(), burst.retransmit_share()), (None, None));
}

#[test]
fn bursts_of_a_direction_that_was_not_measured_cannot_be_told() {
    let mut series = series(".6.");
    series.fields.tx = Measured { ce: true, ..Measured::NOTHING };
    let why = Unknown::NoBytes(Direction::Tx);
    assert_eq!(bursts(&series, Direction::Tx, Share::DEFAULT), Answer::CannotTell(why));
    assert_eq!(why.to_string(), "tx bytes were not measured");
    assert_eq!(found(&series).len(), 1);
    // No line rate would help.
    series.line_rate = None;
    assert_eq!(bursts(&series, Direction::Tx, Share::DEFAULT), Answer::CannotTell(why));
}

#[test]
fn without_a_line_rate_there_is_no_telling() {
    let mut series = series(".6.");
    series.line_rate = None;
    assert_eq!(rx(&series), Answer::CannotTell(Unknown::NoLineRate));
    assert_eq!(
        rx(&Series { line_rate: Some(BitsPerSecond(1)), ..Series::default() }),
        Answer::CannotTell(Unknown::NotMeasured)
    );
    assert_eq!(bursts(&self::series("###"), Direction::Tx, Share::DEFAULT), Answer::Quiet);
}

#[test]
fn shares_are_more_than_nothing_and_at_most_all() {
    for (share, good) in [(0.5, true), (1.0, true), (0.0, false), (-0.5, false), (1.01, false), (f64::NAN, false)] {
        assert_eq!(Share::new(share).is_some(), good, "{share}");
    }
}

#[test]
fn samples_of_any_length_have_a_rate() {
    // Counters that are read at times of their own: 3 ms at 0.9, 5 ms at 0.2, 2 ms at 1.0, no time at all.
    let mut series = series("..........");
    let mut start = UtcNs(START);
    for (length, tenths) in [(3, 9), (5, 2), (2, 10), (0, 10)] {
        let rx = Traffic { bytes: length * tenths * FULL / 10, ..Traffic::default() };
        let length = DurationNs(length * 1_000_000);
        series.samples.push(Sample { start, length, rx, tx: Traffic::default() });
        start = start.after(length);
    }
    let lengths: Vec<(u64, u64)> = found(&series).iter().map(|burst| (burst.length.0, burst.peak.0)).collect();
    assert_eq!(lengths, [(3_000_000, 7_200_000_000), (2_000_000, 8_000_000_000)]);
}

#[test]
fn the_correction_of_a_clock_does_not_cut_a_burst() {
    let mut series = series(".####.");
    for (number, sample) in series.samples.iter_mut().enumerate() {
        sample.start.0 += [0, 20, -30, 40][number];
    }
    assert_eq!(found(&series).len(), 1);
}

#[test]
fn gaps_are_those_that_were_measured() {
    let series = series(".6...6?.6.6.");
    let gaps: Vec<u64> = gaps(&series, &found(&series)).iter().map(|gap| gap.0 / INTERVAL.0).collect();
    assert_eq!(gaps, [3, 1]);
}

proptest! {
    #[test]
    fn every_sample_above_is_in_one_burst(pattern in "[0-9.?#]{0,80}", share in 0.05..1.0) {
        let series = series(&format!("{pattern}."));
        let share = Share::new(share).unwrap();
        let found = match bursts(&series, Direction::Rx, share) {
            Answer::Found(found) => found,
            Answer::Quiet => Vec::new(),
            Answer::CannotTell(why) => panic!("{why}"),
        };
        let limit = share.of(series.line_rate.unwrap());
        for sample in &series.samples {
            let holding = found.iter().filter(|burst| burst.span().overlap(sample.span()).is_some()).count();
            let above = BitsPerSecond::of(sample.rx.bytes, sample.length).unwrap() > limit;
            prop_assert_eq!(holding, usize::from(above));
        }
        let volume: u64 = found.iter().map(|burst| burst.bytes).sum();
        prop_assert!(volume <= total(&series, Direction::Rx).bytes.unwrap());
        for burst in &found {
            prop_assert!(burst.average <= burst.peak && burst.peak > limit && series.covers(burst.span()));
        }
        // Maximal: between two bursts lies at least one sample that is not in one.
        prop_assert!(found.windows(2).all(|pair| pair[0].span().end < pair[1].start));
    }
}

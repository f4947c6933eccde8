//! What is printed and drawn of small series.

use analysis::counter_samples::Column;
use analysis::counter_series::When;
use analysis::series::{BitsPerSecond, Fields, Measured, Sample, Span, Traffic, UtcNs};
use clap::{Args as _, FromArgMatches as _};
use proptest::prelude::*;

use super::super::testing::{START, series};
use super::*;
use crate::documentation::{holds, workspace};

const RX: &str = "..69#..?.3.8.......";
const TX: &str = "............12......";

#[track_caller]
fn args(words: &str) -> ShowArgs {
    let words = ["show", "x"].into_iter().chain(words.split_whitespace());
    let found = ShowArgs::augment_args(clap::Command::new("show")).try_get_matches_from(words).unwrap();
    ShowArgs::from_arg_matches(&found).unwrap()
}

#[track_caller]
fn shown(series: Series, words: &str, paper: Paper) -> String {
    let mut out = Vec::new();
    show(series.into(), &args(words), paper, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn json(series: Series, words: &str) -> serde_json::Value {
    serde_json::from_str(&shown(series, &format!("{words} -o json"), Paper::PLAIN)).unwrap()
}

/// Draws, and checks that it is XML.
fn picture(series: Series, words: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.svg");
    shown(series, &format!("{words} --svg {}", path.display()), Paper::PLAIN);
    let text = std::fs::read_to_string(path).unwrap();
    super::super::testing::check_xml(&text);
    text
}

#[test]
fn a_series_is_told_in_a_table_and_a_plot() {
    let text = shown(series("host7", RX, TX), "--plot", Paper { width: Some(110), colour: false });
    holds(&workspace("agent/src/cli/bursts/show/expected.txt"), &text);
}

#[test]
fn several_devices_follow_each_other() {
    let all = || vec![series("host7", RX, TX), series("host8", RX, TX)];
    let shown = |words: &str| {
        let mut out = Vec::new();
        show_all(all().into_iter().map(Into::into).collect(), &args(words), Paper::PLAIN, &mut out)
            .map(|_| String::from_utf8(out).unwrap())
    };
    let text = shown("").unwrap();
    assert!(text.starts_with("eth0 on host7") && text.contains("\n\neth0 on host8"), "{text}");
    assert_eq!(shown("-o json").unwrap().lines().count(), 2);
    let error = shown("--svg /nonexistent/x.svg").unwrap_err().to_string();
    assert!(error.contains("one device") && error.contains("host8") && error.contains("--netdev"), "{error}");
}

#[test]
fn a_narrow_terminal_leaves_columns_out_and_no_line_is_too_long() {
    for width in [40, 60, 80, 100, 140] {
        let text = shown(series("host7", RX, TX), "--plot", Paper { width: Some(width), colour: false });
        let plot = text.split("\n\n").skip(1).flat_map(str::lines).filter(|line| !line.contains(" mean, "));
        for line in plot {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
        assert!(text.contains("START (UTC)") && text.contains("LENGTH"), "{text}");
    }
}

#[test]
fn without_a_line_rate_all_else_is_shown_and_what_to_do() {
    let mut unknown = series("host7", RX, TX);
    unknown.line_rate = None;
    let text = shown(unknown.clone(), "--plot", Paper::PLAIN);
    assert!(text.contains("cannot tell: the line rate is not known. Give it by hand: --line-rate"), "{text}");
    assert!(text.contains("3.6 MB") && text.contains('█') && !text.contains("START"), "{text}");
    let found = json(unknown.clone(), "");
    assert_eq!(found["cannot_tell"], "the line rate is not known");
    assert_eq!((&found["bursts"], &found["rx"]["bursts"]), (&serde_json::Value::Null, &serde_json::Value::Null));
    let given = json(unknown.clone(), "--line-rate 8Gbit");
    assert_eq!(given["bursts"].as_array().unwrap().len(), 2);
    assert!(picture(unknown, "").contains("cannot tell, the line rate is not known"));
}

#[test]
fn the_threshold_and_the_line_rate_are_taken_by_hand() {
    let count = |words: &str| json(series("host7", RX, TX), words)["bursts"].as_array().unwrap().len();
    assert_eq!(count(""), 2);
    assert_eq!(count("--threshold 0.25"), 3);
    assert_eq!(count("--threshold 0.9"), 1);
    assert_eq!(count("--line-rate 100Gbit"), 0);
}

#[test]
fn a_part_of_the_time_is_shown() {
    let found = json(series("host7", RX, TX), "--from 2023-11-14T22:13:20.009 --to 2023-11-14T22:13:20.015Z");
    assert_eq!(found["bursts"].as_array().unwrap().len(), 1);
    assert_eq!((&found["lost_buckets"], &found["measured_ns"]), (&0.into(), &6_000_000.into()));
}

#[test]
fn json_has_what_the_table_has() {
    let found = json(series("host7", RX, TX), "");
    assert_eq!(found["schema"], "fabricscope.bursts.v1");
    assert_eq!((&found["host"], &found["netdev"]), (&"host7".into(), &"eth0".into()));
    assert_eq!((&found["lost_buckets"], &found["interval_ns"]), (&1.into(), &1_000_000.into()));
    assert_eq!(found["rx"]["burst_length_ns"]["max"], 3_000_000);
    assert!(found.get("boot_id").is_none() && found["rx"].get("retransmit_bytes").is_none());
    let first = &found["bursts"][0];
    let expected = serde_json::json!({
        "start": "2023-11-14T22:13:20.002000000Z",
        "start_ns": START + 2_000_000,
        "direction": "rx",
        "length_ns": 3_000_000,
        "samples": 3,
        "bytes": 2_500_000,
        "packets": 2_500,
        "peak_bits_per_second": 8_000_000_000_u64,
        "peak_share": 1.0,
        "average_bits_per_second": 6_666_666_666_u64,
        "average_share": 0.833333333250,
        "flows": 3,
        "flows_saturated": false,
        "ce_bytes": 250_000,
        "ce_share": 0.1,
        "cut_before": false,
        "cut_after": false,
    });
    assert_eq!(*first, expected);
}

#[test]
fn a_picture_has_its_title_its_axes_and_a_mark_for_each_burst() {
    let text = picture(series("host7 & <co>", RX, "#..##.............."), "");
    let parts = [
        "Utilisation of eth0 on host7 &amp; &lt;co&gt;",
        "4 bursts (2 rx, 2 tx)",
        "rx [Gbit/s]",
        "tx [Gbit/s]",
        "marked ECN CE",
        "retransmitted",
        "[Mbit/s]",
        "time since 2023-11-14 22:13:20.000 UTC [ms]",
        "line rate 8 Gbit/s",
        "not measured",
    ];
    for part in parts {
        assert!(text.contains(part), "no {part}");
    }
    // One of them is the legend's.
    let marks = text.matches("opacity=\"1\" fill=\"#CC3311\"").count();
    assert_eq!(marks, 5);
}

#[test]
fn polls_out_of_budget_are_marked_below_what_was_received() {
    let mut busy = series("host7", RX, TX);
    busy.fields.rx.napi = true;
    assert!(!picture(busy.clone(), "").contains("out of budget"), "there was none");
    for at in [1, 2, 4] {
        busy.samples[at].rx.napi_exhausted = 2;
    }
    let text = picture(busy.clone(), "");
    assert!(text.contains("6 polls out of budget"));
    // Each sample has as many columns as fit; one more rectangle is the legend's.
    let columns = 1100 / 19;
    assert_eq!(text.matches("opacity=\"1\" fill=\"#AA3377\"").count(), 3 * columns + 1);
    busy.fields.rx.napi = false;
    assert!(!picture(busy, "").contains("out of budget"), "not measured");
}

#[test]
fn bands_that_are_not_measured_are_not_drawn() {
    let mut plain = series("host7", RX, TX);
    plain.fields = Fields::both(Measured::BYTES);
    let text = picture(plain, "");
    assert!(!text.contains("marked") && !text.contains("retransmitted") && text.contains("time since"));
}

/// As of a file of the public data set that lacks what was received, but not what of it was marked.
#[test]
fn a_direction_that_was_not_measured_is_never_zero() {
    let mut half = series("host7", RX, "#..##..............");
    half.fields.rx = Measured { ce: true, ..Measured::NOTHING };
    let text = shown(half.clone(), "--plot", Paper::PLAIN);
    for line in [
        "rx         bytes not measured, ECN 360 kB",
        "bursts rx  cannot tell: rx bytes were not measured",
        "bursts tx  2 in 3 ms (16.7 % of the time)",
        "rx: bytes were not measured",
        "tx in Gbit/s: █ mean, ░ peak, ^ burst, ? not measured",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\nin\n{text}");
    }
    let found = json(half.clone(), "");
    assert_eq!(found["rx"], serde_json::json!({"ce_bytes": 360_000, "cannot_tell": "rx bytes were not measured"}));
    assert_eq!((found["bursts"].as_array().unwrap().len(), &found["tx"]["bursts"]), (2, &2.into()));
    assert!(found.get("cannot_tell").is_none(), "tx can be told");
    let drawn = picture(half.clone(), "");
    assert!(drawn.contains("2 bursts (rx bytes were not measured, 2 tx)"), "{drawn}");
    assert!(drawn.contains(">\nrx bytes were not measured") && drawn.contains("marked ECN CE"), "{drawn}");
    half.fields.rx = Measured::NOTHING;
    assert!(shown(half.clone(), "", Paper::PLAIN).contains("\nrx         not measured\n"));
    half.fields.tx = Measured::NOTHING;
    let found = json(half.clone(), "");
    assert_eq!(found["cannot_tell"], "rx bytes were not measured, tx bytes were not measured");
    assert!(found.get("bursts").is_none());
    assert!(picture(half, "").contains("tx bytes were not measured"));
}

#[test]
fn a_series_without_any_time_is_told_and_not_drawn() {
    let text = shown(Series { netdev: "eth0".to_owned(), ..Series::default() }, "--plot", Paper::PLAIN);
    assert!(text.starts_with("eth0: no time was measured\n"), "{text}");
    let error =
        show(Series::default().into(), &args("--svg /nonexistent/x.svg"), Paper::PLAIN, &mut Vec::new()).unwrap_err();
    assert!(error.to_string().contains("nothing to draw"), "{error:#}");
    json(Series::default(), "");
    // What a broken file might say.
    let moment = Span { start: UtcNs(5), end: UtcNs(5) };
    let none = Series { covered: vec![moment], ..Series::default() };
    shown(none.clone(), "--plot --line-rate 1Gbit", Paper::PLAIN);
    assert!(show(none.into(), &args("--svg /nonexistent/x.svg"), Paper::PLAIN, &mut Vec::new()).is_err());
}

#[test]
fn names_cannot_command_the_terminal() {
    let text = shown(series("host\x1b[2J", RX, TX), "--plot", Paper::PLAIN);
    assert!(!text.contains('\x1b'), "{text}");
    assert!(!picture(series("host\x1b[2J", RX, TX), "").contains('\x1b'));
}

/// Numbers that a file may hold, the extremes among them.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(1), Just(u64::MAX), 0_u64..10_000_000]
}

fn any_series() -> impl Strategy<Value = Series> {
    let sample = (number(), number(), number(), 0_u64..3_000_000);
    let start = prop_oneof![Just(i64::MIN), Just(START), Just(i64::MAX - 1_000)];
    let samples = prop::collection::vec(sample, 0..20);
    (start, samples, number(), prop::option::of(number()), prop::option::of(number()), number()).prop_map(
        |(start, samples, interval, line_rate, clock_error, measured)| {
            let mut series = series("host7", "", "");
            series.interval = DurationNs(interval);
            series.line_rate = line_rate.map(BitsPerSecond);
            series.clock_error = clock_error.map(DurationNs);
            series.covered = vec![Span { start: UtcNs(start), end: UtcNs(start).after(DurationNs(measured)) }];
            let mut at = UtcNs(start);
            for (bytes, ce_bytes, retransmit_bytes, length) in samples {
                let rx = Traffic { bytes, ce_bytes, retransmit_bytes, ..Traffic::default() };
                series.samples.push(Sample { start: at, length: DurationNs(length), rx, tx: rx });
                at = at.after(DurationNs(length));
            }
            series
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn whatever_a_file_holds_is_shown(series in any_series(), width in prop::option::of(0_usize..200)) {
        let folder = tempfile::tempdir().unwrap();
        let report = Report::of(series.clone(), analysis::burst::Share::DEFAULT);
        screen(&report, Paper { width, colour: true }, true);
        json(series.clone(), "");
        if series.covered[0].length().0 > 0 {
            shown(series, &format!("--svg {}", folder.path().join("x.svg").display()), Paper::PLAIN);
        }
    }
}

/// Counters of the same device over the same 19 ms: tx pause of priority 3 for all of the time from 4 to 8 ms and a half
/// of it up to 12 ms, rx pause of priority 4 for a tenth in one sample; CNPs in the first.
fn counters() -> CounterSamples {
    let column = |name: &str, priority| Column::new(name.to_owned(), priority);
    let mut samples = CounterSamples {
        host: "host7".to_owned(),
        device: "eth0".to_owned(),
        netdev: "eth0".to_owned(),
        source: "ethtool".to_owned(),
        interval: DurationNs(1_000_000),
        columns: vec![
            column("pfc_sent_pause_seconds", Some(3)),
            column("pfc_received_pause_seconds", Some(4)),
            column("pfc_received_pause_seconds", Some(5)),
            column("rdma_cnp_sent_packets", None),
        ],
        ..CounterSamples::default()
    };
    let time = |ms: i64| UtcNs(START + ms * 1_000_000);
    for ms in 0..19 {
        let sent = if (4..8).contains(&ms) {
            1000
        } else if (8..12).contains(&ms) {
            500
        } else {
            0
        };
        let growth = [sent, if ms == 6 { 100 } else { 0 }, 0, if ms == 0 { 7 } else { 0 }];
        if growth.iter().any(|growth| *growth > 0) {
            samples.push(When { start: time(ms), length: DurationNs(1_000_000) }, growth.map(Some));
        }
    }
    samples.cover(Span { start: time(0), end: time(19) });
    samples
}

fn with_counters(series: Series, words: &str, paper: Paper) -> String {
    let mut out = Vec::new();
    show(Loaded { series, counters: vec![counters()] }, &args(words), paper, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn pause_is_told_by_direction_and_priority_beside_the_traffic() {
    let text = with_counters(series("host7", RX, TX), "--plot", Paper { width: Some(110), colour: false });
    holds(&workspace("agent/src/cli/bursts/show/expected_pause.txt"), &text);
    let found: serde_json::Value =
        serde_json::from_str(&with_counters(series("host7", RX, TX), "-o json", Paper::PLAIN)).unwrap();
    let pause = found["pause"].as_array().unwrap();
    assert_eq!(pause.len(), 2, "{pause:?}");
    assert_eq!((&pause[1]["direction"], &pause[1]["priority"]), (&"tx".into(), &3.into()));
    let share = pause[1]["share"].as_f64().unwrap();
    assert!((share - 6.0 / 19.0).abs() < 1e-9, "{share}");
    assert_eq!(pause[1]["meaning"], "tx pause: this host cannot take what the network sends");
    let cnps = found["counters"].as_array().unwrap().iter().find(|row| row["counter"] == "rdma_cnp_sent_packets");
    assert_eq!((&cnps.unwrap()["increase"], &cnps.unwrap()["unit"]), (&7.0.into(), &"packets".into()));
    assert!(json(series("host7", RX, TX), "").get("pause").is_none(), "not measured is absent");
}

#[test]
fn pause_is_a_band_below_the_rates_and_stands_alone_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.svg");
    let bare = Series {
        host: "host7".to_owned(),
        netdev: "eth0".to_owned(),
        interval: DurationNs(1_000_000),
        ..Series::default()
    };
    for (series, title) in [(series("host7", RX, TX), "Utilisation of eth0"), (bare, "Pause of eth0")] {
        let text = with_counters(series, &format!("--plot --svg {}", path.display()), Paper::PLAIN);
        assert!(text.contains("pause tx   priority 3: 31.6 % of 19 ms"), "{text}");
        let picture = std::fs::read_to_string(&path).unwrap();
        super::super::testing::check_xml(&picture);
        for words in [
            title,
            "rx pause: the network cannot take what this host sends",
            "tx pause: this host cannot take what the network sends",
            "priority 3 31.6 % of the time",
            "priority 4 0.53 % of the time",
        ] {
            assert!(picture.contains(words), "{words}");
        }
        assert!(!picture.contains("priority 5"), "it never moved");
    }
}

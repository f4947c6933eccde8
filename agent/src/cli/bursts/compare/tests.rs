//! What is printed and drawn of small groups.

use clap::{Args as _, FromArgMatches as _};

use super::super::testing::{check_xml, series};
use super::*;
use crate::documentation::{holds, workspace};

const FIRST: &str = "..69#..?.3.8.......";
const SECOND: &str = "...9#..8.3.8.......";
const NONE: &str = "...................";

#[track_caller]
fn args(words: &str) -> CompareArgs {
    let words = ["compare", "x"].into_iter().chain(words.split_whitespace());
    let found = CompareArgs::augment_args(clap::Command::new("compare")).try_get_matches_from(words).unwrap();
    CompareArgs::from_arg_matches(&found).unwrap()
}

fn shown(series: Vec<Series>, words: &str, width: Option<usize>) -> anyhow::Result<String> {
    let mut out = Vec::new();
    show(series, &args(words), Paper { width, colour: false }, &mut out)?;
    Ok(String::from_utf8(out).unwrap())
}

fn two() -> Vec<Series> {
    vec![series("host7", FIRST, NONE), series("host8", SECOND, "####...............")]
}

#[test]
fn a_group_is_told_in_tables_and_a_picture() {
    let text = shown(two(), "", Some(80)).unwrap();
    holds(&workspace("agent/src/cli/bursts/compare/expected.txt"), &text);
}

#[test]
fn json_has_all_of_it() {
    let found: serde_json::Value = serde_json::from_str(&shown(two(), "-o json", None).unwrap()).unwrap();
    assert_eq!(found["schema"], "fabricscope.bursts-compare.v1");
    assert_eq!((&found["contention_max"], &found["bins"]), (&2.into(), &19.into()));
    assert_eq!(found["contention_bins"], serde_json::json!([14, 1, 3]));
    assert_eq!((&found["devices"][0]["host"], &found["devices"][0]["contended_bins"]), (&"host7".into(), &3.into()));
    let pair = &found["pairs"][0];
    assert_eq!((&pair["first"], &pair["second"], &pair["overlap"]), (&0.into(), &1.into(), &0.75.into()));
}

#[test]
fn either_direction_can_be_compared() {
    let found: serde_json::Value =
        serde_json::from_str(&shown(two(), "--direction tx -o json", None).unwrap()).unwrap();
    assert_eq!((&found["direction"], &found["contention_max"]), (&"tx".into(), &1.into()));
}

#[test]
fn what_stands_in_the_way_is_told_with_what_to_do() {
    type Change = fn(&mut Vec<Series>);
    let rows: [(Change, &str, &str); 7] = [
        (|all| all.truncate(1), "", "only eth0 on host7"),
        (|all| all[1].line_rate = None, "", "eth0 on host8: the line rate is not known. Give it by hand: --line-rate"),
        (|all| all[1].clock_error = None, "", "--clock-error"),
        (
            |all| all[1].clock_error = Some(DurationNs(1_100_000)),
            "",
            "may be 1.3 ms apart, more than a bin: give --bin 1.3ms",
        ),
        (
            |all| all[1].interval = DurationNs(10_000_000),
            "--bin 1ms",
            "eth0 on host8 has samples of 10 ms: give --bin 10ms",
        ),
        (|all| all[1].covered.clear(), "", "no time was measured"),
        (
            |all| all[1].fields.rx.bytes = false,
            "",
            "eth0 on host8: rx bytes were not measured. Leave it out, or look the other way: --direction tx",
        ),
    ];
    for (change, words, says) in rows {
        let mut group = two();
        change(&mut group);
        let error = format!("{:#}", shown(group, words, None).unwrap_err());
        assert!(error.contains(says), "{says}: {error}");
    }
    let mut group = two();
    group[1].clock_error = None;
    assert!(shown(group.clone(), "--clock-error 100us", None).unwrap().contains("clocks at most 300 us apart"));
    group[1].clock_error = Some(DurationNs(1_100_000));
    assert!(shown(group, "--bin 1.3ms", None).unwrap().contains("bins of 1.3 ms"));
}

#[test]
fn a_picture_has_a_lane_for_each_device() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.svg");
    shown(two(), &format!("--svg {}", path.display()), None).unwrap();
    let text = std::fs::read_to_string(path).unwrap();
    check_xml(&text);
    let parts = [
        "rx bursts of 2 devices on one clock",
        "eth0 on host7",
        "eth0 on host8",
        "devices at once",
        "time since 2023-11-14 22:13:20.000 UTC [ms]",
    ];
    for part in parts {
        assert!(text.contains(part), "no {part}");
    }
    // Two bursts of the one, three of the other, and the legend.
    assert_eq!(text.matches("opacity=\"1\" fill=\"#CC3311\"").count(), 6);
}

#[test]
fn a_part_of_the_time_is_compared() {
    let text = shown(two(), "--from 2023-11-14T22:13:20.009 --to 2023-11-14T22:13:20.012", None).unwrap();
    assert!(text.contains("3 bins of 1 ms") && text.contains("2 in 33.3 % of bins"), "{text}");
}

#[test]
fn nobody_bursts_is_an_answer() {
    let group = vec![series("host7", NONE, NONE), series("host8", NONE, NONE)];
    let text = shown(group, "", Some(80)).unwrap();
    assert!(text.contains("none in 100 % of bins; mean 0, max 0") && text.contains("No two devices burst."), "{text}");
}

//! `bursts show` and `bursts compare` on files: what is told, and what is refused.

use std::fs;

use serde_json::Value;

use crate::program::{FAILED, Scratch, USAGE, refused, start, text_of};

/// No agent answers.
const UNREACHABLE: i32 = 3;

/// Bytes of a millisecond at 8 Gbit/s.
const FULL: u64 = 1_000_000;

/// A file in the layout of the public data set: 20 samples of 1 ms, of which those in `burst` are at line rate.
fn file(scratch: &Scratch, host: &str, burst: std::ops::Range<usize>) -> String {
    let ingress: Vec<u64> = (0..20).map(|at| if burst.contains(&at) { FULL } else { FULL / 10 }).collect();
    let marked: Vec<u64> = ingress.iter().map(|bytes| if *bytes == FULL { FULL / 4 } else { 0 }).collect();
    let text = serde_json::json!({
        "server_hostname": host,
        "sampling_freq": 1,
        "ingressBytes": ingress,
        "egressBytes": vec![1_000; 20],
        "inCongestionExperiencedBytes": marked,
        "burst_result": {"ingress": {"1700000000000000": []}},
    });
    scratch.file(&format!("{host}.json"), &text.to_string())
}

#[test]
fn the_bursts_of_a_file_are_told() {
    let scratch = Scratch::new();
    let file = file(&scratch, "host7", 5..9);
    let svg = text_of(&scratch.inside("x.svg"));
    let seen = start(&["bursts", "show", &file, "--line-rate", "8Gbit", "--plot", "--svg", &svg]);
    assert_eq!((seen.status.code(), &*seen.stderr), (Some(0), ""));
    for part in ["host7", "line rate  8 Gbit/s", "22:13:20.005", "4 ms", "4 MB", "100 %", "25 %", "█"] {
        assert!(seen.stdout.contains(part), "no {part}:\n{}", seen.stdout);
    }
    assert!(fs::read_to_string(svg).unwrap().contains("</svg>"));
    let seen = start(&["bursts", "show", &file, "--line-rate", "8Gbit", "-o", "json"]);
    let found: Value = serde_json::from_str(&seen.stdout).unwrap();
    assert_eq!(
        (&found["bursts"][0]["bytes"], &found["bursts"][0]["length_ns"]),
        (&4_000_000.into(), &4_000_000.into())
    );
    assert_eq!(found["bursts"].as_array().unwrap().len(), 1);
}

#[test]
fn hosts_that_burst_together_are_told() {
    let scratch = Scratch::new();
    let files = [file(&scratch, "host7", 5..9), file(&scratch, "host8", 7..11), file(&scratch, "host9", 15..17)];
    let [first, second, third] = files.each_ref().map(String::as_str);
    let words = ["bursts", "compare", first, second, third, "--line-rate", "8Gbit", "--clock-error", "100us"];
    let seen = start(&[&words[..], &["-o", "json"]].concat());
    let found: Value = serde_json::from_str(&seen.stdout).unwrap_or_else(|_| panic!("{}", seen.stderr));
    assert_eq!(found["contention_bins"], serde_json::json!([12, 6, 2, 0]));
    let pair = &found["pairs"][0];
    assert_eq!((&pair["first"], &pair["second"], &pair["bins_together"]), (&0.into(), &1.into(), &2.into()));
    let seen = start(&words);
    assert!(seen.stdout.contains("host7 and host8") && seen.stdout.contains("max 2"), "{}", seen.stdout);
}

#[test]
fn a_rate_that_is_not_known_is_said_with_what_to_do() {
    let scratch = Scratch::new();
    let (one, other) = (file(&scratch, "host7", 5..9), file(&scratch, "host8", 5..9));
    let seen = start(&["bursts", "show", &one]);
    assert_eq!(seen.status.code(), Some(0));
    assert!(seen.stdout.contains("cannot tell: the line rate is not known"), "{}", seen.stdout);
    assert!(seen.stdout.contains("--line-rate"), "{}", seen.stdout);
    refused(&["bursts", "compare", &one, &other], FAILED, &["host7", "line rate is not known", "--line-rate"]);
    let words = ["bursts", "compare", &one, &other, "--line-rate", "8Gbit"];
    refused(&words, FAILED, &["cannot tell", "clock", "--clock-error"]);
}

#[test]
fn wrong_words_are_usage_errors() {
    let rows: &[(&[&str], &[&str])] = &[
        (&["show"], &["FILE"]),
        (&["compare"], &["FILE"]),
        (&["show", "--last", "60"], &["--last", "60", "unit"]),
        (&["show", "--last", "0s"], &["--last", "0s"]),
        (&["show", "x", "--last", "60s"], &["--last", "FILE"]),
        (&["show", "x", "--line-rate", "fast"], &["--line-rate", "fast", "100Gbit"]),
        (&["show", "x", "--line-rate", "12GB"], &["12GB", "bits"]),
        (&["show", "x", "--line-rate", "0Gbit"], &["1kbit"]),
        (&["show", "x", "--threshold", "1.5"], &["--threshold", "1.5", "at most 1"]),
        (&["show", "x", "--threshold", "0"], &["more than 0"]),
        (&["show", "x", "--from", "noon"], &["--from", "noon"]),
        (&["show", "x", "-o", "yaml"], &["yaml", "json"]),
        (&["compare", "x", "--bin", "10"], &["--bin", "10"]),
        (&["compare", "x", "--bin", "0ms"], &["--bin"]),
        (&["compare", "x", "--direction", "up"], &["up", "rx"]),
    ];
    for (words, says) in rows {
        refused(&[&["bursts"], *words].concat(), USAGE, says);
    }
}

#[test]
fn files_that_are_no_samples_are_failures_that_name_them() {
    let scratch = Scratch::new();
    let good = file(&scratch, "host7", 5..9);
    let other = file(&scratch, "host8", 5..9);
    let foreign = scratch.file("foreign.txt", "hello");
    let empty = scratch.file("empty.parquet", "");
    let cut = scratch.file("cut.parquet", "PAR1....");
    for (file, says) in
        [("/no/such/file", "No such file"), (&foreign, "neither Parquet"), (&empty, "empty"), (&cut, "")]
    {
        refused(&["bursts", "show", file], FAILED, &[file, says]);
        refused(&["bursts", "compare", &good, file], FAILED, &[file, says]);
    }
    let svg = text_of(&scratch.inside("x.svg"));
    refused(&["bursts", "show", &good, &other, "--svg", &svg], FAILED, &["one device", "host7", "host8"]);
    refused(&["bursts", "compare", &good], FAILED, &["two or more", "host7"]);
    refused(&["bursts", "show", &good, "--netdev", "eth9"], FAILED, &["no samples of eth9", "host7"]);
    let socket = text_of(&scratch.inside("none.sock"));
    refused(&["bursts", "show", "--last", "60s", "--socket", &socket], UNREACHABLE, &["unreachable", &socket]);
    refused(&["bursts", "show", &good, "--svg", "/no/such/folder/x.svg"], FAILED, &["/no/such/folder"]);
}

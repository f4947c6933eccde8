//! The sampler under iperf3: its samples hold the bytes that iperf3 says it sent, and the picture is of them.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tests::command::fabricscope;
use tests::iperf3;
use tests::network::{Namespace, Pair, RIGHT};

use crate::program::{Scratch, end, is_root, start, text_of};

/// What iperf3 is to send each second in bits of payload, in pieces that many a second: a piece at once is a burst.
const RATE: &str = "400M";
/// Of the payload, once as TCP, IPv4 with its time stamps, and Ethernet pack it: 66 bytes for each segment of 1448.
const HEADERS: f64 = 66.0 / 1448.0;
/// The line rate that the samples are held against, in bits a second.
const LINE_RATE: (&str, f64) = ("1Gbit", 1e9);
/// Samples of a millisecond: longer than iperf3 takes to start, send for three seconds, and end.
const SAMPLES: &str = "7000";

/// iperf3 inside of a namespace.
fn iperf(namespace: &Namespace, words: &[&str]) -> Command {
    let [program, before @ ..] = &iperf3::words().unwrap()[..] else { panic!("no program") };
    let mut command = namespace.command(program);
    command.args(before).args(words);
    command
}

/// A child that is ended when dropped.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Records `va` while iperf3 sends over it. The file, and what iperf3 says.
#[track_caller]
fn recorded(pair: &Pair, scratch: &Scratch) -> (PathBuf, Value) {
    let mut server = iperf(&pair.right, &["--server", "--one-off", "--forceflush"]);
    let mut server = Ended(server.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap());
    let mut says = BufReader::new(server.0.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("listening") {
        assert_ne!(says.read_line(&mut line).unwrap(), 0, "iperf3 ended: {line}");
    }
    let file = scratch.inside("va.parquet");
    let mut recorder = pair.left.command(&fabricscope());
    recorder.args(["bursts", "record", "--netdev", "va", "--samples", SAMPLES, "--line-rate", LINE_RATE.0]);
    recorder.arg("-o").arg(&file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut recorder = Ended(recorder.spawn().unwrap());
    let mut told = BufReader::new(recorder.0.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("is sampled") {
        assert_ne!(told.read_line(&mut line).unwrap(), 0, "the recorder ended: {line}");
    }
    let sent = end(&mut iperf(&pair.left, &["--client", RIGHT, "--time", "3", "--bitrate", RATE, "--json"]));
    assert!(sent.status.success(), "{}{}", sent.stdout, sent.stderr);
    let mut rest = String::new();
    told.read_to_string(&mut rest).unwrap();
    assert!(recorder.0.wait().unwrap().success(), "{rest}");
    (file, serde_json::from_str(&sent.stdout).unwrap())
}

#[test]
fn samples_hold_what_iperf3_says_it_sent() {
    if !is_root() {
        return;
    }
    let (pair, scratch) = (Pair::new(false).unwrap(), Scratch::new());
    // Each segment with its headers: what is counted on the wire does not depend on how large the pieces were.
    let svg = text_of(&scratch.inside("va.svg"));
    let once = || {
        let (file, iperf) = recorded(&pair, &scratch);
        let seen = start(&["bursts", "show", &text_of(&file), "-o", "json", "--svg", &svg]);
        let shown: Value = serde_json::from_str(&seen.stdout).unwrap_or_else(|_| panic!("{}", seen.stderr));
        (iperf, shown)
    };
    // This host may hold the reader up for longer than the ring lasts.
    let whole = (0..3).map(|_| once()).find(|(_, shown)| shown["lost_buckets"] == 0);
    let (iperf, shown) = whole.expect("buckets were lost each time");
    let sent = &iperf["end"]["sum_sent"];
    let payload = sent["bytes"].as_f64().unwrap();
    let again = shown["tx"]["retransmit_bytes"].as_f64().unwrap();
    let expected = (payload + again) * (1.0 + HEADERS);
    let bytes = shown["tx"]["bytes"].as_f64().unwrap();
    println!(
        "iperf3: {payload} bytes of payload in {} s, {again} sent again; on the wire {bytes}, expected {expected}",
        sent["seconds"]
    );
    assert!((bytes - expected).abs() < 0.02 * expected, "{bytes} on the wire, {expected} by iperf3");
    // Utilisation: the same bytes over the same time, and no sample holds more than the device can have carried.
    let seconds = shown["measured_ns"].as_f64().unwrap() / 1e9;
    let mean = shown["tx"]["mean_bits_per_second"].as_f64().unwrap();
    assert!((mean - 8.0 * expected / seconds).abs() < 0.02 * mean, "{mean} bit/s over {seconds} s");
    // iperf3 sends its rate in pieces: bursts, with gaps between them, that hold most of it, one by one and in sum.
    let bursts: Vec<&Value> =
        shown["bursts"].as_array().unwrap().iter().filter(|burst| burst["direction"] == "tx").collect();
    let of = |burst: &Value, key: &str| burst[key].as_f64().unwrap();
    let volume: f64 = bursts.iter().map(|burst| of(burst, "bytes")).sum();
    println!("{} bursts with {:.1} % of the bytes", bursts.len(), 100.0 * volume / bytes);
    assert!(bursts.len() > 20 && volume > 0.5 * bytes && volume <= bytes, "{} of {volume} bytes", bursts.len());
    for burst in bursts {
        assert!(of(burst, "bytes") * 8e9 / of(burst, "length_ns") > LINE_RATE.1 / 2.0, "{burst}");
    }
    let picture = fs::read_to_string(&svg).unwrap();
    assert!(picture.starts_with("<svg") && picture.ends_with("</svg>\n") && picture.contains("va on"), "{picture}");
    // What was received are acknowledgements: hardly anything.
    assert!(shown["rx"]["bytes"].as_f64().unwrap() < 0.05 * bytes, "{shown}");
}

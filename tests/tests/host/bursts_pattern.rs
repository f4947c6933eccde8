//! A known pattern of bursts comes back as it was sent: how many, how large, and when.

use std::io::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Deserialize;
use tests::command::{Finished, fabricscope, run};
use tests::network::{Pair, RIGHT, tool};

use crate::program::{LIMIT, Scratch, end, is_root, start, text_of};

/// How often a pattern is sent until most of it left on time and all of it was sampled.
pub(crate) const ATTEMPTS: usize = 12;
/// Payload of a datagram, and what it is on the wire with its headers: UDP, IPv4, Ethernet.
const PAYLOAD: u64 = 1400;
const DATAGRAM: u64 = PAYLOAD + 8 + 20 + 14;
/// Runs begin so long after they are asked for, since they make themselves ready first; bursts a little later.
const AHEAD: Duration = Duration::from_secs(5);
const QUIET: Duration = Duration::from_millis(100);

/// What is sent, and how it is sampled.
pub(crate) struct Pattern {
    interval: (&'static str, u64),
    clock: &'static str,
    samples: &'static str,
    /// So slow that one datagram in a bucket is more than half of what it carries: all of a burst belongs to it.
    pub(crate) line_rate: &'static str,
    pub(crate) bursts: usize,
    gap_us: u64,
    datagrams: u64,
}

pub(crate) const PATTERNS: &[Pattern] = &[
    Pattern {
        interval: ("1ms", 1_000_000),
        clock: "read",
        samples: "700",
        line_rate: "20Mbit",
        bursts: 20,
        gap_us: 20_000,
        datagrams: 800,
    },
    Pattern {
        interval: ("100us", 100_000),
        clock: "read",
        samples: "2500",
        line_rate: "200Mbit",
        bursts: 20,
        gap_us: 5_000,
        datagrams: 80,
    },
    Pattern {
        interval: ("1ms", 1_000_000),
        clock: "tick",
        samples: "700",
        // One datagram in the longest bucket that is taken for one.
        line_rate: "4Mbit",
        bursts: 20,
        gap_us: 20_000,
        datagrams: 800,
    },
];

/// A bucket whose tick comes late is longer; one that is longer than so many is taken for a host that was held up.
const LONGEST: u64 = 5;

/// A burst as its sender tells it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Sent {
    start_ns: i64,
    first_ns: i64,
    end_ns: i64,
    longest_ns: u64,
}

/// A burst as `bursts show` tells it.
#[derive(Clone, Debug, Deserialize)]
struct Found {
    direction: String,
    start_ns: i64,
    bytes: u64,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Shown {
    lost_buckets: u64,
    bursts: Vec<Found>,
    /// The longest bucket in nanoseconds, where a tick told them apart.
    #[serde(skip)]
    longest: Option<u64>,
}

impl Shown {
    /// What `bursts show -o json` says of what was sent, from this time on.
    #[track_caller]
    pub(crate) fn of(seen: &Finished, since_ns: i64) -> Self {
        let mut shown: Self = serde_json::from_str(&seen.stdout).unwrap_or_else(|_| panic!("{}", seen.stderr));
        shown.bursts.retain(|burst| burst.direction == "tx" && burst.start_ns >= since_ns);
        shown
    }
}

#[test]
fn bursts_come_back_at_1_ms_as_they_were_sent() {
    come_back(&PATTERNS[0]);
}

#[test]
fn bursts_come_back_at_100_us_as_they_were_sent() {
    come_back(&PATTERNS[1]);
}

#[test]
fn bursts_come_back_by_a_tick_as_they_were_sent() {
    come_back(&PATTERNS[2]);
}

#[track_caller]
fn come_back(pattern: &Pattern) {
    if !is_root() {
        return;
    }
    let pair = Pair::alone().unwrap();
    let server = pair.right.start(&["serve-udp", RIGHT, "5001"]).unwrap();
    let (mut held_up, mut whole, mut times) = (Vec::new(), 0, 0);
    while times < ATTEMPTS {
        let (sent, shown) = send_and_sample(pattern, &pair);
        times += 1;
        match why_held_up(pattern, &sent, &shown) {
            Some(why) => held_up.push(why),
            None => whole += same(pattern, &sent, &shown),
        }
        // As many as the pattern has came back whole, be it from several sendings.
        if whole >= pattern.bursts {
            // Not by a macro, whose output is shown of failed tests only: nothing is repeated silently.
            let (interval, clock) = (pattern.interval.0, pattern.clock);
            let said = format!("{interval} {clock}: sent {times} times, {whole} whole bursts; held up: {held_up:?}\n");
            std::io::stderr().write_all(said.as_bytes()).unwrap();
            server.end().unwrap();
            return;
        }
    }
    panic!(
        "{}: this host is too busy to send the pattern in time, {whole} whole bursts came back: {held_up:?}",
        pattern.interval.0
    );
}

/// Sends the pattern once, and samples the device that it is sent by.
#[track_caller]
fn send_and_sample(pattern: &Pattern, pair: &Pair) -> (Vec<Sent>, Shown) {
    let scratch = Scratch::new();
    let file = text_of(&scratch.inside("va.parquet"));
    let begin = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + AHEAD;
    let begin_text = format!("{}.{:09}", begin.as_secs(), begin.subsec_nanos());
    let begin_text =
        end(std::process::Command::new("date").args(["-u", "-d", &format!("@{begin_text}"), "+%FT%T.%NZ"]));
    let first = (begin + QUIET).as_nanos().to_string();
    let (sent, longest) = std::thread::scope(|scope| {
        let sender = scope.spawn(|| send(pattern, pair, &first));
        let mut recorder = pair.left.command(&fabricscope());
        recorder.args(["bursts", "record", "--netdev", "va", "--interval", pattern.interval.0]);
        recorder.args(["--clock", pattern.clock]);
        recorder.args(["--samples", pattern.samples, "--start-at", begin_text.stdout.trim(), "-o", &file]);
        let seen = end(&mut recorder);
        assert!(seen.status.success(), "{}", seen.stderr);
        (sender.join().unwrap(), longest(&seen.stderr))
    });
    let shown = start(&["bursts", "show", &file, "-o", "json", "--line-rate", pattern.line_rate]);
    (sent, Shown { longest, ..Shown::of(&shown, 0) })
}

/// The longest bucket in nanoseconds, as the recorder tells it.
fn longest(said: &str) -> Option<u64> {
    let (_, rest) = said.split_once("the longest took ")?;
    let seconds: f64 = rest.split_once(" s")?.0.parse().unwrap();
    Some((seconds * 1e9) as u64)
}

/// Sends the pattern once, its first burst at this time of UTC in nanoseconds.
#[track_caller]
pub(crate) fn send(pattern: &Pattern, pair: &Pair, first_ns: &str) -> Vec<Sent> {
    let numbers = [pattern.bursts as u64, pattern.gap_us, pattern.datagrams, PAYLOAD].map(|number| number.to_string());
    let mut command = pair.left.command(&tool().unwrap());
    let sent = run(command.args(["send-bursts", RIGHT, "5001", first_ns]).args(&numbers), LIMIT).unwrap();
    assert!(sent.status.success(), "{}", sent.stderr);
    sent.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Whether a burst was sent without a pause in which a bucket may have stayed empty.
fn is_whole(pattern: &Pattern, burst: &Sent) -> bool {
    burst.longest_ns <= pattern.interval.1
}

/// Why this was not the pattern that was to be sent, or not all of it was sampled.
pub(crate) fn why_held_up(pattern: &Pattern, sent: &[Sent], shown: &Shown) -> Option<String> {
    let interval = pattern.interval.1;
    assert_eq!(shown.longest.is_some(), pattern.clock == "tick");
    let longest = shown.longest.unwrap_or(interval);
    if longest > LONGEST * interval {
        return Some(format!("a bucket took {longest} ns"));
    }
    let torn = sent.iter().filter(|burst| !is_whole(pattern, burst)).count();
    if 2 * torn > sent.len() {
        return Some(format!("{torn} of {} bursts were torn", sent.len()));
    }
    // Between two bursts a bucket must be empty, and which one belongs to which must be plain.
    let apart = |pair: &[Sent]| pair[1].start_ns - pair[0].end_ns;
    if let Some(near) = sent.windows(2).map(apart).find(|apart| *apart < 4 * longest as i64) {
        return Some(format!("two bursts were {near} ns apart"));
    }
    (shown.lost_buckets > 0).then(|| format!("{} buckets were lost", shown.lost_buckets))
}

/// Each burst that was sent whole comes back as one, one that was torn as its parts; and there are no others. How many
/// were whole.
#[track_caller]
pub(crate) fn same(pattern: &Pattern, sent: &[Sent], shown: &Shown) -> usize {
    assert_eq!(sent.len(), pattern.bursts);
    let volume = pattern.datagrams * DATAGRAM;
    let bucket = shown.longest.unwrap_or(pattern.interval.1) as i64;
    let mut judged = 0;
    for sent in sent {
        let near = sent.start_ns - 2 * bucket..sent.end_ns + 2 * bucket;
        let found: Vec<&Found> = shown.bursts.iter().filter(|found| near.contains(&found.start_ns)).collect();
        let parts = if is_whole(pattern, sent) { 1..=1 } else { 1..=usize::MAX };
        assert!(parts.contains(&found.len()), "{sent:?} {found:?}");
        let bytes: u64 = found.iter().map(|found| found.bytes).sum();
        assert!(bytes.abs_diff(volume) * 100 <= 2 * volume, "{volume} bytes were sent: {found:?}");
        // A bucket's time is that of its middle; the first datagram left somewhen between these two.
        let middle = found[0].start_ns + bucket / 2;
        let off = middle - middle.clamp(sent.start_ns, sent.first_ns);
        assert!(off.abs() <= bucket, "off by {off} ns: {sent:?}, {found:?}");
        judged += found.len();
    }
    assert_eq!(judged, shown.bursts.len(), "{sent:?}\n{shown:?}");
    sent.iter().filter(|burst| is_whole(pattern, burst)).count()
}

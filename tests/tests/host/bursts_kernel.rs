//! The sampler against the devices' own counters: what two virtual devices carry is counted, all of it, and no more.

use std::path::Path;

use serde::Deserialize;
use tests::command::fabricscope;
use tests::network::{Namespace, Pair, RIGHT, RIGHT_6, tool};

use crate::program::{end, is_root};

/// How often a measurement is taken until nothing but the test's own packets passed at its edges, and no device lost any.
const ATTEMPTS: usize = 10;

/// What carries the mark of what was sent again.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub(crate) struct Marked {
    pub(crate) segments: u64,
    pub(crate) bytes: u64,
}

/// The kernel's own account of what TCP sent again.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub(crate) struct Traced {
    pub(crate) events: u64,
    pub(crate) data_segments: u64,
    pub(crate) bytes: u64,
}

/// A line of `bursts totals`.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) netdev: String,
    pub(crate) direction: String,
    pub(crate) attach: String,
    pub(crate) skbs: u64,
    pub(crate) skb_bytes: u64,
    pub(crate) segments: u64,
    pub(crate) wire_bytes: u64,
    pub(crate) retransmit_bytes: u64,
    pub(crate) retransmit_segments: u64,
    pub(crate) ce_packets: u64,
    pub(crate) ce_bytes: u64,
    pub(crate) marked: Option<Marked>,
    pub(crate) traced: Option<Traced>,
    pub(crate) unparsed: u64,
    pub(crate) no_ring: u64,
    pub(crate) buckets: u64,
    pub(crate) device_packets: [u64; 2],
    pub(crate) device_bytes: [u64; 2],
    pub(crate) conserved: bool,
}

impl Row {
    /// The device counted nothing while the programs were being attached and read.
    fn is_exact(&self) -> bool {
        self.device_packets[0] == self.device_packets[1] && self.device_bytes[0] == self.device_bytes[1]
    }
}

/// What the tool says of the TCP connection that it has sent by.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) bytes_retrans: u64,
    /// Segments, those without payload too.
    pub(crate) retransmits: u64,
}

/// What passed while the tool ran in the left namespace.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub(crate) sent: Sent,
    /// `va` rx, `va` tx, `vb` rx, `vb` tx.
    pub(crate) rows: [Row; 4],
}

/// Samples both devices while the tool runs in the left namespace.
#[track_caller]
pub(crate) fn measure(pair: &Pair, more: &[&str], words: &[&str]) -> Measured {
    let mut command = pair.left.command(&fabricscope());
    command.args(["bursts", "totals", "--netdev", "va", "--output", "json"]).args(more).arg("--");
    command.args(["ip", "netns", "exec", pair.right.name()]).arg(fabricscope());
    command.args(["bursts", "totals", "--netdev", "vb", "--output", "json"]).args(more).arg("--");
    command.args(["ip", "netns", "exec", pair.left.name()]).arg(tool().unwrap()).args(words);
    let seen = end(&mut command);
    let (rows, others): (Vec<&str>, Vec<&str>) = seen.stdout.lines().partition(|line| line.contains("\"netdev\""));
    let mut rows: Vec<Row> = rows.into_iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    rows.sort_by(|one, other| (&one.netdev, &one.direction).cmp(&(&other.netdev, &other.direction)));
    let rows = rows.try_into().unwrap_or_else(|rows| panic!("{rows:?}{}", seen.stderr));
    let sent = others.first().map(|line| serde_json::from_str(line).unwrap()).unwrap_or_default();
    Measured { sent, rows }
}

/// What a device counts.
#[derive(Clone, Copy, Debug)]
enum Counts {
    /// Packets as the kernel handles them.
    Skbs,
    /// Packets on the wire: what is cut before the device gets it, which is after it was counted.
    Wire,
    /// Packets on the wire without their Ethernet headers: what is received by NAPI, before it is joined, which the
    /// other end takes for what it has sent.
    WithoutHeaders,
}

struct Case {
    name: &'static str,
    ipv6: bool,
    /// The tool's mode and amounts; the address stands between them.
    traffic: (&'static str, &'static [&'static str]),
    /// Offloads of both devices: device, feature, on or off.
    offloads: &'static [[&'static str; 3]],
    /// How `va` counts the traffic that it sends, and how `vb` that it receives.
    counts: [Counts; 2],
}

const TCP: (&str, &[&str]) = ("send-tcp", &["20000000"]);
const UDP: (&str, &[&str]) = ("send-udp", &["2000", "1200", "0"]);
const UDP_SEGMENTS: (&str, &[&str]) = ("send-udp", &["200", "14400", "1200"]);
/// Also shorter than the shortest frame, and odd.
const UDP_TINY: (&str, &[&str]) = ("send-udp", &["500", "1", "0"]);
const WHOLE: [Counts; 2] = [Counts::Skbs, Counts::Skbs];
const JOINED: [Counts; 2] = [Counts::WithoutHeaders, Counts::WithoutHeaders];
const CUT: &[[&str; 3]] = &[["va", "tso", "off"], ["va", "gso", "off"]];
const JOIN: &[[&str; 3]] = &[["va", "tso", "off"], ["va", "gso", "off"], ["vb", "gro", "on"]];

const CASES: &[Case] = &[
    Case { name: "TCP in large pieces", ipv6: false, traffic: TCP, offloads: &[], counts: WHOLE },
    Case { name: "TCP in segments", ipv6: false, traffic: TCP, offloads: CUT, counts: [Counts::Wire, Counts::Skbs] },
    Case { name: "TCP joined on receipt", ipv6: false, traffic: TCP, offloads: JOIN, counts: JOINED },
    Case { name: "TCP over IPv6", ipv6: true, traffic: TCP, offloads: &[], counts: WHOLE },
    Case { name: "TCP over IPv6, joined", ipv6: true, traffic: TCP, offloads: JOIN, counts: JOINED },
    Case { name: "UDP", ipv6: false, traffic: UDP, offloads: &[], counts: WHOLE },
    Case { name: "UDP in large pieces", ipv6: false, traffic: UDP_SEGMENTS, offloads: &[], counts: WHOLE },
    Case { name: "UDP of one byte", ipv6: false, traffic: UDP_TINY, offloads: &[], counts: WHOLE },
    Case { name: "UDP over IPv6", ipv6: true, traffic: UDP, offloads: &[], counts: WHOLE },
    Case { name: "UDP over IPv6 in pieces", ipv6: true, traffic: UDP_SEGMENTS, offloads: &[], counts: WHOLE },
];

#[test]
fn what_devices_carry_is_conserved() {
    if !is_root() {
        return;
    }
    for case in CASES {
        let pair = Pair::new(case.ipv6).unwrap();
        for [device, feature, state] in case.offloads {
            let namespace = if *device == "va" { &pair.left } else { &pair.right };
            namespace.run(&["offload", device, feature, state]).unwrap();
        }
        for more in [&[][..], &["--clsact"], &["--clock", "tick"]] {
            check(case, &pair, more);
        }
    }
}

#[track_caller]
fn check(case: &Case, pair: &Pair, more: &[&str]) {
    let address = if case.ipv6 { RIGHT_6 } else { RIGHT };
    let (mode, amounts) = case.traffic;
    let words = [&[mode, address, "5001"], amounts].concat();
    for _ in 0..ATTEMPTS {
        let server: &[&str] =
            if mode == "send-tcp" { &["serve-tcp", address, "5001", "1"] } else { &["serve-udp", address, "5001"] };
        let server = pair.right.start(server).unwrap();
        let before = lost(pair);
        let measured = measure(pair, more, &words);
        server.end().unwrap();
        if lost(pair) == before && measured.rows.iter().all(Row::is_exact) && one_wire(&measured) {
            return conserved(case, &measured);
        }
    }
    panic!(
        "{}: other packets passed, some were lost, or the ends disagree, in each of {ATTEMPTS} measurements",
        case.name
    );
}

/// The wire is one: both ends agree on it, however each joins and cuts. A packet of the kernel's own, such as a report of
/// IPv6 multicast listeners, can pass after one end is attached and before the other is; it does not do so each time.
fn one_wire(Measured { rows: [va_rx, va_tx, vb_rx, vb_tx], .. }: &Measured) -> bool {
    let wire = |row: &Row| (row.segments, row.wire_bytes);
    (wire(va_tx), wire(va_rx)) == (wire(vb_rx), wire(vb_tx))
}

/// Packets that the devices lost for want of room: sent, for the sampler, and not for them.
pub(crate) fn lost(pair: &Pair) -> u64 {
    let of = |namespace: &Namespace, device: &str| {
        let seen =
            end(namespace.command(Path::new("cat")).arg(format!("/sys/class/net/{device}/statistics/tx_dropped")));
        seen.stdout.trim().parse::<u64>().unwrap()
    };
    of(&pair.left, "va") + of(&pair.right, "vb")
}

#[track_caller]
fn conserved(case: &Case, Measured { sent, rows: [va_rx, va_tx, vb_rx, vb_tx] }: &Measured) {
    let expected = |row: &Row, counts: Counts| match counts {
        Counts::Skbs => (row.skbs, row.skb_bytes),
        Counts::Wire => (row.segments, row.wire_bytes),
        Counts::WithoutHeaders => (row.segments, row.wire_bytes - 14 * row.segments),
    };
    let [sending, receiving] = case.counts;
    let counts = [(va_rx, Counts::Skbs), (va_tx, sending), (vb_rx, receiving), (vb_tx, Counts::Skbs)];
    for (row, counts) in counts {
        let device = (row.device_packets[0], row.device_bytes[0]);
        assert_eq!(expected(row, counts), device, "{}: {row:?}", case.name);
        assert!(row.conserved, "{}: {row:?}", case.name);
        assert_eq!((row.unparsed, row.no_ring), (0, 0), "{}: {row:?}", case.name);
    }
    // A full queue of the receiver makes TCP send again now and then.
    assert_eq!(va_tx.retransmit_bytes, sent.bytes_retrans, "{}", case.name);
    let traced = va_tx.traced.unwrap();
    assert_eq!((va_tx.retransmit_segments, va_tx.retransmit_bytes), (traced.data_segments, traced.bytes), "{va_tx:?}");
    assert!(va_tx.segments >= 500 && va_tx.buckets > 0, "{}: {va_tx:?}", case.name);
}

#[test]
fn a_device_that_is_not_there_is_named_with_those_that_are() {
    let pair = if is_root() { Pair::new(false).unwrap() } else { return };
    let seen = end(pair.left.command(&fabricscope()).args(["bursts", "totals", "--netdev", "none0"]));
    crate::program::says_why(&seen, 1, &["none0", "va", "lo"]);
    let no_command = ["bursts", "totals", "--netdev", "va", "--", "/no/such/program"];
    let seen = end(pair.left.command(Path::new(&fabricscope())).args(no_command));
    crate::program::says_why(&seen, 1, &["/no/such/program"]);
}

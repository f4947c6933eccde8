//! What TCP sends again, counted by everybody who can: the socket, the kernel's tracepoint, the sampler, and a receiver
//! by the mark. Marking changes the mark and the checksum, and nothing where it is off.

use serde::Deserialize;
use tests::metrics::sum;
use tests::network::{Pair, RIGHT, RIGHT_6};

use crate::bursts_kernel::{Measured, Row, lost, measure};
use crate::program::{end, is_root, program, until};
use crate::sampling::Agent;

const BYTES: u64 = 5_000_000;
/// The bit in the byte of the TCP header that holds its length.
const MARK: &str = "8";
/// How often a transfer is made until no device lost a packet for want of room and something was sent again.
const ATTEMPTS: usize = 10;

/// What the witness at `vb` says.
#[derive(Clone, Copy, Debug, Deserialize)]
struct Witness {
    segments: u64,
    /// Packets that are no TCP: the kernel's own reports of multicast listeners.
    others: u64,
    marked: u64,
    marked_bytes: u64,
    reserved: u64,
    wrong: u64,
    lost: u64,
}

impl Witness {
    /// What the sampler counted are the witness' segments. The witness looks on for longer, so that of the others each
    /// may or may not be the sampler's too.
    #[track_caller]
    fn saw_all(&self, sampled: &Row) {
        let all = self.segments..=self.segments + self.others;
        assert!(all.contains(&sampled.segments), "{self:?} {sampled:?}");
    }
}

/// What the server says of the bytes.
#[derive(Clone, Copy, Debug, Deserialize)]
struct Received {
    bytes: u64,
    wrong: u64,
}

/// Sends from left to right while one of 20 segments is lost behind `vb`'s sampler and its witness.
#[track_caller]
fn transfer(pair: &Pair, address: &str) -> (Measured, Witness) {
    for _ in 0..ATTEMPTS {
        let witness = pair.right.start(&["sniff", "vb", MARK]).unwrap();
        let thief = pair.right.start(&["drop", "vb", "20"]).unwrap();
        let server = pair.right.start(&["check-tcp", address, "5001"]).unwrap();
        let before = lost(pair);
        let words = ["send-tcp", address, "5001", &BYTES.to_string()];
        let measured = measure(pair, &["--marked"], &words);
        let received: Received = serde_json::from_str(&server.end().unwrap()).unwrap();
        let witness: Witness = serde_json::from_str(&witness.end().unwrap()).unwrap();
        thief.end().unwrap();
        assert_eq!((received.bytes, received.wrong), (BYTES, 0), "the payload");
        if lost(pair) == before && witness.lost == 0 && measured.sent.bytes_retrans > 0 {
            return (measured, witness);
        }
    }
    panic!("packets were lost at other places, or none at all, in each of {ATTEMPTS} transfers");
}

/// The sender's side: the socket, the tracepoint and the sampler agree.
#[track_caller]
fn agree(Measured { sent, rows: [_, va_tx, ..] }: &Measured) {
    let traced = va_tx.traced.unwrap();
    assert_eq!(va_tx.retransmit_bytes, sent.bytes_retrans, "{va_tx:?}");
    assert_eq!((traced.data_segments, traced.bytes), (va_tx.retransmit_segments, va_tx.retransmit_bytes), "{va_tx:?}");
    // A FIN alone that was sent again has no payload.
    assert!(sent.retransmits - va_tx.retransmit_segments <= 1 && traced.events > 0, "{sent:?} {va_tx:?}");
}

#[test]
fn what_is_sent_again_arrives_marked_to_the_byte_and_unharmed() {
    if !is_root() {
        return;
    }
    // Checksums are complete only where the device computes none; only there one frame is one segment too.
    let ways = [(RIGHT, Some("off")), (RIGHT_6, Some("off")), (RIGHT, None), (RIGHT_6, None)];
    for (address, checksums) in ways {
        let pair = Pair::new(true).unwrap();
        if let Some(state) = checksums {
            pair.left.run(&["offload", "va", "tx", state]).unwrap();
        }
        let agent = Agent::start(&pair, "mark_retransmits = true");
        let marked = || {
            ["segments", "bytes"]
                .map(|what| agent.value(&format!("fabricscope_netdev_marked_{what}_total"), "tx") as u64)
        };
        let before = marked();
        let (measured, witness) = transfer(&pair, address);
        agree(&measured);
        let [_, va_tx, vb_rx, _] = &measured.rows;
        let (segments, bytes) = (va_tx.retransmit_segments, va_tx.retransmit_bytes);
        let arrived = vb_rx.marked.unwrap();
        assert_eq!((arrived.segments, arrived.bytes), (segments, bytes), "{va_tx:?} {vb_rx:?}");
        assert_eq!((witness.marked_bytes, witness.wrong), (bytes, 0), "{witness:?}");
        assert_eq!(witness.reserved, witness.marked, "{witness:?}");
        if checksums.is_some() {
            witness.saw_all(vb_rx);
            assert_eq!(witness.marked, segments, "{witness:?}");
        }
        println!("{address}, checksums {checksums:?}: {segments} segments, {bytes} bytes sent again, all marked");
        // Transfers that were not judged were marked too.
        until("the agent tells", || (marked()[1] >= before[1] + bytes && marked()[0] >= segments).then_some(()));
        says_that_it_marks(&agent);
        drop(agent);
    }
}

/// Everybody who asks is told that packets are changed.
#[track_caller]
fn says_that_it_marks(agent: &Agent<'_>) {
    assert_eq!(sum(&agent.metrics(), "fabricscope_tcp_retransmits_marked", &[]), Some(1.0));
    assert!(agent.log().contains("mark_retransmits"), "{}", agent.log());
    let status = agent.status();
    assert!(status.stdout.contains("mark_retransmits"), "{}{}", status.stdout, status.stderr);
    let doctor = end(program().arg("doctor"));
    assert!(doctor.stdout.contains("what TCP sends again"), "{}", doctor.stdout);
}

/// `InCEPkts` of the right one: packets on the wire, however they were joined.
#[track_caller]
fn marks_by_the_kernel(pair: &Pair) -> u64 {
    let text = end(pair.right.command("cat".as_ref()).arg("/proc/net/netstat")).stdout;
    let mut lines = text.lines().filter(|line| line.starts_with("IpExt:")).map(|line| line.split(' '));
    let (names, mut values) = (lines.next().unwrap(), lines.next().unwrap());
    let at = names.into_iter().position(|name| name == "InCEPkts").unwrap();
    values.nth(at).unwrap().parse().unwrap()
}

#[test]
fn congestion_is_counted_by_packets_on_the_wire_also_where_they_are_joined() {
    if !is_root() {
        return;
    }
    for joined in [false, true] {
        let pair = Pair::new(false).unwrap();
        for namespace in [&pair.left, &pair.right] {
            namespace.write("net/ipv4/tcp_ecn", "1").unwrap();
        }
        for feature in ["tso", "gso"] {
            pair.left.run(&["offload", "va", feature, "off"]).unwrap();
        }
        pair.right.run(&["offload", "vb", "gro", if joined { "on" } else { "off" }]).unwrap();
        let before = marks_by_the_kernel(&pair);
        let switch = pair.left.start(&["congest", "va", "20"]).unwrap();
        let server = pair.right.start(&["serve-tcp", RIGHT, "5001", "1"]).unwrap();
        let Measured { rows: [_, va_tx, vb_rx, _], .. } = measure(&pair, &[], &["send-tcp", RIGHT, "5001", "20000000"]);
        server.end().unwrap();
        switch.end().unwrap();
        let marks = marks_by_the_kernel(&pair) - before;
        assert_eq!((vb_rx.ce_packets, va_tx.ce_packets), (marks, 0), "joined {joined}: {va_tx:?} {vb_rx:?}");
        assert!(marks > 100 && vb_rx.ce_bytes > marks * 1000, "joined {joined}: {vb_rx:?}");
        assert_eq!(vb_rx.skbs < vb_rx.segments, joined, "{vb_rx:?}");
        println!("joined {joined}: {marks} packets, {} bytes", vb_rx.ce_bytes);
    }
}

#[test]
fn nothing_is_marked_unless_the_configuration_says_so() {
    if !is_root() {
        return;
    }
    let pair = Pair::new(false).unwrap();
    pair.left.run(&["offload", "va", "tx", "off"]).unwrap();
    let agent = Agent::start(&pair, "");
    let (measured, witness) = transfer(&pair, RIGHT);
    agree(&measured);
    let [_, va_tx, vb_rx, _]: &[Row; 4] = &measured.rows;
    assert_eq!((witness.reserved, witness.wrong), (0, 0), "{witness:?}");
    witness.saw_all(vb_rx);
    assert_eq!(vb_rx.marked.unwrap().segments, 0, "{vb_rx:?}");
    assert!(va_tx.retransmit_segments > 0, "{va_tx:?}");
    assert_eq!(sum(&agent.metrics(), "fabricscope_tcp_retransmits_marked", &[]), Some(0.0));
    assert_eq!(sum(&agent.metrics(), "fabricscope_netdev_marked_bytes_total", &[]), None);
    // The kernel's own account, by the agent: it began before the transfer and sees all namespaces.
    let events = va_tx.traced.unwrap().events as f64;
    until("the agent tells", || {
        (sum(&agent.metrics(), "fabricscope_tcp_retransmit_events_total", &[])? >= events).then_some(())
    });
    assert!(!agent.end().contains("mark_retransmits"));
}

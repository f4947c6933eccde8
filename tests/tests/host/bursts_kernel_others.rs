//! The sampler beside others: their programs and filters stay as they are, and of its own nothing stays.

use std::process::{Child, Stdio};

use tests::command::fabricscope;
use tests::network::{Namespace, Pair, RIGHT};

use crate::bursts_kernel::{Measured, measure};
use crate::program::{end, is_root, until};

const DATAGRAMS: &[&str] = &["send-udp", RIGHT, "5001", "1000", "1000", "0"];

/// What `tc` shows of a device's filters and queueing disciplines, without the counters.
fn shown(namespace: &Namespace, device: &str) -> String {
    let ask = |words: String| namespace.tc(&words).unwrap();
    ask(format!("qdisc show dev {device}"))
        + &ask(format!("filter show dev {device} ingress"))
        + &ask(format!("filter show dev {device} egress"))
}

/// Sends datagrams from left to right, and measures.
#[track_caller]
fn datagrams(pair: &Pair, more: &[&str]) -> Measured {
    let server = pair.right.start(&["serve-udp", RIGHT, "5001"]).unwrap();
    let measured = measure(pair, more, DATAGRAMS);
    server.end().unwrap();
    measured
}

/// The device's own counters were met.
#[track_caller]
fn conserved(measured: &Measured) {
    for row in &measured.rows {
        assert!(row.conserved, "{row:?}");
    }
    let [_, va_tx, vb_rx, _] = &measured.rows;
    assert!(va_tx.skbs >= 1000 && vb_rx.skbs >= 1000, "{va_tx:?} {vb_rx:?}");
}

#[test]
fn another_program_of_tcx_sees_what_it_saw_whether_it_came_first_or_last() {
    if !is_root() {
        return;
    }
    let pair = Pair::new(false).unwrap();
    // `-1` goes on to the next program, `0` ends the chain and lets the packet pass.
    for verdict in ["-1", "0"] {
        // It is there when the sampler comes, which goes before it.
        let egress = pair.left.start(&["pass", "va", "egress", "first", verdict]).unwrap();
        let ingress = pair.right.start(&["pass", "vb", "ingress", "first", verdict]).unwrap();
        for more in [&[][..], &["--suspected"]] {
            conserved(&datagrams(&pair, more));
        }
        for other in [egress, ingress] {
            let seen: serde_json::Value = serde_json::from_str(&other.end().unwrap()).unwrap();
            assert!(seen["seen"].as_u64().unwrap() >= 2000, "{seen}");
        }
    }
}

#[test]
fn a_program_that_ends_the_chain_before_the_sampler_is_found_out() {
    if !is_root() {
        return;
    }
    let pair = Pair::new(false).unwrap();
    // Clsact comes after TCX: what ends the chain there hides all packets.
    let other = pair.left.start(&["pass", "va", "egress", "first", "0"]).unwrap();
    let Measured { rows: [_, va_tx, vb_rx, _], .. } = datagrams(&pair, &["--clsact"]);
    assert_eq!((va_tx.skbs, va_tx.conserved), (0, false), "{va_tx:?}");
    assert!(va_tx.device_packets[0] >= 1000 && vb_rx.conserved, "{va_tx:?} {vb_rx:?}");
    other.end().unwrap();
}

#[test]
fn filters_of_others_stay_and_the_discipline_they_are_in() {
    if !is_root() {
        return;
    }
    let pair = Pair::new(false).unwrap();
    let before = shown(&pair.left, "va");
    conserved(&datagrams(&pair, &["--clsact"]));
    assert_eq!(shown(&pair.left, "va"), before, "something of the sampler's own stays");

    pair.left.tc("qdisc add dev va clsact").unwrap();
    // One of the kind that the sampler's own are of, and at the priority it would take first; one of another kind.
    pair.left
        .tc("filter add dev va egress protocol all prio 1 handle 1 bpf bytecode 1,6_0_0_0".replace('_', " ").as_str())
        .unwrap_or_else(|_| String::new());
    pair.left.tc("filter add dev va ingress protocol ip prio 1 u32 match u32 0 0 flowid 1:1").unwrap();
    let others = shown(&pair.left, "va");
    assert!(others.contains("u32"), "{others}");
    for more in [&[][..], &["--clsact"]] {
        conserved(&datagrams(&pair, more));
        assert_eq!(shown(&pair.left, "va"), others);
    }
}

/// A sampler that runs until it is killed.
struct Victim(Child);

impl Victim {
    /// Starts one on `va`, and returns when its filters are there.
    fn new(namespace: &Namespace) -> Self {
        let mut command = namespace.command(&fabricscope());
        command.args(["bursts", "totals", "--netdev", "va", "--clsact", "--for", "1h"]);
        let child = command.stdout(Stdio::null()).spawn().unwrap();
        let victim = Self(child);
        let attached = || namespace.tc("filter show dev va egress").unwrap().contains("fs_sampler_tx").then_some(());
        until("the sampler's filter", attached);
        victim
    }

    fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn what_a_killed_sampler_left_goes_by_the_next_start_and_by_halt() {
    if !is_root() {
        return;
    }
    let pair = Pair::new(false).unwrap();
    let clean = shown(&pair.left, "va");

    Victim::new(&pair.left).kill();
    assert!(shown(&pair.left, "va").contains("fs_sampler_rx"), "this kernel removes the filters of the dead");
    conserved(&datagrams(&pair, &[]));
    assert_eq!(shown(&pair.left, "va"), clean);

    Victim::new(&pair.left).kill();
    let halted = end(pair.left.command(&fabricscope()).arg("halt"));
    assert!(halted.stdout.contains("2 clsact filters"), "{}", halted.stdout);
    assert_eq!(shown(&pair.left, "va"), clean);

    // Of one that lives nothing is removed.
    let victim = Victim::new(&pair.left);
    let halted = end(pair.left.command(&fabricscope()).arg("halt"));
    assert!(halted.stdout.contains("0 clsact filters"), "{}", halted.stdout);
    conserved(&datagrams(&pair, &["--clsact"]));
    assert!(shown(&pair.left, "va").contains("fs_sampler_tx"));
    victim.kill();
}

#[test]
fn devices_may_go_and_come_again_under_a_sampler() {
    if !is_root() {
        return;
    }
    let pair = Pair::new(false).unwrap();
    for clsact in [&[][..], &["--clsact"]] {
        // The device is removed while it is sampled, and made anew: the sampler ends in peace.
        let mut command = pair.left.command(&fabricscope());
        command.args(["bursts", "totals", "--netdev", "va"]).args(clsact).args(["--", "ip", "link", "del", "va"]);
        let seen = end(&mut command);
        assert_eq!(seen.status.code(), Some(1), "{}{}", seen.stdout, seen.stderr);
        assert!(seen.stderr.contains("no network device va"), "{}", seen.stderr);
        pair.connect(false).unwrap();
        conserved(&datagrams(&pair, clsact));
    }
}

#[test]
fn a_device_may_move_to_another_namespace_under_a_sampler() {
    if !is_root() {
        return;
    }
    let pair = Pair::new(false).unwrap();
    for clsact in [&[][..], &["--clsact"]] {
        let away = Namespace::new().unwrap();
        let mut command = pair.left.command(&fabricscope());
        command.args(["bursts", "totals", "--netdev", "va"]).args(clsact).args(["--", "ip", "link", "set", "va"]);
        let seen = end(command.args(["netns", away.name()]));
        assert!(seen.stderr.contains("no network device va"), "{}", seen.stderr);
        assert!(!shown(&away, "va").contains("fs_sampler"), "{}", shown(&away, "va"));
        away.ip("link del va").unwrap();
        pair.connect(false).unwrap();
    }
}

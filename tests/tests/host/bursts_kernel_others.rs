//! The sampler beside others: their programs and filters stay as they are, and of its own nothing stays.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tests::command::fabricscope;
use tests::network::{Namespace, Pair, RIGHT, Running};

use crate::bursts_kernel::{Measured, Row, lost, measure};
use crate::program::{Scratch, end, is_root};

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
    for _ in 0..5 {
        let (server, before) = (pair.right.start(&["serve-udp", RIGHT, "5001"]).unwrap(), lost(pair));
        let measured = measure(pair, more, DATAGRAMS);
        server.end().unwrap();
        // What the pair itself drops was seen before, and is counted by no device as sent.
        if lost(pair) == before {
            return measured;
        }
    }
    panic!("packets were lost each time")
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
fn another_program_of_tcx_sees_what_it_saw_whether_it_came_before_or_after() {
    if !is_root() {
        return;
    }
    let pair = Pair::new(false).unwrap();
    // `-1` goes on to the next program, `0` ends the chain and lets the packet pass.
    for verdict in ["-1", "0"] {
        // It is there when the sampler comes, which goes before it.
        let egress = pair.left.start(&["pass", "va", "egress", "first", verdict]).unwrap();
        let ingress = pair.right.start(&["pass", "vb", "ingress", "first", verdict]).unwrap();
        conserved(&datagrams(&pair, &[]));
        assert!(seen(egress) >= 1000);
        assert!(seen(ingress) >= 1000);
    }
    // It comes later and goes before the sampler, then behind it; the sampler's end is none of its.
    let server = pair.right.start(&["serve-udp", RIGHT, "5001"]).unwrap();
    for (order, verdict) in [("first", "-1"), ("last", "0")] {
        let sampler = Sampling::new(&pair.left, &[]);
        let other = pair.left.start(&["pass", "va", "egress", order, verdict]).unwrap();
        pair.left.run(DATAGRAMS).unwrap();
        let [_, va_tx] = sampler.stop();
        assert!(va_tx.conserved && va_tx.skbs == 1000, "{order} {va_tx:?}");
        pair.left.run(DATAGRAMS).unwrap();
        assert_eq!(seen(other), 2000, "{order}");
    }
    server.end().unwrap();
}

/// How many packets the other program saw.
#[track_caller]
fn seen(other: Running) -> u64 {
    let text = other.end().unwrap();
    let answer: serde_json::Value = serde_json::from_str(&text).unwrap();
    answer["seen"].as_u64().unwrap()
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
    let scratch = Scratch::new();
    let before = shown(&pair.left, "va");
    conserved(&datagrams(&pair, &["--clsact"]));
    assert_eq!(shown(&pair.left, "va"), before, "something of the sampler's own stays");

    pair.left.tc("qdisc add dev va clsact").unwrap();
    // One of the kind that the sampler's own are of, at the priority it takes first; one of another kind.
    let nothing = scratch.file("nothing", "1,6 0 0 0,");
    pair.left.tc(&format!("filter add dev va egress protocol all prio 1 bpf bytecode-file {nothing}")).unwrap();
    pair.left.tc("filter add dev va ingress protocol ip prio 1 u32 match u32 0 0 flowid 1:1").unwrap();
    let others = shown(&pair.left, "va");
    assert!(others.contains("u32") && others.contains("bytecode"), "{others}");
    for more in [&[][..], &["--clsact"]] {
        conserved(&datagrams(&pair, more));
        assert_eq!(shown(&pair.left, "va"), others);
    }

    // A filter that comes while the sampler is there keeps the discipline that the sampler has made.
    pair.left.tc("qdisc del dev va clsact").unwrap();
    let sampler = Sampling::new(&pair.left, &["--clsact"]);
    pair.left.tc("filter add dev va ingress protocol ip prio 9 u32 match u32 0 0 flowid 1:1").unwrap();
    sampler.stop();
    let left = shown(&pair.left, "va");
    assert!(left.contains("clsact") && left.contains("pref 9 u32") && !left.contains("fs_sampler"), "{left}");
}

/// A sampler of `va` that runs until it is stopped or killed.
struct Sampling(Child);

impl Sampling {
    /// Starts one, and returns when it is attached.
    #[track_caller]
    fn new(namespace: &Namespace, more: &[&str]) -> Self {
        let mut command = namespace.command(&fabricscope());
        command.args(["bursts", "totals", "--netdev", "va", "--for", "1h", "--output", "json"]).args(more);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        // The rest of it stays unread: there is none.
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.contains("va is sampled"), "{line}");
        Self(child)
    }

    /// Ends it by a signal. What it tells of `va`: received, sent.
    #[track_caller]
    fn stop(mut self) -> [Row; 2] {
        let pid = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
        let mut text = String::new();
        self.0.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        self.0.wait().unwrap();
        let rows: Vec<Row> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        rows.try_into().unwrap()
    }

    fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Sampling {
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

    Sampling::new(&pair.left, &["--clsact"]).kill();
    assert!(shown(&pair.left, "va").contains("fs_sampler_rx"), "this kernel removes the filters of the dead");
    conserved(&datagrams(&pair, &[]));
    assert_eq!(shown(&pair.left, "va"), clean);

    Sampling::new(&pair.left, &["--clsact"]).kill();
    let halted = end(pair.left.command(&fabricscope()).arg("halt"));
    assert!(halted.stdout.contains("2 clsact filters"), "{}", halted.stdout);
    assert_eq!(shown(&pair.left, "va"), clean);

    // Of one that lives nothing is removed.
    let living = Sampling::new(&pair.left, &["--clsact"]);
    let halted = end(pair.left.command(&fabricscope()).arg("halt"));
    assert!(halted.stdout.contains("0 clsact filters"), "{}", halted.stdout);
    conserved(&datagrams(&pair, &["--clsact"]));
    assert!(shown(&pair.left, "va").contains("fs_sampler_tx"));
    living.kill();
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

#[test]
fn the_doctor_tells_the_means_that_the_sampler_takes() {
    if !is_root() {
        return;
    }
    let pair = Pair::new(false).unwrap();
    let doctor = end(pair.left.command(&fabricscope()).args(["doctor", "--output", "json"]));
    let doctor: serde_json::Value = serde_json::from_str(&doctor.stdout).unwrap();
    let of = |list: &str, key: &str, name: &str| {
        let found = doctor[list].as_array().unwrap().iter().find(|row| row[key] == name);
        found.unwrap_or_else(|| panic!("no {name}: {doctor}")).clone()
    };
    let Measured { rows: [_, va_tx, ..], .. } = datagrams(&pair, &[]);
    let (means, tcx) =
        if va_tx.attach == "tcx" { ("by TCX links", "ok") } else { ("by clsact filters (no TCX: ", "missing") };
    let feature = of("features", "feature", "burst sampling");
    assert_eq!(feature["state"], "yes", "{feature}");
    assert!(feature["detail"].as_str().unwrap().starts_with(means), "{feature} {va_tx:?}");
    assert_eq!(of("checks", "check", "TCX")["status"], tcx);
}

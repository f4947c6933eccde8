//! Scripted readings, and what the detectors say of them.

use analysis::verdict::Verdict;

use super::*;
use crate::counters::catalogue::{Source, row};

const START: UtcNs = UtcNs(1_700_000_000_000_000_000);

/// A counter of the network device: its row, its priority, and by how much it grows each second; absent where it is
/// not read then.
type Script<'a> = (&'static str, Option<u8>, &'a [Option<u64>]);

fn subject(kind: Kind, name: &str) -> Subject {
    let (driver, priorities) = (Some("mlx5_core".to_owned()), Some(1 << 3));
    let port_of = (kind == Kind::Netdev).then(|| ("mlx5_0".to_owned(), 1));
    let (quarantined, failures) = (None, vec![]);
    Subject {
        kind,
        name: name.to_owned(),
        driver,
        port_of,
        priorities,
        quarantined,
        failures,
        relations: crate::counters::relations::Relations::default(),
    }
}

fn series(name: &str, priority: Option<u8>, value: u64) -> Series {
    let row = row(name).expect(name);
    let place = if name.starts_with("rdma_") {
        Place { kind: Kind::Rdma, device: "mlx5_0".to_owned(), port: Some(1) }
    } else {
        Place { kind: Kind::Netdev, device: "eth0".to_owned(), port: None }
    };
    let place = Arc::new(place);
    Series { place, row, priority, value, saturated: false, epoch: 0, source: Source::Ethtool }
}

fn readout(at: Instant, series: Vec<Series>) -> Readout {
    let subjects = vec![subject(Kind::Rdma, "mlx5_0"), subject(Kind::Netdev, "eth0")];
    let (shown, resources, durations) = (vec![], vec![], vec![]);
    Readout {
        at,
        subjects,
        series,
        shown,
        resources,
        durations,
        counters: 1,
        further: crate::counters::readout::Further::default(),
    }
}

fn windows() -> Windows {
    Windows::new(&Roots::at("/nonexistent", "/nonexistent"), Duration::from_secs(1))
}

/// Readings one second apart, from 7 on.
fn played(script: &[Script<'_>]) -> Windows {
    let (mut windows, now) = (windows(), Instant::now());
    for second in 0..=script[0].2.len() {
        let at = |(name, priority, growth): &Script<'_>| {
            let last = second.checked_sub(1).map_or(Some(0), |last| growth[last]);
            last.map(|_| series(name, *priority, 7 + growth[..second].iter().flatten().sum::<u64>()))
        };
        let length = Duration::from_secs(second as u64);
        let readout = readout(now + length, script.iter().filter_map(at).collect());
        windows.take(&readout, START.after(DurationNs(length.as_nanos() as u64)));
    }
    windows
}

/// What a detector says, with its first evidence.
fn says(windows: &Windows, detector: &str) -> (&'static str, String) {
    let found = windows.findings();
    let mut found = found.iter().filter(|judged| judged.finding.detector == detector);
    let judged = found.next().expect(detector);
    assert!(found.next().is_none(), "{detector} twice");
    assert_eq!((&*judged.place.device, judged.place.port, judged.netdev.as_deref()), ("mlx5_0", Some(1), Some("eth0")));
    let text = match &judged.finding.verdict {
        Verdict::Firing(evidence) => evidence[0].to_string(),
        Verdict::CannotTell(why) => why.to_string(),
        Verdict::Quiet => String::new(),
    };
    (judged.finding.verdict.name(), text)
}

#[track_caller]
fn check(script: &[Script<'_>], detector: &str, verdict: &str, text: &str) {
    let found = says(&played(script), detector);
    assert!(found.0 == verdict && found.1.contains(text), "{detector}: {found:?}");
}

const PAUSED: &[Option<u64>] = &[Some(990_000); 3];
const NOTHING: &[Option<u64>] = &[Some(0); 3];
const MOVING: &[Option<u64>] = &[Some(5_000_000); 3];

#[test]
fn pause_all_the_time_with_nothing_received_is_this_host_s_storm() {
    let script = [
        ("pfc_sent_pause_seconds", Some(3), PAUSED),
        ("nic_priority_received_packets", Some(3), NOTHING),
        ("nic_wire_received_packets", None, MOVING),
    ];
    check(&script, "storm", "firing", "priority 3 paused for 3.000 s and going on, at least 99.0 %");
    check(&script, "storm", "firing", "tx pause: this host cannot take what the network sends");
    check(&script, "tx_pause", "firing", "from the device's pause time");
    check(&script, "rx_pause", "cannot tell", "is not offered");
}

#[test]
fn pause_with_progress_is_no_storm() {
    let script = [("pfc_received_pause_seconds", Some(3), PAUSED), ("nic_priority_sent_packets", Some(3), MOVING)];
    check(&script, "storm_victim", "quiet", "");
    check(&script, "rx_pause", "firing", "rx pause: the network cannot take what this host sends");
}

#[test]
fn what_stands_still_is_quiet_and_what_is_missing_cannot_be_told() {
    let idle = [
        ("pfc_sent_pause_seconds", Some(3), NOTHING),
        ("nic_priority_received_packets", Some(3), NOTHING),
        ("nic_pause_storm_error_events", None, NOTHING),
        ("nic_link_down_events", None, NOTHING),
    ];
    for detector in ["tx_pause", "storm", "storm_reported", "link_flap"] {
        check(&idle, detector, "quiet", "");
    }
    check(&[("pfc_sent_pause_seconds", Some(3), PAUSED)], "storm", "cannot tell", "is not offered");
    let lost: &[_] = &[Some(990_000), None, None, Some(990_000)];
    let moved: &[_] = &[Some(0); 4];
    let script = [("nic_priority_received_packets", Some(3), moved), ("pfc_sent_pause_seconds", Some(3), lost)];
    check(&script, "storm", "cannot tell", "could not be read");
    let one = [("pfc_sent_pause_seconds", Some(3), &NOTHING[..1])];
    check(&one, "tx_pause", "cannot tell", "1 samples, at least 2 needed");
}

#[test]
fn rdma_s_counters_and_its_network_device_s_are_one_port() {
    let script = [
        ("rdma_sequence_error_packets", None, MOVING),
        ("nic_wire_sent_packets", None, &[Some(10_000_000); 3][..]),
        // Not taken: the wire's own count is there.
        ("rdma_sent_packets", None, MOVING),
    ];
    check(&script, "loss", "firing", "15000000 packet sequence errors in 30000000 packets");
    let script = [script[0], script[2], ("nic_sent_packets", None, MOVING)];
    check(&script, "loss", "firing", "in 30000000 packets");
}

#[test]
fn what_has_no_growth_says_why() {
    let downs = |value, epoch, saturated| Series { epoch, saturated, ..series("rdma_link_down_events", None, value) };
    let rows = [
        (downs(9, 0, false), Ok(2)),
        (downs(9, 1, false), Err(Gap::Reset)),
        (downs(5, 0, false), Err(Gap::Reset)),
        (downs(255, 0, true), Err(Gap::Saturated)),
    ];
    for (later, expected) in rows {
        let (mut windows, now) = (windows(), Instant::now());
        windows.take(&readout(now, vec![downs(7, 0, false)]), START);
        windows.take(&readout(now + Duration::from_secs(1), vec![later]), START.after(DurationNs(1_000_000_000)));
        let port = windows.ports.values().next().expect("a port");
        assert_eq!(port.samples.delta(Counter::LinkDowns, 0), expected);
    }
}

#[test]
fn a_window_is_bounded() {
    let rows = [(10, 600), (100, 600), (1_000, 60), (7_000, 9), (3_600_000, 2)];
    for (pace, expected) in rows {
        let roots = Roots::at("/nonexistent", "/nonexistent");
        assert_eq!(Windows::new(&roots, Duration::from_millis(pace)).samples_max, expected, "{pace} ms");
    }
    let script = [("nic_link_down_events", None, &[Some(1); 70][..])];
    assert_eq!(played(&script).covers(), DurationNs(60_000_000_000));
}

#[test]
fn priorities_without_flow_control_leave_the_port_s_pause_in_sight() {
    let still = ("pfc_sent_pause_seconds", Some(5), &[Some(0); 3][..]);
    let is_no = |value| is_no_lane(Some(&subject(Kind::Netdev, "eth0")), &series(still.0, still.1, value));
    assert!(is_no(0));
    assert!(!is_no(1));
    assert!(!is_no_lane(None, &series(still.0, still.1, 0)));
    assert!(!is_no_lane(Some(&subject(Kind::Netdev, "eth0")), &series(still.0, Some(3), 0)));
}

/// The link goes down once in each of these seconds of twenty minutes; what the detector then says.
fn flaps(row: &'static str, each: u64, seconds: &[u64]) -> &'static str {
    let mut windows = Windows::new(&Roots::at("/nonexistent", "/nonexistent"), Duration::from_secs(10));
    let begin = Instant::now();
    let mut value = 0;
    for second in (0..1_200).step_by(10) {
        value += each * seconds.iter().filter(|at| (second..second + 10).contains(*at)).count() as u64;
        let at = begin + Duration::from_secs(second);
        let utc = UtcNs(START.0 + i64::try_from(second).unwrap() * 1_000_000_000);
        windows.take(&readout(at, vec![series(row, None, value)]), utc);
    }
    let found = windows.findings();
    let flap = found.iter().find(|judged| judged.finding.detector == "link_flap").expect("a finding");
    flap.finding.verdict.name()
}

#[test]
fn a_link_that_flaps_over_minutes_is_found() {
    for (row, each) in [("nic_link_down_events", 1), ("nic_carrier_down_events", 1), ("nic_carrier_change_events", 2)] {
        assert_eq!(flaps(row, each, &[700, 900, 1_190]), "firing", "{row}");
        assert_eq!(flaps(row, each, &[900, 1_190]), "quiet", "{row}");
        assert_eq!(flaps(row, each, &[10, 20, 30]), "quiet", "{row}: it is long ago");
    }
}

//! The lab's NIC itself: what is set shows on each of the kernel's interfaces, fails where it is told to, and goes.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use tests::nic::{Counter, state, statistics};
use tests::scenario::{Run, Scenario};

pub(crate) const SCENARIO: Scenario = Scenario {
    name: "nic",
    script: r#"port=/sys/class/infiniband/mlx5_0/ports/1
# What readers see: `NAME: VALUE` lines, sysfs with its errors, netlink.
keep() {
    ethtool -S fsnic0 > $out/$1.ethtool 2>&1
    { ethtool -I -a fsnic0; ethtool -I --show-fec fsnic0; ethtool -S fsnic0 --groups eth-phy; ethtool -I fsnic0; } > $out/$1.standard 2>&1
    (cd $port; for file in hw_counters/* counters/* rate state; do echo "$file: $(cat $file 2>&1)"; done) > $out/$1.sysfs
    echo "speed: $(cat /sys/class/net/fsnic0/speed 2>&1)" >> $out/$1.sysfs
    rdma -j statistic show link mlx5_0/1 > $out/$1.netlink 2> $out/$1.netlink-errors
    dcb -s -j pfc show dev fsnic0 > $out/$1.dcb 2> $out/$1.dcb-errors
}
refused() { echo "$*: $(nic "$@" 2>&1 | sed 's/.*: //')" >> $out/refused; }
dmesg -C
nic_load || exit 1
ethtool -i fsnic0 > $out/driver; basename $(readlink $port/../../device/driver) >> $out/driver
keep new
nic 0 ethtool 'rx_prio3_pause 77' 'rx_prio3_pause_duration 4000' 'rx_prio5_pause 9' 'tx_global_pause 3' 'rx_discards_phy 11'
nic 0 pause 'tx_pause_frames 21' 'rx_pause_frames 22'
nic 0 fec 'corrected_blocks 31' 'uncorrectable_blocks 32' 'corrected_bits 33'
nic 0 phy 'SymbolErrorDuringCarrier 41'
nic 0 link 'speed 25000' 'link_down_events 51'
nic 0 hw_counters 'np_cnp_sent 61' 'out_of_sequence 18446744073709551615' 'rx_write_requests 62' 'cc_rx_ce_pkts 63'
nic 0 counters 'port_xmit_data 123456789012' 'symbol_error 70000' 'local_link_integrity_errors 7' 'excessive_buffer_overrun_errors 15' 'link_downed 200' 'multicast_rcv_packets 71'
rdma statistic set link mlx5_0/1 optional-counters cc_rx_ce_pkts
keep set
dcb pfc set dev fsnic0 prio-pfc 3:off 5:on && ethtool -A fsnic0 rx on tx on autoneg off && keep pfc
nic 0 ethtool 'hide rx_discards_phy'; nic 0 pause 'hide tx_pause_frames'; nic 0 fec 'hide corrected_bits'; nic 0 phy 'hide SymbolErrorDuringCarrier'
keep hidden

nic 0 hw_counters 'fail out_of_sequence EIO'; nic 0 counters 'fail VL15_dropped EINVAL'; nic 0 link 'fail speed EINVAL'
# A good file first: the kernel must not answer the bad one from what it keeps of it.
cat $port/hw_counters/rx_write_requests > /dev/null; keep some
nic 0 hw_counters 'fail out_of_sequence 0' 'fail * EIO'; nic 0 counters 'fail VL15_dropped 0'; nic 0 dcb 'fail * EIO'; nic 0 link 'fail speed 0' 'fail * ENODEV'
keep all
nic 0 hw_counters 'fail * 0'; nic 0 dcb 'fail * 0'; nic 0 link 'fail * 0'
keep healed
refused 0 ethtool 'fail rx_discards_phy EIO'; refused 0 pause 'fail * EIO'; refused 0 counters 'hide symbol_error'; refused 0 ethtool 'rx_nonsense 1'
refused 0 ethtool 'rx_discards_phy x'; refused 0 ethtool 'ramp rx_discards_phy 1 20 10'; refused 0 ethtool 'wrap rx_discards_phy 65'; refused 0 ethtool 'rx_discards_phy 1 2'

# Growth: all of it is read before, with and after the readers.
nic 0 ethtool 'show rx_discards_phy' 'rx_discards_phy 5' 'ramp rx_discards_phy 3 1 1 50' 'rx_out_of_buffer 0' 'ramp rx_out_of_buffer 1000' 'ramp rx_prio5_pause_duration 1000 20 100' 'wrap rx_prio5_pause_duration 16' 'ramp tx_discards_phy 1000000' 'saturate tx_discards_phy 20'
nic 0 hw_counters 'ramp np_cnp_sent 100'
until_true 'nic_state 0 ethtool | grep -q "^rx_discards_phy.155."'
for when in before after; do
    for file in ethtool hw_counters; do nic_state 0 $file > $out/$when.$file; done
    [ $when = after ] || { ethtool -S fsnic0 > $out/growth.ethtool; echo "np_cnp_sent: $(cat $port/hw_counters/np_cnp_sent)" > $out/growth.sysfs; }
done
nic 0 ethtool 'at 1000000000' 'ramp tx_errors_phy 5'; nic_state 0 ethtool > $out/dated.ethtool
nic 0 ethtool 'delay 300000'; began=$(date +%s%N); ethtool -S fsnic0 > /dev/null; echo $((($(date +%s%N) - began) / 1000000)) > $out/slow.ms

nic_apart && ping -q -c 3 -i 0.2 -W 10 10.99.0.2 > $out/ping || exit 1
cat /sys/class/net/fsnic0/statistics/rx_packets > $out/received
nic 0 link 'carrier 0'; keep down; nic 0 link 'carrier 1'; until_true '[ "$(cat /sys/class/net/fsnic0/carrier)" = 1 ]'; keep up

tracing=/sys/kernel/tracing
for event in devlink/devlink_health_report net/net_dev_xmit_timeout napi/napi_poll; do echo 1 > $tracing/events/$event/enable; done
nic_health 0 'firmware is unwell'; nic_health 1 '!firmware is gone'; devlink -j health show > $out/health
nic 0 link 'stuck 1'; ping -q -c 1 -W 1 10.99.0.2 > $out/stuck; until_true 'grep -q net_dev_xmit_timeout $tracing/trace'
nic 0 link 'stuck 0'; ping -q -c 1 -W 10 10.99.0.2 > $out/unstuck
nic 1 link 'hold 1'; python3 -c 'import socket; s = socket.socket(type=socket.SOCK_DGRAM); [s.sendto(b"x", ("10.99.0.2", 9)) for _ in range(200)]'
nic 1 link 'hold 0'
ping -q -c 1 -W 10 10.99.0.2 > $out/released; cp $tracing/trace $out/trace
for event in devlink/devlink_health_report net/net_dev_xmit_timeout napi/napi_poll; do echo 0 > $tracing/events/$event/enable; done

nic_reload 0 && until_true '[ -d $port ]' && keep reloaded
ip netns del far; rmmod fsnic; echo $? > $out/unloaded
ls /sys/class/net /sys/class/infiniband /sys/kernel/debug > $out/left
insmod /mnt/out/fsnic.ko driver=bnxt_en rdma=bnxt_re%d ethtool_names=rx_pfc_ena_frames_pri%d,rx_prio3_pause hw_names=tx_cnp_pkts all_pause_names=1 pfc=0 narrow=1 || exit 1
nic 1 counters 'port_xmit_data 4294967299'; nic 1 hw_counters 'tx_cnp_pkts 8'
ethtool -i fsnic1 > $out/other.driver; ethtool -S fsnic1 > $out/other.ethtool
(cd /sys/class/infiniband/bnxt_re1/ports/1; for file in hw_counters/* counters/*; do echo "$file: $(cat $file)"; done) > $out/other.sysfs
rmmod fsnic; dmesg > $out/dmesg
exit 0
"#,
    modules: true,
    processors: 1,
    limit: Duration::from_secs(300),
};

/// A file of `name: value` lines, with the values as words.
#[track_caller]
fn words(run: &Run, file: &str) -> BTreeMap<String, String> {
    let text = run.output().unwrap().file(file).unwrap();
    text.lines().filter_map(|line| line.trim().split_once(": ")).map(|(a, b)| (a.to_owned(), b.to_owned())).collect()
}

/// Each `name` has this value in the file; none: it is not there.
#[track_caller]
fn check(run: &Run, file: &str, expected: &[(&str, Option<&str>)]) {
    let seen = words(run, file);
    for (name, value) in expected {
        assert_eq!(seen.get(*name).map(|word| word.trim()), *value, "{name} in {file} on {}: {seen:#?}", run.kernel());
    }
}

#[track_caller]
fn netlink(run: &Run, file: &str) -> Value {
    let mut links: Vec<Value> = serde_json::from_str(&run.output().unwrap().file(file).unwrap()).unwrap();
    assert_eq!(links.len(), 1, "{links:?}");
    links.remove(0)
}

#[track_caller]
fn counters(run: &Run, file: &str) -> BTreeMap<String, Counter> {
    state(&run.output().unwrap().file(file).unwrap()).unwrap()
}

/// Both ends begin at 0; every interface shows what was set, in its own width.
#[track_caller]
pub(crate) fn set(run: &Run) {
    let driver = run.output().unwrap().file("driver").unwrap();
    assert!(driver.starts_with("driver: mlx5_core\n") && driver.ends_with("\nmlx5_core\n"), "{driver}");
    let new = statistics(&run.output().unwrap().file("new.ethtool").unwrap());
    assert!(new.len() > 150 && new.values().all(|value| *value == 0), "{new:?}");
    check(run, "set.ethtool", &[("rx_prio3_pause", Some("77")), ("rx_prio3_pause_duration", Some("4000"))]);
    check(run, "set.ethtool", &[("rx_discards_phy", Some("11"))]);
    check(
        run,
        "set.standard",
        &[
            ("tx_pause_frames", Some("21")),
            ("rx_pause_frames", Some("22")),
            ("corrected_blocks", Some("31")),
            ("uncorrectable_blocks", Some("32")),
            ("corrected_bits", Some("33")),
            ("eth-phy-SymbolErrorDuringCarrier", Some("41")),
            ("Speed", Some("25000Mb/s")),
            // 6.1 has no place for it.
            ("Link Down Events", (run.kernel() != "6.1").then_some("51")),
        ],
    );
    check(
        run,
        "set.sysfs",
        &[
            ("hw_counters/np_cnp_sent", Some("61")),
            ("hw_counters/out_of_sequence", Some("18446744073709551615")),
            ("hw_counters/rx_write_requests", Some("62")),
            ("hw_counters/cc_rx_ce_pkts", None),
            ("counters/port_xmit_data", Some("123456789012")),
            ("counters/multicast_rcv_packets", Some("71")),
            ("counters/symbol_error", Some("65535")),
            ("counters/link_downed", Some("200")),
            ("counters/local_link_integrity_errors", Some("7")),
            ("counters/excessive_buffer_overrun_errors", Some("15")),
            ("counters/port_rcv_errors", Some("0")),
            ("rate", Some("25 Gb/sec (1X EDR)")),
            ("state", Some("4: ACTIVE")),
            ("speed", Some("25000")),
        ],
    );
    let link = netlink(run, "set.netlink");
    let seen = ["np_cnp_sent", "rx_write_requests", "cc_rx_ce_pkts", "out_of_sequence", "packet_seq_err"]
        .map(|name| link[name].as_u64());
    assert_eq!(seen, [Some(61), Some(62), Some(63), Some(u64::MAX), Some(0)], "{link}");
    assert_eq!(netlink(run, "new.netlink")["cc_rx_ce_pkts"], Value::Null);
}

/// Pause names show as with the real driver: of priorities with PFC, of the link while it pauses.
#[track_caller]
pub(crate) fn pause_names(run: &Run) {
    for (file, priority_3, priority_5, global) in
        [("set.ethtool", Some("77"), None, None), ("pfc.ethtool", None, Some("9"), Some("3"))]
    {
        let names = [("rx_prio3_pause", priority_3), ("rx_prio5_pause", priority_5), ("tx_global_pause", global)];
        check(run, file, &names);
    }
    let pfc: Value = serde_json::from_str(&run.output().unwrap().file("pfc.dcb").unwrap()).unwrap();
    let priorities: Vec<_> = (0..8).map(|p| pfc["prio_pfc"][p].as_bool()).collect();
    assert_eq!(priorities.iter().position(|on| *on == Some(true)), Some(5), "{pfc}");
    assert_eq!(pfc["indications"][5], 9, "{pfc}");
    check(run, "hidden.ethtool", &[("rx_discards_phy", None), ("rx_prio5_pause", Some("9"))]);
    let standard = [("tx_pause_frames", None), ("rx_pause_frames", Some("22")), ("corrected_bits", None)];
    check(run, "hidden.standard", &standard);
    check(run, "hidden.standard", &[("eth-phy-SymbolErrorDuringCarrier", None), ("corrected_blocks", Some("31"))]);
}

/// What is told to fail does, and nothing else; what cannot fail says so.
#[track_caller]
pub(crate) fn failing(run: &Run) {
    let broken = [
        ("hw_counters/out_of_sequence", "cat: hw_counters/out_of_sequence: Input/output error"),
        ("counters/VL15_dropped", "cat: counters/VL15_dropped: Invalid argument"),
        // The device answers for them in the same reply.
        ("counters/symbol_error", "cat: counters/symbol_error: Invalid argument"),
        ("rate", "cat: rate: Invalid argument"),
        ("speed", "cat: /sys/class/net/fsnic0/speed: Invalid argument"),
        ("hw_counters/np_cnp_sent", "61"),
        ("hw_counters/rx_write_requests", "62"),
        ("counters/port_xmit_data", "123456789012"),
    ];
    check(run, "some.sysfs", &broken.map(|(name, value)| (name, Some(value))));
    assert_eq!(netlink(run, "some.netlink")["np_cnp_sent"], 61);
    let output = run.output().unwrap();
    let all = words(run, "all.sysfs");
    let hw: Vec<_> = all.iter().filter(|(name, _)| name.starts_with("hw_") && !name.ends_with("lifespan")).collect();
    assert!(hw.len() > 30 && hw.iter().all(|(_, word)| word.ends_with("Input/output error")), "{hw:?}");
    assert!(output.file("all.netlink-errors").unwrap().contains("Invalid argument"));
    // The kernel leaves out what it could not read.
    assert!(output.file("all.dcb-errors").unwrap().contains("Attribute not found"));
    assert!(output.file("all.ethtool").unwrap().contains("No such device"));
    for file in ["ethtool", "sysfs", "netlink", "dcb"] {
        let [before, after] = ["hidden", "healed"].map(|when| output.file(&format!("{when}.{file}")).unwrap());
        assert_eq!(before, after, "{file}");
    }
    let refused = [
        ("0 ethtool fail rx_discards_phy EIO", "Operation not supported"),
        ("0 pause fail * EIO", "Operation not supported"),
        ("0 counters hide symbol_error", "Operation not supported"),
        ("0 ethtool rx_nonsense 1", "No such file or directory"),
        ("0 ethtool rx_discards_phy x", "Invalid argument"),
        ("0 ethtool ramp rx_discards_phy 1 20 10", "Invalid argument"),
        ("0 ethtool wrap rx_discards_phy 65", "Numerical result out of range"),
        ("0 ethtool rx_discards_phy 1 2", "Invalid argument"),
    ];
    check(run, "refused", &refused.map(|(line, error)| (line, Some(error))));
}

/// Values grow on the kernel's clock as [`Counter::at`] says, and readers see them grow.
#[track_caller]
pub(crate) fn growth(run: &Run) {
    let output = run.output().unwrap();
    let [before, after] = ["before.ethtool", "after.ethtool"].map(|file| counters(run, file));
    for counter in before.values().chain(after.values()) {
        assert_eq!(counter.at(counter.now_ns), counter.value, "{counter:?}");
    }
    let seen = statistics(&output.file("growth.ethtool").unwrap());
    let range = |name: &str| before[name].value..=after[name].value;
    assert!(range("rx_out_of_buffer").contains(&seen["rx_out_of_buffer"]), "{:?}", range("rx_out_of_buffer"));
    assert!(before["rx_out_of_buffer"].value < after["rx_out_of_buffer"].value);
    // 5, and 3 in each of 50 ms.
    assert_eq!((seen["rx_discards_phy"], seen["tx_discards_phy"]), (155, (1 << 20) - 1));
    let pulse = &before["rx_prio5_pause_duration"];
    assert!((pulse.on_ms, pulse.period_ms, pulse.bits) == (20, 100, 16) && seen["rx_prio5_pause_duration"] < 1 << 16);
    let of_one_write = ["rx_discards_phy", "rx_out_of_buffer", "rx_prio5_pause_duration", "tx_discards_phy"];
    assert!(of_one_write.iter().all(|name| before[*name].since_ns == pulse.since_ns), "{before:?}");
    let [before, after] = ["before.hw_counters", "after.hw_counters"].map(|file| counters(run, file));
    let cnp: u64 = words(run, "growth.sysfs")["np_cnp_sent"].parse().unwrap();
    // sysfs may answer with what it read a lifespan ago.
    let oldest = before["np_cnp_sent"].at(before["np_cnp_sent"].now_ns - 40_000_000);
    assert!((oldest..=after["np_cnp_sent"].value).contains(&cnp), "{cnp}");
    assert_eq!(counters(run, "dated.ethtool")["tx_errors_phy"].since_ns, 1_000_000_000);
    let slow: u64 = output.file("slow.ms").unwrap().trim().parse().unwrap();
    assert!(slow >= 300, "{slow}");
}

/// Packets cross the cable, the link goes down and up, the driver comes again at 0, and all of it goes.
#[track_caller]
pub(crate) fn comes_and_goes(run: &Run) {
    let output = run.output().unwrap();
    assert!(output.file("ping").unwrap().contains("3 packets transmitted, 3 received"));
    assert!(output.file("received").unwrap().trim().parse::<u64>().unwrap() >= 3);
    check(run, "down.sysfs", &[("state", Some("1: DOWN")), ("hw_counters/rx_write_requests", Some("62"))]);
    check(run, "up.sysfs", &[("state", Some("4: ACTIVE"))]);
    let reloaded = statistics(&output.file("reloaded.ethtool").unwrap());
    assert!(reloaded.len() > 150 && reloaded.values().all(|value| *value == 0), "{reloaded:?}");
    check(run, "reloaded.sysfs", &[("hw_counters/rx_write_requests", Some("0")), ("counters/symbol_error", Some("0"))]);
    assert_eq!(output.file("unloaded").unwrap().trim(), "0");
    let left = output.file("left").unwrap();
    assert!(left.contains("rxe0") && !left.contains("fsnic") && !left.contains("mlx5_"), "{left}");
    let words = output.file("dmesg").unwrap();
    assert!(["WARNING", "BUG", "Oops", "leak"].iter().all(|word| !words.contains(word)), "{words}");
}

/// The events of a driver in trouble: health reports, a transmit queue that stands still, a receiver that cannot follow.
#[track_caller]
pub(crate) fn trouble(run: &Run) {
    let output = run.output().unwrap();
    let health: Value = serde_json::from_str(&output.file("health").unwrap()).unwrap();
    let of = |end: &str| {
        let reporter = &health["health"][format!("platform/{end}")][0];
        (reporter["state"].as_str(), reporter["error"].as_u64(), reporter["recover"].as_u64())
    };
    let expected = [(Some("healthy"), Some(1), Some(1)), (Some("error"), Some(1), Some(0))];
    assert_eq!(["fsnic.0", "fsnic.1"].map(of), expected, "{health}");
    let trace = output.file("trace").unwrap();
    let count = |words: &[&str]| trace.lines().filter(|line| words.iter().all(|word| line.contains(word))).count();
    assert_eq!(count(&["devlink_health_report: ", "dev_name=fsnic.0", "reporter_name=fw: firmware is unwell"]), 1);
    assert_eq!(count(&["devlink_health_report: ", "dev_name=fsnic.1", "reporter_name=fw: !firmware is gone"]), 1);
    assert!(count(&["net_dev_xmit_timeout: dev=fsnic0 driver=mlx5_core queue=0"]) > 0);
    for (file, packets) in [("stuck", 0), ("unstuck", 1), ("released", 1)] {
        let words = output.file(file).unwrap();
        assert!(words.contains(&format!(" {packets} received")), "{file}: {words}");
    }
    // 200 packets wait: the first three times the budget is used up.
    assert!(count(&["napi_poll: ", "for device fsnic1 work 64 budget 64"]) >= 3);
}

/// It can be another driver's, with other names and narrow port counters.
#[track_caller]
pub(crate) fn another_driver(run: &Run) {
    check(run, "other.driver", &[("driver", Some("bnxt_en"))]);
    let seen = statistics(&run.output().unwrap().file("other.ethtool").unwrap());
    let mut names: Vec<_> = (0..8).map(|p| format!("rx_pfc_ena_frames_pri{p}")).collect();
    names.push("rx_prio3_pause".to_owned());
    assert_eq!(seen.into_keys().collect::<Vec<_>>(), names);
    let narrow = [("counters/port_xmit_data", Some("4294967295")), ("counters/multicast_rcv_packets", None)];
    check(run, "other.sysfs", &narrow);
    check(run, "other.sysfs", &[("hw_counters/tx_cnp_pkts", Some("8")), ("hw_counters/np_cnp_sent", None)]);
}

//! What the sampler tells of packets beside their bytes: marks, regions, RoCEv2, the number of flows.

use std::collections::HashMap;
use std::fs;
use std::process::Command;
use std::time::{Duration, SystemTime};

use rustix::process::{Pid, Signal, kill_process};
use tests::command::fabricscope;
use tests::network::{Namespace, Pair, RIGHT, Running};

use crate::program::{Scratch, end, is_root, until};

/// Ethernet, IPv4, UDP.
const HEADERS: u64 = 42;

/// Rows of a sample file by the names of their columns; what is not measured is left out.
struct Samples(Vec<HashMap<String, f64>>);

impl Samples {
    fn sum(&self, column: &str) -> f64 {
        let values: Vec<f64> = self.0.iter().filter_map(|row| row.get(column).copied()).collect();
        assert!(!values.is_empty(), "{column} was not measured");
        values.iter().sum()
    }
}

/// Records `vb` in samples of 10 ms while `meanwhile` runs.
#[track_caller]
fn record(namespace: &Namespace, more: &[&str], meanwhile: impl FnOnce()) -> Samples {
    let scratch = Scratch::new();
    let [file, table] = ["x.parquet", "x.csv"].map(|name| scratch.inside(name));
    // Time enough to attach on a busy host; the recording says so if it was not.
    let start = SystemTime::now() + Duration::from_secs(6);
    let seconds = start.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let date = end(Command::new("date").args(["-u", "-d", &format!("@{seconds}"), "+%Y-%m-%dT%H:%M:%SZ"])).stdout;
    let mut command = namespace.command(&fabricscope());
    command.args(["bursts", "record", "--netdev", "vb", "--interval", "10ms", "--samples", "12000"]);
    command.args(["--start-at", date.trim(), "--output"]).arg(&file).args(more);
    let mut child = command.spawn().unwrap();
    until("the first sample", || (SystemTime::now() > start + Duration::from_millis(200)).then_some(()));
    meanwhile();
    // It keeps all that was until then.
    kill_process(i32::try_from(child.id()).ok().and_then(Pid::from_raw).unwrap(), Signal::INT).unwrap();
    assert!(child.wait().unwrap().success());
    let seen = end(Command::new(fabricscope()).args(["bursts", "convert"]).args([&file, &table]));
    assert!(seen.status.success(), "{}", seen.stderr);
    let text = fs::read_to_string(table).unwrap();
    let mut lines = text.lines().map(|line| line.split(','));
    let names: Vec<&str> = lines.next().unwrap().collect();
    let row = |line: std::str::Split<'_, char>| {
        let cells = names.iter().zip(line).filter_map(|(name, cell)| Some(((*name).to_owned(), cell.parse().ok()?)));
        cells.collect()
    };
    Samples(lines.map(row).collect())
}

/// A server for datagrams to these ports of the right one.
#[track_caller]
fn servers(pair: &Pair, ports: &[&str]) -> Vec<Running> {
    ports.iter().map(|port| pair.right.start(&["serve-udp", RIGHT, port]).unwrap()).collect()
}

/// A base transport header: opcode, destination queue pair, packet sequence number.
fn transport(opcode: u8, queue_pair: u32, sequence: u32) -> String {
    format!("{opcode:02x}00ffff00{queue_pair:06x}00{sequence:06x}")
}

/// An acknowledgement with this syndrome.
fn answer(syndrome: u8) -> String {
    format!("{}{syndrome:02x}000001", transport(0x11, 17, 1))
}

#[test]
fn marks_regions_and_rocev2_are_told() {
    if !is_root() {
        return;
    }
    let pair = Pair::new(false).unwrap();
    let servers = servers(&pair, &["5001", "4791"]);
    let plain = vec!["00".repeat(100); 10].join(",");
    let send = |port: &str, tos: &str, datagrams: &str| {
        pair.left.run(&["send-each", RIGHT, port, tos, datagrams]).unwrap();
    };
    let requests = [1, 2, 3, 2, 3, 4, 0xf0_0000].map(|sequence| transport(0x04, 17, sequence));
    // Another queue pair's, an unreliable datagram twice, a part of a long write that is sent again.
    let others = [
        transport(0x04, 18, 1),
        transport(0x64, 19, 1),
        transport(0x64, 19, 1),
        transport(0x07, 20, 9),
        transport(0x07, 20, 9),
    ];
    let answers = [0x1f, 0x60, 0x61, 0x62, 0x20, 0x3f].map(answer);
    let notices = [transport(0x81, 17, 0) + &"00".repeat(16)];
    let all = [&requests[..], &others, &answers, &notices].concat();
    let samples = record(&pair.right, &["--region", "10.99.0.0/16"], || {
        for tos in ["0", "1", "2", "3"] {
            send("5001", tos, &plain);
        }
        send("4791", "2", &all.join(","));
    });
    for server in servers {
        server.end().unwrap();
    }
    let roce: u64 = all.iter().map(|hex| hex.len() as u64 / 2 + HEADERS).sum();
    let expected = [
        ("rx_packets", 40 + all.len() as u64),
        ("rx_bytes", 40 * (100 + HEADERS) + roce),
        ("rx_ce_bytes", 10 * (100 + HEADERS)),
        ("rx_cross_region_bytes", 40 * (100 + HEADERS) + roce),
        ("rx_roce_packets", all.len() as u64),
        ("rx_roce_bytes", roce),
        ("rx_roce_cnps", 1),
        ("rx_roce_nak_sequence", 1),
        ("rx_roce_nak_other", 2),
        ("rx_roce_nak_rnr", 2),
        // A number that lies far back is a new connection's.
        ("rx_roce_retries", 3),
    ];
    for (column, expected) in expected {
        assert_eq!(samples.sum(column), expected as f64, "{column}");
    }
}

#[test]
fn peers_of_the_own_region_are_near() {
    if !is_root() {
        return;
    }
    let pair = Pair::new(false).unwrap();
    let servers = servers(&pair, &["5001"]);
    let samples = record(&pair.right, &["--region", "fd00::/8", "--region", "10.77.0.0/31"], || {
        pair.left.run(&["send-udp", RIGHT, "5001", "10", "100", "0"]).unwrap();
    });
    drop(servers);
    assert_eq!((samples.sum("rx_packets"), samples.sum("rx_cross_region_bytes")), (10.0, 0.0));
}

/// The standard error of linear counting, in flows: `sqrt(m (e^t - t - 1))` with `t = flows / m`
/// (Whang, Vander-Zanden, Taylor: A linear-time probabilistic counting algorithm, 1990).
fn error(flows: f64) -> f64 {
    let bits = 128.0;
    let load = flows / bits;
    (bits * (load.exp() - load - 1.0)).sqrt()
}

#[test]
fn flows_are_estimated_within_the_theorys_error() {
    const TIMES: &str = "15";
    if !is_root() {
        return;
    }
    let pair = Pair::new(false).unwrap();
    let servers = servers(&pair, &["5001"]);
    let counts = [1, 4, 12, 50, 200, 500];
    let samples = record(&pair.right, &[], || {
        for flows in counts {
            pair.left.run(&["send-flows", RIGHT, "5001", &flows.to_string(), TIMES]).unwrap();
        }
    });
    drop(servers);
    println!("flows  estimates in one sample (allowed: 5 standard errors)");
    for flows in counts.map(f64::from) {
        // Sends that fell into two samples say nothing.
        let whole = samples.0.iter().filter(|row| row["rx_packets"] == flows);
        let estimates: Vec<f64> = whole.map(|row| row["rx_flows"]).collect();
        println!("{flows:5}  {estimates:?}, {:.1}", 5.0 * error(flows));
        assert!(!estimates.is_empty(), "no sample holds all of {flows} flows");
        for estimate in estimates {
            // Estimates are whole numbers. Those of a count are of the same flows: they err together.
            assert!((estimate - flows).abs() <= 5.0 * error(flows) + 1.0, "{flows}: {estimate}");
        }
    }
}

//! Readings of small trees of files: what is read, what each odd file costs, what a change of devices does.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::Statistics;
use super::collector::Collector;
use super::filter::Filter;
use super::readout::Readout;
use crate::health::resources::Used;
use crate::host::roots::Roots;

mod sources;

/// A sysfs of our own, and what network devices answer.
struct Host {
    folder: TempDir,
}

/// Answers like a driver.
#[derive(Clone, Default)]
struct Answers {
    index: Option<u32>,
    priorities: Option<u8>,
    values: Vec<(&'static str, u64)>,
    fails: Option<i32>,
    /// What the RDMA device of number 3 answers, and its GUID.
    rdma: Option<(u64, Vec<(&'static str, u64)>)>,
}

impl Statistics for Answers {
    fn index(&self, _: &str) -> Option<u32> {
        self.index
    }

    fn driver(&self, _: &str) -> Option<String> {
        Some("mlx5_core".to_owned())
    }

    fn priorities(&self, _: &str) -> Option<u8> {
        self.priorities
    }

    fn resources(&self) -> Vec<Used> {
        let used = |device: &str| Used { device: device.into(), kind: "qp".into(), count: 3, limit: Some(64) };
        vec![used("mlx5_0"), used("filtered_0")]
    }

    fn rdma_index(&self, _: &str, node_guid: u64) -> Option<u32> {
        self.rdma.as_ref().filter(|(guid, _)| *guid == node_guid).map(|_| 3)
    }

    fn rdma(&self, index: u32, _: u32) -> io::Result<Vec<(String, u64)>> {
        let (_, values) = self.rdma.as_ref().filter(|_| index == 3).ok_or(io::ErrorKind::NotFound)?;
        Ok(values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect())
    }

    fn names(&self, _: &str) -> io::Result<Vec<String>> {
        Ok(self.values.iter().map(|(name, _)| (*name).to_owned()).collect())
    }

    fn values(&self, _: &str) -> io::Result<Vec<u64>> {
        match self.fails {
            Some(number) => Err(io::Error::from_raw_os_error(number)),
            None => Ok(self.values.iter().map(|(_, value)| *value).collect()),
        }
    }
}

impl Host {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, inside: &str) -> PathBuf {
        self.folder.path().join(inside)
    }

    fn write(&self, inside: &str, text: impl AsRef<[u8]>) {
        let path = self.path(inside);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A counter of a port.
    fn counter(&self, device: &str, name: &str, text: impl AsRef<[u8]>) {
        self.write(&format!("class/infiniband/{device}/ports/1/{name}"), text);
    }

    fn driver(&self, device: &str, driver: &str) {
        fs::create_dir_all(self.path(&format!("drivers/{driver}"))).unwrap();
        let folder = self.path(&format!("class/infiniband/{device}/device"));
        fs::create_dir_all(&folder).unwrap();
        symlink(self.path(&format!("drivers/{driver}")), folder.join("driver")).unwrap();
    }

    fn collector(&self, filter: Filter, answers: &Answers) -> Collector {
        Collector::new(Roots::at(self.folder.path(), "/proc"), filter, false, Box::new(answers.clone()))
    }

    fn read(&self) -> Readout {
        self.collector(Filter::default(), &Answers::default()).read(Instant::now())
    }
}

/// `device/port name priority=value`, one line each.
fn lines(readout: &Readout) -> Vec<String> {
    let line = |series: &super::readout::Series| {
        let port = series.place.port.map(|port| format!("/{port}")).unwrap_or_default();
        let priority = series.priority.map(|priority| format!(" {priority}")).unwrap_or_default();
        let saturated = if series.saturated { " saturated" } else { "" };
        format!("{}{port} {}{priority}={}{saturated}", series.place.device, series.row.name, series.value)
    };
    readout.series.iter().map(line).collect()
}

fn failures(readout: &Readout, device: &str) -> Vec<(&'static str, u64)> {
    let subject = readout.subjects.iter().find(|subject| subject.name == device);
    subject.map(|subject| subject.failures.clone()).unwrap_or_default()
}

#[test]
fn nothing_on_the_host_is_no_error() {
    let readout = Host::new().read();
    assert!(readout.subjects.is_empty() && readout.series.is_empty());
}

#[test]
fn bytes_are_words_of_four_and_widths_are_known() {
    let host = Host::new();
    host.driver("mlx5_0", "mlx5_core");
    host.counter("mlx5_0", "counters/port_rcv_data", "1000\n");
    host.counter("mlx5_0", "counters/link_downed", "255\n");
    host.counter("mlx5_0", "counters/excessive_buffer_overrun_errors", "15\n");
    host.counter("mlx5_0", "counters/port_xmit_wait", "4294967295\n");
    host.counter("mlx5_0", "hw_counters/out_of_sequence", "7\n");
    host.counter("mlx5_0", "hw_counters/lifespan", "10\n");
    host.counter("mlx5_0", "hw_counters/what_nobody_knows", "9\n");
    assert_eq!(
        lines(&host.read()),
        [
            "mlx5_0/1 rdma_received_bytes=4000",
            "mlx5_0/1 rdma_out_of_sequence_packets=7",
            "mlx5_0/1 rdma_send_wait_raw=4294967295 saturated",
            "mlx5_0/1 rdma_link_down_events=255 saturated",
            "mlx5_0/1 rdma_buffer_overrun_events=15 saturated",
        ]
    );
}

#[test]
fn one_odd_file_costs_itself_and_is_counted_by_its_reason() {
    let host = Host::new();
    host.driver("mlx5_0", "mlx5_core");
    host.counter("mlx5_0", "counters/port_rcv_data", "5\n");
    host.counter("mlx5_0", "counters/port_xmit_data", "N/A (no PMA)\n");
    host.counter("mlx5_0", "counters/symbol_error", [0xff, 0xfe, 0, 1]);
    host.counter("mlx5_0", "counters/port_rcv_errors", "");
    host.counter("mlx5_0", "counters/port_rcv_packets", vec![b'7'; 1 << 20]);
    fs::create_dir_all(host.path("class/infiniband/mlx5_0/ports/1/counters/link_downed")).unwrap();
    let folder = host.path("class/infiniband/mlx5_0/ports/1/counters");
    symlink("port_xmit_packets", folder.join("port_xmit_packets")).unwrap();
    symlink("/no/such/file", folder.join("VL15_dropped")).unwrap();
    // A process's memory has nothing at address 0.
    symlink("/proc/self/mem", folder.join("port_xmit_discards")).unwrap();
    symlink("..", folder.join("round")).unwrap();
    let readout = host.read();
    assert_eq!(lines(&readout), ["mlx5_0/1 rdma_received_bytes=20"]);
    let expected = [("eio", 1), ("gone", 1), ("not_a_file", 2), ("not_a_number", 3), ("not_kept", 1)];
    assert_eq!(failures(&readout, "mlx5_0"), expected);
    assert_eq!(readout.subjects[0].quarantined, None, "odd files are no device error");
}

#[test]
fn a_pipe_in_the_place_of_a_counter_holds_nobody_up() {
    let host = Host::new();
    host.counter("mlx5_0", "counters/port_rcv_data", "5\n");
    let pipe = host.path("class/infiniband/mlx5_0/ports/1/counters/port_xmit_data");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    assert_eq!(failures(&host.read(), "mlx5_0"), [("not_a_file", 1)]);
}

#[test]
fn a_device_that_answers_errors_is_left_alone_and_comes_back() {
    let host = Host::new();
    let folder = host.path("class/infiniband/mlx5_0/ports/1/counters");
    fs::create_dir_all(&folder).unwrap();
    for name in ["port_rcv_data", "port_xmit_data", "port_rcv_packets"] {
        symlink("/proc/self/mem", folder.join(name)).unwrap();
    }
    host.counter("mlx5_1", "counters/port_rcv_data", "1\n");
    let mut collector = host.collector(Filter::default(), &Answers::default());
    let now = Instant::now();
    let readout = collector.read(now);
    assert_eq!(lines(&readout), ["mlx5_1/1 rdma_received_bytes=4"]);
    let (why, left) = readout.subjects[0].quarantined.clone().expect("left alone");
    assert!(why.contains("EIO") && left == Duration::from_secs(60), "{why}");
    // Not asked again until its time is over.
    let readout = collector.read(now + Duration::from_secs(59));
    assert_eq!((failures(&readout, "mlx5_0"), readout.counters), (vec![("eio", 3)], 1));
    for name in ["port_rcv_data", "port_xmit_data", "port_rcv_packets"] {
        fs::remove_file(folder.join(name)).unwrap();
        fs::write(folder.join(name), "2\n").unwrap();
    }
    let readout = collector.read(now + Duration::from_secs(61));
    assert_eq!(readout.subjects[0].quarantined, None);
    assert_eq!(lines(&readout).len(), 4, "{:?}", lines(&readout));
}

#[test]
fn a_counter_that_fails_is_asked_more_and_more_seldom() {
    let host = Host::new();
    host.counter("mlx5_0", "counters/port_rcv_data", "1\n");
    host.counter("mlx5_0", "counters/symbol_error", "N/A (no PMA)\n");
    let mut collector = host.collector(Filter::default(), &Answers::default());
    let asked: u64 =
        (0..200).map(|_| collector.read(Instant::now())).map(|r| failures(&r, "mlx5_0")[0].1).max().unwrap();
    assert!((5..=12).contains(&asked), "{asked}");
}

#[test]
fn wraps_go_on_and_a_device_made_anew_begins_again() {
    let host = Host::new();
    host.driver("mlx5_0", "mlx5_core");
    let name = "hw_counters/out_of_sequence";
    host.counter("mlx5_0", name, "4294967290\n");
    let mut collector = host.collector(Filter::default(), &Answers::default());
    let first = collector.read(Instant::now()).series[0].clone();
    host.counter("mlx5_0", name, "10\n");
    let second = collector.read(Instant::now()).series[0].clone();
    assert_eq!((second.value, second.epoch), (4_294_967_306, first.epoch));
    fs::rename(host.path("class/infiniband/mlx5_0"), host.path("away")).unwrap();
    assert!(collector.read(Instant::now()).series.is_empty());
    host.driver("mlx5_0", "mlx5_core");
    host.counter("mlx5_0", name, "3\n");
    let third = collector.read(Instant::now()).series[0].clone();
    assert_eq!(third.value, 3);
    assert_ne!(third.epoch, second.epoch);
}

#[test]
fn a_reset_of_one_counter_says_that_those_beside_it_have_not_wrapped() {
    let host = Host::new();
    host.driver("mlx5_0", "mlx5_core");
    host.counter("mlx5_0", "hw_counters/out_of_sequence", "4294967290\n");
    host.counter("mlx5_0", "hw_counters/np_cnp_sent", "900\n");
    let mut collector = host.collector(Filter::default(), &Answers::default());
    collector.read(Instant::now());
    host.counter("mlx5_0", "hw_counters/out_of_sequence", "10\n");
    host.counter("mlx5_0", "hw_counters/np_cnp_sent", "1\n");
    let expected = ["mlx5_0/1 rdma_cnp_sent_packets=1", "mlx5_0/1 rdma_out_of_sequence_packets=10"];
    assert_eq!(lines(&collector.read(Instant::now())), expected);
}

#[test]
fn what_is_filtered_out_is_not_opened() {
    let host = Host::new();
    for device in ["mlx5_0", "mlx5_1"] {
        host.counter(device, "counters/port_rcv_data", "1\n");
        host.driver(device, if device == "mlx5_0" { "mlx5_core" } else { "ice" });
    }
    host.write("class/infiniband/mlx5_0/ports/2/counters/port_rcv_data", "2\n");
    let all = ["mlx5_0/1 rdma_received_bytes=4", "mlx5_0/2 rdma_received_bytes=8", "mlx5_1/1 rdma_received_bytes=4"];
    let rows: [(Filter, &[usize]); 4] = [
        (Filter::default(), &[0, 1, 2]),
        (Filter { devices: "!mlx5_1".parse().unwrap(), ..Filter::default() }, &[0, 1]),
        (Filter { drivers: "irdma".parse().unwrap(), ..Filter::default() }, &[2]),
        (Filter { ports: vec![2], ..Filter::default() }, &[1]),
    ];
    for (filter, expected) in rows {
        let found = lines(&host.collector(filter.clone(), &Answers::default()).read(Instant::now()));
        assert_eq!(found, expected.iter().map(|index| all[*index]).collect::<Vec<_>>(), "{filter:?}");
    }
}

/// A network device of an RDMA port.
fn netdev(host: &Host, name: &str) {
    host.counter("mlx5_0", "counters/port_rcv_data", "1\n");
    host.counter("mlx5_0", "gids/0", "fe80:0000:0000:0000:0000:0000:0000:0001\n");
    host.counter("mlx5_0", "gid_attrs/ndevs/0", format!("{name}\n"));
    host.write(&format!("class/net/{name}/ifindex"), "7\n");
    host.write(&format!("class/net/{name}/statistics/rx_bytes"), "12\n");
    host.write(&format!("class/net/{name}/carrier_changes"), "3\n");
}

#[test]
fn statistics_of_the_port_s_network_device_are_read_by_name_and_priority() {
    let host = Host::new();
    netdev(&host, "eth0");
    let values = vec![("rx_prio3_pause", 5), ("rx_prio3_pause_duration", 1_500_000), ("tx_prio3_pause", 0), ("x", 1)];
    let answers = Answers { index: Some(7), priorities: Some(8), values, ..Answers::default() };
    let readout = host.collector(Filter::default(), &answers).read(Instant::now());
    let expected = [
        "mlx5_0/1 rdma_received_bytes=4",
        "eth0 nic_received_bytes=12",
        "eth0 pfc_received_pause_frames 3=5",
        "eth0 pfc_sent_pause_frames 3=0",
        "eth0 pfc_received_pause_seconds 3=1500000",
        "eth0 nic_carrier_change_events=3",
    ];
    assert_eq!(lines(&readout), expected);
    let subject = &readout.subjects[1];
    assert_eq!((subject.priorities, subject.port_of.clone()), (Some(8), Some(("mlx5_0".to_owned(), 1))));
    let seconds = readout.series.iter().find(|series| series.row.name == "pfc_received_pause_seconds").unwrap();
    assert!((seconds.number() - 1.5).abs() < 1e-9);
}

#[test]
fn the_kernel_is_only_asked_about_the_very_device_the_tree_shows() {
    let host = Host::new();
    netdev(&host, "eth0");
    for index in [None, Some(8)] {
        let answers = Answers { index, values: vec![("rx_prio3_pause", 5)], ..Answers::default() };
        let found = lines(&host.collector(Filter::default(), &answers).read(Instant::now()));
        assert!(!found.iter().any(|line| line.contains("pause")), "{found:?}");
    }
}

#[test]
fn hardware_counters_come_from_the_kernel_where_the_device_is_the_same() {
    let host = Host::new();
    host.driver("mlx5_0", "mlx5_core");
    host.write("class/infiniband/mlx5_0/node_guid", "b8ce:f603:00ab:cdef\n");
    host.counter("mlx5_0", "hw_counters/out_of_sequence", "1\n");
    let values = vec![("out_of_sequence", 2), ("cc_rx_cnp_pkts", 3)];
    let asked = ["mlx5_0/1 rdma_cnp_handled_packets=3", "mlx5_0/1 rdma_out_of_sequence_packets=2"];
    let rows: [(u64, &[&str]); 2] =
        [(0xb8ce_f603_00ab_cdef, &asked), (1, &["mlx5_0/1 rdma_out_of_sequence_packets=1"])];
    for (guid, expected) in rows {
        let answers = Answers { rdma: Some((guid, values.clone())), ..Answers::default() };
        let readout = host.collector(Filter::default(), &answers).read(Instant::now());
        assert_eq!(lines(&readout), expected);
    }
}

#[test]
fn statistics_that_fail_cost_themselves() {
    let host = Host::new();
    netdev(&host, "eth0");
    for (number, expected) in [(libc::EOPNOTSUPP, vec![]), (libc::EBUSY, vec![("other", 1)])] {
        let answers = Answers { index: Some(7), fails: Some(number), ..Answers::default() };
        let readout = host.collector(Filter::default(), &answers).read(Instant::now());
        assert_eq!((lines(&readout).len(), failures(&readout, "eth0")), (3, expected));
    }
}

#[test]
fn names_that_break_lines_are_only_names() {
    let host = Host::new();
    let device = "mlx\n5\"_0";
    host.counter(device, "counters/port_rcv_data", "1\n");
    host.counter(device, "counters/odd\nname", "1\n");
    let mut collector =
        Collector::new(Roots::at(host.folder.path(), "/proc"), Filter::default(), true, Box::new(Answers::default()));
    let readout = collector.read(Instant::now());
    assert_eq!(readout.series[0].place.device, device);
    assert_eq!(readout.shown.len(), 2);
    assert!(Path::new(&readout.shown[0].name).is_relative());
}

//! Sources beside files and `ethtool -S`: what is taken first, what fails alone, what a filter leaves out.

use super::*;
use crate::counters::carrier::Carrier;
use crate::counters::netlink::devlink::Reporter;
use crate::counters::netlink::ethtool::Group;
use crate::counters::netlink::rdma::Bound;

/// A network device that answers by netlink too.
#[derive(Clone)]
struct Nic {
    plain: Answers,
    pause: Result<Vec<(&'static str, u64)>, i32>,
    carrier: Carrier,
}

impl Statistics for Nic {
    fn index(&self, netdev: &str) -> Option<u32> {
        self.plain.index(netdev)
    }

    fn driver(&self, netdev: &str) -> Option<String> {
        self.plain.driver(netdev)
    }

    fn priorities(&self, netdev: &str) -> Option<u8> {
        self.plain.priorities(netdev)
    }

    fn resources(&self) -> Vec<Used> {
        vec![]
    }

    fn names(&self, netdev: &str) -> io::Result<Vec<String>> {
        self.plain.names(netdev)
    }

    fn values(&self, netdev: &str) -> io::Result<Vec<u64>> {
        self.plain.values(netdev)
    }

    fn rdma_index(&self, _: &str, _: u64) -> Option<u32> {
        Some(3)
    }

    fn rdma(&self, _: u32, _: u32) -> io::Result<Vec<(String, u64)>> {
        Ok(vec![])
    }

    fn bound(&self, index: u32) -> Vec<Bound> {
        vec![Bound { port: 1, id: index, pid: None, queue_pairs: vec![17], values: vec![] }]
    }

    fn standard(&self, _: &str, group: Group) -> io::Result<Vec<(&'static str, u64)>> {
        match group {
            Group::Pause => self.pause.clone().map_err(io::Error::from_raw_os_error),
            Group::Ethernet => Ok(vec![("eth-phy-SymbolErrorDuringCarrier", 41), ("a-name-of-next-year", 1)]),
            _ => Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP)),
        }
    }

    fn carrier(&self, _: u32) -> io::Result<Carrier> {
        Ok(self.carrier)
    }

    fn reporters(&self) -> Vec<Reporter> {
        let reporter = |device: &str| Reporter {
            bus: "pci".into(),
            device: device.into(),
            port: None,
            name: "fw".into(),
            healthy: Some(true),
            errors: 0,
            recoveries: 0,
            dumped_ns: None,
        };
        vec![reporter("0000:3b:00.0"), reporter("0000:5e:00.0")]
    }
}

fn host() -> (Host, Nic) {
    let host = Host::new();
    host.write("class/net/eth0/ifindex", "7\n");
    host.write("class/net/eth0/carrier_changes", "9\n");
    fs::create_dir_all(host.path("class/net/eth0/statistics")).unwrap();
    host.write("devices/0000:3b:00.0/vendor", "");
    symlink(host.path("devices/0000:3b:00.0"), host.path("class/net/eth0/device")).unwrap();
    let values = vec![("rx_global_pause", 7), ("rx_symbol_err_phy", 8)];
    let plain = Answers { index: Some(7), values, ..Answers::default() };
    let carrier = Carrier { up: true, ups: 5, downs: u32::MAX };
    (host, Nic { plain, pause: Ok(vec![("rx_pause_frames", 22)]), carrier })
}

fn read(host: &Host, filter: Filter, nic: &Nic) -> Readout {
    Collector::new(Roots::at(host.folder.path(), "/proc"), filter, false, Box::new(nic.clone())).read(Instant::now())
}

#[test]
fn what_the_kernel_defines_comes_before_the_driver_s_own_names() {
    let (host, mut nic) = host();
    let expected = [
        "eth0 nic_received_pause_frames=22",
        "eth0 nic_carrier_down_events=4294967295",
        "eth0 nic_carrier_up_events=5",
        "eth0 nic_carrier_change_events=9",
        "eth0 nic_symbol_error_packets=41",
    ];
    let readout = read(&host, Filter::default(), &nic);
    assert_eq!(lines(&readout), expected);
    assert!(failures(&readout, "eth0").is_empty(), "what a driver does not have is no failure");
    nic.pause = Err(libc::EIO);
    let readout = read(&host, Filter::default(), &nic);
    assert_eq!(lines(&readout)[0], "eth0 nic_received_pause_frames=7", "the driver's own is left");
    assert_eq!((lines(&readout).len(), failures(&readout, "eth0")), (5, vec![("eio", 1)]));
    nic.pause = Err(libc::EOPNOTSUPP);
    assert!(failures(&read(&host, Filter::default(), &nic), "eth0").is_empty());
}

#[test]
fn reporters_are_those_of_the_devices_that_are_read() {
    let (host, nic) = host();
    let reporters = |filter| {
        let reporters = read(&host, filter, &nic).further.reporters;
        reporters.into_iter().map(|reporter| reporter.device).collect::<Vec<_>>()
    };
    assert_eq!(reporters(Filter::default()), ["0000:3b:00.0", "0000:5e:00.0"]);
    let filter = |devices: &str| Filter { devices: devices.parse().unwrap(), ..Filter::default() };
    assert_eq!(reporters(filter("eth*")), ["0000:3b:00.0"]);
    assert!(reporters(filter("mlx5_*")).is_empty());
}

#[test]
fn counters_of_queue_pairs_are_asked_for_where_they_are_wanted() {
    let (host, nic) = host();
    host.driver("mlx5_0", "mlx5_core");
    host.write("class/infiniband/mlx5_0/node_guid", "0000:0000:0000:0001\n");
    fs::create_dir_all(host.path("class/infiniband/mlx5_0/ports/1")).unwrap();
    let bound = |wanted, ports: &[u32]| {
        let filter = Filter { ports: ports.to_vec(), ..Filter::default() };
        let collector = Collector::new(Roots::at(host.folder.path(), "/proc"), filter, false, Box::new(nic.clone()));
        let mut collector = if wanted { collector.with_queue_pairs() } else { collector };
        let bound = collector.read(Instant::now()).further.bound;
        bound.into_iter().map(|(device, bound)| (device, bound.id)).collect::<Vec<_>>()
    };
    assert_eq!(bound(true, &[]), [("mlx5_0".to_owned(), 3)]);
    assert!(bound(false, &[]).is_empty() && bound(true, &[2]).is_empty());
}

//! RDMA devices as read from fixture trees that look like sysfs does on real hosts.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use super::*;
use crate::host::gid::GidType;

/// A sysfs that a test fills file by file.
struct Tree(tempfile::TempDir);

impl Tree {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn file(&self, path: &str, bytes: impl AsRef<[u8]>) -> &Self {
        fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        fs::write(self.path(path), bytes).unwrap();
        self
    }

    fn link(&self, path: &str, target: &str) -> &Self {
        fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        fs::create_dir_all(self.path(target)).unwrap();
        symlink(self.path(target), self.path(path)).unwrap();
        self
    }

    fn read(&self) -> RdmaFacts {
        RdmaFacts::read(&Roots::at(self.0.path(), "/nonexistent"))
    }
}

/// A dual-port ConnectX with RoCE addresses on port 1 and a network device each.
fn connectx(tree: &Tree) {
    let pci = "devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0";
    let dev = "class/infiniband/mlx5_0";
    tree.link(&format!("{dev}/device"), pci)
        .link(&format!("{pci}/driver"), "bus/pci/drivers/mlx5_core")
        .file(&format!("{pci}/net/eth0/dev_port"), "0\n")
        .file(&format!("{pci}/net/eth1/dev_port"), "1\n")
        .file(&format!("{dev}/fw_ver"), "28.39.1002\n")
        .file(&format!("{dev}/node_guid"), "b8ce:f603:00ab:cdef\n")
        .file(&format!("{dev}/node_type"), "1: CA\n")
        .file(&format!("{dev}/node_desc"), "host7 mlx5_0\n");
    let port = format!("{dev}/ports/1");
    tree.file(&format!("{port}/state"), "4: ACTIVE\n")
        .file(&format!("{port}/phys_state"), "5: LinkUp\n")
        .file(&format!("{port}/rate"), "400 Gb/sec (4X NDR)\n")
        .file(&format!("{port}/link_layer"), "Ethernet\n");
    let rows = [
        (0, "fe80:0000:0000:0000:0a1b:2cff:fe3d:4e5f", "IB/RoCE v1", "eth0"),
        (1, "fe80:0000:0000:0000:0a1b:2cff:fe3d:4e5f", "RoCE v2", "eth0"),
        (3, "0000:0000:0000:0000:0000:ffff:0a00:0001", "RoCE v2", "bond0"),
    ];
    for (index, gid, kind, netdev) in rows {
        tree.file(&format!("{port}/gids/{index}"), format!("{gid}\n"))
            .file(&format!("{port}/gid_attrs/types/{index}"), format!("{kind}\n"))
            .file(&format!("{port}/gid_attrs/ndevs/{index}"), format!("{netdev}\n"));
    }
    tree.file(&format!("{port}/gids/2"), "0000:0000:0000:0000:0000:0000:0000:0000\n");
    tree.file(&format!("{dev}/ports/2/state"), "1: DOWN\n");
}

#[test]
fn a_roce_device_is_read_whole() {
    let tree = Tree::new();
    connectx(&tree);
    let facts = tree.read();
    let device = facts.device("mlx5_0").unwrap();
    assert_eq!(device.driver.as_deref(), Some("mlx5_ib"));
    assert_eq!(device.pci.as_deref(), Some("0000:3b:00.0"));
    assert_eq!(device.firmware.as_deref(), Some("28.39.1002"));
    assert_eq!(device.node_guid.as_deref(), Some("b8ce:f603:00ab:cdef"));
    assert!(!device.software);

    let port = device.port(1).unwrap();
    assert_eq!(port.is_active(), Some(true));
    assert_eq!(port.phys_state.as_deref(), Some("LinkUp"));
    assert_eq!(port.rate.as_deref(), Some("400 Gb/sec (4X NDR)"));
    assert_eq!(port.netdevs, ["eth0", "bond0"]);
    assert_eq!(device.port(2).unwrap().is_active(), Some(false));
    assert_eq!(device.port(2).unwrap().netdevs, ["eth1"], "no GID names it: by dev_port");
    assert_eq!(device.port(3), None);
}

#[test]
fn the_gid_table_answers_by_index_and_by_address() {
    let tree = Tree::new();
    connectx(&tree);
    let facts = tree.read();
    let gids = &facts.devices[0].ports[0].gids;
    assert_eq!(gids.len(), 3);
    assert_eq!(gids.at(2), None, "an empty entry is not in use");
    assert_eq!(gids.at(7), None, "past the table");
    let v4 = gids.at(3).unwrap();
    assert!(v4.is_ipv4());
    assert_eq!(v4.kind, Some(GidType::RoceV2));
    let same: Vec<u32> = gids.with_address(gids.at(0).unwrap().gid).map(|gid| gid.index).collect();
    assert_eq!(same, [0, 1]);
}

#[test]
fn software_devices_are_told_apart() {
    let tree = Tree::new();
    // rxe of today: no `device`, the network device in `parent`.
    tree.file("class/infiniband/rxe0/parent", "veth0\n")
        .file("class/infiniband/rxe0/node_type", "1: CA\n")
        .file("class/infiniband/rxe0/fw_ver", "\n")
        .file("class/infiniband/rxe0/ports/1/state", "4: ACTIVE\n");
    // rxe of older kernels stood on the NIC's bus device as well.
    tree.file("class/infiniband/rxe1/parent", "eth0\n")
        .link("class/infiniband/rxe1/device", "devices/pci0000:00/0000:00:03.0")
        .link("devices/pci0000:00/0000:00:03.0/driver", "bus/pci/drivers/virtio-pci");
    tree.file("class/infiniband/siw0/node_desc", "Software iWARP stack\n")
        .file("class/infiniband/siw0/node_type", "4: RNIC\n")
        .file("class/infiniband/siw0/ports/1/link_layer", "Ethernet\n")
        .file("class/infiniband/siw0/ports/1/gids/0", "6640:4e8c:aad9:0000:0000:0000:0000:0000\n")
        .file("class/infiniband/siw0/ports/1/gid_attrs/types/0", "IB/RoCE v1\n")
        .file("class/infiniband/siw0/ports/1/gid_attrs/ndevs/0", "veth1\n");
    // A renamed description: still virtual and still iWARP.
    tree.file("class/infiniband/siw1/node_desc", "host7 siw1\n").file("class/infiniband/siw1/node_type", "4: RNIC\n");
    // Older kernels do not say which network device it stands on; its address does.
    tree.file("class/infiniband/siw1/ports/1/gids/0", "0291:70ff:fe11:0000:0000:0000:0000:0000\n")
        .file("class/infiniband/siw1/ports/1/gid_attrs/types/0", "IB/RoCE v1\n")
        .file("class/net/veth2/address", "02:91:70:ff:fe:11\n")
        .file("class/net/veth3/address", "02:91:70:ff:fe:12\n");
    let facts = tree.read();
    for (name, driver) in [("rxe0", "rdma_rxe"), ("rxe1", "rdma_rxe"), ("siw0", "siw"), ("siw1", "siw")] {
        let device = facts.device(name).unwrap();
        assert_eq!(device.driver.as_deref(), Some(driver), "{name}");
        assert!(device.software, "{name}");
        assert_eq!(device.pci, None, "{name}");
    }
    let siw = facts.device("siw0").unwrap();
    assert_eq!(siw.protocol(&siw.ports[0]), Some("iWARP"));
    assert_eq!(siw.ports[0].gids.at(0).unwrap().kind, Some(GidType::Iwarp), "the kernel says RoCE v1");
    assert_eq!(siw.ports[0].netdevs, ["veth1"]);
    assert_eq!(facts.device("siw1").unwrap().ports[0].netdevs, ["veth2"]);
    tree.file("class/net/veth2.7/address", "02:91:70:ff:fe:11\n");
    assert!(tree.read().device("siw1").unwrap().ports[0].netdevs.is_empty(), "two have the address");
    assert_eq!(facts.device("rxe0").unwrap().firmware, None);
    assert_eq!(facts.device("rxe0").unwrap().ports[0].netdevs, ["veth0"]);
}

#[test]
fn an_auxiliary_parent_leads_to_its_pci_function() {
    let tree = Tree::new();
    let auxiliary = "devices/pci0000:00/0000:17:00.1/ice.roce.0";
    tree.link("class/infiniband/irdma0/device", auxiliary).link(&format!("{auxiliary}/driver"), "bus/pci/drivers/ice");
    let facts = tree.read();
    assert_eq!(facts.devices[0].pci.as_deref(), Some("0000:17:00.1"));
    assert_eq!(facts.devices[0].driver.as_deref(), Some("irdma"));
}

#[test]
fn an_unknown_bus_driver_keeps_its_own_name() {
    let tree = Tree::new();
    tree.link("class/infiniband/new_0/device", "devices/platform/new.0")
        .link("devices/platform/new.0/driver", "bus/platform/drivers/newnic");
    let facts = tree.read();
    assert_eq!(facts.devices[0].driver.as_deref(), Some("newnic"));
    assert_eq!(facts.devices[0].pci, None);
}

#[test]
fn an_open_file_leads_to_its_device() {
    let tree = Tree::new();
    tree.file("class/infiniband_verbs/abi_version", "6\n")
        .file("class/infiniband_verbs/uverbs0/dev", "231:192\n")
        .file("class/infiniband_verbs/uverbs0/ibdev", "mlx5_0\n")
        .file("class/infiniband_verbs/uverbs1/dev", "231:193\n")
        .file("class/infiniband_verbs/uverbs1/ibdev", "mlx5_1\n")
        .file("class/infiniband_verbs/uverbs2/dev", "not a number\n")
        .file("class/infiniband_verbs/uverbs2/ibdev", "mlx5_2\n")
        .file("class/infiniband_verbs/uverbs3/dev", "231:195\n")
        .file("class/misc/rdma_cm/dev", "10:122\n");
    let facts = tree.read();
    let device_of = |dev| facts.device_of(DeviceNumber::from_kernel(dev));
    assert_eq!(device_of(0x0e70_00c0), Some("mlx5_0"));
    assert_eq!(device_of(0x0e70_00c1), Some("mlx5_1"));
    assert_eq!(device_of(0x0e70_00c3), None, "a node without a device behind it");
    assert_eq!(facts.uverbs.len(), 2);
    assert_eq!(facts.rdma_cm, DeviceNumber::new(10, 122));
}

#[test]
fn a_host_without_rdma_is_empty() {
    assert_eq!(Tree::new().read(), RdmaFacts::default());
}

#[test]
fn odd_content_costs_only_its_attribute() {
    let tree = Tree::new();
    let port = "class/infiniband/odd_0/ports/1";
    tree.file("class/infiniband/odd_0/fw_ver", b"\xff\xfe\x00")
        .file("class/infiniband/odd_0/node_guid", "")
        .file("class/infiniband/odd_0/ports/x/state", "4: ACTIVE\n")
        .file(&format!("{port}/state"), "ACTIVE")
        .file(&format!("{port}/phys_state"), "5:")
        .file(&format!("{port}/rate/in_the_way"), "a directory where a file should be")
        .file(&format!("{port}/gids/0"), "fe80::g")
        .file(&format!("{port}/gids/nine"), "fe80::1")
        .file(&format!("{port}/gids/99999999999"), "fe80::1")
        .file(&format!("{port}/gids/4"), "fe80::1\n")
        .file(&format!("{port}/gid_attrs/types/4"), "RoCE v3\n");
    tree.file("class/infiniband/a_file", "where a directory should be");
    let facts = tree.read();
    let device = facts.device("odd_0").unwrap();
    assert_eq!(device.driver, None);
    assert_eq!(device.node_guid, None);
    assert_eq!(device.ports.len(), 1);
    let port = &device.ports[0];
    assert_eq!(port.is_active(), Some(true));
    assert_eq!(port.phys_state.as_deref(), Some("5:"));
    assert_eq!(port.rate, None);
    assert_eq!(port.gids.len(), 1);
    assert_eq!(port.gids.at(4).unwrap().kind, None);
    assert_eq!(port.gids.at(4).unwrap().netdev, None);
    assert_eq!(facts.device("a_file").unwrap().ports, []);
}

//! What a device belongs to, from sysfs: the physical function of a virtual one, a bond and its members, its place on
//! the bus. Only links and names are read, nothing of the device itself.

use std::path::Path;

use super::carrier::Change;
use super::readout::Kind;
use crate::host::rdma::pci_address;
use crate::host::read;
use crate::host::sriov::VirtualFunction;

/// What a device belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Relations {
    /// Where it stands on its bus, such as `0000:3b:00.0`.
    pub(crate) bus: Option<String>,
    /// The PCI function that it is or stands on.
    pub(crate) pci: Option<String>,
    /// It is a virtual function.
    pub(crate) function: Option<VirtualFunction>,
    /// It is a member of this bond.
    pub(crate) bond: Option<String>,
    /// It is a bond with these members.
    pub(crate) members: Vec<String>,
    /// It is in this network namespace, which is not the agent's.
    pub(crate) namespace: Option<String>,
    /// How its link changed in the last ten minutes, the oldest first; absent where nobody listens.
    pub(crate) changes: Option<Vec<Change>>,
}

impl Relations {
    /// Those of a device by its folder in `class/infiniband` or `class/net`.
    pub(super) fn read(device: &Path, kind: Kind) -> Self {
        let bus = read::link_name(&device.join("device"));
        let pci = pci_address(device);
        let class = match kind {
            Kind::Rdma => "infiniband",
            Kind::Netdev => "net",
        };
        let function = VirtualFunction::of(device, class);
        let master = read::link_name(&device.join("master")).filter(|_| device.join("master/bonding").exists());
        let members = read::text(&device.join("bonding/slaves")).unwrap_or_default();
        Self {
            bus,
            pci,
            function,
            bond: master,
            members: members.split_whitespace().map(str::to_owned).collect(),
            namespace: None,
            changes: None,
        }
    }
}

impl Relations {
    /// Whether this bus function is the device's own, or the one that it stands on.
    pub(crate) fn stands_on(&self, bus: &str) -> bool {
        self.bus.as_deref() == Some(bus) || self.pci.as_deref() == Some(bus)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_device_below_a_pci_function_stands_on_both() {
        let host = tempfile::tempdir().unwrap();
        let at = |inside: &str| host.path().join(inside);
        fs::create_dir_all(at("0000:3b:00.3/mlx5_core.rdma.4")).unwrap();
        fs::create_dir_all(at("mlx5_2")).unwrap();
        symlink(at("0000:3b:00.3/mlx5_core.rdma.4"), at("mlx5_2/device")).unwrap();
        let found = Relations::read(&at("mlx5_2"), Kind::Rdma);
        assert!(found.stands_on("mlx5_core.rdma.4") && found.stands_on("0000:3b:00.3"), "{found:?}");
        assert!(!found.stands_on("0000:3b:00.0") && found.function.is_none(), "{found:?}");
    }

    #[test]
    fn a_bond_and_its_members_name_each_other() {
        let host = tempfile::tempdir().unwrap();
        let at = |inside: &str| host.path().join(inside);
        fs::create_dir_all(at("bond0/bonding")).unwrap();
        fs::write(at("bond0/bonding/slaves"), "eth0 eth1\n").unwrap();
        for name in ["eth0", "veth0", "br0"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        symlink("../bond0", at("eth0/master")).unwrap();
        symlink("../br0", at("veth0/master")).unwrap();
        let of = |name: &str| Relations::read(&at(name), Kind::Netdev);
        assert_eq!(of("eth0").bond.as_deref(), Some("bond0"));
        assert_eq!(of("bond0").members, ["eth0", "eth1"]);
        assert_eq!((of("veth0"), of("no-such-device")), (Relations::default(), Relations::default()));
    }
}

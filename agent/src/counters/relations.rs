//! What a device belongs to, from sysfs: the physical function of a virtual one, a bond and its members, its place on
//! the bus. Only links and names are read, nothing of the device itself.

use std::path::{Path, PathBuf};

use super::carrier::Change;
use super::readout::Kind;
use crate::host::rdma::pci_folder;
use crate::host::read;

/// A virtual function (SR-IOV).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VirtualFunction {
    /// The device of its physical function, or that one's address on the bus if it has none or several.
    pub(crate) physical: String,
    /// Which one of that function's, from 0.
    pub(crate) number: u32,
}

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
        let folder = pci_folder(device);
        let pci = folder.as_deref().and_then(name);
        let function = folder.and_then(|folder| function(&folder, kind));
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

fn name(path: &Path) -> Option<String> {
    Some(path.file_name()?.to_str()?.to_owned())
}

/// What a PCI function says of being a virtual one.
fn function(folder: &Path, kind: Kind) -> Option<VirtualFunction> {
    let physical: PathBuf = folder.join("physfn").canonicalize().ok()?;
    let own = name(folder)?;
    let number = |entry: String| {
        let number = entry.strip_prefix("virtfn")?.parse().ok()?;
        (read::link_name(&physical.join(entry))? == own).then_some(number)
    };
    let number = read::names(&physical).into_iter().find_map(number)?;
    let class = match kind {
        Kind::Rdma => "infiniband",
        Kind::Netdev => "net",
    };
    let physical = match <[String; 1]>::try_from(read::names(&physical.join(class))) {
        Ok([one]) => one,
        Err(_) => name(&physical)?,
    };
    Some(VirtualFunction { physical, number })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_virtual_function_names_its_physical_one() {
        let host = tempfile::tempdir().unwrap();
        let at = |inside: &str| host.path().join(inside);
        let functions = ["0000:3b:00.0", "0000:3b:00.2", "0000:3b:00.3"];
        for function in functions {
            fs::create_dir_all(at(function)).unwrap();
        }
        for (number, function) in functions[1..].iter().enumerate() {
            symlink(at(functions[0]), at(function).join("physfn")).unwrap();
            symlink(at(function), at(functions[0]).join(format!("virtfn{number}"))).unwrap();
        }
        fs::create_dir_all(at("0000:3b:00.3/mlx5_core.rdma.4")).unwrap();
        let device = |name: &str, function: &str| {
            fs::create_dir_all(at(name)).unwrap();
            symlink(at(function), at(name).join("device")).unwrap();
            Relations::read(&at(name), Kind::Rdma)
        };
        let virtual_function = |physical: &str, number| Some(VirtualFunction { physical: physical.into(), number });
        let known = device("mlx5_1", functions[1]);
        assert_eq!((known.function, known.bus.as_deref()), (virtual_function(functions[0], 0), Some(functions[1])));
        fs::create_dir_all(at("0000:3b:00.0/infiniband/mlx5_0")).unwrap();
        // The RDMA device stands on the bus below the PCI function.
        let below = device("mlx5_2", "0000:3b:00.3/mlx5_core.rdma.4");
        assert_eq!((below.function, below.bus.as_deref()), (virtual_function("mlx5_0", 1), Some("mlx5_core.rdma.4")));
        assert_eq!(device("mlx5_0", functions[0]).function, None);
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

//! Virtual functions (SR-IOV): which physical function they belong to, from the links between PCI functions in sysfs.

use std::path::{Path, PathBuf};

use super::rdma::pci_folder;
use super::read;

/// A virtual function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VirtualFunction {
    /// The device of its physical function, or that one's address on the bus if it has none or several.
    pub(crate) physical: String,
    /// Which one of that function's, from 0.
    pub(crate) number: u32,
}

impl VirtualFunction {
    /// What the PCI function below a device's folder says of being a virtual one. `class` is the kind of device that the
    /// physical function is named by: `infiniband` or `net`.
    pub(crate) fn of(device: &Path, class: &str) -> Option<Self> {
        let folder = pci_folder(device)?;
        let physical: PathBuf = folder.join("physfn").canonicalize().ok()?;
        let own = name(&folder)?;
        let number = |entry: String| {
            let number = entry.strip_prefix("virtfn")?.parse().ok()?;
            (read::link_name(&physical.join(entry))? == own).then_some(number)
        };
        let number = read::names(&physical).into_iter().find_map(number)?;
        let physical = match <[String; 1]>::try_from(read::names(&physical.join(class))) {
            Ok([one]) => one,
            Err(_) => name(&physical)?,
        };
        Some(Self { physical, number })
    }
}

fn name(path: &Path) -> Option<String> {
    Some(path.file_name()?.to_str()?.to_owned())
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
            VirtualFunction::of(&at(name), "infiniband")
        };
        let virtual_function = |physical: &str, number| Some(VirtualFunction { physical: physical.into(), number });
        assert_eq!(device("mlx5_1", functions[1]), virtual_function(functions[0], 0));
        fs::create_dir_all(at("0000:3b:00.0/infiniband/mlx5_0")).unwrap();
        // The RDMA device stands on the bus below the PCI function.
        assert_eq!(device("mlx5_2", "0000:3b:00.3/mlx5_core.rdma.4"), virtual_function("mlx5_0", 1));
        assert_eq!(device("mlx5_0", functions[0]), None);
        assert_eq!(VirtualFunction::of(&at("no-such-device"), "net"), None);
    }
}

//! The RDMA drivers and modules that the agent knows by name.

/// A driver family: what sysfs shows for a device and which module carries its RDMA half.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DriverRow {
    /// Name of the bus driver that `device/driver` of an RDMA device points to. Empty for software devices.
    pub(crate) bus: &'static str,
    /// The module whose functions serve the device's verbs, which is also its name in events.
    pub(crate) module: &'static str,
}

/// Bus drivers and the RDMA modules that sit on top of them. The RDMA device's parent is the bus device (PCI or
/// auxiliary), so its driver is often the Ethernet one. From each driver's `ib_register_device` call.
#[rustfmt::skip]
pub(crate) const DRIVERS: &[DriverRow] = &[
    DriverRow { bus: "mlx5_core",      module: "mlx5_ib" },
    DriverRow { bus: "mlx4_core",      module: "mlx4_ib" },
    DriverRow { bus: "bnxt_en",        module: "bnxt_re" },
    DriverRow { bus: "ice",            module: "irdma" },
    DriverRow { bus: "i40e",           module: "irdma" },
    DriverRow { bus: "idpf",           module: "irdma" },
    DriverRow { bus: "mana",           module: "mana_ib" },
    DriverRow { bus: "efa",            module: "efa" },
    DriverRow { bus: "erdma",          module: "erdma" },
    DriverRow { bus: "hns3",           module: "hns_roce_hw_v2" },
    DriverRow { bus: "ionic",          module: "ionic_rdma" },
    DriverRow { bus: "qede",           module: "qedr" },
    DriverRow { bus: "cxgb4",          module: "iw_cxgb4" },
    DriverRow { bus: "be2net",         module: "ocrdma" },
    DriverRow { bus: "hfi1",           module: "hfi1" },
    DriverRow { bus: "vmw_pvrdma",     module: "vmw_pvrdma" },
    DriverRow { bus: "usnic_verbs",    module: "usnic_verbs" },
    DriverRow { bus: "",               module: "rdma_rxe" },
    DriverRow { bus: "",               module: "siw" },
];

/// Modules of the RDMA stack above the drivers, and the halves of drivers that talk to firmware.
pub(crate) const STACK_MODULES: &[&str] = &[
    "ib_core",
    "ib_uverbs",
    "ib_uverbs_support",
    "ib_cm",
    "iw_cm",
    "rdma_cm",
    "rdma_ucm",
    "ib_umad",
    "ib_ipoib",
    "mlx5_core",
    "mlx4_core",
    "bnxt_en",
    "mana",
    "hns3",
    "rdmavt",
];

/// Whether a module belongs to the RDMA stack or carries an RDMA driver.
pub(crate) fn is_rdma_module(name: &str) -> bool {
    STACK_MODULES.contains(&name) || DRIVERS.iter().any(|row| row.module == name)
}

/// The RDMA module on top of a bus driver. Absent for drivers that are not in the table.
pub(crate) fn module_of_bus(bus: &str) -> Option<&'static str> {
    let row = DRIVERS.iter().find(|row| !row.bus.is_empty() && row.bus == bus)?;
    Some(row.module)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_and_bus_drivers_are_found_by_name() {
        assert_eq!(module_of_bus("mlx5_core"), Some("mlx5_ib"));
        assert_eq!(module_of_bus("ice"), Some("irdma"));
        assert_eq!(module_of_bus("e1000e"), None);
        assert_eq!(module_of_bus(""), None, "software devices have no bus driver");
        assert!(is_rdma_module("ib_uverbs") && is_rdma_module("rdma_rxe"));
        assert!(!is_rdma_module("e1000e") && !is_rdma_module(""));
    }

    #[test]
    fn a_bus_driver_stands_in_one_row() {
        for row in DRIVERS.iter().filter(|row| !row.bus.is_empty()) {
            assert_eq!(DRIVERS.iter().filter(|other| other.bus == row.bus).count(), 1, "{}", row.bus);
        }
    }
}

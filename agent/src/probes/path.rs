//! How to get from a driver function's first argument to the name of the device that it is about.

/// A structure and a member of it, as the kernel's type information names them.
pub(crate) type Member = (&'static str, &'static str);

/// A path; each step's offsets are those of its members together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DevicePath {
    /// Where the argument's target lies within the object that the path begins at.
    pub(crate) back: &'static [Member],
    /// Pointers to follow, one after the other.
    pub(crate) hops: &'static [&'static [Member]],
    /// Where the name lies in what the last pointer leads to.
    pub(crate) name: &'static [Member],
}

/// From a `struct device` to the text of its name: the address on its bus.
const BUS_NAME: &[Member] = &[("device", "kobj"), ("kobject", "name")];

impl DevicePath {
    /// A path that ends at a pointer to a `struct device`.
    pub(crate) const fn to_bus<const N: usize>(back: &'static [Member], hops: &'static [&'static [Member]; N]) -> Self {
        Self { back, hops, name: &[] }
    }
}

/// `struct mlx5_core_dev *`.
pub(crate) const MLX5_CORE: DevicePath = DevicePath::to_bus(&[], &[&[("mlx5_core_dev", "device")], BUS_NAME]);
/// `struct work_struct *` in the health of a `struct mlx5_core_dev`: an ordinary report.
pub(crate) const MLX5_REPORT_WORK: DevicePath = DevicePath::to_bus(
    &[("mlx5_core_dev", "priv"), ("mlx5_priv", "health"), ("mlx5_core_health", "report_work")],
    &[&[("mlx5_core_dev", "device")], BUS_NAME],
);
/// As above: a fatal one.
pub(crate) const MLX5_FATAL_WORK: DevicePath = DevicePath::to_bus(
    &[("mlx5_core_dev", "priv"), ("mlx5_priv", "health"), ("mlx5_core_health", "fatal_report_work")],
    &[&[("mlx5_core_dev", "device")], BUS_NAME],
);
/// `struct notifier_block *` in a `struct mlx5_eq_table`.
pub(crate) const MLX5_CQ_NOTIFIER: DevicePath = DevicePath::to_bus(
    &[("mlx5_eq_table", "cq_err_nb"), ("mlx5_nb", "nb")],
    &[
        &[("mlx5_eq_table", "async_eq"), ("mlx5_eq_async", "core"), ("mlx5_eq", "dev")],
        &[("mlx5_core_dev", "device")],
        BUS_NAME,
    ],
);
/// `struct mlx5e_txqsq *`.
pub(crate) const MLX5_SEND_QUEUE: DevicePath =
    DevicePath { back: &[], hops: &[&[("mlx5e_txqsq", "netdev")]], name: &[("net_device", "name")] };
/// `struct mlx5e_rq *`.
pub(crate) const MLX5_RECEIVE_QUEUE: DevicePath =
    DevicePath { back: &[], hops: &[&[("mlx5e_rq", "netdev")]], name: &[("net_device", "name")] };
/// `struct irdma_sc_dev *`.
pub(crate) const IRDMA_CONTROL: DevicePath =
    DevicePath::to_bus(&[], &[&[("irdma_sc_dev", "hw")], &[("irdma_hw", "device")], BUS_NAME]);
/// `struct bnxt_qplib_rcfw *`.
pub(crate) const BNXT_CONTROL: DevicePath = DevicePath::to_bus(
    &[],
    &[&[("bnxt_qplib_rcfw", "pdev")], &[("pci_dev", "dev"), ("device", "kobj"), ("kobject", "name")]],
);
/// `struct mana_ib_dev *`.
pub(crate) const MANA_DEVICE: DevicePath =
    DevicePath { back: &[], hops: &[], name: &[("mana_ib_dev", "ib_dev"), ("ib_device", "name")] };

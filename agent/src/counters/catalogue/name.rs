//! What one driver calls a counter, where it shows it, how wide it is and in which unit.

use super::driver::Driver;
use super::row::Row;

/// Where a counter is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Source {
    /// `ports/N/counters` of the RDMA device in sysfs.
    Counters,
    /// `hw_counters` of the RDMA device or its port in sysfs.
    HwCounters,
    /// The same names by RDMA netlink, which asks the driver each time.
    RdmaNetlink,
    /// The driver's own statistics of a network device (`ethtool -S`).
    Ethtool,
    /// Statistics that the kernel defines for every driver, by ethtool netlink (`ethtool -I`, `ethtool -S --groups`).
    Standard,
    /// What rtnetlink says of the link.
    Rtnetlink,
    /// `statistics` of the network device in sysfs.
    Netdev,
}

impl Source {
    /// One word for labels.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Counters => "counters",
            Self::HwCounters => "hw_counters",
            Self::RdmaNetlink => "rdma_netlink",
            Self::Ethtool => "ethtool",
            Self::Standard => "ethtool_standard",
            Self::Rtnetlink => "rtnetlink",
            Self::Netdev => "netdev",
        }
    }
}

/// What happens at the end of the counter's range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    /// 64 bits: no end is reached.
    Full,
    /// Goes on from 0 after this many bits.
    Wraps(u32),
    /// Stays at its largest value of this many bits until somebody clears it (a performance management agent's).
    Saturates(u32),
    /// What stands there goes up and down.
    Gauge,
}

impl Width {
    /// The largest value; absent where no end is reached.
    pub(crate) fn largest(self) -> Option<u64> {
        match self {
            Self::Full | Self::Gauge => None,
            Self::Wraps(bits) | Self::Saturates(bits) => 1u64.checked_shl(bits).map(|above| above - 1),
        }
    }
}

/// What to do with the number to have the row's unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    /// It is the unit.
    One,
    /// Words of 4 octets, to become bytes.
    Words,
    /// Microseconds, to become seconds.
    Micros,
    /// The driver's source does not say: the number stays as it is.
    Unknown,
}

/// What one driver calls a counter. Names of the same rank are parts of a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    /// Whose.
    pub(crate) driver: Driver,
    /// Where.
    pub(crate) source: Source,
    /// As shown; `{p}` stands for one digit, the priority.
    pub(crate) name: &'static str,
    /// How wide.
    pub(crate) width: Width,
    /// Its unit.
    pub(crate) scale: Scale,
    /// Where several sources tell the same, the lowest rank is taken.
    pub(crate) rank: u8,
}

/// A name that was found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    /// What it means.
    pub(crate) row: &'static Row,
    /// Which of the row's names.
    pub(crate) name: &'static Name,
    /// The digit in it.
    pub(crate) priority: Option<u8>,
}

impl Name {
    const fn new(driver: Driver, source: Source, name: &'static str, width: Width, rank: u8) -> Self {
        Self { driver, source, name, width, scale: Scale::One, rank }
    }

    /// The number counts words of 4 octets.
    pub(super) const fn words(mut self) -> Self {
        self.scale = Scale::Words;
        self
    }

    /// The number counts microseconds.
    pub(super) const fn micros(mut self) -> Self {
        self.scale = Scale::Micros;
        self
    }

    /// The driver's source names no unit.
    pub(super) const fn unknown(mut self) -> Self {
        self.scale = Scale::Unknown;
        self
    }

    /// 64 bits though most of the driver's counters have fewer.
    pub(super) const fn full(mut self) -> Self {
        self.width = Width::Full;
        self
    }

    /// Goes up and down.
    pub(super) const fn gauge(mut self) -> Self {
        self.width = Width::Gauge;
        self
    }

    /// Only taken where nothing else tells the same.
    pub(super) const fn second(mut self) -> Self {
        self.rank += 1;
        self
    }

    /// Only taken where the driver has none of its own names for it.
    pub(super) const fn after_the_driver(mut self) -> Self {
        self.rank = 25;
        self
    }

    /// 32 bits that wrap.
    pub(super) const fn narrow(mut self) -> Self {
        self.width = Width::Wraps(32);
        self
    }

    /// Whether this is what is shown: `None` if not, else the priority in it, if it has one.
    pub(crate) fn matches(&self, shown: &str) -> Option<Option<u8>> {
        let Some((before, after)) = self.name.split_once("{p}") else {
            return (self.name == shown).then_some(None);
        };
        let digit = shown.strip_prefix(before)?.strip_suffix(after)?;
        let priority: u8 = digit.parse().ok()?;
        (digit.len() == 1 && priority < 8).then_some(Some(priority))
    }
}

/// A counter of the port that saturates, as ib_core shows it for every driver.
/// Widths: `PORT_PMA_ATTR` in drivers/infiniband/core/sysfs.c. A device with extended counters shows 64 bits under
/// the name of a 32-bit one; only a value that is exactly the end of 32 bits is then taken for saturated.
pub(super) const fn pma(name: &'static str, bits: u32) -> Name {
    Name::new(Driver::Any, Source::Counters, name, Width::Saturates(bits), 0)
}

/// A counter of the port that only the extended set has.
pub(super) const fn pma_extended(name: &'static str) -> Name {
    Name::new(Driver::Any, Source::Counters, name, Width::Full, 0)
}

/// A hardware counter of a driver. Those of mlx5's queue counter sets and mlx4's diagnostics have 32 bits that wrap
/// (`mlx5_ib_query_q_counters` reads `__be32`, `mlx4_query_diag_counters` reads `u32`); all others are kept in 64.
pub(super) const fn hw(driver: Driver, name: &'static str) -> Name {
    let width = match driver {
        Driver::Mlx5 | Driver::Mlx4 => Width::Wraps(32),
        _ => Width::Full,
    };
    Name::new(driver, Source::HwCounters, name, width, 10)
}

/// A driver's statistic of a network device: 64 bits for all of them.
pub(super) const fn ethtool(driver: Driver, name: &'static str) -> Name {
    Name::new(driver, Source::Ethtool, name, Width::Full, 20)
}

/// A statistic that the kernel defines for every driver, which fills in 64 bits: it is taken before the driver's own.
pub(super) const fn standard(name: &'static str) -> Name {
    Name::new(Driver::Any, Source::Standard, name, Width::Full, 15)
}

/// How often the link came, in the kernel's count, and how often it went.
pub(crate) const CARRIER_UPS: &str = "carrier_up_count";
pub(crate) const CARRIER_DOWNS: &str = "carrier_down_count";

/// What rtnetlink counts: 32 bits (`atomic_t carrier_up_count`).
pub(super) const fn rtnetlink(name: &'static str) -> Name {
    Name::new(Driver::Any, Source::Rtnetlink, name, Width::Wraps(32), 25)
}

/// A statistic that the network stack shows for every device.
pub(super) const fn netdev(name: &'static str) -> Name {
    Name::new(Driver::Any, Source::Netdev, name, Width::Full, 30)
}

/// Where the kernel's source says what a driver's names mean.
pub(crate) fn origin(driver: Driver, source: Source) -> &'static str {
    match (source, driver) {
        (Source::Counters, _) => "drivers/infiniband/core/sysfs.c",
        (Source::Standard, _) => "Documentation/networking/statistics.rst",
        (Source::Rtnetlink, _) => "net/core/rtnetlink.c",
        (Source::Netdev, _) => "Documentation/ABI/testing/sysfs-class-net-statistics",
        (Source::HwCounters, Driver::Mlx5) => "drivers/infiniband/hw/mlx5/counters.c",
        (Source::HwCounters, Driver::Mlx4) => "drivers/infiniband/hw/mlx4/main.c",
        (Source::HwCounters, Driver::Bnxt) => "drivers/infiniband/hw/bnxt_re/hw_counters.c",
        (Source::HwCounters, Driver::Intel) => "drivers/infiniband/hw/irdma/verbs.c",
        (Source::HwCounters, Driver::Mana) => "drivers/infiniband/hw/mana/counters.c",
        (Source::HwCounters, Driver::Amazon) => "drivers/infiniband/hw/efa/efa_verbs.c",
        (Source::HwCounters, Driver::Hns) => "drivers/infiniband/hw/hns/hns_roce_main.c",
        (Source::HwCounters, Driver::Hfi1) => "drivers/infiniband/hw/hfi1/chip.c",
        (Source::HwCounters, Driver::Erdma) => "drivers/infiniband/hw/erdma/erdma_verbs.c",
        (Source::HwCounters, Driver::Cxgb4) => "drivers/infiniband/hw/cxgb4/provider.c",
        (Source::HwCounters, Driver::Rxe) => "drivers/infiniband/sw/rxe/rxe_hw_counters.c",
        (Source::Ethtool, Driver::Mlx5) => {
            "Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst"
        }
        (Source::Ethtool, Driver::Mlx4) => "drivers/net/ethernet/mellanox/mlx4/mlx4_stats.h",
        (Source::Ethtool, Driver::Bnxt) => "drivers/net/ethernet/broadcom/bnxt/bnxt_ethtool.c",
        (Source::Ethtool, Driver::Intel) => "drivers/net/ethernet/intel/ice/ice_ethtool.c and i40e/i40e_ethtool.c",
        (Source::Ethtool, Driver::Mana) => "drivers/net/ethernet/microsoft/mana/mana_ethtool.c",
        (Source::Ethtool, Driver::Amazon) => "drivers/net/ethernet/amazon/ena/ena_ethtool.c",
        (Source::Ethtool, Driver::Hns) => "drivers/net/ethernet/hisilicon/hns3/hns3pf/hclge_main.c",
        (Source::RdmaNetlink, _)
        | (Source::HwCounters, Driver::Any)
        | (Source::Ethtool, Driver::Any | Driver::Hfi1 | Driver::Erdma | Driver::Cxgb4 | Driver::Rxe) => "",
    }
}

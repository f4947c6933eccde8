//! Drivers whose counters the catalogue knows, by the names of their modules.

/// A driver family: the halves for RDMA and for Ethernet together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Driver {
    /// Every driver, for names that ib_core or the network stack itself shows; also one that is not known.
    Any,
    /// NVIDIA `ConnectX`-4 and later.
    Mlx5,
    /// NVIDIA `ConnectX`-3.
    Mlx4,
    /// Broadcom.
    Bnxt,
    /// Intel: irdma with ice, i40e or idpf below it.
    Intel,
    /// Microsoft Azure.
    Mana,
    /// Amazon: efa and ena.
    Amazon,
    /// `HiSilicon`.
    Hns,
    /// Intel Omni-Path.
    Hfi1,
    /// Alibaba.
    Erdma,
    /// Chelsio.
    Cxgb4,
    /// Soft-RoCE.
    Rxe,
}

/// Module and bus driver names.
const MODULES: &[(&str, Driver)] = &[
    ("mlx5_ib", Driver::Mlx5),
    ("mlx5_core", Driver::Mlx5),
    ("mlx4_ib", Driver::Mlx4),
    ("mlx4_core", Driver::Mlx4),
    ("mlx4_en", Driver::Mlx4),
    ("bnxt_re", Driver::Bnxt),
    ("bnxt_en", Driver::Bnxt),
    ("irdma", Driver::Intel),
    ("i40iw", Driver::Intel),
    ("ice", Driver::Intel),
    ("i40e", Driver::Intel),
    ("idpf", Driver::Intel),
    ("mana_ib", Driver::Mana),
    ("mana", Driver::Mana),
    ("efa", Driver::Amazon),
    ("ena", Driver::Amazon),
    ("hns_roce_hw_v2", Driver::Hns),
    ("hns3", Driver::Hns),
    ("hfi1", Driver::Hfi1),
    ("erdma", Driver::Erdma),
    ("iw_cxgb4", Driver::Cxgb4),
    ("cxgb4", Driver::Cxgb4),
    ("rdma_rxe", Driver::Rxe),
];

impl Driver {
    /// The family of a module or bus driver; [`Driver::Any`] for one that is not known.
    pub(crate) fn of_module(name: Option<&str>) -> Self {
        let known = name.and_then(|name| MODULES.iter().find(|(module, _)| *module == name));
        known.map_or(Self::Any, |(_, driver)| *driver)
    }

    /// As people call it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Any => "every driver",
            Self::Mlx5 => "mlx5",
            Self::Mlx4 => "mlx4",
            Self::Bnxt => "bnxt",
            Self::Intel => "irdma, ice, i40e",
            Self::Mana => "mana",
            Self::Amazon => "efa, ena",
            Self::Hns => "hns",
            Self::Hfi1 => "hfi1",
            Self::Erdma => "erdma",
            Self::Cxgb4 => "cxgb4",
            Self::Rxe => "rxe",
        }
    }
}

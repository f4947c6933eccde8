//! What a call can ask for, in the terms of libibverbs; each part is absent where it is not known.

use std::borrow::Cow;
use std::fmt;
use std::net::{Ipv6Addr, SocketAddr};

/// What a call asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Request {
    /// The queue pair that is made, changed, ended or asked about.
    pub(crate) qp: Option<Qp>,
    /// The memory that is registered, changed, ended or asked about.
    pub(crate) mr: Option<Mr>,
    /// The completion queue.
    pub(crate) cq: Option<Cq>,
    /// The shared receive queue, or the work queue.
    pub(crate) srq: Option<Srq>,
    /// The address handle.
    pub(crate) ah: Option<Ah>,
    /// The connection manager's part.
    pub(crate) cm: Option<Cm>,
    /// Handle of the protection domain.
    pub(crate) pd_handle: Option<u32>,
    /// Handle of the object that the call is about, for kinds that have no part of their own here
    /// (AH, MW, XRCD, flow, WQ, DM, counters ...); the verb says which kind.
    pub(crate) handle: Option<u32>,
    /// The device's port that is asked about, from 1.
    pub(crate) port: Option<u8>,
    /// The index in the port's GID table that is asked about.
    pub(crate) gid_index: Option<u32>,
    /// Opcode of an mlx5 firmware command (enum MLX5_CMD_OP_*, include/linux/mlx5/mlx5_ifc.h).
    pub(crate) devx_opcode: Option<u16>,
}

impl Request {
    /// Parts of which nothing was read are absent, not empty.
    pub(super) fn without_empty_parts(self) -> Self {
        fn kept<T: Default + PartialEq>(part: Option<T>) -> Option<T> {
            part.filter(|part| *part != T::default())
        }
        Self {
            qp: kept(self.qp),
            mr: kept(self.mr),
            cq: kept(self.cq),
            srq: kept(self.srq),
            ah: kept(self.ah),
            cm: kept(self.cm),
            ..self
        }
    }

    pub(super) fn qp(&mut self) -> &mut Qp {
        self.qp.get_or_insert_default()
    }

    pub(super) fn mr(&mut self) -> &mut Mr {
        self.mr.get_or_insert_default()
    }

    pub(super) fn cq(&mut self) -> &mut Cq {
        self.cq.get_or_insert_default()
    }

    pub(super) fn srq(&mut self) -> &mut Srq {
        self.srq.get_or_insert_default()
    }
}

/// A queue pair. What a modify_qp sets is there only if its bit is in the mask.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Qp {
    /// The handle that the device file knows it by (not the QP number).
    pub(crate) handle: Option<u32>,
    /// The transport.
    pub(crate) qp_type: Option<QpType>,
    /// The state that the caller says it is in (CUR_STATE); absent for most callers.
    pub(crate) state_from: Option<QpState>,
    /// The state that is asked for.
    pub(crate) state_to: Option<QpState>,
    /// Which attributes a modify_qp sets.
    pub(crate) attr_mask: Option<QpAttrMask>,
    /// The capabilities that are asked for.
    pub(crate) caps: Option<Caps>,
    /// Remote access that is allowed.
    pub(crate) access: Option<Access>,
    /// First packet number to send.
    pub(crate) sq_psn: Option<u32>,
    /// First packet number to expect.
    pub(crate) rq_psn: Option<u32>,
    /// The path's MTU.
    pub(crate) path_mtu: Option<Mtu>,
    /// The remote QP number.
    pub(crate) dest_qpn: Option<u32>,
    /// Index of the own GID in the port's table.
    pub(crate) gid_index: Option<u8>,
    /// The remote GID; an IPv4 address of RoCE v2 shows as v4-mapped.
    pub(crate) remote_gid: Option<Ipv6Addr>,
    /// The remote LID, where the path is not global.
    pub(crate) remote_lid: Option<u16>,
    /// The device's port, from 1.
    pub(crate) port: Option<u8>,
    /// Index in the port's P_Key table.
    pub(crate) pkey_index: Option<u16>,
    /// Local ACK timeout, as the exponent n of 4.096 us times 2^n.
    pub(crate) timeout: Option<u8>,
    /// Transport retries.
    pub(crate) retry_cnt: Option<u8>,
    /// Retries after receiver-not-ready; 7 is without end.
    pub(crate) rnr_retry: Option<u8>,
    /// Handle of the send completion queue.
    pub(crate) send_cq_handle: Option<u32>,
    /// Handle of the receive completion queue.
    pub(crate) recv_cq_handle: Option<u32>,
    /// Handle of the shared receive queue.
    pub(crate) srq_handle: Option<u32>,
    /// The QP number, of an existing QP that is opened.
    pub(crate) qpn: Option<u32>,
}

/// Sizes of a queue pair (`struct ib_uverbs_qp_cap`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Caps {
    /// Send requests outstanding.
    pub(crate) max_send_wr: u32,
    /// Receive requests outstanding.
    pub(crate) max_recv_wr: u32,
    /// Scatter entries of a send request.
    pub(crate) max_send_sge: u32,
    /// Scatter entries of a receive request.
    pub(crate) max_recv_sge: u32,
    /// Bytes of inline data.
    pub(crate) max_inline: u32,
}

/// A memory region.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mr {
    /// The handle that the device file knows it by (not a key).
    pub(crate) handle: Option<u32>,
    /// Address in the process.
    pub(crate) address: Option<u64>,
    /// Offset in the dma-buf or device memory.
    pub(crate) offset: Option<u64>,
    /// Length in bytes.
    pub(crate) length: Option<u64>,
    /// The address that remote sides use.
    pub(crate) iova: Option<u64>,
    /// Access that is allowed.
    pub(crate) access: Option<Access>,
    /// Where the memory is.
    pub(crate) kind: Option<MrKind>,
    /// The dma-buf's file descriptor in the process.
    pub(crate) fd: Option<i32>,
    /// Handle of the device memory.
    pub(crate) dm_handle: Option<u32>,
}

/// Where registered memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum MrKind {
    /// Pages of the process, pinned.
    Host,
    /// A dma-buf: memory of a GPU or another device.
    DmaBuf,
    /// Pages of the process, faulted in by the device.
    OnDemand,
    /// The device's own memory.
    Dm,
}

impl MrKind {
    /// The kind as it stands in labels and records.
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::DmaBuf => "dmabuf",
            Self::OnDemand => "on_demand",
            Self::Dm => "dm",
        }
    }
}

/// A completion queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cq {
    /// The handle that the device file knows it by.
    pub(crate) handle: Option<u32>,
    /// Entries that are asked for.
    pub(crate) cqe: Option<u32>,
    /// The completion vector, that is the interrupt.
    pub(crate) comp_vector: Option<u32>,
}

/// A shared receive queue or a work queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Srq {
    /// The handle that the device file knows it by.
    pub(crate) handle: Option<u32>,
    /// Requests outstanding.
    pub(crate) max_wr: Option<u32>,
    /// Scatter entries of a request.
    pub(crate) max_sge: Option<u32>,
}

/// An address handle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ah {
    /// Index of the own GID in the port's table.
    pub(crate) gid_index: Option<u8>,
    /// The remote GID.
    pub(crate) remote_gid: Option<Ipv6Addr>,
    /// The remote LID, where the path is not global.
    pub(crate) remote_lid: Option<u16>,
    /// The device's port, from 1.
    pub(crate) port: Option<u8>,
}

/// A command to the connection manager.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cm {
    /// The connection's identifier in its device file.
    pub(crate) id: Option<u32>,
    /// The own address.
    pub(crate) source: Option<Endpoint>,
    /// The remote address.
    pub(crate) destination: Option<Endpoint>,
    /// How long to resolve, in milliseconds.
    pub(crate) timeout_ms: Option<u32>,
    /// The own QP number.
    pub(crate) qpn: Option<u32>,
    /// Bytes of private data that go along.
    pub(crate) private_data_len: Option<u8>,
    /// Connections that may wait.
    pub(crate) backlog: Option<u32>,
    /// Why a connection is refused (`rdma_reject`).
    pub(crate) reason: Option<u8>,
}

/// An address of the connection manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// IP address and port.
    Ip(SocketAddr),
    /// A GID (family AF_IB).
    Ib(Ipv6Addr),
}

impl fmt::Display for Endpoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(address) => address.fmt(out),
            Self::Ib(gid) => write!(out, "gid {gid}"),
        }
    }
}

/// A QP's type as the caller gave it (enum ib_uverbs_qp_type, include/uapi/rdma/ib_user_ioctl_verbs.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct QpType(pub(crate) u64);

impl fmt::Display for QpType {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.0 {
            2 => "RC",
            3 => "UC",
            4 => "UD",
            8 => "RAW_PACKET",
            9 => "XRC_SEND",
            10 => "XRC_RECV",
            0xff => "DRIVER",
            other => return write!(out, "{other}"),
        };
        out.write_str(name)
    }
}

/// A QP's state as the caller gave it (enum ib_qp_state, include/rdma/ib_verbs.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct QpState(pub(crate) u8);

impl fmt::Display for QpState {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = ["RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"];
        match names.get(usize::from(self.0)) {
            Some(name) => out.write_str(name),
            None => write!(out, "{}", self.0),
        }
    }
}

/// An MTU as the caller gave it (enum ib_mtu, include/rdma/ib_verbs.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Mtu(pub(crate) u8);

impl Mtu {
    /// The MTU in bytes; `None` where the number is none of the five.
    #[must_use]
    pub(crate) fn bytes(self) -> Option<u32> {
        matches!(self.0, 1..=5).then(|| 128 << self.0)
    }
}

impl fmt::Display for Mtu {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bytes() {
            Some(bytes) => write!(out, "{bytes}"),
            None => write!(out, "invalid ({})", self.0),
        }
    }
}

/// Bit and name.
type Bits = &'static [(u8, &'static str)];

/// The names of the bits that are set, lowest first, `bit_18` where a bit has none; at most 64.
fn names(value: u64, bits: Bits) -> Vec<Cow<'static, str>> {
    let set = (0..64).filter(|bit| value >> bit & 1 == 1);
    set.map(|bit| match bits.iter().find(|named| named.0 == bit) {
        Some((_, name)) => Cow::Borrowed(*name),
        None => Cow::Owned(format!("bit_{bit}")),
    })
    .collect()
}

/// Access flags (enum ib_uverbs_access_flags, include/uapi/rdma/ib_user_ioctl_verbs.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Access(pub(crate) u64);

impl Access {
    const BITS: Bits = &[
        (0, "LOCAL_WRITE"),
        (1, "REMOTE_WRITE"),
        (2, "REMOTE_READ"),
        (3, "REMOTE_ATOMIC"),
        (4, "MW_BIND"),
        (5, "ZERO_BASED"),
        (6, "ON_DEMAND"),
        (7, "HUGETLB"),
        (8, "FLUSH_GLOBAL"),
        (9, "FLUSH_PERSISTENT"),
        (20, "RELAXED_ORDERING"),
    ];

    /// The names of the flags.
    #[must_use]
    pub(crate) fn names(self) -> Vec<Cow<'static, str>> {
        names(self.0, Self::BITS)
    }

    /// The kind of memory that a registration from the process' own address has with these flags.
    pub(super) fn host_kind(self) -> MrKind {
        if self.0 >> 6 & 1 == 1 { MrKind::OnDemand } else { MrKind::Host }
    }
}

/// Which attributes a modify_qp sets (enum ib_qp_attr_mask, include/rdma/ib_verbs.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct QpAttrMask(pub(crate) u32);

impl QpAttrMask {
    const BITS: Bits = &[
        (0, "STATE"),
        (1, "CUR_STATE"),
        (2, "EN_SQD_ASYNC_NOTIFY"),
        (3, "ACCESS_FLAGS"),
        (4, "PKEY_INDEX"),
        (5, "PORT"),
        (6, "QKEY"),
        (7, "AV"),
        (8, "PATH_MTU"),
        (9, "TIMEOUT"),
        (10, "RETRY_CNT"),
        (11, "RNR_RETRY"),
        (12, "RQ_PSN"),
        (13, "MAX_QP_RD_ATOMIC"),
        (14, "ALT_PATH"),
        (15, "MIN_RNR_TIMER"),
        (16, "SQ_PSN"),
        (17, "MAX_DEST_RD_ATOMIC"),
        (18, "PATH_MIG_STATE"),
        (19, "CAP"),
        (20, "DEST_QPN"),
        (25, "RATE_LIMIT"),
    ];

    /// The names of the attributes.
    #[must_use]
    pub(crate) fn names(self) -> Vec<Cow<'static, str>> {
        names(u64::from(self.0), Self::BITS)
    }

    /// Whether the attribute of this bit is set.
    pub(super) fn has(self, bit: u8) -> bool {
        self.0.checked_shr(u32::from(bit)).is_some_and(|rest| rest & 1 == 1)
    }
}

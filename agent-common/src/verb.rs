//! The key of a verbs system call: how it came in, and which object and method it asked for.
//!
//! The ids come from the kernel's user-space headers (`include/uapi/rdma/`), read up to 7.3; they are
//! ABI and only ever grow. Nothing here can panic or loop: the kernel side uses it as it stands.

/// Which entry point a call took: the first part of a [`VerbKey`].
pub mod interface {
    /// Nothing could be read of the call (a header that faults, a write too short).
    pub const UNKNOWN: u16 = 0;
    /// A method of its own behind `RDMA_VERBS_IOCTL` (rdma_user_ioctl_cmds.h).
    pub const IOCTL: u16 = 1;
    /// A write command carried by the ioctl method `UVERBS_METHOD_INVOKE_WRITE`.
    pub const LEGACY_IOCTL: u16 = 2;
    /// A write command by `write()` on the uverbs device.
    pub const LEGACY_WRITE: u16 = 3;
    /// A command by `write()` on the rdma_cm device.
    pub const UCMA: u16 = 4;
    /// `mmap()` of a uverbs device.
    pub const MMAP: u16 = 5;
    /// `open()` of a uverbs device.
    pub const OPEN: u16 = 6;
}

/// Bit of an object, method or attribute id that puts it into the driver's namespace:
/// `1 << UVERBS_ID_NS_SHIFT` (ib_user_ioctl_cmds.h).
pub const DRIVER_NAMESPACE: u16 = 0x1000;

/// `UVERBS_OBJECT_DEVICE` (ib_user_ioctl_cmds.h, enum uverbs_default_objects).
pub const OBJECT_DEVICE: u16 = 0;
/// `UVERBS_METHOD_INVOKE_WRITE` (ib_user_ioctl_cmds.h, enum uverbs_methods_device).
pub const METHOD_INVOKE_WRITE: u16 = 0;

/// `UVERBS_ATTR_CORE_IN` of INVOKE_WRITE: the command's structure. At most 8 bytes stand in the
/// attribute itself, more are pointed to (ib_user_ioctl_cmds.h, enum uverbs_attrs_invoke_write_cmd_attr_ids).
pub const ATTR_CORE_IN: u16 = 0;
/// `UVERBS_ATTR_CORE_OUT` of INVOKE_WRITE (same enum).
pub const ATTR_CORE_OUT: u16 = 1;
/// `UVERBS_ATTR_WRITE_CMD` of INVOKE_WRITE: command number and flag, in the attribute itself (same enum).
pub const ATTR_WRITE_CMD: u16 = 2;

/// Bytes before the first attribute: `sizeof(struct ib_uverbs_ioctl_hdr)` (rdma_user_ioctl_cmds.h).
pub const IOCTL_HEADER_LEN: usize = 24;
/// `sizeof(struct ib_uverbs_attr)` (rdma_user_ioctl_cmds.h): attr_id, len, flags, attr_data (u16 each), data (u64).
pub const ATTR_LEN: usize = 16;
/// An attribute's bytes stand in its `data` field up to this length, and behind a pointer above it
/// (`uverbs_attr_ptr_is_inline`, include/rdma/uverbs_ioctl.h).
pub const ATTR_INLINE_LEN: u16 = 8;
/// How many attributes of a failed call are copied out.
pub const ATTRS_MAX: usize = 16;
/// How many bytes of a command's structure are copied out.
pub const CORE_IN_MAX: usize = 192;

/// `IB_USER_VERBS_CMD_FLAG_EXTENDED` (ib_user_verbs.h).
pub const COMMAND_EXTENDED: u32 = 0x8000_0000;
/// `IB_USER_VERBS_CMD_COMMAND_MASK` (ib_user_verbs.h).
pub const COMMAND_MASK: u32 = 0xff;
/// `sizeof(struct ib_uverbs_cmd_hdr)` and of `struct rdma_ucm_cmd_hdr`: what stands before the
/// structure of a written command (ib_user_verbs.h, rdma_user_cm.h).
pub const COMMAND_HEADER_LEN: usize = 8;
/// `COMMAND_HEADER_LEN` and `struct ib_uverbs_ex_cmd_hdr`: what stands before the structure of an
/// extended written command (ib_user_verbs.h).
pub const COMMAND_EX_HEADER_LEN: usize = 24;

/// `rdma_driver_id` of mlx5 (ib_user_ioctl_verbs.h).
pub const DRIVER_MLX5: u16 = 1;
/// `rdma_driver_id` of bnxt_re (ib_user_ioctl_verbs.h).
pub const DRIVER_BNXT_RE: u16 = 6;
/// `rdma_driver_id` of efa (ib_user_ioctl_verbs.h).
pub const DRIVER_EFA: u16 = 17;

/// A verb as the kernel sees it: `interface << 48 | driver << 32 | object << 16 | method`.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VerbKey(pub u64);

impl VerbKey {
    /// Nothing is known of the call.
    pub const UNKNOWN: Self = Self::new(interface::UNKNOWN, 0, 0, 0);
    /// `mmap()` of a uverbs device.
    pub const MMAP: Self = Self::new(interface::MMAP, 0, 0, 0);
    /// `open()` of a uverbs device.
    pub const OPEN: Self = Self::new(interface::OPEN, 0, 0, 0);

    /// Packs the four parts; `interface` is one of [`interface`]'s constants.
    #[inline(always)]
    #[must_use]
    pub const fn new(interface: u16, driver: u16, object: u16, method: u16) -> Self {
        Self((interface as u64) << 48 | (driver as u64) << 32 | (object as u64) << 16 | method as u64)
    }

    /// The key of an ioctl method from the fields of `struct ib_uverbs_ioctl_hdr`. The driver counts
    /// only where the object or the method is the driver's own: user space fills it in always.
    #[inline(always)]
    #[must_use]
    pub const fn ioctl(object: u16, method: u16, driver: u32) -> Self {
        let own = (object | method) & DRIVER_NAMESPACE != 0;
        let driver = if own { clamp(driver) } else { 0 };
        Self::new(interface::IOCTL, driver, object, method)
    }

    /// The key of a write command; `via` is [`interface::LEGACY_IOCTL`] or [`interface::LEGACY_WRITE`],
    /// `command` the whole word of `ib_uverbs_cmd_hdr` or `UVERBS_ATTR_WRITE_CMD`. The kernel refuses
    /// numbers over [`COMMAND_MASK`]; they keep their own number here, so that none passes for another.
    #[inline(always)]
    #[must_use]
    pub const fn legacy(via: u16, command: u32) -> Self {
        let extended = (command & COMMAND_EXTENDED != 0) as u16;
        Self::new(via, 0, extended, clamp(command & !COMMAND_EXTENDED))
    }

    /// The key of an rdma_cm command, from `struct rdma_ucm_cmd_hdr`.
    #[inline(always)]
    #[must_use]
    pub const fn ucma(command: u32) -> Self {
        Self::new(interface::UCMA, 0, 0, clamp(command))
    }

    /// One of [`interface`]'s constants.
    #[inline(always)]
    #[must_use]
    pub const fn interface(self) -> u16 {
        (self.0 >> 48) as u16
    }

    /// `rdma_driver_id` for ids in the driver's namespace, else 0.
    #[inline(always)]
    #[must_use]
    pub const fn driver(self) -> u16 {
        (self.0 >> 32) as u16
    }

    /// The object id; for write commands 1 if extended, else 0.
    #[inline(always)]
    #[must_use]
    pub const fn object(self) -> u16 {
        (self.0 >> 16) as u16
    }

    /// The method id, or the number of the command.
    #[inline(always)]
    #[must_use]
    pub const fn method(self) -> u16 {
        self.0 as u16
    }

    /// Whether this is the ioctl method that carries a write command, whose own key is then
    /// [`VerbKey::legacy`] of the attribute [`ATTR_WRITE_CMD`].
    #[inline(always)]
    #[must_use]
    pub const fn is_invoke_write(self) -> bool {
        self.0 == Self::new(interface::IOCTL, 0, OBJECT_DEVICE, METHOD_INVOKE_WRITE).0
    }

    /// Whether the call only asks: EOPNOTSUPP from it is probing, from any other call a failure.
    ///
    /// Holds the same as the class `Query` of the agent's table of names; a test there compares them.
    #[inline(always)]
    #[must_use]
    pub const fn is_query(self) -> bool {
        let (driver, object) = (self.driver(), self.object());
        let mask = match self.interface() {
            interface::IOCTL if driver == 0 => native_queries(object),
            interface::IOCTL => driver_queries(driver, object),
            interface::LEGACY_IOCTL | interface::LEGACY_WRITE if driver == 0 => legacy_queries(object),
            interface::UCMA if driver == 0 && object == 0 => UCMA_QUERIES,
            _ => 0,
        };
        // Methods of a driver count from the namespace bit, all others from 0.
        let first = if driver == 0 { 0 } else { DRIVER_NAMESPACE };
        let number = self.method().wrapping_sub(first);
        number < 64 && (mask >> (number & 63)) & 1 == 1
    }
}

/// What does not fit 16 bits is no number of any kernel: it becomes 0xffff, not another number.
#[inline(always)]
const fn clamp(number: u32) -> u16 {
    if number > 0xffff { 0xffff } else { number as u16 }
}

/// Query methods of the common objects, one bit for each method (ib_user_ioctl_cmds.h):
/// device INFO_HANDLES, QUERY_PORT, QUERY_CONTEXT, QUERY_GID_TABLE, QUERY_GID_ENTRY, QUERY_PORT_SPEED
/// and QUERY_COMP_CNTR_CAPS; QUERY_MR; COUNTERS_READ; COMP_CNTR_READ.
#[inline(always)]
const fn native_queries(object: u16) -> u64 {
    match object {
        0 => 1 << 1 | 1 << 2 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8,
        7 => 1 << 3,
        15 => 1 << 2,
        19 => 1 << 3,
        _ => 0,
    }
}

/// Query methods in a driver's namespace, one bit for each method less [`DRIVER_NAMESPACE`]
/// (mlx5_user_ioctl_cmds.h, bnxt_re-abi.h, efa-abi.h).
#[inline(always)]
const fn driver_queries(driver: u16, object: u16) -> u64 {
    match (driver, object) {
        // QUERY_PORT, GET_DATA_DIRECT_SYSFS_PATH
        (DRIVER_MLX5, 0) => 1 << 0 | 1 << 1,
        // PD_QUERY
        (DRIVER_MLX5, 1) => 1 << 0,
        // DM_QUERY
        (DRIVER_MLX5, 14) => 1 << 1,
        // DEVX_QUERY_UAR, DEVX_QUERY_EQN
        (DRIVER_MLX5, 0x1000) => 1 << 1 | 1 << 2,
        // DEVX_OBJ_QUERY, DEVX_OBJ_ASYNC_QUERY
        (DRIVER_MLX5, 0x1001) => 1 << 3 | 1 << 4,
        // GET_DEFAULT_DBR
        (DRIVER_BNXT_RE, 0x1004) => 1 << 2,
        // MR_QUERY
        (DRIVER_EFA, 7) => 1 << 0,
        _ => 0,
    }
}

/// Query commands, one bit for each command (ib_user_verbs.h): QUERY_DEVICE, QUERY_PORT, QUERY_AH,
/// QUERY_MR, QUERY_QP, QUERY_SRQ; of the extended ones QUERY_DEVICE.
#[inline(always)]
const fn legacy_queries(extended: u16) -> u64 {
    match extended {
        0 => 1 << 1 | 1 << 2 | 1 << 7 | 1 << 12 | 1 << 25 | 1 << 34,
        1 => 1 << 1,
        _ => 0,
    }
}

/// Query commands of rdma_cm, one bit for each command (rdma_user_cm.h): QUERY_ROUTE, GET_OPTION, QUERY.
const UCMA_QUERIES: u64 = 1 << 5 | 1 << 13 | 1 << 19;

/// An attribute of a method whose bytes are worth copying from where it points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payload {
    /// The method.
    pub key: VerbKey,
    /// The attribute.
    pub attr: u16,
    /// Bytes to copy at most; fewer where the attribute says it is shorter.
    pub len: u16,
}

/// Bytes of pointed-to attributes copied for one call, at most.
pub const PAYLOAD_MAX: usize = 24;

/// What is copied besides the attributes themselves: at most one row for a method.
pub const PAYLOADS: [Payload; 6] = [
    // UVERBS_ATTR_CREATE_QP_CAP: struct ib_uverbs_qp_cap (ib_user_ioctl_verbs.h)
    Payload { key: VerbKey::ioctl(4, 0, 0), attr: 8, len: 20 },
    // UVERBS_ATTR_ADVISE_MR_SGE_LIST: the first struct ib_uverbs_sge (ib_user_verbs.h)
    Payload { key: VerbKey::ioctl(7, 2, 0), attr: 3, len: 16 },
    // The head of an mlx5 command (mlx5_ifc.h: opcode first) of DEVX_OTHER, DEVX_OBJ_CREATE,
    // DEVX_OBJ_MODIFY and DEVX_OBJ_QUERY (mlx5_user_ioctl_cmds.h)
    Payload { key: VerbKey::ioctl(0x1000, 0x1000, DRIVER_MLX5 as u32), attr: 0x1000, len: 16 },
    Payload { key: VerbKey::ioctl(0x1001, 0x1000, DRIVER_MLX5 as u32), attr: 0x1001, len: 16 },
    Payload { key: VerbKey::ioctl(0x1001, 0x1002, DRIVER_MLX5 as u32), attr: 0x1001, len: 16 },
    Payload { key: VerbKey::ioctl(0x1001, 0x1003, DRIVER_MLX5 as u32), attr: 0x1001, len: 16 },
];

/// The attribute of `key` to follow and how many bytes of it, as a straight line of comparisons.
#[inline(always)]
#[must_use]
pub const fn payload_of(key: VerbKey) -> Option<Payload> {
    let [a, b, c, d, e, f] = PAYLOADS;
    if key.0 == a.key.0 {
        Some(a)
    } else if key.0 == b.key.0 {
        Some(b)
    } else if key.0 == c.key.0 {
        Some(c)
    } else if key.0 == d.key.0 {
        Some(d)
    } else if key.0 == e.key.0 {
        Some(e)
    } else if key.0 == f.key.0 {
        Some(f)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_back_as_they_went_in() {
        let key = VerbKey::new(1, 2, 0x1003, 0x1fff);
        assert_eq!(key.0, 0x0001_0002_1003_1fff);
        assert_eq!((key.interface(), key.driver(), key.object(), key.method()), (1, 2, 0x1003, 0x1fff));
        assert_eq!(core::mem::size_of::<VerbKey>(), 8);
    }

    #[test]
    fn the_driver_counts_only_for_its_own_ids() {
        assert_eq!(VerbKey::ioctl(4, 0, 1).driver(), 0);
        assert_eq!(VerbKey::ioctl(1, 0x1000, 1).driver(), 1);
        assert_eq!(VerbKey::ioctl(0x1001, 0x1000, 1).driver(), 1);
        assert_eq!(VerbKey::ioctl(0x1001, 0x1000, 0x1_0001).driver(), 0xffff);
    }

    #[test]
    fn a_write_command_keeps_number_and_flag() {
        let plain = VerbKey::legacy(interface::LEGACY_WRITE, 24);
        let extended = VerbKey::legacy(interface::LEGACY_IOCTL, COMMAND_EXTENDED | 24);
        assert_eq!(plain, VerbKey::new(3, 0, 0, 24));
        assert_eq!(extended, VerbKey::new(2, 0, 1, 24));
        assert_eq!(VerbKey::legacy(interface::LEGACY_WRITE, 0x0118).method(), 0x118);
        assert_eq!(VerbKey::ucma(0x1_0001).method(), 0xffff);
    }

    #[test]
    fn only_the_carrier_is_the_carrier() {
        assert!(VerbKey::ioctl(0, 0, 14).is_invoke_write());
        assert!(!VerbKey::ioctl(0, 2, 14).is_invoke_write());
        assert!(!VerbKey::legacy(interface::LEGACY_IOCTL, 0).is_invoke_write());
    }

    #[test]
    fn query_bits_do_not_leak_into_other_numbers() {
        // QUERY_PORT of the device, and the same bit modulo 64 or in the driver's namespace.
        assert!(VerbKey::ioctl(0, 2, 0).is_query());
        assert!(!VerbKey::ioctl(0, 66, 0).is_query());
        assert!(!VerbKey::new(interface::IOCTL, 0, 0, 0x1002).is_query());
        assert!(!VerbKey::new(interface::IOCTL, 1, 0x1001, 3).is_query());
        assert!(!VerbKey::new(interface::LEGACY_WRITE, 0, 2, 1).is_query());
        assert!(!VerbKey::MMAP.is_query() && !VerbKey::OPEN.is_query() && !VerbKey::UNKNOWN.is_query());
    }

    #[test]
    fn every_payload_is_found_once_and_fits() {
        for (index, row) in PAYLOADS.iter().enumerate() {
            assert_eq!(payload_of(row.key), Some(*row));
            assert!(usize::from(row.len) <= PAYLOAD_MAX && row.len > ATTR_INLINE_LEN);
            assert!(PAYLOADS.iter().skip(index + 1).all(|other| other.key != row.key));
        }
        assert_eq!(payload_of(VerbKey::MMAP), None);
    }
}

//! Health of NICs and of the way through the host: what the kernel side is told, what it counts, what it sends.

/// Bytes of a device's name: an address on a bus, a network device's name, an RDMA device's name.
pub const NAME: usize = 32;
/// Bytes of a network device's name (`IFNAMSIZ`).
pub const NETDEV: usize = 16;
/// Bytes of the name of the part that reports: a devlink health reporter (`fw_fatal`, `tx`).
pub const PART: usize = 16;
/// Bytes of a message that are kept.
pub const MESSAGE: usize = 128;
/// Numbers that come with an event: the second to fourth argument of a function, or fields of a trace event.
pub const VALUES: usize = 3;
/// Pointers that are followed from a function's first argument to its device.
pub const HOPS: usize = 4;
/// Rows of the probe table for which there may be a path to the device.
pub const PATHS: usize = 1024;

/// A field of a trace event, or a member of a structure, that is not known on this kernel.
pub const UNKNOWN: u32 = u32::MAX;

macro_rules! settings {
    ($($(#[$doc:meta])* $field:ident,)*) => {
        /// Offsets of the trace events' fields, from their format files, and of members of the kernel's structures, from
        /// its type information. [`UNKNOWN`] where this kernel has none.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(C)]
        pub struct Settings {
            $($(#[$doc])* pub $field: u32,)*
        }

        impl Settings {
            /// How many 32-bit words they are.
            pub const WORDS: usize = [$(stringify!($field)),*].len();
            /// Nothing known.
            pub const DEFAULT: Self = Self { $($field: UNKNOWN,)* };

            /// The fields in order, as the words they are in memory.
            #[must_use]
            pub const fn words(&self) -> [u32; Self::WORDS] {
                [$(self.$field),*]
            }
        }
    };
}

settings! {
    /// `devlink:devlink_health_report`: `dev_name`, the device's address on its bus.
    report_device,
    /// As above: `reporter_name`.
    report_part,
    /// As above: `msg`.
    report_message,
    /// `devlink:devlink_hwerr`: `dev_name`.
    hwerr_device,
    /// As above: `err`.
    hwerr_error,
    /// As above: `msg`.
    hwerr_message,
    /// `net:net_dev_xmit_timeout`: `name`, of the network device.
    timeout_netdev,
    /// As above: `queue_index`.
    timeout_queue,
    /// `napi:napi_poll`: `dev_name`, of the network device.
    napi_netdev,
    /// As above: `work`, packets handled.
    napi_work,
    /// As above: `budget`, packets allowed.
    napi_budget,
    /// `skb:kfree_skb`: `skbaddr`, the packet.
    drop_packet,
    /// As above: `reason`.
    drop_reason,
    /// `struct sk_buff`: `dev`.
    packet_netdev,
    /// `struct net_device`: `name`.
    netdev_name,
}

/// How to get from a function's first argument to the name of the device it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct DevicePath {
    /// 1: the path is known on this kernel.
    pub known: u32,
    /// Bytes from the object that holds the argument's target to the target.
    pub back: u32,
    /// How many of `hops` are used.
    pub hops_len: u32,
    /// Offsets of the pointers to follow, one after the other.
    pub hops: [u32; HOPS],
    /// Bytes from where the last pointer leads to the name.
    pub name: u32,
}

impl DevicePath {
    /// How many 32-bit words it is.
    pub const WORDS: usize = 8;
    /// No way is known.
    pub const NONE: Self = Self { known: 0, back: 0, hops_len: 0, hops: [0; HOPS], name: 0 };

    /// The fields in order, as the words they are in memory.
    #[must_use]
    pub const fn words(&self) -> [u32; Self::WORDS] {
        let [first, second, third, fourth] = self.hops;
        [self.known, self.back, self.hops_len, first, second, third, fourth, self.name]
    }
}

/// Key of the table of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct HealthKey {
    /// The device's name, filled up with zeros; empty if unknown.
    pub device: [u8; NAME],
    /// The part of it that reports, filled up with zeros; mostly empty.
    pub part: [u8; PART],
    /// The row in the probe table.
    pub hook: u32,
    /// Zero.
    pub reserved: u32,
}

/// An event.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct HealthRecord {
    /// [`crate::record::kind::HEALTH`].
    pub kind: u32,
    /// The row in the probe table.
    pub hook: u32,
    /// When (`CLOCK_MONOTONIC`, nanoseconds).
    pub time_ns: u64,
    /// The numbers that came with it; what they are is the row's affair.
    pub values: [u64; VALUES],
    /// As in [`HealthKey`].
    pub device: [u8; NAME],
    /// As in [`HealthKey`].
    pub part: [u8; PART],
    /// What the driver says in words, filled up with zeros.
    pub message: [u8; MESSAGE],
}

/// Key of the table of dropped packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct DropKey {
    /// The network device that the packet was on, filled up with zeros; empty if it was on none.
    pub netdev: [u8; NETDEV],
    /// `enum skb_drop_reason`.
    pub reason: u32,
    /// Zero.
    pub reserved: u32,
}

const _: () = {
    assert!(size_of::<Settings>() == 4 * Settings::WORDS);
    assert!(size_of::<DevicePath>() == 4 * DevicePath::WORDS);
    assert!(size_of::<HealthKey>() == 56);
    assert!(size_of::<HealthRecord>() == 216);
    assert!(size_of::<DropKey>() == 24);
};

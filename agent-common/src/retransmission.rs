//! What the kernel says of TCP segments that it sends again: the counters of its tracepoint `tcp_retransmit_skb`.

/// What user space tells the program when it loads it: names of the kernel side's constants. Places are in bytes from the
/// start of a structure, from the running kernel's BTF.
pub mod constant {
    /// `u32`: the length in a `struct sk_buff`.
    pub const LENGTH: &str = "SKB_LENGTH";
    /// `u32`: the number of segments that TCP keeps in a `struct sk_buff`.
    pub const SEGMENTS: &str = "SKB_SEGMENTS";
    /// `u32`: the network namespace in a `struct sock`.
    pub const NAMESPACE: &str = "SOCKET_NAMESPACE";
    /// `u32`: the number of a network namespace in a `struct net`.
    pub const NUMBER: &str = "NAMESPACE_NUMBER";
    /// `u32`: the number of the own network namespace.
    pub const OWN: &str = "OWN_NAMESPACE";
    /// `u32`: 1 if the tracepoint tells of attempts that failed too, with their error.
    pub const FAILURES: &str = "TELLS_FAILURES";
}

/// Entries of the map: the own network namespace, and all others.
pub const ENTRIES: u32 = 2;

/// The entry of the own network namespace.
pub const OWN: u32 = 0;

/// The entry of all others.
pub const OTHERS: u32 = 1;

/// What one CPU has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Traced {
    /// Times that the kernel sent something again.
    pub events: u64,
    /// TCP segments that it sent then.
    pub segments: u64,
    /// Of these, those with payload: not SYN and FIN alone.
    pub data_segments: u64,
    /// Payload bytes of these.
    pub bytes: u64,
    /// Attempts that failed, as far as the tracepoint tells; not among the events.
    pub failures: u64,
}

impl Traced {
    /// How many numbers it is.
    pub const WORDS: usize = size_of::<Self>() / size_of::<u64>();
}

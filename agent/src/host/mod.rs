//! What /proc and /sys say about this host: plain data, gathered once, never trusted.

pub(crate) mod device_number;
pub(crate) mod drivers;
pub(crate) mod errno;
pub(crate) mod facts;
pub(crate) mod gid;
pub(crate) mod kernel;
pub(crate) mod kernel_text;
pub(crate) mod links;
pub(crate) mod preempt;
pub(crate) mod process;
pub(crate) mod rdma;
pub(crate) mod read;
pub(crate) mod roots;
pub(crate) mod rtnetlink;
pub(crate) mod sriov;
pub(crate) mod symbols;

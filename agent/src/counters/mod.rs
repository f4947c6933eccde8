//! NIC and RDMA counters by meaning: the catalogue, where they are read, and what their numbers say.

pub(crate) mod catalogue;

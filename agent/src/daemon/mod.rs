//! The daemon: one loop owns the state; everything that reaches it is one closed enum.

pub(crate) mod handle;

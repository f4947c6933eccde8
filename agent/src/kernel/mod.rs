//! kernel
pub(crate) mod state;

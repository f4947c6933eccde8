//! Samples of network devices: their files, and what keeps the last minutes.

pub(crate) mod file;

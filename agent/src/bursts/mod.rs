//! Samples of network devices: their files, and what keeps the last minutes.

pub(crate) mod file;
#[cfg_attr(not(test), expect(dead_code, reason = "the loop that samples pushes into it"))]
pub(crate) mod recorder;

//! node_exporter: what people read the same counters with, and that this project has no part in.

use std::path::PathBuf;

use anyhow::Result;

use crate::debian;

/// Debian's name of the package and of the program in it.
pub const PROGRAM: &str = "prometheus-node-exporter";

/// The program, for a machine of the lab: the same on every kernel.
///
/// # Errors
/// When it cannot be fetched from Debian.
pub fn files(_kernel: &str) -> Result<Vec<PathBuf>> {
    Ok(vec![debian::unpacked("node-exporter", &[PROGRAM])?.join("usr/bin").join(PROGRAM)])
}

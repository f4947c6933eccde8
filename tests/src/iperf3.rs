//! iperf3: a sender and receiver that count their bytes themselves, and that this project has no part in.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};

use crate::debian;

/// Debian's packages of it that a host with apt lacks.
const PACKAGES: &[&str] = &["iperf3", "libiperf0", "libsctp1"];

/// iperf3, ready to be given words, for a program that runs others, such as `ip netns exec`: what it must put before
/// them.
///
/// # Errors
/// When this host neither has it nor can fetch it from Debian.
pub fn words() -> Result<Vec<PathBuf>> {
    let installed = std::env::var_os("PATH").unwrap_or_default();
    let mut installed = std::env::split_paths(&installed).map(|folder| folder.join("iperf3"));
    if let Some(program) = installed.find(|program| program.is_file()) {
        return Ok(vec![program]);
    }
    let folder = debian::unpacked("iperf3", PACKAGES)?;
    let libraries = fs::read_dir(folder.join("usr/lib")).context("the libraries of iperf3")?;
    let mut libraries = libraries.filter_map(Result::ok).map(|entry| entry.path());
    let libraries = libraries.find(|path| path.is_dir()).context("the libraries of iperf3")?;
    let path = format!("LD_LIBRARY_PATH={}", libraries.display());
    Ok(vec![PathBuf::from("env"), PathBuf::from(path), folder.join("usr/bin/iperf3")])
}

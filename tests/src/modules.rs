//! Kernel modules that the lab builds, once for each kernel and state of their source: its own, and soft-iWARP.

use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use crate::command::{self, tail};
use crate::workload::state_of;

/// Modules that are built together.
#[derive(Clone, Copy, Debug)]
struct Set {
    /// Their source, or what fetches it.
    source: &'static str,
    /// The name of a driver of the kernel's own that Debian leaves out.
    driver: Option<&'static str>,
    /// The files, in the order in which they are loaded.
    modules: &'static [&'static str],
}

/// The lab's own: stand-ins for a vendor's driver, and a NIC with settable counters.
const SETS: [Set; 2] = [
    Set { source: "xtask/src/lab/modules/mlx5", driver: None, modules: &["mlx5_core.ko", "mlx5_ib.ko"] },
    Set { source: "xtask/src/lab/modules/nic", driver: None, modules: &["fsnic.ko"] },
];
/// The kernel's soft-iWARP.
const SIW: Set = Set { source: "xtask/src/lab/driver.rs", driver: Some("siw"), modules: &["siw.ko"] };
/// Fetching headers included.
const LIMIT: Duration = Duration::from_secs(900);

/// One build at a time.
static BUILDING: Mutex<()> = Mutex::new(());

/// Builds all modules of the lab's own for a kernel. Measured: 3 to 8 s for each kernel and set, once.
///
/// # Errors
/// When the kernel's headers cannot be had or the compiler fails: its messages are shown.
pub fn build(kernel: &str) -> Result<Vec<PathBuf>> {
    sets(kernel, &SETS)
}

/// Builds soft-iWARP out of the kernel's own source. Measured for each kernel on a busy host: 14 s to get the source,
/// once for all, and 19 to 25 s to build.
///
/// # Errors
/// As [`build`], and when Debian has the source of that kernel no more.
pub fn siw(kernel: &str) -> Result<Vec<PathBuf>> {
    sets(kernel, &[SIW])
}

fn sets(kernel: &str, sets: &[Set]) -> Result<Vec<PathBuf>> {
    let _building = BUILDING.lock();
    // The list names the release that is in the cache: a module fits no other one.
    let list = command::run(command::xtask().args(["lab", "--list"]), LIMIT)?.stdout;
    let row = list.lines().find(|line| line.split_whitespace().next() == Some(kernel));
    let row = row.with_context(|| format!("no kernel {kernel}"))?;
    let mut files = Vec::new();
    for set in sets {
        files.append(&mut set.build(kernel, row)?);
    }
    Ok(files)
}

impl Set {
    /// `release` is whatever names the exact kernel.
    fn build(&self, kernel: &str, release: &str) -> Result<Vec<PathBuf>> {
        let source = command::workspace().join(self.source);
        let state = state_of(&source, release)?;
        let folder = command::target().join("lab-tests/modules").join(kernel).join(state);
        let files: Vec<_> = self.modules.iter().map(|name| folder.join(name)).collect();
        if files.iter().all(|file| file.is_file()) {
            return Ok(files);
        }
        fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
        let mut command = command::xtask();
        command.args(["lab-module", "--kernel", kernel, "--out"]).arg(&folder);
        match self.driver {
            Some(name) => command.args(["--driver", name]),
            None => command.arg(&source),
        };
        let seen = command::run(&mut command, LIMIT)?;
        let words = tail(&format!("{}{}", seen.stdout, seen.stderr), 40);
        ensure!(seen.status.success(), "{} for kernel {kernel} cannot be built:\n{words}", self.modules.join(" "));
        for file in &files {
            ensure!(file.is_file(), "no {} for kernel {kernel}:\n{words}", file.display());
        }
        Ok(files)
    }
}

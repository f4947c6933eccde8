//! Kernel modules of the lab's own, built once for each kernel and state of their source.

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
    /// Their folder in [`SOURCES`].
    folder: &'static str,
    /// The files, in the order in which they are loaded.
    modules: &'static [&'static str],
}

/// What is built: stand-ins for a vendor's driver, and a NIC with settable counters.
const SETS: [Set; 2] =
    [Set { folder: "mlx5", modules: &["mlx5_core.ko", "mlx5_ib.ko"] }, Set { folder: "nic", modules: &["fsnic.ko"] }];
/// Where the sources are.
const SOURCES: &str = "xtask/src/lab/modules";
/// Fetching headers included.
const LIMIT: Duration = Duration::from_secs(900);

/// One build at a time.
static BUILDING: Mutex<()> = Mutex::new(());

/// Builds all modules for a kernel of the lab. Measured: 3 to 8 s for each kernel and set, once.
///
/// # Errors
/// When the kernel's headers cannot be had or the compiler fails: its messages are shown.
pub fn build(kernel: &str) -> Result<Vec<PathBuf>> {
    let _building = BUILDING.lock();
    // The list names the release that is in the cache: a module fits no other one.
    let list = command::run(command::xtask().args(["lab", "--list"]), LIMIT)?.stdout;
    let row = list.lines().find(|line| line.split_whitespace().next() == Some(kernel));
    let row = row.with_context(|| format!("no kernel {kernel}"))?;
    let mut files = Vec::new();
    for set in SETS {
        files.append(&mut set.build(kernel, row)?);
    }
    Ok(files)
}

impl Set {
    /// `release` is whatever names the exact kernel.
    fn build(&self, kernel: &str, release: &str) -> Result<Vec<PathBuf>> {
        let source = command::workspace().join(SOURCES).join(self.folder);
        let state = state_of(&source, release)?;
        let folder = command::target().join("lab-tests/modules").join(kernel).join(state);
        let files: Vec<_> = self.modules.iter().map(|name| folder.join(name)).collect();
        if files.iter().all(|file| file.is_file()) {
            return Ok(files);
        }
        fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
        let mut command = command::xtask();
        command.args(["lab-module", "--kernel", kernel, "--out"]).arg(&folder).arg(&source);
        let seen = command::run(&mut command, LIMIT)?;
        let words = tail(&format!("{}{}", seen.stdout, seen.stderr), 40);
        ensure!(seen.status.success(), "{} for kernel {kernel} does not compile:\n{words}", self.folder);
        for file in &files {
            ensure!(file.is_file(), "no {} for kernel {kernel}:\n{words}", file.display());
        }
        Ok(files)
    }
}

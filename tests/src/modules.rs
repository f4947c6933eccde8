//! Kernel modules that stand in for a vendor's driver, built once for each kernel and state of their source.

use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use crate::command::{self, tail};
use crate::workload::state_of;

/// What is built, in the order in which it is loaded.
const MODULES: [&str; 2] = ["mlx5_core.ko", "mlx5_ib.ko"];
/// Where the sources are.
const SOURCES: &str = "xtask/src/lab/modules/mlx5";
/// Fetching headers included.
const LIMIT: Duration = Duration::from_secs(900);

/// One build at a time.
static BUILDING: Mutex<()> = Mutex::new(());

/// Builds the stand-ins for mlx5 for a kernel of the lab. Measured: 3 to 8 s each kernel, once.
///
/// # Errors
/// When the kernel's headers cannot be had or the compiler fails: its messages are shown.
pub fn mlx5(kernel: &str) -> Result<Vec<PathBuf>> {
    let _building = BUILDING.lock();
    let source = command::workspace().join(SOURCES);
    // The list names the release that is in the cache: a module fits no other one.
    let list = command::run(command::xtask().args(["lab", "--list"]), LIMIT)?.stdout;
    let row = list.lines().find(|line| line.split_whitespace().next() == Some(kernel));
    let state = state_of(&source, row.with_context(|| format!("no kernel {kernel}"))?)?;
    let folder = command::target().join("lab-tests/modules").join(kernel).join(state);
    let files: Vec<_> = MODULES.iter().map(|name| folder.join(name)).collect();
    if files.iter().all(|file| file.is_file()) {
        return Ok(files);
    }
    fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
    let mut command = command::xtask();
    command.args(["lab-module", "--kernel", kernel, "--out"]).arg(&folder).arg(&source);
    let seen = command::run(&mut command, LIMIT)?;
    let words = tail(&format!("{}{}", seen.stdout, seen.stderr), 40);
    ensure!(seen.status.success(), "the stand-ins for kernel {kernel} do not compile:\n{words}");
    for file in &files {
        ensure!(file.is_file(), "no {} for kernel {kernel}:\n{words}", file.display());
    }
    Ok(files)
}

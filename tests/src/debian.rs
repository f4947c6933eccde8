//! Programs of Debian's that a test runs beside the agent and that need not be installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use crate::command::{run, tail, target};

/// How long fetching may take.
const FETCH: Duration = Duration::from_secs(300);

/// The folder that these packages are unpacked in: below cargo's, fetched the first time and not installed.
///
/// # Errors
/// When this host cannot fetch them.
pub(crate) fn unpacked(name: &str, packages: &[&str]) -> Result<PathBuf> {
    let folder = target().join(name);
    if folder.is_dir() {
        return Ok(folder);
    }
    fs::create_dir_all(target()).context("cargo's folder")?;
    // Two tests may fetch at one time: the first to be done is taken.
    let prefix = format!("{name}-");
    let fresh = tempfile::Builder::new().prefix(&prefix).tempdir_in(target()).context("a folder to unpack in")?;
    let say = |command: &mut Command| {
        let seen = run(command.current_dir(fresh.path()), FETCH)?;
        ensure!(seen.status.success(), "{command:?}:\n{}", tail(&seen.stderr, 20));
        anyhow::Ok(())
    };
    say(Command::new("apt-get").arg("download").args(packages)).with_context(|| format!("{name} is not installed"))?;
    for entry in fs::read_dir(fresh.path()).context("what apt has brought")? {
        let package = entry.context("what apt has brought")?.path();
        say(Command::new("dpkg-deb").arg("-x").args([&package, Path::new(".")]))?;
        fs::remove_file(&package).context("a package that is unpacked")?;
    }
    match fs::rename(fresh.keep(), &folder) {
        Err(error) if !folder.is_dir() => Err(error).with_context(|| format!("keep {name}")),
        _ => Ok(folder),
    }
}

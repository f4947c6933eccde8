//! iperf3: a sender and receiver that count their bytes themselves, and that this project has no part in.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use crate::command::{run, tail, target};

/// How long fetching may take.
const FETCH: Duration = Duration::from_secs(300);

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
    let folder = unpacked()?;
    let libraries = fs::read_dir(folder.join("usr/lib")).context("the libraries of iperf3")?;
    let mut libraries = libraries.filter_map(Result::ok).map(|entry| entry.path());
    let libraries = libraries.find(|path| path.is_dir()).context("the libraries of iperf3")?;
    let path = format!("LD_LIBRARY_PATH={}", libraries.display());
    Ok(vec![PathBuf::from("env"), PathBuf::from(path), folder.join("usr/bin/iperf3")])
}

/// The folder that its packages are unpacked in: below cargo's, fetched the first time and not installed.
fn unpacked() -> Result<PathBuf> {
    let folder = target().join("iperf3");
    if folder.is_dir() {
        return Ok(folder);
    }
    fs::create_dir_all(target()).context("cargo's folder")?;
    // Two tests may fetch at one time: the first to be done is taken.
    let fresh = tempfile::Builder::new().prefix("iperf3-").tempdir_in(target()).context("a folder for iperf3")?;
    let say = |command: &mut Command| {
        let seen = run(command.current_dir(fresh.path()), FETCH)?;
        ensure!(seen.status.success(), "{command:?}:\n{}", tail(&seen.stderr, 20));
        anyhow::Ok(())
    };
    say(Command::new("apt-get").arg("download").args(PACKAGES)).context("iperf3 is not installed")?;
    for entry in fs::read_dir(fresh.path()).context("what apt has brought")? {
        let package = entry.context("what apt has brought")?.path();
        say(Command::new("dpkg-deb").arg("-x").args([&package, Path::new(".")]))?;
        fs::remove_file(&package).context("a package that is unpacked")?;
    }
    match fs::rename(fresh.keep(), &folder) {
        Err(error) if !folder.is_dir() => Err(error).context("keep iperf3"),
        _ => Ok(folder),
    }
}

//! The sources of `core`: the sysroot's own, else rustup's component, else Debian's package.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, anyhow, bail};
use ebpf_build::Toolchain;

use super::exact;
use crate::runner::{on_path, output, run};

/// Debian suites that carry compilers newer than a release's, in the order they are asked.
const SUITES: &[&str] = &["trixie-backports", "forky"];

/// The file of the sources that names the release they belong to, seen from the library's folder.
const CORE: &str = "core/src/lib.rs";

pub(super) fn check(toolchain: &Toolchain) -> Result<String> {
    for (library, place) in
        [(toolchain.own_library(), "the toolchain's own"), (toolchain.cached_library(), "the cache's")]
    {
        if library.join("Cargo.lock").exists() && library.join(CORE).exists() {
            return Ok(format!("{}, {place}", toolchain.version));
        }
    }
    bail!("not there")
}

pub(super) fn bring(toolchain: &Toolchain) -> Result<()> {
    let by_rustup = if may_use_rustup() {
        by_rustup()
    } else {
        Err(anyhow!("rustup is absent, or told to install nothing by itself"))
    };
    let Err(no_rustup) = by_rustup else {
        return Ok(());
    };
    eprintln!("  {:<16} not by rustup ({no_rustup:#}); asking Debian", "");
    from_debian(toolchain)
}

/// Rustup is asked only where it may install: `RUSTUP_AUTO_INSTALL=0` says that this machine's toolchains are
/// kept by someone else.
fn may_use_rustup() -> bool {
    on_path("rustup") && env::var_os("RUSTUP_AUTO_INSTALL").is_none_or(|value| value != "0")
}

fn by_rustup() -> Result<()> {
    run(Command::new("rustup").args(["component", "add", "rust-src"]))
}

/// Takes the package of exactly this release and unpacks only the library; nothing is installed.
fn from_debian(toolchain: &Toolchain) -> Result<()> {
    let version = &toolchain.version;
    let work = toolchain.cache.join("rust-src.new");
    // What an attempt that ended early left would be taken for this one's.
    if work.exists() {
        fs::remove_dir_all(&work).with_context(|| format!("cannot remove {}", work.display()))?;
    }
    let deb = fetch(version, &work.join("deb"))?;
    unpack(&deb, &work, version)?;
    let from = work.join(format!("usr/src/rustc-{version}/library"));
    let to = toolchain.cached_library();
    if to.exists() {
        fs::remove_dir_all(&to).with_context(|| format!("cannot remove {}", to.display()))?;
    }
    fs::rename(&from, &to).with_context(|| format!("cannot move {} to {}", from.display(), to.display()))?;
    fs::remove_dir_all(&work).with_context(|| format!("cannot remove {}", work.display()))
}

/// Asks one suite after the other; the first error is the one to tell, since it names the suite meant.
fn fetch(version: &str, dest: &Path) -> Result<PathBuf> {
    let mut first = None;
    for suite in SUITES {
        match exact::download(suite, "rust-src", &format!("{version}+*"), dest) {
            Ok(file) => return Ok(file),
            Err(error) => first = first.or(Some(error)),
        }
    }
    Err(first.unwrap_or_else(|| anyhow!("no suite to ask")))
}

fn unpack(deb: &Path, into: &Path, version: &str) -> Result<()> {
    // `dpkg-deb` unpacks all or nothing, and the library is a tenth of it: tar picks.
    let script = "dpkg-deb --fsys-tarfile \"$1\" | tar -x -C \"$2\" \"$3\"";
    let member = format!("./usr/src/rustc-{version}/library");
    output(Command::new("sh").args(["-e", "-c", script, "sh"]).args([deb, into]).arg(member))?;
    Ok(())
}

//! Drivers that the kernel's source has and Debian's kernels leave out: their source, to be built as modules.
//!
//! It comes out of Debian's package of the source of that very kernel, of which nothing else is kept. Measured for each
//! kernel: 139 to 167 MB to fetch, 1 s to unpack and 8 s to read through on a busy host, 260 KB kept.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use clap::builder::PossibleValuesParser;

use super::cache;
use super::kernels::{Kernel, Row};
use super::tools::Tools;
use crate::apt;

/// One driver.
struct Driver {
    /// What `--driver` takes, and the module's name.
    name: &'static str,
    /// Its folder in the kernel's source.
    folder: &'static str,
    /// The option that its Makefile asks for.
    option: &'static str,
}

/// Every driver that can be had this way. A new driver is a new row.
const DRIVERS: &[Driver] = &[Driver { name: "siw", folder: "drivers/infiniband/sw/siw", option: "CONFIG_RDMA_SIW" }];

/// The names, as the command line takes them.
pub(super) fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(DRIVERS.iter().map(|driver| driver.name))
}

/// The folder with the driver's source, ready to be built for the kernel whose headers stand in `headers`.
///
/// # Errors
/// When the kernel's headers do not say what they were built from, or Debian has that source no more.
pub(super) fn source(name: &str, row: &Row, kernel: &Kernel, headers: &Path, tools: &Tools) -> Result<PathBuf> {
    let driver = DRIVERS.iter().find(|driver| driver.name == name).with_context(|| format!("no driver {name}"))?;
    let stamp = headers.join("usr/src").join(format!("linux-headers-{}", kernel.release));
    let stamp = stamp.join("include/generated/utsversion.h");
    let text = fs::read_to_string(&stamp).with_context(|| format!("read {}", stamp.display()))?;
    let version = built_from(&text).with_context(|| format!("{}: no Debian version in it", stamp.display()))?;
    let what = format!("the source of {name} for kernel {}", kernel.release);
    cache::once(&cache::folder()?.join("drivers").join(&kernel.release).join(name), &what, |dir| {
        let package = package(version).with_context(|| format!("{version} is no version of a kernel"))?;
        let scratch = tempfile::tempdir_in(cache::folder()?)?;
        let exact = format!("{package}={version}");
        let files = apt::download(row.suite, &[&exact], &scratch.path().join("debs")).with_context(|| {
            format!(
                "Debian {} has no {package} of version {version}, which kernel {} was built from: remove {}, so \
                 that the newest kernel is fetched, with its headers",
                row.suite,
                kernel.release,
                kernel.folder().display()
            )
        })?;
        apt::unpack(&files, scratch.path())?;
        let archive = scratch.path().join("usr/src").join(format!("{package}.tar.xz"));
        extract(tools, &archive, &format!("{package}/{}", driver.folder), dir)?;
        // Read in place of the Makefile: the kernel's own configuration leaves the driver out.
        let kbuild = format!("{} := m\ninclude $(src)/Makefile\n", driver.option);
        fs::write(dir.join("Kbuild"), kbuild).context("write the Kbuild file")
    })
}

/// Unpacks the files of one folder of an archive.
fn extract(tools: &Tools, archive: &Path, folder: &str, into: &Path) -> Result<()> {
    let mut xz = tools.command("usr/bin/xz");
    let mut xz = xz.args(["-dcT0"]).arg(archive).stdout(Stdio::piped()).spawn().context("start xz")?;
    let words = xz.stdout.take().context("xz has no output")?;
    let depth = folder.split('/').count();
    let mut tar = Command::new("tar");
    tar.arg("-xC").arg(into).arg(format!("--strip-components={depth}")).arg(folder).stdin(words);
    let unpacked = apt::run(&mut tar);
    // Its end of the pipe is closed, or xz would wait for a reader that is gone.
    drop(tar);
    let status = xz.wait().context("wait for xz")?;
    unpacked.with_context(|| format!("take {folder} out of {}", archive.display()))?;
    ensure!(status.success(), "unpack {}: xz ended with {status}", archive.display());
    Ok(())
}

/// The version of the Debian package that a kernel was built from, in the text that its headers keep of its build:
/// `#define UTS_VERSION "#1 SMP PREEMPT_DYNAMIC Debian 6.12.117-1 (2026-11-12)"`.
fn built_from(text: &str) -> Option<&str> {
    text.split_once(" Debian ")?.1.split([' ', '"']).next().filter(|version| !version.is_empty())
}

/// The package with the source of a version: its name has the first two numbers.
fn package(version: &str) -> Option<String> {
    let mut numbers = version.split(['.', '-']);
    let (first, second) = (numbers.next()?, numbers.next()?);
    let number = |text: &str| !text.is_empty() && text.bytes().all(|sign| sign.is_ascii_digit());
    (number(first) && number(second)).then(|| format!("linux-source-{first}.{second}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_of_a_kernel_s_source_is_known_by_its_headers() {
        for (version, expected) in [
            ("6.1.176-1", "linux-source-6.1"),
            ("6.12.117-1", "linux-source-6.12"),
            ("7.3.4-1~bpo13+1", "linux-source-7.3"),
        ] {
            let text = format!("#define UTS_VERSION \"#1 SMP PREEMPT_DYNAMIC Debian {version} (2026-11-12)\"\n");
            assert_eq!(built_from(&text), Some(version));
            assert_eq!(package(version).as_deref(), Some(expected));
        }
        assert_eq!(built_from("#define UTS_VERSION \"#1 SMP Thu Nov 12 09:30:00 UTC 2026\""), None);
        for version in ["", "6", "next-20261112", "6.x"] {
            assert_eq!(package(version), None, "{version}");
        }
    }
}

//! Builds a kernel module for a kernel of the lab: its Debian headers, and the compiler of the guest's programs.
//!
//! Measured: headers 9 to 13 s once, then 3 to 8 s for a small module. On 6.1 modules come without type information.
//! The build sees the guest's programs with the headers laid over them; what it writes goes to a folder of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, ensure};

use super::kernels::{self, Kernel, Row};
use super::tools::Tools;
use super::{cache, driver, userland};
use crate::apt;

/// What a build needs over the guest's programs, from the same suite.
const BUILD_PACKAGES: &[&str] = &["make", "pahole", "libdw1t64"];

/// Run as root of a mount name space of its own: nothing of it is left when it ends.
const BUILD_SCRIPT: &str = r#"
mount -t overlay -o "lowerdir=$HEADERS:$USERLAND,upperdir=$SCRATCH/upper,workdir=$SCRATCH/work" build "$SCRATCH/root"
mount --rbind /dev "$SCRATCH/root/dev"
mount --rbind /proc "$SCRATCH/root/proc"
exec chroot "$SCRATCH/root" env -i PATH=/usr/sbin:/usr/bin HOME=/ LC_ALL=C \
    make -j"$JOBS" -C "/usr/lib/modules/$RELEASE/build" M=/src CC=gcc CONFIG_GCC_PLUGINS= modules
"#;

/// Builds an out-of-tree kernel module for a kernel of the lab.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The kernel; `lab --list` names them
    #[arg(long, value_name = "K", value_parser = kernels::names())]
    kernel: String,
    /// Where the .ko files go
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
    /// A driver out of the kernel's own source, which Debian's kernels leave out
    #[arg(long, value_name = "NAME", value_parser = driver::names())]
    driver: Option<String>,
    /// The folder with the sources and their Kbuild file; it stays as it is
    #[arg(value_name = "DIR", required_unless_present = "driver", conflicts_with = "driver")]
    sources: Option<PathBuf>,
}

/// Runs the command line: prints the path of each module made.
///
/// # Errors
/// When the headers cannot be had (the mirror may have moved on from the cached kernel) or the build fails.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let row = Row::find(&args.kernel)?;
    let tools = Tools::get()?;
    let userland = userland::get(&tools)?;
    let kernel = row.get(&tools)?;
    let headers = headers(row, &kernel)?;
    let sources = match (&args.sources, &args.driver) {
        (Some(folder), _) => folder.clone(),
        (None, name) => driver::source(name.as_deref().unwrap_or_default(), row, &kernel, &headers, &tools)?,
    };
    let scratch = tempfile::tempdir_in(cache::folder()?)?;
    for folder in ["upper/src", "work", "root"] {
        fs::create_dir_all(scratch.path().join(folder))?;
    }
    let source = scratch.path().join("upper/src");
    copy_files(&sources, &source)?;
    let mut command = Command::new("unshare");
    command.args(["--mount", "--map-root-user", "sh", "-ec", BUILD_SCRIPT]).env("RELEASE", &kernel.release);
    command.env("HEADERS", headers).env("USERLAND", userland).env("SCRATCH", scratch.path());
    command.env("JOBS", std::thread::available_parallelism().map_or(1, usize::from).to_string());
    apt::run(&mut command)?;
    fs::create_dir_all(&args.out)?;
    let mut made = 0;
    for entry in fs::read_dir(&source)? {
        let path = entry?.path();
        if let Some(name) = path.file_name().filter(|_| path.extension().is_some_and(|end| end == "ko")) {
            let to = args.out.join(name);
            fs::copy(&path, &to).with_context(|| format!("write {}", to.display()))?;
            println!("{}", to.display());
            made += 1;
        }
    }
    ensure!(made > 0, "the Kbuild file in {} makes no module", sources.display());
    Ok(ExitCode::SUCCESS)
}

fn copy_files(from: &Path, into: &Path) -> Result<()> {
    for entry in fs::read_dir(from).with_context(|| format!("list {}", from.display()))? {
        let path = entry?.path();
        if let Some(name) = path.file_name().filter(|_| path.is_file()) {
            fs::copy(&path, into.join(name)).with_context(|| format!("copy {}", path.display()))?;
        }
    }
    Ok(())
}

/// The headers of one kernel, with make and with the kernel's own image, which module type information is made from.
fn headers(row: &Row, kernel: &Kernel) -> Result<PathBuf> {
    let what = format!("headers of kernel {}", kernel.release);
    cache::once(&cache::folder()?.join("headers").join(&kernel.release), &what, |dir| {
        let main = format!("linux-headers-{}", kernel.release);
        let mut names = apt::dependencies(row.suite, &main)?;
        names.retain(|name| name.starts_with("linux-headers-") || name.starts_with("linux-kbuild-"));
        names.push(main.clone());
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        let debs = tempfile::tempdir_in(cache::folder()?)?;
        apt::unpack(&apt::download(row.suite, &names, debs.path())?, dir)?;
        apt::unpack(&apt::download(userland::SUITE, BUILD_PACKAGES, debs.path())?, dir)?;
        // Older packages have files in /lib, which is a link in the guest's root and must not be covered.
        if dir.join("lib").is_dir() {
            apt::run(Command::new("cp").arg("-a").arg(dir.join("lib")).arg(dir.join("usr")))?;
            fs::remove_dir_all(dir.join("lib"))?;
        }
        // Without this helper (6.1's packages have none) a build with the image fails, and without the image modules
        // are made without type information.
        let helper = "tools/bpf/resolve_btfids/resolve_btfids";
        let kbuild = names.iter().find(|name| name.starts_with("linux-kbuild-"));
        if kbuild.is_some_and(|name| dir.join("usr/lib").join(name).join(helper).exists()) {
            let to = dir.join("usr/src").join(&main).join("vmlinux");
            fs::copy(kernel.image(), to).context("add the kernel's image")?;
        }
        Ok(())
    })
}

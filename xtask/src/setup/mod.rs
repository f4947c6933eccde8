//! `cargo xtask setup`: brings what building and testing need, says what and why, changes nothing else.
//!
//! [`STEPS`] is the table: each row knows how to see that its piece is there and in order, and how to bring it.
//! A piece that is in order is left alone, so set-up can run before every other command. Everything lands in
//! the cache folder; the user's apt sources stay as they are.

mod core_sources;
mod exact;
mod linker;

use std::fs::{self, File, TryLockError};
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use ebpf_build::{Toolchain, cache};

use crate::lab;

/// What a piece is for; `test --only unit` needs no lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// The user side: nothing works without it.
    Compiler,
    /// The kernel side's build.
    KernelSide,
    /// Real kernels in virtual machines.
    Lab,
}

impl Part {
    pub(crate) const ALL: [Self; 3] = [Self::Compiler, Self::KernelSide, Self::Lab];

    /// What the project can do without this part, for the message when a piece is not to be had.
    fn without(self) -> &'static str {
        match self {
            Self::Compiler => "nothing can be built",
            Self::KernelSide => {
                "the user side still builds, checks and runs its unit tests, but no agent with programs for the kernel can be built"
            }
            Self::Lab => "everything else works; only the tests on real kernels do not run",
        }
    }
}

/// One piece.
struct Step {
    name: &'static str,
    part: Part,
    /// Why it is wanted, one clause.
    why: &'static str,
    /// Where it comes from.
    from: &'static str,
    /// What is there, in order: a few words. Otherwise why it is not. Absent where `bring` looks by itself.
    check: Option<fn(&Toolchain) -> Result<String>>,
    /// Brings it. The check runs again afterwards.
    bring: fn(&Toolchain) -> Result<()>,
}

/// Every piece, in the order they build on each other.
const STEPS: &[Step] = &[
    Step {
        name: "compiler",
        part: Part::Compiler,
        why: "builds both sides; its version is pinned in rust-toolchain.toml",
        from: "rustup installs it by itself, on the first cargo command in this folder",
        check: Some(check_compiler),
        bring: |_| bail!("install it with rustup"),
    },
    Step {
        name: "sources of core",
        part: Part::KernelSide,
        why: "core is compiled for the BPF target, for which none is shipped",
        from: "`rustup component add rust-src`, else Debian's package of the same name and version",
        check: Some(core_sources::check),
        bring: core_sources::bring,
    },
    Step {
        name: "bpf-linker",
        part: Part::KernelSide,
        why: "links the kernel side into one object, with the compiler's own LLVM",
        from: "the crate registry, built here (about a minute)",
        check: Some(linker::check),
        bring: linker::bring,
    },
    Step {
        name: "lab",
        part: Part::Lab,
        why: "end-to-end tests run on stock kernels with RDMA devices, whatever this host's kernel has",
        from: "Debian's packages (kernels, QEMU, RDMA tools), unpacked and never installed: about 1 GB",
        check: None,
        bring: |_| lab::setup(),
    },
];

/// Brings every missing piece of the `wanted` parts and says so on standard error.
///
/// # Errors
/// Names each piece that is not to be had; the pieces that do not need it are brought all the same.
pub(crate) fn run(wanted: &[Part]) -> Result<()> {
    let toolchain = Toolchain::find()?;
    let folder = cache::dir()?;
    eprintln!("set-up: everything goes to {}", folder.display());
    let _lock = lock(&folder)?;
    let mut failed: Vec<&str> = Vec::new();
    for step in STEPS.iter().filter(|step| wanted.contains(&step.part)) {
        if let Err(error) = step.take(&toolchain) {
            eprintln!("  {:<16} not to be had: {error:#}", step.name);
            eprintln!("  {:<16} comes from: {}", "", step.from);
            eprintln!("  {:<16} without it: {}", "", step.part.without());
            failed.push(step.name);
        }
    }
    if !failed.is_empty() {
        bail!("set-up could not bring: {}", failed.join(", "));
    }
    Ok(())
}

/// Lets one set-up at a time into the cache folder; the lock goes with the process that holds it.
fn lock(folder: &Path) -> Result<File> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let path = folder.join(".set-up-lock");
    let file = File::create(&path).with_context(|| format!("cannot create {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => return Ok(file),
        Err(TryLockError::WouldBlock) => eprintln!("  another set-up is at work there: waiting for it"),
        Err(TryLockError::Error(error)) => {
            return Err(error).with_context(|| format!("cannot lock {}", path.display()));
        }
    }
    file.lock().with_context(|| format!("cannot lock {}", path.display()))?;
    Ok(file)
}

impl Step {
    fn take(&self, toolchain: &Toolchain) -> Result<()> {
        let Some(check) = self.check else {
            (self.bring)(toolchain)?;
            eprintln!("  {:<16} in place", self.name);
            return Ok(());
        };
        let absent = match check(toolchain) {
            Ok(found) => {
                eprintln!("  {:<16} {found}", self.name);
                return Ok(());
            }
            Err(absent) => absent,
        };
        eprintln!("  {:<16} {absent:#}", self.name);
        eprintln!("  {:<16} wanted: {}", "", self.why);
        let start = Instant::now();
        (self.bring)(toolchain)?;
        let found = check(toolchain)?;
        eprintln!("  {:<16} {found} ({:.1} s)", self.name, start.elapsed().as_secs_f64());
        Ok(())
    }
}

/// The compiler that runs is the one that is pinned: a build with another one would find no linker that fits.
fn check_compiler(toolchain: &Toolchain) -> Result<String> {
    let pin = include_str!("../../../rust-toolchain.toml");
    match pinned(pin) {
        Some(version) if version == toolchain.version => Ok(format!("{version}, as pinned")),
        Some(version) => bail!("{} runs, {version} is pinned", toolchain.version),
        None => bail!("rust-toolchain.toml pins no channel"),
    }
}

fn pinned(toml: &str) -> Option<&str> {
    let line = toml.lines().find_map(|line| line.trim().strip_prefix("channel"))?;
    Some(line.trim_start().strip_prefix('=')?.trim().trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pinned_channel_is_read() {
        assert_eq!(pinned("[toolchain]\nchannel = \"1.95.0\"\n"), Some("1.95.0"));
        assert_eq!(pinned("[toolchain]\n"), None);
    }

    #[test]
    fn every_step_has_its_own_name() {
        for (i, step) in STEPS.iter().enumerate() {
            assert!(STEPS[..i].iter().all(|other| other.name != step.name), "{} stands twice", step.name);
        }
    }
}

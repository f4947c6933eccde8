//! `cargo xtask build`: set-up, then every binary of the project, the kernel side inside.

use anyhow::Result;

use crate::runner::{cargo, run};
use crate::setup::{self, Part};

/// Builds all binaries but xtask itself.
///
/// # Errors
/// If set-up or the build fails. Set-up comes first because without its pieces the agent would be built
/// without its kernel side.
pub(crate) fn all(release: bool) -> Result<()> {
    packages(&["--workspace", "--exclude", "xtask"], release)
}

/// Builds the agent only.
///
/// # Errors
/// As [`all`].
pub(crate) fn agent(release: bool) -> Result<()> {
    packages(&["--package", "agent"], release)
}

fn packages(which: &[&str], release: bool) -> Result<()> {
    setup::run(&[Part::Compiler, Part::KernelSide])?;
    let mut build = cargo(&["build"])?;
    build.args(which);
    if release {
        build.arg("--release");
    }
    run(&mut build)
}

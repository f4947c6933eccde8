//! Builds the kernel side and tells the agent where its object is, as `FABRICSCOPE_OBJECT`.
//!
//! On a machine that is not set up the object is an empty file: checking, linting and testing the user side
//! need no kernel side. The agent says at run time that it was built without.

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use ebpf_build::{Kernel, Toolchain, cache, target_dir};

/// What the object is made from, seen from the workspace.
const SOURCES: [&str; 5] =
    ["agent-ebpf/src", "agent-ebpf/Cargo.toml", "agent-common/src", "agent-common/Cargo.toml", "Cargo.toml"];

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").ok_or("CARGO_MANIFEST_DIR is not set")?);
    let workspace = manifest.parent().ok_or("the agent stands in no workspace")?;
    let arch = env::var("CARGO_CFG_TARGET_ARCH")?;
    depend_on(workspace);

    let object = out.join(ebpf_build::PACKAGE);
    println!("cargo::rustc-env=FABRICSCOPE_OBJECT={}", object.display());
    let kernel = match kernel(workspace, &target_dir(workspace, &out), &arch) {
        Err(absent @ (ebpf_build::Error::Missing(_) | ebpf_build::Error::NoCache)) => {
            println!("cargo::warning=built without the kernel side: {absent}");
            return Ok(fs::write(&object, [])?);
        }
        kernel => kernel?,
    };
    if let Err(error) = kernel.build(&object) {
        // The compiler's own words, over several lines, which a `Debug` print of the error would fold into one.
        println!("cargo::error={}", error.to_string().lines().next().unwrap_or_default());
        eprintln!("{error}");
        return Err("there is no kernel-side object to embed".into());
    }
    Ok(())
}

/// Finds what the build needs, and has cargo run this script again when the linker changes. A linker that is
/// not there yet counts as changed each time, so that the first build after set-up takes the kernel side in.
fn kernel(workspace: &Path, target: &Path, arch: &str) -> ebpf_build::Result<Kernel> {
    let toolchain = Toolchain::find()?;
    println!("cargo::rerun-if-changed={}", toolchain.linker().display());
    Kernel::new(workspace, target, arch, &toolchain)
}

/// Runs this script again when something the object is made from changes, or where the cache folder is.
fn depend_on(workspace: &Path) {
    for source in SOURCES {
        println!("cargo::rerun-if-changed={}", workspace.join(source).display());
    }
    for variable in cache::VARIABLES {
        println!("cargo::rerun-if-env-changed={variable}");
    }
}

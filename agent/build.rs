//! Builds the kernel side and tells the agent where its objects are, as `FABRICSCOPE_OBJECT` and `FABRICSCOPE_BURSTS`.
//!
//! On a machine that is not set up the objects are empty files: checking, linting and testing the user side
//! need no kernel side. The agent says at run time that it was built without.

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use ebpf_build::{Kernel, Toolchain, cache, target_dir};

/// What the objects are made from, seen from the workspace.
const SOURCES: [&str; 5] =
    ["agent-ebpf/src", "agent-ebpf/Cargo.toml", "agent-common/src", "agent-common/Cargo.toml", "Cargo.toml"];

/// Where the agent finds them, in the order of [`ebpf_build::OBJECTS`].
const VARIABLES: [&str; 2] = ["FABRICSCOPE_OBJECT", "FABRICSCOPE_BURSTS"];

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").ok_or("CARGO_MANIFEST_DIR is not set")?);
    let workspace = manifest.parent().ok_or("the agent stands in no workspace")?;
    let arch = env::var("CARGO_CFG_TARGET_ARCH")?;
    depend_on(workspace);

    let objects = ebpf_build::OBJECTS.map(|name| out.join(name));
    for (variable, object) in VARIABLES.iter().zip(&objects) {
        println!("cargo::rustc-env={variable}={}", object.display());
    }
    let kernel = match kernel(workspace, &target_dir(workspace, &out), &arch) {
        Err(absent @ (ebpf_build::Error::Missing(_) | ebpf_build::Error::NoCache)) => {
            println!("cargo::warning=built without the kernel side: {absent}");
            return Ok(objects.iter().try_for_each(|object| fs::write(object, []))?);
        }
        kernel => kernel?,
    };
    if let Err(error) = kernel.build(&out) {
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

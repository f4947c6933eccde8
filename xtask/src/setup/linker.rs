//! bpf-linker, built against the compiler's own LLVM in a private folder.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use ebpf_build::{LINKER_VERSION, TARGET, Toolchain};

use crate::runner::{cargo, output, run};

/// One function for the kernel, without `core`: what a check links.
const ONE_FUNCTION: &str = "#![no_std]\n#![no_main]\n\
    #[unsafe(no_mangle)]\n#[unsafe(link_section = \"xdp\")]\npub extern \"C\" fn one() -> u64 { 2 }\n\
    #[panic_handler]\nfn panic(_: &core::panic::PanicInfo) -> ! { loop {} }\n";

/// The linker is there, is the release wanted, and its LLVM loads.
pub(super) fn check(toolchain: &Toolchain) -> Result<String> {
    let linker = toolchain.linker();
    if !linker.exists() {
        bail!("not there");
    }
    let said = output(Command::new(&linker).arg("--version"))?;
    let version = said.trim().rsplit(' ').next().unwrap_or_default();
    if version != LINKER_VERSION {
        bail!("it is {version}, {LINKER_VERSION} is wanted");
    }
    Ok(format!("{version}, on the LLVM of compiler {}", toolchain.version))
}

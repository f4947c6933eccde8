//! bpf-linker, built against the compiler's own LLVM in a private folder.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use anyhow::{Context, Result, bail};
use ebpf_build::{LINKER_VERSION, TARGET, Toolchain, inherit};

use crate::runner::{cargo, output, run};

/// One function for the kernel that needs no `core`: what a check compiles and links, in 60 ms. It leans on
/// the compiler's inner names, as `core` itself does; a new compiler may ask for other ones.
const ONE_FUNCTION: &str = r#"
#![feature(no_core, lang_items)]
#![allow(internal_features)]
#![no_core]
#![no_main]
#[lang = "pointee_sized"]
trait PointeeSized {}
#[lang = "meta_sized"]
trait MetaSized: PointeeSized {}
#[lang = "sized"]
trait Sized: MetaSized {}
#[lang = "copy"]
trait Copy {}
#[unsafe(no_mangle)]
#[unsafe(link_section = "xdp")]
extern "C" fn one() -> u64 { 2 }
"#;

/// The linker is there, is the release wanted, and links what this compiler makes.
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
    link_one_function(toolchain).context("it cannot link what this compiler makes")?;
    Ok(format!("{version}, links one function with the compiler's own LLVM"))
}

fn link_one_function(toolchain: &Toolchain) -> Result<()> {
    let root = toolchain.linker_root();
    let (source, object) = (root.join("one.rs"), root.join("one.o"));
    fs::write(&source, ONE_FUNCTION).with_context(|| format!("cannot write {}", source.display()))?;
    let mut rustc = Command::new("rustc");
    inherit::scrub(&mut rustc)
        .env("RUSTC_BOOTSTRAP", "1")
        .args(["--edition", "2024", "--target", TARGET, "-O"])
        .args(["-Ctarget-cpu=v3", "-Cdebuginfo=2", "-Clink-arg=--btf"])
        .arg(format!("-Clinker={}", toolchain.linker().display()))
        .arg("-o")
        .args([&object, &source])
        .current_dir(&root);
    output(&mut rustc)?;
    let bytes = fs::read(&object).with_context(|| format!("cannot read {}", object.display()))?;
    if !is_bpf(&bytes) {
        bail!("{} is no BPF object", object.display());
    }
    Ok(())
}

/// An ELF file for the machine EM_BPF (247, `include/uapi/linux/elf-em.h`), little endian.
fn is_bpf(elf: &[u8]) -> bool {
    elf.starts_with(b"\x7fELF\x02\x01") && elf.get(18..20) == Some(&[247, 0])
}

pub(super) fn bring(toolchain: &Toolchain) -> Result<()> {
    let root = toolchain.linker_root();
    if root.exists() {
        fs::remove_dir_all(&root).with_context(|| format!("cannot remove {}", root.display()))?;
    }
    let llvm = offer_llvm(toolchain)?;
    let build = root.join("build");
    let version = format!("={LINKER_VERSION}");
    let mut install = cargo(&["install", "bpf-linker", "--version", &version, "--locked"])?;
    install
        .args(["--no-default-features", "--features", "llvm-22", "--quiet"])
        .arg("--root")
        .arg(&root)
        .arg("--target-dir")
        .arg(&build)
        .env("LLVM_PREFIX", llvm)
        // cargo would advise to put the private folder on the search path; nobody calls the linker by name.
        .env("CARGO_TERM_QUIET", "true");
    run(&mut install)?;
    fs::remove_dir_all(&build).with_context(|| format!("cannot remove {}", build.display()))
}

/// Makes a folder that looks like an LLVM installation to the linker's build script, which wants
/// `lib/libLLVM.so`, and to the dynamic loader later, which wants the library by its full name.
fn offer_llvm(toolchain: &Toolchain) -> Result<std::path::PathBuf> {
    let library = toolchain.llvm()?;
    let prefix = toolchain.linker_root().join("llvm");
    let lib = prefix.join("lib");
    fs::create_dir_all(&lib).with_context(|| format!("cannot create {}", lib.display()))?;
    let own_name = library.file_name().context("the compiler's LLVM has no name")?;
    for name in ["libLLVM.so".as_ref(), own_name] {
        let link = lib.join(name);
        symlink(&library, &link).with_context(|| format!("cannot create {}", link.display()))?;
    }
    Ok(prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_little_endian_bpf_objects_pass() {
        let mut elf = *b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x01\0\xf7\0";
        assert!(is_bpf(&elf));
        elf[18] = 62;
        assert!(!is_bpf(&elf));
        assert!(!is_bpf(b"\x7fELF"));
    }
}

//! The build itself: an inner cargo, its flags, its lock.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::{Error, Result};
use crate::toolchain::{Pieces, Toolchain};
use crate::{OBJECTS, PACKAGE, TARGET, inherit, object};

/// A kernel side that can be built: the workspace it stands in and what it is built with.
#[derive(Debug)]
pub struct Kernel {
    workspace: PathBuf,
    target: PathBuf,
    /// The architecture whose registers the programs will see, such as `x86_64`.
    arch: String,
    pieces: Pieces,
}

impl Kernel {
    /// The kernel side of `workspace` for hosts of the architecture `arch` (as Rust spells it: `x86_64`,
    /// `aarch64`), built by `toolchain` inside the target folder `target`.
    ///
    /// # Errors
    /// [`Error::Missing`] if this machine is not set up.
    pub fn new(workspace: &Path, target: &Path, arch: &str, toolchain: &Toolchain) -> Result<Self> {
        let pieces = toolchain.pieces()?;
        Ok(Self { workspace: workspace.to_owned(), target: target.join("bpf"), arch: arch.to_owned(), pieces })
    }

    /// Builds the objects, checks them, and puts copies into the folder `out`, each complete or not at all.
    ///
    /// # Errors
    /// If the kernel side does not compile or link, or can panic; the compiler's words are in the error.
    pub fn build(&self, out: &Path) -> Result<()> {
        fs::create_dir_all(&self.target).map_err(|e| Error::io("create the folder", &self.target, e))?;
        let _lock = self.lock()?;
        let run = self.cargo("build").arg("--release").stdin(Stdio::null()).output();
        let run = run.map_err(|source| Error::Io { action: "run cargo for the kernel side".into(), source })?;
        if !run.status.success() {
            let output = String::from_utf8_lossy(&run.stderr).trim().to_owned();
            return Err(Error::Failed { action: "building the kernel side".into(), output });
        }
        for name in OBJECTS {
            let built = self.target.join(TARGET).join("release").join(name);
            object::check(&built)?;
            copy(&built, &out.join(name))?;
        }
        Ok(())
    }

    /// An inner cargo command on the kernel side (`build`, `clippy`), with every flag it needs.
    pub fn cargo(&self, subcommand: &str) -> Command {
        let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        inherit::scrub(&mut cargo)
            .arg(subcommand)
            .args(["-Z", "build-std=core", "--target", TARGET, "--package", PACKAGE])
            .arg("--manifest-path")
            .arg(self.workspace.join("Cargo.toml"))
            .arg("--target-dir")
            .arg(&self.target)
            .current_dir(&self.workspace)
            // Opens the one unstable flag above on the stable compiler.
            .env("RUSTC_BOOTSTRAP", "1")
            // aya-ebpf's build scripts read it: they choose the register layout of the programs' context by it.
            .env("CARGO_CFG_BPF_TARGET_ARCH", &self.arch)
            .env("CARGO_ENCODED_RUSTFLAGS", self.flags().join("\x1f"));
        if let Some(library) = &self.pieces.library {
            cargo.env("__CARGO_TESTS_ONLY_SRC_ROOT", library);
        }
        cargo
    }

    fn flags(&self) -> Vec<String> {
        vec![
            format!("--cfg=bpf_target_arch=\"{}\"", self.arch),
            // The instruction set that kernels from 5.1 on know: 32-bit ALU, all jumps. By this flag, since
            // the linker's own `--cpu` does not work.
            "-Ctarget-cpu=v3".into(),
            // BTF is made from debug information.
            "-Cdebuginfo=2".into(),
            "-Clink-arg=--btf".into(),
            format!("-Clinker={}", self.pieces.linker.display()),
        ]
    }

    /// Waits for any other build in the same target folder. The lock goes with the file handle, so a build
    /// that is killed leaves none behind.
    fn lock(&self) -> Result<File> {
        let path = self.target.join(".kernel-side-lock");
        let file = File::create(&path).map_err(|e| Error::io("create", &path, e))?;
        file.lock().map_err(|e| Error::io("lock", &path, e))?;
        Ok(file)
    }
}

/// The target folder that `inside` (a build script's `OUT_DIR`, a running program) lies in; cargo marks it by
/// a `CACHEDIR.TAG`. Without such a mark, the default of `workspace`.
pub fn target_dir(workspace: &Path, inside: &Path) -> PathBuf {
    let marked = inside.ancestors().skip(1).find(|folder| folder.join("CACHEDIR.TAG").exists());
    marked.map_or_else(|| workspace.join("target"), Path::to_owned)
}

/// Copies by way of a neighbour and a rename: a reader sees the old object or the new one.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let neighbour = to.with_extension("new");
    fs::copy(from, &neighbour).map_err(|e| Error::io("write", &neighbour, e))?;
    fs::rename(&neighbour, to).map_err(|e| Error::io("write", to, e))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(arch: &str) -> Kernel {
        Kernel {
            workspace: "/w".into(),
            target: "/w/target/bpf".into(),
            arch: arch.into(),
            pieces: Pieces { library: Some("/c/library".into()), linker: "/c/bin/bpf-linker".into() },
        }
    }

    #[test]
    fn the_architecture_reaches_the_compiler_and_the_build_scripts() {
        for arch in ["x86_64", "aarch64"] {
            let kernel = kernel(arch);
            assert_eq!(kernel.flags()[0], format!("--cfg=bpf_target_arch=\"{arch}\""));
            let command = kernel.cargo("build");
            let set = |name: &str| command.get_envs().find(|(key, _)| *key == name).and_then(|(_, value)| value);
            assert_eq!(set("CARGO_CFG_BPF_TARGET_ARCH"), Some(arch.as_ref()));
            assert_eq!(set("__CARGO_TESTS_ONLY_SRC_ROOT"), Some("/c/library".as_ref()));
        }
    }

    #[test]
    fn a_path_outside_any_target_folder_falls_back_to_the_default() {
        assert_eq!(target_dir(Path::new("/w"), Path::new("/nonexistent/x")), Path::new("/w/target"));
    }
}

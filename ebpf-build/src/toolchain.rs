//! The compiler at hand, and the two pieces beside it that the kernel side needs.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cache;
use crate::error::{Error, Missing, Result};

/// The compiler that builds everything, host and kernel side.
#[derive(Debug, Clone)]
pub struct Toolchain {
    /// Its release, such as `1.95.0`.
    pub version: String,
    /// The folder it is installed in.
    pub sysroot: PathBuf,
    /// What belongs to this release in the cache folder; need not exist.
    pub cache: PathBuf,
}

/// What a build of the kernel side needs beside the compiler; see [`Toolchain::pieces`].
#[derive(Debug, Clone)]
pub struct Pieces {
    /// The folder of the standard library's sources, if the sysroot has none of its own.
    pub library: Option<PathBuf>,
    /// The linker.
    pub linker: PathBuf,
}

impl Toolchain {
    /// Asks the compiler of this build (`$RUSTC`, else `rustc`) for its release and place.
    ///
    /// # Errors
    /// If it cannot be run, or there is no cache folder.
    pub fn find() -> Result<Self> {
        let version = ask(&["-vV"])?;
        let release = version.lines().find_map(|line| line.strip_prefix("release: "));
        let release = release.ok_or_else(|| Error::Failed {
            action: "reading the compiler's release from `rustc -vV`".into(),
            output: version.clone(),
        })?;
        Ok(Self {
            version: release.to_owned(),
            sysroot: PathBuf::from(ask(&["--print", "sysroot"])?.trim()),
            cache: cache::dir()?.join(format!("rust-{release}")),
        })
    }

    /// Where the sysroot keeps the standard library's sources if the component `rust-src` is installed.
    pub fn own_library(&self) -> PathBuf {
        self.sysroot.join("lib/rustlib/src/rust/library")
    }

    /// Where set-up puts those sources if the sysroot has none.
    pub fn cached_library(&self) -> PathBuf {
        self.cache.join("library")
    }

    /// The private folder the linker is installed in.
    pub fn linker_root(&self) -> PathBuf {
        self.cache.join("bpf-linker")
    }

    /// The linker itself; a build depends on this file.
    pub fn linker(&self) -> PathBuf {
        self.linker_root().join("bin/bpf-linker")
    }

    /// The compiler's own LLVM, a file such as `lib/libLLVM.so.22.1-rust-1.95.0-stable`.
    ///
    /// # Errors
    /// If the sysroot holds none: the compiler then has LLVM built in (some distributions' packages do).
    pub fn llvm(&self) -> Result<PathBuf> {
        let lib = self.sysroot.join("lib");
        let entries = fs::read_dir(&lib).map_err(|e| Error::io("read the folder", &lib, e))?;
        let found = entries
            .flatten()
            .find(|entry| entry.file_name().to_str().is_some_and(|name| name.starts_with("libLLVM.so.")));
        found.map(|entry| entry.path()).ok_or_else(|| Error::Failed {
            action: format!("looking for the compiler's own LLVM (libLLVM.so.*) in {}", lib.display()),
            output: "the toolchain that rustup installs has it".into(),
        })
    }

    /// Finds both pieces.
    ///
    /// # Errors
    /// [`Error::Missing`] names all that are not there.
    pub fn pieces(&self) -> Result<Pieces> {
        let mut missing = Vec::new();
        let library = if is_library(&self.own_library()) {
            None
        } else {
            let library = self.cached_library();
            if !is_library(&library) {
                missing.push(Missing { what: "the sources of core", path: library.clone() });
            }
            Some(library)
        };
        let linker = self.linker();
        if !linker.exists() {
            missing.push(Missing { what: "bpf-linker", path: linker.clone() });
        }
        if missing.is_empty() { Ok(Pieces { library, linker }) } else { Err(Error::Missing(missing)) }
    }
}

/// Whether `folder` holds the standard library's sources.
fn is_library(folder: &Path) -> bool {
    folder.join("Cargo.lock").exists()
}

fn rustc() -> OsString {
    env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())
}

fn ask(arguments: &[&str]) -> Result<String> {
    let rustc = rustc();
    let action = || format!("run `{} {}`", rustc.display(), arguments.join(" "));
    let output =
        Command::new(&rustc).args(arguments).output().map_err(|source| Error::Io { action: action(), source })?;
    if !output.status.success() {
        let output = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(Error::Failed { action: action(), output });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_missing_piece_is_named_at_once() {
        let nowhere = PathBuf::from("/nonexistent");
        let toolchain = Toolchain { version: "1.0.0".into(), sysroot: nowhere.clone(), cache: nowhere };
        let Err(Error::Missing(missing)) = toolchain.pieces() else { panic!("nothing was missing") };
        let names: Vec<_> = missing.iter().map(|piece| piece.what).collect();
        assert_eq!(names, ["the sources of core", "bpf-linker"]);
    }
}

//! The programs the lab runs on the host (QEMU, busybox, depmod, decompressors), from packages in the cache.
//!
//! They come from one Debian suite with all their libraries and run with that suite's own loader, so that neither the
//! host's distribution nor its libraries matter. Measured: 63 MB to fetch, 290 MB unpacked, 8 s.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::cache;
use crate::apt;

const SUITE: &str = "trixie";
const PACKAGES: &[&str] = &["qemu-system-x86", "busybox-static", "kmod", "xz-utils", "zstd", "mmdebstrap"];
/// Where the emulator looks for its firmware, inside the unpacked tree.
const FIRMWARE: &[&str] = &["usr/share/qemu", "usr/share/seabios"];

/// The unpacked tree.
pub(super) struct Tools {
    root: PathBuf,
}

impl Tools {
    /// Where the tree stands when it is made.
    pub(super) fn folder() -> Result<PathBuf> {
        Ok(cache::folder()?.join("tools"))
    }

    /// Makes the tree when it is missing.
    pub(super) fn get() -> Result<Self> {
        let root = cache::once(&Self::folder()?, "QEMU and its libraries (63 MB)", |dir| {
            let debs = tempfile::tempdir_in(cache::folder()?)?;
            let files = apt::download_with_dependencies(SUITE, PACKAGES, debs.path())?;
            apt::unpack(&files, dir)
        })?;
        Ok(Tools { root })
    }

    /// A file of the tree.
    pub(super) fn file(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// The words that start a program of the tree (`usr/bin/xz`) under the tree's own loader.
    pub(super) fn words(&self, program: &str) -> Vec<String> {
        let libraries = self.file("usr/lib/x86_64-linux-gnu");
        let path = format!("{0}:{0}/pulseaudio", libraries.display());
        let loader = self.file("usr/lib64/ld-linux-x86-64.so.2");
        // QEMU's screen libraries look for neighbours through the search path too.
        [text(&loader), "--library-path".to_owned(), path, text(&self.file(program))].into()
    }

    /// A program of the tree, ready to take its arguments.
    pub(super) fn command(&self, program: &str) -> Command {
        let words = self.words(program);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        command
    }

    /// The emulator's arguments that name its firmware.
    pub(super) fn firmware(&self) -> Vec<String> {
        FIRMWARE.iter().flat_map(|folder| ["-L".to_owned(), text(&self.file(folder))]).collect()
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

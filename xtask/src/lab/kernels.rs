//! The lab's kernels: stock Debian packages, unpacked in the cache, with the image uncompressed and modules indexed.
//!
//! Measured: 6.1 70 MB, 6.12 108 MB, 7.3 122 MB to fetch. A kernel stays as it is once cached; removing its folder
//! fetches the newest of its line.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use clap::builder::PossibleValuesParser;

use super::cache;
use super::tools::Tools;
use crate::apt;

/// One kernel that tests run on.
pub(super) struct Row {
    /// What `--kernel` takes.
    pub(super) name: &'static str,
    /// The Debian suite that its packages come from.
    pub(super) suite: &'static str,
    /// Package names; `*` stands for the newest that matches.
    packages: &'static [&'static str],
    /// What is special about it, for `--list`.
    pub(super) notes: &'static str,
}

/// Every kernel of the lab. A new kernel is a new row.
pub(super) const KERNELS: &[Row] = &[
    Row {
        name: "6.1",
        suite: "bookworm",
        packages: &["linux-image-6.1.*-amd64"],
        notes: "no bnxt_re, no mana_ib, no TCX; soft-RoCE in one name space only",
    },
    Row {
        name: "6.12",
        suite: "trixie",
        packages: &["linux-image-6.12.*+deb13-amd64"],
        notes: "all NIC drivers; soft-RoCE in one name space only",
    },
    Row {
        name: "7.3",
        suite: "trixie-backports",
        packages: &["linux-binary-7.3.*-amd64", "linux-modules-7.3.*-amd64", "linux-base-7.3.*-amd64"],
        notes: "all NIC drivers; lazy preemption; soft-RoCE across name spaces too",
    },
];

/// The names, as the command line takes them.
pub(super) fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(KERNELS.iter().map(|row| row.name))
}

/// What must be loaded before the guest's root can be mounted and its output be heard, in this order.
const BOOT_MODULES: &[&str] = &["virtio_pci", "virtio_console", "9p", "9pnet_virtio", "overlay"];

/// What nearly every run loads: unpacked on the host once rather than under emulation each time.
const COMMON_MODULES: &[&str] = &["rdma_rxe", "ib_uverbs", "rdma_ucm", "veth", "bridge"];

/// A kernel that is ready to boot.
pub(super) struct Kernel {
    /// The folder with everything of it.
    dir: PathBuf,
    /// The release as `uname -r` says it.
    pub(super) release: String,
}

impl Row {
    /// The row of a name.
    ///
    /// # Errors
    /// When there is none: the names there are.
    pub(super) fn find(name: &str) -> Result<&'static Row> {
        let names: Vec<_> = KERNELS.iter().map(|row| row.name).collect();
        let row = KERNELS.iter().find(|row| row.name == name);
        row.with_context(|| format!("no kernel {name} in the lab: there are {}", names.join(", ")))
    }

    /// The release of the cached kernel, if there is one.
    pub(super) fn cached(&self) -> Option<String> {
        Kernel::open(&self.folder().ok()?).ok().map(|kernel| kernel.release)
    }

    fn folder(&self) -> Result<PathBuf> {
        Ok(cache::folder()?.join("kernels").join(self.name))
    }

    /// Makes the kernel ready when it is not yet.
    pub(super) fn get(&self, tools: &Tools) -> Result<Kernel> {
        let what = format!("kernel {} from Debian {}", self.name, self.suite);
        let dir = cache::once(&self.folder()?, &what, |dir| self.make(tools, dir))?;
        Kernel::open(&dir)
    }

    fn make(&self, tools: &Tools, dir: &Path) -> Result<()> {
        let scratch = tempfile::tempdir_in(cache::folder()?)?;
        let files = apt::download(self.suite, self.packages, &scratch.path().join("debs"))?;
        let tree = scratch.path().join("tree");
        apt::unpack(&files, &tree)?;
        // Before the split packages, modules stood in /lib and the image in /boot.
        let modules = ["usr/lib/modules", "lib/modules"].map(|path| tree.join(path));
        let modules = modules.iter().find(|path| path.is_dir()).context("the packages hold no modules")?;
        let release = only_entry(modules)?;
        let images = [modules.join(&release).join("vmlinuz"), tree.join(format!("boot/vmlinuz-{release}"))];
        let image = images.iter().find(|path| path.is_file()).context("the packages hold no kernel image")?;
        uncompress_image(tools, image, &dir.join("vmlinux"))?;
        fs::create_dir_all(dir.join("usr/lib"))?;
        fs::rename(modules, dir.join("usr/lib/modules")).context("move the modules")?;
        std::os::unix::fs::symlink("usr/lib", dir.join("lib")).context("link lib")?;
        let config = tree.join(format!("boot/config-{release}"));
        if config.is_file() {
            fs::copy(&config, dir.join("usr/lib/modules").join(&release).join("config")).context("keep the config")?;
        }
        fs::write(dir.join("release"), &release)?;
        let kernel = Kernel::open(dir)?;
        kernel.index_modules(tools)?;
        kernel.unpack_modules(tools)?;
        kernel.index_modules(tools)
    }
}

impl Kernel {
    fn open(dir: &Path) -> Result<Self> {
        let release = fs::read_to_string(dir.join("release")).context("read the kernel's release")?;
        Ok(Kernel { dir: dir.to_owned(), release })
    }

    /// The folder of the cache with everything of it.
    pub(super) fn folder(&self) -> &Path {
        &self.dir
    }

    /// The uncompressed image.
    pub(super) fn image(&self) -> PathBuf {
        self.dir.join("vmlinux")
    }

    /// The folder that stands at `/usr/lib/modules` in the guest.
    pub(super) fn modules(&self) -> PathBuf {
        self.dir.join("usr/lib/modules")
    }

    /// The files of the modules needed to boot, in the order of loading.
    pub(super) fn boot_modules(&self) -> Result<Vec<PathBuf>> {
        self.load_order(BOOT_MODULES)
    }

    fn tree(&self) -> PathBuf {
        self.modules().join(&self.release)
    }

    fn load_order(&self, names: &[&str]) -> Result<Vec<PathBuf>> {
        let read = |file: &str| {
            let path = self.tree().join(file);
            fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))
        };
        let order = load_order(&read("modules.dep")?, &read("modules.builtin")?, names)?;
        Ok(order.into_iter().map(|path| self.tree().join(path)).collect())
    }

    fn index_modules(&self, tools: &Tools) -> Result<()> {
        // depmod follows the name it is called by.
        apt::run(tools.command("usr/sbin/depmod").arg("-b").arg(&self.dir).arg(&self.release))
    }

    fn unpack_modules(&self, tools: &Tools) -> Result<()> {
        let names: Vec<_> = BOOT_MODULES.iter().chain(COMMON_MODULES).copied().collect();
        for path in self.load_order(&names)? {
            if path.extension().is_some_and(|end| end == "xz") {
                let unpacked = path.with_extension("");
                pipe(tools.command("usr/bin/xz").arg("-dc"), &path, &unpacked)?;
                fs::remove_file(&path).with_context(|| format!("remove {}", path.display()))?;
            }
        }
        Ok(())
    }
}

fn only_entry(dir: &Path) -> Result<String> {
    let mut names = fs::read_dir(dir)?.map(|entry| Ok(entry?.file_name())).collect::<Result<Vec<_>>>()?;
    ensure!(names.len() == 1, "{} holds {} releases, not one", dir.display(), names.len());
    Ok(names.remove(0).to_string_lossy().into_owned())
}

/// The files of the named modules and of all they need, each after what it needs. What is built in is left out.
fn load_order(dependencies: &str, builtin: &str, names: &[&str]) -> Result<Vec<String>> {
    let mut order: Vec<String> = Vec::new();
    for name in names {
        let is_named = |path: &str| module_name(path) == *name;
        let line = dependencies.lines().filter_map(|line| line.split_once(':')).find(|(path, _)| is_named(path));
        let Some((path, needs)) = line else {
            ensure!(builtin.lines().any(is_named), "the kernel has no module {name}");
            continue;
        };
        // modules.dep lists what is needed last first.
        for path in needs.split_whitespace().rev().chain([path]) {
            if !order.iter().any(|known| known == path) {
                order.push(path.to_owned());
            }
        }
    }
    Ok(order)
}

/// The name of a module as the kernel says it, from its path.
fn module_name(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    file.split('.').next().unwrap_or(file).replace('-', "_")
}

/// Takes the ELF image out of a bzImage: it boots 0.5 to 2.3 s faster under emulation.
fn uncompress_image(tools: &Tools, image: &Path, into: &Path) -> Result<()> {
    let bytes = fs::read(image).with_context(|| format!("read {}", image.display()))?;
    let (form, payload) = payload(&bytes).with_context(|| format!("{}: not a known kernel image", image.display()))?;
    let compressed = into.with_extension("compressed");
    fs::write(&compressed, payload)?;
    let mut command = match form {
        Form::Xz => tools.command("usr/bin/xz"),
        Form::Zstd => tools.command("usr/bin/zstd"),
    };
    // The window of the kernel's own zstd is over what the program takes by default.
    command.args(if form == Form::Zstd { &["-dc", "--long=31"][..] } else { &["-dc"] });
    pipe(&mut command, &compressed, into)?;
    fs::remove_file(&compressed)?;
    let head = fs::read(into)?;
    ensure!(head.starts_with(b"\x7fELF"), "{}: what it holds is no ELF image", image.display());
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Xz,
    Zstd,
}

/// The compressed kernel in a bzImage, by the boot protocol (Documentation/arch/x86/boot.rst): sectors of set-up code at
/// 0x1f1, "HdrS" at 0x202, offset and length of the payload at 0x248 and 0x24c. Its last four bytes are the size.
fn payload(image: &[u8]) -> Option<(Form, &[u8])> {
    let word = |at: usize| Some(u32::from_le_bytes(image.get(at..at + 4)?.try_into().ok()?) as usize);
    if image.get(0x202..0x206)? != b"HdrS" {
        return None;
    }
    let sectors = match *image.get(0x1f1)? {
        0 => 4,
        sectors => usize::from(sectors),
    };
    let start = (sectors + 1) * 512 + word(0x248)?;
    let end = (start + word(0x24c)?).checked_sub(4)?;
    let payload = image.get(start..end)?;
    if payload.starts_with(b"\xfd7zXZ\0") {
        Some((Form::Xz, payload))
    } else if payload.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        Some((Form::Zstd, payload))
    } else {
        None
    }
}

/// Runs a filter from one file into another.
fn pipe(command: &mut Command, from: &Path, into: &Path) -> Result<()> {
    let input = File::open(from).with_context(|| format!("open {}", from.display()))?;
    let output = File::create(into).with_context(|| format!("make {}", into.display()))?;
    let result = command.stdin(input).stdout(output).stderr(Stdio::piped()).spawn()?.wait_with_output()?;
    if !result.status.success() {
        bail!("unpack {}: {}", from.display(), String::from_utf8_lossy(&result.stderr).trim());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_load_after_what_they_need() {
        let dependencies = "kernel/fs/9p/9p.ko: kernel/net/9p/9pnet.ko kernel/fs/netfs/netfs.ko\n\
                            kernel/net/9p/9pnet_virtio.ko.xz: kernel/net/9p/9pnet.ko\nkernel/net/9p/9pnet.ko:\n\
                            kernel/fs/netfs/netfs.ko:\nkernel/crypto/crc32-pclmul.ko:\n";
        let builtin = "kernel/drivers/virtio/virtio_pci.ko\n";
        let order = load_order(dependencies, builtin, &["virtio_pci", "9p", "9pnet_virtio", "crc32_pclmul"]).unwrap();
        let names: Vec<_> = order.iter().map(|path| module_name(path)).collect();
        assert_eq!(names, ["netfs", "9pnet", "9p", "9pnet_virtio", "crc32_pclmul"]);
        let missing = load_order(dependencies, builtin, &["rdma_rxe"]).unwrap_err().to_string();
        assert!(missing.contains("rdma_rxe"), "{missing}");
    }

    #[test]
    fn the_payload_stands_where_the_header_says() {
        let mut image = vec![0; 4096];
        image[0x1f1] = 1;
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x248..0x24c].copy_from_slice(&16_u32.to_le_bytes());
        image[0x24c..0x250].copy_from_slice(&12_u32.to_le_bytes());
        image[1040..1048].copy_from_slice(&[0x28, 0xb5, 0x2f, 0xfd, 1, 2, 3, 4]);
        assert_eq!(payload(&image), Some((Form::Zstd, &image[1040..1048])));
        image[1040..1048].copy_from_slice(b"\xfd7zXZ\0ab");
        assert_eq!(payload(&image), Some((Form::Xz, &image[1040..1048])));
        image[1040] = 0;
        assert_eq!(payload(&image), None);
        image[0x24c..0x250].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(payload(&image), None);
        assert_eq!(payload(b"short"), None);
    }

    #[test]
    fn each_name_stands_for_one_kernel() {
        for row in KERNELS {
            assert_eq!(Row::find(row.name).unwrap().packages, row.packages);
        }
        let error = Row::find("5.0").err().unwrap().to_string();
        assert!(error.contains("6.1, 6.12, 7.3"), "{error}");
    }
}

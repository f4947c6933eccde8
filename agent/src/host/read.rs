//! Bounded reading of small kernel files: an unreadable file is an absent value, never an error that spreads.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::str::FromStr;

use rustix::fs::{Mode, OFlags};

/// Bytes read of any one attribute file. The longest of them (/proc/modules, /proc/mounts) fit many times over.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Bytes read of an attribute of one line.
const ATTRIBUTE_BYTES_MAX: usize = 4096;

/// Entries looked at in any one directory.
const ENTRIES_MAX: usize = 16_384;

/// The whole text of a small file, at most [`FILE_BYTES_MAX`] of it. Bytes that are not UTF-8 are replaced.
pub(crate) fn text(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(FILE_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The value of a one-line attribute without its surrounding space. Absent if unreadable or empty.
pub(crate) fn attribute(path: &Path) -> Option<String> {
    value(File::open(path).ok()?)
}

/// What one read gives: an attribute of sysfs is at most a page.
fn value(mut file: File) -> Option<String> {
    let mut page = [0; ATTRIBUTE_BYTES_MAX];
    let length = loop {
        match file.read(&mut page) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => break read.ok()?,
        }
    };
    let text = String::from_utf8_lossy(page.get(..length)?);
    let value = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
    (!value.is_empty()).then(|| value.to_owned())
}

/// A directory with many attributes, each of which is found from here and not from the root.
#[derive(Debug)]
pub(crate) struct Folder(OwnedFd);

impl Folder {
    /// Absent if it cannot be opened.
    pub(crate) fn open(path: &Path) -> Option<Self> {
        rustix::fs::open(path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).ok().map(Self)
    }

    /// As [`attribute`].
    pub(crate) fn attribute(&self, name: &str) -> Option<String> {
        let file = rustix::fs::openat(&self.0, name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
        value(file.into())
    }
}

/// A one-line attribute as a number or another parsed type. Absent if unreadable or odd.
pub(crate) fn parsed<T: FromStr>(path: &Path) -> Option<T> {
    attribute(path)?.parse().ok()
}

/// The names in a directory, sorted. Empty if the directory cannot be read; names that are not UTF-8 are left out.
pub(crate) fn names(directory: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    let mut names: Vec<String> =
        entries.take(ENTRIES_MAX).filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// The names in a directory that are numbers, in rising order: ports, GID indices.
pub(crate) fn numbers(directory: &Path) -> Vec<u32> {
    let mut numbers: Vec<u32> = names(directory).iter().filter_map(|name| name.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

/// The last part of what a symbolic link points to: a driver, a PCI address.
pub(crate) fn link_name(path: &Path) -> Option<String> {
    Some(fs::read_link(path).ok()?.file_name()?.to_str()?.to_owned())
}

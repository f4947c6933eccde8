//! Writes a cpio archive in the "newc" form, which the kernel unpacks as its first root file system.

/// The bits of a regular file, a folder, a symbolic link and a character device in a mode.
const FILE: u32 = 0o100_000;
const FOLDER: u32 = 0o040_000;
const LINK: u32 = 0o120_000;
const CHARACTER_DEVICE: u32 = 0o020_000;

/// An archive in the making.
#[derive(Default)]
pub(super) struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

impl Archive {
    /// Adds a folder; its parent comes first.
    pub(super) fn folder(&mut self, path: &str) {
        self.entry(path, FOLDER | 0o755, (0, 0), &[]);
    }

    /// Adds a file that can be executed.
    pub(super) fn file(&mut self, path: &str, content: &[u8]) {
        self.entry(path, FILE | 0o755, (0, 0), content);
    }

    /// Adds a symbolic link.
    pub(super) fn link(&mut self, path: &str, target: &str) {
        self.entry(path, LINK | 0o777, (0, 0), target.as_bytes());
    }

    /// Adds a character device by its numbers.
    pub(super) fn device(&mut self, path: &str, major: u32, minor: u32) {
        self.entry(path, CHARACTER_DEVICE | 0o600, (major, minor), &[]);
    }

    /// The whole archive with its end mark.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, (0, 0), &[]);
        self.bytes
    }

    fn entry(&mut self, path: &str, mode: u32, device: (u32, u32), content: &[u8]) {
        self.entries += 1;
        let size = u32::try_from(content.len()).unwrap_or(u32::MAX);
        let name_size = u32::try_from(path.len() + 1).unwrap_or(u32::MAX);
        // inode, mode, uid, gid, links, mtime, size, device of the file (2), of the node (2), name size, checksum
        let fields = [self.entries, mode, 0, 0, 1, 0, size, 0, 0, device.0, device.1, name_size, 0];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(path.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Path, mode, numbers of the device, content.
    type Entry = (String, u32, (u32, u32), Vec<u8>);

    /// Splits an archive by the rules of the format.
    fn parse(mut bytes: &[u8]) -> Vec<Entry> {
        let mut entries = Vec::new();
        loop {
            assert_eq!(&bytes[..6], b"070701");
            let field = |index: usize| {
                let text = std::str::from_utf8(&bytes[6 + 8 * index..14 + 8 * index]).unwrap();
                u32::from_str_radix(text, 16).unwrap()
            };
            let (size, name_size) = (field(6) as usize, field(11) as usize);
            let name = String::from_utf8(bytes[110..110 + name_size - 1].to_vec()).unwrap();
            assert_eq!(bytes[110 + name_size - 1], 0);
            let start = (110 + name_size).next_multiple_of(4);
            let content = bytes[start..start + size].to_vec();
            let entry = (name, field(1), (field(9), field(10)), content);
            bytes = &bytes[(start + size).next_multiple_of(4)..];
            if entry.0 == "TRAILER!!!" {
                assert!(bytes.is_empty());
                return entries;
            }
            entries.push(entry);
        }
    }

    #[test]
    fn entries_come_out_as_they_went_in() {
        let mut archive = Archive::default();
        archive.folder("bin");
        archive.file("bin/init", b"#!/bin/sh\n");
        archive.link("bin/sh", "busybox");
        archive.device("console", 5, 1);
        archive.file("empty", b"");
        let expected = vec![
            ("bin".to_owned(), 0o040_755, (0, 0), vec![]),
            ("bin/init".to_owned(), 0o100_755, (0, 0), b"#!/bin/sh\n".to_vec()),
            ("bin/sh".to_owned(), 0o120_777, (0, 0), b"busybox".to_vec()),
            ("console".to_owned(), 0o020_600, (5, 1), vec![]),
            ("empty".to_owned(), 0o100_755, (0, 0), vec![]),
        ];
        assert_eq!(parse(&archive.finish()), expected);
    }
}

//! What stands in a counter's file: a number, or why there is none.

use std::fmt;
use std::io;

use crate::host::errno::errno_name;

/// Bytes of a counter's file that are read; a longer one holds no number.
pub(crate) const FILE_BYTES: usize = 64;

/// Why a counter gave no number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The driver says that this port keeps no such counter: `N/A (no PMA)`.
    NotKept,
    /// Something else than a number of at most 64 bits.
    NotANumber,
    /// No file: a folder, a pipe, a link that goes round in circles.
    NotAFile,
    /// The kernel's error, by number.
    Os(i32),
}

impl Failure {
    /// From a failed call.
    pub(crate) fn of(error: &io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::EISDIR | libc::ELOOP | libc::ENXIO) => Self::NotAFile,
            Some(number) => Self::Os(number),
            None => Self::NotANumber,
        }
    }

    /// One word, for labels: a closed set.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::NotKept => "not_kept",
            Self::NotANumber => "not_a_number",
            Self::NotAFile => "not_a_file",
            Self::Os(libc::EINVAL) => "einval",
            Self::Os(libc::EIO) => "eio",
            Self::Os(libc::ENODEV | libc::ENOENT) => "gone",
            Self::Os(libc::EACCES | libc::EPERM) => "denied",
            Self::Os(libc::ETIMEDOUT) => "timeout",
            Self::Os(libc::EOPNOTSUPP) => "not_supported",
            Self::Os(_) => "other",
        }
    }

    /// What was read is no longer there.
    pub(crate) fn is_gone(&self) -> bool {
        self.reason() == "gone"
    }

    /// The device itself answers with an error: asking it again and again does harm.
    pub(crate) fn is_device_error(&self) -> bool {
        matches!(self, Self::Os(_)) && !self.is_gone() && self.reason() != "denied"
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotKept => f.write_str("the driver says N/A: it keeps no such counter"),
            Self::NotANumber => f.write_str("there is no number in it"),
            Self::NotAFile => f.write_str("it is no file"),
            Self::Os(number) => f.write_str(&errno_name(*number)),
        }
    }
}

/// The number in a file's bytes. `bytes` holds one more than [`FILE_BYTES`] if the file is longer.
pub(crate) fn parse(bytes: &[u8]) -> Result<u64, Failure> {
    let text = std::str::from_utf8(bytes).map_err(|_| Failure::NotANumber)?.trim();
    if text.starts_with("N/A") {
        return Err(Failure::NotKept);
    }
    let digits = !text.is_empty() && bytes.len() <= FILE_BYTES && text.bytes().all(|byte| byte.is_ascii_digit());
    if digits { text.parse().map_err(|_| Failure::NotANumber) } else { Err(Failure::NotANumber) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], expected: Result<u64, Failure>) {
        assert_eq!(parse(bytes), expected, "{:?}", String::from_utf8_lossy(bytes));
    }

    #[test]
    fn only_whole_numbers_are_numbers() {
        check(b"0\n", Ok(0));
        check(b"4294967295\n", Ok(4_294_967_295));
        check(b"18446744073709551615", Ok(u64::MAX));
        check(b"  12 \n", Ok(12));
        check(b"18446744073709551616\n", Err(Failure::NotANumber));
        check(b"N/A (no PMA)\n", Err(Failure::NotKept));
        check(b"N/A (not available)\n", Err(Failure::NotKept));
        for odd in
            [&b""[..], b"\n", b"-1\n", b"+1\n", b"1.5\n", b"0x10\n", b"1 2\n", b"1\n2\n", &[1, 0, 0, 0], b"\xff\n"]
        {
            check(odd, Err(Failure::NotANumber));
        }
        check(&[b'1'; FILE_BYTES + 1], Err(Failure::NotANumber));
        check(&[b' '; FILE_BYTES + 1], Err(Failure::NotANumber));
    }

    #[test]
    fn reasons_are_told_apart() {
        let of = |number| Failure::of(&io::Error::from_raw_os_error(number));
        let rows = [
            (libc::EINVAL, "einval", true),
            (libc::EIO, "eio", true),
            (libc::ENODEV, "gone", false),
            (libc::ENOENT, "gone", false),
            (libc::EACCES, "denied", false),
            (libc::EISDIR, "not_a_file", false),
            (libc::ELOOP, "not_a_file", false),
            (libc::ETIMEDOUT, "timeout", true),
            (libc::EBUSY, "other", true),
        ];
        for (number, reason, device) in rows {
            assert_eq!((of(number).reason(), of(number).is_device_error()), (reason, device));
        }
        assert_eq!(of(libc::EIO).to_string(), "EIO");
    }
}

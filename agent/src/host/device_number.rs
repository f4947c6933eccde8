//! Character device numbers, as sysfs prints them and as the kernel holds them in `inode->i_rdev`.

use std::fmt;
use std::str::FromStr;

/// Bits of the minor number in the kernel's own `dev_t` (MINORBITS in include/linux/kdev_t.h).
const MINOR_BITS: u32 = 20;

/// A device number. Text form is `major:minor`, as in the `dev` files of sysfs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct DeviceNumber {
    /// At most 12 bits.
    pub(crate) major: u32,
    /// At most 20 bits.
    pub(crate) minor: u32,
}

impl DeviceNumber {
    /// A number, if both parts fit into the kernel's `dev_t`.
    pub(crate) fn new(major: u32, minor: u32) -> Option<Self> {
        let fits = major < 1 << (u32::BITS - MINOR_BITS) && minor < 1 << MINOR_BITS;
        fits.then_some(Self { major, minor })
    }

    /// From the kernel's own encoding, which is not the one that `stat` hands to user space.
    pub(crate) fn from_kernel(dev: u32) -> Self {
        Self { major: dev >> MINOR_BITS, minor: dev & ((1 << MINOR_BITS) - 1) }
    }

    /// In the kernel's own encoding, to compare with `inode->i_rdev`.
    pub(crate) fn to_kernel(self) -> u32 {
        (self.major << MINOR_BITS) | self.minor
    }
}

impl FromStr for DeviceNumber {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (major, minor) = text.split_once(':').ok_or(())?;
        let number = |part: &str| part.parse::<u32>().map_err(drop);
        Self::new(number(major)?, number(minor)?).ok_or(())
    }
}

impl fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_encoding_is_major_over_twenty_bits_of_minor() {
        for (text, dev) in [("0:0", 0), ("231:192", 0x0e70_00c0), ("10:122", 0x00a0_007a), ("4095:1048575", u32::MAX)] {
            let number: DeviceNumber = text.parse().unwrap();
            assert_eq!(number.to_kernel(), dev, "{text}");
            assert_eq!(DeviceNumber::from_kernel(dev), number, "{text}");
            assert_eq!(number.to_string(), text);
        }
    }

    #[test]
    fn what_is_no_device_number_is_refused() {
        for text in ["", ":", "1", "1:", ":1", "-1:2", "4096:0", "0:1048576", "1:2:3", "1: 2"] {
            assert_eq!(text.parse::<DeviceNumber>(), Err(()), "{text:?}");
        }
    }
}

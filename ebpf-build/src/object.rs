//! What must hold of the linked object before anyone gets it.

use std::fs;
use std::path::Path;

use crate::error::{Error, Result};

/// The mangled path of `core::panicking`: where each panic ends.
const PANICKING: &[u8] = b"4core9panicking";

/// Refuses an object that can panic. No verifier accepts the endless loop a panic ends in, and its message
/// ("last insn is not an exit or jmp") does not lead to the cause.
pub(crate) fn check(path: &Path) -> Result<()> {
    let bytes = fs::read(path).map_err(|e| Error::io("read", path, e))?;
    if can_panic(&bytes) { Err(Error::Panics(path.to_owned())) } else { Ok(()) }
}

fn can_panic(object: &[u8]) -> bool {
    object.windows(PANICKING.len()).any(|window| window == PANICKING)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_path_is_seen_by_its_symbol() {
        assert!(can_panic(b"\0_ZN4core9panicking18panic_bounds_check17h0123E\0"));
        assert!(can_panic(PANICKING));
        assert!(!can_panic(b"\0_ZN4core3fmt9Formatter\0"));
        assert!(!can_panic(b""));
    }
}

//! Maps of the kernel side as this process sees them: mapped for reading, no system call to read an entry.

use std::io;
use std::num::NonZeroUsize;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// A copy of an entry, word by word.
pub(super) fn copy<const WORDS: usize>(entry: &[AtomicU64; WORDS]) -> [u64; WORDS] {
    entry.each_ref().map(|word| word.load(Ordering::Relaxed))
}

/// An array map whose values are so many words, mapped for reading.
#[derive(Debug)]
pub(super) struct Mapping<const WORDS: usize> {
    start: NonNull<[AtomicU64; WORDS]>,
    entries: usize,
    bytes: NonZeroUsize,
}

// SAFETY: the memory is only read, by atomic loads, and stays mapped until the value is dropped, by whichever thread.
unsafe impl<const WORDS: usize> Send for Mapping<WORDS> {}
// SAFETY: as above.
unsafe impl<const WORDS: usize> Sync for Mapping<WORDS> {}

impl<const WORDS: usize> Mapping<WORDS> {
    /// Maps it. `entries` is the number that the map was made for.
    ///
    /// # Errors
    ///
    /// If the kernel does not map it.
    pub(super) fn new(map: BorrowedFd<'_>, entries: usize) -> io::Result<Self> {
        let bytes = entries.checked_mul(size_of::<[u64; WORDS]>()).and_then(NonZeroUsize::new);
        let bytes = bytes.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        // SAFETY: a new mapping wherever the kernel finds room; it touches no memory of ours.
        let start = unsafe {
            libc::mmap(std::ptr::null_mut(), bytes.get(), libc::PROT_READ, libc::MAP_SHARED, map.as_raw_fd(), 0)
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::from(io::ErrorKind::AddrNotAvailable))?;
        Ok(Self { start, entries, bytes })
    }

    /// An entry; `None` beyond the last.
    pub(super) fn entry(&self, index: u32) -> Option<&[AtomicU64; WORDS]> {
        let index = usize::try_from(index).ok().filter(|index| *index < self.entries)?;
        // SAFETY: the mapping has this many entries of this size, begins at a page, and lives as long as `self`; the
        // kernel side writes it while it is read, which is what atomics are for.
        Some(unsafe { self.start.add(index).as_ref() })
    }
}

impl<const WORDS: usize> Drop for Mapping<WORDS> {
    fn drop(&mut self) {
        // SAFETY: what `new` mapped, once; no reference into it outlives `self`.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes.get()) };
    }
}

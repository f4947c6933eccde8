//! Waiting for a file descriptor inside the async runtime.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Lets the runtime tell when `fd` is readable. Must be called inside the runtime.
///
/// # Errors
///
/// If the kernel cannot poll such a descriptor.
pub(crate) fn readable(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: the descriptor must stay open and the same until it is taken from the runtime again. It is owned by the
    // value that is made here, which does so before it closes it; nothing can reach it for writing in between.
    let registered = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) };
    registered.map_err(io::Error::from)
}

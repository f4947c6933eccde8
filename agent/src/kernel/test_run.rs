//! Running a program of traffic control once by hand, on bytes that no device has received.

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

use super::sys;

const BPF_PROG_TEST_RUN: libc::c_long = 10;

/// `union bpf_attr` of it (include/uapi/linux/bpf.h).
#[repr(C)]
#[derive(Default)]
struct TestRun {
    prog_fd: u32,
    retval: u32,
    data_size_in: u32,
    data_size_out: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
    ctx_size_in: u32,
    ctx_size_out: u32,
    ctx_in: u64,
    ctx_out: u64,
    flags: u32,
    cpu: u32,
    batch_size: u32,
    padding: u32,
}

/// Runs a program on a packet, with the words of a `struct __sk_buff` if any are given; what it answers.
///
/// # Errors
///
/// The kernel's error.
pub(super) fn test_run(program: BorrowedFd<'_>, packet: &[u8], context: &[u32]) -> io::Result<u32> {
    let size = |bytes: usize| u32::try_from(bytes).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput));
    let mut attr = TestRun {
        prog_fd: u32::try_from(program.as_raw_fd()).unwrap_or(u32::MAX),
        data_size_in: size(packet.len())?,
        data_in: packet.as_ptr() as u64,
        ctx_size_in: size(size_of_val(context))?,
        ctx_in: if context.is_empty() { 0 } else { context.as_ptr() as u64 },
        repeat: 1,
        ..TestRun::default()
    };
    sys::bpf(BPF_PROG_TEST_RUN, &mut attr)?;
    Ok(attr.retval)
}

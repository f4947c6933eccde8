//! The system calls that aya does not make: tracing programs on functions of modules, links with a cookie, BTF objects.
//!
//! Layouts are those of `union bpf_attr` (include/uapi/linux/bpf.h), written out up to the last field that is used: the
//! kernel takes a shorter attribute and reads the rest as zeros.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

use aya_obj::generated::bpf_insn;

const BPF_PROG_LOAD: libc::c_long = 5;
const BPF_BTF_GET_FD_BY_ID: libc::c_long = 19;
const BPF_OBJ_GET_INFO_BY_FD: libc::c_long = 15;
const BPF_BTF_GET_NEXT_ID: libc::c_long = 23;
const BPF_LINK_CREATE: libc::c_long = 28;
const BPF_ENABLE_STATS: libc::c_long = 32;

const BPF_PROG_TYPE_KPROBE: u32 = 2;
const BPF_PROG_TYPE_TRACEPOINT: u32 = 5;
const BPF_PROG_TYPE_TRACING: u32 = 26;
const BPF_PERF_EVENT: u32 = 41;
/// Room for what the verifier says of a refused program.
const VERIFIER_LOG: usize = 16 << 20;

/// Where a tracing program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tracing {
    /// Before the function.
    Entry = 24,
    /// After it.
    Exit = 25,
}

#[repr(C)]
#[derive(Default)]
struct ProgLoad {
    prog_type: u32,
    insn_cnt: u32,
    insns: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log_buf: u64,
    kern_version: u32,
    prog_flags: u32,
    prog_name: [u8; 16],
    prog_ifindex: u32,
    expected_attach_type: u32,
    prog_btf_fd: u32,
    func_info_rec_size: u32,
    func_info: u64,
    func_info_cnt: u32,
    line_info_rec_size: u32,
    line_info: u64,
    line_info_cnt: u32,
    attach_btf_id: u32,
    attach_btf_obj_fd: u32,
    reserved: u32,
}

#[repr(C)]
#[derive(Default)]
pub(super) struct LinkCreate {
    prog_fd: u32,
    /// Or the number of a network device.
    target_fd: u32,
    attach_type: u32,
    flags: u32,
    /// `perf_event.bpf_cookie`, or `tracing.target_btf_id` and padding, or `tcx.relative_fd` and padding.
    first: u64,
    /// `tracing.cookie`, or `tcx.expected_revision`.
    second: u64,
}

impl LinkCreate {
    /// Of a program on a target of its own kind.
    pub(super) fn new(program: BorrowedFd<'_>, target: u32, attach_type: u32, flags: u32) -> Self {
        Self { prog_fd: raw(program), target_fd: target, attach_type, flags, ..Self::default() }
    }
}

#[repr(C)]
#[derive(Default)]
struct GetId {
    id: u32,
    next_id: u32,
    open_flags: u32,
    reserved: u32,
}

#[repr(C)]
#[derive(Default)]
struct GetInfo {
    fd: u32,
    info_len: u32,
    info: u64,
}

#[repr(C)]
#[derive(Default)]
struct BtfInfo {
    btf: u64,
    btf_size: u32,
    id: u32,
    name: u64,
    name_len: u32,
    kernel_btf: u32,
}

/// A program's own accounts (`struct bpf_prog_info`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProgramAccount {
    /// Nanoseconds it ran, while statistics were on.
    pub(crate) run_time_ns: u64,
    /// How often it ran, while statistics were on.
    pub(crate) run_count: u64,
    /// How often it did not run because it was running already on that CPU.
    pub(crate) recursion_misses: u64,
}

/// The system call.
pub(super) fn bpf<T>(command: libc::c_long, attr: &mut T) -> io::Result<i32> {
    // SAFETY: `attr` is a valid attribute of the size given; pointers inside it are kept alive by the callers.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(attr), size_of::<T>()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(i32::try_from(result).unwrap_or(0)) }
}

fn owned(fd: i32) -> OwnedFd {
    // SAFETY: the kernel has just given us this descriptor; nobody else has it.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

fn raw(fd: BorrowedFd<'_>) -> u32 {
    u32::try_from(fd.as_raw_fd()).unwrap_or(u32::MAX)
}

/// What a program is made to run on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind<'a> {
    /// Kprobe events, entry or return.
    Kprobe,
    /// Tracepoints, by their trace event.
    Tracepoint,
    /// Before or after one kernel function, named by its BTF id; `object` is its module's BTF, `None` for vmlinux.
    Tracing { at: Tracing, function: u32, object: Option<BorrowedFd<'a>> },
}

/// Loads a program.
///
/// # Errors
///
/// The kernel's error, with the end of the verifier's log where it has written one.
pub(crate) fn load_program(
    name: &str,
    instructions: &[bpf_insn],
    license: &CString,
    kind: Kind<'_>,
) -> io::Result<OwnedFd> {
    let (prog_type, attach_type, function, object) = match kind {
        Kind::Kprobe => (BPF_PROG_TYPE_KPROBE, 0, 0, None),
        Kind::Tracepoint => (BPF_PROG_TYPE_TRACEPOINT, 0, 0, None),
        Kind::Tracing { at, function, object } => (BPF_PROG_TYPE_TRACING, at as u32, function, object),
    };
    let mut attr = ProgLoad {
        prog_type,
        insn_cnt: u32::try_from(instructions.len()).unwrap_or(u32::MAX),
        insns: instructions.as_ptr() as u64,
        license: license.as_ptr() as u64,
        prog_name: program_name(name),
        expected_attach_type: attach_type,
        attach_btf_id: function,
        attach_btf_obj_fd: object.map_or(0, raw),
        ..ProgLoad::default()
    };
    match bpf(BPF_PROG_LOAD, &mut attr) {
        Ok(fd) => Ok(owned(fd)),
        Err(first) => {
            let mut log = vec![0u8; VERIFIER_LOG];
            attr.log_level = 1;
            attr.log_size = u32::try_from(log.len()).unwrap_or(0);
            attr.log_buf = log.as_mut_ptr() as u64;
            match bpf(BPF_PROG_LOAD, &mut attr) {
                Ok(fd) => Ok(owned(fd)),
                Err(_) => Err(with_log(first, &log)),
            }
        }
    }
}

/// The error with what the verifier says at the end of its log. Lines that begin with a number only retell the program.
pub(super) fn with_log(error: io::Error, log: &[u8]) -> io::Error {
    let text = String::from_utf8_lossy(log.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned();
    let tells = |line: &&str| {
        !line.starts_with(|first: char| first.is_ascii_digit()) && !line.starts_with("processed") && !line.is_empty()
    };
    match text.lines().rfind(tells) {
        None => error,
        Some(last) => io::Error::new(error.kind(), format!("{error}: {last}")),
    }
}

/// What the kernel accepts as a program's name: 15 bytes of letters, digits, `_` and `.`.
fn program_name(name: &str) -> [u8; 16] {
    let mut bytes = [0; 16];
    let plain = name.bytes().map(|byte| if byte.is_ascii_alphanumeric() { byte } else { b'_' });
    for (target, byte) in bytes.iter_mut().take(15).zip(b"fs_".iter().copied().chain(plain)) {
        *target = byte;
    }
    bytes
}

/// Attaches a loaded tracing program; the link lives as long as the descriptor.
///
/// # Errors
///
/// The kernel's error.
pub(crate) fn link_tracing(program: BorrowedFd<'_>, kind: Tracing, cookie: u64) -> io::Result<OwnedFd> {
    create_link(&mut LinkCreate { second: cookie, ..LinkCreate::new(program, 0, kind as u32, 0) })
}

/// Makes a link, which lives as long as the descriptor.
///
/// # Errors
///
/// The kernel's error.
pub(super) fn create_link(attr: &mut LinkCreate) -> io::Result<OwnedFd> {
    bpf(BPF_LINK_CREATE, attr).map(owned)
}

/// What the kernel tells of an object, as many bytes as are asked for.
///
/// # Errors
///
/// The kernel's error.
pub(super) fn object_info<const BYTES: usize>(object: BorrowedFd<'_>) -> io::Result<[u8; BYTES]> {
    let mut info = [0u8; BYTES];
    let info_len = u32::try_from(BYTES).unwrap_or(0);
    let mut attr = GetInfo { fd: raw(object), info_len, info: info.as_mut_ptr() as u64 };
    bpf(BPF_OBJ_GET_INFO_BY_FD, &mut attr)?;
    Ok(info)
}

/// Attaches a loaded program to a trace event (tracepoint or kprobe event) by its id. The link and the event live as
/// long as the descriptors.
///
/// # Errors
///
/// The kernel's error.
pub(crate) fn link_event(program: BorrowedFd<'_>, event_id: u64, cookie: u64) -> io::Result<(OwnedFd, OwnedFd)> {
    let event = open_event(event_id)?;
    let attr = LinkCreate::new(program, raw(event.as_fd()), BPF_PERF_EVENT, 0);
    let link = create_link(&mut LinkCreate { first: cookie, ..attr })?;
    Ok((link, event))
}

/// One event for all CPUs: a program on a trace event runs wherever the event fires.
fn open_event(id: u64) -> io::Result<OwnedFd> {
    /// `struct perf_event_attr` up to `config`, and the rest of its first published size.
    #[repr(C)]
    struct Attr {
        kind: u32,
        size: u32,
        config: u64,
        sample_period: u64,
        rest: [u64; 5],
    }
    const PERF_TYPE_TRACEPOINT: u32 = 2;
    let attr = Attr { kind: PERF_TYPE_TRACEPOINT, size: 64, config: id, sample_period: 1, rest: [0; 5] };
    const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 8;
    // SAFETY: the attribute is 64 bytes, as its size field says.
    let fd =
        unsafe { libc::syscall(libc::SYS_perf_event_open, &raw const attr, -1i32, 0i32, -1i32, PERF_FLAG_FD_CLOEXEC) };
    if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(owned(i32::try_from(fd).unwrap_or(-1))) }
}

/// The BTF object of a module, by the module's name.
///
/// # Errors
///
/// `NotFound` if the kernel has none of this name; the kernel's error else.
pub(crate) fn module_btf(module: &str) -> io::Result<OwnedFd> {
    let mut id = 0;
    loop {
        let mut attr = GetId { id, ..GetId::default() };
        if let Err(error) = bpf(BPF_BTF_GET_NEXT_ID, &mut attr) {
            return Err(match error.raw_os_error() {
                Some(libc::ENOENT) => io::Error::new(io::ErrorKind::NotFound, format!("module {module} has no BTF")),
                _ => error,
            });
        }
        id = attr.next_id;
        let mut attr = GetId { id, ..GetId::default() };
        // An object may go away between the two calls.
        let Ok(fd) = bpf(BPF_BTF_GET_FD_BY_ID, &mut attr) else { continue };
        let fd = owned(fd);
        if btf_name(&fd).is_ok_and(|name| name == module) {
            return Ok(fd);
        }
    }
}

fn btf_name(fd: &OwnedFd) -> io::Result<String> {
    let mut name = [0u8; 64];
    let mut info = BtfInfo { name: name.as_mut_ptr() as u64, name_len: 64, ..BtfInfo::default() };
    let mut attr = GetInfo {
        fd: u32::try_from(fd.as_raw_fd()).unwrap_or(u32::MAX),
        info_len: u32::try_from(size_of::<BtfInfo>()).unwrap_or(0),
        info: std::ptr::from_mut(&mut info) as u64,
    };
    bpf(BPF_OBJ_GET_INFO_BY_FD, &mut attr)?;
    if info.kernel_btf == 0 {
        return Ok(String::new());
    }
    Ok(String::from_utf8_lossy(name.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned())
}

/// Bytes of `struct bpf_prog_info` up to `recursion_misses`, which came with 5.12.
const PROG_INFO: usize = 216;
const RUN_TIME: usize = 192;
const RUN_COUNT: usize = 200;
const RECURSION_MISSES: usize = 208;

/// What the kernel has counted of a program.
///
/// # Errors
///
/// The kernel's error.
pub(crate) fn program_account(program: BorrowedFd<'_>) -> io::Result<ProgramAccount> {
    let info: [u8; PROG_INFO] = object_info(program)?;
    let word = |at: usize| info.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_ne_bytes);
    Ok(ProgramAccount {
        run_time_ns: word(RUN_TIME),
        run_count: word(RUN_COUNT),
        recursion_misses: word(RECURSION_MISSES),
    })
}

/// Makes the kernel account for run time and run count of all programs while the descriptor lives.
///
/// # Errors
///
/// The kernel's error.
pub(crate) fn enable_statistics() -> io::Result<OwnedFd> {
    let mut attr = 0u32;
    bpf(BPF_ENABLE_STATS, &mut attr).map(owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_the_kernels() {
        assert_eq!(std::mem::offset_of!(ProgLoad, prog_name), 48);
        assert_eq!(std::mem::offset_of!(ProgLoad, expected_attach_type), 68);
        assert_eq!(std::mem::offset_of!(ProgLoad, attach_btf_id), 108);
        assert_eq!(std::mem::offset_of!(ProgLoad, attach_btf_obj_fd), 112);
        assert_eq!(std::mem::offset_of!(LinkCreate, second), 24);
    }

    #[test]
    fn names_are_cut_and_cleaned() {
        assert_eq!(&program_name("rxe_qp.part.0-long-name"), b"fs_rxe_qp_part_\0");
    }
}

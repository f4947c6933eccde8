//! A verbs call enters: its record opens.

use agent_common::hook::{Cookie, role};
use agent_common::record::flag;
use agent_common::verb::VerbKey;
use aya_ebpf::helpers::generated::bpf_ktime_get_ns;

use super::decode;
use crate::{maps, read};

/// Opens the thread's record.
#[inline(always)]
pub(crate) fn enter(cookie: Cookie, args: [u64; 3]) {
    let Some(settings) = maps::settings() else { return };
    let role = cookie.role();
    let (file, request, request_len) = match role {
        role::WRITE | role::UCMA => (args[0], args[1], args[2]),
        role::OPEN => (0, 0, 0),
        role::IOCTL => (args[0], args[2], 0),
        _ => (args[0], 0, 0),
    };
    let inode = if role == role::OPEN { Some(args[0]) } else { read::kernel::<u64>(file, settings.file_inode) };
    let rdev = inode.and_then(|inode| read::kernel::<u32>(inode, settings.inode_rdev)).unwrap_or(0);
    let key = match role {
        role::IOCTL if args[1] as u32 != decode::RDMA_VERBS_IOCTL => Some(VerbKey::UNKNOWN),
        _ => decode::key(role, request, request_len),
    };
    // SAFETY: a helper without arguments.
    let start_ns = if settings.latency != 0 { unsafe { bpf_ktime_get_ns() } } else { 0 };
    let Some(call) = maps::begin(super::thread()) else { return };
    // SAFETY: the map gave the pointer, and only this thread writes its own record.
    let call = unsafe { &mut *call };
    call.key = key.unwrap_or(VerbKey::UNKNOWN).0;
    call.file = file;
    call.request = request;
    call.request_len = request_len;
    call.rdev = rdev;
    call.chain_len = 0;
    call.flags = if key.is_none() { flag::NO_HEADER } else { 0 };
    call.hook = u32::from(cookie.hook());
    // Last: who reads it from outside takes a record with a time for whole.
    // SAFETY: a reference is valid for writes.
    unsafe { (&raw mut call.start_ns).write_volatile(start_ns) };
}

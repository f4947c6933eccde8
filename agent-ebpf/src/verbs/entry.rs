//! A verbs call enters: its record opens.

use core::mem::MaybeUninit;

use agent_common::hook::{Cookie, role};
use agent_common::record::{Call, flag};
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
    let mut place = MaybeUninit::uninit();
    // SAFETY: a record is plain numbers, the widest of 64 bits.
    let call: &mut Call = unsafe { read::clear(&mut place) };
    if settings.latency != 0 {
        // SAFETY: a helper without arguments.
        call.start_ns = unsafe { bpf_ktime_get_ns() };
    }
    call.key = key.unwrap_or(VerbKey::UNKNOWN).0;
    call.file = file;
    call.request = request;
    call.request_len = request_len;
    call.rdev = rdev;
    if key.is_none() {
        call.flags = flag::NO_HEADER;
    }
    call.hook = u32::from(cookie.hook());
    maps::begin(super::thread(), call);
}

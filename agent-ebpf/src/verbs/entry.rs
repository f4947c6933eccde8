//! A verbs call enters: its record opens.

use agent_common::hook::{Cookie, role};
use agent_common::record::{CHAIN, Call, Firmware, Link, flag};
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
    let call = Call {
        // SAFETY: a helper without arguments.
        start_ns: if settings.latency != 0 { unsafe { bpf_ktime_get_ns() } } else { 0 },
        key: key.unwrap_or(VerbKey::UNKNOWN).0,
        file,
        request,
        request_len,
        frames: [0; CHAIN],
        chain: [Link { hook: 0, layer: 0, role: 0, error: 0 }; CHAIN],
        firmware: Firmware { opcode: 0, op_mod: 0, status: 0, syndrome: 0 },
        rdev,
        chain_len: 0,
        flags: if key.is_none() { flag::NO_HEADER } else { 0 },
        hook: u32::from(cookie.hook()),
    };
    maps::begin(super::thread(), &call);
}

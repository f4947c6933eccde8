//! The event that tells a failed call: filled in place in the ring buffer.

use agent_common::record::{ATTR_BYTES, ATTRS, CHAIN, COMM, Call, FailureRecord, Link, PAYLOAD, REQUEST, flag, kind};
use agent_common::verb::{self, VerbKey, interface};
use aya_ebpf::helpers::generated::{
    bpf_get_current_cgroup_id, bpf_get_current_comm, bpf_get_current_pid_tgid, bpf_get_current_uid_gid,
};

use super::{chain, decode, qp};
use crate::{maps, read};

/// Sends the event, if there is room.
#[inline(always)]
pub(crate) fn send(call: &mut Call, own: Link, answer: u32, now: u64, duration: u64) {
    // The boundary itself is the last link: it is what the caller saw.
    push_own(call, own);
    let Some(mut entry) = maps::failure() else { return };
    let record = entry.as_mut_ptr();
    // SAFETY: the ring buffer gave room for one record of plain numbers. Its memory is the ring's own: what is not
    // written below is what an older record left, and lies beyond the lengths that are.
    let record = unsafe { &mut *record };
    record.kind = kind::FAILURE;
    record.flags = call.flags | if call.start_ns != 0 { flag::TIMED } else { 0 };
    record.time_ns = now;
    record.duration_ns = duration;
    record.key = call.key;
    record.rdev = call.rdev;
    record.error = own.error;
    record.answer = answer;
    record.chain_len = call.chain_len;
    zero(&mut record.attrs_len);
    zero(&mut record.request_len);
    zero(&mut record.payload_len);
    zero(&mut record.reserved);
    zero(&mut record.qp_number);
    zero(&mut record.qp_type);
    zero(&mut record.qp_state);
    record.firmware.opcode = call.firmware.opcode;
    record.firmware.op_mod = call.firmware.op_mod;
    record.firmware.status = call.firmware.status;
    record.firmware.syndrome = call.firmware.syndrome;
    // SAFETY: source and target have as many bytes; a helper copies them faster than byte by byte.
    unsafe {
        let source = call.chain.as_ptr() as u64;
        read::kernel_bytes::<{ size_of::<[Link; CHAIN]>() as u32 }>(record.chain.as_mut_ptr().cast(), source, 0);
    }
    who(record);
    request(call, record);
    if let Some(key) = qp::named(call, record)
        && let Some(known) = maps::qp(&key)
    {
        // SAFETY: the map gave the pointer.
        let known = unsafe { *known };
        record.flags |= flag::QP;
        record.qp_number = known.number;
        record.qp_type = known.kind;
        record.qp_state = known.state;
    }
    entry.submit(0);
}

/// A zero of its own: neighbouring ones would be made one call to a loop over bytes.
#[inline(always)]
fn zero(field: &mut u32) {
    // SAFETY: a reference is valid for writes.
    unsafe { core::ptr::write_volatile(field, 0) };
}

/// The own link takes the last place if the chain is full: the outermost but one is the one to do without.
#[inline(always)]
fn push_own(call: &mut Call, own: Link) {
    let used = call.chain_len;
    let used = if used >= CHAIN as u32 { CHAIN as u32 - 1 } else { used };
    let index = chain::bounded(used);
    // SAFETY: the index is below CHAIN.
    unsafe {
        *call.chain.get_unchecked_mut(index) = own;
        *call.frames.get_unchecked_mut(index) = u64::MAX;
    }
    call.chain_len = used + 1;
}

#[inline(always)]
fn who(record: &mut FailureRecord) {
    // SAFETY: helpers that read the current task.
    unsafe {
        let ids = bpf_get_current_pid_tgid();
        record.pid = (ids >> 32) as u32;
        record.tid = ids as u32;
        record.uid = bpf_get_current_uid_gid() as u32;
        record.cgroup_id = bpf_get_current_cgroup_id();
        bpf_get_current_comm(record.comm.as_mut_ptr().cast(), COMM as u32);
    }
}

/// Copies the request as the caller passed it. It is decoded in user space, with checks.
#[inline(always)]
fn request(call: &Call, record: &mut FailureRecord) {
    let key = VerbKey(call.key);
    match key.interface() {
        interface::IOCTL | interface::LEGACY_IOCTL => attributes(call, key, record),
        interface::LEGACY_WRITE | interface::UCMA => {
            let header = if key.object() == 1 { verb::COMMAND_EX_HEADER_LEN } else { verb::COMMAND_HEADER_LEN } as u64;
            let length = call.request_len.saturating_sub(header);
            // SAFETY: the target has REQUEST bytes.
            record.request_len = unsafe {
                read::user_bytes::<{ REQUEST as u32 }>(record.request.as_mut_ptr(), call.request + header, length)
            };
        }
        _ => {}
    }
}

#[inline(always)]
fn attributes(call: &Call, key: VerbKey, record: &mut FailureRecord) {
    let Some(header) = read::user::<decode::Header>(call.request) else { return };
    let wanted = u64::from(header.attrs()) * ATTR_BYTES as u64;
    // SAFETY: the target has as many bytes.
    let copied = unsafe {
        read::user_bytes::<{ (ATTRS * ATTR_BYTES) as u32 }>(
            record.attrs.as_mut_ptr(),
            call.request + decode::HEADER,
            wanted,
        )
    };
    record.attrs_len = copied / ATTR_BYTES as u32;
    if key.interface() == interface::LEGACY_IOCTL {
        if let Some(attr) = decode::find::<{ decode::COMMAND_ATTRS }>(call.request, header.attrs(), verb::ATTR_CORE_IN)
            && attr.len > verb::ATTR_INLINE_LEN
        {
            // SAFETY: the target has REQUEST bytes.
            record.request_len = unsafe {
                read::user_bytes::<{ REQUEST as u32 }>(record.request.as_mut_ptr(), attr.data, u64::from(attr.len))
            };
        }
        return;
    }
    payload(call, key, &header, record);
}

/// What the method's one attribute that is worth following points to.
#[inline(always)]
fn payload(call: &Call, key: VerbKey, header: &decode::Header, record: &mut FailureRecord) {
    let Some(wanted) = verb::payload_of(key) else { return };
    let Some(attr) = decode::find::<{ ATTRS as u32 }>(call.request, header.attrs(), wanted.attr) else { return };
    if attr.len > verb::ATTR_INLINE_LEN {
        let length = u64::from(if attr.len < wanted.len { attr.len } else { wanted.len });
        // SAFETY: the target has PAYLOAD bytes.
        record.payload_len =
            unsafe { read::user_bytes::<{ PAYLOAD as u32 }>(record.payload.as_mut_ptr(), attr.data, length) };
    }
}

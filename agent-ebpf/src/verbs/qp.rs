//! What is known of a QP from its own earlier calls: number, type and state.
//!
//! A request names a QP by a handle that means nothing outside its file, and not its state. So a QP is remembered when
//! it is made, and its state when it is changed: no kernel structure is needed for it.

use agent_common::record::{Call, FailureRecord, Qp, QpKey};
use agent_common::verb::{self, VerbKey, interface};

use super::decode;
use crate::{maps, read};

/// Native QP methods and attributes (include/uapi/rdma/ib_user_ioctl_cmds.h).
const OBJECT_QP: u16 = 4;
const METHOD_QP_CREATE: u16 = 0;
const METHOD_QP_DESTROY: u16 = 1;
const ATTR_HANDLE: u16 = 0;
const ATTR_QP_TYPE: u16 = 9;
const ATTR_RESP_QP_NUM: u16 = 14;
/// How many attributes of a native create are looked at.
const ATTRS: u32 = 16;

/// Legacy commands (include/uapi/rdma/ib_user_verbs.h).
const MODIFY_QP: u16 = 26;
/// `struct ib_uverbs_modify_qp`: two destinations of 32 bytes, then handle and attribute mask; the new state is the
/// byte after five more 32-bit and two 16-bit fields.
const MODIFY_HANDLE: u64 = 64;
const MODIFY_MASK: u64 = 68;
const MODIFY_STATE: u64 = 96;
/// `IB_QP_STATE`: the mask's bit for the state.
const MASK_STATE: u32 = 1;

/// A call has succeeded: a new QP is remembered, a changed one gets its new state.
#[inline(always)]
pub(crate) fn succeeded(call: &Call) {
    let key = VerbKey(call.key);
    if key.interface() == interface::IOCTL && key.object() == OBJECT_QP && key.method() == METHOD_QP_CREATE {
        created(call);
    } else if key.interface() == interface::LEGACY_IOCTL && key.method() == MODIFY_QP {
        modified(call);
    }
}

#[inline(always)]
fn created(call: &Call) {
    let mut qp = Qp { number: 0, kind: 0, state: 0, reserved: 0 };
    let mut handle = None;
    let Some(header) = read::user::<decode::Header>(call.request) else { return };
    for index in 0..ATTRS {
        if index >= header.attrs() {
            break;
        }
        let address = call.request + decode::HEADER + u64::from(index) * size_of::<decode::Attr>() as u64;
        let Some(attr) = read::user::<decode::Attr>(address) else { break };
        match attr.id {
            ATTR_HANDLE => handle = Some(attr.data as u32),
            ATTR_QP_TYPE => qp.kind = attr.data as u32,
            ATTR_RESP_QP_NUM => qp.number = read::user::<u32>(attr.data).unwrap_or(0),
            _ => {}
        }
    }
    if let Some(handle) = handle {
        maps::set_qp(&QpKey { file: call.file, handle, reserved: 0 }, &qp);
    }
}

#[inline(always)]
fn modified(call: &Call) {
    let Some(header) = read::user::<decode::Header>(call.request) else { return };
    let Some(attr) = decode::find::<{ decode::COMMAND_ATTRS }>(call.request, header.attrs(), verb::ATTR_CORE_IN) else {
        return;
    };
    let (Some(handle), Some(mask), Some(state)) = (
        read::user::<u32>(attr.data + MODIFY_HANDLE),
        read::user::<u32>(attr.data + MODIFY_MASK),
        read::user::<u8>(attr.data + MODIFY_STATE),
    ) else {
        return;
    };
    let Some(qp) = maps::qp(&QpKey { file: call.file, handle, reserved: 0 }) else { return };
    if mask & MASK_STATE != 0 {
        // SAFETY: the map gave the pointer; the last of two racing changes wins.
        unsafe { (*qp).state = u32::from(state) };
    }
}

/// The QP a failed request names.
#[inline(always)]
pub(crate) fn named(call: &Call, record: &FailureRecord) -> Option<QpKey> {
    let key = VerbKey(call.key);
    let handle = match key.interface() {
        interface::LEGACY_IOCTL | interface::LEGACY_WRITE if key.method() == MODIFY_QP => {
            // SAFETY: the request has more bytes than this.
            unsafe { record.request.as_ptr().add(MODIFY_HANDLE as usize).cast::<u32>().read_unaligned() }
        }
        interface::IOCTL if key.object() == OBJECT_QP && key.method() == METHOD_QP_DESTROY => {
            decode::find::<1>(call.request, record.attrs_len, ATTR_HANDLE)?.data as u32
        }
        _ => return None,
    };
    Some(QpKey { file: call.file, handle, reserved: 0 })
}

//! On which completion vector each CQ is made, and how many vectors its device has: the kernel tells neither.
//!
//! What was asked for and answered stands in user memory when the call has succeeded. A caller that changes it under way
//! only gives its own CQ another vector here.

use agent_common::record::{Call, CqKey};
use agent_common::verb::{self, VerbKey, interface};

use super::decode;
use crate::{maps, read};

/// Native methods and attributes (include/uapi/rdma/ib_user_ioctl_cmds.h).
const OBJECT_CQ: u16 = 3;
const METHOD_CQ_CREATE: u16 = 0;
const ATTR_COMP_VECTOR: u16 = 4;
const METHOD_GET_CONTEXT: u16 = 3;
const ATTR_NUM_COMP_VECTORS: u16 = 0;
/// How many attributes of a native call are looked at.
const ATTRS: u32 = 12;

/// Legacy commands (include/uapi/rdma/ib_user_verbs.h), as plain and as extended ones.
const GET_CONTEXT: u16 = 0;
const CREATE_CQ: u16 = 18;
/// Bytes before `comp_vector` in `struct ib_uverbs_create_cq` and `struct ib_uverbs_ex_create_cq`.
const VECTOR: u64 = 20;
const VECTOR_EXTENDED: u64 = 12;
/// Bytes before `num_comp_vectors` in `struct ib_uverbs_get_context_resp`.
const NUM_VECTORS: u64 = 4;

/// A call has succeeded.
#[inline(always)]
pub(crate) fn succeeded(call: &Call) {
    let key = VerbKey(call.key);
    match (key.interface(), key.object(), key.method()) {
        (interface::IOCTL, OBJECT_CQ, METHOD_CQ_CREATE) => {
            made(call, attr(call, ATTR_COMP_VECTOR).map(|attr| attr.data as u32));
        }
        (interface::IOCTL, verb::OBJECT_DEVICE, METHOD_GET_CONTEXT) => {
            opened(call, attr(call, ATTR_NUM_COMP_VECTORS).map(|attr| attr.data));
        }
        (interface::LEGACY_IOCTL, extended, CREATE_CQ) => {
            let offset = if extended == 0 { VECTOR } else { VECTOR_EXTENDED };
            let address = attr(call, verb::ATTR_CORE_IN).map(|attr| attr.data + offset);
            made(call, address.and_then(read::user::<u32>));
        }
        (interface::LEGACY_IOCTL, 0, GET_CONTEXT) => {
            opened(call, attr(call, verb::ATTR_CORE_OUT).map(|attr| attr.data + NUM_VECTORS));
        }
        _ => {}
    }
}

#[inline(always)]
fn attr(call: &Call, id: u16) -> Option<decode::Attr> {
    let header = read::user::<decode::Header>(call.request)?;
    decode::find::<ATTRS>(call.request, header.attrs(), id)
}

#[inline(always)]
fn made(call: &Call, vector: Option<u32>) {
    if let Some(vector) = vector.filter(|vector| *vector != CqKey::VECTORS) {
        maps::count_cq(&CqKey { rdev: call.rdev, vector });
    }
}

#[inline(always)]
fn opened(call: &Call, address: Option<u64>) {
    if let Some(vectors) = address.and_then(read::user::<u32>) {
        maps::set_vectors(&CqKey { rdev: call.rdev, vector: CqKey::VECTORS }, u64::from(vectors));
    }
}

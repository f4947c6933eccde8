//! What a call asked for, as JSON.

use std::borrow::Cow;

use serde::Serialize;

use crate::event::KnownQp;
use crate::verbs::request::types::{Access, Ah, Caps, Cm, Cq, Mr, Qp, QpState, QpType, Srq};

type Names = Vec<Cow<'static, str>>;

#[serde_with::skip_serializing_none]
#[derive(Debug, Default, Serialize)]
pub(super) struct QpRecord {
    qpn: Option<u32>,
    handle: Option<u32>,
    r#type: Option<String>,
    state_from: Option<String>,
    state_to: Option<String>,
    attr_mask: Option<Names>,
    caps: Option<CapsRecord>,
    access: Option<Names>,
    port: Option<u8>,
    pkey_index: Option<u16>,
    gid_index: Option<u8>,
    remote_gid: Option<String>,
    remote_lid: Option<u16>,
    dest_qpn: Option<u32>,
    path_mtu: Option<String>,
    sq_psn: Option<u32>,
    rq_psn: Option<u32>,
    timeout: Option<u8>,
    retry_cnt: Option<u8>,
    rnr_retry: Option<u8>,
    send_cq_handle: Option<u32>,
    recv_cq_handle: Option<u32>,
    srq_handle: Option<u32>,
}

/// The QP's number, type and state, from what was asked for and what is known of it. The state that its own calls
/// have shown counts for more than the one that the caller claims.
pub(in crate::verbs) fn qp_known(
    qp: Option<&Qp>,
    known: Option<&KnownQp>,
) -> (Option<u32>, Option<QpType>, Option<QpState>) {
    let state = known.and_then(|known| u8::try_from(known.state).ok()).map(QpState);
    (
        known.map(|known| known.number).or_else(|| qp?.qpn),
        qp.and_then(|qp| qp.qp_type).or_else(|| known.map(|known| QpType(known.kind.into()))),
        state.or_else(|| qp?.state_from),
    )
}

impl QpRecord {
    pub(super) fn of(qp: Option<&Qp>, known: Option<&KnownQp>) -> Option<Self> {
        if qp.is_none() && known.is_none() {
            return None;
        }
        let (qpn, kind, state_from) = qp_known(qp, known);
        let seen = Self {
            qpn,
            r#type: kind.map(|kind| kind.to_string()),
            state_from: state_from.map(|state| state.to_string()),
            ..Self::default()
        };
        let Some(qp) = qp else { return Some(seen) };
        Some(Self {
            handle: qp.handle,
            state_to: qp.state_to.map(|state| state.to_string()),
            attr_mask: qp.attr_mask.map(|mask| mask.names()),
            caps: qp.caps.map(CapsRecord::of),
            access: qp.access.map(Access::names),
            port: qp.port,
            pkey_index: qp.pkey_index,
            gid_index: qp.gid_index,
            remote_gid: qp.remote_gid.map(|gid| gid.to_string()),
            remote_lid: qp.remote_lid,
            dest_qpn: qp.dest_qpn,
            path_mtu: qp.path_mtu.map(|mtu| mtu.to_string()),
            sq_psn: qp.sq_psn,
            rq_psn: qp.rq_psn,
            timeout: qp.timeout,
            retry_cnt: qp.retry_cnt,
            rnr_retry: qp.rnr_retry,
            send_cq_handle: qp.send_cq_handle,
            recv_cq_handle: qp.recv_cq_handle,
            srq_handle: qp.srq_handle,
            ..seen
        })
    }
}

#[derive(Debug, Serialize)]
struct CapsRecord {
    max_send_wr: u32,
    max_recv_wr: u32,
    max_send_sge: u32,
    max_recv_sge: u32,
    max_inline: u32,
}

impl CapsRecord {
    fn of(caps: Caps) -> Self {
        let Caps { max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline } = caps;
        Self { max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline }
    }
}

/// Addresses are text, since readers of JSON keep 53 bits of a number.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize)]
pub(super) struct MrRecord {
    handle: Option<u32>,
    address: Option<String>,
    offset: Option<u64>,
    length: Option<u64>,
    iova: Option<String>,
    access: Option<Names>,
    kind: Option<&'static str>,
    fd: Option<i32>,
    dm_handle: Option<u32>,
}

impl MrRecord {
    pub(super) fn of(mr: &Mr) -> Self {
        let hex = |address: Option<u64>| address.map(|address| format!("{address:#x}"));
        Self {
            handle: mr.handle,
            address: hex(mr.address),
            offset: mr.offset,
            length: mr.length,
            iova: hex(mr.iova),
            access: mr.access.map(Access::names),
            kind: mr.kind.map(|kind| kind.name()),
            fd: mr.fd,
            dm_handle: mr.dm_handle,
        }
    }
}

#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize)]
pub(super) struct CqRecord {
    handle: Option<u32>,
    cqe: Option<u32>,
    comp_vector: Option<u32>,
}

impl CqRecord {
    pub(super) fn of(cq: &Cq) -> Self {
        Self { handle: cq.handle, cqe: cq.cqe, comp_vector: cq.comp_vector }
    }
}

#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize)]
pub(super) struct SrqRecord {
    handle: Option<u32>,
    max_wr: Option<u32>,
    max_sge: Option<u32>,
}

impl SrqRecord {
    pub(super) fn of(srq: &Srq) -> Self {
        Self { handle: srq.handle, max_wr: srq.max_wr, max_sge: srq.max_sge }
    }
}

#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize)]
pub(super) struct AhRecord {
    port: Option<u8>,
    gid_index: Option<u8>,
    remote_gid: Option<String>,
    remote_lid: Option<u16>,
}

impl AhRecord {
    pub(super) fn of(ah: &Ah) -> Self {
        let remote_gid = ah.remote_gid.map(|gid| gid.to_string());
        Self { port: ah.port, gid_index: ah.gid_index, remote_gid, remote_lid: ah.remote_lid }
    }
}

/// A command to the connection manager.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize)]
pub(super) struct CmCommandRecord {
    id: Option<u32>,
    source: Option<String>,
    destination: Option<String>,
    timeout_ms: Option<u32>,
    qpn: Option<u32>,
    private_data_len: Option<u8>,
    backlog: Option<u32>,
    reason: Option<u8>,
}

impl CmCommandRecord {
    pub(super) fn of(cm: &Cm) -> Self {
        Self {
            id: cm.id,
            source: cm.source.map(|address| address.to_string()),
            destination: cm.destination.map(|address| address.to_string()),
            timeout_ms: cm.timeout_ms,
            qpn: cm.qpn,
            private_data_len: cm.private_data_len,
            backlog: cm.backlog,
            reason: cm.reason,
        }
    }
}

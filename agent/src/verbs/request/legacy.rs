//! Requests of write commands: one row for each structure (include/uapi/rdma/ib_user_verbs.h).
//!
//! Offsets are those of the header. Structures of plain commands begin with the response's address.

use agent_common::verb::VerbKey;

use super::bytes::Bytes;
use super::types::{Access, Ah, Caps, Mr, Mtu, Qp, QpAttrMask, QpState, QpType, Request, Srq};

/// Extended (1) or not (0), command, what its structure says.
type Row = (u16, u16, fn(Bytes<'_>, &mut Request));

const ROWS: &[Row] = &[
    // ib_uverbs_query_port
    (0, 2, |at, request| request.port = at.u8(8)),
    // ib_uverbs_dealloc_pd
    (0, 4, |at, request| request.pd_handle = at.u32(0)),
    // ib_uverbs_create_ah, ib_uverbs_destroy_ah
    (0, 5, create_ah),
    (0, 8, |at, request| request.handle = at.u32(0)),
    // ib_uverbs_reg_mr, ib_uverbs_rereg_mr, ib_uverbs_dereg_mr
    (0, 9, |at, request| memory(at.part(8), request)),
    (0, 11, |at, request| {
        memory(at.part(16), request);
        request.mr().handle = at.u32(8);
    }),
    (0, 13, |at, request| request.mr().handle = at.u32(0)),
    // ib_uverbs_alloc_mw, ib_uverbs_dealloc_mw
    (0, 14, |at, request| request.pd_handle = at.u32(8)),
    (0, 16, |at, request| request.handle = at.u32(0)),
    // ib_uverbs_create_cq, ib_uverbs_resize_cq, ib_uverbs_destroy_cq, ib_uverbs_poll_cq,
    // ib_uverbs_req_notify_cq
    (0, 18, |at, request| create_cq(at.part(16), request)),
    (0, 19, |at, request| {
        request.cq().handle = at.u32(8);
        request.cq().cqe = at.u32(12);
    }),
    (0, 20, |at, request| request.cq().handle = at.u32(8)),
    (0, 21, |at, request| request.cq().handle = at.u32(8)),
    (0, 23, |at, request| request.cq().handle = at.u32(0)),
    // ib_uverbs_create_qp, ib_uverbs_query_qp, ib_uverbs_modify_qp, ib_uverbs_destroy_qp
    (0, 24, |at, request| create_qp(at.part(16), request)),
    (0, 25, |at, request| request.qp().handle = at.u32(8)),
    (0, 26, modify_qp),
    (0, 27, |at, request| request.qp().handle = at.u32(8)),
    // ib_uverbs_post_send, ib_uverbs_post_recv
    (0, 28, |at, request| request.qp().handle = at.u32(8)),
    (0, 29, |at, request| request.qp().handle = at.u32(8)),
    // ib_uverbs_attach_mcast, ib_uverbs_detach_mcast
    (0, 30, multicast),
    (0, 31, multicast),
    // ib_uverbs_create_srq, ib_uverbs_modify_srq, ib_uverbs_query_srq, ib_uverbs_destroy_srq,
    // ib_uverbs_post_srq_recv
    (0, 32, |at, request| create_srq(at.part(16), request)),
    (0, 33, |at, request| {
        request.srq().handle = at.u32(0);
        request.srq().max_wr = at.u32(8);
    }),
    (0, 34, |at, request| request.srq().handle = at.u32(8)),
    (0, 35, |at, request| request.srq().handle = at.u32(8)),
    (0, 36, |at, request| request.srq().handle = at.u32(8)),
    // ib_uverbs_close_xrcd
    (0, 38, |at, request| request.handle = at.u32(0)),
    // ib_uverbs_create_xsrq: as create_srq behind the type
    (0, 39, |at, request| create_srq(at.part(20), request)),
    // ib_uverbs_open_qp
    (0, 40, |at, request| {
        request.pd_handle = at.u32(16);
        request.qp().qpn = at.u32(20);
        request.qp().qp_type = at.u8(24).map(u64::from).map(QpType);
    }),
    // ib_uverbs_ex_create_cq, ib_uverbs_ex_create_qp, ib_uverbs_ex_modify_qp: as the plain ones, the
    // first two without the response
    (1, 18, |at, request| create_cq(at.part(8), request)),
    (1, 24, |at, request| create_qp(at.part(8), request)),
    (1, 26, modify_qp),
    // ib_uverbs_create_flow, ib_uverbs_destroy_flow
    (1, 50, |at, request| {
        request.qp().handle = at.u32(4);
        request.port = at.u8(19);
    }),
    (1, 51, |at, request| request.handle = at.u32(4)),
    // ib_uverbs_ex_create_wq, ib_uverbs_ex_modify_wq, ib_uverbs_ex_destroy_wq
    (1, 52, |at, request| {
        request.pd_handle = at.u32(16);
        request.srq = Some(Srq { handle: None, max_wr: at.u32(24), max_sge: at.u32(28) });
    }),
    (1, 53, |at, request| request.handle = at.u32(4)),
    (1, 54, |at, request| request.handle = at.u32(4)),
    // ib_uverbs_ex_destroy_rwq_ind_table
    (1, 56, |at, request| request.handle = at.u32(4)),
    // ib_uverbs_ex_modify_cq
    (1, 57, |at, request| request.cq().handle = at.u32(0)),
];

pub(super) fn decode(key: VerbKey, at: Bytes<'_>, request: &mut Request) {
    let row = ROWS.iter().find(|row| row.0 == key.object() && row.1 == key.method());
    if let Some((_, _, read)) = row {
        read(at, request);
    }
}

/// The part that ib_uverbs_reg_mr and ib_uverbs_rereg_mr share, from `start` on: start, length, hca_va
/// (u64 each), pd_handle, access_flags (u32 each).
fn memory(at: Bytes<'_>, request: &mut Request) {
    let access = at.u32(28).map(u64::from).map(Access);
    request.pd_handle = at.u32(24);
    request.mr = Some(Mr {
        address: at.u64(0),
        length: at.u64(8),
        iova: at.u64(16),
        access,
        kind: access.map(Access::host_kind),
        ..Mr::default()
    });
}

/// From `cqe` on: cqe, comp_vector.
fn create_cq(at: Bytes<'_>, request: &mut Request) {
    request.cq().cqe = at.u32(0);
    request.cq().comp_vector = at.u32(4);
}

/// From `pd_handle` on: pd_handle, send_cq_handle, recv_cq_handle, srq_handle, the five capabilities
/// (u32 each), sq_sig_all, qp_type, is_srq (u8 each).
fn create_qp(at: Bytes<'_>, request: &mut Request) {
    request.pd_handle = at.u32(0);
    let has_srq = at.u8(38).is_some_and(|is_srq| is_srq != 0);
    request.qp = Some(Qp {
        send_cq_handle: at.u32(4),
        recv_cq_handle: at.u32(8),
        srq_handle: at.u32(12).filter(|_| has_srq),
        caps: caps(at, 16),
        qp_type: at.u8(37).map(u64::from).map(QpType),
        ..Qp::default()
    });
}

/// `struct ib_uverbs_qp_cap`: five u32.
pub(super) fn caps(at: Bytes<'_>, offset: usize) -> Option<Caps> {
    let at = at.part(offset);
    Some(Caps {
        max_send_wr: at.u32(0)?,
        max_recv_wr: at.u32(4)?,
        max_send_sge: at.u32(8)?,
        max_recv_sge: at.u32(12)?,
        max_inline: at.u32(16)?,
    })
}

/// From `pd_handle` on: pd_handle, max_wr, max_sge.
fn create_srq(at: Bytes<'_>, request: &mut Request) {
    request.pd_handle = at.u32(0);
    request.srq().max_wr = at.u32(4);
    request.srq().max_sge = at.u32(8);
}

/// ib_uverbs_create_ah: pd_handle at 16; the attribute's dgid at 24, sgid_index at 44, dlid at 48,
/// is_global at 53, port_num at 54.
fn create_ah(at: Bytes<'_>, request: &mut Request) {
    let is_global = at.u8(53).is_some_and(|is_global| is_global != 0);
    request.pd_handle = at.u32(16);
    request.ah = Some(Ah {
        gid_index: at.u8(44).filter(|_| is_global),
        remote_gid: at.gid(24).filter(|_| is_global),
        remote_lid: at.u16(48).filter(|_| !is_global && at.u8(53).is_some()),
        port: at.u8(54),
    });
}

/// ib_uverbs_attach_mcast: gid at 0, qp_handle at 16, mlid at 20.
fn multicast(at: Bytes<'_>, request: &mut Request) {
    let qp = request.qp();
    qp.handle = at.u32(16);
    qp.remote_gid = at.gid(0);
    qp.remote_lid = at.u16(20);
}

/// ib_uverbs_modify_qp and what ib_uverbs_ex_modify_qp begins with: the destination (dgid at 0, dlid at
/// 20, sgid_index at 24, is_global at 30, port_num at 31), then from 64 on what is read below.
fn modify_qp(at: Bytes<'_>, request: &mut Request) {
    let Some(mask) = at.u32(68).map(QpAttrMask) else { return };
    let [state, cur_state, access, pkey, port, av, mtu] = [0, 1, 3, 4, 5, 7, 8].map(|bit| mask.has(bit));
    let [timeout, retry, rnr, rq_psn, sq_psn, dest] = [9, 10, 11, 12, 16, 20].map(|bit| mask.has(bit));
    let is_global = at.u8(30).is_some_and(|is_global| is_global != 0);
    request.qp = Some(Qp {
        handle: at.u32(64),
        attr_mask: Some(mask),
        state_to: at.u8(96).filter(|_| state).map(QpState),
        state_from: at.u8(97).filter(|_| cur_state).map(QpState),
        access: at.u32(88).filter(|_| access).map(u64::from).map(Access),
        pkey_index: at.u16(92).filter(|_| pkey),
        port: if port { at.u8(104) } else { at.u8(31).filter(|_| av) },
        gid_index: at.u8(24).filter(|_| av && is_global),
        remote_gid: at.gid(0).filter(|_| av && is_global),
        remote_lid: at.u16(20).filter(|_| av && !is_global),
        path_mtu: at.u8(98).filter(|_| mtu).map(Mtu),
        timeout: at.u8(105).filter(|_| timeout),
        retry_cnt: at.u8(106).filter(|_| retry),
        rnr_retry: at.u8(107).filter(|_| rnr),
        rq_psn: at.u32(76).filter(|_| rq_psn),
        sq_psn: at.u32(80).filter(|_| sq_psn),
        dest_qpn: at.u32(84).filter(|_| dest),
        ..Qp::default()
    });
}

//! Requests of the connection manager: one row for each structure (include/uapi/rdma/rdma_user_cm.h).

use agent_common::verb::VerbKey;

use super::bytes::Bytes;
use super::types::{Cm, Request};

/// `sizeof(struct sockaddr_in6)` (include/uapi/linux/in6.h).
const SOCKADDR_IN6_LEN: usize = 28;

/// Command, what its structure says.
type Row = (u16, fn(Bytes<'_>) -> Cm);

const ROWS: &[Row] = &[
    // rdma_ucm_destroy_id
    (1, |at| id(at, 8)),
    // rdma_ucm_bind_ip: response, addr at 8, id at 36
    (2, |at| Cm { source: at.endpoint(8), ..id(at, 36) }),
    // rdma_ucm_resolve_ip: src_addr, dst_addr, id at 56, timeout_ms at 60
    (3, |at| Cm {
        source: at.endpoint(0),
        destination: at.endpoint(SOCKADDR_IN6_LEN),
        timeout_ms: at.u32(60),
        ..id(at, 56)
    }),
    // rdma_ucm_resolve_route: id, timeout_ms
    (4, |at| Cm { timeout_ms: at.u32(4), ..id(at, 0) }),
    // rdma_ucm_query
    (5, |at| id(at, 8)),
    // rdma_ucm_connect: conn_param, id at 272
    (6, |at| connection(at, 0, 272)),
    // rdma_ucm_listen: id, backlog
    (7, |at| Cm { backlog: at.u32(4), ..id(at, 0) }),
    // rdma_ucm_accept: uid, conn_param at 8, id at 280
    (8, |at| connection(at, 8, 280)),
    // rdma_ucm_reject: id, private_data_len at 4, reason at 5
    (9, |at| Cm { private_data_len: at.u8(4), reason: at.u8(5), ..id(at, 0) }),
    // rdma_ucm_disconnect, rdma_ucm_init_qp_attr, rdma_ucm_set_option, rdma_ucm_notify
    (10, |at| id(at, 0)),
    (11, |at| id(at, 8)),
    (14, |at| id(at, 8)),
    (15, |at| id(at, 0)),
    // rdma_ucm_join_ip_mcast: response, uid, addr at 16, id at 44
    (16, |at| Cm { destination: at.endpoint(16), ..id(at, 44) }),
    // LEAVE_MCAST uses rdma_ucm_destroy_id; rdma_ucm_migrate_id; rdma_ucm_query
    (17, |at| id(at, 8)),
    (18, |at| id(at, 8)),
    (19, |at| id(at, 8)),
    // rdma_ucm_bind: id, addr_size at 4, addr at 8
    (20, |at| Cm { source: at.endpoint(8), ..id(at, 0) }),
    // rdma_ucm_resolve_addr: id, timeout_ms at 4, sizes, src_addr at 16, dst_addr at 144
    (21, |at| Cm { source: at.endpoint(16), destination: at.endpoint(144), timeout_ms: at.u32(4), ..id(at, 0) }),
    // rdma_ucm_join_mcast: response, uid, id at 16, addr at 24
    (22, |at| Cm { destination: at.endpoint(24), ..id(at, 16) }),
    // rdma_ucm_resolve_ib_service, rdma_ucm_write_cm_event
    (23, |at| id(at, 0)),
    (24, |at| id(at, 0)),
];

pub(super) fn decode(key: VerbKey, at: Bytes<'_>, request: &mut Request) {
    let row = ROWS.iter().find(|row| row.0 == key.method() && key.object() == 0);
    request.cm = row.map(|(_, read)| read(at));
}

fn id(at: Bytes<'_>, offset: usize) -> Cm {
    Cm { id: at.u32(offset), ..Cm::default() }
}

/// `struct rdma_ucm_conn_param` at `offset`: qp_num at 0, private_data_len at 264.
fn connection(at: Bytes<'_>, offset: usize, id_offset: usize) -> Cm {
    let param = at.part(offset);
    Cm { qpn: param.u32(0), private_data_len: param.u8(264), ..id(at, id_offset) }
}

//! Commands of the rdma_cm device (include/uapi/rdma/rdma_user_cm.h, up to 7.3), by librdmacm's names.

use super::{
    Row,
    VerbClass::{Other, Query},
    create, destroy, modify,
};

pub(super) const ROWS: &[Row] = &[
    Row(0, 0, "rdma_create_id", create()),
    Row(0, 1, "rdma_destroy_id", destroy()),
    // BIND_IP and BIND, RESOLVE_IP and RESOLVE_ADDR, JOIN_IP_MCAST and JOIN_MCAST: older and newer
    // form of one call
    Row(0, 2, "rdma_bind_addr", modify()),
    Row(0, 3, "rdma_resolve_addr", modify()),
    Row(0, 4, "rdma_resolve_route", modify()),
    Row(0, 5, "rdma_query_route", Query),
    Row(0, 6, "rdma_connect", modify()),
    Row(0, 7, "rdma_listen", modify()),
    Row(0, 8, "rdma_accept", modify()),
    Row(0, 9, "rdma_reject", modify()),
    Row(0, 10, "rdma_disconnect", modify()),
    Row(0, 11, "rdma_init_qp_attr", Other),
    Row(0, 12, "rdma_get_cm_event", Other),
    Row(0, 13, "rdma_get_option", Query),
    Row(0, 14, "rdma_set_option", Other),
    Row(0, 15, "rdma_notify", Other),
    Row(0, 16, "rdma_join_multicast", modify()),
    Row(0, 17, "rdma_leave_multicast", modify()),
    Row(0, 18, "rdma_migrate_id", modify()),
    Row(0, 19, "rdma_query", Query),
    Row(0, 20, "rdma_bind_addr", modify()),
    Row(0, 21, "rdma_resolve_addr", modify()),
    Row(0, 22, "rdma_join_multicast", modify()),
    Row(0, 23, "rdma_resolve_ib_service", modify()),
    Row(0, 24, "rdma_write_cm_event", Other),
];

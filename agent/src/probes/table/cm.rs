//! The connection manager: the commands of `rdma_ucm`, and what they call in `rdma_cm` and `ib_cm`.

use super::super::{Hook, Layer};
use super::row;

const fn command(name: &'static str, functions: &'static [&'static str]) -> Hook {
    row(Layer::Core, &["rdma_ucm"], name, functions)
}

const fn cm(name: &'static str, functions: &'static [&'static str]) -> Hook {
    row(Layer::Core, &["rdma_cm"], name, functions)
}

const fn ib_cm(name: &'static str, functions: &'static [&'static str]) -> Hook {
    row(Layer::Core, &["ib_cm"], name, functions)
}

pub(super) const ROWS: &[Hook] = &[
    command("ucma_create_id", &["ucma_create_id"]).long().session(),
    command("ucma_destroy_id", &["ucma_destroy_id"]).long().session(),
    command("ucma_bind", &["ucma_bind"]).long().session(),
    command("ucma_bind_ip", &["ucma_bind_ip"]).long().session(),
    command("ucma_resolve_addr", &["ucma_resolve_addr"]).long().session(),
    command("ucma_resolve_ip", &["ucma_resolve_ip"]).long().session(),
    command("ucma_resolve_route", &["ucma_resolve_route"]).long().session(),
    command("ucma_query_route", &["ucma_query_route"]).long().session(),
    command("ucma_query", &["ucma_query"]).long().session(),
    command("ucma_connect", &["ucma_connect"]).long().session(),
    command("ucma_listen", &["ucma_listen"]).long().session(),
    command("ucma_accept", &["ucma_accept"]).long().session(),
    command("ucma_reject", &["ucma_reject"]).long().session(),
    command("ucma_disconnect", &["ucma_disconnect"]).long().session(),
    command("ucma_init_qp_attr", &["ucma_init_qp_attr"]).long().session(),
    command("ucma_get_event", &["ucma_get_event"]).long().session(),
    command("ucma_set_option", &["ucma_set_option"]).long().session(),
    command("ucma_notify", &["ucma_notify"]).long().session(),
    command("ucma_join_ip_multicast", &["ucma_join_ip_multicast"]).long().session(),
    command("ucma_join_multicast", &["ucma_join_multicast"]).long().session(),
    command("ucma_leave_multicast", &["ucma_leave_multicast"]).long().session(),
    command("ucma_migrate_id", &["ucma_migrate_id"]).long().session(),
    cm("cm_create_user_id", &["rdma_create_user_id"]).long().session(),
    cm("cm_create_id", &["__rdma_create_kernel_id"]).long().session(),
    cm("cm_bind_addr", &["rdma_bind_addr"]).session(),
    cm("cm_resolve_addr", &["rdma_resolve_addr"]).session(),
    cm("cm_resolve_route", &["rdma_resolve_route"]).session(),
    cm("cm_listen", &["rdma_listen"]).session(),
    cm("cm_connect", &["rdma_connect"]).session(),
    cm("cm_connect_ece", &["rdma_connect_ece"]).session(),
    cm("cm_accept", &["rdma_accept"]).session(),
    cm("cm_accept_ece", &["rdma_accept_ece"]).session(),
    cm("cm_reject", &["rdma_reject"]).session(),
    cm("cm_disconnect", &["rdma_disconnect"]).session(),
    cm("cm_notify", &["rdma_notify"]).session(),
    cm("cm_join_multicast", &["rdma_join_multicast"]).session(),
    cm("cm_init_qp_attr", &["rdma_init_qp_attr"]).session(),
    cm("cm_set_option_ip", &["rdma_set_afonly"]).session(),
    ib_cm("ib_cm_request", &["ib_send_cm_req"]).session(),
    ib_cm("ib_cm_reply", &["ib_send_cm_rep"]).session(),
    ib_cm("ib_cm_listen", &["ib_cm_listen"]).session(),
    ib_cm("ib_cm_qp_attr", &["ib_cm_init_qp_attr"]).session(),
];

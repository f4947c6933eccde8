//! `rdma_rxe`: soft-RoCE.

use super::super::{Hook, Layer};
use super::row;

const fn driver(name: &'static str, functions: &'static [&'static str]) -> Hook {
    row(Layer::Driver, &["rdma_rxe"], name, functions)
}

pub(super) const ROWS: &[Hook] = &[
    driver("rxe_reg_user_mr", &["rxe_reg_user_mr"]).long(),
    driver("rxe_rereg_user_mr", &["rxe_rereg_user_mr"]).long(),
    driver("rxe_create_cq", &["rxe_create_cq"]),
    driver("rxe_resize_cq", &["rxe_resize_cq"]),
    driver("rxe_create_qp", &["rxe_create_qp"]),
    driver("rxe_modify_qp", &["rxe_modify_qp"]),
    driver("rxe_create_srq", &["rxe_create_srq"]),
    driver("rxe_modify_srq", &["rxe_modify_srq"]),
    driver("rxe_create_ah", &["rxe_create_ah"]),
    driver("rxe_check_cq", &["rxe_cq_chk_attr"]),
    driver("rxe_check_qp_caps", &["rxe_qp_chk_cap"]),
    driver("rxe_check_qp_init", &["rxe_qp_chk_init"]),
    driver("rxe_check_qp_attr", &["rxe_qp_chk_attr"]),
    driver("rxe_check_srq", &["rxe_srq_chk_init"]),
    driver("rxe_check_srq_attr", &["rxe_srq_chk_attr"]),
    driver("rxe_check_ah", &["rxe_ah_chk_attr", "rxe_av_chk_attr"]),
    driver("rxe_set_cq_init", &["rxe_cq_from_init"]),
    driver("rxe_set_qp_init", &["rxe_qp_from_init"]),
    driver("rxe_set_qp_attr", &["rxe_qp_from_attr"]),
    driver("rxe_set_srq_init", &["rxe_srq_from_init"]),
    driver("rxe_set_srq_attr", &["rxe_srq_from_attr"]),
    driver("rxe_init_user_mr", &["rxe_mr_init_user"]).session(),
    driver("rxe_init_odp_mr", &["rxe_odp_mr_init_user"]).session(),
    driver("rxe_alloc_ucontext", &["rxe_alloc_ucontext"]).session(),
    driver("rxe_alloc_pd", &["rxe_alloc_pd"]).session(),
    driver("rxe_dealloc_pd", &["rxe_dealloc_pd"]).session(),
    driver("rxe_alloc_mw", &["rxe_alloc_mw"]).session(),
    driver("rxe_dealloc_mw", &["rxe_dealloc_mw"]).session(),
    driver("rxe_dereg_mr", &["rxe_dereg_mr"]).session(),
    driver("rxe_destroy_cq", &["rxe_destroy_cq"]).session(),
    driver("rxe_destroy_qp", &["rxe_destroy_qp"]).session(),
    driver("rxe_check_qp_destroy", &["rxe_qp_chk_destroy"]).session(),
    driver("rxe_destroy_srq", &["rxe_destroy_srq"]).session(),
    driver("rxe_modify_ah", &["rxe_modify_ah"]).session(),
    driver("rxe_destroy_ah", &["rxe_destroy_ah"]).session(),
    driver("rxe_query_qp", &["rxe_query_qp"]).session(),
    driver("rxe_query_port", &["rxe_query_port"]).session(),
    driver("rxe_attach_mcast", &["rxe_attach_mcast"]).session(),
    driver("rxe_detach_mcast", &["rxe_detach_mcast"]).session(),
    driver("rxe_make_mmap_info", &["do_mmap_info"]).session(),
    driver("rxe_mmap", &["rxe_mmap"]).session(),
    driver("rxe_pool_add", &["__rxe_add_to_pool"]).session(),
    driver("rxe_resize_queue", &["rxe_queue_resize"]).session(),
];

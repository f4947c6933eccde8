//! `siw`: soft-iWARP. Seen to attach on the lab's kernels, from whose own source it is built there.

use super::super::{Hook, Layer};
use super::row;

const fn driver(name: &'static str, functions: &'static [&'static str]) -> Hook {
    row(Layer::Driver, &["siw"], name, functions)
}

pub(super) const ROWS: &[Hook] = &[
    driver("siw_reg_user_mr", &["siw_reg_user_mr"]).long(),
    driver("siw_create_cq", &["siw_create_cq"]),
    driver("siw_create_qp", &["siw_create_qp"]),
    driver("siw_modify_qp", &["siw_verbs_modify_qp"]),
    driver("siw_create_srq", &["siw_create_srq"]),
    driver("siw_modify_srq", &["siw_modify_srq"]),
    driver("siw_alloc_ucontext", &["siw_alloc_ucontext"]).session(),
    driver("siw_alloc_pd", &["siw_alloc_pd"]).session(),
    driver("siw_dealloc_pd", &["siw_dealloc_pd"]).session(),
    driver("siw_dereg_mr", &["siw_dereg_mr"]).session(),
    driver("siw_destroy_cq", &["siw_destroy_cq"]).session(),
    driver("siw_destroy_qp", &["siw_destroy_qp"]).session(),
    driver("siw_destroy_srq", &["siw_destroy_srq"]).session(),
    driver("siw_query_qp", &["siw_query_qp"]).session(),
    driver("siw_query_port", &["siw_query_port"]).session(),
    driver("siw_mmap", &["siw_mmap"]).session(),
    driver("siw_pin", &["siw_umem_get"]).long().session(),
    driver("siw_listen", &["siw_create_listen"]).session(),
    driver("siw_connect", &["siw_connect"]).session(),
    driver("siw_accept", &["siw_accept"]).session(),
];

//! `siw`: soft-iWARP. From the driver's source.

use super::super::{Hook, Layer};
use super::row;

const fn driver(name: &'static str, functions: &'static [&'static str]) -> Hook {
    row(Layer::Driver, &["siw"], name, functions)
}

pub(super) const ROWS: &[Hook] = &[
    driver("siw_reg_user_mr", &["siw_reg_user_mr"]).long().unverified(),
    driver("siw_create_cq", &["siw_create_cq"]).unverified(),
    driver("siw_create_qp", &["siw_create_qp"]).unverified(),
    driver("siw_modify_qp", &["siw_verbs_modify_qp"]).unverified(),
    driver("siw_create_srq", &["siw_create_srq"]).unverified(),
    driver("siw_modify_srq", &["siw_modify_srq"]).unverified(),
    driver("siw_alloc_ucontext", &["siw_alloc_ucontext"]).session().unverified(),
    driver("siw_alloc_pd", &["siw_alloc_pd"]).session().unverified(),
    driver("siw_dealloc_pd", &["siw_dealloc_pd"]).session().unverified(),
    driver("siw_dereg_mr", &["siw_dereg_mr"]).session().unverified(),
    driver("siw_destroy_cq", &["siw_destroy_cq"]).session().unverified(),
    driver("siw_destroy_qp", &["siw_destroy_qp"]).session().unverified(),
    driver("siw_destroy_srq", &["siw_destroy_srq"]).session().unverified(),
    driver("siw_query_qp", &["siw_query_qp"]).session().unverified(),
    driver("siw_query_port", &["siw_query_port"]).session().unverified(),
    driver("siw_mmap", &["siw_mmap"]).session().unverified(),
];

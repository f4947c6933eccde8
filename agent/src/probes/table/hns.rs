//! `hns_roce_hw_v2`, and its commands to the device. From the driver's source.

use super::super::{Hook, Layer};
use super::row;

const fn driver(name: &'static str, functions: &'static [&'static str]) -> Hook {
    row(Layer::Driver, &["hns_roce_hw_v2"], name, functions)
}

const fn firmware(name: &'static str, functions: &'static [&'static str]) -> Hook {
    row(Layer::Firmware, &["hns_roce_hw_v2"], name, functions)
}

pub(super) const ROWS: &[Hook] = &[
    driver("hns_reg_user_mr", &["hns_roce_reg_user_mr"]).long().unverified(),
    driver("hns_rereg_user_mr", &["hns_roce_rereg_user_mr"]).long().unverified(),
    driver("hns_create_cq", &["hns_roce_create_cq"]).unverified(),
    driver("hns_create_qp", &["hns_roce_create_qp"]).unverified(),
    driver("hns_modify_qp", &["hns_roce_modify_qp"]).unverified(),
    driver("hns_create_srq", &["hns_roce_create_srq"]).unverified(),
    driver("hns_modify_srq", &["hns_roce_v2_modify_srq"]).unverified(),
    driver("hns_create_ah", &["hns_roce_create_ah"]).unverified(),
    driver("hns_alloc_ucontext", &["hns_roce_alloc_ucontext"]).session().unverified(),
    driver("hns_alloc_pd", &["hns_roce_alloc_pd"]).session().unverified(),
    driver("hns_dealloc_pd", &["hns_roce_dealloc_pd"]).session().unverified(),
    driver("hns_alloc_mw", &["hns_roce_alloc_mw"]).session().unverified(),
    driver("hns_dealloc_mw", &["hns_roce_dealloc_mw"]).session().unverified(),
    driver("hns_alloc_xrcd", &["hns_roce_alloc_xrcd"]).session().unverified(),
    driver("hns_dealloc_xrcd", &["hns_roce_dealloc_xrcd"]).session().unverified(),
    driver("hns_dereg_mr", &["hns_roce_dereg_mr"]).session().unverified(),
    driver("hns_destroy_cq", &["hns_roce_destroy_cq"]).session().unverified(),
    driver("hns_destroy_qp", &["hns_roce_v2_destroy_qp"]).session().unverified(),
    driver("hns_destroy_srq", &["hns_roce_destroy_srq"]).session().unverified(),
    driver("hns_query_qp", &["hns_roce_v2_query_qp"]).session().unverified(),
    driver("hns_query_port", &["hns_roce_query_port"]).session().unverified(),
    driver("hns_mmap", &["hns_roce_mmap"]).session().unverified(),
    firmware("hns_command", &["hns_roce_cmd_mbox"]).unverified(),
];

//! `bnxt_re`, and its commands to the firmware.

use super::super::{Hook, Layer};
use super::row;

const fn driver(name: &'static str, functions: &'static [&'static str]) -> Hook {
    row(Layer::Driver, &["bnxt_re"], name, functions)
}

const fn firmware(name: &'static str, functions: &'static [&'static str]) -> Hook {
    row(Layer::Firmware, &["bnxt_re"], name, functions)
}

pub(super) const ROWS: &[Hook] = &[
    driver("bnxt_reg_user_mr", &["bnxt_re_reg_user_mr"]).long(),
    driver("bnxt_reg_user_mr_dmabuf", &["bnxt_re_reg_user_mr_dmabuf"]).long(),
    driver("bnxt_create_cq", &["bnxt_re_create_user_cq", "bnxt_re_create_cq"]),
    driver("bnxt_resize_cq", &["bnxt_re_resize_cq"]),
    driver("bnxt_create_qp", &["bnxt_re_create_qp"]),
    driver("bnxt_modify_qp", &["bnxt_re_modify_qp"]),
    driver("bnxt_create_srq", &["bnxt_re_create_srq"]),
    driver("bnxt_modify_srq", &["bnxt_re_modify_srq"]),
    driver("bnxt_create_ah", &["bnxt_re_create_ah"]),
    driver("bnxt_alloc_ucontext", &["bnxt_re_alloc_ucontext"]).session(),
    driver("bnxt_alloc_pd", &["bnxt_re_alloc_pd"]).session(),
    driver("bnxt_dealloc_pd", &["bnxt_re_dealloc_pd"]).session(),
    driver("bnxt_alloc_mw", &["bnxt_re_alloc_mw"]).long().session(),
    driver("bnxt_dealloc_mw", &["bnxt_re_dealloc_mw"]).session(),
    driver("bnxt_dereg_mr", &["bnxt_re_dereg_mr"]).session(),
    driver("bnxt_destroy_cq", &["bnxt_re_destroy_cq"]).session(),
    driver("bnxt_destroy_qp", &["bnxt_re_destroy_qp"]).session(),
    driver("bnxt_destroy_srq", &["bnxt_re_destroy_srq"]).session(),
    driver("bnxt_destroy_ah", &["bnxt_re_destroy_ah"]).session(),
    driver("bnxt_create_flow", &["bnxt_re_create_flow"]).long().session(),
    driver("bnxt_destroy_flow", &["bnxt_re_destroy_flow"]).session(),
    driver("bnxt_query_qp", &["bnxt_re_query_qp"]).session(),
    driver("bnxt_query_port", &["bnxt_re_query_port"]).session(),
    driver("bnxt_query_device", &["bnxt_re_query_device"]).session(),
    driver("bnxt_mmap", &["bnxt_re_mmap"]).session(),
    driver("bnxt_reg_mr_inner", &["__bnxt_re_user_reg_mr"]).long().session(),
    driver("bnxt_qplib_reg_mr", &["bnxt_qplib_reg_mr"]).session(),
    driver("bnxt_qplib_create_qp", &["bnxt_qplib_create_qp"]).session(),
    driver("bnxt_qplib_modify_qp", &["bnxt_qplib_modify_qp"]).session(),
    driver("bnxt_qplib_create_cq", &["bnxt_qplib_create_cq"]).session(),
    driver("bnxt_qplib_create_srq", &["bnxt_qplib_create_srq"]).session(),
    driver("bnxt_qplib_create_ah", &["bnxt_qplib_create_ah"]).session(),
    driver("bnxt_qplib_destroy_qp", &["bnxt_qplib_destroy_qp"]).session(),
    driver("bnxt_qplib_destroy_cq", &["bnxt_qplib_destroy_cq"]).session(),
    driver("bnxt_method_alloc_page", &["bnxt_re_handler_BNXT_RE_METHOD_ALLOC_PAGE"]).session(),
    driver("bnxt_method_notify", &["bnxt_re_handler_BNXT_RE_METHOD_NOTIFY_DRV"]).session(),
    firmware("bnxt_command", &["bnxt_qplib_rcfw_send_message"]),
];

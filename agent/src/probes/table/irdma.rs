//! `irdma`, and its commands to the firmware.

use super::super::{Hook, Layer};
use super::row;

const fn driver(name: &'static str, functions: &'static [&'static str]) -> Hook {
    row(Layer::Driver, &["irdma"], name, functions)
}

const fn firmware(name: &'static str, functions: &'static [&'static str]) -> Hook {
    row(Layer::Firmware, &["irdma"], name, functions)
}

pub(super) const ROWS: &[Hook] = &[
    driver("irdma_reg_user_mr", &["irdma_reg_user_mr"]).long(),
    driver("irdma_reg_user_mr_dmabuf", &["irdma_reg_user_mr_dmabuf"]).long(),
    driver("irdma_rereg_user_mr", &["irdma_rereg_user_mr"]).long(),
    driver("irdma_create_cq", &["irdma_create_cq"]),
    driver("irdma_resize_cq", &["irdma_resize_cq"]),
    driver("irdma_create_qp", &["irdma_create_qp"]),
    driver("irdma_modify_qp", &["irdma_modify_qp"]),
    driver("irdma_create_srq", &["irdma_create_srq"]),
    driver("irdma_modify_srq", &["irdma_modify_srq"]),
    driver("irdma_create_ah", &["irdma_create_user_ah", "irdma_create_ah"]),
    driver("irdma_modify_qp_roce", &["irdma_modify_qp_roce"]),
    driver("irdma_alloc_ucontext", &["irdma_alloc_ucontext"]).session(),
    driver("irdma_alloc_pd", &["irdma_alloc_pd"]).session(),
    driver("irdma_dealloc_pd", &["irdma_dealloc_pd"]).session(),
    driver("irdma_alloc_mw", &["irdma_alloc_mw"]).session(),
    driver("irdma_dealloc_mw", &["irdma_dealloc_mw"]).session(),
    driver("irdma_dereg_mr", &["irdma_dereg_mr"]).session(),
    driver("irdma_destroy_cq", &["irdma_destroy_cq"]).session(),
    driver("irdma_destroy_qp", &["irdma_destroy_qp"]).session(),
    driver("irdma_destroy_srq", &["irdma_destroy_srq"]).session(),
    driver("irdma_destroy_ah", &["irdma_destroy_ah"]).session(),
    driver("irdma_query_qp", &["irdma_query_qp"]).session(),
    driver("irdma_query_port", &["irdma_query_port"]).session(),
    driver("irdma_query_device", &["irdma_query_device"]).session(),
    driver("irdma_mmap", &["irdma_mmap"]).session(),
    driver("irdma_attach_mcast", &["irdma_attach_mcast"]).session(),
    driver("irdma_detach_mcast", &["irdma_detach_mcast"]).session(),
    driver("irdma_setup_ah", &["irdma_setup_ah"]).session(),
    driver("irdma_reg_user_mr_mem", &["irdma_reg_user_mr_type_mem"]).session(),
    driver("irdma_hwreg_mr", &["irdma_hwreg_mr"]).session(),
    firmware("irdma_command", &["irdma_handle_cqp_op"]),
];

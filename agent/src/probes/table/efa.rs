//! `efa`, and its commands to the device. From the driver's source.

use super::super::{Hook, Layer};
use super::row;

const fn driver(name: &'static str, functions: &'static [&'static str]) -> Hook {
    row(Layer::Driver, &["efa"], name, functions)
}

const fn firmware(name: &'static str, functions: &'static [&'static str]) -> Hook {
    row(Layer::Firmware, &["efa"], name, functions)
}

pub(super) const ROWS: &[Hook] = &[
    driver("efa_reg_user_mr", &["efa_reg_mr"]).long().unverified(),
    driver("efa_reg_user_mr_dmabuf", &["efa_reg_user_mr_dmabuf"]).long().unverified(),
    driver("efa_create_cq", &["efa_create_user_cq", "efa_create_cq"]).unverified(),
    driver("efa_create_qp", &["efa_create_qp"]).unverified(),
    driver("efa_modify_qp", &["efa_modify_qp"]).unverified(),
    driver("efa_create_ah", &["efa_create_ah"]).unverified(),
    driver("efa_alloc_ucontext", &["efa_alloc_ucontext"]).session().unverified(),
    driver("efa_alloc_pd", &["efa_alloc_pd"]).session().unverified(),
    driver("efa_dealloc_pd", &["efa_dealloc_pd"]).session().unverified(),
    driver("efa_dereg_mr", &["efa_dereg_mr"]).session().unverified(),
    driver("efa_destroy_cq", &["efa_destroy_cq"]).session().unverified(),
    driver("efa_destroy_qp", &["efa_destroy_qp"]).session().unverified(),
    driver("efa_query_qp", &["efa_query_qp"]).session().unverified(),
    driver("efa_query_port", &["efa_query_port"]).session().unverified(),
    driver("efa_mmap", &["efa_mmap"]).session().unverified(),
    firmware("efa_command", &["efa_com_cmd_exec"]).unverified(),
];

//! `mana_ib`, and the requests of `mana` to the device.

use super::super::{Hook, Layer};
use super::row;

const fn driver(name: &'static str, functions: &'static [&'static str]) -> Hook {
    row(Layer::Driver, &["mana_ib"], name, functions)
}

const fn firmware(name: &'static str, functions: &'static [&'static str]) -> Hook {
    row(Layer::Firmware, &["mana"], name, functions)
}

pub(super) const ROWS: &[Hook] = &[
    driver("mana_reg_user_mr", &["mana_ib_reg_user_mr"]).long(),
    driver("mana_reg_user_mr_dmabuf", &["mana_ib_reg_user_mr_dmabuf"]).long(),
    driver("mana_create_cq", &["mana_ib_create_cq"]),
    driver("mana_create_qp", &["mana_ib_create_qp"]),
    driver("mana_modify_qp", &["mana_ib_modify_qp"]),
    driver("mana_create_ah", &["mana_ib_create_ah"]),
    driver("mana_alloc_ucontext", &["mana_ib_alloc_ucontext"]).session(),
    driver("mana_alloc_pd", &["mana_ib_alloc_pd"]).session(),
    driver("mana_dealloc_pd", &["mana_ib_dealloc_pd"]).session(),
    driver("mana_alloc_mw", &["mana_ib_alloc_mw"]).session(),
    driver("mana_dealloc_mw", &["mana_ib_dealloc_mw"]).session(),
    driver("mana_dereg_mr", &["mana_ib_dereg_mr"]).session(),
    driver("mana_destroy_cq", &["mana_ib_destroy_cq"]).session(),
    driver("mana_destroy_qp", &["mana_ib_destroy_qp"]).session(),
    driver("mana_destroy_ah", &["mana_ib_destroy_ah"]).session(),
    driver("mana_create_wq", &["mana_ib_create_wq"]).long().session(),
    driver("mana_modify_wq", &["mana_ib_modify_wq"]).session(),
    driver("mana_destroy_wq", &["mana_ib_destroy_wq"]).session(),
    driver("mana_create_rwq_ind_table", &["mana_ib_create_rwq_ind_table"]).session(),
    driver("mana_destroy_rwq_ind_table", &["mana_ib_destroy_rwq_ind_table"]).session(),
    driver("mana_alloc_dm", &["mana_ib_alloc_dm"]).long().session(),
    driver("mana_dealloc_dm", &["mana_ib_dealloc_dm"]).session(),
    driver("mana_reg_dm_mr", &["mana_ib_reg_dm_mr"]).long().session(),
    driver("mana_query_port", &["mana_ib_query_port"]).session(),
    driver("mana_query_device", &["mana_ib_query_device"]).session(),
    driver("mana_mmap", &["mana_ib_mmap"]).session(),
    driver("mana_create_qp_rss", &["mana_ib_create_qp_rss"]).session(),
    driver("mana_create_qp_raw", &["mana_ib_create_qp_raw"]).session(),
    driver("mana_gd_create_rc_qp", &["mana_ib_gd_create_rc_qp"]).session(),
    driver("mana_gd_modify_qp", &["mana_ib_gd_modify_qp"]).session(),
    driver("mana_gd_create_cq", &["mana_ib_gd_create_cq"]).session(),
    driver("mana_gd_create_mr", &["mana_ib_gd_create_mr"]).session(),
    driver("mana_create_dma_region", &["mana_ib_create_dma_region"]).session(),
    driver("mana_gd_create_dma_region", &["mana_ib_gd_create_dma_region"]).session(),
    firmware("mana_command", &["mana_gd_send_request"]),
];

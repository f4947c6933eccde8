//! `mlx4_ib`, and the commands of `mlx4_core` to the firmware.

use super::super::{Hook, Layer};
use super::row;

const fn driver(name: &'static str, functions: &'static [&'static str]) -> Hook {
    row(Layer::Driver, &["mlx4_ib"], name, functions)
}

const fn firmware(name: &'static str, functions: &'static [&'static str]) -> Hook {
    row(Layer::Firmware, &["mlx4_core"], name, functions)
}

pub(super) const ROWS: &[Hook] = &[
    driver("mlx4_reg_user_mr", &["mlx4_ib_reg_user_mr"]).long(),
    driver("mlx4_rereg_user_mr", &["mlx4_ib_rereg_user_mr"]).long(),
    driver("mlx4_create_cq", &["mlx4_ib_create_user_cq", "mlx4_ib_create_cq"]),
    driver("mlx4_resize_cq", &["mlx4_ib_resize_cq"]),
    driver("mlx4_create_qp", &["mlx4_ib_create_qp"]),
    driver("mlx4_modify_qp", &["mlx4_ib_modify_qp"]),
    driver("mlx4_create_srq", &["mlx4_ib_create_srq"]),
    driver("mlx4_modify_srq", &["mlx4_ib_modify_srq"]),
    driver("mlx4_create_ah", &["mlx4_ib_create_ah"]),
    driver("mlx4_alloc_ucontext", &["mlx4_ib_alloc_ucontext"]).session(),
    driver("mlx4_alloc_pd", &["mlx4_ib_alloc_pd"]).session(),
    driver("mlx4_dealloc_pd", &["mlx4_ib_dealloc_pd"]).session(),
    driver("mlx4_alloc_mw", &["mlx4_ib_alloc_mw"]).session(),
    driver("mlx4_dealloc_mw", &["mlx4_ib_dealloc_mw"]).session(),
    driver("mlx4_dereg_mr", &["mlx4_ib_dereg_mr"]).session(),
    driver("mlx4_destroy_cq", &["mlx4_ib_destroy_cq"]).session(),
    driver("mlx4_destroy_qp", &["mlx4_ib_destroy_qp"]).session(),
    driver("mlx4_destroy_srq", &["mlx4_ib_destroy_srq"]).session(),
    driver("mlx4_alloc_xrcd", &["mlx4_ib_alloc_xrcd"]).session(),
    driver("mlx4_dealloc_xrcd", &["mlx4_ib_dealloc_xrcd"]).session(),
    driver("mlx4_create_wq", &["mlx4_ib_create_wq"]).long().session(),
    driver("mlx4_modify_wq", &["mlx4_ib_modify_wq"]).session(),
    driver("mlx4_destroy_wq", &["mlx4_ib_destroy_wq"]).session(),
    driver("mlx4_create_rwq_ind_table", &["mlx4_ib_create_rwq_ind_table"]).session(),
    driver("mlx4_create_flow", &["mlx4_ib_create_flow"]).long().session(),
    driver("mlx4_destroy_flow", &["mlx4_ib_destroy_flow"]).session(),
    driver("mlx4_query_qp", &["mlx4_ib_query_qp"]).session(),
    driver("mlx4_query_port", &["mlx4_ib_query_port"]).session(),
    driver("mlx4_query_device", &["mlx4_ib_query_device"]).session(),
    driver("mlx4_mmap", &["mlx4_ib_mmap"]).session(),
    driver("mlx4_mcg_attach", &["mlx4_ib_mcg_attach"]).session(),
    driver("mlx4_mcg_detach", &["mlx4_ib_mcg_detach"]).session(),
    driver("mlx4_modify_qp_inner", &["__mlx4_ib_modify_qp"]).session(),
    driver("mlx4_create_qp_common", &["create_qp_common"]).session(),
    driver("mlx4_pin_mr", &["mlx4_get_umem_mr"]).long().session(),
    driver("mlx4_db_map_user", &["mlx4_ib_db_map_user"]).session(),
    driver("mlx4_write_mtt", &["mlx4_ib_umem_write_mtt"]).session(),
    firmware("mlx4_command", &["__mlx4_cmd"]),
];

//! `mlx5_ib`, and the commands of `mlx5_core` to the firmware.

use super::super::{Hook, Layer, Program};
use super::row;

const fn driver(name: &'static str, functions: &'static [&'static str]) -> Hook {
    row(Layer::Driver, &["mlx5_ib"], name, functions)
}

const fn firmware(name: &'static str, functions: &'static [&'static str]) -> Hook {
    row(Layer::Firmware, &["mlx5_core"], name, functions)
}

pub(super) const ROWS: &[Hook] = &[
    driver("mlx5_reg_user_mr", &["mlx5_ib_reg_user_mr"]).long(),
    driver("mlx5_reg_user_mr_dmabuf", &["mlx5_ib_reg_user_mr_dmabuf"]).long(),
    driver("mlx5_rereg_user_mr", &["mlx5_ib_rereg_user_mr"]).long(),
    driver("mlx5_create_cq", &["mlx5_ib_create_user_cq", "mlx5_ib_create_cq"]),
    driver("mlx5_resize_cq", &["mlx5_ib_resize_cq"]),
    driver("mlx5_create_qp", &["mlx5_ib_create_qp"]),
    driver("mlx5_modify_qp", &["mlx5_ib_modify_qp"]),
    driver("mlx5_create_srq", &["mlx5_ib_create_srq"]),
    driver("mlx5_modify_srq", &["mlx5_ib_modify_srq"]),
    driver("mlx5_create_ah", &["mlx5_ib_create_ah"]),
    driver("mlx5_alloc_ucontext", &["mlx5_ib_alloc_ucontext"]).session(),
    driver("mlx5_alloc_pd", &["mlx5_ib_alloc_pd"]).session(),
    driver("mlx5_dealloc_pd", &["mlx5_ib_dealloc_pd"]).session(),
    driver("mlx5_alloc_mw", &["mlx5_ib_alloc_mw"]).session(),
    driver("mlx5_dealloc_mw", &["mlx5_ib_dealloc_mw"]).session(),
    driver("mlx5_dereg_mr", &["mlx5_ib_dereg_mr"]).session(),
    driver("mlx5_destroy_cq", &["mlx5_ib_destroy_cq"]).session(),
    driver("mlx5_destroy_qp", &["mlx5_ib_destroy_qp"]).session(),
    driver("mlx5_destroy_srq", &["mlx5_ib_destroy_srq"]).session(),
    driver("mlx5_alloc_xrcd", &["mlx5_ib_alloc_xrcd"]).session(),
    driver("mlx5_dealloc_xrcd", &["mlx5_ib_dealloc_xrcd"]).session(),
    driver("mlx5_create_wq", &["mlx5_ib_create_wq"]).long().session(),
    driver("mlx5_modify_wq", &["mlx5_ib_modify_wq"]).session(),
    driver("mlx5_destroy_wq", &["mlx5_ib_destroy_wq"]).session(),
    driver("mlx5_create_rwq_ind_table", &["mlx5_ib_create_rwq_ind_table"]).session(),
    driver("mlx5_destroy_rwq_ind_table", &["mlx5_ib_destroy_rwq_ind_table"]).session(),
    driver("mlx5_create_flow", &["mlx5_ib_create_flow"]).long().session(),
    driver("mlx5_destroy_flow", &["mlx5_ib_destroy_flow"]).session(),
    driver("mlx5_create_counters", &["mlx5_ib_create_counters"]).session(),
    driver("mlx5_destroy_counters", &["mlx5_ib_destroy_counters"]).session(),
    driver("mlx5_alloc_dm", &["mlx5_ib_alloc_dm"]).long().session(),
    driver("mlx5_dealloc_dm", &["mlx5_ib_dealloc_dm"]).session(),
    driver("mlx5_reg_dm_mr", &["mlx5_ib_reg_dm_mr"]).long().session(),
    driver("mlx5_advise_mr", &["mlx5_ib_advise_mr"]).session(),
    driver("mlx5_query_qp", &["mlx5_ib_query_qp"]).session(),
    driver("mlx5_query_port", &["mlx5_ib_query_port"]).session(),
    driver("mlx5_query_device", &["mlx5_ib_query_device"]).session(),
    driver("mlx5_mmap", &["mlx5_ib_mmap"]).session(),
    driver("mlx5_mcg_attach", &["mlx5_ib_mcg_attach"]).session(),
    driver("mlx5_mcg_detach", &["mlx5_ib_mcg_detach"]).session(),
    driver("mlx5_method_devx_obj_create", &["mlx5_ib_handler_MLX5_IB_METHOD_DEVX_OBJ_CREATE"]).session(),
    driver("mlx5_method_devx_obj_query", &["mlx5_ib_handler_MLX5_IB_METHOD_DEVX_OBJ_QUERY"]).session(),
    driver("mlx5_method_devx_obj_modify", &["mlx5_ib_handler_MLX5_IB_METHOD_DEVX_OBJ_MODIFY"]).session(),
    driver("mlx5_method_devx_other", &["mlx5_ib_handler_MLX5_IB_METHOD_DEVX_OTHER"]).session(),
    driver("mlx5_method_devx_umem_reg", &["mlx5_ib_handler_MLX5_IB_METHOD_DEVX_UMEM_REG"]).session(),
    driver("mlx5_method_devx_query_eqn", &["mlx5_ib_handler_MLX5_IB_METHOD_DEVX_QUERY_EQN"]).session(),
    driver("mlx5_method_devx_query_uar", &["mlx5_ib_handler_MLX5_IB_METHOD_DEVX_QUERY_UAR"]).session(),
    driver("mlx5_method_devx_async_cmd_fd_alloc", &["mlx5_ib_handler_MLX5_IB_METHOD_DEVX_ASYNC_CMD_FD_ALLOC"])
        .session(),
    driver("mlx5_method_devx_async_event_fd_alloc", &["mlx5_ib_handler_MLX5_IB_METHOD_DEVX_ASYNC_EVENT_FD_ALLOC"])
        .session(),
    driver("mlx5_method_devx_subscribe_event", &["mlx5_ib_handler_MLX5_IB_METHOD_DEVX_SUBSCRIBE_EVENT"]).session(),
    driver("mlx5_method_create_flow", &["mlx5_ib_handler_MLX5_IB_METHOD_CREATE_FLOW"]).session(),
    driver("mlx5_method_flow_matcher_create", &["mlx5_ib_handler_MLX5_IB_METHOD_FLOW_MATCHER_CREATE"]).session(),
    driver("mlx5_method_uar_obj_alloc", &["mlx5_ib_handler_MLX5_IB_METHOD_UAR_OBJ_ALLOC"]).session(),
    driver("mlx5_method_var_obj_alloc", &["mlx5_ib_handler_MLX5_IB_METHOD_VAR_OBJ_ALLOC"]).session(),
    driver("mlx5_method_pp_obj_alloc", &["mlx5_ib_handler_MLX5_IB_METHOD_PP_OBJ_ALLOC"]).session(),
    driver("mlx5_method_dm_map_op_addr", &["mlx5_ib_handler_MLX5_IB_METHOD_DM_MAP_OP_ADDR"]).session(),
    driver("mlx5_method_steering_anchor_create", &["mlx5_ib_handler_MLX5_IB_METHOD_STEERING_ANCHOR_CREATE"]).session(),
    driver("mlx5_create_user_qp", &["create_user_qp"]).session(),
    driver("mlx5_create_user_qp_inner", &["_create_user_qp"]).session(),
    driver("mlx5_create_real_mr", &["create_real_mr"]).long().session(),
    driver("mlx5_alloc_cacheable_mr", &["alloc_cacheable_mr"]).long().session(),
    driver("mlx5_reg_create", &["reg_create"]).long().session(),
    driver("mlx5_qpc_create_qp", &["mlx5_qpc_create_qp"]).session(),
    driver("mlx5_modify_qp_inner", &["__mlx5_ib_modify_qp"]).session(),
    driver("mlx5_cache_alloc", &["mlx5_mr_cache_alloc"]).long().session(),
    driver("mlx5_pin_user_queue", &["mlx5_ib_db_map_user"]).session(),
    driver("mlx5_devx_cleanup", &["devx_obj_cleanup"]).session(),
    driver("mlx5_devx_umem_cleanup", &["devx_umem_cleanup"]).session(),
    firmware("mlx5_command", &["mlx5/mlx5_cmd"]).runs(Program::Mlx5Command),
    firmware("mlx5_cmd_exec", &["mlx5_cmd_exec"]).unless("mlx5_command"),
    firmware("mlx5_cmd_do", &["mlx5_cmd_do"]).unless("mlx5_command"),
];

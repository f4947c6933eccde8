//! Objects and methods in the drivers' namespaces, by driver; drivers absent here add none (up to 7.3).

use super::{
    Row,
    VerbClass::{Other, Query},
    create, destroy, modify, register,
};

/// include/uapi/rdma/mlx5_user_ioctl_cmds.h
pub(super) const MLX5: &[Row] = &[
    // Methods that mlx5 adds to common objects: DEVICE, PD, FLOW, FLOW_ACTION, DM
    Row(0, 0x1000, "mlx5.query_port", Query),
    Row(0, 0x1001, "mlx5.get_data_direct_sysfs_path", Query),
    Row(1, 0x1000, "mlx5.query_pd", Query),
    Row(9, 0x1000, "mlx5.create_flow", create()),
    Row(9, 0x1001, "mlx5.destroy_flow", destroy()),
    Row(13, 0x1000, "mlx5.flow_action_create_modify_header", create()),
    Row(13, 0x1001, "mlx5.flow_action_create_packet_reformat", create()),
    Row(14, 0x1000, "mlx5.dm_map_op_addr", Other),
    Row(14, 0x1001, "mlx5.query_dm", Query),
    // MLX5_IB_OBJECT_DEVX
    Row(0x1000, 0x1000, "mlx5.devx_other", Other),
    Row(0x1000, 0x1001, "mlx5.devx_query_uar", Query),
    Row(0x1000, 0x1002, "mlx5.devx_query_eqn", Query),
    Row(0x1000, 0x1003, "mlx5.devx_subscribe_event", Other),
    // MLX5_IB_OBJECT_DEVX_OBJ
    Row(0x1001, 0x1000, "mlx5.devx_obj_create", create()),
    Row(0x1001, 0x1001, "mlx5.devx_obj_destroy", destroy()),
    Row(0x1001, 0x1002, "mlx5.devx_obj_modify", modify()),
    Row(0x1001, 0x1003, "mlx5.devx_obj_query", Query),
    Row(0x1001, 0x1004, "mlx5.devx_obj_async_query", Query),
    // MLX5_IB_OBJECT_DEVX_UMEM
    Row(0x1002, 0x1000, "mlx5.devx_umem_reg", register()),
    Row(0x1002, 0x1001, "mlx5.devx_umem_dereg", destroy()),
    // MLX5_IB_OBJECT_FLOW_MATCHER
    Row(0x1003, 0x1000, "mlx5.flow_matcher_create", create()),
    Row(0x1003, 0x1001, "mlx5.flow_matcher_destroy", destroy()),
    // MLX5_IB_OBJECT_DEVX_ASYNC_CMD_FD, MLX5_IB_OBJECT_DEVX_ASYNC_EVENT_FD
    Row(0x1004, 0x1000, "mlx5.devx_async_cmd_fd_alloc", create()),
    Row(0x1005, 0x1000, "mlx5.devx_async_event_fd_alloc", create()),
    // MLX5_IB_OBJECT_VAR
    Row(0x1006, 0x1000, "mlx5.var_alloc", create()),
    Row(0x1006, 0x1001, "mlx5.var_destroy", destroy()),
    // MLX5_IB_OBJECT_PP
    Row(0x1007, 0x1000, "mlx5.pp_alloc", create()),
    Row(0x1007, 0x1001, "mlx5.pp_destroy", destroy()),
    // MLX5_IB_OBJECT_UAR
    Row(0x1008, 0x1000, "mlx5.uar_alloc", create()),
    Row(0x1008, 0x1001, "mlx5.uar_destroy", destroy()),
    // MLX5_IB_OBJECT_STEERING_ANCHOR
    Row(0x1009, 0x1000, "mlx5.steering_anchor_create", create()),
    Row(0x1009, 0x1001, "mlx5.steering_anchor_destroy", destroy()),
];

/// include/uapi/rdma/bnxt_re-abi.h
pub(super) const BNXT_RE: &[Row] = &[
    Row(0x1000, 0x1000, "bnxt_re.alloc_page", create()),
    Row(0x1000, 0x1001, "bnxt_re.destroy_page", destroy()),
    Row(0x1001, 0x1000, "bnxt_re.notify_drv", Other),
    Row(0x1002, 0x1000, "bnxt_re.get_toggle_mem", create()),
    Row(0x1002, 0x1001, "bnxt_re.release_toggle_mem", destroy()),
    Row(0x1003, 0x1000, "bnxt_re.dbr_alloc", create()),
    Row(0x1003, 0x1001, "bnxt_re.dbr_free", destroy()),
    Row(0x1004, 0x1002, "bnxt_re.get_default_dbr", Query),
];

/// include/uapi/rdma/efa-abi.h
pub(super) const EFA: &[Row] = &[Row(7, 0x1000, "efa.query_mr", Query)];

/// `enum rdma_driver_id` (include/uapi/rdma/ib_user_ioctl_verbs.h), for ids that have no row.
pub(super) const DRIVERS: &[(u16, &str)] = &[
    (1, "mlx5"),
    (2, "mlx4"),
    (3, "cxgb3"),
    (4, "cxgb4"),
    (5, "mthca"),
    (6, "bnxt_re"),
    (7, "ocrdma"),
    (8, "nes"),
    (9, "irdma"),
    (10, "vmw_pvrdma"),
    (11, "qedr"),
    (12, "hns"),
    (13, "usnic"),
    (14, "rxe"),
    (15, "hfi1"),
    (16, "qib"),
    (17, "efa"),
    (18, "siw"),
    (19, "erdma"),
    (20, "mana"),
    (21, "ionic"),
];

//! Ioctl methods of the common objects (include/uapi/rdma/ib_user_ioctl_cmds.h, up to 7.3).

use super::{
    Row,
    VerbClass::{Other, Query},
    create, destroy, modify, register,
};

pub(super) const ROWS: &[Row] = &[
    // UVERBS_OBJECT_DEVICE
    Row(0, 0, "invoke_write", Other),
    Row(0, 1, "info_handles", Query),
    Row(0, 2, "query_port", Query),
    Row(0, 3, "open_device", create()),
    Row(0, 4, "query_context", Query),
    Row(0, 5, "query_gid_table", Query),
    Row(0, 6, "query_gid_ex", Query),
    Row(0, 7, "query_port_speed", Query),
    Row(0, 8, "query_comp_cntr_caps", Query),
    // UVERBS_OBJECT_PD
    Row(1, 0, "dealloc_pd", destroy()),
    // UVERBS_OBJECT_CQ (2, COMP_CHANNEL, has no methods)
    Row(3, 0, "create_cq", create()),
    Row(3, 1, "destroy_cq", destroy()),
    // UVERBS_OBJECT_QP
    Row(4, 0, "create_qp", create()),
    Row(4, 1, "destroy_qp", destroy()),
    Row(4, 2, "qp_attach_comp_cntr", modify()),
    // UVERBS_OBJECT_SRQ
    Row(5, 0, "create_srq", create()),
    Row(5, 1, "destroy_srq", destroy()),
    // UVERBS_OBJECT_AH
    Row(6, 0, "destroy_ah", destroy()),
    // UVERBS_OBJECT_MR
    Row(7, 0, "reg_dm_mr", register()),
    Row(7, 1, "dereg_mr", destroy()),
    Row(7, 2, "advise_mr", Other),
    Row(7, 3, "query_mr", Query),
    Row(7, 4, "reg_dmabuf_mr", register()),
    Row(7, 5, "reg_mr", register()),
    // UVERBS_OBJECT_MW
    Row(8, 0, "dealloc_mw", destroy()),
    // UVERBS_OBJECT_FLOW
    Row(9, 0, "destroy_flow", destroy()),
    // UVERBS_OBJECT_XRCD
    Row(10, 0, "close_xrcd", destroy()),
    // UVERBS_OBJECT_RWQ_IND_TBL
    Row(11, 0, "destroy_rwq_ind_table", destroy()),
    // UVERBS_OBJECT_WQ
    Row(12, 0, "create_wq", create()),
    Row(12, 1, "destroy_wq", destroy()),
    // UVERBS_OBJECT_FLOW_ACTION
    Row(13, 0, "create_flow_action_esp", create()),
    Row(13, 1, "destroy_flow_action", destroy()),
    Row(13, 2, "modify_flow_action_esp", modify()),
    // UVERBS_OBJECT_DM
    Row(14, 0, "alloc_dm", create()),
    Row(14, 1, "free_dm", destroy()),
    // UVERBS_OBJECT_COUNTERS
    Row(15, 0, "create_counters", create()),
    Row(15, 1, "destroy_counters", destroy()),
    Row(15, 2, "read_counters", Query),
    // UVERBS_OBJECT_ASYNC_EVENT
    Row(16, 0, "alloc_async_event", create()),
    // UVERBS_OBJECT_DMAH
    Row(17, 0, "alloc_dmah", create()),
    Row(17, 1, "dealloc_dmah", destroy()),
    // UVERBS_OBJECT_DMABUF
    Row(18, 0, "alloc_dmabuf", create()),
    // UVERBS_OBJECT_COMP_CNTR
    Row(19, 0, "create_comp_cntr", create()),
    Row(19, 1, "destroy_comp_cntr", destroy()),
    Row(19, 2, "modify_comp_cntr", modify()),
    Row(19, 3, "read_comp_cntr", Query),
];

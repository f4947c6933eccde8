//! Where the default set and what discovery ends in are not the same, and why.

/// Rows of the default set that no heuristic finds, with the reason.
pub(crate) const BY_HAND: &[(&str, &str)] = &[
    ("rxe_check_cq", "its type shows nothing: the requested size comes as a plain integer"),
    ("uverbs_reg_mr", "libraries register by the older command even where the kernel has the method"),
    ("irdma_modify_qp_roce", "irdma changes QPs by a function for each protocol; this is the one for RoCE"),
    ("device_event", "no call: what the device reports by itself"),
    ("gid_event", "no call: changes of GIDs, which the core reports past the function of device_event"),
    ("qp_event", "no call: what the device reports by itself"),
    ("cq_event", "no call: what the device reports by itself"),
    ("cm_event", "a tracepoint: the connection manager's outcome"),
    ("mlx5_command", "a tracepoint: the driver's one way to its firmware, with status and syndrome"),
    ("mlx5_cmd_exec", "stands in for the tracepoint"),
    ("mlx5_cmd_do", "stands in for the tracepoint"),
    ("mlx4_command", "the driver's one way to its firmware"),
    ("bnxt_command", "the driver's one way to its firmware"),
    ("irdma_command", "the driver's one way to its firmware"),
    ("mana_command", "the driver's one way to its device"),
    ("efa_command", "the driver's one way to its device"),
    ("hns_command", "the driver's one way to its firmware"),
    ("devlink_health", "a tracepoint: what a driver reports as broken"),
    ("devlink_hwerr", "a tracepoint: what the hardware refused"),
    ("tx_timeout", "a tracepoint: a transmit queue that stands still"),
    ("napi_poll", "a tracepoint: what the host does not keep up with"),
    ("packet_drop", "a tracepoint: what the kernel throws away"),
    ("mlx5_health", "no call: the driver's own report of an error"),
    ("mlx5_health_work", "no call: the driver's own report of an error"),
    ("mlx5_fw_error", "no call: the driver's own report of an error"),
    ("mlx5_fw_fatal", "no call: the driver's own report of an error"),
    ("mlx5_cq_error", "no call: the driver's own report of an error"),
    ("mlx5_tx_timeout", "no call: the driver's own report of an error"),
    ("mlx5_tx_error", "no call: the driver's own report of an error"),
    ("mlx5_rx_error", "no call: the driver's own report of an error"),
    ("irdma_cqp_error", "no call: the driver's own report of an error"),
    ("bnxt_async_event", "no call: the driver's own report of an error"),
    ("mana_async_event", "no call: the driver's own report of an error"),
];

/// Functions that discovery ends in and that are in no row of the default set, with the reason.
pub(crate) const LEFT_OUT: &[(&str, &str)] = &[("ucma_open", "fails only for lack of memory")];

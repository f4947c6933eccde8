//! What drivers and the kernel say about a NIC that is not well, and what the host could not keep up with.

use super::super::path::{self, DevicePath};
use super::super::{Hook, Layer, Program, Subject};
use super::row;

const fn event(name: &'static str, functions: &'static [&'static str], program: Program) -> Hook {
    row(Layer::Core, &[], name, functions).runs(program).about(Subject::Health)
}

const fn driver(
    module: &'static [&'static str],
    name: &'static str,
    functions: &'static [&'static str],
    path: &'static DevicePath,
) -> Hook {
    row(Layer::Driver, module, name, functions).runs(Program::DriverHealth(path)).about(Subject::Health)
}

const fn mlx5(name: &'static str, functions: &'static [&'static str], path: &'static DevicePath) -> Hook {
    driver(&["mlx5_core"], name, functions, path)
}

pub(super) const ROWS: &[Hook] = &[
    event("devlink_health", &["devlink/devlink_health_report"], Program::HealthReport),
    event("devlink_hwerr", &["devlink/devlink_hwerr"], Program::HealthHwerr),
    event("tx_timeout", &["net/net_dev_xmit_timeout"], Program::HealthTimeout),
    event("napi_poll", &["napi/napi_poll"], Program::NapiPoll).about(Subject::Napi),
    event("packet_drop", &["skb/kfree_skb"], Program::PacketDrop).about(Subject::Drops),
    // Runs only when the firmware's counter stands still or its health buffer says something; poll_health itself is a
    // timer that runs all the time (drivers/net/ethernet/mellanox/mlx5/core/health.c).
    mlx5("mlx5_health", &["print_health_info"], &path::MLX5_CORE),
    mlx5("mlx5_health_work", &["mlx5_trigger_health_work"], &path::MLX5_CORE),
    mlx5("mlx5_fw_error", &["mlx5_fw_reporter_err_work"], &path::MLX5_REPORT_WORK),
    mlx5("mlx5_fw_fatal", &["mlx5_fw_fatal_reporter_err_work"], &path::MLX5_FATAL_WORK),
    mlx5("mlx5_cq_error", &["cq_err_event_notifier"], &path::MLX5_CQ_NOTIFIER),
    mlx5("mlx5_tx_timeout", &["mlx5e_reporter_tx_timeout"], &path::MLX5_SEND_QUEUE),
    mlx5("mlx5_tx_error", &["mlx5e_reporter_tx_err_cqe"], &path::MLX5_SEND_QUEUE),
    mlx5("mlx5_rx_error", &["mlx5e_reporter_rq_cqe_err"], &path::MLX5_RECEIVE_QUEUE),
    driver(&["irdma"], "irdma_cqp_error", &["irdma_cqp_crit_err"], &path::IRDMA_CONTROL),
    driver(&["bnxt_re"], "bnxt_async_event", &["bnxt_re_aeq_handler"], &path::BNXT_CONTROL),
    driver(&["mana_ib"], "mana_async_event", &["mana_ib_event_handler"], &path::MANA_DEVICE),
];

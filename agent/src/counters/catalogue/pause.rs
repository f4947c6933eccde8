//! Priority flow control and link-level pause, by direction.
//!
//! Units of durations, as the drivers' own sources say: mlx5 microseconds (counters.rst), mlx4 microseconds
//! (`mlx4_en_stat_out_flow_control_mbox`), bnxt microseconds (in the name), ice and i40e have none, hns3 has
//! `xoff_time` without a word on its unit: it stays raw.
//!
//! The kernel's standard statistics have pause of the whole link alone, no priorities.
//!
//! mlx4 names its durations by whose they are: `tx_pause_duration` is the time that *its own* transmission was paused,
//! which is what received pause does; `rx_pause_duration` is what the far end asked for.

use super::driver::Driver::{Bnxt, Hns, Intel, Mlx4, Mlx5};
use super::name::{ethtool, standard};
use super::row::Direction::{Rx, Tx};
use super::row::Group::Pause;
use super::row::Row;
use super::row::Unit::{Events, Frames, Raw, Seconds};

/// What pause from outside says.
pub(crate) const RX: &str = "rx pause: the network cannot take what this host sends.";
/// What pause from this host says.
pub(crate) const TX: &str = "tx pause: this host cannot take what the network sends.";

const RX_NEXT: &str = "Look at the switch behind this port and at other hosts of the rack: if none of them sends tx \
    pause, the congestion is past the rack switch.";
const TX_NEXT: &str = "Look at this host: buffer discards, PCIe stalls, out-of-buffer counters, NUMA placement and \
    power state; a host that does not drain its adapter stops the network behind it.";

/// The rows.
pub(super) const ROWS: &[Row] = &[
    Row::new("pfc_received_pause_frames", Pause, Frames, Rx, "Pause frames received for a priority.")
        .metric()
        .trouble(RX, RX_NEXT)
        .names(&[
            ethtool(Mlx5, "rx_prio{p}_pause"),
            ethtool(Mlx4, "rx_pause_prio_{p}"),
            ethtool(Bnxt, "rx_pfc_ena_frames_pri{p}"),
            ethtool(Intel, "rx_priority_{p}_xoff.nic"),
            ethtool(Intel, "port.rx_priority_{p}_xoff"),
            ethtool(Hns, "mac_rx_pfc_pri{p}_pkt_num"),
        ]),
    Row::new("pfc_sent_pause_frames", Pause, Frames, Tx, "Pause frames sent for a priority.")
        .metric()
        .trouble(TX, TX_NEXT)
        .names(&[
            ethtool(Mlx5, "tx_prio{p}_pause"),
            ethtool(Mlx4, "tx_pause_prio_{p}"),
            ethtool(Bnxt, "tx_pfc_ena_frames_pri{p}"),
            ethtool(Intel, "tx_priority_{p}_xoff.nic"),
            ethtool(Intel, "port.tx_priority_{p}_xoff"),
            ethtool(Hns, "mac_tx_pfc_pri{p}_pkt_num"),
        ]),
    Row::new(
        "pfc_received_pause_seconds",
        Pause,
        Seconds,
        Rx,
        "For how long this port was not allowed to send on a priority.",
    )
    .metric()
    .trouble(RX, RX_NEXT)
    .names(&[
        ethtool(Mlx5, "rx_prio{p}_pause_duration").micros(),
        ethtool(Mlx4, "tx_pause_duration_prio_{p}").micros(),
        ethtool(Bnxt, "pfc_pri{p}_rx_duration_us").micros(),
    ]),
    Row::new("pfc_sent_pause_seconds", Pause, Seconds, Tx, "For how long this host paused its peer on a priority.")
        .metric()
        .trouble(TX, TX_NEXT)
        .names(&[
            ethtool(Mlx5, "tx_prio{p}_pause_duration").micros(),
            ethtool(Bnxt, "pfc_pri{p}_tx_duration_us").micros(),
        ]),
    Row::new("pfc_received_pause_raw", Pause, Raw, Rx, "Pause time received on a priority, in the driver's own unit.")
        .trouble(RX, RX_NEXT)
        .names(&[ethtool(Hns, "mac_rx_pfc_pri{p}_xoff_time").unknown()]),
    Row::new(
        "pfc_requested_pause_seconds",
        Pause,
        Seconds,
        Rx,
        "For how long the peer asked this port not to send on a priority.",
    )
    .trouble(RX, RX_NEXT)
    .names(&[ethtool(Mlx4, "rx_pause_duration_prio_{p}").micros()]),
    Row::new("nic_requested_pause_seconds", Pause, Seconds, Rx, "For how long the peer asked this port not to send.")
        .trouble(RX, RX_NEXT)
        .names(&[ethtool(Mlx4, "rx_pause_duration").micros()]),
    Row::new("pfc_sent_pause_raw", Pause, Raw, Tx, "Pause time sent on a priority, in the driver's own unit.")
        .trouble(TX, TX_NEXT)
        .names(&[ethtool(Hns, "mac_tx_pfc_pri{p}_xoff_time").unknown()]),
    Row::new("pfc_received_transition_events", Pause, Events, Rx, "Times a paused priority was allowed to send again.")
        .trouble(RX, RX_NEXT)
        .names(&[
            ethtool(Mlx5, "rx_prio{p}_pause_transition"),
            ethtool(Mlx4, "tx_pause_transition_prio_{p}"),
            ethtool(Mlx4, "rx_pause_transition_prio_{p}").second(),
            ethtool(Bnxt, "pfc_pri{p}_rx_transitions"),
            ethtool(Intel, "port.rx_priority_{p}_xon_2_xoff"),
        ]),
    Row::new("pfc_sent_transition_events", Pause, Events, Tx, "Times this host let a paused priority go on.")
        .trouble(TX, TX_NEXT)
        .names(&[ethtool(Bnxt, "pfc_pri{p}_tx_transitions")]),
    Row::new("pfc_received_resume_frames", Pause, Frames, Rx, "Frames received that end a priority's pause.")
        .names(&[ethtool(Intel, "rx_priority_{p}_xon.nic"), ethtool(Intel, "port.rx_priority_{p}_xon")]),
    Row::new("pfc_sent_resume_frames", Pause, Frames, Tx, "Frames sent that end a priority's pause.")
        .names(&[ethtool(Intel, "tx_priority_{p}_xon.nic"), ethtool(Intel, "port.tx_priority_{p}_xon")]),
    Row::new("nic_received_pause_frames", Pause, Frames, Rx, "Link-level pause frames received, for all priorities.")
        .metric()
        .trouble(RX, RX_NEXT)
        .names(&[
            standard("rx_pause_frames"),
            ethtool(Mlx5, "rx_global_pause"),
            ethtool(Mlx5, "rx_pause_ctrl_phy").second(),
            ethtool(Mlx4, "rx_pause"),
            ethtool(Bnxt, "rx_pause_frames"),
            ethtool(Intel, "link_xoff_rx.nic"),
            ethtool(Intel, "port.link_xoff_rx"),
            ethtool(Hns, "mac_rx_mac_pause_num"),
        ]),
    Row::new("nic_sent_pause_frames", Pause, Frames, Tx, "Link-level pause frames sent, for all priorities.")
        .metric()
        .trouble(TX, TX_NEXT)
        .names(&[
            standard("tx_pause_frames"),
            ethtool(Mlx5, "tx_global_pause"),
            ethtool(Mlx5, "tx_pause_ctrl_phy").second(),
            ethtool(Mlx4, "tx_pause"),
            ethtool(Bnxt, "tx_pause_frames"),
            ethtool(Intel, "link_xoff_tx.nic"),
            ethtool(Intel, "port.link_xoff_tx"),
            ethtool(Hns, "mac_tx_mac_pause_num"),
        ]),
    Row::new(
        "nic_received_pause_seconds",
        Pause,
        Seconds,
        Rx,
        "For how long this port was not allowed to send at all.",
    )
    .metric()
    .trouble(RX, RX_NEXT)
    .names(&[ethtool(Mlx5, "rx_global_pause_duration").micros(), ethtool(Mlx4, "tx_pause_duration").micros()]),
    Row::new("nic_sent_pause_seconds", Pause, Seconds, Tx, "For how long this host paused its peer altogether.")
        .metric()
        .trouble(TX, TX_NEXT)
        .names(&[ethtool(Mlx5, "tx_global_pause_duration").micros()]),
    Row::new("nic_received_pause_raw", Pause, Raw, Rx, "Link-level pause time received, in the driver's own unit.")
        .trouble(RX, RX_NEXT)
        .names(&[ethtool(Hns, "mac_rx_pause_xoff_time").unknown()]),
    Row::new("nic_sent_pause_raw", Pause, Raw, Tx, "Link-level pause time sent, in the driver's own unit.")
        .trouble(TX, TX_NEXT)
        .names(&[ethtool(Hns, "mac_tx_pause_xoff_time").unknown()]),
    Row::new("nic_received_transition_events", Pause, Events, Rx, "Times a paused link was allowed to send again.")
        .trouble(RX, RX_NEXT)
        .names(&[
            ethtool(Mlx5, "rx_global_pause_transition"),
            ethtool(Mlx4, "tx_pause_transition"),
            ethtool(Mlx4, "rx_pause_transition").second(),
        ]),
    Row::new(
        "nic_pause_storm_warning_events",
        Pause,
        Events,
        Tx,
        "Times the adapter sent pause for so long that its watchdog warned.",
    )
    .metric()
    .trouble("The host took nothing from the adapter for 85 % of the watchdog's time.", TX_NEXT)
    .names(&[ethtool(Mlx5, "tx_pause_storm_warning_events")]),
    Row::new(
        "nic_pause_storm_error_events",
        Pause,
        Events,
        Tx,
        "Times the adapter stopped sending pause because it had lasted too long; packets may have been lost then.",
    )
    .metric()
    .trouble("The host took nothing from the adapter for the watchdog's whole time, as a dead host does.", TX_NEXT)
    .names(&[standard("tx_pause_storm_events"), ethtool(Mlx5, "tx_pause_storm_error_events")]),
    Row::new(
        "nic_continuous_pause_events",
        Pause,
        Events,
        Rx,
        "Times the adapter saw pause without an end, by its own measure.",
    )
    .trouble(RX, RX_NEXT)
    .names(&[ethtool(Bnxt, "continuous_pause_events"), ethtool(Bnxt, "continuous_roce_pause_events")]),
    Row::new("nic_resumed_pause_events", Pause, Events, Rx, "Times such a pause ended.")
        .names(&[ethtool(Bnxt, "resume_pause_events"), ethtool(Bnxt, "resume_roce_pause_events")]),
];

//! ECN marks, congestion notification packets (CNP), and what senders did about them.

use super::driver::Driver::{Bnxt, Hns, Intel, Mana, Mlx5};
use super::name::{ethtool, hw};
use super::row::Direction::{None, Rx, Tx};
use super::row::Group::Congestion;
use super::row::Row;
use super::row::Unit::{Events, Packets};

const CNP_NEXT: &str = "Hold it against pause and retransmits: firmware has been seen to miscount CNPs, so they are \
    never the only evidence.";
const MARKED: &str = "A switch on the way to this host had a queue over its ECN threshold.";
const SLOW_NEXT: &str = "Look at out-of-sequence packets and timeouts of the same port.";

/// The rows.
pub(super) const ROWS: &[Row] = &[
    Row::new("rdma_ecn_marked_packets", Congestion, Packets, Rx, "RoCE packets received that a switch had marked.")
        .metric()
        .trouble(MARKED, "See which priority is paused and which hosts send to this one at the same time.")
        .names(&[
            hw(Mlx5, "np_ecn_marked_roce_packets").full(),
            hw(Mlx5, "cc_rx_ce_pkts").full().second(),
            hw(Bnxt, "rx_ecn_marked_pkts"),
            hw(Intel, "RxECNMrkd"),
            hw(Mana, "received_ecns"),
        ]),
    Row::new("rdma_cnp_sent_packets", Congestion, Packets, Tx, "CNPs sent: this host told senders to slow down.")
        .metric()
        .trouble(MARKED, CNP_NEXT)
        .names(&[
            hw(Mlx5, "np_cnp_sent").full(),
            hw(Mlx5, "cc_tx_cnp_pkts").full().second(),
            hw(Bnxt, "tx_cnp_pkts"),
            hw(Intel, "cnpSent"),
            hw(Hns, "tx_cnp_pkt"),
            hw(Mana, "sent_cnps"),
        ]),
    Row::new("rdma_cnp_handled_packets", Congestion, Packets, Rx, "CNPs received and obeyed: this host slowed down.")
        .metric()
        .trouble("A switch on the way from this host had a queue over its ECN threshold.", CNP_NEXT)
        .names(&[
            hw(Mlx5, "rp_cnp_handled").full(),
            hw(Mlx5, "cc_rx_cnp_pkts").full().second(),
            hw(Bnxt, "rx_cnp_pkts"),
            hw(Intel, "cnpHandled"),
            hw(Hns, "rx_cnp_pkt"),
            hw(Mana, "received_cnps"),
            hw(Mana, "received_cnp_count").second(),
        ]),
    Row::new("rdma_cnp_ignored_packets", Congestion, Packets, Rx, "CNPs received that nothing was done about.")
        .trouble(
            "Congestion control is off for the priority, or the CNP names no connection that is known.",
            "Compare the priority and DSCP settings of this host with those of its peers.",
        )
        .names(&[hw(Mlx5, "rp_cnp_ignored").full(), hw(Intel, "cnpIgnored")]),
    Row::new(
        "rdma_slow_restart_events",
        Congestion,
        Events,
        Tx,
        "Times a connection started again slowly after a loss.",
    )
    .trouble("Packets were lost: the adapter's RoCE acceleration restarts slowly.", SLOW_NEXT)
    .names(&[hw(Mlx5, "roce_slow_restart")]),
    Row::new(
        "rdma_slow_restart_cnp_packets",
        Congestion,
        Packets,
        Tx,
        "CNPs the adapter made itself in a slow restart.",
    )
    .trouble("Packets were lost.", SLOW_NEXT)
    .names(&[hw(Mlx5, "roce_slow_restart_cnps")]),
    Row::new(
        "rdma_slow_restart_transition_events",
        Congestion,
        Events,
        Tx,
        "Times a connection went into slow restart.",
    )
    .trouble("Packets were lost.", SLOW_NEXT)
    .names(&[hw(Mlx5, "roce_slow_restart_trans")]),
    Row::new("rdma_congested_events", Congestion, Events, Tx, "Times a connection was taken for congested.")
        .trouble("CNPs came for a connection of this host.", CNP_NEXT)
        .names(&[hw(Mana, "num_qps_congested"), hw(Mana, "qp_congested_events").second()]),
    Row::new("rdma_uncongested_events", Congestion, Events, Tx, "Times a congested connection had recovered.")
        .names(&[hw(Mana, "num_qps_recovered"), hw(Mana, "qp_recovered_events").second()]),
    Row::new(
        "rdma_rate_increase_events",
        Congestion,
        Events,
        Tx,
        "Times a slowed connection was let send faster again.",
    )
    .names(&[hw(Mana, "rate_inc_events")]),
    Row::new(
        "rdma_pacing_events",
        Congestion,
        Events,
        Tx,
        "Times the driver held back doorbells because their queue was full.",
    )
    .trouble("Programs post work faster than the adapter takes it.", "Look at the number of queue pairs and at PCIe.")
    .names(&[hw(Bnxt, "pacing_alerts")]),
    Row::new("rdma_pacing_rescheduled_events", Congestion, Events, Tx, "Times such holding back had to be prolonged.")
        .names(&[hw(Bnxt, "pacing_reschedule")]),
    Row::new("rdma_pacing_completed_events", Congestion, Events, Tx, "Times such holding back ended.")
        .names(&[hw(Bnxt, "pacing_complete")]),
    Row::new("rdma_ecn_doorbell_events", Congestion, Events, None, "Doorbells of the adapter's ECN engine.")
        .names(&[hw(Hns, "ecn_doorbell")]),
    Row::new(
        "nic_ecn_marked_packets",
        Congestion,
        Packets,
        Rx,
        "Packets of the kernel's device that a switch had marked.",
    )
    .trouble(MARKED, "See which hosts send to this one at the same time.")
    .names(&[ethtool(Mlx5, "rx_ecn_mark")]),
    Row::new(
        "nic_priority_marked_packets",
        Congestion,
        Packets,
        Rx,
        "Packets this adapter marked itself because the host was slow.",
    )
    .trouble(
        "The host drains a priority's buffer too slowly, so the adapter marks ECN in the switch's place.",
        "Look at PCIe stalls and buffer discards.",
    )
    .names(&[ethtool(Mlx5, "rx_prio{p}_marked")]),
];

//! What the host and its adapter could not take or send: buffers, PCIe, queues.

use super::driver::Driver::{Amazon, Bnxt, Erdma, Hfi1, Intel, Mana, Mlx4, Mlx5, Rxe};
use super::name::{ethtool, hw, netdev, pma};
use super::row::Direction::{None, Rx, Tx};
use super::row::Group::Host;
use super::row::Row;
use super::row::Unit::{Events, Packets, Percent, Raw, Seconds};

const HOST_NEXT: &str = "Look at PCIe stalls, at tx pause, at NUMA placement of the program and its memory.";
const QUEUE_NEXT: &str = "Look at the receiving program and at its CPU: ring sizes, interrupts, NAPI.";
const PCIE: &str = "PCIe or the host's memory does not keep up with the network.";
const PCIE_NEXT: &str = "Look at the slot's width and speed, at IOMMU, relaxed ordering, NUMA and power state.";
const LIMIT: &str = "The instance is over its allowance.";

/// The rows.
pub(super) const ROWS: &[Row] = &[
    Row::new(
        "rdma_out_of_buffer_packets",
        Host,
        Packets,
        Rx,
        "RDMA packets dropped because a queue had no receive posted.",
    )
    .metric()
    .trouble("A program of this host posts receives too late or too few.", QUEUE_NEXT)
    .names(&[hw(Mlx5, "out_of_buffer"), hw(Bnxt, "rx_out_of_buffer"), hw(Mlx4, "rq_num_udsdprd")]),
    Row::new("rdma_receive_discarded_packets", Host, Packets, Rx, "Packets the RDMA port received and threw away.")
        .metric()
        .trouble("No buffer, a limit, or packets that belong to nobody.", HOST_NEXT)
        .names(&[
            hw(Bnxt, "rx_roce_discards"),
            hw(Intel, "ip4InDiscards"),
            hw(Intel, "ip6InDiscards"),
            hw(Amazon, "rx_drops"),
            hw(Erdma, "rx_disable_drop_cnt"),
            hw(Erdma, "rx_bps_limit_drop_cnt"),
            hw(Erdma, "rx_pps_limit_drop_cnt"),
        ]),
    Row::new("rdma_send_discarded_packets", Host, Packets, Tx, "Packets the RDMA port was to send and threw away.")
        .metric()
        .trouble(
            "The link was down or congested for too long, or there is no route.",
            "Look at link events and at rx pause.",
        )
        .names(&[
            pma("port_xmit_discards", 16),
            hw(Bnxt, "tx_roce_discards"),
            hw(Intel, "ip4OutNoRoutes"),
            hw(Intel, "ip6OutNoRoutes"),
            hw(Erdma, "tx_disable_drop_cnt"),
            hw(Erdma, "tx_bps_limit_drop_cnt"),
            hw(Erdma, "tx_pps_limit_drop_cnt"),
            hw(Hfi1, "XmitDscd"),
        ]),
    Row::new(
        "rdma_send_wait_raw",
        Host,
        Raw,
        Tx,
        "Ticks in which the port had data and no credit to send; a tick is the device's own.",
    )
    .metric()
    .trouble(
        "The network cannot take what this host sends (InfiniBand has no credit left).",
        "Look at the switch behind this port.",
    )
    .names(&[pma("port_xmit_wait", 32).unknown()]),
    Row::new("rdma_vl15_dropped_packets", Host, Packets, Rx, "Management packets dropped for lack of buffers.")
        .trouble("The subnet manager asks faster than the port answers.", "Harmless in small numbers.")
        .names(&[pma("VL15_dropped", 16)]),
    Row::new("rdma_cq_overflow_events", Host, Events, None, "Completion queues that ran over.")
        .trouble("A program does not poll its completion queue.", QUEUE_NEXT)
        .names(&[hw(Mlx4, "num_cqovf")]),
    Row::new(
        "nic_receive_discarded_packets",
        Host,
        Packets,
        Rx,
        "Packets from the wire the adapter had no buffer for.",
    )
    .metric()
    .trouble("This host cannot take what the network sends, and pause did not stop it.", HOST_NEXT)
    .names(&[
        ethtool(Mlx5, "rx_discards_phy"),
        ethtool(Bnxt, "rx_stat_discard"),
        ethtool(Intel, "rx_dropped.nic"),
        ethtool(Intel, "port.rx_discards"),
    ]),
    Row::new(
        "nic_send_discarded_packets",
        Host,
        Packets,
        Tx,
        "Packets for the wire the adapter threw away, as with the link down.",
    )
    .metric()
    .trouble("The link was down, or the packet waited for too long.", "Look at link events and at rx pause.")
    .names(&[
        ethtool(Mlx5, "tx_discards_phy"),
        ethtool(Bnxt, "tx_stat_discard"),
        ethtool(Intel, "tx_dropped_link_down.nic"),
        ethtool(Intel, "port.tx_dropped_link_down"),
    ]),
    Row::new(
        "nic_out_of_buffer_packets",
        Host,
        Packets,
        Rx,
        "Packets for the kernel dropped because a ring had no buffer.",
    )
    .metric()
    .trouble("The kernel does not refill its receive rings in time.", QUEUE_NEXT)
    .names(&[ethtool(Mlx5, "rx_out_of_buffer"), ethtool(Mana, "hc_rx_discards_no_wqe")]),
    Row::new("nic_device_out_of_buffer_events", Host, Events, Rx, "Times a queue that the device owns had no buffer.")
        .trouble(PCIE, HOST_NEXT)
        .names(&[ethtool(Mlx5, "dev_out_of_buffer"), ethtool(Mlx5, "dev_internal_queue_oob")]),
    Row::new("nic_buffer_threshold_events", Host, Events, Rx, "Times the receive buffer was more than 85 % full.")
        .metric()
        .trouble("The host drains its adapter too slowly.", HOST_NEXT)
        .names(&[ethtool(Mlx5, "rx_buffer_passed_thres_phy"), ethtool(Bnxt, "rx_buffer_passed_threshold")]),
    Row::new(
        "nic_priority_buffer_discarded_packets",
        Host,
        Packets,
        Rx,
        "Packets of a priority dropped for lack of the host's buffers.",
    )
    .trouble("This host cannot take what the network sends.", HOST_NEXT)
    .names(&[ethtool(Mlx5, "rx_prio{p}_buf_discard")]),
    Row::new(
        "nic_priority_congestion_discarded_packets",
        Host,
        Packets,
        Rx,
        "Packets of a priority dropped because the host was congested.",
    )
    .trouble("This host cannot take what the network sends.", HOST_NEXT)
    .names(&[ethtool(Mlx5, "rx_prio{p}_cong_discard")]),
    Row::new(
        "nic_priority_discarded_packets",
        Host,
        Packets,
        Rx,
        "Packets of a priority dropped for lack of receive buffers.",
    )
    .trouble("This host cannot take what the network sends.", HOST_NEXT)
    .names(&[ethtool(Mlx5, "rx_prio{p}_discards")]),
    Row::new(
        "nic_pcie_overflow_packets",
        Host,
        Packets,
        Rx,
        "Packets dropped because the way to the host over PCIe was full.",
    )
    .metric()
    .trouble(PCIE, PCIE_NEXT)
    .names(&[ethtool(Mlx5, "outbound_pci_buffer_overflow")]),
    Row::new(
        "nic_pcie_stalled_read_seconds",
        Host,
        Seconds,
        None,
        "Seconds in which the adapter waited for PCIe reads more than 30 % of the time.",
    )
    .metric()
    .trouble(PCIE, PCIE_NEXT)
    .names(&[ethtool(Mlx5, "outbound_pci_stalled_rd_events")]),
    Row::new(
        "nic_pcie_stalled_write_seconds",
        Host,
        Seconds,
        None,
        "Seconds in which the adapter waited for PCIe writes more than 30 % of the time.",
    )
    .metric()
    .trouble(PCIE, PCIE_NEXT)
    .names(&[ethtool(Mlx5, "outbound_pci_stalled_wr_events")]),
    Row::new(
        "nic_pcie_stalled_read_percent",
        Host,
        Percent,
        None,
        "Share of the last second in which the adapter waited for PCIe reads.",
    )
    .trouble(PCIE, PCIE_NEXT)
    .names(&[ethtool(Mlx5, "outbound_pci_stalled_rd").gauge()]),
    Row::new(
        "nic_pcie_stalled_write_percent",
        Host,
        Percent,
        None,
        "Share of the last second in which the adapter waited for PCIe writes.",
    )
    .trouble(PCIE, PCIE_NEXT)
    .names(&[ethtool(Mlx5, "outbound_pci_stalled_wr").gauge()]),
    Row::new("nic_pcie_signal_events", Host, Events, None, "Errors of PCIe's physical layer.")
        .trouble("A bad slot, riser or card.", "Move the card to another slot.")
        .names(&[ethtool(Mlx5, "rx_pci_signal_integrity"), ethtool(Mlx5, "tx_pci_signal_integrity")]),
    Row::new(
        "nic_oversized_discarded_packets",
        Host,
        Packets,
        Rx,
        "Packets dropped because they are larger than the host's buffers.",
    )
    .trouble("The peers' MTU is larger than this host's.", "Compare the MTU of both ends and of the switch.")
    .names(&[
        ethtool(Mlx5, "rx_oversize_pkts_buffer"),
        ethtool(Mlx5, "rx_oversize_pkts_sw_drop"),
        ethtool(Bnxt, "rx_mtu_err_frames"),
    ]),
    Row::new("nic_unmatched_packets", Host, Packets, Rx, "Packets that matched no steering rule and were dropped.")
        .names(&[ethtool(Mlx5, "rx_steer_missed_packets"), ethtool(Bnxt, "rx_filter_miss")]),
    Row::new("nic_interface_down_packets", Host, Packets, Rx, "Packets dropped because the interface was down.")
        .names(&[ethtool(Mlx5, "rx_if_down_packets")]),
    Row::new("nic_queue_stopped_events", Host, Events, Tx, "Times a send queue was full and stopped.")
        .trouble("The kernel sends faster than the adapter.", QUEUE_NEXT)
        .names(&[ethtool(Mlx5, "tx_queue_stopped"), ethtool(Mlx4, "queue_stopped"), ethtool(Mana, "stop_queue")]),
    Row::new("nic_queue_woken_events", Host, Events, Tx, "Times a stopped send queue went on.").names(&[
        ethtool(Mlx5, "tx_queue_wake"),
        ethtool(Mlx4, "wake_queue"),
        ethtool(Mana, "wake_queue"),
    ]),
    Row::new("nic_queue_dropped_packets", Host, Packets, Tx, "Packets a send queue dropped.")
        .trouble("A send queue was in trouble.", QUEUE_NEXT)
        .names(&[ethtool(Mlx5, "tx_queue_dropped")]),
    Row::new(
        "nic_send_timeout_events",
        Host,
        Events,
        Tx,
        "Times a send queue made no progress until the watchdog came.",
    )
    .metric()
    .trouble("The adapter or its firmware hangs, or it is paused for ever.", "Read the kernel's log of the device.")
    .names(&[
        ethtool(Mlx4, "tx_timeout"),
        ethtool(Intel, "tx_timeout.nic"),
        ethtool(Intel, "port.tx_timeout"),
        ethtool(Amazon, "tx_timeout"),
    ]),
    Row::new("nic_completion_error_events", Host, Events, None, "Completions with an error on the kernel's queues.")
        .trouble("The adapter refused what the driver gave it.", "Read the kernel's log of the device.")
        .names(&[
            ethtool(Mlx5, "tx_cqe_err"),
            ethtool(Mlx5, "rx_wqe_err"),
            ethtool(Mana, "tx_cq_err"),
            ethtool(Mana, "tx_cqe_unknown_type"),
            ethtool(Mana, "rx_cqe_unknown_type"),
        ]),
    Row::new(
        "nic_buffer_allocation_failure_events",
        Host,
        Events,
        Rx,
        "Times the driver had no memory for a receive buffer.",
    )
    .trouble("The host's memory is short or fragmented.", "Look at free memory by node.")
    .names(&[ethtool(Mlx5, "rx_buff_alloc_err"), ethtool(Bnxt, "rx_buf_errors")]),
    Row::new(
        "nic_allowance_exceeded_packets",
        Host,
        Packets,
        None,
        "Packets queued or dropped because the instance was over an allowance.",
    )
    .metric()
    .trouble(LIMIT, "Use a larger instance, or spread the traffic.")
    .names(&[
        ethtool(Amazon, "bw_in_allowance_exceeded"),
        ethtool(Amazon, "bw_out_allowance_exceeded"),
        ethtool(Amazon, "pps_allowance_exceeded"),
        ethtool(Amazon, "conntrack_allowance_exceeded"),
        ethtool(Amazon, "linklocal_allowance_exceeded"),
    ]),
    Row::new("nic_receive_dropped_packets", Host, Packets, Rx, "Packets the kernel's device received and dropped.")
        .metric()
        .trouble("No buffer, or nobody wanted them.", QUEUE_NEXT)
        .names(&[netdev("rx_dropped")]),
    Row::new("nic_send_dropped_packets", Host, Packets, Tx, "Packets the kernel's device was to send and dropped.")
        .metric()
        .trouble("The queue was full or the link down.", QUEUE_NEXT)
        .names(&[netdev("tx_dropped")]),
    Row::new("rdma_send_error_events", Host, Events, Tx, "Packets the RDMA device could not hand on.")
        .trouble("The network device below it refused a packet.", "Look at the network device's drops.")
        .names(&[hw(Rxe, "send_err"), hw(Bnxt, "tx_roce_errors")]),
];

//! The cable, the optics and the link: errors, and how often it went down.

use super::driver::Driver::{Bnxt, Hfi1, Hns, Intel, Mlx4, Mlx5, Rxe};
use super::name::{CARRIER_DOWNS, CARRIER_UPS, ethtool, hw, netdev, pma, rtnetlink, standard};
use super::row::Direction::{None, Rx, Tx};
use super::row::Group::Link;
use super::row::Row;
use super::row::Unit::{Bits, Events, Packets};

const CABLE: &str = "The cable, its transceiver or the port at either end is bad or dirty.";
const CABLE_NEXT: &str = "Clean or replace the cable; if the errors stay with the port, it is the port.";
const DOWN: &str = "The link was lost: cable, switch port, reset of the adapter, or an administrator.";
const DOWN_NEXT: &str =
    "Look at the switch's port and at the kernel's log of that moment; jobs on this host saw errors.";

/// The rows.
pub(super) const ROWS: &[Row] = &[
    Row::new("rdma_link_down_events", Link, Events, None, "Times the RDMA port's link went down.")
        .metric()
        .trouble(DOWN, DOWN_NEXT)
        .names(&[pma("link_downed", 8), hw(Rxe, "link_downed"), hw(Hfi1, "SwLinkDown")]),
    Row::new("rdma_link_up_events", Link, Events, None, "Times the RDMA port's link came up.")
        .names(&[hw(Hfi1, "SwLinkUp")]),
    Row::new("rdma_link_recovery_events", Link, Events, None, "Times the port recovered the link by itself.")
        .trouble(CABLE, CABLE_NEXT)
        .names(&[pma("link_error_recovery", 8)]),
    Row::new("rdma_symbol_error_events", Link, Events, Rx, "Symbol errors of the RDMA port.")
        .metric()
        .trouble(CABLE, CABLE_NEXT)
        .names(&[pma("symbol_error", 16)]),
    Row::new(
        "rdma_local_integrity_events",
        Link,
        Events,
        Rx,
        "Times local physical errors were over the port's threshold.",
    )
    .trouble(CABLE, CABLE_NEXT)
    .names(&[pma("local_link_integrity_errors", 4)]),
    Row::new(
        "rdma_buffer_overrun_events",
        Link,
        Events,
        Rx,
        "Times the port's buffers ran over for several flow control periods.",
    )
    .trouble("Flow control failed: a bad link or a faulty adapter.", CABLE_NEXT)
    .names(&[pma("excessive_buffer_overrun_errors", 4)]),
    Row::new("rdma_receive_error_packets", Link, Packets, Rx, "Packets received with an error.")
        .metric()
        .trouble(CABLE, CABLE_NEXT)
        .names(&[
            pma("port_rcv_errors", 16),
            hw(Bnxt, "rx_roce_errors"),
            hw(Hns, "rx_err_pkt"),
            hw(Intel, "ip4InTruncatedPkts"),
            hw(Intel, "ip6InTruncatedPkts"),
            hw(Intel, "tcpInOptErrors"),
            hw(Intel, "InOptErrors"),
            hw(Intel, "tcpInProtoErrors"),
            hw(Intel, "InProtoErrors"),
            hw(Intel, "rxVlanErrors"),
            hw(Intel, "CRC errors"),
            hw(Hfi1, "UnknownFrame"),
        ]),
    Row::new("rdma_icrc_error_packets", Link, Packets, Rx, "RoCE packets received with a wrong checksum.")
        .trouble(
            "Packets are damaged inside of a switch or adapter: no cable does that.",
            "Find the switch on the way.",
        )
        .names(&[hw(Mlx5, "rx_icrc_encapsulated").full()]),
    Row::new(
        "rdma_remote_physical_error_packets",
        Link,
        Packets,
        Rx,
        "Packets received that an earlier link had damaged.",
    )
    .trouble("A link elsewhere on the way is bad.", "Look at the symbol errors of the switches' ports.")
    .names(&[pma("port_rcv_remote_physical_errors", 16)]),
    Row::new("rdma_switch_relay_error_packets", Link, Packets, Rx, "Packets a switch could not pass on.")
        .trouble("Routing is wrong.", "Look at the subnet manager.")
        .names(&[pma("port_rcv_switch_relay_errors", 16)]),
    Row::new(
        "rdma_receive_constraint_packets",
        Link,
        Packets,
        Rx,
        "Packets a filter of the port refused on the way in.",
    )
    .trouble("Partition keys differ.", "Compare the partition keys of both ends.")
    .names(&[pma("port_rcv_constraint_errors", 8), hw(Hfi1, "RcvCstrErr")]),
    Row::new("rdma_send_constraint_packets", Link, Packets, Tx, "Packets a filter of the port refused on the way out.")
        .trouble("Partition keys differ.", "Compare the partition keys of both ends.")
        .names(&[pma("port_xmit_constraint_errors", 8), hw(Hfi1, "XmitCstrErr")]),
    Row::new("nic_link_down_events", Link, Events, None, "Times the port's link went down, as the adapter counts.")
        .metric()
        .trouble(DOWN, DOWN_NEXT)
        .names(&[
            standard("link_down_events").narrow(),
            ethtool(Mlx5, "link_down_events_phy"),
            ethtool(Bnxt, "link_down_events"),
        ]),
    Row::new(
        "nic_carrier_down_events",
        Link,
        Events,
        None,
        "Times the network device lost its link, as the kernel counts.",
    )
    .metric()
    .trouble(DOWN, DOWN_NEXT)
    .names(&[rtnetlink(CARRIER_DOWNS)]),
    Row::new("nic_carrier_up_events", Link, Events, None, "Times the network device got a link, as the kernel counts.")
        .metric()
        .names(&[rtnetlink(CARRIER_UPS)]),
    Row::new("nic_carrier_change_events", Link, Events, None, "Times the network device's carrier came or went.")
        .metric()
        .trouble(DOWN, DOWN_NEXT)
        .names(&[netdev("carrier_changes")]),
    Row::new("nic_crc_error_packets", Link, Packets, Rx, "Packets received with a wrong checksum.")
        .metric()
        .trouble(CABLE, CABLE_NEXT)
        .names(&[
            standard("eth-mac-FrameCheckSequenceErrors"),
            ethtool(Mlx5, "rx_crc_errors_phy"),
            ethtool(Mlx4, "rx_crc_errors"),
            ethtool(Bnxt, "rx_fcs_err_frames"),
            ethtool(Intel, "rx_crc_errors.nic"),
            ethtool(Intel, "port.rx_crc_errors"),
            ethtool(Hns, "mac_rx_fcs_err_pkt_num"),
        ]),
    Row::new("nic_symbol_error_packets", Link, Packets, Rx, "Packets dropped because of symbol errors.")
        .metric()
        .trouble(CABLE, CABLE_NEXT)
        .names(&[standard("eth-phy-SymbolErrorDuringCarrier"), ethtool(Mlx5, "rx_symbol_err_phy")]),
    Row::new(
        "nic_fec_uncorrected_events",
        Link,
        Events,
        Rx,
        "Symbols or blocks that forward error correction could not mend.",
    )
    .metric()
    .trouble(CABLE, CABLE_NEXT)
    .names(&[
        standard("uncorrectable_blocks"),
        ethtool(Mlx5, "rx_pcs_symbol_err_phy"),
        ethtool(Bnxt, "rx_fec_uncorrectable_blocks"),
        ethtool(Bnxt, "rx_pcs_symbol_err").second(),
    ]),
    Row::new(
        "nic_fec_correction_events",
        Link,
        Events,
        Rx,
        "Bits that forward error correction mended; some are normal on fast links.",
    )
    .metric()
    .names(&[
        standard("corrected_bits"),
        ethtool(Mlx5, "rx_corrected_bits_phy"),
        ethtool(Bnxt, "rx_corrected_bits"),
    ]),
    Row::new("nic_fec_block_correction_events", Link, Events, Rx, "Blocks that forward error correction mended.")
        .metric()
        .names(&[standard("corrected_blocks"), ethtool(Bnxt, "rx_fec_corrected_blocks")]),
    Row::new(
        "nic_received_bits",
        Link,
        Bits,
        Rx,
        "Bits that could have been received: what error rates are shares of.",
    )
    .names(&[ethtool(Mlx5, "rx_bits_phy"), ethtool(Bnxt, "rx_bits")]),
    Row::new("nic_lane_error_bits", Link, Bits, Rx, "Raw errors of all lanes before any correction.").names(&[
        ethtool(Mlx5, "rx_err_lane_0_phy"),
        ethtool(Mlx5, "rx_err_lane_1_phy"),
        ethtool(Mlx5, "rx_err_lane_2_phy"),
        ethtool(Mlx5, "rx_err_lane_3_phy"),
    ]),
    Row::new("nic_malformed_packets", Link, Packets, Rx, "Packets of a wrong length.")
        .trouble(
            "A peer or a switch sends rubbish, or the MTU differs.",
            "Compare the MTU of both ends and of the switch.",
        )
        .names(&[
            ethtool(Mlx5, "rx_in_range_len_errors_phy"),
            ethtool(Mlx5, "rx_out_of_range_len_phy"),
            ethtool(Mlx5, "rx_oversize_pkts_phy"),
            ethtool(Mlx5, "rx_undersize_pkts_phy"),
            ethtool(Mlx5, "rx_fragments_phy"),
            ethtool(Mlx5, "rx_jabbers_phy"),
            ethtool(Mlx4, "rx_jabbers"),
            ethtool(Mlx4, "rx_in_range_length_error"),
            ethtool(Mlx4, "rx_out_range_length_error"),
            ethtool(Bnxt, "rx_ovrsz_frames"),
            ethtool(Bnxt, "rx_undrsz_frames"),
            ethtool(Bnxt, "rx_jbr_frames"),
            ethtool(Bnxt, "rx_align_err_frames"),
            ethtool(Intel, "rx_oversize.nic"),
            ethtool(Intel, "rx_undersize.nic"),
            ethtool(Intel, "rx_fragments.nic"),
            ethtool(Intel, "rx_jabber.nic"),
            ethtool(Intel, "port.rx_oversize"),
            ethtool(Intel, "port.rx_undersize"),
            ethtool(Intel, "port.rx_fragments"),
            ethtool(Intel, "port.rx_jabber"),
            ethtool(Intel, "port.rx_length_errors"),
            standard("eth-mac-AlignmentErrors").after_the_driver(),
            standard("eth-mac-InRangeLengthErrors").after_the_driver(),
            standard("eth-mac-OutOfRangeLengthField").after_the_driver(),
            standard("rmon-etherStatsUndersizePkts").after_the_driver(),
            standard("rmon-etherStatsOversizePkts").after_the_driver(),
            standard("rmon-etherStatsFragments").after_the_driver(),
            standard("rmon-etherStatsJabbers").after_the_driver(),
        ]),
    Row::new("nic_send_error_packets", Link, Packets, Tx, "Packets that could not be sent for an error.")
        .trouble("The adapter or the driver is in trouble.", "Read the kernel's log of the device.")
        .names(&[
            ethtool(Mlx5, "tx_errors_phy"),
            ethtool(Bnxt, "tx_err"),
            ethtool(Intel, "tx_errors.nic"),
            ethtool(Intel, "port.tx_errors"),
            standard("eth-mac-FramesLostDueToIntMACXmitError").after_the_driver(),
            netdev("tx_errors").second(),
        ]),
    Row::new("nic_receive_error_packets", Link, Packets, Rx, "Packets the kernel's device received with an error.")
        .metric()
        .trouble(CABLE, CABLE_NEXT)
        .names(&[netdev("rx_errors")]),
    Row::new("nic_fault_events", Link, Events, None, "Local and remote faults of the link.")
        .trouble(CABLE, CABLE_NEXT)
        .names(&[
            ethtool(Intel, "mac_local_faults.nic"),
            ethtool(Intel, "mac_remote_faults.nic"),
            ethtool(Intel, "port.mac_local_faults"),
            ethtool(Intel, "port.mac_remote_faults"),
        ]),
    Row::new(
        "nic_module_fault_events",
        Link,
        Events,
        None,
        "Faults of the transceiver: its bus, its heat, a short circuit.",
    )
    .metric()
    .trouble("The transceiver is too hot or broken.", "Check cooling, then replace the transceiver.")
    .names(&[
        ethtool(Mlx5, "module_bus_stuck"),
        ethtool(Mlx5, "module_high_temp"),
        ethtool(Mlx5, "module_bad_shorted"),
    ]),
    Row::new("nic_module_unplug_events", Link, Events, None, "Times the transceiver was taken out.")
        .trouble("Somebody unplugged it.", "Ask who.")
        .names(&[ethtool(Mlx5, "module_unplug")]),
    Row::new("nic_unsupported_packets", Link, Packets, Rx, "Control packets with an unknown operation.")
        .names(&[standard("eth-ctrl-UnsupportedOpcodesReceived"), ethtool(Mlx5, "rx_unsupported_op_phy")]),
];

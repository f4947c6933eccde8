//! Bytes and packets, RDMA's and the network device's.

use super::driver::Driver::{Amazon, Bnxt, Cxgb4, Erdma, Hns, Intel, Mana, Mlx4, Mlx5, Rxe};
use super::name::{ethtool, hw, netdev, pma, pma_extended, standard};
use super::row::Direction::{Rx, Tx};
use super::row::Group::Traffic;
use super::row::Row;
use super::row::Unit::{Bytes, Packets};

/// The rows.
pub(super) const ROWS: &[Row] = &[
    Row::new("rdma_received_bytes", Traffic, Bytes, Rx, "Bytes the RDMA port received.").metric().names(&[
        // Kept by the port in words of 4 octets.
        pma("port_rcv_data", 32).words(),
        hw(Bnxt, "rx_bytes"),
        hw(Intel, "ip4InOctets"),
        hw(Intel, "ip6InOctets"),
        hw(Mana, "rx_bytes"),
        hw(Amazon, "rx_bytes"),
        hw(Erdma, "rx_bytes_cnt"),
        hw(Rxe, "rcvd_bytes"),
    ]),
    Row::new("rdma_sent_bytes", Traffic, Bytes, Tx, "Bytes the RDMA port sent.").metric().names(&[
        pma("port_xmit_data", 32).words(),
        hw(Bnxt, "tx_bytes"),
        hw(Intel, "ip4OutOctets"),
        hw(Intel, "ip6OutOctets"),
        hw(Mana, "tx_bytes"),
        hw(Amazon, "tx_bytes"),
        hw(Erdma, "tx_bytes_cnt"),
        hw(Rxe, "sent_bytes"),
    ]),
    Row::new("rdma_received_packets", Traffic, Packets, Rx, "Packets the RDMA port received.").metric().names(&[
        pma("port_rcv_packets", 32),
        hw(Bnxt, "rx_pkts"),
        hw(Intel, "ip4InPkts"),
        hw(Intel, "ip6InPkts"),
        hw(Mana, "rx_packets"),
        hw(Amazon, "rx_pkts"),
        hw(Hns, "rx_pkt"),
        hw(Erdma, "rx_packets_cnt"),
        hw(Rxe, "rcvd_pkts"),
    ]),
    Row::new("rdma_sent_packets", Traffic, Packets, Tx, "Packets the RDMA port sent.").metric().names(&[
        pma("port_xmit_packets", 32),
        hw(Bnxt, "tx_pkts"),
        hw(Intel, "ip4OutPkts"),
        hw(Intel, "ip6OutPkts"),
        hw(Mana, "tx_packets"),
        hw(Amazon, "tx_pkts"),
        hw(Hns, "tx_pkt"),
        hw(Erdma, "tx_packets_cnt"),
        hw(Rxe, "sent_pkts"),
    ]),
    Row::new("roce_received_bytes", Traffic, Bytes, Rx, "Bytes of RoCE alone that the function received.").names(&[
        hw(Bnxt, "rx_roce_only_bytes"),
        ethtool(Mlx5, "rx_vport_rdma_unicast_bytes"),
        ethtool(Mlx5, "rx_vport_rdma_multicast_bytes"),
    ]),
    Row::new("roce_sent_bytes", Traffic, Bytes, Tx, "Bytes of RoCE alone that the function sent.").names(&[
        hw(Bnxt, "tx_roce_only_bytes"),
        ethtool(Mlx5, "tx_vport_rdma_unicast_bytes"),
        ethtool(Mlx5, "tx_vport_rdma_multicast_bytes"),
    ]),
    Row::new("roce_received_packets", Traffic, Packets, Rx, "Packets of RoCE alone that the function received.").names(
        &[
            hw(Bnxt, "rx_roce_only_pkts"),
            ethtool(Mlx5, "rx_vport_rdma_unicast_packets"),
            ethtool(Mlx5, "rx_vport_rdma_multicast_packets"),
        ],
    ),
    Row::new("roce_sent_packets", Traffic, Packets, Tx, "Packets of RoCE alone that the function sent.").names(&[
        hw(Bnxt, "tx_roce_only_pkts"),
        ethtool(Mlx5, "tx_vport_rdma_unicast_packets"),
        ethtool(Mlx5, "tx_vport_rdma_multicast_packets"),
    ]),
    Row::new("roce_good_received_bytes", Traffic, Bytes, Rx, "Bytes of RoCE that were accepted.")
        .names(&[hw(Bnxt, "rx_roce_good_bytes")]),
    Row::new("roce_good_received_packets", Traffic, Packets, Rx, "Packets of RoCE that were accepted.")
        .names(&[hw(Bnxt, "rx_roce_good_pkts")]),
    Row::new("rdma_received_unicast_packets", Traffic, Packets, Rx, "Unicast packets the RDMA port received.")
        .names(&[pma_extended("unicast_rcv_packets")]),
    Row::new("rdma_sent_unicast_packets", Traffic, Packets, Tx, "Unicast packets the RDMA port sent.")
        .names(&[pma_extended("unicast_xmit_packets")]),
    Row::new("rdma_received_multicast_packets", Traffic, Packets, Rx, "Multicast packets the RDMA port received.")
        .names(&[pma_extended("multicast_rcv_packets"), hw(Intel, "ip4InMcastPkts"), hw(Intel, "ip6InMcastPkts")]),
    Row::new("rdma_sent_multicast_packets", Traffic, Packets, Tx, "Multicast packets the RDMA port sent.").names(&[
        pma_extended("multicast_xmit_packets"),
        hw(Intel, "ip4OutMcastPkts"),
        hw(Intel, "ip6OutMcastPkts"),
    ]),
    Row::new("rdma_received_multicast_bytes", Traffic, Bytes, Rx, "Multicast bytes the RDMA port received.")
        .names(&[hw(Intel, "ip4InMcastOctets"), hw(Intel, "ip6InMcastOctets")]),
    Row::new("rdma_sent_multicast_bytes", Traffic, Bytes, Tx, "Multicast bytes the RDMA port sent.")
        .names(&[hw(Intel, "ip4OutMcastOctets"), hw(Intel, "ip6OutMcastOctets")]),
    Row::new("rdma_received_fragment_packets", Traffic, Packets, Rx, "IP fragments received that had to be joined.")
        .names(&[hw(Intel, "ip4InReasmRqd"), hw(Intel, "ip6InReasmRqd")]),
    Row::new("rdma_sent_fragment_packets", Traffic, Packets, Tx, "IP packets that had to be sent in fragments.")
        .names(&[hw(Intel, "ip4OutSegRqd"), hw(Intel, "ip6OutSegRqd")]),
    Row::new("rdma_received_udp_packets", Traffic, Packets, Rx, "UDP packets the adapter's RDMA half received.")
        .names(&[hw(Intel, "RxUDP")]),
    Row::new("rdma_sent_udp_packets", Traffic, Packets, Tx, "UDP packets the adapter's RDMA half sent.")
        .names(&[hw(Intel, "TxUDP")]),
    Row::new("rdma_received_segment_packets", Traffic, Packets, Rx, "TCP segments of iWARP received.").names(&[
        hw(Intel, "tcpInSegs"),
        hw(Intel, "InSegs"),
        hw(Cxgb4, "ip4InSegs"),
        hw(Cxgb4, "ip6InSegs"),
    ]),
    Row::new("rdma_sent_segment_packets", Traffic, Packets, Tx, "TCP segments of iWARP sent.").names(&[
        hw(Intel, "tcpOutSegs"),
        hw(Intel, "OutSegs"),
        hw(Cxgb4, "ip4OutSegs"),
        hw(Cxgb4, "ip6OutSegs"),
    ]),
    Row::new("nic_wire_received_bytes", Traffic, Bytes, Rx, "Bytes from the wire, the kernel's and RDMA's together.")
        .metric()
        .names(&[
            ethtool(Mlx5, "rx_bytes_phy"),
            ethtool(Mlx4, "rx_bytes_phy"),
            ethtool(Bnxt, "rx_bytes"),
            ethtool(Intel, "rx_bytes.nic"),
            ethtool(Intel, "port.rx_bytes"),
            ethtool(Hns, "mac_rx_total_oct_num"),
        ]),
    Row::new("nic_wire_sent_bytes", Traffic, Bytes, Tx, "Bytes to the wire, the kernel's and RDMA's together.")
        .metric()
        .names(&[
            ethtool(Mlx5, "tx_bytes_phy"),
            ethtool(Mlx4, "tx_bytes_phy"),
            ethtool(Bnxt, "tx_bytes"),
            ethtool(Intel, "tx_bytes.nic"),
            ethtool(Intel, "port.tx_bytes"),
            ethtool(Hns, "mac_tx_total_oct_num"),
        ]),
    Row::new("nic_wire_received_packets", Traffic, Packets, Rx, "Packets from the wire.").names(&[
        ethtool(Mlx5, "rx_packets_phy"),
        ethtool(Mlx4, "rx_packets_phy"),
        ethtool(Bnxt, "rx_total_frames"),
        ethtool(Hns, "mac_rx_total_pkt_num"),
        standard("eth-mac-FramesReceivedOK").after_the_driver(),
    ]),
    Row::new("nic_wire_sent_packets", Traffic, Packets, Tx, "Packets to the wire.").names(&[
        ethtool(Mlx5, "tx_packets_phy"),
        ethtool(Mlx4, "tx_packets_phy"),
        ethtool(Bnxt, "tx_total_frames"),
        ethtool(Hns, "mac_tx_total_pkt_num"),
        standard("eth-mac-FramesTransmittedOK").after_the_driver(),
    ]),
    Row::new("nic_received_bytes", Traffic, Bytes, Rx, "Bytes the kernel's network device received; no hardware RDMA.")
        .metric()
        .names(&[netdev("rx_bytes")]),
    Row::new("nic_sent_bytes", Traffic, Bytes, Tx, "Bytes the kernel's network device sent; no hardware RDMA.")
        .metric()
        .names(&[netdev("tx_bytes")]),
    Row::new("nic_received_packets", Traffic, Packets, Rx, "Packets the kernel's network device received.")
        .names(&[netdev("rx_packets")]),
    Row::new("nic_sent_packets", Traffic, Packets, Tx, "Packets the kernel's network device sent.")
        .names(&[netdev("tx_packets")]),
    Row::new("nic_priority_received_bytes", Traffic, Bytes, Rx, "Bytes from the wire by priority.").names(&[
        ethtool(Mlx5, "rx_prio{p}_bytes"),
        ethtool(Mlx4, "rx_prio_{p}_bytes"),
        ethtool(Bnxt, "rx_bytes_pri{p}"),
    ]),
    Row::new("nic_priority_sent_bytes", Traffic, Bytes, Tx, "Bytes to the wire by priority.").names(&[
        ethtool(Mlx5, "tx_prio{p}_bytes"),
        ethtool(Mlx4, "tx_prio_{p}_bytes"),
        ethtool(Bnxt, "tx_bytes_pri{p}"),
    ]),
    Row::new("nic_priority_received_packets", Traffic, Packets, Rx, "Packets from the wire by priority.").names(&[
        ethtool(Mlx5, "rx_prio{p}_packets"),
        ethtool(Mlx4, "rx_prio_{p}_packets"),
        ethtool(Bnxt, "rx_packets_pri{p}"),
    ]),
    Row::new("nic_priority_sent_packets", Traffic, Packets, Tx, "Packets to the wire by priority.").names(&[
        ethtool(Mlx5, "tx_prio{p}_packets"),
        ethtool(Mlx4, "tx_prio_{p}_packets"),
        ethtool(Bnxt, "tx_packets_pri{p}"),
    ]),
    Row::new("nic_loopback_packets", Traffic, Packets, Rx, "Packets that the adapter turned around inside itself.")
        .names(&[ethtool(Mlx5, "vport_loopback_packets")]),
    Row::new("nic_loopback_bytes", Traffic, Bytes, Rx, "Bytes that the adapter turned around inside itself.")
        .names(&[ethtool(Mlx5, "vport_loopback_bytes")]),
];

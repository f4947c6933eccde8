//! The catalogue against its own rules and against the drivers' sources.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

#[test]
fn rows_follow_the_rules() {
    let mut seen = BTreeSet::new();
    for row in rows() {
        assert!(seen.insert(row.name), "{} stands in two rows", row.name);
        assert!(row.name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_'));
        assert!(row.name.ends_with(&format!("_{}", row.unit.word())), "{} does not end in its unit", row.name);
        assert!(row.meaning.ends_with('.') && row.meaning.len() > 15, "{}", row.name);
        assert!(!row.names.is_empty(), "nobody shows {}", row.name);
        assert_eq!(row.raised.is_empty(), row.next.is_empty(), "{}", row.name);
        let metric = ["rdma_", "nic_", "pfc_"].iter().any(|start| row.name.starts_with(start));
        assert!(metric || !row.metric, "{} names no family", row.name);
        assert!(!(row.metric && row.unit == Unit::Percent), "{} goes up and down", row.name);
    }
    assert!(seen.len() > 100, "{}", seen.len());
}

#[test]
fn what_has_no_known_unit_is_raw_and_never_seconds() {
    for row in rows() {
        let unknown = row.names.iter().filter(|name| name.scale == Scale::Unknown).count();
        assert!(unknown == 0 || unknown == row.names.len(), "{} mixes units", row.name);
        assert_eq!(unknown > 0, row.unit == Unit::Raw, "{}", row.name);
        for name in row.names {
            let expected = match name.scale {
                Scale::One | Scale::Unknown => row.unit,
                Scale::Words => Unit::Bytes,
                Scale::Micros => Unit::Seconds,
            };
            assert_eq!(row.unit, expected, "{}", row.name);
            assert_eq!(name.width == Width::Gauge, row.unit == Unit::Percent, "{}", name.name);
        }
        assert_eq!(row.unit == Unit::Raw, row.metric_name().contains("_raw"), "{}", row.name);
    }
}

#[test]
fn a_name_means_one_thing() {
    let mut seen = BTreeMap::new();
    for row in rows() {
        for name in row.names {
            let before = seen.insert((name.driver, name.source, name.name), row.name);
            assert_eq!(before, None, "{} of {} stands twice", name.name, name.driver.name());
            let origin = origin(name.driver, name.source);
            assert!(!origin.is_empty(), "{} of {} has no source", name.name, name.driver.name());
        }
    }
}

#[test]
fn metrics_are_named_once_but_for_both_directions_of_pause() {
    let mut names = BTreeSet::new();
    for row in rows().filter(|row| row.metric) {
        let new = names.insert(row.metric_name());
        assert!(new || row.pause_metric().is_some(), "{}", row.metric_name());
        assert!(row.metric_name().ends_with("_total") && !row.metric_name().contains("__"));
    }
    assert!(names.contains("fabricscope_pfc_pause_frames_total"));
    assert!(names.contains("fabricscope_pfc_pause_seconds_total"));
    assert!(names.contains("fabricscope_rdma_received_bytes_total"));
}

#[test]
fn pause_says_which_way_in_these_words() {
    for row in rows().filter(|row| row.group == Group::Pause && row.is_trouble() && !row.name.contains("storm")) {
        let words = match row.direction {
            Direction::Rx => "rx pause: the network cannot take what this host sends.",
            Direction::Tx => "tx pause: this host cannot take what the network sends.",
            Direction::None => panic!("{} goes neither way", row.name),
        };
        assert_eq!(row.raised, words, "{}", row.name);
    }
}

/// The row, priority and scale that a driver's name is found under.
#[track_caller]
fn check(driver: Driver, source: Source, shown: &str, expected: Option<(&str, Option<u8>, Scale)>) {
    let found = find(driver, source, shown).map(|found| (found.row.name, found.priority, found.name.scale));
    assert_eq!(found, expected, "{shown}");
}

#[test]
fn names_are_found_by_driver() {
    use Source::{Counters, Ethtool, HwCounters};
    let seconds = "pfc_received_pause_seconds";
    check(Driver::Mlx5, Counters, "port_rcv_data", Some(("rdma_received_bytes", None, Scale::Words)));
    check(Driver::Rxe, Counters, "port_rcv_data", Some(("rdma_received_bytes", None, Scale::Words)));
    check(Driver::Mlx5, Ethtool, "rx_prio3_pause_duration", Some((seconds, Some(3), Scale::Micros)));
    check(Driver::Bnxt, Ethtool, "pfc_pri7_rx_duration_us", Some((seconds, Some(7), Scale::Micros)));
    // mlx4 names a duration by who stood still.
    check(Driver::Mlx4, Ethtool, "tx_pause_duration_prio_0", Some((seconds, Some(0), Scale::Micros)));
    let raw = Some(("pfc_received_pause_raw", Some(2), Scale::Unknown));
    check(Driver::Hns, Ethtool, "mac_rx_pfc_pri2_xoff_time", raw);
    check(Driver::Mlx5, Ethtool, "rx_prio8_pause", None);
    check(Driver::Mlx5, Ethtool, "rx_prio_pause", None);
    check(Driver::Mlx5, Ethtool, "rx_prio33_pause", None);
    check(Driver::Mlx5, HwCounters, "port_rcv_data", None);
    check(Driver::Bnxt, HwCounters, "rx_bytes", Some(("rdma_received_bytes", None, Scale::One)));
    check(Driver::Bnxt, Ethtool, "rx_bytes", Some(("nic_wire_received_bytes", None, Scale::One)));
}

#[test]
fn a_driver_that_is_not_known_is_believed_where_all_agree() {
    use Source::{Ethtool, HwCounters};
    let sequence = Some(("rdma_out_of_sequence_packets", None, Scale::One));
    check(Driver::Any, HwCounters, "out_of_sequence", sequence);
    check(Driver::Any, HwCounters, "rx_bytes", Some(("rdma_received_bytes", None, Scale::One)));
    check(Driver::Any, Ethtool, "rx_prio3_pause", Some(("pfc_received_pause_frames", Some(3), Scale::One)));
    // Nobody says in which unit.
    check(Driver::Any, Ethtool, "rx_prio3_pause_duration", None);
    // What another driver is known not to have.
    check(Driver::Bnxt, HwCounters, "out_of_sequence", None);
}

/// Names that drivers show, read from their sources, and what is left out on purpose.
const SHOWN: &[(Driver, Source, &str)] = &[
    (
        Driver::Mlx5,
        Source::HwCounters,
        "rx_write_requests rx_read_requests rx_atomic_requests rx_dct_connect out_of_buffer out_of_sequence \
         duplicate_request rnr_nak_retry_err packet_seq_err implied_nak_seq_err local_ack_timeout_err rp_cnp_ignored \
         rp_cnp_handled np_ecn_marked_roce_packets np_cnp_sent resp_local_length_error resp_cqe_error req_cqe_error \
         req_remote_invalid_request req_remote_access_errors resp_remote_access_errors resp_cqe_flush_error \
         req_cqe_flush_error req_transport_retries_exceeded req_rnr_retries_exceeded roce_adp_retrans \
         roce_adp_retrans_to roce_slow_restart roce_slow_restart_cnps roce_slow_restart_trans rx_icrc_encapsulated",
    ),
    (
        Driver::Mlx5,
        Source::Ethtool,
        "rx_prio0_bytes rx_prio0_packets rx_prio0_discards tx_prio0_bytes tx_prio0_packets rx_prio0_pause \
         rx_prio0_pause_duration tx_prio0_pause tx_prio0_pause_duration rx_prio0_pause_transition rx_global_pause \
         rx_global_pause_duration tx_global_pause tx_global_pause_duration rx_global_pause_transition \
         rx_oversize_pkts_buffer tx_packets_phy rx_packets_phy rx_crc_errors_phy tx_bytes_phy rx_bytes_phy \
         rx_in_range_len_errors_phy rx_out_of_range_len_phy rx_oversize_pkts_phy rx_symbol_err_phy \
         rx_unsupported_op_phy rx_pause_ctrl_phy tx_pause_ctrl_phy rx_discards_phy tx_discards_phy tx_errors_phy \
         rx_undersize_pkts_phy rx_fragments_phy rx_jabbers_phy rx_pcs_symbol_err_phy rx_corrected_bits_phy \
         rx_err_lane_0_phy rx_err_lane_1_phy rx_err_lane_2_phy rx_err_lane_3_phy link_down_events_phy \
         rx_buffer_passed_thres_phy outbound_pci_buffer_overflow outbound_pci_stalled_rd outbound_pci_stalled_wr \
         outbound_pci_stalled_rd_events outbound_pci_stalled_wr_events rx_prio0_buf_discard rx_prio0_cong_discard \
         rx_prio0_marked tx_pause_storm_warning_events tx_pause_storm_error_events rx_vport_rdma_unicast_packets \
         rx_vport_rdma_unicast_bytes tx_vport_rdma_unicast_packets tx_vport_rdma_unicast_bytes \
         vport_loopback_packets vport_loopback_bytes rx_steer_missed_packets dev_internal_queue_oob rx_out_of_buffer \
         module_bus_stuck module_high_temp module_bad_shorted module_unplug rx_bits_phy rx_if_down_packets \
         rx_pci_signal_integrity tx_pci_signal_integrity dev_out_of_buffer",
    ),
    (
        Driver::Rxe,
        Source::HwCounters,
        "sent_pkts rcvd_pkts duplicate_request out_of_seq_request rcvd_rnr_err send_rnr_err rcvd_seq_err ack_deferred \
         retry_exceeded_err retry_rnr_exceeded_err completer_retry_err send_err link_downed rdma_sends rdma_recvs \
         rcvd_bytes sent_bytes",
    ),
    (
        Driver::Bnxt,
        Source::HwCounters,
        "resize_cq_cnt rx_pkts rx_bytes tx_pkts tx_bytes recoverable_errors tx_roce_errors tx_roce_discards \
         rx_roce_errors rx_roce_discards to_retransmits seq_err_naks_rcvd max_retry_exceeded rnr_naks_rcvd \
         missing_resp unrecoverable_err bad_resp_err local_qp_op_err local_protection_err mem_mgmt_op_err \
         remote_invalid_req_err remote_access_err remote_op_err dup_req res_exceed_max res_length_mismatch \
         res_exceeds_wqe res_opcode_err res_rx_invalid_rkey res_rx_domain_err res_rx_no_perm res_rx_range_err \
         res_tx_invalid_rkey res_tx_domain_err res_tx_no_perm res_tx_range_err res_irrq_oflow res_unsup_opcode \
         res_unaligned_atomic res_rem_inv_err res_mem_err res_srq_err res_cmp_err res_invalid_dup_rkey \
         res_wqe_format_err res_cq_load_err res_srq_load_err res_tx_pci_err res_rx_pci_err oos_drop_count \
         tx_atomic_req tx_read_req tx_read_resp tx_write_req tx_send_req tx_roce_only_pkts tx_roce_only_bytes \
         rx_atomic_req rx_read_req rx_read_resp rx_write_req rx_send_req rx_roce_only_pkts rx_roce_only_bytes \
         rx_roce_good_pkts rx_roce_good_bytes rx_out_of_buffer tx_cnp_pkts rx_cnp_pkts rx_ecn_marked_pkts \
         pacing_reschedule pacing_complete pacing_alerts",
    ),
    (
        Driver::Intel,
        Source::HwCounters,
        "ip4InDiscards ip4InTruncatedPkts ip4OutNoRoutes ip6InDiscards ip6InTruncatedPkts ip6OutNoRoutes \
         tcpRetransSegs tcpInOptErrors tcpInProtoErrors rxVlanErrors ip4InOctets ip4InPkts ip4InReasmRqd \
         ip4InMcastPkts ip4OutOctets ip4OutPkts ip4OutSegRqd ip4OutMcastPkts ip6InOctets ip6InPkts ip6InReasmRqd \
         ip6InMcastPkts ip6OutOctets ip6OutPkts ip6OutSegRqd ip6OutMcastPkts tcpInSegs tcpOutSegs iwInRdmaReads \
         iwInRdmaSends iwInRdmaWrites iwOutRdmaReads iwOutRdmaSends iwOutRdmaWrites iwRdmaBnd iwRdmaInv cnpHandled \
         cnpIgnored cnpSent ip4InMcastOctets ip4OutMcastOctets ip6InMcastOctets ip6OutMcastOctets RxUDP TxUDP \
         RxECNMrkd",
    ),
    (
        Driver::Amazon,
        Source::HwCounters,
        "submitted_cmds completed_cmds cmds_err no_completion_cmds keep_alive_rcvd alloc_pd_err create_qp_err \
         create_cq_err reg_mr_err alloc_ucontext_err create_ah_err mmap_err tx_bytes tx_pkts rx_bytes rx_pkts rx_drops \
         send_bytes send_wrs recv_bytes recv_wrs rdma_read_wrs rdma_read_bytes rdma_read_wr_err rdma_read_resp_bytes \
         rdma_write_wrs rdma_write_bytes rdma_write_wr_err rdma_write_recv_bytes",
    ),
    (
        Driver::Mlx4,
        Source::HwCounters,
        "rq_num_lle sq_num_lle rq_num_lqpoe sq_num_lqpoe rq_num_lpe sq_num_lpe rq_num_wrfe sq_num_wrfe sq_num_mwbe \
         sq_num_bre sq_num_rire rq_num_rire sq_num_rae rq_num_rae sq_num_roe sq_num_tree sq_num_rree rq_num_rnr \
         sq_num_rnr rq_num_oos sq_num_oos rq_num_dup sq_num_to num_cqovf rq_num_udsdprd",
    ),
    (
        Driver::Any,
        Source::Counters,
        "symbol_error link_error_recovery link_downed port_rcv_errors port_rcv_remote_physical_errors \
         port_rcv_switch_relay_errors port_xmit_discards port_xmit_constraint_errors port_rcv_constraint_errors \
         local_link_integrity_errors excessive_buffer_overrun_errors VL15_dropped port_xmit_data port_rcv_data \
         port_xmit_packets port_rcv_packets port_xmit_wait unicast_xmit_packets unicast_rcv_packets \
         multicast_xmit_packets multicast_rcv_packets",
    ),
];

#[test]
fn every_name_of_the_drivers_sources_is_found() {
    for (driver, source, names) in SHOWN {
        for name in names.split_whitespace() {
            assert!(find(*driver, *source, name).is_some(), "{name} of {} is in no row", driver.name());
        }
    }
}

#[test]
fn widths_are_those_of_the_sources() {
    let rows = [
        (Source::Counters, "link_downed", Width::Saturates(8)),
        (Source::Counters, "symbol_error", Width::Saturates(16)),
        (Source::Counters, "excessive_buffer_overrun_errors", Width::Saturates(4)),
        (Source::Counters, "port_xmit_wait", Width::Saturates(32)),
        (Source::HwCounters, "out_of_sequence", Width::Wraps(32)),
        (Source::HwCounters, "np_cnp_sent", Width::Full),
        (Source::Ethtool, "rx_prio0_pause", Width::Full),
    ];
    for (source, name, width) in rows {
        assert_eq!(find(Driver::Mlx5, source, name).unwrap().name.width, width, "{name}");
    }
    assert_eq!(Width::Saturates(4).largest(), Some(15));
    assert_eq!(Width::Wraps(32).largest(), Some(u64::from(u32::MAX)));
    assert_eq!(Width::Full.largest(), None);
}

#[test]
fn every_row_knows_its_place() {
    assert!(rows().enumerate().all(|(at, row)| order(row) == at));
}

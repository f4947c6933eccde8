//! Requests of RDMA, by kind, and those that ended in an error.

use super::driver::Driver::{Amazon, Bnxt, Erdma, Hns, Intel, Mana, Mlx4, Mlx5, Rxe};
use super::name::hw;
use super::row::Direction::{None, Rx, Tx};
use super::row::Group::Requests;
use super::row::Row;
use super::row::Unit::{Bytes, Events, Packets};

const ACCESS: &str = "A program used a key, an address or a right it does not have: often memory freed too early.";
const PROGRAM_NEXT: &str = "Look at the program: `fabricscope trace verbs` shows what it registers and modifies.";
const FLUSH: &str = "Queue pairs went to the error state with work in them, as at the end of a job.";

/// The rows.
pub(super) const ROWS: &[Row] = &[
    Row::new("rdma_write_received_events", Requests, Events, Rx, "RDMA write requests received.").names(&[
        hw(Mlx5, "rx_write_requests"),
        hw(Bnxt, "rx_write_req"),
        hw(Intel, "iwInRdmaWrites"),
        hw(Intel, "InRdmaWrites"),
        hw(Mana, "rx_write_requests"),
    ]),
    Row::new("rdma_read_received_events", Requests, Events, Rx, "RDMA read requests received.").names(&[
        hw(Mlx5, "rx_read_requests"),
        hw(Bnxt, "rx_read_req"),
        hw(Intel, "iwInRdmaReads"),
        hw(Intel, "InRdmaReads"),
        hw(Mana, "rx_read_requests"),
    ]),
    Row::new("rdma_atomic_received_events", Requests, Events, Rx, "Atomic requests received.").names(&[
        hw(Mlx5, "rx_atomic_requests"),
        hw(Bnxt, "rx_atomic_req"),
        hw(Intel, "Rx atomics"),
    ]),
    Row::new("rdma_send_received_events", Requests, Events, Rx, "Send requests received.").names(&[
        hw(Bnxt, "rx_send_req"),
        hw(Intel, "iwInRdmaSends"),
        hw(Intel, "InRdmaSends"),
        hw(Mana, "rx_send_requests"),
        hw(Amazon, "recv_wrs"),
        hw(Rxe, "rdma_recvs"),
    ]),
    Row::new("rdma_read_answer_received_events", Requests, Events, Rx, "Answers to reads received.")
        .names(&[hw(Bnxt, "rx_read_resp")]),
    Row::new("rdma_write_sent_events", Requests, Events, Tx, "RDMA write requests sent.").names(&[
        hw(Bnxt, "tx_write_req"),
        hw(Intel, "iwOutRdmaWrites"),
        hw(Intel, "OutRdmaWrites"),
        hw(Amazon, "rdma_write_wrs"),
    ]),
    Row::new("rdma_read_sent_events", Requests, Events, Tx, "RDMA read requests sent.").names(&[
        hw(Bnxt, "tx_read_req"),
        hw(Intel, "iwOutRdmaReads"),
        hw(Intel, "OutRdmaReads"),
        hw(Amazon, "rdma_read_wrs"),
    ]),
    Row::new("rdma_atomic_sent_events", Requests, Events, Tx, "Atomic requests sent.")
        .names(&[hw(Bnxt, "tx_atomic_req"), hw(Intel, "Tx atomics")]),
    Row::new("rdma_send_sent_events", Requests, Events, Tx, "Send requests sent.").names(&[
        hw(Bnxt, "tx_send_req"),
        hw(Intel, "iwOutRdmaSends"),
        hw(Intel, "OutRdmaSends"),
        hw(Amazon, "send_wrs"),
        hw(Rxe, "rdma_sends"),
        hw(Erdma, "tx_reqs_cnt"),
    ]),
    Row::new("rdma_read_answer_sent_events", Requests, Events, Tx, "Answers to reads sent.")
        .names(&[hw(Bnxt, "tx_read_resp")]),
    Row::new("rdma_send_payload_bytes", Requests, Bytes, Tx, "Bytes of send requests sent.")
        .names(&[hw(Amazon, "send_bytes")]),
    Row::new("rdma_receive_payload_bytes", Requests, Bytes, Rx, "Bytes of send requests received.")
        .names(&[hw(Amazon, "recv_bytes")]),
    Row::new("rdma_read_payload_bytes", Requests, Bytes, Rx, "Bytes this host read from its peers.")
        .names(&[hw(Amazon, "rdma_read_bytes")]),
    Row::new("rdma_read_answer_payload_bytes", Requests, Bytes, Tx, "Bytes peers read from this host.")
        .names(&[hw(Amazon, "rdma_read_resp_bytes")]),
    Row::new("rdma_write_payload_bytes", Requests, Bytes, Tx, "Bytes this host wrote to its peers.")
        .names(&[hw(Amazon, "rdma_write_bytes")]),
    Row::new("rdma_write_received_payload_bytes", Requests, Bytes, Rx, "Bytes peers wrote to this host.")
        .names(&[hw(Amazon, "rdma_write_recv_bytes")]),
    Row::new("rdma_dct_connect_events", Requests, Events, Rx, "Connections made for dynamically connected transport.")
        .names(&[hw(Mlx5, "rx_dct_connect")]),
    Row::new("rdma_memory_bind_events", Requests, Events, None, "Memory windows bound.")
        .names(&[hw(Intel, "iwRdmaBnd"), hw(Intel, "RdmaBnd")]),
    Row::new("rdma_memory_invalidate_events", Requests, Events, None, "Memory keys made invalid.")
        .names(&[hw(Intel, "iwRdmaInv"), hw(Intel, "RdmaInv")]),
    Row::new("rdma_cq_resize_events", Requests, Events, None, "Completion queues that were resized.")
        .names(&[hw(Bnxt, "resize_cq_cnt")]),
    Row::new("rdma_transport_rc_received_packets", Requests, Packets, Rx, "Packets of reliable connections received.")
        .names(&[hw(Hns, "rx_rc_pkt")]),
    Row::new("rdma_transport_rc_sent_packets", Requests, Packets, Tx, "Packets of reliable connections sent.")
        .names(&[hw(Hns, "tx_rc_pkt")]),
    Row::new(
        "rdma_requester_error_events",
        Requests,
        Events,
        Tx,
        "Completions with an error of requests this host made.",
    )
    .trouble("A request of this host failed; its job saw it.", PROGRAM_NEXT)
    .names(&[
        hw(Mlx5, "req_cqe_error"),
        hw(Bnxt, "unrecoverable_err"),
        hw(Bnxt, "bad_resp_err"),
        hw(Amazon, "rdma_read_wr_err"),
        hw(Amazon, "rdma_write_wr_err"),
        hw(Mana, "total_fatal_error"),
        hw(Hns, "tx_err_pkt"),
    ]),
    Row::new(
        "rdma_responder_error_events",
        Requests,
        Events,
        Rx,
        "Completions with an error of requests that came to this host.",
    )
    .trouble("A request of a peer failed here.", PROGRAM_NEXT)
    .names(&[
        hw(Mlx5, "resp_cqe_error"),
        hw(Bnxt, "res_exceed_max"),
        hw(Bnxt, "res_exceeds_wqe"),
        hw(Bnxt, "res_opcode_err"),
        hw(Bnxt, "res_irrq_oflow"),
        hw(Bnxt, "res_unsup_opcode"),
        hw(Bnxt, "res_unaligned_atomic"),
        hw(Bnxt, "res_rem_inv_err"),
        hw(Bnxt, "res_mem_err"),
        hw(Bnxt, "res_srq_err"),
        hw(Bnxt, "res_cmp_err"),
        hw(Bnxt, "res_invalid_dup_rkey"),
        hw(Bnxt, "res_wqe_format_err"),
        hw(Bnxt, "res_cq_load_err"),
        hw(Bnxt, "res_srq_load_err"),
        hw(Bnxt, "res_tx_pci_err"),
        hw(Bnxt, "res_rx_pci_err"),
        hw(Hns, "trp_get_mpt_err_pkt"),
        hw(Hns, "trp_get_irrl_err_pkt"),
    ]),
    Row::new(
        "rdma_requester_flush_events",
        Requests,
        Events,
        Tx,
        "Own requests thrown away because their queue pair was in error.",
    )
    .trouble(FLUSH, PROGRAM_NEXT)
    .names(&[hw(Mlx5, "req_cqe_flush_error"), hw(Mlx4, "sq_num_wrfe")]),
    Row::new(
        "rdma_responder_flush_events",
        Requests,
        Events,
        Rx,
        "Receives thrown away because their queue pair was in error.",
    )
    .trouble(FLUSH, PROGRAM_NEXT)
    .names(&[hw(Mlx5, "resp_cqe_flush_error"), hw(Mlx4, "rq_num_wrfe")]),
    Row::new(
        "rdma_local_length_error_events",
        Requests,
        Events,
        None,
        "Requests longer or shorter than the memory for them.",
    )
    .trouble("Both ends disagree on a message's length.", PROGRAM_NEXT)
    .names(&[
        hw(Mlx5, "resp_local_length_error"),
        hw(Mlx4, "rq_num_lle"),
        hw(Mlx4, "sq_num_lle"),
        hw(Bnxt, "res_length_mismatch"),
        hw(Mana, "responder_local_len_error"),
    ]),
    Row::new(
        "rdma_local_protection_error_events",
        Requests,
        Events,
        None,
        "Requests that touched local memory they may not.",
    )
    .trouble(ACCESS, PROGRAM_NEXT)
    .names(&[
        hw(Mlx4, "rq_num_lpe"),
        hw(Mlx4, "sq_num_lpe"),
        hw(Bnxt, "local_protection_err"),
        hw(Bnxt, "mem_mgmt_op_err"),
        hw(Mana, "requestor_local_prot_error"),
    ]),
    Row::new("rdma_local_operation_error_events", Requests, Events, None, "Requests a queue pair could not carry out.")
        .trouble("A queue pair is set up wrongly.", PROGRAM_NEXT)
        .names(&[
            hw(Mlx4, "rq_num_lqpoe"),
            hw(Mlx4, "sq_num_lqpoe"),
            hw(Mlx4, "sq_num_mwbe"),
            hw(Mlx4, "sq_num_bre"),
            hw(Bnxt, "local_qp_op_err"),
            hw(Mana, "responder_local_qp_error"),
            hw(Mana, "responder_malformed_wqe"),
        ]),
    Row::new("rdma_remote_invalid_request_events", Requests, Events, Tx, "Own requests the peer called invalid.")
        .trouble("Both ends disagree on what is asked.", PROGRAM_NEXT)
        .names(&[
            hw(Mlx5, "req_remote_invalid_request"),
            hw(Mlx4, "sq_num_rire"),
            hw(Mlx4, "rq_num_rire"),
            hw(Bnxt, "remote_invalid_req_err"),
            hw(Mana, "nak_inv_req"),
            hw(Mana, "nak_inv_read"),
        ]),
    Row::new("rdma_remote_access_error_events", Requests, Events, Tx, "Own requests the peer refused access to.")
        .trouble(ACCESS, PROGRAM_NEXT)
        .names(&[
            hw(Mlx5, "req_remote_access_errors"),
            hw(Mlx4, "sq_num_rae"),
            hw(Bnxt, "remote_access_err"),
            hw(Mana, "nak_access_error"),
        ]),
    Row::new("rdma_access_refused_events", Requests, Events, Rx, "Peers' requests this host refused access to.")
        .trouble(ACCESS, PROGRAM_NEXT)
        .names(&[
            hw(Mlx5, "resp_remote_access_errors"),
            hw(Mlx4, "rq_num_rae"),
            hw(Bnxt, "res_rx_invalid_rkey"),
            hw(Bnxt, "res_rx_domain_err"),
            hw(Bnxt, "res_rx_no_perm"),
            hw(Bnxt, "res_rx_range_err"),
            hw(Bnxt, "res_tx_invalid_rkey"),
            hw(Bnxt, "res_tx_domain_err"),
            hw(Bnxt, "res_tx_no_perm"),
            hw(Bnxt, "res_tx_range_err"),
            hw(Mana, "responder_rem_access_error"),
        ]),
    Row::new("rdma_remote_operation_error_events", Requests, Events, Tx, "Own requests the peer could not carry out.")
        .trouble("The peer's queue pair is in trouble.", PROGRAM_NEXT)
        .names(&[hw(Mlx4, "sq_num_roe"), hw(Bnxt, "remote_op_err"), hw(Mana, "nak_opp_error")]),
    Row::new("rdma_recovered_error_events", Requests, Events, None, "Errors the adapter recovered from.")
        .names(&[hw(Bnxt, "recoverable_errors")]),
    Row::new("rdma_hardware_error_events", Requests, Events, None, "General errors of the adapter.")
        .metric()
        .trouble("The adapter is in trouble.", "Read the kernel's log of the device.")
        .names(&[hw(Mana, "general_hw_error")]),
    Row::new("rdma_command_events", Requests, Events, None, "Commands the driver gave to the adapter.")
        .names(&[hw(Amazon, "submitted_cmds")]),
    Row::new("rdma_command_completed_events", Requests, Events, None, "Commands the adapter carried out.")
        .names(&[hw(Amazon, "completed_cmds")]),
    Row::new("rdma_command_error_events", Requests, Events, None, "Commands the adapter refused or did not answer.")
        .metric()
        .trouble("The adapter or its firmware is in trouble.", "`fabricscope trace verbs` names the calls that failed.")
        .names(&[hw(Amazon, "cmds_err"), hw(Amazon, "no_completion_cmds")]),
    Row::new("rdma_object_error_events", Requests, Events, None, "Objects that could not be made.")
        .metric()
        .trouble("The adapter or the driver refused a program's call.", "`fabricscope trace verbs` names them.")
        .names(&[
            hw(Amazon, "alloc_pd_err"),
            hw(Amazon, "create_qp_err"),
            hw(Amazon, "create_cq_err"),
            hw(Amazon, "reg_mr_err"),
            hw(Amazon, "alloc_ucontext_err"),
            hw(Amazon, "create_ah_err"),
            hw(Amazon, "mmap_err"),
        ]),
    Row::new("rdma_keep_alive_events", Requests, Events, None, "Signs of life from the adapter.")
        .names(&[hw(Amazon, "keep_alive_rcvd")]),
];

//! Packets of connections that were lost, late or repeated.

use super::driver::Driver::{Amazon, Bnxt, Cxgb4, Intel, Mana, Mlx4, Mlx5, Rxe};
use super::name::hw;
use super::row::Direction::{None, Rx, Tx};
use super::row::Group::Transport;
use super::row::Row;
use super::row::Unit::{Bytes, Events, Packets};

const LOSS: &str = "Packets are lost or reordered between the peer and this host.";
const LOSS_NEXT: &str = "Look at discards of both ends, at symbol errors of the cable, and at the switches' discards; \
    without any, at adaptive routing that reorders.";
const RNR_NEXT: &str = "Look at the receiving program: it posts receives too late or too few.";
const DEAD_NEXT: &str =
    "Find the peer: link down, crashed, or unreachable. `fabricscope trace verbs` names what fails then.";

/// The rows.
pub(super) const ROWS: &[Row] = &[
    Row::new("rdma_out_of_sequence_packets", Transport, Packets, Rx, "Requests that did not come in sequence.")
        .metric()
        .trouble(LOSS, LOSS_NEXT)
        .names(&[
            hw(Mlx5, "out_of_sequence"),
            hw(Mlx4, "rq_num_oos"),
            hw(Bnxt, "oos_drop_count"),
            hw(Intel, "Rcvd Out of order packets"),
            hw(Mana, "responder_oos"),
            hw(Rxe, "out_of_seq_request"),
        ]),
    Row::new(
        "rdma_sequence_error_packets",
        Transport,
        Packets,
        Tx,
        "NAKs received because a request did not arrive in sequence.",
    )
    .metric()
    .trouble("Packets this host sent are lost or reordered.", LOSS_NEXT)
    .names(&[
        hw(Mlx5, "packet_seq_err"),
        hw(Mlx4, "sq_num_oos"),
        hw(Bnxt, "seq_err_naks_rcvd"),
        hw(Intel, "Nak Sequence Error"),
        hw(Mana, "requester_oos_nak"),
        hw(Rxe, "rcvd_seq_err"),
    ]),
    Row::new(
        "rdma_implied_nak_events",
        Transport,
        Events,
        Tx,
        "Read or atomic answers missing where a later answer came.",
    )
    .trouble("Answers to this host are lost or reordered.", LOSS_NEXT)
    .names(&[
        hw(Mlx5, "implied_nak_seq_err"),
        hw(Bnxt, "missing_resp"),
        hw(Intel, "Nak Sequence Error Implied"),
        hw(Mana, "requester_implicit_nak"),
    ]),
    Row::new(
        "rdma_timeout_events",
        Transport,
        Events,
        Tx,
        "Times no answer came in time, so that packets were sent again.",
    )
    .metric()
    .trouble("Packets or answers are lost without anybody noticing, or the peer is gone or paused.", DEAD_NEXT)
    .names(&[
        hw(Mlx5, "local_ack_timeout_err"),
        hw(Mlx4, "sq_num_to"),
        hw(Bnxt, "to_retransmits"),
        hw(Intel, "RTO"),
        hw(Mana, "requester_timeout"),
        hw(Amazon, "retrans_timeout_events"),
    ]),
    Row::new("rdma_retransmitted_packets", Transport, Packets, Tx, "Packets that were sent again.")
        .metric()
        .trouble(LOSS, LOSS_NEXT)
        .names(&[
            hw(Intel, "tcpRetransSegs"),
            hw(Intel, "RetransSegs"),
            hw(Cxgb4, "ip4RetransSegs"),
            hw(Cxgb4, "ip6RetransSegs"),
            hw(Amazon, "retrans_pkts"),
            hw(Rxe, "completer_retry_err"),
        ]),
    Row::new("rdma_retransmitted_bytes", Transport, Bytes, Tx, "Bytes that were sent again.")
        .trouble(LOSS, LOSS_NEXT)
        .names(&[hw(Amazon, "retrans_bytes")]),
    Row::new("rdma_adaptive_retransmission_events", Transport, Events, Tx, "Adaptive retransmissions of RoCE.")
        .trouble(LOSS, LOSS_NEXT)
        .names(&[hw(Mlx5, "roce_adp_retrans")]),
    Row::new(
        "rdma_adaptive_timeout_events",
        Transport,
        Events,
        Tx,
        "Times RoCE waited out its timeout by adaptive retransmission.",
    )
    .trouble(LOSS, LOSS_NEXT)
    .names(&[hw(Mlx5, "roce_adp_retrans_to")]),
    Row::new("rdma_duplicate_request_packets", Transport, Packets, Rx, "Requests received a second time.")
        .metric()
        .trouble("The peer did not see this host's answer in time.", LOSS_NEXT)
        .names(&[
            hw(Mlx5, "duplicate_request"),
            hw(Mlx4, "rq_num_dup"),
            hw(Bnxt, "dup_req"),
            hw(Mana, "responder_dup_request"),
            hw(Mana, "dup_rx_requests").second(),
            hw(Rxe, "duplicate_request"),
        ]),
    Row::new(
        "rdma_rnr_nak_received_packets",
        Transport,
        Packets,
        Tx,
        "Times a peer was not ready to receive what this host sent.",
    )
    .metric()
    .trouble("The peer's program had posted no receive.", RNR_NEXT)
    .names(&[
        hw(Mlx5, "rnr_nak_retry_err"),
        hw(Mlx4, "sq_num_rnr"),
        hw(Bnxt, "rnr_naks_rcvd"),
        hw(Intel, "RNR received"),
        hw(Mana, "requester_rnr_nak"),
        hw(Rxe, "rcvd_rnr_err"),
    ]),
    Row::new(
        "rdma_rnr_nak_sent_packets",
        Transport,
        Packets,
        Rx,
        "Times this host was not ready to receive what a peer sent.",
    )
    .metric()
    .trouble("A program of this host had posted no receive.", RNR_NEXT)
    .names(&[
        hw(Mlx4, "rq_num_rnr"),
        hw(Intel, "RNR sent"),
        hw(Mana, "responder_rnr_nak"),
        hw(Rxe, "send_rnr_err"),
    ]),
    Row::new(
        "rdma_retries_exceeded_events",
        Transport,
        Events,
        Tx,
        "Connections given up because no answer came to any retry.",
    )
    .metric()
    .trouble("The peer or the way to it is dead: a job sees completion error 12.", DEAD_NEXT)
    .names(&[
        hw(Mlx5, "req_transport_retries_exceeded"),
        hw(Mlx4, "sq_num_tree"),
        hw(Bnxt, "max_retry_exceeded"),
        hw(Mana, "requester_retries_exceeded"),
        hw(Rxe, "retry_exceeded_err"),
    ]),
    Row::new(
        "rdma_rnr_retries_exceeded_events",
        Transport,
        Events,
        Tx,
        "Connections given up because the peer was never ready to receive.",
    )
    .metric()
    .trouble("The peer's program posts no receives: it hangs, or its protocol is wrong.", RNR_NEXT)
    .names(&[
        hw(Mlx5, "req_rnr_retries_exceeded"),
        hw(Mlx4, "sq_num_rree"),
        hw(Mana, "requester_rnr_nak_retries_exceeded"),
        hw(Rxe, "retry_rnr_exceeded_err"),
    ]),
    Row::new("rdma_unresponsive_peer_events", Transport, Events, Tx, "Times a peer did not answer at all.")
        .metric()
        .trouble("The peer or the way to it is dead.", DEAD_NEXT)
        .names(&[hw(Amazon, "unresponsive_remote_events")]),
    Row::new(
        "rdma_impaired_connection_events",
        Transport,
        Events,
        Tx,
        "Times a connection became impaired and was held to a lower rate.",
    )
    .metric()
    .trouble(LOSS, LOSS_NEXT)
    .names(&[hw(Amazon, "impaired_remote_conn_events")]),
    Row::new(
        "rdma_read_answer_mismatch_packets",
        Transport,
        Packets,
        Tx,
        "Answers to reads with an unexpected sequence number.",
    )
    .trouble(LOSS, LOSS_NEXT)
    .names(&[hw(Mana, "requester_readresp_psn_mismatch")]),
    Row::new("rdma_ack_deferred_events", Transport, Events, None, "Acknowledgements that were put off.")
        .names(&[hw(Rxe, "ack_deferred")]),
    Row::new("rdma_reset_segment_packets", Transport, Packets, Tx, "TCP resets that iWARP sent.")
        .trouble("Connections were cut.", DEAD_NEXT)
        .names(&[hw(Cxgb4, "ip4OutRsts"), hw(Cxgb4, "ip6OutRsts")]),
];

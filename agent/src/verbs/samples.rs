//! Events for tests, with every field set to something of its own.

use std::net::Ipv6Addr;
use std::time::{Duration, SystemTime};

use agent_common::verb::VerbKey;

use super::request::types::{
    Access, Ah, Caps, Cm, Cq, Endpoint, Mr, MrKind, Mtu, Qp, QpAttrMask, QpState, QpType, Request, Srq,
};
use crate::event::{CmEvent, DeviceEvent, Event, Failure, Firmware, KnownQp, Link};
use crate::health::{HealthEvent, Place};
use crate::host::process::Process;
use crate::probes::Layer;

/// 2026-03-01 12:34:56.789000123 UTC.
pub(crate) fn time() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::new(1_772_368_496, 789_000_123)
}

fn link(layer: Layer, function: &str, errno: i32) -> Link {
    Link { layer, function: function.to_owned(), errno }
}

fn remote() -> Ipv6Addr {
    std::net::Ipv4Addr::new(10, 0, 0, 2).to_ipv6_mapped()
}

/// A QP of every field.
pub(crate) fn full_qp() -> Qp {
    Qp {
        handle: Some(1),
        qp_type: Some(QpType(2)),
        state_from: Some(QpState(6)),
        state_to: Some(QpState(2)),
        attr_mask: Some(QpAttrMask(0b1000_0001)),
        caps: Some(Caps { max_send_wr: 1, max_recv_wr: 2, max_send_sge: 3, max_recv_sge: 4, max_inline: 5 }),
        access: Some(Access(1 << 20 | 1)),
        sq_psn: Some(2),
        rq_psn: Some(3),
        path_mtu: Some(Mtu(5)),
        dest_qpn: Some(17),
        gid_index: Some(3),
        remote_gid: Some(remote()),
        remote_lid: Some(0xffff),
        port: Some(1),
        pkey_index: Some(4),
        timeout: Some(14),
        retry_cnt: Some(7),
        rnr_retry: Some(6),
        send_cq_handle: Some(8),
        recv_cq_handle: Some(9),
        srq_handle: Some(10),
        qpn: Some(11),
    }
}

/// A request of every part and field.
pub(crate) fn full_request() -> Request {
    Request {
        qp: Some(full_qp()),
        mr: Some(Mr {
            handle: Some(1),
            address: Some(u64::MAX),
            offset: Some(2),
            length: Some(3),
            iova: Some(4),
            access: Some(Access(u64::MAX)),
            kind: Some(MrKind::DmaBuf),
            fd: Some(-1),
            dm_handle: Some(5),
        }),
        cq: Some(Cq { handle: Some(1), cqe: Some(2), comp_vector: Some(3) }),
        srq: Some(Srq { handle: Some(1), max_wr: Some(2), max_sge: Some(3) }),
        ah: Some(Ah { gid_index: Some(255), remote_gid: Some(remote()), remote_lid: Some(7), port: Some(2) }),
        cm: Some(Cm {
            id: Some(1),
            source: Some(Endpoint::Ip(([10, 0, 0, 1], 4000).into())),
            destination: Some(Endpoint::Ib(Ipv6Addr::LOCALHOST)),
            timeout_ms: Some(2000),
            qpn: Some(2),
            private_data_len: Some(56),
            backlog: Some(3),
            reason: Some(28),
        }),
        pd_handle: Some(1),
        handle: Some(2),
        port: Some(3),
        gid_index: Some(4),
        devx_opcode: Some(0x500),
    }
}

fn failure() -> Failure {
    Failure {
        time: time(),
        monotonic_ns: 123_456_789,
        duration_ns: Some(4_096_000_000),
        key: VerbKey::new(1, 0, 4, 2),
        verb: "modify_qp".into(),
        device: Some("mlx5_0".to_owned()),
        errno: libc::ETIMEDOUT,
        answer: link(Layer::Core, "ib_resolve_eth_dmac", libc::ETIMEDOUT),
        chain: vec![
            link(Layer::Core, "rdma_addr_find_l2_eth_by_grh", libc::ENODATA),
            link(Layer::Core, "ib_resolve_eth_dmac", libc::ETIMEDOUT),
            link(Layer::Syscall, "ib_uverbs_ioctl", libc::ETIMEDOUT),
        ],
        chain_cut: false,
        firmware: None,
        pid: 4711,
        tid: 4712,
        uid: 1000,
        comm: "trainer".to_owned(),
        cgroup_id: 9001,
        process: Process { start_ns: Some(47_110_000_000), cgroup: Some("/jobs/job_42".to_owned()) },
        cause: None,
        probe: false,
        unsupported: false,
        qp: Some(KnownQp { number: 291, kind: 2, state: 1 }),
        request: Request {
            qp: Some(Qp {
                state_to: Some(QpState(2)),
                gid_index: Some(3),
                remote_gid: Some(remote()),
                dest_qpn: Some(17),
                port: Some(1),
                ..Qp::default()
            }),
            ..Request::default()
        },
    }
}

/// A QP's remote side cannot be resolved.
pub(crate) fn modify_qp() -> Event {
    Event::Verbs(Box::new(failure()))
}

/// The firmware refuses memory of an unknown device; the flags are set for the sake of being seen.
pub(crate) fn reg_mr() -> Event {
    let chain = vec![link(Layer::Firmware, "mlx5_cmd_exec", libc::ENOMEM)];
    Event::Verbs(Box::new(Failure {
        key: VerbKey::new(3, 0, 0, 9),
        verb: "reg_mr".into(),
        device: None,
        duration_ns: None,
        errno: libc::ENOMEM,
        answer: chain[0].clone(),
        chain,
        chain_cut: true,
        firmware: Some(Firmware { opcode: 0x200, op_mod: 1, status: 5, syndrome: 0x1c_4f3a }),
        probe: true,
        unsupported: true,
        qp: None,
        request: Request {
            mr: Some(Mr {
                address: Some(0x7f00_0000_1000),
                length: Some(4096),
                access: Some(Access(0b101)),
                kind: Some(MrKind::Host),
                ..Mr::default()
            }),
            ..Request::default()
        },
        ..failure()
    }))
}

/// A failure whose request has every part and field.
pub(crate) fn full() -> Event {
    Event::Verbs(Box::new(Failure { request: full_request(), ..failure() }))
}

/// Nobody answers a connection request.
pub(crate) fn cm_unreachable() -> Event {
    Event::Cm(CmEvent {
        time: time(),
        event: 7,
        name: "unreachable".into(),
        status: -libc::ETIMEDOUT,
        reason: Some("timed out".to_owned()),
        cm_id: 3,
        source: Some(([10, 0, 0, 1].into(), 4000)),
        destination: Some(("fd00::2".parse().unwrap(), 18515)),
    })
}

/// A cable is pulled.
pub(crate) fn port_error() -> Event {
    Event::Device(DeviceEvent {
        time: time(),
        event: 10,
        name: "port_err".into(),
        device: Some("mlx5_0".to_owned()),
        port: Some(1),
        qp: None,
    })
}

/// The firmware of a NIC dies.
pub(crate) fn firmware_fatal() -> Event {
    let text = |text: &str| Some(text.to_owned());
    Event::Health(Box::new(HealthEvent {
        time: time(),
        event: "devlink_health".to_owned(),
        place: Place { device: text("mlx5_0"), netdev: text("eth0"), pci: text("0000:3b:00.0") },
        part: text("fw_fatal"),
        message: text("FW fatal error reported"),
        values: Vec::new(),
    }))
}

/// A transmit queue stands still.
pub(crate) fn transmit_timeout() -> Event {
    Event::Health(Box::new(HealthEvent {
        time: time(),
        event: "tx_timeout".to_owned(),
        place: Place { netdev: Some("eth1".to_owned()), ..Place::default() },
        part: None,
        message: None,
        values: vec![("queue".to_owned(), 3)],
    }))
}

/// One of each.
pub(crate) fn all() -> Vec<Event> {
    vec![modify_qp(), reg_mr(), full(), cm_unreachable(), port_error(), firmware_fatal(), transmit_timeout()]
}

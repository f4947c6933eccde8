//! Names of the events that no call returns: of the connection manager, and of devices, ports and resources.

use std::borrow::Cow;

/// `enum rdma_cm_event_type` (include/rdma/rdma_cm.h), in order.
const CM: [&str; 17] = [
    "addr_resolved",
    "addr_error",
    "route_resolved",
    "route_error",
    "connect_request",
    "connect_response",
    "connect_error",
    "unreachable",
    "rejected",
    "established",
    "disconnected",
    "device_removal",
    "multicast_join",
    "multicast_error",
    "addr_change",
    "timewait_exit",
    "addrinfo_resolved",
];
/// `RDMA_CM_EVENT_REJECTED`: its status is a reason, not an errno.
const REJECTED: u32 = 8;

/// `enum ib_event_type` (include/rdma/ib_verbs.h), in order.
const DEVICE: [&str; 21] = [
    "cq_err",
    "qp_fatal",
    "qp_req_err",
    "qp_access_err",
    "comm_est",
    "sq_drained",
    "path_mig",
    "path_mig_err",
    "device_fatal",
    "port_active",
    "port_err",
    "lid_change",
    "pkey_change",
    "sm_change",
    "srq_err",
    "srq_limit_reached",
    "qp_last_wqe_reached",
    "client_reregister",
    "gid_change",
    "wq_fatal",
    "device_speed_change",
];

/// `enum ib_cm_rej_reason` (include/rdma/ib_cm.h), the InfiniBand specification's reject reasons.
const REJECT: &[(i32, &str)] = &[
    (1, "no QP left"),
    (2, "no end-to-end context left"),
    (3, "no resources left"),
    (4, "timed out"),
    (5, "unsupported request"),
    (6, "the id is not known there"),
    (7, "the connection is not known there"),
    (8, "nobody listens on that port"),
    (9, "the service does not accept this kind of QP"),
    (10, "the connection is stale"),
    (11, "no such redirect"),
    (12, "the remote GID is not there"),
    (13, "the remote LID is not there"),
    (14, "the service level is wrong"),
    (15, "the traffic class is wrong"),
    (16, "the hop limit is wrong"),
    (17, "the packet rate is wrong"),
    (24, "redirected to another port"),
    (25, "the MTU is wrong"),
    (26, "too few responder resources"),
    (28, "refused by the application"),
    (29, "the RNR retry count is wrong"),
    (30, "a duplicate of a communication id"),
    (31, "the class version is wrong"),
    (32, "the flow label is wrong"),
];

fn name(table: &[&'static str], number: u32) -> Cow<'static, str> {
    let known = usize::try_from(number).ok().and_then(|index| table.get(index));
    known.map_or_else(|| Cow::Owned(format!("event_{number}")), |name| Cow::Borrowed(*name))
}

/// The name of a connection manager event, as librdmacm spells it without its prefix.
pub(crate) fn cm_name(event: u32) -> Cow<'static, str> {
    name(&CM, event)
}

/// The name of a device event, as libibverbs spells it without its prefix.
pub(crate) fn device_name(event: u32) -> Cow<'static, str> {
    name(&DEVICE, event)
}

/// What a connection manager event's status means; `None` for a status of nothing.
pub(crate) fn cm_reason(event: u32, status: i32) -> Option<String> {
    if status == 0 {
        return None;
    }
    if event == REJECTED && status > 0 {
        let known = REJECT.iter().find(|(reason, _)| *reason == status);
        return Some(known.map_or_else(|| format!("reason {status}"), |(_, text)| (*text).to_owned()));
    }
    let meaning = crate::host::errno::errno_meaning(status).unwrap_or("unknown error");
    Some(format!("{}: {meaning}", crate::host::errno::errno_name(status)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_and_statuses_have_names() {
        let rows: [(u32, i32, &str, Option<&str>); 5] = [
            (8, 8, "rejected", Some("nobody listens on that port")),
            (8, 99, "rejected", Some("reason 99")),
            (7, -110, "unreachable", Some("ETIMEDOUT")),
            (9, 0, "established", None),
            (77, 0, "event_77", None),
        ];
        for (event, status, expected, reason) in rows {
            assert_eq!(cm_name(event), expected);
            let found = cm_reason(event, status);
            assert_eq!(found.is_some(), reason.is_some());
            assert!(found.unwrap_or_default().starts_with(reason.unwrap_or_default()));
        }
        assert_eq!(device_name(10), "port_err");
        assert_eq!(device_name(18), "gid_change");
        assert_eq!(device_name(u32::MAX), "event_4294967295");
    }
}

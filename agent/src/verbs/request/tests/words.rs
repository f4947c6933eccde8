//! The words for types, states, flags and addresses.

use super::super::types::{Access, Endpoint, MrKind, Mtu, QpAttrMask, QpState, QpType};

#[track_caller]
fn check(shown: impl ToString, expected: &str) {
    assert_eq!(shown.to_string(), expected);
}

#[test]
fn types_and_states() {
    let types =
        [(2, "RC"), (3, "UC"), (4, "UD"), (8, "RAW_PACKET"), (9, "XRC_SEND"), (10, "XRC_RECV"), (255, "DRIVER")];
    for (number, name) in types {
        check(QpType(number), name);
    }
    check(QpType(0x42), "66");
    for (number, name) in (0..).zip(["RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR", "7"]) {
        check(QpState(number), name);
    }
}

#[test]
fn mtus() {
    for (number, shown) in [(1, "256"), (3, "1024"), (5, "4096"), (0, "invalid (0)"), (9, "invalid (9)")] {
        check(Mtu(number), shown);
    }
    assert_eq!((Mtu(4).bytes(), Mtu(6).bytes()), (Some(2048), None));
}

#[test]
fn kinds_of_memory() {
    let kinds = [MrKind::Host, MrKind::DmaBuf, MrKind::OnDemand, MrKind::Dm];
    assert_eq!(kinds.map(MrKind::name), ["host", "dmabuf", "on_demand", "dm"]);
}

#[test]
fn flags() {
    assert_eq!(Access(0b1011).names(), ["LOCAL_WRITE", "REMOTE_WRITE", "REMOTE_ATOMIC"]);
    assert_eq!(Access(1 << 18 | 1 << 20).names(), ["bit_18", "RELAXED_ORDERING"]);
    assert_eq!(Access(u64::MAX).names().len(), 64);
    assert!(Access(0).names().is_empty());
    // INIT -> RTR of an RC queue pair, as ibv_rc_pingpong sets it
    let mask = QpAttrMask(1 | 1 << 7 | 1 << 8 | 1 << 12 | 1 << 15 | 1 << 17 | 1 << 20);
    let names = ["STATE", "AV", "PATH_MTU", "RQ_PSN", "MIN_RNR_TIMER", "MAX_DEST_RD_ATOMIC", "DEST_QPN"];
    assert_eq!(mask.names(), names);
    assert_eq!(QpAttrMask(1 << 25 | 1 << 31).names(), ["RATE_LIMIT", "bit_31"]);
}

#[test]
fn addresses() {
    check(Endpoint::Ip("10.0.0.1:80".parse().unwrap()), "10.0.0.1:80");
    check(Endpoint::Ib("fe80::1".parse().unwrap()), "gid fe80::1");
    // A RoCE v2 GID over IPv4
    let gid: std::net::Ipv6Addr = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 168, 1, 9].into();
    check(gid, "::ffff:192.168.1.9");
}

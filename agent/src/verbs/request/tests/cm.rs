//! Structures of rdma_user_cm.h.

use agent_common::record::REQUEST;
use agent_common::verb::VerbKey;

use super::super::types::{Cm, Endpoint, Request};
use super::super::{RawRequest, decode};
use super::structure;

#[track_caller]
fn check(command: u32, core_in: &[u8], expected: Cm) {
    let raw = RawRequest { key: VerbKey::ucma(command), core_in, ..RawRequest::default() };
    assert_eq!(decode(&raw), Request { cm: Some(expected), ..Request::default() });
}

/// sockaddr_in: family 0, port 2, address 4.
fn v4(port: u16, address: [u8; 4]) -> Vec<u8> {
    [&[2, 0][..], &port.to_be_bytes(), &address].concat()
}

/// sockaddr_in6: family 0, port 2, flow information 4, address 8, scope 24.
fn v6(port: u16, address: &str) -> Vec<u8> {
    let octets = address.parse::<std::net::Ipv6Addr>().unwrap().octets();
    [&[10, 0][..], &port.to_be_bytes(), &[0; 4], &octets, &[0; 4]].concat()
}

fn ip(text: &str) -> Option<Endpoint> {
    Some(Endpoint::Ip(text.parse().unwrap()))
}

fn id(id: u32) -> Cm {
    Cm { id: Some(id), ..Cm::default() }
}

const ONE: [u8; 4] = [1, 0, 0, 0];

#[test]
fn resolve_addr() {
    // id 0, timeout_ms 4, src_size 8, dst_size 10, src_addr 16, dst_addr 144
    let timeout = 2000_u32.to_le_bytes();
    let (source, destination) = (v4(0, [10, 0, 0, 1]), v6(18515, "fd00::2"));
    let fields: [(usize, &[u8]); 4] = [(0, &ONE), (4, &timeout), (16, &source), (144, &destination)];
    let expected = Cm { source: ip("10.0.0.1:0"), destination: ip("[fd00::2]:18515"), timeout_ms: Some(2000), ..id(1) };
    check(21, &structure(272, &fields), expected.clone());
    // The first 192 bytes hold all of it; less loses the destination only
    check(21, &structure(192, &fields), expected.clone());
    check(21, &structure(192, &fields)[..150], Cm { destination: None, ..expected });
}

#[test]
fn resolve_addr_without_a_source() {
    let destination = v4(7174, [10, 0, 0, 9]);
    let fields: [(usize, &[u8]); 4] = [(0, &ONE), (4, &ONE), (16, &[0; 128]), (144, &destination)];
    let expected = Cm { destination: ip("10.0.0.9:7174"), timeout_ms: Some(1), ..id(1) };
    check(21, &structure(272, &fields), expected);
}

#[test]
fn resolve_ip() {
    // src_addr 0, dst_addr 28, id 56, timeout_ms 60
    let (source, destination) = (v4(0, [10, 0, 0, 1]), v4(7174, [10, 0, 0, 2]));
    let fields: [(usize, &[u8]); 4] = [(0, &source), (28, &destination), (56, &ONE), (60, &ONE)];
    let expected = Cm { source: ip("10.0.0.1:0"), destination: ip("10.0.0.2:7174"), timeout_ms: Some(1), ..id(1) };
    check(3, &structure(64, &fields), expected);
}

#[test]
fn bind() {
    let address = v4(4711, [0, 0, 0, 0]);
    let expected = Cm { source: ip("0.0.0.0:4711"), ..id(1) };
    // rdma_ucm_bind: id 0, addr 8; rdma_ucm_bind_ip: addr 8, id 36
    check(20, &structure(136, &[(0, &ONE), (8, &address)]), expected.clone());
    check(2, &structure(40, &[(8, &address), (36, &ONE)]), expected);
    // sockaddr_ib: the GID at 8
    let gid = [[27, 0, 0, 0, 0, 0, 0, 0], [0xfe, 0x80, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 3]].concat();
    let expected = Cm { source: Some(Endpoint::Ib("fe80::3".parse().unwrap())), ..id(1) };
    check(20, &structure(136, &[(0, &ONE), (8, &gid)]), expected);
}

#[test]
fn connect_and_accept() {
    let qpn = 17_u32.to_le_bytes();
    let expected = Cm { qpn: Some(17), private_data_len: Some(56), ..id(1) };
    // rdma_ucm_connect: qp_num 0, private_data_len 264, id 272; rdma_ucm_accept: 8 later
    let connect = structure(288, &[(0, &qpn), (264, &[56]), (272, &ONE)]);
    check(6, &connect, expected.clone());
    let accept = structure(296, &[(8, &qpn), (272, &[56]), (280, &ONE)]);
    // What the kernel side keeps of a request holds all that is read.
    check(8, &accept[..REQUEST], expected);
    check(6, &connect[..192], Cm { qpn: Some(17), ..Cm::default() });
}

#[test]
fn the_rest_of_the_structures() {
    // rdma_ucm_listen: id 0, backlog 4
    check(7, &structure(8, &[(0, &ONE), (4, &[128, 0, 0, 0])]), Cm { backlog: Some(128), ..id(1) });
    // rdma_ucm_reject: id 0, private_data_len 4, reason 5
    let rejected = Cm { private_data_len: Some(3), reason: Some(28), ..id(1) };
    check(9, &structure(264, &[(0, &ONE), (4, &[3, 28])]), rejected);
    // rdma_ucm_resolve_route: id 0, timeout_ms 4
    check(4, &structure(8, &[(0, &ONE), (4, &ONE)]), Cm { timeout_ms: Some(1), ..id(1) });
    // rdma_ucm_join_mcast: id 16, addr 24; rdma_ucm_join_ip_mcast: addr 16, id 44
    let group = v6(0, "ff0e::1");
    let joined = Cm { destination: ip("[ff0e::1]:0"), ..id(1) };
    check(22, &structure(152, &[(16, &ONE), (24, &group)]), joined.clone());
    check(16, &structure(48, &[(16, &group), (44, &ONE)]), joined);
    // The identifier at 8, or at 0
    for command in [1, 5, 11, 14, 17, 18, 19] {
        check(command, &structure(24, &[(8, &ONE)]), id(1));
    }
    for command in [10, 15, 23, 24] {
        check(command, &structure(24, &[(0, &ONE)]), id(1));
    }
}

#[test]
fn an_unknown_command_says_nothing() {
    let raw = RawRequest { key: VerbKey::ucma(99), core_in: &[1; 64], ..RawRequest::default() };
    assert_eq!(decode(&raw), Request::default());
}

//! Structures of ib_user_verbs.h.

use std::net::Ipv6Addr;

use agent_common::verb::{COMMAND_EXTENDED, VerbKey, interface};

use super::super::types::{Access, Ah, Caps, Cq, Mr, MrKind, Mtu, Qp, QpAttrMask, QpState, QpType, Request, Srq};
use super::super::{RawRequest, decode};
use super::{attr, check_command, structure};

const EX: u32 = COMMAND_EXTENDED;

fn u32s(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn gid(text: &str) -> ([u8; 16], Ipv6Addr) {
    let address: Ipv6Addr = text.parse().unwrap();
    (address.octets(), address)
}

#[test]
fn reg_mr() {
    // start 8, length 16, hca_va 24, pd_handle 32, access_flags 36
    let core_in = structure(
        40,
        &[
            (8, &0x7f12_3456_7000_u64.to_le_bytes()),
            (16, &(4_u64 << 20).to_le_bytes()),
            (24, &0x1000_u64.to_le_bytes()),
            (32, &3_u32.to_le_bytes()),
            (36, &7_u32.to_le_bytes()),
        ],
    );
    let mr = Mr {
        address: Some(0x7f12_3456_7000),
        length: Some(4 << 20),
        iova: Some(0x1000),
        access: Some(Access(7)),
        kind: Some(MrKind::Host),
        ..Mr::default()
    };
    check_command(9, &core_in, &Request { mr: Some(mr), pd_handle: Some(3), ..Request::default() });
}

#[test]
fn reg_mr_on_demand_is_another_kind() {
    let core_in = structure(40, &[(36, &0x41_u32.to_le_bytes())]);
    let key = VerbKey::legacy(interface::LEGACY_WRITE, 9);
    let mr = decode(&RawRequest { key, core_in: &core_in, ..RawRequest::default() }).mr.unwrap();
    assert_eq!(mr.kind, Some(MrKind::OnDemand));
}

#[test]
fn rereg_mr() {
    // mr_handle 8, start 16, length 24, hca_va 32, pd_handle 40, access_flags 44
    let core_in = structure(
        48,
        &[
            (8, &9_u32.to_le_bytes()),
            (16, &1_u64.to_le_bytes()),
            (24, &2_u64.to_le_bytes()),
            (32, &3_u64.to_le_bytes()),
            (40, &u32s(&[4, 0])),
        ],
    );
    let mr = Mr {
        handle: Some(9),
        address: Some(1),
        length: Some(2),
        iova: Some(3),
        access: Some(Access(0)),
        kind: Some(MrKind::Host),
        ..Mr::default()
    };
    check_command(11, &core_in, &Request { mr: Some(mr), pd_handle: Some(4), ..Request::default() });
}

fn created_qp(srq_handle: Option<u32>) -> Request {
    let caps = Caps { max_send_wr: 10, max_recv_wr: 11, max_send_sge: 12, max_recv_sge: 13, max_inline: 14 };
    let qp = Qp {
        qp_type: Some(QpType(2)),
        send_cq_handle: Some(21),
        recv_cq_handle: Some(22),
        srq_handle,
        caps: Some(caps),
        ..Qp::default()
    };
    Request { qp: Some(qp), pd_handle: Some(20), ..Request::default() }
}

#[test]
fn create_qp() {
    // pd_handle 16, send_cq_handle 20, ..., max_send_wr 32, qp_type 53, is_srq 54
    let numbers = u32s(&[20, 21, 22, 23, 10, 11, 12, 13, 14]);
    let core_in = structure(56, &[(16, &numbers), (53, &[2, 1])]);
    check_command(24, &core_in, &created_qp(Some(23)));
    let core_in = structure(56, &[(16, &numbers), (53, &[2, 0])]);
    check_command(24, &core_in, &created_qp(None));
}

#[test]
fn ex_create_qp() {
    // pd_handle 8, max_send_wr 24, qp_type 45, is_srq 46
    let numbers = u32s(&[20, 21, 22, 23, 10, 11, 12, 13, 14]);
    let core_in = structure(64, &[(8, &numbers), (45, &[2, 1])]);
    check_command(EX | 24, &core_in, &created_qp(Some(23)));
}

/// ib_uverbs_modify_qp with every attribute filled in and this mask.
fn modify_qp(mask: u32, is_global: u8) -> Vec<u8> {
    // dest: dgid 0, dlid 20, sgid_index 24, is_global 30, port_num 31; qp_handle 64, attr_mask 68,
    // rq_psn 76, sq_psn 80, dest_qp_num 84, qp_access_flags 88, pkey_index 92, qp_state 96,
    // cur_qp_state 97, path_mtu 98, port_num 104, timeout 105, retry_cnt 106, rnr_retry 107
    structure(
        112,
        &[
            (0, &gid("::ffff:10.0.0.7").0),
            (20, &0x1234_u16.to_le_bytes()),
            (24, &[3]),
            (30, &[is_global, 2]),
            (64, &u32s(&[5, mask])),
            (76, &u32s(&[100, 200, 300, 1])),
            (92, &7_u16.to_le_bytes()),
            (96, &[2, 1, 9]),
            (104, &[1, 14, 6, 5]),
        ],
    )
}

#[test]
fn modify_qp_to_rtr() {
    // STATE, AV, PATH_MTU, RQ_PSN, DEST_QPN
    let mask = 1 | 1 << 7 | 1 << 8 | 1 << 12 | 1 << 20;
    let qp = Qp {
        handle: Some(5),
        attr_mask: Some(QpAttrMask(mask)),
        state_to: Some(QpState(2)),
        path_mtu: Some(Mtu(9)),
        rq_psn: Some(100),
        dest_qpn: Some(300),
        gid_index: Some(3),
        remote_gid: Some(gid("::ffff:10.0.0.7").1),
        port: Some(2),
        ..Qp::default()
    };
    let expected = Request { qp: Some(qp), ..Request::default() };
    check_command(26, &modify_qp(mask, 1), &expected);
    check_command(EX | 26, &[modify_qp(mask, 1), vec![0; 8]].concat(), &expected);
}

#[test]
fn modify_qp_to_init_and_rts() {
    // STATE, CUR_STATE, ACCESS_FLAGS, PKEY_INDEX, PORT, TIMEOUT, RETRY_CNT, RNR_RETRY, SQ_PSN
    let mask = 0b111011 & !(1 << 2) | 1 << 9 | 1 << 10 | 1 << 11 | 1 << 16;
    let qp = Qp {
        handle: Some(5),
        attr_mask: Some(QpAttrMask(mask)),
        state_to: Some(QpState(2)),
        state_from: Some(QpState(1)),
        access: Some(Access(1)),
        pkey_index: Some(7),
        port: Some(1),
        timeout: Some(14),
        retry_cnt: Some(6),
        rnr_retry: Some(5),
        sq_psn: Some(200),
        ..Qp::default()
    };
    check_command(26, &modify_qp(mask, 1), &Request { qp: Some(qp), ..Request::default() });
}

#[test]
fn modify_qp_on_a_local_path_has_a_lid() {
    let mask = 1 << 7;
    let qp = Qp {
        handle: Some(5),
        attr_mask: Some(QpAttrMask(mask)),
        remote_lid: Some(0x1234),
        port: Some(2),
        ..Qp::default()
    };
    check_command(26, &modify_qp(mask, 0), &Request { qp: Some(qp), ..Request::default() });
}

#[test]
fn modify_qp_cut_before_its_mask_says_nothing() {
    let cut = &modify_qp(1, 1)[..71];
    check_command(26, cut, &Request::default());
}

#[test]
fn modify_qp_cut_after_its_mask_says_what_is_there() {
    let mask = 1 | 1 << 16 | 1 << 20;
    let qp = Qp { handle: Some(5), attr_mask: Some(QpAttrMask(mask)), sq_psn: Some(200), ..Qp::default() };
    check_command(26, &modify_qp(mask, 1)[..84], &Request { qp: Some(qp), ..Request::default() });
}

#[test]
fn create_cq() {
    let expected = |cq| Request { cq: Some(cq), ..Request::default() };
    let made = Cq { handle: None, cqe: Some(100), comp_vector: Some(3) };
    // ib_uverbs_create_cq: cqe 16, comp_vector 20; ib_uverbs_ex_create_cq: cqe 8, comp_vector 12
    check_command(18, &structure(32, &[(16, &u32s(&[100, 3]))]), &expected(made.clone()));
    check_command(EX | 18, &structure(32, &[(8, &u32s(&[100, 3]))]), &expected(made));
    // ib_uverbs_resize_cq: cq_handle 8, cqe 12
    let resized = Cq { handle: Some(4), cqe: Some(200), comp_vector: None };
    check_command(19, &structure(16, &[(8, &u32s(&[4, 200]))]), &expected(resized));
}

#[test]
fn create_srq() {
    let srq = Srq { handle: None, max_wr: Some(1000), max_sge: Some(2) };
    let expected = Request { srq: Some(srq), pd_handle: Some(6), ..Request::default() };
    // ib_uverbs_create_srq: pd_handle 16, max_wr 20, max_sge 24; ib_uverbs_create_xsrq: 4 bytes later
    check_command(32, &structure(32, &[(16, &u32s(&[6, 1000, 2]))]), &expected);
    check_command(39, &structure(48, &[(20, &u32s(&[6, 1000, 2]))]), &expected);
    // ib_uverbs_ex_create_wq: pd_handle 16, max_wr 24, max_sge 28
    check_command(EX | 52, &structure(40, &[(16, &u32s(&[6])), (24, &u32s(&[1000, 2]))]), &expected);
    // ib_uverbs_modify_srq: srq_handle 0, max_wr 8
    let changed = Srq { handle: Some(8), max_wr: Some(500), max_sge: None };
    let expected = Request { srq: Some(changed), ..Request::default() };
    check_command(33, &structure(16, &[(0, &u32s(&[8])), (8, &u32s(&[500]))]), &expected);
}

#[test]
fn create_ah() {
    // pd_handle 16, dgid 24, sgid_index 44, dlid 48, is_global 53, port_num 54
    let (octets, address) = gid("fe80::1");
    let fields: [(usize, &[u8]); 5] = [(16, &[2, 0, 0, 0]), (24, &octets), (44, &[1]), (48, &[0x10, 0]), (53, &[1, 1])];
    let ah = Ah { gid_index: Some(1), remote_gid: Some(address), remote_lid: None, port: Some(1) };
    let expected = |ah| Request { ah: Some(ah), pd_handle: Some(2), ..Request::default() };
    check_command(5, &structure(56, &fields), &expected(ah));

    let mut local = structure(56, &fields);
    local[53] = 0;
    let ah = Ah { gid_index: None, remote_gid: None, remote_lid: Some(0x10), port: Some(1) };
    check_command(5, &local, &expected(ah));
}

#[test]
fn what_ends_an_object_names_its_handle() {
    let handle = 77_u32.to_le_bytes();
    let about = Request { handle: Some(77), ..Request::default() };
    let qp = Request { qp: Some(Qp { handle: Some(77), ..Qp::default() }), ..Request::default() };
    let mr = Request { mr: Some(Mr { handle: Some(77), ..Mr::default() }), ..Request::default() };
    let cq = Request { cq: Some(Cq { handle: Some(77), ..Cq::default() }), ..Request::default() };
    let srq = Request { srq: Some(Srq { handle: Some(77), ..Srq::default() }), ..Request::default() };
    let pd = Request { pd_handle: Some(77), ..Request::default() };
    // Command, length, offset of the handle
    let rows = [
        (4, 4, 0, &pd),
        (8, 4, 0, &about),
        (13, 4, 0, &mr),
        (14, 16, 8, &pd),
        (16, 4, 0, &about),
        (20, 16, 8, &cq),
        (23, 8, 0, &cq),
        (25, 16, 8, &qp),
        (27, 16, 8, &qp),
        (28, 24, 8, &qp),
        (35, 16, 8, &srq),
        (38, 4, 0, &about),
        (EX | 51, 8, 4, &about),
        (EX | 53, 24, 4, &about),
        (EX | 54, 8, 4, &about),
        (EX | 56, 8, 4, &about),
        (EX | 57, 16, 0, &cq),
    ];
    for (command, len, offset, expected) in rows {
        check_command(command, &structure(len, &[(offset, &handle)]), expected);
    }
}

#[test]
fn the_rest_of_the_structures() {
    // ib_uverbs_query_port: port_num 8
    check_command(2, &structure(16, &[(8, &[2])]), &Request { port: Some(2), ..Request::default() });
    // ib_uverbs_open_qp: pd_handle 16, qpn 20, qp_type 24
    let qp = Qp { qpn: Some(18), qp_type: Some(QpType(10)), ..Qp::default() };
    let expected = Request { qp: Some(qp), pd_handle: Some(1), ..Request::default() };
    check_command(40, &structure(32, &[(16, &u32s(&[1, 18])), (24, &[10])]), &expected);
    // ib_uverbs_attach_mcast: gid 0, qp_handle 16, mlid 20
    let (octets, address) = gid("ff0e::1");
    let qp = Qp { handle: Some(3), remote_gid: Some(address), remote_lid: Some(0xc001), ..Qp::default() };
    let fields: [(usize, &[u8]); 3] = [(0, &octets), (16, &[3, 0, 0, 0]), (20, &[0x01, 0xc0])];
    check_command(30, &structure(24, &fields), &Request { qp: Some(qp), ..Request::default() });
    // ib_uverbs_create_flow: qp_handle 4, flow_attr.port 19
    let qp = Some(Qp { handle: Some(3), ..Qp::default() });
    let expected = Request { qp, port: Some(1), ..Request::default() };
    check_command(EX | 50, &structure(24, &[(4, &u32s(&[3])), (19, &[1])]), &expected);
}

#[test]
fn an_inline_structure_wins_over_what_was_copied() {
    let key = VerbKey::legacy(interface::LEGACY_IOCTL, 13);
    let attrs = attr(0, 4, 5);
    let request = decode(&RawRequest { key, attrs: &attrs, core_in: &[9; 8], payload: &[] });
    assert_eq!(request.mr.unwrap().handle, Some(5));
}

#[test]
fn nothing_is_read_behind_the_length_that_the_caller_gave() {
    // A reg_mr that says it is 36 bytes long: what follows is not the caller's access flags.
    let key = VerbKey::legacy(interface::LEGACY_IOCTL, 9);
    let attrs = attr(0, 36, 0x7f00_0000_0000);
    let request = decode(&RawRequest { key, attrs: &attrs, core_in: &[1; 64], payload: &[] });
    assert_eq!((request.pd_handle, request.mr.unwrap().access), (Some(0x0101_0101), None));
}

//! Attributes of ib_user_ioctl_cmds.h and of mlx5.

use agent_common::verb::VerbKey;

use super::super::types::{Access, Caps, Cq, Mr, MrKind, Qp, QpType, Request, Srq};
use super::{attr, native};

/// Where an attribute points to.
const POINTER: u64 = 0x7ffd_0000_1000;

#[track_caller]
fn check(key: VerbKey, attrs: &[Vec<u8>], payload: &[u8], expected: &Request) {
    assert_eq!(&native(key, attrs, payload), expected);
}

fn mr(mr: Mr) -> Request {
    Request { mr: Some(mr), ..Request::default() }
}

#[test]
fn create_qp() {
    let caps: Vec<u8> = [10_u32, 11, 12, 13, 14].iter().flat_map(|value| value.to_le_bytes()).collect();
    let attrs = [
        attr(0, 0, 0),
        attr(2, 0, 20),
        attr(3, 0, 23),
        attr(4, 0, 21),
        attr(5, 0, 22),
        attr(7, 8, 0x5555),
        attr(8, 20, POINTER),
        attr(9, 8, 9),
        attr(10, 4, 0),
        attr(13, 20, POINTER),
    ];
    let qp = |caps| Qp {
        qp_type: Some(QpType(9)),
        send_cq_handle: Some(21),
        recv_cq_handle: Some(22),
        srq_handle: Some(23),
        caps,
        ..Qp::default()
    };
    let expected = |caps| Request { qp: Some(qp(caps)), pd_handle: Some(20), ..Request::default() };
    let all = Caps { max_send_wr: 10, max_recv_wr: 11, max_send_sge: 12, max_recv_sge: 13, max_inline: 14 };
    let key = VerbKey::ioctl(4, 0, 14);
    check(key, &attrs, &[caps.clone(), vec![0xff; 4]].concat(), &expected(Some(all)));
    // Nothing could be copied, or not all of it
    check(key, &attrs, &[], &expected(None));
    check(key, &attrs, &caps[..19], &expected(None));
}

#[test]
fn create_cq_and_srq() {
    let cq = Cq { handle: None, cqe: Some(4096), comp_vector: Some(5) };
    let attrs = [attr(0, 0, 0), attr(1, 4, 4096), attr(2, 8, 1), attr(3, 0, u64::MAX), attr(4, 4, 5)];
    check(VerbKey::ioctl(3, 0, 0), &attrs, &[], &Request { cq: Some(cq), ..Request::default() });

    let srq = Srq { handle: None, max_wr: Some(100_000), max_sge: Some(1) };
    let attrs = [attr(1, 0, 2), attr(5, 4, 100_000), attr(6, 4, 1), attr(9, 8, 0)];
    let expected = Request { srq: Some(srq.clone()), pd_handle: Some(2), ..Request::default() };
    check(VerbKey::ioctl(5, 0, 0), &attrs, &[], &expected);
    let attrs = [attr(1, 0, 2), attr(2, 0, 7), attr(6, 4, 100_000), attr(7, 4, 1)];
    check(VerbKey::ioctl(12, 0, 0), &attrs, &[], &expected);
}

#[test]
fn upper_bytes_of_a_short_value_are_not_read() {
    let attrs = [attr(1, 4, 0xdead_beef_0000_0010)];
    let cq = Cq { cqe: Some(16), ..Cq::default() };
    check(VerbKey::ioctl(3, 0, 0), &attrs, &[], &Request { cq: Some(cq), ..Request::default() });
}

#[test]
fn a_pointer_is_no_value() {
    check(VerbKey::ioctl(3, 0, 0), &[attr(1, 16, POINTER)], &[], &Request::default());
}

#[test]
fn reg_dmabuf_mr() {
    let attrs = [
        attr(0, 0, 0),
        attr(1, 0, 3),
        attr(2, 8, 0x1000),
        attr(3, 8, 1 << 30),
        attr(4, 8, 0x7f00_0000_0000),
        attr(5, 4, 42),
        attr(6, 4, 7),
    ];
    let region = Mr {
        offset: Some(0x1000),
        length: Some(1 << 30),
        iova: Some(0x7f00_0000_0000),
        access: Some(Access(7)),
        kind: Some(MrKind::DmaBuf),
        fd: Some(42),
        ..Mr::default()
    };
    let expected = Request { pd_handle: Some(3), ..mr(region) };
    check(VerbKey::ioctl(7, 4, 0), &attrs, &[], &expected);
}

#[test]
fn a_file_descriptor_of_minus_one_stays_so() {
    let expected = mr(Mr { fd: Some(-1), kind: Some(MrKind::DmaBuf), ..Mr::default() });
    check(VerbKey::ioctl(7, 4, 0), &[attr(5, 4, 0xffff_ffff)], &[], &expected);
    check(VerbKey::ioctl(7, 5, 0), &[attr(7, 0, u64::MAX)], &[], &expected);
}

#[test]
fn reg_mr() {
    let base = [attr(1, 0, 3), attr(3, 8, 0x1000), attr(4, 8, 0x2000), attr(5, 8, 0x3000)];
    let region = |access, kind| Mr {
        address: Some(0x2000),
        length: Some(0x3000),
        iova: Some(0x1000),
        access,
        kind,
        ..Mr::default()
    };
    let key = VerbKey::ioctl(7, 5, 0);
    let rows = [
        (Some(attr(6, 4, 1)), Some(Access(1)), Some(MrKind::Host)),
        (Some(attr(6, 8, 0x40)), Some(Access(0x40)), Some(MrKind::OnDemand)),
        (None, None, None),
    ];
    for (more, access, kind) in rows {
        let attrs: Vec<_> = base.iter().cloned().chain(more).collect();
        check(key, &attrs, &[], &Request { pd_handle: Some(3), ..mr(region(access, kind)) });
    }
    // By file descriptor: a dma-buf whatever the flags say
    let attrs = [attr(6, 4, 0x40), attr(7, 0, 9), attr(8, 8, 0x4000)];
    let by_fd = Mr {
        offset: Some(0x4000),
        access: Some(Access(0x40)),
        kind: Some(MrKind::DmaBuf),
        fd: Some(9),
        ..Mr::default()
    };
    check(key, &attrs, &[], &mr(by_fd));
}

#[test]
fn device_memory() {
    let attrs = [attr(1, 8, 64), attr(2, 8, 128), attr(3, 0, 3), attr(4, 4, 0x21), attr(5, 0, 8)];
    let region = Mr {
        offset: Some(64),
        length: Some(128),
        access: Some(Access(0x21)),
        kind: Some(MrKind::Dm),
        dm_handle: Some(8),
        ..Mr::default()
    };
    check(VerbKey::ioctl(7, 0, 0), &attrs, &[], &Request { pd_handle: Some(3), ..mr(region) });
    let region = Mr { length: Some(4096), kind: Some(MrKind::Dm), ..Mr::default() };
    check(VerbKey::ioctl(14, 0, 0), &[attr(1, 8, 4096), attr(2, 4, 12)], &[], &mr(region));
}

#[test]
fn advise_mr_names_the_first_range() {
    // struct ib_uverbs_sge: addr 0, length 8, lkey 12
    let sge = [&0x7000_u64.to_le_bytes()[..], &4096_u32.to_le_bytes(), &1_u32.to_le_bytes()].concat();
    let region = Mr { address: Some(0x7000), length: Some(4096), ..Mr::default() };
    let attrs = [attr(0, 0, 3), attr(3, 32, POINTER)];
    check(VerbKey::ioctl(7, 2, 0), &attrs, &sge, &Request { pd_handle: Some(3), ..mr(region) });
}

#[test]
fn what_ends_an_object_names_its_handle() {
    let about = Request { handle: Some(77), ..Request::default() };
    let qp = Request { qp: Some(Qp { handle: Some(77), ..Qp::default() }), ..Request::default() };
    let cq = Request { cq: Some(Cq { handle: Some(77), ..Cq::default() }), ..Request::default() };
    let srq = Request { srq: Some(Srq { handle: Some(77), ..Srq::default() }), ..Request::default() };
    let region = mr(Mr { handle: Some(77), ..Mr::default() });
    let pd = Request { pd_handle: Some(77), ..Request::default() };
    let rows = [
        (1, 0, &pd),
        (3, 1, &cq),
        (4, 1, &qp),
        (5, 1, &srq),
        (6, 0, &about),
        (7, 1, &region),
        (7, 3, &region),
        (8, 0, &about),
        (9, 0, &about),
        (10, 0, &about),
        (11, 0, &about),
        (12, 1, &about),
        (13, 1, &about),
        (14, 1, &about),
        (15, 1, &about),
        (17, 1, &about),
        (19, 1, &about),
    ];
    for (object, method, expected) in rows {
        check(VerbKey::ioctl(object, method, 0), &[attr(0, 0, 77), attr(1, 4, 5)], &[], expected);
    }
}

#[test]
fn ports_and_gid_indices_that_are_asked_about() {
    let port = Request { port: Some(2), ..Request::default() };
    check(VerbKey::ioctl(0, 2, 0), &[attr(0, 8, 2), attr(1, 60, POINTER)], &[], &port);
    let both = Request { gid_index: Some(200), ..port.clone() };
    check(VerbKey::ioctl(0, 6, 0), &[attr(0, 4, 2), attr(1, 4, 200)], &[], &both);
    // A port that no device has is not cut down to one that it may have
    check(VerbKey::ioctl(0, 2, 0), &[attr(0, 8, 258)], &[], &Request::default());
}

#[test]
fn mlx5_commands_say_their_opcode() {
    // CREATE_MKEY is 0x200 (include/linux/mlx5/mlx5_ifc.h)
    let head = [0x02, 0x00, 0, 0, 0, 0, 0, 0];
    let opcode = Request { devx_opcode: Some(0x200), ..Request::default() };
    check(VerbKey::ioctl(0x1001, 0x1000, 1), &[attr(0x1001, 272, POINTER)], &head, &opcode);
    check(VerbKey::ioctl(0x1000, 0x1000, 1), &[attr(0x1000, 64, POINTER)], &head, &opcode);
    let changed = Request { handle: Some(4), ..opcode };
    let attrs = [attr(0x1000, 0, 4), attr(0x1001, 64, POINTER)];
    check(VerbKey::ioctl(0x1001, 0x1002, 1), &attrs, &head, &changed);
    // The same ids of another driver mean something else
    check(VerbKey::ioctl(0x1001, 0x1000, 6), &[attr(0x1001, 272, POINTER)], &head, &Request::default());
}

#[test]
fn mlx5_memory_by_address_or_dma_buf() {
    let key = VerbKey::ioctl(0x1002, 0x1000, 1);
    let attrs = [attr(0x1001, 8, 0x5000), attr(0x1002, 8, 4096), attr(0x1003, 4, 1)];
    let host = Mr {
        address: Some(0x5000),
        length: Some(4096),
        access: Some(Access(1)),
        kind: Some(MrKind::Host),
        ..Mr::default()
    };
    check(key, &attrs, &[], &mr(host.clone()));
    let with_fd: Vec<_> = attrs.iter().cloned().chain([attr(0x1006, 0, 12)]).collect();
    check(key, &with_fd, &[], &mr(Mr { fd: Some(12), kind: Some(MrKind::DmaBuf), ..host }));
}

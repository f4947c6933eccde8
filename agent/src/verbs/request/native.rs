//! Requests of ioctl methods: one row for each attribute (include/uapi/rdma/ib_user_ioctl_cmds.h).

use agent_common::verb::{DRIVER_MLX5, VerbKey, payload_of};

use super::bytes::{Attr, Attrs, Bytes};
use super::types::{Access, MrKind, QpType, Request};
use super::{RawRequest, legacy};

/// What an attribute sets.
struct Field {
    key: VerbKey,
    attr: u16,
    set: fn(Attr, &mut Request),
}

const fn field(object: u16, method: u16, attr: u16, set: fn(Attr, &mut Request)) -> Field {
    Field { key: VerbKey::ioctl(object, method, 0), attr, set }
}

const fn mlx5(object: u16, method: u16, attr: u16, set: fn(Attr, &mut Request)) -> Field {
    Field { key: VerbKey::ioctl(object, method, DRIVER_MLX5 as u32), attr, set }
}

fn handle(attr: Attr, request: &mut Request) {
    request.handle = attr.u32();
}

fn pd(attr: Attr, request: &mut Request) {
    request.pd_handle = attr.u32();
}

fn port(attr: Attr, request: &mut Request) {
    request.port = attr.u8();
}

fn mr_length(attr: Attr, request: &mut Request) {
    request.mr().length = attr.value();
}

fn mr_access(attr: Attr, request: &mut Request) {
    request.mr().access = attr.value().map(Access);
}

const FIELDS: &[Field] = &[
    // DEVICE: QUERY_PORT, QUERY_GID_ENTRY, QUERY_PORT_SPEED
    field(0, 2, 0, port),
    field(0, 6, 0, port),
    field(0, 6, 1, |attr, request| request.gid_index = attr.u32()),
    field(0, 7, 0, port),
    // PD DESTROY
    field(1, 0, 0, pd),
    // CQ CREATE, DESTROY
    field(3, 0, 1, |attr, request| request.cq().cqe = attr.u32()),
    field(3, 0, 4, |attr, request| request.cq().comp_vector = attr.u32()),
    field(3, 1, 0, |attr, request| request.cq().handle = attr.u32()),
    // QP CREATE, DESTROY, ATTACH_COMP_CNTR
    field(4, 0, 2, pd),
    field(4, 0, 3, |attr, request| request.qp().srq_handle = attr.u32()),
    field(4, 0, 4, |attr, request| request.qp().send_cq_handle = attr.u32()),
    field(4, 0, 5, |attr, request| request.qp().recv_cq_handle = attr.u32()),
    field(4, 0, 9, |attr, request| request.qp().qp_type = attr.value().map(QpType)),
    field(4, 1, 0, |attr, request| request.qp().handle = attr.u32()),
    field(4, 2, 0, |attr, request| request.qp().handle = attr.u32()),
    // SRQ CREATE, DESTROY
    field(5, 0, 1, pd),
    field(5, 0, 5, |attr, request| request.srq().max_wr = attr.u32()),
    field(5, 0, 6, |attr, request| request.srq().max_sge = attr.u32()),
    field(5, 1, 0, |attr, request| request.srq().handle = attr.u32()),
    // AH DESTROY
    field(6, 0, 0, handle),
    // MR DM_MR_REG
    field(7, 0, 1, |attr, request| request.mr().offset = attr.value()),
    field(7, 0, 2, mr_length),
    field(7, 0, 3, pd),
    field(7, 0, 4, mr_access),
    field(7, 0, 5, |attr, request| request.mr().dm_handle = attr.u32()),
    // MR DESTROY, ADVISE, QUERY
    field(7, 1, 0, |attr, request| request.mr().handle = attr.u32()),
    field(7, 2, 0, pd),
    field(7, 3, 0, |attr, request| request.mr().handle = attr.u32()),
    // MR REG_DMABUF_MR
    field(7, 4, 1, pd),
    field(7, 4, 2, |attr, request| request.mr().offset = attr.value()),
    field(7, 4, 3, mr_length),
    field(7, 4, 4, |attr, request| request.mr().iova = attr.value()),
    field(7, 4, 5, |attr, request| request.mr().fd = attr.fd()),
    field(7, 4, 6, mr_access),
    // MR REG_MR (host memory, or a dma-buf if a file descriptor is given)
    field(7, 5, 1, pd),
    field(7, 5, 3, |attr, request| request.mr().iova = attr.value()),
    field(7, 5, 4, |attr, request| request.mr().address = attr.value()),
    field(7, 5, 5, mr_length),
    field(7, 5, 6, mr_access),
    field(7, 5, 7, |attr, request| request.mr().fd = attr.fd()),
    field(7, 5, 8, |attr, request| request.mr().offset = attr.value()),
    // DESTROY of MW, FLOW, XRCD, RWQ_IND_TBL
    field(8, 0, 0, handle),
    field(9, 0, 0, handle),
    field(10, 0, 0, handle),
    field(11, 0, 0, handle),
    // WQ CREATE, DESTROY
    field(12, 0, 1, pd),
    field(12, 0, 6, |attr, request| request.srq().max_wr = attr.u32()),
    field(12, 0, 7, |attr, request| request.srq().max_sge = attr.u32()),
    field(12, 1, 0, handle),
    // FLOW_ACTION DESTROY, ESP_MODIFY
    field(13, 1, 0, handle),
    field(13, 2, 0, handle),
    // DM ALLOC, FREE
    field(14, 0, 1, mr_length),
    field(14, 1, 0, handle),
    // COUNTERS DESTROY, READ
    field(15, 1, 0, handle),
    field(15, 2, 0, handle),
    // DMAH FREE
    field(17, 1, 0, handle),
    // COMP_CNTR DESTROY, MODIFY, READ
    field(19, 1, 0, handle),
    field(19, 2, 0, handle),
    field(19, 3, 0, handle),
    // mlx5: QUERY_PORT of DEVICE, QUERY of PD (include/uapi/rdma/mlx5_user_ioctl_cmds.h)
    mlx5(0, 0x1000, 0x1000, port),
    mlx5(1, 0x1000, 0x1000, pd),
    // mlx5 DEVX_OBJ DESTROY, MODIFY, QUERY, ASYNC_QUERY
    mlx5(0x1001, 0x1001, 0x1000, handle),
    mlx5(0x1001, 0x1002, 0x1000, handle),
    mlx5(0x1001, 0x1003, 0x1000, handle),
    mlx5(0x1001, 0x1004, 0x1000, handle),
    // mlx5 DEVX_UMEM REG, DEREG
    mlx5(0x1002, 0x1000, 0x1001, |attr, request| request.mr().address = attr.value()),
    mlx5(0x1002, 0x1000, 0x1002, mr_length),
    mlx5(0x1002, 0x1000, 0x1003, mr_access),
    mlx5(0x1002, 0x1000, 0x1006, |attr, request| request.mr().fd = attr.fd()),
    mlx5(0x1002, 0x1001, 0x1000, handle),
];

/// The kinds of memory that methods register; `None` where a file descriptor or the flags decide.
const KINDS: &[(VerbKey, Option<MrKind>)] = &[
    (VerbKey::ioctl(7, 0, 0), Some(MrKind::Dm)),
    (VerbKey::ioctl(7, 4, 0), Some(MrKind::DmaBuf)),
    (VerbKey::ioctl(7, 5, 0), None),
    (VerbKey::ioctl(14, 0, 0), Some(MrKind::Dm)),
    (VerbKey::ioctl(0x1002, 0x1000, DRIVER_MLX5 as u32), None),
];

pub(super) fn decode(raw: &RawRequest<'_>, attrs: &Attrs<'_>, request: &mut Request) {
    for field in FIELDS.iter().filter(|field| field.key == raw.key) {
        if let Some(attr) = attrs.find(field.attr) {
            (field.set)(attr, request);
        }
    }
    kind(raw.key, request);
    payload(raw, attrs, request);
}

fn kind(key: VerbKey, request: &mut Request) {
    let Some((_, fixed)) = KINDS.iter().find(|kind| kind.0 == key) else { return };
    let mr = request.mr();
    let by_fd = mr.fd.map(|_| MrKind::DmaBuf);
    mr.kind = fixed.or(by_fd).or_else(|| mr.access.map(Access::host_kind));
}

/// The attribute that is pointed to, as long as its length says.
fn payload(raw: &RawRequest<'_>, attrs: &Attrs<'_>, request: &mut Request) {
    let Some(row) = payload_of(raw.key) else { return };
    let Some(attr) = attrs.find(row.attr) else { return };
    let bytes = Bytes(raw.payload.get(..usize::from(attr.len)).unwrap_or(raw.payload));
    match (raw.key.object(), raw.key.method()) {
        // struct ib_uverbs_qp_cap
        (4, 0) => request.qp().caps = legacy::caps(bytes, 0),
        // struct ib_uverbs_sge: addr at 0, length at 8
        (7, 2) => {
            let mr = request.mr();
            mr.address = bytes.u64(0);
            mr.length = bytes.u32(8).map(u64::from);
        }
        // An mlx5 command begins with its opcode, in network order (mlx5_ifc_*_in_bits)
        _ => request.devx_opcode = bytes.u16_network(0),
    }
}

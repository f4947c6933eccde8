//! What a call asked for, to the wire and back.

use std::net::Ipv6Addr;

use proto::v1;

use super::{Result, WireError, narrow, parse};
use crate::verbs::request::types::{
    Access, Ah, Caps, Cm, Cq, Endpoint, Mr, MrKind, Mtu, Qp, QpAttrMask, QpState, QpType, Request, Srq,
};

/// The kinds of memory on both sides.
const MR_KINDS: [(MrKind, v1::MrKind); 4] = [
    (MrKind::Host, v1::MrKind::Host),
    (MrKind::DmaBuf, v1::MrKind::Dmabuf),
    (MrKind::OnDemand, v1::MrKind::OnDemand),
    (MrKind::Dm, v1::MrKind::Dm),
];

fn gid(text: Option<String>) -> Result<Option<Ipv6Addr>> {
    text.map(|text| parse("remote_gid", &text)).transpose()
}

impl From<&Request> for v1::Request {
    fn from(request: &Request) -> Self {
        Self {
            qp: request.qp.as_ref().map(Into::into),
            mr: request.mr.as_ref().map(Into::into),
            cq: request.cq.as_ref().map(Into::into),
            srq: request.srq.as_ref().map(Into::into),
            ah: request.ah.as_ref().map(Into::into),
            cm: request.cm.as_ref().map(Into::into),
            pd_handle: request.pd_handle,
            handle: request.handle,
            port: request.port.map(Into::into),
            gid_index: request.gid_index,
            devx_opcode: request.devx_opcode.map(Into::into),
        }
    }
}

impl TryFrom<v1::Request> for Request {
    type Error = WireError;

    fn try_from(wire: v1::Request) -> Result<Self> {
        Ok(Self {
            qp: wire.qp.map(TryInto::try_into).transpose()?,
            mr: wire.mr.map(TryInto::try_into).transpose()?,
            cq: wire.cq.map(Into::into),
            srq: wire.srq.map(Into::into),
            ah: wire.ah.map(TryInto::try_into).transpose()?,
            cm: wire.cm.map(TryInto::try_into).transpose()?,
            pd_handle: wire.pd_handle,
            handle: wire.handle,
            port: narrow("port", wire.port)?,
            gid_index: wire.gid_index,
            devx_opcode: narrow("devx_opcode", wire.devx_opcode)?,
        })
    }
}

impl From<&Qp> for v1::Qp {
    fn from(qp: &Qp) -> Self {
        Self {
            handle: qp.handle,
            r#type: qp.qp_type.map(|kind| kind.0),
            state_from: qp.state_from.map(|state| state.0.into()),
            state_to: qp.state_to.map(|state| state.0.into()),
            attr_mask: qp.attr_mask.map(|mask| mask.0),
            caps: qp.caps.map(Into::into),
            access: qp.access.map(|access| access.0),
            sq_psn: qp.sq_psn,
            rq_psn: qp.rq_psn,
            path_mtu: qp.path_mtu.map(|mtu| mtu.0.into()),
            dest_qpn: qp.dest_qpn,
            gid_index: qp.gid_index.map(Into::into),
            remote_gid: qp.remote_gid.map(|gid| gid.to_string()),
            remote_lid: qp.remote_lid.map(Into::into),
            port: qp.port.map(Into::into),
            pkey_index: qp.pkey_index.map(Into::into),
            timeout: qp.timeout.map(Into::into),
            retry_cnt: qp.retry_cnt.map(Into::into),
            rnr_retry: qp.rnr_retry.map(Into::into),
            send_cq_handle: qp.send_cq_handle,
            recv_cq_handle: qp.recv_cq_handle,
            srq_handle: qp.srq_handle,
            qpn: qp.qpn,
        }
    }
}

impl TryFrom<v1::Qp> for Qp {
    type Error = WireError;

    fn try_from(wire: v1::Qp) -> Result<Self> {
        Ok(Self {
            handle: wire.handle,
            qp_type: wire.r#type.map(QpType),
            state_from: narrow("state_from", wire.state_from)?.map(QpState),
            state_to: narrow("state_to", wire.state_to)?.map(QpState),
            attr_mask: wire.attr_mask.map(QpAttrMask),
            caps: wire.caps.map(Into::into),
            access: wire.access.map(Access),
            sq_psn: wire.sq_psn,
            rq_psn: wire.rq_psn,
            path_mtu: narrow("path_mtu", wire.path_mtu)?.map(Mtu),
            dest_qpn: wire.dest_qpn,
            gid_index: narrow("gid_index", wire.gid_index)?,
            remote_gid: gid(wire.remote_gid)?,
            remote_lid: narrow("remote_lid", wire.remote_lid)?,
            port: narrow("port", wire.port)?,
            pkey_index: narrow("pkey_index", wire.pkey_index)?,
            timeout: narrow("timeout", wire.timeout)?,
            retry_cnt: narrow("retry_cnt", wire.retry_cnt)?,
            rnr_retry: narrow("rnr_retry", wire.rnr_retry)?,
            send_cq_handle: wire.send_cq_handle,
            recv_cq_handle: wire.recv_cq_handle,
            srq_handle: wire.srq_handle,
            qpn: wire.qpn,
        })
    }
}

impl From<Caps> for v1::QpCaps {
    fn from(caps: Caps) -> Self {
        let Caps { max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline } = caps;
        Self { max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline }
    }
}

impl From<v1::QpCaps> for Caps {
    fn from(wire: v1::QpCaps) -> Self {
        let v1::QpCaps { max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline } = wire;
        Self { max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline }
    }
}

impl From<&Mr> for v1::Mr {
    fn from(mr: &Mr) -> Self {
        let kind = MR_KINDS.iter().find(|(domain, _)| Some(*domain) == mr.kind);
        Self {
            handle: mr.handle,
            address: mr.address,
            offset: mr.offset,
            length: mr.length,
            iova: mr.iova,
            access: mr.access.map(|access| access.0),
            kind: kind.map_or(v1::MrKind::Unspecified, |(_, wire)| *wire).into(),
            fd: mr.fd,
            dm_handle: mr.dm_handle,
        }
    }
}

impl TryFrom<v1::Mr> for Mr {
    type Error = WireError;

    fn try_from(wire: v1::Mr) -> Result<Self> {
        // A kind that this version does not know is one that it cannot tell: as if absent.
        let kind = MR_KINDS.iter().find(|(_, known)| *known == wire.kind());
        Ok(Self {
            kind: kind.map(|(domain, _)| *domain),
            handle: wire.handle,
            address: wire.address,
            offset: wire.offset,
            length: wire.length,
            iova: wire.iova,
            access: wire.access.map(Access),
            fd: wire.fd,
            dm_handle: wire.dm_handle,
        })
    }
}

impl From<&Cq> for v1::Cq {
    fn from(cq: &Cq) -> Self {
        Self { handle: cq.handle, cqe: cq.cqe, comp_vector: cq.comp_vector }
    }
}

impl From<v1::Cq> for Cq {
    fn from(wire: v1::Cq) -> Self {
        Self { handle: wire.handle, cqe: wire.cqe, comp_vector: wire.comp_vector }
    }
}

impl From<&Srq> for v1::Srq {
    fn from(srq: &Srq) -> Self {
        Self { handle: srq.handle, max_wr: srq.max_wr, max_sge: srq.max_sge }
    }
}

impl From<v1::Srq> for Srq {
    fn from(wire: v1::Srq) -> Self {
        Self { handle: wire.handle, max_wr: wire.max_wr, max_sge: wire.max_sge }
    }
}

impl From<&Ah> for v1::Ah {
    fn from(ah: &Ah) -> Self {
        Self {
            gid_index: ah.gid_index.map(Into::into),
            remote_gid: ah.remote_gid.map(|gid| gid.to_string()),
            remote_lid: ah.remote_lid.map(Into::into),
            port: ah.port.map(Into::into),
        }
    }
}

impl TryFrom<v1::Ah> for Ah {
    type Error = WireError;

    fn try_from(wire: v1::Ah) -> Result<Self> {
        Ok(Self {
            gid_index: narrow("gid_index", wire.gid_index)?,
            remote_gid: gid(wire.remote_gid)?,
            remote_lid: narrow("remote_lid", wire.remote_lid)?,
            port: narrow("port", wire.port)?,
        })
    }
}

impl From<&Cm> for v1::Cm {
    fn from(cm: &Cm) -> Self {
        Self {
            id: cm.id,
            source: cm.source.map(Into::into),
            destination: cm.destination.map(Into::into),
            timeout_ms: cm.timeout_ms,
            qpn: cm.qpn,
            private_data_len: cm.private_data_len.map(Into::into),
            backlog: cm.backlog,
            reason: cm.reason.map(Into::into),
        }
    }
}

impl TryFrom<v1::Cm> for Cm {
    type Error = WireError;

    fn try_from(wire: v1::Cm) -> Result<Self> {
        Ok(Self {
            id: wire.id,
            source: endpoint(wire.source)?,
            destination: endpoint(wire.destination)?,
            timeout_ms: wire.timeout_ms,
            qpn: wire.qpn,
            private_data_len: narrow("private_data_len", wire.private_data_len)?,
            backlog: wire.backlog,
            reason: narrow("reason", wire.reason)?,
        })
    }
}

impl From<Endpoint> for v1::Endpoint {
    fn from(endpoint: Endpoint) -> Self {
        let address = match endpoint {
            Endpoint::Ip(address) => v1::endpoint::Address::Ip(address.to_string()),
            Endpoint::Ib(gid) => v1::endpoint::Address::Gid(gid.to_string()),
        };
        Self { address: Some(address) }
    }
}

/// An address of a family that this version does not know is absent.
fn endpoint(wire: Option<v1::Endpoint>) -> Result<Option<Endpoint>> {
    match wire.and_then(|wire| wire.address) {
        Some(v1::endpoint::Address::Ip(text)) => Ok(Some(Endpoint::Ip(parse("ip", &text)?))),
        Some(v1::endpoint::Address::Gid(text)) => Ok(Some(Endpoint::Ib(parse("gid", &text)?))),
        None => Ok(None),
    }
}

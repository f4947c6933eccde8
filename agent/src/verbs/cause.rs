//! What most likely lies behind a failure, in one sentence, from the answer, the request and what the host shows.
//!
//! A cause is told only where the kernel function that refused leaves few; everything else is better said by its error.

use std::fmt::Write as _;

use crate::event::Failure;
use crate::host::rdma::RdmaDevice;
use crate::verbs::names::is_named;

const EAGAIN: i32 = 11;
const ENOMEM: i32 = 12;
const EFAULT: i32 = 14;
const EBUSY: i32 = 16;
const ENODATA: i32 = 61;
const EOPNOTSUPP: i32 = 95;
const ETIMEDOUT: i32 = 110;

/// How many entries of a GID table are listed.
const GIDS: usize = 6;

/// The likely cause; `None` where there is more than a guess to be made.
pub(crate) fn cause(failure: &Failure, device: Option<&RdmaDevice>) -> Option<String> {
    let function = failure.answer.function.as_str();
    match (function, failure.errno) {
        // A number without a name says nothing of the device: nothing may be meant by it.
        (_, EOPNOTSUPP) if failure.unsupported && is_named(failure.key) => {
            Some(format!("{} cannot do this", failure.device.as_deref().unwrap_or("the device")))
        }
        ("rdma_get_gid_attr", ENODATA) => Some(empty_gid(failure, device)),
        ("rdma_addr_find_l2_eth_by_grh", ETIMEDOUT) => Some(no_neighbour(failure)),
        ("ib_umem_get" | "__ib_umem_get_va", ENOMEM) => {
            Some("the process may not lock so much memory (RLIMIT_MEMLOCK, `ulimit -l`), or there is none left".into())
        }
        ("ib_umem_get" | "__ib_umem_get_va", EFAULT) => {
            Some("the address range is not mapped, or not writable though the access flags ask for writing".into())
        }
        ("ib_rdmacg_try_charge", EAGAIN) => Some("the limit of the process's cgroup is reached (rdma.max)".into()),
        ("uverbs_free_pd", EBUSY) => Some("MRs, QPs, AHs or SRQs of the PD are still there".into()),
        ("ib_destroy_cq_user" | "uverbs_free_cq", EBUSY) => Some("QPs still use the CQ".into()),
        ("uverbs_free_mr", EBUSY) => Some("memory windows are still bound to the MR".into()),
        _ => failure.firmware.map(|firmware| {
            format!(
                "the firmware refused command {:#x} with status {:#x}, syndrome {:#010x}: the vendor knows the syndrome",
                firmware.opcode, firmware.status, firmware.syndrome
            )
        }),
    }
}

/// Which GID index the call used, and which would have served.
fn empty_gid(failure: &Failure, device: Option<&RdmaDevice>) -> String {
    let qp = failure.request.qp.as_ref();
    let of_qp = qp.and_then(|qp| qp.gid_index).map(u32::from).or(failure.request.gid_index);
    let index = of_qp.or_else(|| failure.request.ah.as_ref().and_then(|ah| ah.gid_index).map(u32::from));
    let mut text = index.map_or_else(|| "the GID index".to_owned(), |index| format!("GID index {index}"));
    text.push_str(" is empty");
    let number = super::json::port(failure).map_or(1, u32::from);
    let Some((device, port)) = device.and_then(|device| Some((device, device.port(number)?))) else { return text };
    let _ = write!(text, " on {} port {number}; in use are", device.name);
    for gid in port.gids.iter().take(GIDS) {
        let kind = gid.kind.map_or("", |kind| kind.name());
        let _ = write!(text, " {} ({kind} {}),", gid.index, address(gid.gid));
    }
    text.pop();
    text
}

fn no_neighbour(failure: &Failure) -> String {
    let of_qp = failure.request.qp.as_ref().and_then(|qp| qp.remote_gid);
    let remote = of_qp.or_else(|| failure.request.ah.as_ref().and_then(|ah| ah.remote_gid));
    let whom = remote.map_or_else(|| "the remote GID".to_owned(), address);
    format!("{whom} does not answer (ARP or neighbour discovery), or no route leads there")
}

/// A GID for people: an IPv4 address where it carries one.
fn address(gid: std::net::Ipv6Addr) -> String {
    gid.to_ipv4_mapped().map_or_else(|| gid.to_string(), |v4| v4.to_string())
}

#[cfg(test)]
mod tests {
    use agent_common::verb::{VerbKey, interface};

    use super::*;
    use crate::event::{Event, Firmware};
    use crate::host::rdma::RdmaFacts;
    use crate::host::roots::Roots;
    use crate::verbs::samples;

    fn failure(function: &str, errno: i32) -> Failure {
        let Event::Verbs(sample) = samples::modify_qp() else { panic!("a failure") };
        let mut failure = *sample;
        failure.errno = errno;
        failure.answer.errno = errno;
        failure.answer.function = function.to_owned();
        failure.unsupported = errno == EOPNOTSUPP;
        failure.firmware = None;
        failure
    }

    #[test]
    fn causes_are_told_where_the_answer_leaves_few() {
        let rows = [
            ("ib_umem_get", ENOMEM, Some("RLIMIT_MEMLOCK")),
            ("__ib_umem_get_va", EFAULT, Some("not mapped")),
            ("ib_umem_get", 22, None),
            ("uverbs_free_pd", EBUSY, Some("still there")),
            ("ib_destroy_cq_user", EBUSY, Some("QPs")),
            ("ib_rdmacg_try_charge", EAGAIN, Some("rdma.max")),
            ("rdma_addr_find_l2_eth_by_grh", ETIMEDOUT, Some("does not answer")),
            ("rdma_get_gid_attr", ENODATA, Some("is empty")),
            ("rxe_qp_chk_init", EOPNOTSUPP, Some("cannot do this")),
            ("rxe_qp_chk_attr", 22, None),
        ];
        for (function, errno, expected) in rows {
            let found = cause(&failure(function, errno), None);
            assert_eq!(found.is_some(), expected.is_some(), "{function} {errno}: {found:?}");
            let text = found.unwrap_or_default();
            assert!(text.contains(expected.unwrap_or_default()), "{function} {errno}: {text}");
        }
    }

    #[test]
    fn a_number_without_a_name_says_nothing_of_the_device() {
        let mut failure = failure("ib_uverbs_write", EOPNOTSUPP);
        failure.key = VerbKey::legacy(interface::LEGACY_WRITE, 99);
        assert_eq!(cause(&failure, None), None);
    }

    #[test]
    fn a_firmware_s_syndrome_is_told() {
        let mut failure = failure("mlx5/mlx5_cmd", 22);
        failure.firmware = Some(Firmware { opcode: 0x200, op_mod: 0, status: 3, syndrome: 0x1a_2b3c });
        assert!(cause(&failure, None).is_some_and(|text| text.contains("0x001a2b3c")));
    }

    #[test]
    fn the_gids_that_would_serve_are_listed() {
        let tree = tempfile::tempdir().unwrap();
        let port = tree.path().join("sys/class/infiniband/mlx5_0/ports/1");
        let files = [
            ("gids/0", "fe80:0000:0000:0000:0000:0000:0000:0001"),
            ("gids/3", "0000:0000:0000:0000:0000:ffff:0a4d:0001"),
            ("gid_attrs/types/0", "IB/RoCE v1"),
            ("gid_attrs/types/3", "RoCE v2"),
        ];
        for (name, text) in files {
            let path = port.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let facts = RdmaFacts::read(&Roots::at(tree.path().join("sys"), tree.path().join("proc")));
        let mut failure = failure("rdma_get_gid_attr", ENODATA);
        failure.request.port = Some(1);
        failure.request.qp = Some(crate::verbs::request::types::Qp { gid_index: Some(200), ..Default::default() });
        let text = cause(&failure, facts.device("mlx5_0")).unwrap();
        assert_eq!(
            text,
            "GID index 200 is empty on mlx5_0 port 1; in use are 0 (IB/RoCE v1 fe80::1), 3 (RoCE v2 10.77.0.1)"
        );
    }
}

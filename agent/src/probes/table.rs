//! The rows.

use agent_common::hook::role;

use super::{Fails, Hook, Layer, Program, Subject};

const UVERBS: &[&str] = &["ib_uverbs", "ib_core"];
const CORE: &[&str] = &["ib_core", "ib_uverbs"];
const RXE: &[&str] = &["rdma_rxe"];

const fn row(name: &'static str, layer: Layer, functions: &'static [&'static str]) -> Hook {
    Hook {
        name,
        layer,
        subject: Subject::Verbs,
        program: Program::Inner,
        functions,
        fails: Fails::Int,
        modules: CORE,
        default: true,
        verified: true,
    }
}

const fn syscall(name: &'static str, role: u8, functions: &'static [&'static str], fails: Fails) -> Hook {
    Hook { program: Program::Syscall(role), fails, modules: &["ib_uverbs"], ..row(name, Layer::Syscall, functions) }
}

const fn uverbs(name: &'static str, functions: &'static [&'static str]) -> Hook {
    Hook { modules: UVERBS, ..row(name, Layer::Core, functions) }
}

const fn core(name: &'static str, functions: &'static [&'static str], fails: Fails) -> Hook {
    Hook { fails, ..row(name, Layer::Core, functions) }
}

const fn driver(modules: &'static [&'static str], name: &'static str, functions: &'static [&'static str]) -> Hook {
    Hook { modules, ..row(name, Layer::Driver, functions) }
}

/// Every hook.
pub(crate) const TABLE: &[Hook] = &[
    syscall("uverbs_ioctl", role::IOCTL, &["ib_uverbs_ioctl"], Fails::Long),
    syscall("uverbs_write", role::WRITE, &["ib_uverbs_write"], Fails::Long),
    syscall("uverbs_mmap", role::MMAP, &["ib_uverbs_mmap"], Fails::Int),
    syscall("uverbs_open", role::OPEN, &["ib_uverbs_open"], Fails::Int),
    Hook { modules: &["rdma_ucm"], ..syscall("ucma_write", role::UCMA, &["ucma_write"], Fails::Long) },
    Hook {
        program: Program::Framework,
        modules: UVERBS,
        ..row("uverbs_cmd_verbs", Layer::Syscall, &["ib_uverbs_cmd_verbs"])
    },
    Hook {
        program: Program::Framework,
        ..uverbs("uverbs_invoke_write", &["ib_uverbs_handler_UVERBS_METHOD_INVOKE_WRITE"])
    },
    uverbs("uverbs_reg_mr", &["ib_uverbs_reg_mr"]),
    uverbs("uverbs_modify_qp", &["ib_uverbs_modify_qp"]),
    uverbs("uverbs_create_ah", &["ib_uverbs_create_ah"]),
    uverbs("uverbs_cq_create", &["ib_uverbs_handler_UVERBS_METHOD_CQ_CREATE"]),
    uverbs("uverbs_qp_create", &["ib_uverbs_handler_UVERBS_METHOD_QP_CREATE"]),
    uverbs("uverbs_srq_create", &["ib_uverbs_handler_UVERBS_METHOD_SRQ_CREATE"]),
    uverbs("uverbs_reg_dmabuf_mr", &["ib_uverbs_handler_UVERBS_METHOD_REG_DMABUF_MR"]),
    uverbs("uverbs_free_pd", &["uverbs_free_pd"]),
    uverbs("uverbs_free_mr", &["uverbs_free_mr"]),
    uverbs("uverbs_free_qp", &["uverbs_free_qp"]),
    uverbs("uverbs_free_cq", &["uverbs_free_cq"]),
    uverbs("uverbs_free_srq", &["uverbs_free_srq"]),
    core("umem_get", &["__ib_umem_get_va", "ib_umem_get"], Fails::Long),
    core("umem_dmabuf_get", &["ib_umem_dmabuf_get"], Fails::Long),
    core("destroy_cq", &["ib_destroy_cq_user"], Fails::Int),
    core("destroy_qp", &["ib_destroy_qp_user"], Fails::Int),
    core("dereg_mr", &["ib_dereg_mr_user"], Fails::Int),
    core("get_gid_attr", &["rdma_get_gid_attr"], Fails::Long),
    core("resolve_ethernet", &["rdma_addr_find_l2_eth_by_grh"], Fails::Int),
    core("cgroup_charge", &["ib_rdmacg_try_charge"], Fails::Int),
    driver(RXE, "rxe_check_cq", &["rxe_cq_chk_attr"]),
    driver(RXE, "rxe_create_cq", &["rxe_create_cq"]),
    driver(RXE, "rxe_check_qp_caps", &["rxe_qp_chk_cap"]),
    driver(RXE, "rxe_check_qp_init", &["rxe_qp_chk_init"]),
    driver(RXE, "rxe_check_qp_attr", &["rxe_qp_chk_attr"]),
    driver(RXE, "rxe_set_qp_attr", &["rxe_qp_from_attr"]),
    driver(RXE, "rxe_check_srq", &["rxe_srq_chk_init"]),
    Hook {
        subject: Subject::Device,
        program: Program::DeviceEvent,
        ..core("device_event", &["ib_dispatch_event"], Fails::Int)
    },
    // The core tells each change of a GID past the function above (drivers/infiniband/core/cache.c).
    Hook {
        subject: Subject::Device,
        program: Program::GidEvent,
        ..core("gid_event", &["ib_dispatch_event_clients"], Fails::Int)
    },
    Hook {
        subject: Subject::Device,
        program: Program::DeviceEvent,
        ..uverbs("qp_event", &["ib_uverbs_qp_event_handler"])
    },
    Hook {
        subject: Subject::Device,
        program: Program::DeviceEvent,
        ..uverbs("cq_event", &["ib_uverbs_cq_event_handler"])
    },
    Hook {
        subject: Subject::Cm,
        program: Program::CmEvent,
        modules: &["rdma_cm"],
        ..row("cm_event", Layer::Core, &["rdma_cma/cm_event_handler"])
    },
    Hook {
        program: Program::Mlx5Command,
        modules: &["mlx5_core"],
        ..row("mlx5_command", Layer::Firmware, &["mlx5/mlx5_cmd"])
    },
];

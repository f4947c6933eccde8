//! What a function's name tells of its type, where the kernel has no type information on it.
//!
//! Only what the heuristics ask for is assumed. What it returns is known for functions that the probe table names.

use super::place::{is_operation, is_stack};
use super::{Function, Signature};
use crate::probes::{Fails, Hook};

/// A rule: names that it holds for, in the stack's modules or in drivers, and the structure that such a function takes
/// or gives.
#[derive(Clone, Copy)]
struct Rule {
    /// How the name begins.
    begins: &'static str,
    /// What else it has in it.
    has: &'static str,
    structure: &'static str,
    given: bool,
}

const fn rule(begins: &'static str, has: &'static str, structure: &'static str) -> Rule {
    Rule { begins, has, structure, given: false }
}

const fn gives(begins: &'static str, has: &'static str, structure: &'static str) -> Rule {
    Rule { begins, has, structure, given: true }
}

/// Families of names in the modules above the drivers. The first that fits decides.
const STACK: &[Rule] = &[
    rule("ib_uverbs_cmd_verbs", "", "ib_uverbs_ioctl_hdr"),
    rule("ib_uverbs_ioctl", "", "file"),
    rule("ib_uverbs_write", "", "file"),
    rule("ib_uverbs_mmap", "", "file"),
    rule("ib_uverbs_open", "", "file"),
    rule("ucma_write", "", "file"),
    rule("ucma_open", "", "file"),
    rule("ib_uverbs_", "_event_handler", ""),
    rule("ib_uverbs_", "", "uverbs_attr_bundle"),
    rule("uverbs_free_", "", "uverbs_attr_bundle"),
    rule("uverbs_destroy_", "", "uverbs_attr_bundle"),
    gives("ib_umem_dmabuf_", "get", "ib_umem_dmabuf"),
    gives("ib_umem_odp_", "get", "ib_umem_odp"),
    gives("ib_umem_odp_", "alloc", "ib_umem_odp"),
    gives("ib_umem_", "get", "ib_umem"),
    gives("__ib_umem_", "get", "ib_umem"),
    rule("ib_rdmacg_", "", "ib_rdmacg_object"),
    rule("rdma_", "gid_attr", "ib_gid_attr"),
    rule("rdma_addr_find_l2_eth", "", "ib_gid_attr"),
    rule("ib_", "_user", "ib_udata"),
    rule("rdma_", "_ah_user", "ib_udata"),
    rule("rdma_", "_user_ah", "ib_udata"),
    rule("ib_", "_with_udata", "ib_udata"),
    rule("_ib_modify_qp", "", "ib_udata"),
    rule("ucma_", "", "ucma_file"),
];

/// In drivers, for names with the driver's own in front.
const DRIVERS: &[Rule] = &[
    rule("", "_chk_", "ib_qp_attr"),
    rule("", "_from_init", "ib_udata"),
    rule("", "_from_attr", "ib_udata"),
    rule("", "_mmap", "ib_ucontext"),
    // User space has no call that changes one.
    rule("", "_modify_ah", "rdma_ah_attr"),
    rule("", "", "ib_udata"),
];

/// The type that a name tells of; nothing where it tells of none.
pub(super) fn signature(module: &str, name: &str) -> Option<Signature> {
    let rules = if is_stack(module) { STACK } else { DRIVERS };
    if !is_stack(module) && !is_operation(module, name) {
        return None;
    }
    let rule = rules.iter().find(|rule| name.starts_with(rule.begins) && name.contains(rule.has))?;
    let row = Hook::all().find(|(_, hook)| hook.functions.contains(&name)).map(|(_, hook)| hook.fails);
    let returns = match (row, rule.given) {
        (None, _) => String::new(),
        (Some(_), true) => format!("struct {}*", rule.structure),
        (Some(Fails::Int), false) => "int".to_owned(),
        (Some(Fails::Long), false) => "long".to_owned(),
    };
    let structures = if rule.given { Vec::new() } else { vec![rule.structure.to_owned()] };
    Some(Signature { returns, arguments: 0, structures })
}

/// The probe table's functions, in the first module of each row, with assumed types.
pub(super) fn table() -> Vec<Function> {
    let of_row = |hook: &'static Hook| {
        let module = hook.modules.first().copied().unwrap_or_default();
        hook.functions.iter().map(move |name| Function {
            module: module.to_owned(),
            name: (*name).to_owned(),
            signature: None,
        })
    };
    Hook::all().flat_map(|(_, hook)| of_row(hook)).collect()
}

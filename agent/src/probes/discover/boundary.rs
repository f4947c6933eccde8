//! First heuristic: is a function on the way of a verbs call from user space? Its type tells.

use super::{Function, Signature};

/// What a function has to do with a verbs call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Role {
    /// A file operation: every call passes it.
    Entry,
    /// Hands a call on to the handler of its method.
    Framework,
    /// Exchanges request and answer with the application.
    Exchange,
    /// Pins the application's memory.
    Memory,
    /// Looks up the address that the application chose.
    Address,
    /// Charges a limit.
    Limit,
    /// Has what the application asks for, as the kernel keeps it.
    Request,
    /// Serves the connection manager.
    Connection,
}

/// A kernel structure that only code on the way of a verbs call has to do with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Boundary {
    structure: &'static str,
    role: Role,
    /// Counts if an argument points to it.
    taken: bool,
    /// Counts if the result points to it.
    given: bool,
}

const fn taken(structure: &'static str, role: Role) -> Boundary {
    Boundary { structure, role, taken: true, given: false }
}

/// The structures, from include/rdma/ib_verbs.h, uverbs_ioctl.h, ib_umem.h, rdma_cm.h and drivers/infiniband/core. The
/// first that fits decides.
pub(crate) const BOUNDARIES: &[Boundary] = &[
    taken("ib_uverbs_ioctl_hdr", Role::Framework),
    // What a method was called with: attributes in user memory.
    taken("uverbs_attr_bundle", Role::Exchange),
    // A driver's own part of request and answer.
    taken("ib_udata", Role::Exchange),
    Boundary { structure: "ib_umem", role: Role::Memory, taken: false, given: true },
    Boundary { structure: "ib_umem_dmabuf", role: Role::Memory, taken: false, given: true },
    Boundary { structure: "ib_umem_odp", role: Role::Memory, taken: false, given: true },
    // The connection manager comes first: it fills in addresses and QP attributes by itself.
    taken("ucma_file", Role::Connection),
    taken("rdma_cm_id", Role::Connection),
    Boundary { structure: "rdma_cm_id", role: Role::Connection, taken: false, given: true },
    Boundary { structure: "ib_gid_attr", role: Role::Address, taken: true, given: true },
    taken("ib_rdmacg_object", Role::Limit),
    taken("ib_qp_init_attr", Role::Request),
    taken("ib_qp_attr", Role::Request),
    taken("ib_qp_cap", Role::Request),
    taken("ib_cq_init_attr", Role::Request),
    taken("ib_srq_init_attr", Role::Request),
    taken("ib_srq_attr", Role::Request),
    taken("rdma_ah_init_attr", Role::Request),
    taken("rdma_ah_attr", Role::Request),
    taken("ib_ucontext", Role::Exchange),
];

/// The modules that own the device files, and the structure that a file operation takes.
const DEVICE_FILES: &[&str] = &["ib_uverbs", "rdma_ucm"];
const FILE: &str = "file";
/// The one method whose handler only hands on: it carries the commands of the older interface.
const INVOKE_WRITE: &str = "_METHOD_INVOKE_WRITE";

/// What the function has to do with a verbs call; nothing where it is not on the way of one.
pub(crate) fn role(function: &Function, signature: &Signature) -> Option<Role> {
    let takes = |structure: &str| signature.structures.iter().any(|taken| taken == structure);
    if takes(FILE) && DEVICE_FILES.contains(&function.module.as_str()) {
        return Some(Role::Entry);
    }
    if function.name.ends_with(INVOKE_WRITE) {
        return Some(Role::Framework);
    }
    let fits =
        |row: &&Boundary| row.taken && takes(row.structure) || row.given && signature.gives() == Some(row.structure);
    BOUNDARIES.iter().find(fits).map(|row| row.role)
}

/// Whether a heuristic looks at this structure.
pub(crate) fn is_known(structure: &str) -> bool {
    structure == FILE || BOUNDARIES.iter().any(|row| row.structure == structure)
}

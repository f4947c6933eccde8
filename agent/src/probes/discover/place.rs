//! Fourth heuristic: places where the application's view of a resource and the kernel's can part. One function each.
//!
//! An application and its library keep their own copy of each object's attributes, addresses and users. A failed call is
//! the moment at which the copies differ; where in the kernel it fails tells which part of the copy is wrong.

use std::cmp::Reverse;

use super::Candidate;
use super::boundary::Role;
use super::resource::{Act, Deed};
use crate::host::drivers::STACK_MODULES;

/// A place where views can part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// Where calls enter.
    Entry,
    /// Where a call is handed to its method.
    Framework,
    /// Where the core holds a request against what it knows.
    Request,
    /// Where a driver is asked to do it.
    DriverRequest,
    /// Where a driver holds a request against its limits.
    DriverCheck,
    /// Where a driver takes the request over.
    DriverApply,
    /// Where the application's memory is pinned.
    Memory,
    /// Where the application's choice of address is looked up.
    Address,
    /// Where a limit is charged.
    Limit,
    /// Where an object's handle is released.
    ReleaseHandle,
    /// Where an object itself is released.
    ReleaseObject,
}

impl Place {
    /// What parts there.
    pub(crate) const fn sentence(self) -> &'static str {
        match self {
            Self::Entry => "every call passes it: the application believes that the kernel does what it asks for",
            Self::Framework => "hands the call on: the library believes that this kernel has the method",
            Self::Request => "the core holds the request against the objects that it keeps",
            Self::DriverRequest => "the driver does what is asked for, or the device refuses",
            Self::DriverCheck => "the driver holds the request against the limits and states that it keeps",
            Self::DriverApply => "the driver takes the request over into the object",
            Self::Memory => "the application's memory as it believes it to be, against the page tables and its limits",
            Self::Address => "the address that the application chose, against the kernel's GID and neighbour tables",
            Self::Limit => "what the control group has left",
            Self::ReleaseHandle => "the application believes the object unused, the kernel counts who uses its handle",
            Self::ReleaseObject => "the application believes the object unused, the kernel counts what stands on it",
        }
    }
}

/// Resources that every data path stands on and whose attributes both sides keep.
const SHARED: &[&str] = &["MR", "dma-buf MR", "CQ", "QP", "shared receive queue", "address handle"];
/// Those whose release can fail since others stand on them.
const COUNTED: &[&str] = &["PD", "MR", "CQ", "QP", "shared receive queue", "address handle"];
/// Where handles of objects are kept.
const UVERBS: &[&str] = &["ib_uverbs", "ib_uverbs_support"];
/// How the method of a native handler is marked.
const NATIVE: &str = "ib_uverbs_handler_UVERBS_METHOD_";

/// What makes two functions rivals for one place.
pub(crate) type Key = (Place, String, Option<Act>, String);

/// A function's place; the error is why it has none.
pub(crate) fn of(candidate: &Candidate<'_>) -> Result<(Place, Key), String> {
    let place = place(candidate)?;
    let (name, act) = (candidate.function.name.as_str(), Some(candidate.act));
    let module = || candidate.function.module.clone();
    let last = || name.rsplit('_').next().unwrap_or_default().to_owned();
    let key = match place {
        Place::Entry | Place::Framework => (place, module(), None, name.to_owned()),
        Place::DriverRequest => (place, module(), act, String::new()),
        // One for each kind of attributes that it looks at.
        Place::DriverCheck | Place::DriverApply => (place, module(), act, last()),
        Place::Memory => (place, String::new(), act, candidate.signature.gives().unwrap_or_default().to_owned()),
        _ => (place, String::new(), act, String::new()),
    };
    Ok((place, key))
}

fn place(candidate: &Candidate<'_>) -> Result<Place, String> {
    let (role, Act { deed, resource }) = (candidate.role, candidate.act);
    let driver = !is_stack(&candidate.function.module);
    let no = |why: &str| Err(why.to_owned());
    match role {
        Role::Entry => Ok(Place::Entry),
        Role::Framework => Ok(Place::Framework),
        Role::Memory | Role::Address | Role::Limit if driver => no("a driver's own helper"),
        Role::Memory => Ok(Place::Memory),
        Role::Address => Ok(Place::Address),
        Role::Limit => Ok(Place::Limit),
        Role::Connection => no("the connection manager's outcome is an event, and ucma_write names the command"),
        Role::Exchange | Role::Request if driver => driver_place(role, deed, resource),
        Role::Request => no("a request that comes from inside the kernel"),
        Role::Exchange if deed == Deed::Destroy && COUNTED.contains(&resource) => {
            let handle = UVERBS.contains(&candidate.function.module.as_str());
            Ok(if handle { Place::ReleaseHandle } else { Place::ReleaseObject })
        }
        Role::Exchange => changes(deed, resource, Place::Request),
    }
}

fn driver_place(role: Role, deed: Deed, resource: &str) -> Result<Place, String> {
    match deed {
        Deed::Check => changes(Deed::Make, resource, Place::DriverCheck),
        Deed::Apply => changes(Deed::Make, resource, Place::DriverApply),
        Deed::Destroy => Err("what a driver's release refuses shows in the core's".to_owned()),
        _ if role == Role::Request => Err("a driver's own helper".to_owned()),
        _ => changes(deed, resource, Place::DriverRequest),
    }
}

/// The place, for what makes or changes a shared resource.
fn changes(deed: Deed, resource: &str, place: Place) -> Result<Place, String> {
    if !SHARED.contains(&resource) {
        return Err(format!("{resource}: no attributes that both sides keep on the data path"));
    }
    match deed {
        Deed::Make | Deed::Modify | Deed::Resize | Deed::Reregister => Ok(place),
        _ => Err("leaves the attributes that both sides keep as they are".to_owned()),
    }
}

/// Which of the functions in one place serves it: the least.
///
/// A handler of a method before a command of the older interface, the release of a handle before the calls for it; a
/// driver's operation, which has the driver's name in front, before what it calls, and the one for user space before the
/// kernel's; in pinning memory the one that the others call (two underscores in front, else the most arguments, but not
/// one that adds pinning to it).
pub(crate) fn order(candidate: &Candidate<'_>) -> impl Ord + use<> {
    let name = candidate.function.name.as_str();
    let native = name.starts_with(NATIVE) || name.starts_with("uverbs_free_");
    let operation = native || name.starts_with("ib_uverbs_") || is_operation(&candidate.function.module, name);
    let memory = candidate.role == Role::Memory;
    let arguments = if memory { candidate.signature.arguments } else { 0 };
    let inner = memory && name.starts_with("__");
    let pinned = memory && name.contains("pinned");
    let user = name.split('_').any(|word| word == "user");
    // A name without "ex" is the older of two commands, which libraries still use for most requests.
    (!native, !operation, !inner, pinned, Reverse(arguments), !user, name.len(), name.to_owned())
}

/// How the names of a driver's functions begin.
const PREFIXES: &[(&str, &str)] = &[
    ("rdma_rxe", "rxe_"),
    ("bnxt_re", "bnxt_re_"),
    ("mlx5_ib", "mlx5_ib_"),
    ("mlx4_ib", "mlx4_ib_"),
    ("mana_ib", "mana_ib_"),
    ("hns_roce_hw_v2", "hns_roce_"),
];

/// Whether a function carries its driver's name in front.
pub(crate) fn is_operation(module: &str, name: &str) -> bool {
    match PREFIXES.iter().find(|(of, _)| *of == module) {
        Some((_, prefix)) => name.starts_with(prefix),
        None => name.strip_prefix(module).is_some_and(|rest| rest.starts_with('_')),
    }
}

/// Whether a module stands above the drivers. Built-in functions are told by their names.
pub(crate) fn is_stack(module: &str) -> bool {
    module.is_empty() || STACK_MODULES.contains(&module)
}

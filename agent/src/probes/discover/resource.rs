//! Third heuristic: does a function make, change, check or destroy a resource? Its name tells.

use super::Function;
use super::boundary::Role;

/// What a function does to which resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Act {
    /// What it does; words for the same are one.
    pub(crate) deed: Deed,
    /// What it does it to: a name of [`RESOURCES`].
    pub(crate) resource: &'static str,
}

/// What is done to a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Deed {
    /// It is there afterwards.
    Make,
    /// Its attributes are changed.
    Modify,
    /// Its size is changed.
    Resize,
    /// Its place in memory is changed.
    Reregister,
    /// What is asked for is held against the limits.
    Check,
    /// What is asked for is taken over.
    Apply,
    /// It is gone afterwards.
    Destroy,
    /// Other things that change state.
    Other,
}

/// Words in names, and what they tell. The first that fits decides: checking whether something can be destroyed belongs to destroying it.
const DEEDS: &[(&str, Deed)] = &[
    ("destroy", Deed::Destroy),
    ("chk", Deed::Check),
    ("check", Deed::Check),
    ("validate", Deed::Check),
    ("create", Deed::Make),
    ("alloc", Deed::Make),
    ("reg", Deed::Make),
    ("modify", Deed::Modify),
    ("resize", Deed::Resize),
    ("rereg", Deed::Reregister),
    ("dealloc", Deed::Destroy),
    ("dereg", Deed::Destroy),
    ("free", Deed::Destroy),
    ("from", Deed::Apply),
    ("cleanup", Deed::Destroy),
    ("close", Deed::Destroy),
    ("open", Deed::Other),
    ("advise", Deed::Other),
    ("attach", Deed::Other),
    ("detach", Deed::Other),
    ("bind", Deed::Other),
    ("connect", Deed::Other),
    ("listen", Deed::Other),
    ("accept", Deed::Other),
    ("reject", Deed::Other),
    ("disconnect", Deed::Other),
    ("resolve", Deed::Other),
    ("join", Deed::Other),
    ("leave", Deed::Other),
    ("migrate", Deed::Other),
    ("notify", Deed::Other),
    ("set", Deed::Other),
    ("mmap", Deed::Other),
    ("write", Deed::Other),
];

/// Resources: a name, and the words that a function's name must all have. The first that fits decides.
const RESOURCES: &[(&str, &[&str])] = &[
    ("dma-buf MR", &["mr", "dmabuf"]),
    ("device memory MR", &["mr", "dm"]),
    ("MR", &["mr"]),
    ("receive WQ table", &["rwq"]),
    ("shared receive queue", &["srq"]),
    ("shared receive queue", &["xsrq"]),
    ("QP", &["qp"]),
    ("CQ", &["cq"]),
    ("address handle", &["ah"]),
    // rxe's address vectors, before it had address handles of its own.
    ("address handle", &["av"]),
    ("PD", &["pd"]),
    ("WQ", &["wq"]),
    ("MW", &["mw"]),
    ("XRC domain", &["xrcd"]),
    ("flow", &["flow"]),
    ("device memory", &["dm"]),
    ("device memory hint", &["dmah"]),
    ("counters", &["counters"]),
    ("context", &["ucontext"]),
    ("context", &["context"]),
    ("multicast group", &["mcast"]),
    ("completion channel", &["channel"]),
    ("mapping", &["mmap"]),
    ("vendor object", &["method"]),
    ("vendor object", &["obj"]),
    ("vendor object", &["devx"]),
];

/// What a function does to which resource; nothing if its name does not tell.
pub(crate) fn act(function: &Function, role: Role) -> Option<Act> {
    let name = function.name.to_ascii_lowercase();
    let words: Vec<&str> = name.split('_').filter(|word| !word.is_empty()).collect();
    let has = |word: &str| words.contains(&word);
    let deed = DEEDS.iter().find(|(word, _)| has(word)).map(|(_, deed)| *deed);
    let resource = match role {
        // Each call passes these, whatever it does.
        Role::Entry => return entry(&words),
        Role::Framework => return Some(Act { deed: Deed::Other, resource: "call" }),
        Role::Memory => return (has("get") || has("alloc")).then_some(Act { deed: Deed::Make, resource: "memory" }),
        // A reference on an entry of the GID table, and an entry of the neighbour table.
        Role::Address => return (has("get") && has("gid") || has("find") && has("l2")).then(|| address(&words)),
        Role::Limit => return has("charge").then_some(Act { deed: Deed::Make, resource: "limit" }),
        Role::Connection => "connection",
        Role::Exchange | Role::Request => RESOURCES.iter().find(|(_, all)| all.iter().all(|word| has(word)))?.0,
    };
    Some(Act { deed: deed?, resource })
}

/// A file operation that starts a call; those that wait for events or close make, change and destroy nothing.
fn entry(words: &[&str]) -> Option<Act> {
    let last = words.last()?;
    ["ioctl", "write", "mmap", "open"].contains(last).then_some(Act { deed: Deed::Other, resource: "call" })
}

fn address(words: &[&str]) -> Act {
    Act { deed: Deed::Make, resource: if words.contains(&"gid") { "GID" } else { "neighbour" } }
}

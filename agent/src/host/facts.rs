//! All that is known of the host before anything is attached, as one piece of plain data.

use super::kernel::KernelFacts;
use super::links::{Link, links};
use super::rdma::RdmaFacts;
use super::roots::Roots;
use super::symbols::Symbols;

/// Functions that every verbs system call passes, with the module that has them when the stack is modular.
pub(crate) const ENTRY_FUNCTIONS: &[(&str, &str)] = &[
    ("ib_uverbs_open", "ib_uverbs"),
    ("ib_uverbs_ioctl", "ib_uverbs"),
    ("ib_uverbs_write", "ib_uverbs"),
    ("ib_uverbs_mmap", "ib_uverbs"),
    ("ib_uverbs_cmd_verbs", "ib_uverbs"),
    ("ucma_write", "rdma_ucm"),
];

/// What is known of the host.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct HostFacts {
    /// What the kernel offers.
    pub(crate) kernel: KernelFacts,
    /// RDMA devices.
    pub(crate) rdma: RdmaFacts,
    /// Network devices of this namespace; absent if the kernel does not tell.
    pub(crate) netdevs: Option<Vec<Link>>,
    /// Which of [`ENTRY_FUNCTIONS`] are there; absent if /proc/kallsyms cannot be read.
    pub(crate) entry_functions: Option<Vec<EntryFunction>>,
    /// Whether a trial fexit program loaded and attached, with the error if not. Absent: not tried.
    pub(crate) fexit: Option<Result<(), String>>,
    /// Whether a trial program attached by TCX, with the error if not. Absent: not tried.
    pub(crate) tcx: Option<Result<(), String>>,
    /// Whether the same by a tick of the kernel's timers attached and ticked, with the error if not. Absent: not tried.
    pub(crate) tick: Option<Result<(), String>>,
    /// How many programs on this host mark what TCP sends again, or why that is not known. Absent: not looked for.
    pub(crate) marking: Option<Result<usize, String>>,
    /// Whether a trial program attached to the tracepoint of what TCP sends again, and if so whether that tells of
    /// failures too. Absent: not tried.
    pub(crate) retransmissions: Option<Result<bool, String>>,
    /// Whether it attached as clsact filter instead. Absent: not tried, or not needed.
    pub(crate) clsact: Option<Result<(), String>>,
}

/// One of [`ENTRY_FUNCTIONS`] in the running kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EntryFunction {
    /// The name in the source.
    pub(crate) name: &'static str,
    /// `module:function` to hook, or why there is none.
    pub(crate) target: Result<String, String>,
    /// Whether ftrace can take it. Absent if not known.
    pub(crate) traceable: Option<bool>,
}

impl HostFacts {
    /// Reads /proc and /sys. The trials (`fexit`, `tcx`, `clsact`, `tick`) load programs and are left to who can do that.
    pub(crate) fn read(roots: &Roots) -> Self {
        let kernel = KernelFacts::read(roots);
        let symbols = Symbols::read(roots, kernel.tracefs.as_deref()).ok();
        Self {
            entry_functions: symbols.map(|symbols| entry_functions(&symbols)),
            rdma: RdmaFacts::read(roots),
            netdevs: links(&roots.sysfs).ok(),
            kernel,
            fexit: None,
            tcx: None,
            tick: None,
            marking: None,
            retransmissions: None,
            clsact: None,
        }
    }
}

/// Looks up [`ENTRY_FUNCTIONS`].
fn entry_functions(symbols: &Symbols) -> Vec<EntryFunction> {
    let look_up = |&(name, module): &(&'static str, &str)| match symbols.resolve(name, Some(module)) {
        Ok(found) => EntryFunction { name, target: Ok(found.probe_target()), traceable: found.traceable },
        Err(error) => EntryFunction { name, target: Err(error.to_string()), traceable: None },
    };
    ENTRY_FUNCTIONS.iter().map(look_up).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_functions_say_where_they_are_or_that_they_are_not() {
        let kallsyms = "0 t ib_uverbs_ioctl\t[ib_uverbs]\n0 t ib_uverbs_mmap.isra.0\t[ib_core]\n";
        let found = entry_functions(&Symbols::parse(kallsyms.as_bytes()).unwrap());
        assert_eq!(found.len(), ENTRY_FUNCTIONS.len());
        let target = |name| &found.iter().find(|function| function.name == name).unwrap().target;
        assert_eq!(target("ib_uverbs_ioctl"), &Ok("ib_uverbs:ib_uverbs_ioctl".to_owned()));
        assert_eq!(target("ib_uverbs_mmap"), &Ok("ib_core:ib_uverbs_mmap.isra.0".to_owned()));
        assert_eq!(target("ucma_write"), &Err("no kernel function ucma_write".to_owned()));
    }
}

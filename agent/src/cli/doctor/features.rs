//! Which features can run on a host, by which means, and which one thing to mend first if not.

use crate::host::facts::HostFacts;
use crate::host::kernel::Access;
use crate::host::kernel_text::Capability;
use crate::host::preempt::{self, ReturnHook};

/// Whether a feature can run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Yes,
    No,
    Unknown,
}

/// A feature's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Feature {
    pub(super) name: &'static str,
    pub(super) state: State,
    /// By which means, or why not.
    pub(super) detail: String,
}

/// The features, each with the function that answers for it.
type Answer = fn(&HostFacts) -> (State, String);
const FEATURES: &[(&str, Answer)] = &[
    ("verbs tracing", |facts| yes_or_no(verbs_tracing(facts).map(|hook| format!("by {}", hook.name())))),
    ("exact returns", exact_returns),
    ("device of a call", device_of_call),
    ("what was being built", what_was_built),
    ("burst sampling", burst_sampling),
];

/// Answers for every feature.
pub(super) fn features(facts: &HostFacts) -> Vec<Feature> {
    let answer = |&(name, answer): &(&'static str, Answer)| {
        let (state, detail) = answer(facts);
        Feature { name, state, detail }
    };
    FEATURES.iter().map(answer).collect()
}

/// The hook by which verbs calls would be traced on this host.
///
/// # Errors
///
/// Why they cannot be.
pub(super) fn verbs_tracing(facts: &HostFacts) -> Result<ReturnHook, String> {
    let missing = missing_capabilities(facts, &[Capability::Bpf, Capability::Perfmon]);
    if !missing.is_empty() {
        return Err(format!("without {}", missing.join(" and ")));
    }
    if facts.kernel.lockdown.as_deref() == Some("confidentiality") {
        return Err("kernel lockdown forbids tracing".to_owned());
    }
    let functions = facts.entry_functions.as_deref();
    if functions.is_some_and(|functions| functions.iter().all(|function| function.target.is_err())) {
        return Err("this kernel has no RDMA verbs functions: ib_uverbs is not loaded".to_owned());
    }
    return_hook(facts).ok_or_else(|| match &facts.fexit {
        Some(Err(error)) => format!("no kprobes, and fexit failed: {error}"),
        _ => "no kprobes, and fexit was not tried".to_owned(),
    })
}

/// The hook for returns that the facts lead to.
pub(super) fn return_hook(facts: &HostFacts) -> Option<ReturnHook> {
    let kernel = &facts.kernel;
    let tracefs = kernel.kprobe_events == Access::Writable;
    preempt::return_hook(kernel.preempt, tracefs, facts.fexit == Some(Ok(())), kernel.kprobe_pmu)
}

/// The capabilities that are not allowed. None are missing where they cannot be read: the attempt will tell.
pub(super) fn missing_capabilities(facts: &HostFacts, wanted: &[Capability]) -> Vec<&'static str> {
    let allowed = |capability: Capability| facts.kernel.capabilities.is_none_or(|held| held.allows(capability));
    wanted.iter().filter(|capability| !allowed(**capability)).map(|capability| capability.name()).collect()
}

fn yes_or_no(answer: Result<String, String>) -> (State, String) {
    match answer {
        Ok(how) => (State::Yes, how),
        Err(why) => (State::No, why),
    }
}

fn exact_returns(facts: &HostFacts) -> (State, String) {
    let preempts = facts.kernel.preempt.preempts();
    match verbs_tracing(facts) {
        Err(why) => (State::No, why),
        Ok(ReturnHook::TracefsReturn) => (State::Yes, "by tracefs return probes".to_owned()),
        Ok(ReturnHook::Fexit) if preempts == Some(false) => {
            (State::Yes, "by fexit, in a kernel that does not preempt".to_owned())
        }
        Ok(hook) => (State::No, format!("{} can skip calls here; skipped calls are counted", hook.name())),
    }
}

fn device_of_call(facts: &HostFacts) -> (State, String) {
    match verbs_tracing(facts) {
        Err(why) => (State::No, why),
        Ok(_) if facts.kernel.btf_vmlinux => (State::Yes, "by the open file's device number".to_owned()),
        Ok(_) => (State::No, "vmlinux has no BTF".to_owned()),
    }
}

fn what_was_built(facts: &HostFacts) -> (State, String) {
    match verbs_tracing(facts) {
        Err(why) => (State::No, why),
        Ok(_) if facts.kernel.has_module_btf("ib_uverbs") => {
            (State::Yes, "from kernel structures and requests".to_owned())
        }
        Ok(_) => (State::Yes, "from the requests of user space only: ib_uverbs has no BTF".to_owned()),
    }
}

fn burst_sampling(facts: &HostFacts) -> (State, String) {
    let missing = missing_capabilities(facts, &[Capability::Bpf, Capability::NetAdmin]);
    if !missing.is_empty() {
        return (State::No, format!("without {}", missing.join(" and ")));
    }
    match (&facts.tcx, &facts.clsact) {
        (Some(Ok(())), _) => (State::Yes, "by TCX links, which go with the process".to_owned()),
        (Some(Err(why)), Some(Ok(()))) => (State::Yes, format!("by clsact filters (no TCX: {why})")),
        (_, Some(Err(why))) => (State::No, why.clone()),
        (Some(Err(why)), None) => (State::Unknown, why.clone()),
        (None, _) => (State::Unknown, "not tried".to_owned()),
    }
}

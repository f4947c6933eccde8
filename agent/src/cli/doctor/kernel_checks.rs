//! Checks of what the kernel offers and what this process may do.

use super::checks::{
    Outcome::{self, Missing, Ok as Good, Unknown},
    listed,
};
use super::features::{missing_capabilities, return_hook};
use crate::host::facts::HostFacts;
use crate::host::kernel::Access;
use crate::host::kernel_text::{Capability, Limit};
use crate::host::preempt::Preempt;

/// Locked memory that suffices for every map on a large host, in bytes. Only kernels that charge maps to this limit
/// look at it; newer ones charge the memory cgroup.
const MEMLOCK_BYTES_MIN: u64 = 512 << 20;

pub(super) fn release(facts: &HostFacts) -> Outcome {
    let kernel = &facts.kernel;
    let Some(release) = &kernel.release else {
        return Unknown("the release cannot be read".to_owned());
    };
    Good(match (kernel.cpus_online, kernel.cpus_possible) {
        (Some(online), Some(possible)) => format!("{release}, {online} of {possible} possible CPUs"),
        _ => release.clone(),
    })
}

pub(super) fn capabilities(facts: &HostFacts, wanted: &[Capability]) -> Outcome {
    if facts.kernel.capabilities.is_none() {
        return Unknown("/proc/self/status cannot be read".to_owned());
    }
    let missing = missing_capabilities(facts, wanted);
    if missing.is_empty() { Good("held".to_owned()) } else { Missing(format!("without {}", missing.join(", "))) }
}

pub(super) fn lockdown(facts: &HostFacts) -> Outcome {
    match facts.kernel.lockdown.as_deref() {
        None => Good("not in this kernel".to_owned()),
        Some("confidentiality") => Missing("the kernel is locked down: confidentiality".to_owned()),
        Some(mode) => Good(mode.to_owned()),
    }
}

pub(super) fn kprobes(facts: &HostFacts) -> Outcome {
    match (facts.kernel.kprobe_pmu, &facts.kernel.kprobe_events) {
        (true, _) => Good("by perf events".to_owned()),
        (false, Access::Writable) => Good("by tracefs only".to_owned()),
        (false, _) => Missing("this kernel has none".to_owned()),
    }
}

pub(super) fn tracefs(facts: &HostFacts) -> Outcome {
    match &facts.kernel.tracefs {
        Some(path) => Good(path.display().to_string()),
        None if facts.kernel.tracefs_supported => Missing("the kernel has it, not mounted".to_owned()),
        None => Missing("not mounted, and the kernel does not list it".to_owned()),
    }
}

pub(super) fn kprobe_events(facts: &HostFacts) -> Outcome {
    match &facts.kernel.kprobe_events {
        Access::Writable => Good("writable".to_owned()),
        Access::Refused(error) => Missing(format!("not writable: {error}")),
        Access::Absent if facts.kernel.tracefs.is_none() => Unknown("tracefs is not mounted".to_owned()),
        Access::Absent => Missing("not in tracefs: this kernel has no kprobes".to_owned()),
    }
}

pub(super) fn ftrace(facts: &HostFacts) -> Outcome {
    match facts.kernel.ftrace_enabled {
        Some(0) => Missing("switched off".to_owned()),
        Some(_) => Good("on".to_owned()),
        None => Missing("kernel.ftrace_enabled is not there".to_owned()),
    }
}

pub(super) fn bpf_jit(facts: &HostFacts) -> Outcome {
    match facts.kernel.bpf_jit_enable {
        Some(0) => Missing("switched off".to_owned()),
        Some(_) => Good("on".to_owned()),
        None => Unknown("net.core.bpf_jit_enable cannot be read".to_owned()),
    }
}

pub(super) fn vmlinux_btf(facts: &HostFacts) -> Outcome {
    if facts.kernel.btf_vmlinux {
        Good("readable".to_owned())
    } else {
        Missing("kernel/btf/vmlinux is absent or unreadable".to_owned())
    }
}

pub(super) fn module_btf(facts: &HostFacts) -> Outcome {
    let kernel = &facts.kernel;
    let loaded = kernel.modules.as_deref().unwrap_or_default();
    if loaded.is_empty() {
        return Unknown("no RDMA module is loaded".to_owned());
    }
    let without = || loaded.iter().filter(|module| !kernel.has_module_btf(module));
    match without().count() {
        0 => Good(format!("all {} loaded RDMA modules", loaded.len())),
        _ => Missing(format!("none for {}", listed(without()))),
    }
}

pub(super) fn trial(trial: &Option<Result<(), String>>) -> Outcome {
    match trial {
        Some(Ok(())) => Good("a trial program attached".to_owned()),
        Some(Err(error)) => Missing(error.clone()),
        None => Unknown("not tried".to_owned()),
    }
}

pub(super) fn preemption(facts: &HostFacts) -> Outcome {
    let model = facts.kernel.preempt;
    let hook = match return_hook(facts) {
        Some(hook) => format!("returns by {}", hook.name()),
        None => "no return hook".to_owned(),
    };
    match model {
        Preempt::Unknown => Unknown(format!("chosen at boot, and the choice cannot be read: {hook}")),
        _ => Good(format!("{}: {hook}", model.name())),
    }
}

pub(super) fn real_time(facts: &HostFacts) -> Outcome {
    match facts.kernel.preempt {
        Preempt::RealTime => Unknown("a real-time kernel".to_owned()),
        _ => Good("not a real-time kernel".to_owned()),
    }
}

pub(super) fn perf_events(facts: &HostFacts) -> Outcome {
    let allowed = missing_capabilities(facts, &[Capability::Perfmon]).is_empty();
    match facts.kernel.perf_event_paranoid {
        None => Unknown("kernel.perf_event_paranoid cannot be read".to_owned()),
        Some(level) if allowed => Good(format!("perf_event_paranoid {level}, passed by CAP_PERFMON")),
        Some(level) if level < 0 => Good(format!("perf_event_paranoid {level}")),
        Some(level) => Missing(format!("perf_event_paranoid {level}, and no CAP_PERFMON")),
    }
}

pub(super) fn memlock(facts: &HostFacts) -> Outcome {
    let raises = facts.kernel.capabilities.is_some_and(|held| held.has(Capability::SysResource));
    match facts.kernel.memlock {
        None => Unknown("the limit cannot be read".to_owned()),
        Some(Limit::Unlimited) => Good("unlimited".to_owned()),
        Some(Limit::Bytes(bytes)) if bytes >= MEMLOCK_BYTES_MIN => Good(format!("{} MiB", bytes >> 20)),
        Some(Limit::Bytes(bytes)) if raises => Good(format!("{} KiB, may be raised by CAP_SYS_RESOURCE", bytes >> 10)),
        Some(Limit::Bytes(bytes)) => Missing(format!("only {} KiB", bytes >> 10)),
    }
}

pub(super) fn bpffs(facts: &HostFacts) -> Outcome {
    match &facts.kernel.bpffs {
        Some(path) => Good(path.display().to_string()),
        None => Missing("not mounted".to_owned()),
    }
}

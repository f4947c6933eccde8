//! The table of checks: each a pure function of the facts, with what it is for and how to mend it.

use super::{kernel_checks as kernel, rdma_checks as rdma, sampler_checks as sampler};
use crate::host::facts::HostFacts;
use crate::host::kernel_text::Capability;

/// Names listed in one answer before the rest is only counted.
const NAMES_MAX: usize = 8;

/// One line of the doctor.
pub(super) struct Check {
    pub(super) name: &'static str,
    /// What the agent uses it for.
    pub(super) needed_for: &'static str,
    /// What its absence takes away.
    pub(super) costs: &'static str,
    pub(super) run: fn(&HostFacts) -> Outcome,
    /// What to do about it.
    pub(super) mend: &'static str,
}

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// There, with a detail.
    Ok(String),
    /// Not there, with what was found instead.
    Missing(String),
    /// Could not be told, with why.
    Unknown(String),
}

/// Every check, in the order in which one is best mended.
pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "kernel",
        needed_for: "names in reports",
        costs: "reports do not name the kernel",
        run: kernel::release,
        mend: "make /proc/sys readable, or name the place with --path.procfs",
    },
    Check {
        name: "capabilities",
        needed_for: "loading and attaching programs",
        costs: "nothing can be traced",
        run: |facts| kernel::capabilities(facts, &[Capability::Bpf, Capability::Perfmon]),
        mend: "run as root, or grant CAP_BPF and CAP_PERFMON (deploy/fabricscope.service does)",
    },
    Check {
        name: "CAP_SYS_ADMIN",
        needed_for: "fexit on functions of modules",
        costs: "no fexit on modules, kprobes serve",
        run: |facts| kernel::capabilities(facts, &[Capability::SysAdmin]),
        mend: "grant CAP_SYS_ADMIN (the kernel asks for it to look up the BTF of modules)",
    },
    Check {
        name: "CAP_NET_ADMIN",
        needed_for: "burst sampling",
        costs: "no programs on network devices",
        run: |facts| kernel::capabilities(facts, &[Capability::NetAdmin]),
        mend: "grant CAP_NET_ADMIN",
    },
    Check {
        name: "lockdown",
        needed_for: "kprobes, tracefs, reading kernel memory",
        costs: "nothing can be traced",
        run: kernel::lockdown,
        mend: "boot with lockdown=integrity or without the option",
    },
    Check {
        name: "kprobes",
        needed_for: "hooks on kernel functions",
        costs: "only fexit can trace, where it works",
        run: kernel::kprobes,
        mend: "use a kernel built with CONFIG_KPROBE_EVENTS=y",
    },
    Check {
        name: "tracefs",
        needed_for: "return probes that miss nothing, loss counts, tracepoints",
        costs: "returns may be missed, counted at best",
        run: kernel::tracefs,
        mend: "mount -t tracefs tracefs /sys/kernel/tracing",
    },
    Check {
        name: "kprobe_events",
        needed_for: "return probes that miss nothing",
        costs: "returns may be missed under load: a pool of about 2 per CPU",
        run: kernel::kprobe_events,
        mend: "mount tracefs writable and run as its owner, root; needs a kernel built with CONFIG_KPROBE_EVENTS=y",
    },
    Check {
        name: "ftrace",
        needed_for: "fexit, and kprobes on function entries",
        costs: "programs attach and see nothing, or do not attach",
        run: kernel::ftrace,
        mend: "sysctl -w kernel.ftrace_enabled=1; needs a kernel built with CONFIG_FUNCTION_TRACER=y",
    },
    Check {
        name: "BPF JIT",
        needed_for: "fexit, and low cost per event",
        costs: "no fexit; programs are interpreted",
        run: kernel::bpf_jit,
        mend: "sysctl -w net.core.bpf_jit_enable=1",
    },
    Check {
        name: "vmlinux BTF",
        needed_for: "places of fields in kernel structures, fexit",
        costs: "no device in events, no fexit",
        run: kernel::vmlinux_btf,
        mend: "use a kernel built with CONFIG_DEBUG_INFO_BTF=y",
    },
    Check {
        name: "module BTF",
        needed_for: "fexit on RDMA modules, details from kernel structures",
        costs: "no fexit on these modules, kprobes serve; details come from the requests only",
        run: kernel::module_btf,
        mend: "build the vendor driver with BTF (pahole and the kernel's vmlinux at build time)",
    },
    Check {
        name: "fexit",
        needed_for: "the cheapest hook, with arguments and result at once",
        costs: "kprobes serve, at a higher cost per call",
        run: |facts| kernel::trial(&facts.fexit),
        mend: "look at BPF JIT, ftrace, vmlinux BTF, lockdown and capabilities above",
    },
    Check {
        name: "TCX",
        needed_for: "burst sampling beside other programs, in a chosen order",
        costs: "clsact filters serve, first come first served",
        run: sampler::tcx,
        mend: "use a kernel of 6.6 or later built with CONFIG_NET_XGRESS=y; run the doctor as root",
    },
    Check {
        name: "tick",
        needed_for: "burst sampling without a look at the clock for each packet (bursts.clock = \"tick\")",
        costs: "the clock is read for each packet, which is the default",
        run: sampler::tick,
        mend: "use a kernel of 5.15 or later; run the doctor as root",
    },
    Check {
        name: "sampler memory",
        needed_for: "burst sampling of all devices with hardware behind them, which is the default",
        costs: "nothing is sampled unless bursts.netdevs names devices",
        run: sampler::memory,
        mend: "name devices in bursts.netdevs; those without a speed need bursts.line_rates for bursts",
    },
    Check {
        name: "retransmit trace",
        needed_for: "holding the sampler's count of what TCP sends again against the kernel's own",
        costs: "retransmits are counted by the sampler alone",
        run: sampler::retransmissions,
        mend: "grant CAP_BPF and CAP_PERFMON; needs the tracepoint tcp:tcp_retransmit_skb",
    },
    Check {
        name: "retransmit marks",
        needed_for: "packets that leave as they were made",
        costs: "a reserved bit is set in TCP segments that are sent again",
        run: sampler::marking,
        mend: "intended if bursts.mark_retransmits is on in the agent's configuration; else remove it there",
    },
    Check {
        name: "preemption",
        needed_for: "choosing a return hook that misses nothing",
        costs: "the hook for preempting kernels is used, which is always right",
        run: kernel::preemption,
        mend: "mount -t debugfs debugfs /sys/kernel/debug",
    },
    Check {
        name: "PREEMPT_RT",
        needed_for: "exact burst samples, the cost figures in the documentation",
        costs: "buckets of bursts may miss packets, since two writers can meet; cost and losses were not measured",
        run: kernel::real_time,
        mend: "compare fabricscope hooks under load before use on real-time hosts",
    },
    Check {
        name: "verbs functions",
        needed_for: "verbs tracing",
        costs: "nothing to trace until the RDMA modules are loaded",
        run: rdma::verbs_functions,
        mend: "modprobe ib_uverbs rdma_ucm",
    },
    Check {
        name: "RDMA devices",
        needed_for: "verbs tracing",
        costs: "nothing to watch",
        run: rdma::devices,
        mend: "load the NIC's RDMA driver, or make a soft-RoCE device: rdma link add rxe0 type rxe netdev eth0",
    },
    Check {
        name: "device nodes",
        needed_for: "naming the device of a call",
        costs: "calls to these devices have no device name",
        run: rdma::device_nodes,
        mend: "modprobe ib_uverbs rdma_ucm",
    },
    Check {
        name: "ports",
        needed_for: "RDMA traffic",
        costs: "jobs on these ports fail",
        run: rdma::ports,
        mend: "look at cable, switch port and driver log of the port; ip link set DEV up for RoCE",
    },
    Check {
        name: "GID tables",
        needed_for: "RoCE connections over IPv4",
        costs: "modify_qp and create_ah fail with ENODATA at the index that the job uses",
        run: rdma::gid_tables,
        mend: "give the network device of the port an IPv4 address",
    },
    Check {
        name: "perf events",
        needed_for: "attaching kprobes and tracefs events",
        costs: "no kprobes",
        run: kernel::perf_events,
        mend: "grant CAP_PERFMON",
    },
    Check {
        name: "memlock",
        needed_for: "maps, on kernels that charge them to the limit of locked memory",
        costs: "maps may be refused with EPERM",
        run: kernel::memlock,
        mend: "LimitMEMLOCK=infinity in the unit, or ulimit -l unlimited",
    },
    Check {
        name: "bpffs",
        needed_for: "counting on across restarts",
        costs: "counters start anew with the agent",
        run: kernel::bpffs,
        mend: "mount -t bpf bpf /sys/fs/bpf",
    },
];

/// Names with commas, the rest counted.
pub(super) fn listed(names: impl Iterator<Item = impl AsRef<str>>) -> String {
    let names: Vec<_> = names.collect();
    let shown: Vec<&str> = names.iter().take(NAMES_MAX).map(AsRef::as_ref).collect();
    let shown = shown.join(", ");
    match names.len().saturating_sub(NAMES_MAX) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

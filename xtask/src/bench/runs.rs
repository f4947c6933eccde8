//! What is compared: the runs, by name.

/// Under which tracer a run is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tracer {
    /// None.
    None,
    /// `fabricscope trace verbs` with these flags.
    Ours(&'static str),
    /// bpftrace with this file.
    Bpftrace(&'static str),
}

/// One run of the timed calls.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    /// One word, also the shell function's name.
    pub(super) name: &'static str,
    /// What the table says.
    pub(super) title: &'static str,
    /// The tracer.
    pub(super) tracer: Tracer,
}

const fn run(name: &'static str, title: &'static str, tracer: Tracer) -> Run {
    Run { name, title, tracer }
}

/// The runs of the timed calls, and of what the other tables name.
pub(super) const CALLS: &[Run] = &[
    run("none", "no tracing", Tracer::None),
    run("ours", "fabricscope, as it is by default", Tracer::Ours("")),
    run("ours_no_latency", "fabricscope --no-latency", Tracer::Ours("--no-latency")),
    run("ours_all", "fabricscope --all", Tracer::Ours("--all")),
    run("ours_kprobe", "fabricscope --no-fexit", Tracer::Ours("--no-fexit")),
    run("bpftrace_kprobe", "bpftrace, same functions, kprobes", Tracer::Bpftrace("kprobe.bt")),
    run("bpftrace_fexit", "bpftrace, same functions, fentry/fexit", Tracer::Bpftrace("fexit.bt")),
    run("empty_fexit", "an empty program on each of those", Tracer::Bpftrace("empty.bt")),
];

/// A run, the one of the other tool that it is held against: the same kind of probe on the same functions.
pub(super) const RIVALS: &[(&str, &str)] = &[
    ("ours", "bpftrace_kprobe"),
    ("ours", "bpftrace_fexit"),
    ("ours_no_latency", "bpftrace_fexit"),
    ("ours_all", "bpftrace_fexit"),
    ("ours_kprobe", "bpftrace_kprobe"),
];

/// Runs whose programs are accounted for one by one.
pub(super) const PROGRAMS: &[&str] = &["ours", "ours_kprobe", "bpftrace_kprobe", "bpftrace_fexit"];

/// One run of the transfer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bandwidth {
    /// One word.
    pub(super) name: &'static str,
    /// What the table says.
    pub(super) title: &'static str,
    /// The tracer.
    pub(super) tracer: Tracer,
    /// A command that prints the number of events in the file named after it; empty where there are none.
    pub(super) count: &'static str,
}

/// The runs of the transfer: against tracing every function of the RDMA modules.
pub(super) const BANDWIDTH: &[Bandwidth] = &[
    Bandwidth { name: "none", title: "no tracing", tracer: Tracer::None, count: "" },
    Bandwidth {
        name: "watch",
        title: "fabricscope, refused probes too",
        tracer: Tracer::Ours("--probes"),
        count: "grep -c '\"schema\"'",
    },
    Bandwidth {
        name: "every",
        title: "bpftrace, every function",
        tracer: Tracer::Bpftrace("every.bt"),
        count: "sed -n 's/^@: //p'",
    },
];

//! Rows of facts and what the doctor says of them.

use std::path::PathBuf;

use super::features::State;
use super::render::{self, Paper};
use super::*;
use crate::host::device_number::DeviceNumber;
use crate::host::facts::{ENTRY_FUNCTIONS, EntryFunction};
use crate::host::kernel::{Access, KernelFacts};
use crate::host::kernel_text::{Capabilities, Limit};
use crate::host::preempt::Preempt;
use crate::host::rdma::{RdmaDevice, RdmaFacts, RdmaPort, UverbsNode};

const PLAIN: Paper = Paper { width: 100, colour: false };

/// A host with everything: 6.12, soft-RoCE, all trials passed.
fn healthy() -> HostFacts {
    let sysfs = tempfile::tempdir().unwrap();
    let port = sysfs.path().join("class/infiniband/rxe0/ports/1");
    for (file, text) in [
        ("gids/1", "0000:0000:0000:0000:0000:ffff:0a00:0001"),
        ("gid_attrs/types/1", "RoCE v2"),
        ("link_layer", "Ethernet"),
        ("state", "4: ACTIVE"),
    ] {
        std::fs::create_dir_all(port.join(file).parent().unwrap()).unwrap();
        std::fs::write(port.join(file), text).unwrap();
    }
    std::fs::write(sysfs.path().join("class/infiniband/rxe0/parent"), "veth0").unwrap();
    std::fs::write(sysfs.path().join("class/infiniband/rxe0/node_type"), "1: CA").unwrap();
    let mut rdma = RdmaFacts::read(&Roots::at(sysfs.path(), "/nonexistent"));
    rdma.rdma_cm = DeviceNumber::new(10, 122);
    rdma.uverbs = vec![UverbsNode {
        name: "uverbs0".to_owned(),
        number: DeviceNumber::new(231, 192).unwrap(),
        device: "rxe0".to_owned(),
    }];
    let modules = vec!["ib_core".to_owned(), "ib_uverbs".to_owned()];
    let kernel = KernelFacts {
        release: Some("6.12.48".to_owned()),
        boot_id: Some("b".to_owned()),
        hostname: Some("host7".to_owned()),
        cpus_possible: Some(4),
        cpus_online: Some(2),
        btf_vmlinux: true,
        btf_modules: modules.clone(),
        modules: Some(modules),
        tracefs_supported: true,
        tracefs: Some(PathBuf::from("/sys/kernel/tracing")),
        kprobe_pmu: true,
        kprobe_events: Access::Writable,
        preempt: Preempt::Voluntary,
        lockdown: Some("none".to_owned()),
        capabilities: Some(Capabilities(u64::MAX)),
        perf_event_paranoid: Some(3),
        kptr_restrict: Some(0),
        unprivileged_bpf_disabled: Some(2),
        bpf_jit_enable: Some(1),
        ftrace_enabled: Some(1),
        memlock: Some(Limit::Bytes(8 << 20)),
        bpffs: Some(PathBuf::from("/sys/fs/bpf")),
    };
    let entry = |&(name, module): &(&'static str, &str)| EntryFunction {
        name,
        target: Ok(format!("{module}:{name}")),
        traceable: Some(true),
    };
    HostFacts {
        marking: Some(Ok(0)),
        retransmissions: Some(Ok(true)),
        netdevs: Some(vec![crate::bursts::fake::link(2, "eth0"), crate::bursts::fake::link(3, "eth1")]),
        kernel,
        rdma,
        entry_functions: Some(ENTRY_FUNCTIONS.iter().map(entry).collect()),
        fexit: Some(Ok(())),
        tcx: Some(Ok(())),
        tick: Some(Ok(())),
        clsact: None,
    }
}

fn outcome(facts: &HostFacts, name: &str) -> Outcome {
    let check = CHECKS.iter().find(|check| check.name == name).unwrap();
    (check.run)(facts)
}

/// Changes one thing on a healthy host and looks at one line.
#[track_caller]
fn check(name: &str, change: impl FnOnce(&mut HostFacts), expected: Outcome) {
    let mut facts = healthy();
    change(&mut facts);
    assert_eq!(outcome(&facts, name), expected);
}

fn ok(text: &str) -> Outcome {
    Outcome::Ok(text.to_owned())
}

fn missing(text: &str) -> Outcome {
    Outcome::Missing(text.to_owned())
}

fn unknown(text: &str) -> Outcome {
    Outcome::Unknown(text.to_owned())
}

fn printed(facts: &HostFacts, paper: Paper) -> String {
    let mut out = Vec::new();
    render::table(&Report::of(facts), paper, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn exit_code(facts: &HostFacts) -> ExitCode {
    let args = DoctorArgs { output: Output::Json, roots: Roots::default() };
    run(&args, facts, &mut Vec::new()).unwrap()
}

#[test]
fn a_healthy_host_is_ok_in_every_line() {
    let facts = healthy();
    for line in CHECKS {
        assert!(matches!((line.run)(&facts), Outcome::Ok(_)), "{}: {:?}", line.name, (line.run)(&facts));
    }
    assert_eq!(exit_code(&facts), ExitCode::SUCCESS);
    assert!(features::features(&facts).iter().all(|feature| feature.state == State::Yes));
}

#[test]
fn a_host_of_which_nothing_is_known_fails_without_a_panic() {
    let facts = HostFacts::default();
    assert_eq!(exit_code(&facts), ExitCode::FAILURE);
    assert!(printed(&facts, PLAIN).lines().count() > CHECKS.len());
}

#[test]
fn what_a_process_may_do() {
    let held = |bits: u64| move |facts: &mut HostFacts| facts.kernel.capabilities = Some(Capabilities(bits));
    check("capabilities", held(0), missing("without CAP_BPF, CAP_PERFMON"));
    check("capabilities", held(1 << 39), missing("without CAP_PERFMON"));
    check("capabilities", held(1 << 21), ok("held"));
    check("CAP_NET_ADMIN", held(1 << 21), missing("without CAP_NET_ADMIN"));
    check("capabilities", |facts| facts.kernel.capabilities = None, unknown("/proc/self/status cannot be read"));
    check("perf events", held(0), missing("perf_event_paranoid 3, and no CAP_PERFMON"));
    check("memlock", held(0), missing("only 8192 KiB"));
    check("memlock", |facts| facts.kernel.memlock = Some(Limit::Unlimited), ok("unlimited"));
    let lockdown = |mode: &'static str| move |facts: &mut HostFacts| facts.kernel.lockdown = Some(mode.to_owned());
    check("lockdown", lockdown("integrity"), ok("integrity"));
    check("lockdown", lockdown("confidentiality"), missing("the kernel is locked down: confidentiality"));
}

#[test]
fn how_functions_can_be_hooked() {
    check("kprobes", |facts| facts.kernel.kprobe_pmu = false, ok("by tracefs only"));
    let none = |facts: &mut HostFacts| {
        facts.kernel.kprobe_pmu = false;
        facts.kernel.kprobe_events = Access::Absent;
    };
    check("kprobes", none, missing("this kernel has none"));
    check("kprobe_events", none, missing("not in tracefs: this kernel has no kprobes"));
    let refused = |facts: &mut HostFacts| facts.kernel.kprobe_events = Access::Refused("Permission denied".to_owned());
    check("kprobe_events", refused, missing("not writable: Permission denied"));
    check("tracefs", |facts| facts.kernel.tracefs = None, missing("the kernel has it, not mounted"));
    check("fexit", |facts| facts.fexit = None, unknown("not tried"));
    check("fexit", |facts| facts.fexit = Some(Err("EPERM".to_owned())), missing("EPERM"));
    check("ftrace", |facts| facts.kernel.ftrace_enabled = Some(0), missing("switched off"));
    check("module BTF", |facts| drop(facts.kernel.btf_modules.pop()), missing("none for ib_uverbs"));
    check("preemption", |_| (), ok("voluntary: returns by fexit"));
    let preempt = |model| move |facts: &mut HostFacts| facts.kernel.preempt = model;
    check("preemption", preempt(Preempt::Lazy), ok("lazy: returns by tracefs return probe"));
    check(
        "preemption",
        preempt(Preempt::Unknown),
        unknown("chosen at boot, and the choice cannot be read: returns by tracefs return probe"),
    );
    check("PREEMPT_RT", preempt(Preempt::RealTime), unknown("a real-time kernel"));
}

#[test]
fn what_rdma_there_is() {
    check("RDMA devices", |_| (), ok("rxe0 (rdma_rxe)"));
    check("RDMA devices", |facts| facts.rdma.devices.clear(), missing("there is no RDMA device on this host"));
    check("device nodes", |facts| facts.rdma.uverbs.clear(), missing("no uverbs node for rxe0"));
    check("device nodes", |facts| facts.rdma.rdma_cm = None, missing("no rdma_cm node"));
    let state = |state: Option<&'static str>| {
        move |facts: &mut HostFacts| facts.rdma.devices[0].ports[0].state = state.map(str::to_owned)
    };
    check("ports", state(Some("DOWN")), missing("not active: rxe0/1"));
    check("ports", state(None), unknown("state cannot be read: rxe0/1"));
    check("GID tables", state(Some("DOWN")), unknown("no active RoCE port"));
    let no_gids = |facts: &mut HostFacts| facts.rdma.devices[0].ports[0].gids = Default::default();
    check("GID tables", no_gids, missing("no RoCE v2 address of IPv4: rxe0/1"));
    let iwarp = |facts: &mut HostFacts| facts.rdma.devices[0].node_type = Some("4: RNIC".to_owned());
    check("GID tables", iwarp, unknown("no active RoCE port"));
    let no_kallsyms = "/proc/kallsyms cannot be read; ProtectKernelTunables= of a unit hides it";
    check("verbs functions", |facts| facts.entry_functions = None, unknown(no_kallsyms));
    let no_cm = |facts: &mut HostFacts| {
        facts.entry_functions.as_mut().unwrap()[5].target = Err("no kernel function ucma_write".to_owned());
    };
    check("verbs functions", no_cm, missing("no kernel function ucma_write"));
    let kprobe_only = |facts: &mut HostFacts| facts.entry_functions.as_mut().unwrap()[1].traceable = Some(false);
    check("verbs functions", kprobe_only, ok("all 6, by kprobe only: ib_uverbs_ioctl"));
}

#[test]
fn long_lists_are_cut_and_counted() {
    let many = |facts: &mut HostFacts| {
        let device = |number| RdmaDevice {
            name: format!("d{number}"),
            ports: vec![RdmaPort { number: 1, state: Some("DOWN".to_owned()), ..RdmaPort::default() }],
            ..RdmaDevice::default()
        };
        facts.rdma.devices = (0..100).map(device).collect();
    };
    check("ports", many, missing("not active: d0/1, d1/1, d2/1, d3/1, d4/1, d5/1, d6/1, d7/1 and 92 more"));
}

#[test]
fn verbs_tracing_says_by_what_or_why_not() {
    #[track_caller]
    fn row(change: impl FnOnce(&mut HostFacts), expected: &str, code: ExitCode) {
        let mut facts = healthy();
        change(&mut facts);
        let feature = features::features(&facts).into_iter().find(|feature| feature.name == "verbs tracing").unwrap();
        assert_eq!(feature.detail, expected);
        assert_eq!(exit_code(&facts), code);
    }
    row(|_| (), "by fexit", ExitCode::SUCCESS);
    row(|facts| facts.kernel.preempt = Preempt::Full, "by tracefs return probe", ExitCode::SUCCESS);
    row(|facts| facts.fexit = None, "by tracefs return probe", ExitCode::SUCCESS);
    let pmu_only = |facts: &mut HostFacts| {
        facts.fexit = None;
        facts.kernel.kprobe_events = Access::Absent;
    };
    row(pmu_only, "by kretprobe", ExitCode::SUCCESS);
    let no_kprobes = |facts: &mut HostFacts| {
        facts.fexit = Some(Err("EPERM".to_owned()));
        facts.kernel.kprobe_events = Access::Absent;
        facts.kernel.kprobe_pmu = false;
    };
    row(no_kprobes, "no kprobes, and fexit failed: EPERM", ExitCode::FAILURE);
    let unprivileged = |facts: &mut HostFacts| facts.kernel.capabilities = Some(Capabilities(0));
    row(unprivileged, "without CAP_BPF and CAP_PERFMON", ExitCode::FAILURE);
    let locked = |facts: &mut HostFacts| facts.kernel.lockdown = Some("confidentiality".to_owned());
    row(locked, "kernel lockdown forbids tracing", ExitCode::FAILURE);
    let no_uverbs = |facts: &mut HostFacts| {
        for function in facts.entry_functions.iter_mut().flatten() {
            function.target = Err(String::new());
        }
    };
    let why = "this kernel has no RDMA verbs functions: ib_uverbs is not loaded";
    row(no_uverbs, why, ExitCode::FAILURE);
}

#[test]
fn burst_sampling_says_by_what_or_why_not() {
    #[track_caller]
    fn row(tcx: Trial, clsact: Trial, line: Outcome, state: State, detail: &str) {
        let facts = HostFacts { tcx, clsact, ..healthy() };
        assert_eq!(outcome(&facts, "TCX"), line);
        let feature = features::features(&facts).into_iter().find(|feature| feature.name == "burst sampling").unwrap();
        assert_eq!((feature.state, &*feature.detail), (state, detail));
    }
    type Trial = Option<Result<(), String>>;
    let failed = |why: &str| Some(Err(why.to_owned()));
    let by_links = "by TCX links, which go with the process";
    row(Some(Ok(())), None, ok("a trial sampler attached by TCX links"), State::Yes, by_links);
    let filters = missing("this kernel has none; a trial sampler attached by clsact filters");
    row(
        failed("this kernel has none"),
        Some(Ok(())),
        filters,
        State::Yes,
        "by clsact filters (no TCX: this kernel has none)",
    );
    row(None, failed("EPERM"), unknown("EPERM"), State::No, "EPERM");
    row(None, None, unknown("not tried"), State::Unknown, "not tried");
}

#[test]
fn the_table_keeps_to_its_width_and_says_how_to_mend() {
    let mut facts = healthy();
    facts.rdma.devices.clear();
    for width in [64, 72, 100, 200] {
        let text = printed(&facts, Paper { width, colour: false });
        for line in text.lines() {
            assert!(line.chars().count() <= width, "{width}: {line:?}");
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        let words = words.join(" ");
        assert!(words.contains("missing RDMA devices there is no RDMA device on this host for: verbs tracing"));
        assert!(words.contains("costs: nothing to watch mend: load the NIC's RDMA driver"));
        assert!(words.contains("features yes verbs tracing by fexit"));
    }
}

#[test]
fn colour_is_only_where_it_is_asked_for() {
    let facts = healthy();
    assert!(!printed(&facts, PLAIN).contains('\x1b'));
    let coloured = printed(&facts, Paper { width: 100, colour: true });
    assert!(coloured.starts_with("\x1b[32mok\x1b[0m       kernel "), "{coloured:?}");
}

#[test]
fn text_of_the_host_cannot_command_the_terminal() {
    let mut facts = healthy();
    facts.rdma.devices[0].firmware = Some("1\x1b[2J\n2".to_owned());
    let text = printed(&facts, PLAIN);
    assert!(text.contains("rxe0 (rdma_rxe 1?[2J?2)"), "{text}");
}

#[test]
fn json_is_one_object_with_every_check() {
    let mut facts = healthy();
    facts.kernel.bpffs = None;
    let mut out = Vec::new();
    let args = DoctorArgs { output: Output::Json, roots: Roots::default() };
    run(&args, &facts, &mut out).unwrap();
    assert_eq!(out.iter().filter(|byte| **byte == b'\n').count(), 1);
    let value: serde_json::Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(value["host"], "host7");
    assert_eq!(value["checks"].as_array().unwrap().len(), CHECKS.len());
    let bpffs = value["checks"].as_array().unwrap().iter().find(|check| check["check"] == "bpffs").unwrap();
    assert_eq!(bpffs["status"], "missing");
    assert_eq!(bpffs["mend"], "mount -t bpf bpf /sys/fs/bpf");
    assert_eq!(value["features"][0]["detail"], "by fexit");
    assert_eq!(value["devices"][0]["driver"], "rdma_rxe");
    assert_eq!(value["devices"][0]["ports"][0]["gids"], 1);
    assert!(value["devices"][0].get("pci").is_none(), "absent where unknown");
}

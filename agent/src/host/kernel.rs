//! What this kernel offers to a tracer, as plain data. Nothing here changes the kernel or loads a program.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::path::{Path, PathBuf};

use super::drivers;
use super::kernel_text::{self as text, Capabilities, Limit};
use super::preempt::{self, Preempt};
use super::read;
use super::roots::Roots;

/// What the kernel offers. Absent always means "cannot be read".
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct KernelFacts {
    /// `uname -r`.
    pub(crate) release: Option<String>,
    /// Names this boot of the host.
    pub(crate) boot_id: Option<String>,
    /// `uname -n`.
    pub(crate) hostname: Option<String>,
    /// CPUs that can ever be there; per-CPU maps are this wide.
    pub(crate) cpus_possible: Option<u32>,
    /// CPUs that run now.
    pub(crate) cpus_online: Option<u32>,
    /// Whether vmlinux has readable BTF.
    pub(crate) btf_vmlinux: bool,
    /// RDMA modules with readable BTF of their own.
    pub(crate) btf_modules: Vec<String>,
    /// RDMA modules that are loaded and live. Absent if the kernel has no module support or does not say.
    pub(crate) modules: Option<Vec<String>>,
    /// Whether the kernel knows tracefs at all.
    pub(crate) tracefs_supported: bool,
    /// Where tracefs is mounted.
    pub(crate) tracefs: Option<PathBuf>,
    /// Whether kprobes can be made by perf_event_open, without tracefs.
    pub(crate) kprobe_pmu: bool,
    /// Whether `kprobe_events` is there and may be written.
    pub(crate) kprobe_events: Access,
    /// How the kernel preempts.
    pub(crate) preempt: Preempt,
    /// `none`, `integrity` or `confidentiality`; absent without the lockdown module.
    pub(crate) lockdown: Option<String>,
    /// Effective capabilities of this process.
    pub(crate) capabilities: Option<Capabilities>,
    /// kernel.perf_event_paranoid
    pub(crate) perf_event_paranoid: Option<i64>,
    /// kernel.kptr_restrict
    pub(crate) kptr_restrict: Option<i64>,
    /// kernel.unprivileged_bpf_disabled
    pub(crate) unprivileged_bpf_disabled: Option<i64>,
    /// net.core.bpf_jit_enable
    pub(crate) bpf_jit_enable: Option<i64>,
    /// kernel.ftrace_enabled; absent on kernels without ftrace.
    pub(crate) ftrace_enabled: Option<i64>,
    /// RLIMIT_MEMLOCK of this process.
    pub(crate) memlock: Option<Limit>,
    /// Where bpffs is mounted.
    pub(crate) bpffs: Option<PathBuf>,
}

/// Whether a control file can be used.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Access {
    /// Not there.
    #[default]
    Absent,
    /// There, and may be written.
    Writable,
    /// There, and refused, with the reason.
    Refused(String),
}

/// How many numbers CPUs of a list of the kernel (`online`, `possible`) have: one more than the highest.
pub(crate) fn cpu_numbers(roots: &Roots, list: &str) -> Option<u32> {
    let list = read::attribute(&roots.sysfs.join("devices/system/cpu").join(list))?;
    text::cpu_highest(&list)?.checked_add(1)
}

impl KernelFacts {
    /// Reads the state of this moment.
    pub(crate) fn read(roots: &Roots) -> Self {
        let proc = |path: &str| roots.procfs.join(path);
        let text_of = |path: PathBuf| read::text(&path).ok();
        let sysctl = |path: &str| read::parsed(&proc("sys").join(path));
        let cpus = |list: &str| {
            let path = roots.sysfs.join("devices/system/cpu").join(list);
            read::attribute(&path).and_then(|list| text::cpu_count(&list))
        };
        let mounts = text_of(proc("self/mounts")).unwrap_or_default();
        let filesystems = text_of(proc("filesystems")).unwrap_or_default();
        let modules = text_of(proc("modules"));
        let tracefs = find_tracefs(roots, &mounts);
        let btf = roots.sysfs.join("kernel/btf");
        Self {
            release: read::attribute(&proc("sys/kernel/osrelease")),
            boot_id: read::attribute(&proc("sys/kernel/random/boot_id")),
            hostname: read::attribute(&proc("sys/kernel/hostname")),
            cpus_possible: cpus("possible"),
            cpus_online: cpus("online"),
            btf_vmlinux: has_btf(&btf.join("vmlinux")),
            btf_modules: modules_with_btf(&btf),
            modules: modules.map(|modules| text::live_modules(&modules, drivers::is_rdma_module)),
            tracefs_supported: text::has_filesystem(&filesystems, "tracefs"),
            kprobe_pmu: roots.sysfs.join("bus/event_source/devices/kprobe/type").is_file(),
            kprobe_events: tracefs.as_deref().map_or(Access::Absent, kprobe_events),
            tracefs,
            preempt: preempt::model(
                text_of(roots.debugfs().join("sched/preempt")).as_deref(),
                text_of(proc("version")).as_deref(),
                text_of(proc("cmdline")).as_deref(),
            ),
            lockdown: read::attribute(&roots.sysfs.join("kernel/security/lockdown"))
                .and_then(|text| preempt::bracketed(&text).map(str::to_owned)),
            capabilities: text_of(proc("self/status")).and_then(|status| text::capabilities(&status)),
            perf_event_paranoid: sysctl("kernel/perf_event_paranoid"),
            kptr_restrict: sysctl("kernel/kptr_restrict"),
            unprivileged_bpf_disabled: sysctl("kernel/unprivileged_bpf_disabled"),
            bpf_jit_enable: sysctl("net/core/bpf_jit_enable"),
            ftrace_enabled: sysctl("kernel/ftrace_enabled"),
            memlock: text_of(proc("self/limits")).and_then(|limits| text::memlock(&limits)),
            bpffs: find_bpffs(roots, &mounts),
        }
    }

    /// Whether a module has BTF of its own, or is built in and served by that of vmlinux.
    pub(crate) fn has_module_btf(&self, module: &str) -> bool {
        let is = |name: &String| name == module;
        let loaded = self.modules.as_ref().is_some_and(|modules| modules.iter().any(is));
        self.btf_modules.iter().any(is) || (self.btf_vmlinux && !loaded)
    }
}

/// Where tracefs is mounted at this moment.
pub(crate) fn tracefs_of(roots: &Roots) -> Option<PathBuf> {
    find_tracefs(roots, &read::text(&roots.procfs.join("self/mounts")).unwrap_or_default())
}

/// The first place where tracefs really is: a usual one with its `events` folder, else where it is mounted.
fn find_tracefs(roots: &Roots, mounts: &str) -> Option<PathBuf> {
    let mut candidates = roots.tracefs_candidates();
    candidates.extend(text::mount_points(mounts, "tracefs"));
    candidates.into_iter().find(|path| path.join("events").is_dir())
}

/// bpffs at its usual or given place, else anywhere.
fn find_bpffs(roots: &Roots, mounts: &str) -> Option<PathBuf> {
    let points = text::mount_points(mounts, "bpf");
    let usual = roots.bpffs();
    if points.contains(&usual) { Some(usual) } else { points.into_iter().next() }
}

/// Tries to open `kprobe_events` for appending and writes nothing. Truncating it would delete every probe on the
/// host (`probes_open` in kernel/trace/trace_kprobe.c), so it is never opened that way.
fn kprobe_events(tracefs: &Path) -> Access {
    match OpenOptions::new().append(true).open(tracefs.join("kprobe_events")) {
        Ok(_) => Access::Writable,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Access::Absent,
        Err(error) => Access::Refused(error.to_string()),
    }
}

/// RDMA modules whose BTF can be read.
fn modules_with_btf(btf: &Path) -> Vec<String> {
    let mut modules = read::names(btf);
    modules.retain(|name| drivers::is_rdma_module(name) && has_btf(&btf.join(name)));
    modules
}

fn has_btf(path: &Path) -> bool {
    let mut start = [0; 2];
    File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok_and(|()| text::is_btf(start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn file(root: &Path, path: &str, bytes: &[u8]) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    #[test]
    fn a_kernel_with_rdma_modules_is_read() {
        let tree = tempfile::tempdir().unwrap();
        let root = tree.path();
        for (path, bytes) in [
            ("proc/sys/kernel/osrelease", "6.12.48\n"),
            ("proc/sys/kernel/perf_event_paranoid", "3\n"),
            ("proc/sys/kernel/kptr_restrict", "many\n"),
            ("proc/self/status", "CapEff:\t000001ffffffffff\n"),
            ("proc/self/mounts", "none /b bpf rw 0 0\nnone /c bpf rw 0 0\n"),
            ("proc/filesystems", "nodev\ttracefs\n"),
            ("proc/modules", "ib_core 1 0 - Live 0x0\nib_uverbs 1 0 - Live 0x0\next4 1 0 - Live 0x0\n"),
            ("proc/version", "Linux version 6.12.48 #1 SMP PREEMPT_DYNAMIC Debian\n"),
            ("sys/devices/system/cpu/possible", "0-7\n"),
            ("sys/kernel/security/lockdown", "none [integrity] confidentiality\n"),
            ("sys/kernel/debug/sched/preempt", "none (voluntary) full \n"),
            ("sys/kernel/debug/tracing/events/header_page", "x"),
            ("sys/kernel/debug/tracing/kprobe_events", "p:keep/me do_exit\n"),
        ] {
            file(root, path, bytes.as_bytes());
        }
        for (module, bytes) in [("vmlinux", b"\x9f\xeb\x01"), ("ib_core", b"\x9f\xeb\x01"), ("ib_uverbs", b"\0\0\0")] {
            file(root, &format!("sys/kernel/btf/{module}"), bytes);
        }
        let mut roots = Roots::at(root.join("sys"), root.join("proc"));
        let facts = KernelFacts::read(&roots);
        assert_eq!(facts.release.as_deref(), Some("6.12.48"));
        assert_eq!((facts.cpus_possible, facts.cpus_online), (Some(8), None));
        assert_eq!((facts.perf_event_paranoid, facts.kptr_restrict), (Some(3), None));
        assert_eq!(facts.modules.as_deref(), Some(["ib_core", "ib_uverbs"].map(str::to_owned).as_slice()));
        assert!(facts.btf_vmlinux && facts.has_module_btf("ib_core"));
        assert!(!facts.has_module_btf("ib_uverbs"), "loaded, and its BTF is not BTF");
        assert!(facts.has_module_btf("rdma_cm"), "not a module here: vmlinux serves if it is built in");
        assert_eq!(facts.lockdown.as_deref(), Some("integrity"));
        assert_eq!(facts.preempt, Preempt::Voluntary);
        assert_eq!(facts.tracefs, Some(root.join("sys/kernel/debug/tracing")));
        assert_eq!(facts.kprobe_events, Access::Writable);
        assert_eq!(facts.bpffs, Some(PathBuf::from("/b")));
        roots.bpffs = Some(PathBuf::from("/c"));
        assert_eq!(KernelFacts::read(&roots).bpffs, roots.bpffs);
        let probes = fs::read_to_string(root.join("sys/kernel/debug/tracing/kprobe_events")).unwrap();
        assert_eq!(probes, "p:keep/me do_exit\n", "looking must not remove anybody's probes");
    }

    #[test]
    fn nothing_readable_is_all_absent() {
        let tree = tempfile::tempdir().unwrap();
        let facts = KernelFacts::read(&Roots::at(tree.path().join("sys"), tree.path().join("proc")));
        assert_eq!(facts, KernelFacts::default());
    }

    #[test]
    fn this_host_is_read_without_a_panic() {
        let facts = KernelFacts::read(&Roots::default());
        assert!(facts.release.is_some() && facts.boot_id.is_some());
        assert!(facts.cpus_possible >= facts.cpus_online && facts.cpus_online >= Some(1));
    }
}

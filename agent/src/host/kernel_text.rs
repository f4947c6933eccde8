//! Parsers of what the kernel prints in /proc and /sys: pure, and odd text is an absent answer.

use std::path::PathBuf;

/// Capabilities that matter here, with their bits (include/uapi/linux/capability.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Capability {
    NetAdmin = 12,
    SysAdmin = 21,
    SysResource = 24,
    Perfmon = 38,
    Bpf = 39,
}

impl Capability {
    /// The kernel's name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::NetAdmin => "CAP_NET_ADMIN",
            Self::SysAdmin => "CAP_SYS_ADMIN",
            Self::SysResource => "CAP_SYS_RESOURCE",
            Self::Perfmon => "CAP_PERFMON",
            Self::Bpf => "CAP_BPF",
        }
    }
}

/// The effective capabilities of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Capabilities(pub(crate) u64);

impl Capabilities {
    /// Whether this very capability is held.
    pub(crate) fn has(self, capability: Capability) -> bool {
        self.0 & (1 << capability as u8) != 0
    }

    /// Whether the kernel will let through what this capability is for: CAP_SYS_ADMIN stands in for CAP_BPF and
    /// CAP_PERFMON (`bpf_capable` and `perfmon_capable` in include/linux/capability.h).
    pub(crate) fn allows(self, capability: Capability) -> bool {
        let by_admin = matches!(capability, Capability::Bpf | Capability::Perfmon) && self.has(Capability::SysAdmin);
        by_admin || self.has(capability)
    }
}

/// The value of a `Key:<tab>value` line, as in /proc/PID/status.
pub(crate) fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let mut lines = text.lines();
    lines.find_map(|line| line.strip_prefix(key)?.strip_prefix(':')).map(str::trim)
}

/// The effective capabilities in /proc/self/status.
pub(crate) fn capabilities(status: &str) -> Option<Capabilities> {
    u64::from_str_radix(field(status, "CapEff")?, 16).ok().map(Capabilities)
}

/// How many CPUs a list such as `0-3,8` names.
pub(crate) fn cpu_count(list: &str) -> Option<u32> {
    list.trim().split(',').try_fold(0u32, |sum, part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        sum.checked_add(last.checked_sub(first)?.checked_add(1)?)
    })
}

/// The highest number of a list of CPUs such as `0-3,8`.
pub(crate) fn cpu_highest(list: &str) -> Option<u32> {
    let last = |part: &str| part.rsplit('-').next()?.parse().ok();
    list.trim().split(',').map(last).max()?
}

/// A resource limit in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    /// No limit.
    Unlimited,
    /// In bytes.
    Bytes(u64),
}

/// The soft limit of locked memory in /proc/self/limits.
pub(crate) fn memlock(limits: &str) -> Option<Limit> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max locked memory"))?;
    match line.split_ascii_whitespace().next()? {
        "unlimited" => Some(Limit::Unlimited),
        number => number.parse().ok().map(Limit::Bytes),
    }
}

/// The mount points of a type of file system in /proc/self/mounts.
pub(crate) fn mount_points(mounts: &str, kind: &str) -> Vec<PathBuf> {
    let of_kind = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let point = fields.next()?;
        (fields.next()? == kind).then(|| PathBuf::from(unescaped(point)))
    });
    of_kind.collect()
}

/// A mount point without the kernel's octal escapes for space, tab, line feed and backslash.
fn unescaped(text: &str) -> String {
    const ESCAPES: [(&str, &str); 4] = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    ESCAPES.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// Whether /proc/filesystems offers a type.
pub(crate) fn has_filesystem(filesystems: &str, kind: &str) -> bool {
    filesystems.lines().any(|line| line.split_ascii_whitespace().next_back() == Some(kind))
}

/// The names of live modules in /proc/modules that `keep` wants. A module that is still loading or already
/// leaving has no functions to hook.
pub(crate) fn live_modules(modules: &str, keep: impl Fn(&str) -> bool) -> Vec<String> {
    let live = modules.lines().filter_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        let name = fields.next()?;
        (fields.nth(3)? == "Live" && keep(name)).then(|| name.to_owned())
    });
    let mut names: Vec<String> = live.collect();
    names.sort();
    names
}

/// Whether a file begins like BTF does, in either byte order (BTF_MAGIC in include/uapi/linux/btf.h).
pub(crate) fn is_btf(start: [u8; 2]) -> bool {
    u16::from_le_bytes(start) == 0xeb9f || u16::from_be_bytes(start) == 0xeb9f
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_read_and_sys_admin_stands_in() {
        for (status, expected) in [
            ("Name:\tx\nCapPrm:\tffff\nCapEff:\t000000c000000000\nCapBnd:\t0\n", Some(0xc0_0000_0000)),
            ("CapEff:\t0000000000000000\n", Some(0)),
            ("CapEff:\tzz\n", None),
            ("CapEffective:\t1\n", None),
            ("", None),
        ] {
            assert_eq!(capabilities(status), expected.map(Capabilities), "{status:?}");
        }
        let bpf = Capabilities(0xc0_0000_0000);
        assert!(bpf.has(Capability::Bpf) && bpf.has(Capability::Perfmon) && !bpf.has(Capability::SysAdmin));
        let admin = Capabilities(1 << 21);
        assert!(admin.allows(Capability::Bpf) && admin.allows(Capability::Perfmon));
        assert!(!admin.has(Capability::Bpf) && !admin.allows(Capability::NetAdmin));
    }

    #[test]
    fn cpu_lists_are_counted() {
        for (list, expected) in [
            ("0\n", Some(1)),
            ("0-1", Some(2)),
            ("0-3,8,10-11\n", Some(7)),
            ("", None),
            ("3-1", None),
            ("0-", None),
            ("0-4294967295", None),
        ] {
            assert_eq!(cpu_count(list), expected, "{list:?}");
        }
    }

    #[test]
    fn the_highest_cpu_is_found_wherever_it_stands() {
        for (list, expected) in [("0-3,8\n", Some(8)), ("0", Some(0)), ("4-7,0-1\n", Some(7)), ("", None), ("x", None)]
        {
            assert_eq!(cpu_highest(list), expected, "{list:?}");
        }
    }

    #[test]
    fn limits_are_read() {
        let line = |value| format!("Limit   Soft Hard\nMax locked memory         {value}   {value}   bytes\n");
        assert_eq!(memlock(&line("8388608")), Some(Limit::Bytes(8_388_608)));
        assert_eq!(memlock(&line("unlimited")), Some(Limit::Unlimited));
        assert_eq!(memlock(&line("much")), None);
        assert_eq!(memlock("Max processes 1 1 processes"), None);
    }

    #[test]
    fn mounts_are_found_by_type() {
        let mounts = "sysfs /sys sysfs rw 0 0\nbpf /sys/fs/my\\040bpf bpf rw 0 0\nx\nbpf /second bpf rw 0 0\n";
        let check = |kind, expected: &[&str]| {
            let expected: Vec<PathBuf> = expected.iter().map(PathBuf::from).collect();
            assert_eq!(mount_points(mounts, kind), expected, "{kind:?}");
        };
        check("sysfs", &["/sys"]);
        check("bpf", &["/sys/fs/my bpf", "/second"]);
        check("tracefs", &[]);
        check("", &[]);
        let filesystems = "nodev\tsysfs\nnodev\ttracefs\n\text4\n";
        assert!(has_filesystem(filesystems, "tracefs") && has_filesystem(filesystems, "ext4"));
        assert!(!has_filesystem(filesystems, "bpf") && !has_filesystem(filesystems, "nodev"));
    }

    #[test]
    fn only_live_modules_count() {
        let modules = "rdma_rxe 204800 1 - Live 0x0000000000000000\n\
                       ib_core 532480 2 rdma_rxe,ib_uverbs, Live 0x0000000000000000 (OE)\n\
                       mlx5_ib 1 0 - Loading 0x0\n\
                       siw 1 0 - Unloading 0x0\n\
                       e1000e 1 0 - Live 0x0\n\
                       short\n";
        let kept = live_modules(modules, |name| name != "e1000e");
        assert_eq!(kept, ["ib_core", "rdma_rxe"]);
    }

    #[test]
    fn btf_is_known_by_its_first_bytes() {
        assert!(is_btf([0x9f, 0xeb]) && is_btf([0xeb, 0x9f]));
        assert!(!is_btf([0, 0]));
    }
}

//! Where the kernel's file systems are mounted, so that containers and tests can look elsewhere.

use std::path::PathBuf;

/// Mount points of the kernel's file systems as this process sees them.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
#[command(next_help_heading = "Where to look")]
pub(crate) struct Roots {
    /// Where sysfs is mounted
    #[arg(long = "path.sysfs", value_name = "DIR", default_value = "/sys")]
    pub(crate) sysfs: PathBuf,

    /// Where procfs is mounted
    #[arg(long = "path.procfs", value_name = "DIR", default_value = "/proc")]
    pub(crate) procfs: PathBuf,

    /// Where tracefs is mounted [default: kernel/tracing in sysfs, then kernel/debug/tracing]
    #[arg(long = "path.tracefs", value_name = "DIR")]
    pub(crate) tracefs: Option<PathBuf>,

    /// Where debugfs is mounted [default: kernel/debug in sysfs]
    #[arg(long = "path.debugfs", value_name = "DIR")]
    pub(crate) debugfs: Option<PathBuf>,

    /// Where bpffs is mounted [default: fs/bpf in sysfs]
    #[arg(long = "path.bpffs", value_name = "DIR")]
    pub(crate) bpffs: Option<PathBuf>,

    /// Where the unified cgroup hierarchy is mounted [default: fs/cgroup in sysfs]
    #[arg(long = "path.cgroupfs", value_name = "DIR")]
    pub(crate) cgroupfs: Option<PathBuf>,
}

impl Default for Roots {
    fn default() -> Self {
        Self::at("/sys", "/proc")
    }
}

impl Roots {
    /// Roots with everything but `sysfs` and `procfs` at its usual place below them.
    pub(crate) fn at(sysfs: impl Into<PathBuf>, procfs: impl Into<PathBuf>) -> Self {
        Self { sysfs: sysfs.into(), procfs: procfs.into(), tracefs: None, debugfs: None, bpffs: None, cgroupfs: None }
    }

    /// Where debugfs should be.
    pub(crate) fn debugfs(&self) -> PathBuf {
        self.debugfs.clone().unwrap_or_else(|| self.sysfs.join("kernel/debug"))
    }

    /// Where bpffs should be.
    pub(crate) fn bpffs(&self) -> PathBuf {
        self.bpffs.clone().unwrap_or_else(|| self.sysfs.join("fs/bpf"))
    }

    /// Where the unified cgroup hierarchy should be.
    pub(crate) fn cgroupfs(&self) -> PathBuf {
        self.cgroupfs.clone().unwrap_or_else(|| self.sysfs.join("fs/cgroup"))
    }

    /// The places to look for tracefs, best first. The second is the mount that debugfs makes by itself.
    pub(crate) fn tracefs_candidates(&self) -> Vec<PathBuf> {
        match &self.tracefs {
            Some(path) => vec![path.clone()],
            None => vec![self.sysfs.join("kernel/tracing"), self.debugfs().join("tracing")],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_wins_over_the_usual_place() {
        let mut roots = Roots::at("/host/sys", "/host/proc");
        assert_eq!(roots.bpffs(), PathBuf::from("/host/sys/fs/bpf"));
        assert_eq!(roots.cgroupfs(), PathBuf::from("/host/sys/fs/cgroup"));
        assert_eq!(
            roots.tracefs_candidates(),
            [PathBuf::from("/host/sys/kernel/tracing"), PathBuf::from("/host/sys/kernel/debug/tracing")]
        );
        roots.debugfs = Some("/d".into());
        roots.bpffs = Some("/b".into());
        assert_eq!(roots.tracefs_candidates()[1], PathBuf::from("/d/tracing"));
        assert_eq!(roots.bpffs(), PathBuf::from("/b"));
        roots.tracefs = Some("/t".into());
        assert_eq!(roots.tracefs_candidates(), [PathBuf::from("/t")]);
    }
}

//! Who a process is: when it started and where it is accounted, as far as /proc still tells.

use std::fs;
use std::os::unix::fs::MetadataExt;

use super::read;
use super::roots::Roots;

/// Length of a clock tick of /proc in nanoseconds: USER_HZ is 100 on every architecture that this agent runs on.
const TICK_NS: u64 = 10_000_000;

/// A process. Absent values were unreadable, mostly because it has ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Process {
    /// Nanoseconds since boot, to the tick of 10 ms. With the number it names the process for good: numbers are
    /// used again.
    pub(crate) start_ns: Option<u64>,
    /// The cgroup's path, such as `/system.slice/slurmstepd.scope/job_42`, if the process is still in the cgroup that
    /// an event names. Walking the hierarchy for an id would cost a system call for each cgroup of the host; this
    /// costs three.
    pub(crate) cgroup: Option<String>,
}

/// A cgroup of the unified hierarchy; on a host without one, of the first hierarchy that names a path.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Cgroup {
    path: String,
    /// What BPF calls the cgroup id. Absent without the unified hierarchy.
    id: Option<u64>,
}

impl Process {
    /// What /proc says at this moment of the process that an event names with its cgroup.
    pub(crate) fn read(roots: &Roots, pid: u32, cgroup_id: u64) -> Self {
        let path = roots.procfs.join(pid.to_string());
        let cgroup = read::text(&path.join("cgroup")).ok().and_then(|text| Cgroup::read(roots, &text));
        Self {
            start_ns: read::text(&path.join("stat")).ok().and_then(|stat| start_ns(&stat)),
            cgroup: cgroup.filter(|cgroup| cgroup.id == Some(cgroup_id)).map(|cgroup| cgroup.path),
        }
    }
}

/// What a process is called in the name of what it makes and may leave behind: its number, and when it started, since
/// numbers come again. `None` if there is no such process.
pub(crate) fn identity(pid: u32) -> Option<String> {
    let start = start_ns(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?;
    Some(format!("{pid}_{}", start / TICK_NS))
}

/// Whether the process of an [`identity`] still runs; `None` for what is none.
pub(crate) fn is_alive(identity: &str) -> Option<bool> {
    let (pid, start) = identity.split_once('_')?;
    let (pid, _) = (pid.parse().ok()?, start.parse::<u64>().ok()?);
    Some(self::identity(pid).as_deref() == Some(identity))
}

/// What BPF calls the cgroup that a process or thread is in at this moment.
pub(crate) fn cgroup_id(roots: &Roots, id: u32) -> Option<u64> {
    let text = read::text(&roots.procfs.join(id.to_string()).join("cgroup")).ok()?;
    Cgroup::read(roots, &text)?.id
}

impl Cgroup {
    fn read(roots: &Roots, text: &str) -> Option<Self> {
        let (path, unified) = cgroup_path(text)?;
        let id = || {
            // The id is the inode number of the cgroup's directory (kernfs, 64-bit inode numbers).
            let directory = roots.cgroupfs().join(path.trim_start_matches('/'));
            Some(fs::metadata(directory).ok()?.ino())
        };
        Some(Self { path: path.to_owned(), id: if unified { id() } else { None } })
    }
}

/// The path in /proc/PID/cgroup and whether it is of the unified hierarchy, whose line begins with `0::`. On hybrid
/// hosts that line may only say `/`, and then the named hierarchy of the service manager knows more.
fn cgroup_path(text: &str) -> Option<(&str, bool)> {
    let lines = || text.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
    let unified = lines().find(|(controllers, _)| controllers.is_empty()).map(|(_, path)| path);
    let named = lines().filter(|(controllers, path)| !controllers.is_empty() && *path != "/");
    match unified {
        Some(path) if path != "/" => Some((path, true)),
        other => named.map(|(_, path)| (path, false)).next().or(other.map(|path| (path, true))),
    }
}

/// Field 22 of /proc/PID/stat. The name in field 2 may hold spaces and brackets: count from the last bracket.
fn start_ns(stat: &str) -> Option<u64> {
    let (_, after_comm) = stat.rsplit_once(')')?;
    let ticks: u64 = after_comm.split_ascii_whitespace().nth(19)?.parse().ok()?;
    ticks.checked_mul(TICK_NS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process;

    #[test]
    fn the_start_is_found_behind_any_name() {
        let rest = "S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20 21\n";
        for (stat, expected) in [
            (format!("7 (python3) {rest}"), Some(47_110_000_000)),
            (format!("7 (a) b) (c 1 2 3) {rest}"), Some(47_110_000_000)),
            ("7 (x) S 1 2".to_owned(), None),
            (format!("7 (x) {}", rest.replace("4711", "-1")), None),
            (format!("7 (x) {}", rest.replace("4711", "18446744073709551615")), None),
            (String::new(), None),
        ] {
            assert_eq!(start_ns(&stat), expected, "{stat:?}");
        }
    }

    #[test]
    fn the_most_telling_cgroup_is_taken() {
        for (text, expected) in [
            ("0::/system.slice/x.service\n", Some(("/system.slice/x.service", true))),
            ("0::/\n", Some(("/", true))),
            ("4:memory:/slurm/job_1\n1:name=systemd:/\n0::/\n", Some(("/slurm/job_1", false))),
            ("4:memory:/slurm/job_1\n0::/a:b\n", Some(("/a:b", true))),
            ("1:name=systemd:/\n", None),
            ("odd", None),
            ("", None),
        ] {
            assert_eq!(cgroup_path(text), expected, "{text:?}");
        }
    }

    #[test]
    fn this_process_is_known_and_a_gone_one_is_all_absent() {
        let roots = Roots::default();
        let this = Process::read(&roots, process::id(), 0);
        assert!(this.start_ns > Some(0));
        assert_eq!(this, Process::read(&roots, process::id(), 0), "the identity of a process does not change");
        assert_eq!(Process::read(&roots, u32::MAX, 0), Process::default());
    }

    #[test]
    fn a_process_is_itself_and_no_other() {
        let own = identity(process::id()).expect("this process is there");
        assert!(own.starts_with(&format!("{}_", process::id())));
        assert_ne!(identity(1).expect("so is the first"), own);
        assert_eq!(identity(u32::MAX), None);
        let rows = [(&*own, Some(true)), ("1_999999999999", Some(false)), ("4294967295_1", Some(false))];
        for (text, expected) in rows.into_iter().chain([("tests", None), ("1", None), ("1_", None), ("a_1", None)]) {
            assert_eq!(is_alive(text), expected, "{text}");
        }
    }

    #[test]
    fn a_cgroup_path_is_given_only_for_the_cgroup_asked_about() {
        let tree = tempfile::tempdir().unwrap();
        let roots = Roots::at(tree.path().join("sys"), tree.path().join("proc"));
        let directory = roots.cgroupfs().join("jobs/job_1");
        fs::create_dir_all(&directory).unwrap();
        fs::create_dir_all(roots.procfs.join("9")).unwrap();
        fs::write(roots.procfs.join("9/cgroup"), "0::/jobs/job_1\n").unwrap();
        let id = fs::metadata(&directory).unwrap().ino();
        assert_eq!(Process::read(&roots, 9, id).cgroup.as_deref(), Some("/jobs/job_1"));
        assert_eq!(Process::read(&roots, 9, id + 1).cgroup, None);
        assert_eq!(Process::read(&roots, 10, id).cgroup, None);
    }
}

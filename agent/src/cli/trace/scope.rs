//! A cgroup for one command: it and all its children, whatever they do, carry the cgroup's id in every event.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, bail};

use crate::config::limits;
use crate::host::process;
use crate::host::roots::Roots;

/// What every scope's name begins with; its maker's identity follows.
const PREFIX: &str = "fabricscope-trace-";

/// A cgroup that goes when this is dropped, if nothing is left in it.
#[derive(Debug)]
pub(crate) struct Scope {
    folder: PathBuf,
    /// What the kernel calls it.
    pub(crate) id: u64,
}

impl Scope {
    /// Makes a cgroup below the one this process is in.
    ///
    /// # Errors
    ///
    /// If there is no cgroup v2, or it may not be written.
    pub(crate) fn new(roots: &Roots) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(roots.procfs.join("self/cgroup")).context("reading /proc/self/cgroup")?;
        let own = text.lines().find_map(|line| line.strip_prefix("0::"));
        let own = own.context("this host has no cgroup v2 hierarchy, by which a command's children are told")?;
        remove_leftovers(roots);
        let maker = process::identity(std::process::id()).context("reading /proc/self/stat")?;
        let name = format!("{PREFIX}{maker}");
        let folder = roots.cgroupfs().join(own.trim_start_matches('/')).join(name);
        std::fs::create_dir(&folder).map_err(|error| {
            // Under a sysfs of its own there is no cgroup file system.
            let hidden = error.kind() == io::ErrorKind::NotFound;
            let hint = if hidden { "`ip netns exec` hides it: put that into the command" } else { "this needs root" };
            anyhow::Error::new(error).context(format!("making the cgroup {} ({hint})", folder.display()))
        })?;
        // A cgroup's id is the number of its folder's inode.
        let id = match std::fs::metadata(&folder) {
            Ok(metadata) => metadata.ino(),
            Err(error) => {
                let _ = std::fs::remove_dir(&folder);
                return Err(error).with_context(|| format!("looking at {}", folder.display()));
            }
        };
        Ok(Self { folder, id })
    }

    /// Starts a command inside.
    ///
    /// # Errors
    ///
    /// If there is no such command, or it cannot be started.
    pub(crate) fn start(&self, command: &[String]) -> anyhow::Result<Child> {
        let Some((program, arguments)) = command.split_first() else { bail!("there is no command to run") };
        if !is_program(program) {
            bail!("no program {program}: not found, or not executable");
        }
        // A shell puts itself into the cgroup before it becomes the command, so that not one call escapes.
        Command::new("/bin/sh")
            .args(["-c", "echo $$ > \"$0\" && exec \"$@\""])
            .arg(self.folder.join("cgroup.procs"))
            .arg(program)
            .args(arguments)
            .stdin(Stdio::inherit())
            .spawn()
            .with_context(|| format!("starting {program}"))
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        // The kernel lets go of a dead process a moment after its parent has seen it end.
        let end = std::time::Instant::now() + std::time::Duration::from_secs(2);
        while let Err(error) = std::fs::remove_dir(&self.folder) {
            let busy = error.kind() == io::ErrorKind::ResourceBusy;
            if !busy || std::time::Instant::now() >= end {
                if error.kind() != io::ErrorKind::NotFound {
                    eprintln!("fabricscope: the cgroup {} stays: {error}", self.folder.display());
                }
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

/// Removes the cgroups whose makers are dead, wherever they stand, and says how many. One in which the command still runs
/// stays until it has ended.
pub(crate) fn remove_leftovers(roots: &Roots) -> usize {
    let mut folders = vec![roots.cgroupfs()];
    let (mut seen, mut removed) = (0, 0);
    while let Some(folder) = folders.pop().filter(|_| seen < limits::CGROUPS) {
        seen += 1;
        // It may have gone in the meantime.
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        // A file's type comes with its name: nothing is opened to learn it.
        let inside = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        for folder in inside.map(|entry| entry.path()) {
            if is_leftover(&folder) && std::fs::remove_dir(&folder).is_ok() {
                removed += 1;
            } else {
                folders.push(folder);
            }
        }
    }
    removed
}

/// Whether its name says that it was made by a process that is gone.
fn is_leftover(folder: &Path) -> bool {
    let name = folder.file_name().and_then(|name| name.to_str());
    name.and_then(|name| name.strip_prefix(PREFIX)).and_then(process::is_alive) == Some(false)
}

/// Whether a shell would find it.
fn is_program(name: &str) -> bool {
    let executable = |path: PathBuf| {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    if name.contains('/') {
        return executable(PathBuf::from(name));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| executable(folder.join(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_empty_cgroups_of_dead_makers_are_removed() {
        let tree = tempfile::tempdir().unwrap();
        let roots = Roots::at(tree.path().join("sys"), tree.path().join("proc"));
        let live = format!("job/{PREFIX}{}", process::identity(std::process::id()).unwrap());
        let dead = [format!("{PREFIX}1_999999999999"), format!("job/step/{PREFIX}4294967295_7")];
        // A folder with something in it is refused as a cgroup with processes is.
        let used = format!("used/{PREFIX}4294967295_8");
        let others = ["job".into(), "job/step".into(), format!("job/{PREFIX}tests"), format!("{PREFIX}12"), live];
        for name in dead.iter().chain(&others).chain([&format!("{used}/inside")]) {
            std::fs::create_dir_all(roots.cgroupfs().join(name)).unwrap();
        }
        assert_eq!(remove_leftovers(&roots), 2);
        for (names, there) in [(&dead[..], false), (&others[..], true), (&[used][..], true)] {
            assert!(names.iter().all(|name| roots.cgroupfs().join(name).exists() == there), "{names:?}");
        }
        assert_eq!(remove_leftovers(&roots), 0);
    }

    #[test]
    fn a_cgroup_file_system_that_is_not_there_is_told() {
        let tree = tempfile::tempdir().unwrap();
        let roots = Roots::at(tree.path().join("sys"), "/proc");
        let error = format!("{:#}", Scope::new(&roots).unwrap_err());
        assert!(error.contains("`ip netns exec` hides it"), "{error}");
    }

    #[test]
    fn programs_are_found_as_a_shell_finds_them() {
        let rows = [
            ("sh", true),
            ("/bin/sh", true),
            ("no-such-program-at-all", false),
            ("/bin", false),
            ("/etc/passwd", false),
        ];
        for (name, expected) in rows {
            assert_eq!(is_program(name), expected, "{name}");
        }
    }
}

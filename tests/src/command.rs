//! Runs a program to its end or a deadline, with its output kept.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process_group};

/// How often a running program is looked at.
const POLL: Duration = Duration::from_millis(20);

/// What a program left.
#[derive(Debug)]
pub struct Finished {
    /// How it ended.
    pub status: ExitStatus,
    /// What it wrote to its standard output.
    pub stdout: String,
    /// What it wrote to its standard error.
    pub stderr: String,
}

/// Runs `command` without input in a process group of its own, and ends the whole group at the deadline.
///
/// # Errors
/// When the program cannot be started, or is not done after `limit`: the message ends with what it wrote last.
pub fn run(command: &mut Command, limit: Duration) -> Result<Finished> {
    let name = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn().with_context(|| format!("start {name}"))?;
    let stdout = reader(child.stdout.take());
    let stderr = reader(child.stderr.take());
    let status = wait(&mut child, limit)?;
    // A process that left the group could hold the pipes open; none of ours does.
    let finish = |reader: JoinHandle<String>| reader.join().unwrap_or_default();
    let (stdout, stderr) = (finish(stdout), finish(stderr));
    match status {
        Some(status) => Ok(Finished { status, stdout, stderr }),
        None => bail!("{name} was not done after {} s; it wrote last:\n{}", limit.as_secs(), tail(&stderr, 40)),
    }
}

/// The last `count` lines of a text.
#[must_use]
pub fn tail(text: &str, count: usize) -> String {
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

/// `None` when the deadline passed: the whole group is gone then.
fn wait(child: &mut Child, limit: Duration) -> Result<Option<ExitStatus>> {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait().context("wait for a program")? {
            return Ok(Some(status));
        }
        if Instant::now() >= deadline {
            let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw).context("a process id")?;
            kill_process_group(group, Signal::KILL).context("end a process group")?;
            child.wait().context("wait for a program")?;
            return Ok(None);
        }
        thread::sleep(POLL);
    }
}

fn reader(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // What came before an error is still worth showing.
            drop(pipe.read_to_end(&mut bytes));
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// The workspace's root folder.
#[must_use]
pub fn workspace() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own).to_owned()
}

/// The folder that cargo builds into.
#[must_use]
pub fn target() -> PathBuf {
    variable("CARGO_TARGET_DIR").unwrap_or_else(|| workspace().join("target"))
}

/// The `fabricscope` binary: the one `FABRICSCOPE_BIN` names, else the release build.
#[must_use]
pub fn fabricscope() -> PathBuf {
    variable("FABRICSCOPE_BIN").unwrap_or_else(|| target().join("release/fabricscope"))
}

/// A command that runs one of the project's own commands: the xtask that `FABRICSCOPE_XTASK` names, else cargo's.
#[must_use]
pub fn xtask() -> Command {
    if let Some(built) = variable("FABRICSCOPE_XTASK") {
        return Command::new(built);
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsStr::new("cargo").to_owned());
    let mut command = Command::new(cargo);
    command.current_dir(workspace()).args(["run", "--quiet", "--package", "xtask", "--"]);
    command
}

fn variable(name: &str) -> Option<PathBuf> {
    let value = std::env::var_os(name).filter(|value| !value.is_empty())?;
    // A relative path means the workspace's: cargo starts tests in the folder of their package.
    Some(workspace().join(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> Result<Finished> {
        run(Command::new("sh").args(["-c", script]), limit)
    }

    #[test]
    fn output_and_status_are_kept() {
        let seen = shell("echo out; echo err >&2; exit 3", Duration::from_secs(20)).unwrap();
        assert_eq!((seen.status.code(), &*seen.stdout, &*seen.stderr), (Some(3), "out\n", "err\n"));
    }

    #[test]
    fn a_hanging_program_ends_with_its_children_at_the_deadline() {
        let start = Instant::now();
        let error = shell("echo waiting >&2; sleep 100 & sleep 100", Duration::from_secs(2)).unwrap_err();
        assert!(error.to_string().contains("waiting"), "{error}");
        assert!(start.elapsed() < Duration::from_secs(50));
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let error = run(&mut Command::new("no-such-program"), Duration::from_secs(1)).unwrap_err();
        assert!(error.to_string().contains("no-such-program"), "{error}");
    }

    #[test]
    fn the_tail_is_the_last_lines() {
        assert_eq!(tail("a\nb\nc\n", 2), "b\nc");
        assert_eq!(tail("a", 2), "a");
    }
}

//! `cargo xtask run`: set-up, a release build as this user, then the agent as root.

use std::ffi::OsString;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::build;
use crate::runner::{agent, line, on_path, workspace};

/// The configuration the agent gets when the arguments name none, seen from the workspace.
const CONFIG: &str = "deploy/agent.toml";

/// Builds the agent and becomes it: its signals and its exit status are then its own.
///
/// # Errors
/// If something cannot be built, or the agent can be raised to root neither now nor by sudo. Returns only then.
pub(crate) fn run(duration: Option<&str>, arguments: &[OsString]) -> Result<()> {
    build::agent(true)?;
    let arguments = agent_arguments(&workspace(), duration, arguments);
    let binary = agent()?;
    let mut command = raised(&binary, &arguments, is_root()?, on_path("sudo"))?;
    eprintln!("running {}", line(&command));
    let error = command.exec();
    Err(error).with_context(|| format!("cannot run {}", line(&command)))
}

/// The command that runs the agent as root.
fn raised(binary: &Path, arguments: &[OsString], root: bool, sudo: bool) -> Result<Command> {
    let mut command = Command::new(if root { binary } else { Path::new("sudo") });
    if !root {
        command.arg("--").arg(binary);
    }
    command.args(arguments);
    if !root && !sudo {
        let words: Vec<_> = command.get_args().skip(1).map(|word| word.display().to_string()).collect();
        bail!("the agent loads programs into the kernel: run as root (there is no sudo here): {}", words.join(" "));
    }
    Ok(command)
}

fn agent_arguments(workspace: &Path, duration: Option<&str>, given: &[OsString]) -> Vec<OsString> {
    let mut all: Vec<OsString> = vec!["agent".into()];
    let names_config =
        |argument: &OsString| argument.to_str().is_some_and(|text| text == "--config" || text.starts_with("--config="));
    if !given.iter().any(names_config) {
        all.extend(["--config".into(), workspace.join(CONFIG).into_os_string()]);
    }
    all.push("--summary".into());
    if let Some(duration) = duration {
        all.extend(["--for".into(), duration.into()]);
    }
    all.extend_from_slice(given);
    all
}

fn is_root() -> Result<bool> {
    let path = "/proc/self/status";
    let status = fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
    effective_user(&status).map(|user| user == 0).with_context(|| format!("{path} names no user"))
}

/// The second number of the `Uid:` line (real, effective, saved, file system; proc_pid_status(5)).
fn effective_user(status: &str) -> Option<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_effective_user_counts() {
        assert_eq!(effective_user("Name:\tx\nUid:\t1000\t0\t0\t0\n"), Some(0));
        assert_eq!(effective_user("Uid:\t0\t1000\t0\t0\n"), Some(1000));
        assert_eq!(effective_user("Name:\tx\n"), None);
    }

    #[test]
    fn without_root_and_without_sudo_the_command_is_told() {
        let (binary, arguments) = (Path::new("/t/fabricscope"), [OsString::from("agent")]);
        let shown = |root, sudo| raised(binary, &arguments, root, sudo).map(|command| line(&command));
        assert_eq!(shown(true, false).unwrap(), "`fabricscope agent`");
        assert_eq!(shown(false, true).unwrap(), "`sudo -- /t/fabricscope agent`");
        let error = shown(false, false).unwrap_err().to_string();
        assert!(error.ends_with(": /t/fabricscope agent"), "{error}");
    }

    #[track_caller]
    fn check(duration: Option<&str>, given: &[&str], expected: &[&str]) {
        let given: Vec<_> = given.iter().map(OsString::from).collect();
        assert_eq!(agent_arguments(Path::new("/w"), duration, &given), expected);
    }

    #[test]
    fn the_agent_gets_the_packaged_configuration_unless_one_is_named() {
        check(Some("20s"), &[], &["agent", "--config", "/w/deploy/agent.toml", "--summary", "--for", "20s"]);
        check(None, &["--config", "/x"], &["agent", "--summary", "--config", "/x"]);
        check(None, &["--config=/x"], &["agent", "--summary", "--config=/x"]);
    }
}

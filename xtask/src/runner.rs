//! Runs other programs: where the workspace is, and errors that name the program that failed.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The workspace's folder.
pub(crate) fn workspace() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// The target folder this program was built in, and everything else is.
pub(crate) fn target() -> Result<PathBuf> {
    let program = env::current_exe().context("cannot find this program's own path")?;
    Ok(ebpf_build::target_dir(&workspace(), &program))
}

/// The release build of the agent.
pub(crate) fn agent() -> Result<PathBuf> {
    Ok(target()?.join("release").join("fabricscope"))
}

/// A cargo command in the workspace, by the cargo that runs us and into the same target folder.
pub(crate) fn cargo(arguments: &[&str]) -> Result<Command> {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    ebpf_build::inherit::scrub(&mut cargo).args(arguments).current_dir(workspace()).env("CARGO_TARGET_DIR", target()?);
    Ok(cargo)
}

/// Runs `command`, its output going to the terminal; an error if it fails.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.stdin(Stdio::null()).status().with_context(|| format!("cannot run {}", program(command)))?;
    if !status.success() {
        bail!("{} ended with {status}", line(command));
    }
    Ok(())
}

/// Runs `command` unseen and returns what it printed; an error that shows its messages if it fails.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot run {}", program(command)))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{} ended with {}: {}", line(command), output.status, said.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Whether a program of this name is on the search path.
pub(crate) fn on_path(name: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(name).is_file())
}

/// The command as a person would type it, without its environment.
pub(crate) fn line(command: &Command) -> String {
    let arguments = command.get_args().map(|argument| argument.display().to_string());
    let words: Vec<_> = std::iter::once(program(command)).chain(arguments).collect();
    format!("`{}`", words.join(" "))
}

fn program(command: &Command) -> String {
    let path = Path::new(command.get_program());
    path.file_name().unwrap_or(path.as_os_str()).display().to_string()
}

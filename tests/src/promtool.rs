//! promtool: what Prometheus itself says of metrics, rules and configurations.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::command::run;
use crate::debian;

/// Debian's package; the server is in it too.
const PACKAGE: &str = "prometheus";
/// How it ends if it can read a page and dislikes something of it.
const DISLIKES: i32 = 3;
/// What it says and is not heeded.
const EXCEPTIONS: &[&str] = &[
    // The word is what the metric is about: any counter of a NIC.
    "fabricscope_counter_saturated metric name should not include type 'counter'",
];
/// How long it may take.
const CHECK: Duration = Duration::from_secs(60);

/// Refuses a page of metrics that cannot be read, and one with anything that promtool would have otherwise.
///
/// # Errors
/// What promtool says; or when it cannot be fetched from Debian.
pub fn check_metrics(page: &Path) -> Result<()> {
    // It takes a page from its standard input alone.
    let mut command = Command::new("sh");
    command.args(["-c", "exec \"$0\" check metrics < \"$1\""]).arg(program()?).arg(page);
    let seen = run(&mut command, CHECK)?;
    let said = seen.stdout + &seen.stderr;
    let disliked: Vec<&str> = said.lines().filter(|line| !EXCEPTIONS.contains(line)).collect();
    let well = matches!(seen.status.code(), Some(0 | DISLIKES));
    ensure!(well && disliked.is_empty(), "promtool on {}: {}\n{}", page.display(), seen.status, disliked.join("\n"));
    Ok(())
}

/// Refuses a file of rules.
///
/// # Errors
/// As for metrics.
pub fn check_rules(file: &Path) -> Result<()> {
    said(Command::new(program()?).args(["check", "rules"]).arg(file)).map(drop)
}

/// Runs the tests of rules: which alerts come of which series.
///
/// # Errors
/// What does not come out as the file says; else as for metrics.
pub fn test_rules(file: &Path) -> Result<()> {
    said(Command::new(program()?).args(["test", "rules"]).arg(file)).map(drop)
}

/// Refuses a configuration of the server.
///
/// # Errors
/// As for metrics.
pub fn check_config(file: &Path) -> Result<()> {
    said(Command::new(program()?).args(["check", "config"]).arg(file)).map(drop)
}

/// What it says, once it has ended well.
fn said(command: &mut Command) -> Result<String> {
    let seen = run(command, CHECK)?;
    let said = seen.stdout + &seen.stderr;
    ensure!(seen.status.success(), "{command:?}:\n{said}");
    Ok(said)
}

/// Fetched the first time, and kept.
fn program() -> Result<PathBuf> {
    Ok(debian::unpacked(PACKAGE, &[PACKAGE])?.join("usr/bin/promtool"))
}

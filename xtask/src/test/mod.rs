//! `cargo xtask test`: every stage in turn, a failing one stops no other, one line sums up.
//!
//! [`STAGES`] is the table. A stage that only says yes or no (formatting, lints, tidy rules, a build) counts as one
//! test. Output streams as it comes; what failed tests said stands once more at the end; the last line of standard
//! output is `N passed, N failed`.

mod failures;
mod report;

use std::io::{BufRead, BufReader};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result};
use clap::ValueEnum;
use ebpf_build::{Kernel, Toolchain};

use crate::runner::{agent, cargo, line, run as run_command, target, workspace};
use crate::setup::{self, Part};
use crate::{build, tidy};
use failures::Failures;
use report::{Report, Tally};

/// What `--only` chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Only {
    /// Formatting, lints, tidy rules and unit tests: needs no privileges.
    Unit,
    /// End-to-end tests on this host's kernel.
    Host,
    /// End-to-end tests on real kernels in virtual machines.
    Lab,
}

/// How a stage is judged.
enum Work {
    /// Yes or no, counted as one test.
    Check(fn() -> Result<()>),
    /// Builds what later stages drive: those do not run on an older build if it fails.
    Build(fn() -> Result<()>),
    /// `cargo test` with these arguments, each of its tests counted.
    Tests { arguments: &'static [&'static str], drives_the_build: bool },
}

struct Stage {
    name: &'static str,
    part: &'static [Only],
    work: Work,
}

const STAGES: &[Stage] = &[
    Stage { name: "formatting", part: &[Only::Unit], work: Work::Check(formatting) },
    Stage { name: "lints", part: &[Only::Unit], work: Work::Check(lints) },
    Stage { name: "lints of the kernel side", part: &[Only::Unit], work: Work::Check(kernel_side_lints) },
    Stage { name: "tidy rules", part: &[Only::Unit], work: Work::Check(tidy::run) },
    Stage {
        name: "unit tests",
        part: &[Only::Unit],
        work: Work::Tests { arguments: &["--workspace"], drives_the_build: false },
    },
    Stage { name: "release build", part: &[Only::Host, Only::Lab], work: Work::Build(|| build::all(true)) },
    Stage {
        name: "tests on this host",
        part: &[Only::Host],
        work: Work::Tests {
            arguments: &["--package", "tests", "--features", "host", "--test", "host"],
            drives_the_build: true,
        },
    },
    Stage {
        name: "tests in the lab",
        part: &[Only::Lab],
        work: Work::Tests {
            // More than there are processors: tests that wait for one machine leave none idle, and the tests
            // themselves start no more machines at once than the host has processors for.
            arguments: &["--package", "tests", "--features", "lab", "--test", "lab", "--", "--test-threads=12"],
            drives_the_build: true,
        },
    },
];

/// Runs set-up and the stages that `only` chooses, and prints what came of them.
///
/// # Errors
/// Only if nothing could be run at all; failures are in the exit status.
pub(crate) fn run(only: Option<Only>) -> Result<ExitCode> {
    let mut total = Tally::default();
    let mut lines = Vec::new();
    let mut failures = Failures::default();
    if let Err(error) = setup::run(parts(only)) {
        total.failed += 1;
        lines.push(format!("{:<26} failed: {error:#}", "set-up"));
    }
    let mut built = true;
    for stage in STAGES.iter().filter(|stage| only.is_none_or(|only| stage.part.contains(&only))) {
        eprintln!("\n=== {}", stage.name);
        let (tally, word) = stage.judge(&mut built, &mut failures);
        total.passed += tally.passed;
        total.failed += tally.failed;
        lines.push(format!("{:<26} {word}", stage.name));
    }
    eprintln!();
    for line in failures.lines().into_iter().chain(lines) {
        eprintln!("{line}");
    }
    println!("{} passed, {} failed", total.passed, total.failed);
    Ok(if total.failed == 0 && total.passed > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The pieces that the chosen stages stand on.
fn parts(only: Option<Only>) -> &'static [Part] {
    match only {
        Some(Only::Unit | Only::Host) => &[Part::Compiler, Part::KernelSide],
        Some(Only::Lab) | None => &Part::ALL,
    }
}

impl Stage {
    /// Runs the stage; `built` says whether what it drives was built just now.
    fn judge(&self, built: &mut bool, failures: &mut Failures) -> (Tally, String) {
        let outcome = match &self.work {
            Work::Check(check) => check().map(|()| Tally::PASSED),
            Work::Build(make) => make().inspect_err(|_| *built = false).map(|()| Tally::PASSED),
            Work::Tests { drives_the_build: true, .. } if !*built => {
                Err(anyhow::anyhow!("not run, since the build before it failed"))
            }
            Work::Tests { arguments, .. } => tests(arguments, failures),
        };
        match outcome {
            Ok(tally) => (tally, format!("{} passed, {} failed", tally.passed, tally.failed)),
            Err(error) => {
                eprintln!("{} failed: {error:#}", self.name);
                (Tally::FAILED, format!("failed: {error:#}"))
            }
        }
    }
}

/// Runs `cargo test`, shows its output line by line and counts along.
fn tests(arguments: &[&str], failures: &mut Failures) -> Result<Tally> {
    let mut command = cargo(&["test", "--no-fail-fast"])?;
    command.args(arguments).env("FABRICSCOPE_BIN", agent()?);
    count(&mut command, failures)
}

fn count(command: &mut Command, failures: &mut Failures) -> Result<Tally> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {}", line(command)))?;
    let output = child.stdout.take().context("the tests have no output")?;
    let mut output = BufReader::new(output);
    let mut report = Report::default();
    let mut bytes = Vec::new();
    while output.read_until(b'\n', &mut bytes).context("cannot read the tests' output")? > 0 {
        let text = String::from_utf8_lossy(&bytes);
        print!("{text}");
        report.line(text.trim_end());
        failures.line(text.trim_end());
        bytes.clear();
    }
    let status = child.wait().with_context(|| format!("cannot wait for {}", line(command)))?;
    Ok(report.finish(status.success()))
}

fn formatting() -> Result<()> {
    run_command(&mut cargo(&["fmt", "--all", "--check"])?)
}

fn lints() -> Result<()> {
    run_command(cargo(&["clippy", "--workspace", "--all-targets"])?.args(["--", "-D", "warnings"]))
}

/// The same lints on what the host's build of the kernel side leaves out.
fn kernel_side_lints() -> Result<()> {
    let toolchain = Toolchain::find()?;
    let kernel = Kernel::new(&workspace(), &target()?, std::env::consts::ARCH, &toolchain)?;
    run_command(kernel.cargo("clippy").args(["--release", "--", "-D", "warnings"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(script: &str, expected: Tally) {
        let tally = count(Command::new("sh").args(["-c", script]), &mut Failures::default()).unwrap();
        assert_eq!(tally, expected, "{script}");
    }

    #[test]
    fn output_is_counted_whatever_bytes_it_holds() {
        let result = "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.1s";
        check(&format!("printf 'running 2 tests\\n\\377\\n'; echo '{result}'"), Tally { passed: 2, failed: 0 });
        check("exit 101", Tally { passed: 0, failed: 1 });
    }

    #[test]
    fn each_choice_runs_some_tests() {
        for only in [Only::Unit, Only::Host, Only::Lab] {
            let mut chosen = STAGES.iter().filter(|stage| stage.part.contains(&only));
            assert!(chosen.any(|stage| matches!(stage.work, Work::Tests { .. })), "{only:?}");
        }
    }
}

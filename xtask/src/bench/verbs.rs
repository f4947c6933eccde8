//! `cargo xtask bench verbs`: what the verbs tracer adds to a call.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use clap::builder::RangedU64ValueParser;

use super::report::Report;
use super::runs::PROGRAMS;
use super::samples::{self, Samples};
use super::script;
use crate::build;
use crate::runner::{on_path, output, run as run_command, target, workspace};

/// Seconds after which the machine is ended by force: a busy host took 15 minutes.
const LIMIT: &str = "3600";
/// Calls in one timed batch, and batches in one run: the shorter a batch, the likelier one is left alone.
const BATCH: (u32, u32) = (5, 1200);
/// Transfers of 64 KiB in one run.
const TRANSFERS: u32 = 400;
/// A program that ran less often in its round is not shown.
const SELDOM: u64 = 100;

/// Measures what the verbs tracer adds to a call.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The lab's kernel
    #[arg(long, value_name = "K", default_value = "6.12")]
    kernel: String,
    /// Measure on this host, in place of the lab: needs root, an RDMA device and bpftrace
    #[arg(long, conflicts_with = "kernel")]
    here: bool,
    /// Measure nothing: print what the last run found
    #[arg(long)]
    last: bool,
    /// Where the figures go as JSON [default: verbs.json in the target folder's bench]
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// How often each run is made
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = RangedU64ValueParser::<u32>::new().range(1..=100))]
    rounds: u32,
    /// How often three transfers are made; attaching to every function takes minutes
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = RangedU64ValueParser::<u32>::new().range(0..=100))]
    transfers: u32,
}

/// Runs the command line: measures, prints the tables, writes the JSON.
///
/// # Errors
/// When something that is needed is not there, or a run fails.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let folder = target()?.join("bench").join(if args.here { "here" } else { &args.kernel });
    fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
    if !args.last {
        measure(args, &folder)?;
    }
    let samples = read(&folder)?;
    let mut programs = Vec::new();
    for name in PROGRAMS {
        let path = folder.join(format!("programs.{name}"));
        let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        programs.push((*name, samples::programs(&text, SELDOM)?));
    }
    let rounds = samples.rounds();
    let report = Report { samples, programs, emulated: !args.here, rounds };
    print!("{}", report.text());
    let json = args.json.clone().unwrap_or_else(|| folder.with_file_name("verbs.json"));
    fs::write(&json, format!("{:#}\n", report.json())).with_context(|| format!("write {}", json.display()))?;
    println!("\nwritten: {}", json.display());
    Ok(ExitCode::SUCCESS)
}

fn measure(args: &Args, folder: &Path) -> Result<()> {
    if args.here {
        let device = this_host()?;
        build::agent(true)?;
        return here(args, folder, &device);
    }
    build::agent(true)?;
    lab(args, folder)
}

fn read(folder: &Path) -> Result<Samples> {
    let path = folder.join("results");
    let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
    samples::read(&text)
}

/// One machine for all runs.
fn lab(args: &Args, folder: &Path) -> Result<()> {
    let settings = format!(
        "out=/mnt/out sources=/mnt/share\nset -- $FABRICSCOPE_LAB_RDMA\n\
         device=${{1%%:*}} gid=${{1##*:}} peer=${{2%%:*}} peer_gid=${{2##*:}}\n{}",
        amounts()
    );
    fs::write(folder.join("script"), script::script(&settings, args.rounds, args.transfers))?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["lab", "--kernel", &args.kernel, "--smp", "2", "--timeout", LIMIT]);
    command.arg("--share").arg(workspace().join("tests/workload")).arg("--out").arg(folder);
    run_command(command.args(["--", "bash", "/mnt/out/script"]))
}

/// The same on this host: both ends of the transfer are the one device.
fn here(args: &Args, folder: &Path, device: &str) -> Result<()> {
    let gid = gid_index(device)?;
    let settings = format!(
        "out={} sources={}\ndevice={device} gid={gid} peer={device} peer_gid={gid}\n{}",
        quoted(folder),
        quoted(&workspace().join("tests/workload")),
        amounts()
    );
    let script_path = folder.join("script");
    fs::write(&script_path, script::script(&settings, args.rounds, args.transfers))?;
    let release = target()?.join("release");
    let path = std::env::join_paths(
        std::iter::once(release).chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
    )?;
    let status = Command::new("bash").arg(&script_path).env("PATH", path).stdin(Stdio::null()).status()?;
    ensure!(status.success(), "the measurement ended with {status}");
    Ok(())
}

fn amounts() -> String {
    let (per_batch, batches) = BATCH;
    format!("per_batch={per_batch} batches={batches} transfers={TRANSFERS}")
}

fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

/// The first RDMA device of this host.
fn this_host() -> Result<String> {
    let folder = "/sys/class/infiniband";
    let mut names: Vec<_> = fs::read_dir(folder)
        .map(|entries| entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect())
        .unwrap_or_default();
    names.sort();
    let Some(first) = names.into_iter().next() else {
        bail!("this host has no RDMA device ({folder} is empty or missing): leave --here away to measure in the lab");
    };
    ensure!(on_path("bpftrace"), "bpftrace is not installed: the comparison needs it");
    ensure!(
        output(Command::new("id").arg("-u"))?.trim() == "0",
        "the tracers load programs into the kernel: run as root"
    );
    Ok(first)
}

/// The first RoCE v2 address of a device's first port; 0 for InfiniBand, which needs none.
fn gid_index(device: &str) -> Result<u32> {
    let folder = format!("/sys/class/infiniband/{device}/ports/1/gid_attrs/types");
    let entries = fs::read_dir(&folder).with_context(|| format!("list {folder}"))?;
    let version_2 = |path: &Path| fs::read_to_string(path).is_ok_and(|kind| kind.trim() == "RoCE v2");
    let number = |path: PathBuf| path.file_name()?.to_str()?.parse().ok();
    let paths = entries.flatten().map(|entry| entry.path()).filter(|path| version_2(path));
    Ok(paths.filter_map(number).min().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_one_word_for_the_shell() {
        let said = output(Command::new("sh").args(["-c", &format!("printf %s {}", quoted(Path::new("/a b'c")))]));
        assert_eq!(said.unwrap(), "/a b'c");
    }
}

//! The lab: a stock kernel in a virtual machine, soft-RoCE on a real wire, one command, its output and its status.
//!
//! Nothing is installed: kernels, QEMU and the guest's programs are Debian packages unpacked in the cache folder.
//!
//! Measured with two processors, from start to exit, `true` as the command, on a lightly and on a heavily loaded host of
//! two cores: 6.1 5.4 and 8 s, 6.12 8 and 37 s, 7.3 13 and 16 s. 100 MB of output take 8 s.
//! systemd as the first process takes 7 s more.

mod accel;
mod cache;
mod clock;
mod cpio;
mod driver;
mod guest;
mod kernels;
mod machine;
mod module;
mod rdma;
mod tools;
mod userland;
mod verdict;

use std::fs;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tempfile::TempDir;

use guest::Share;
use kernels::{KERNELS, Kernel, Row};
use machine::{Accel, Machine, Outcome, Sink};
use tools::Tools;

pub(crate) use module::{Args as ModuleArgs, run as run_module};

/// The exit status for a wrong argument.
const USAGE: u8 = 2;
/// The exit status when the lab itself failed: the command's own statuses are passed on.
const LAB_FAILED: u8 = 125;
/// How long a machine may take to get ready: 5 s on an idle host, 37 s seen at load 12 on two processors.
const BOOT_LIMIT: Duration = Duration::from_secs(120);
/// How often a machine that does not get ready is started. Under emulation on a busy host a second processor's timer
/// is lost now and then while it starts; nothing has run then, so starting again hides nothing.
const BOOTS_MAX: u32 = 5;
/// Begins the name of each run's folder; this process's id follows.
const RUN_PREFIX: &str = "fabricscope-lab-";

/// Boots a stock kernel and runs a command on it, with soft-RoCE devices.
///
/// Exits with the command's status, or 125 when the machine hangs, panics or cannot be had.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The kernel; `--list` names them
    #[arg(long, value_name = "K", required_unless_present = "list", value_parser = kernels::names())]
    kernel: Option<String>,
    /// A folder that the command sees read-only at /mnt/share; the command starts there
    #[arg(long, value_name = "DIR")]
    share: Option<PathBuf>,
    /// A folder that the command may write, at /mnt/out
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Soft-RoCE devices rx1 to rxN behind a bridge, in place of rxe0 and rxe1 on one wire
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(2..=i64::from(rdma::HOSTS_MAX)))]
    hosts: Option<u8>,
    /// No soft-RoCE: no RDMA module is loaded
    #[arg(long, conflicts_with = "hosts")]
    no_rdma: bool,
    /// systemd as the first process, with a journal and little else: for services
    #[arg(long)]
    systemd: bool,
    /// Seconds that the command may take before the machine is ended by force
    #[arg(long, value_name = "S", default_value_t = 300)]
    timeout: u64,
    /// Processors of the machine
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=16))]
    smp: u8,
    /// Shows the kernels and what of them is in the cache
    #[arg(long, conflicts_with_all = ["kernel", "share", "out", "hosts", "no_rdma", "systemd"])]
    list: bool,
    /// What to run, after `--`; the project's release programs are on its PATH
    #[arg(last = true, value_name = "COMMAND", required_unless_present = "list")]
    command: Vec<String>,
}

/// Runs the command line.
///
/// # Errors
/// When an argument names something that is not there; failures of the lab itself are shown and end with 125.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if args.list {
        return list().map(|()| ExitCode::SUCCESS);
    }
    let row = Row::find(args.kernel.as_deref().unwrap_or_default())?;
    if let Some(dir) = [&args.share, &args.out].into_iter().flatten().find(|dir| !dir.is_dir()) {
        eprintln!("lab: {} is not a folder", dir.display());
        return Ok(ExitCode::from(USAGE));
    }
    match boot(row, args) {
        Ok(Outcome::Exit(status)) => Ok(ExitCode::from(status)),
        Ok(Outcome::Signal(number)) => Ok(ExitCode::from(128 + number)),
        Ok(Outcome::NotReady(_) | Outcome::WrongClock(_)) => Ok(ExitCode::from(LAB_FAILED)),
        Err(error) => {
            eprintln!("lab: kernel {}: {error:#}", row.name);
            Ok(ExitCode::from(LAB_FAILED))
        }
    }
}

/// Brings everything the lab needs into the cache: QEMU, the guest's programs, each kernel.
///
/// # Errors
/// When something cannot be had.
pub(crate) fn setup() -> Result<()> {
    let tools = Tools::get()?;
    userland::get(&tools)?;
    for row in KERNELS {
        row.get(&tools)?;
    }
    Ok(())
}

fn list() -> Result<()> {
    let mut out = stdout().lock();
    for row in KERNELS {
        let release =
            row.cached().map_or_else(|| "not in the cache".to_owned(), |release| format!("cached: {release}"));
        writeln!(out, "{:<6} {release:<34} {}", row.name, row.notes)?;
    }
    for (name, folder) in [("tools", Tools::folder()?), ("root", userland::folder()?)] {
        let state = if folder.is_dir() { "cached" } else { "not in the cache" };
        writeln!(out, "{name:<6} {state}")?;
    }
    Ok(())
}

fn boot(row: &Row, args: &Args) -> Result<Outcome> {
    let tools = Tools::get()?;
    let userland = userland::get(&tools)?;
    let kernel = row.get(&tools)?;
    let mut shares = vec![
        Share { tag: guest::ROOT_TAG, host: userland, guest: "/", writable: false },
        Share { tag: "modules", host: kernel.modules(), guest: "/usr/lib/modules", writable: false },
    ];
    let mut share = |tag, dir: &Path, guest, writable| -> Result<()> {
        let host = fs::canonicalize(dir).with_context(|| format!("find {}", dir.display()))?;
        shares.push(Share { tag, host, guest, writable });
        Ok(())
    };
    if let Some(dir) = programs() {
        share("bin", &dir, "/mnt/bin", false)?;
    }
    if let Some(dir) = &args.share {
        share("share", dir, "/mnt/share", false)?;
    }
    if let Some(dir) = &args.out {
        share("out", dir, "/mnt/out", true)?;
    }
    let lab = Lab { tools: &tools, kernel: &kernel, name: row.name, shares };
    let accel = accel::choose(|accel, timeout| {
        let shares = lab.shares.iter().filter(|share| !share.writable).cloned().collect();
        let probe = Lab { tools: &tools, kernel: &kernel, name: row.name, shares };
        let words = &["true".to_owned()];
        let (rdma, systemd, sink) = (None, false, Sink::Drop);
        let run = Run { accel, smp: 1, boot_limit: timeout, timeout, rdma, systemd, words, sink };
        probe.start(&run).is_ok_and(|outcome| outcome == Outcome::Exit(0))
    })?;
    let run = Run {
        accel,
        smp: args.smp,
        boot_limit: BOOT_LIMIT,
        timeout: Duration::from_secs(args.timeout),
        rdma: (!args.no_rdma).then_some(args.hosts),
        systemd: args.systemd,
        words: &args.command,
        sink: Sink::Pass,
    };
    for attempt in 1..=BOOTS_MAX {
        match lab.start(&run)? {
            Outcome::NotReady(console) => {
                let limit = BOOT_LIMIT.as_secs();
                eprintln!(
                    "lab: kernel {}: not ready after {limit} s (boot {attempt} of {BOOTS_MAX})\n{console}",
                    row.name
                );
            }
            Outcome::WrongClock(pace) => eprintln!(
                "lab: kernel {}: its clock is {pace:.1} times too fast (boot {attempt} of {BOOTS_MAX})",
                row.name
            ),
            outcome => return Ok(outcome),
        }
    }
    bail!("it did not boot")
}

/// What the machines of one invocation have in common.
struct Lab<'a> {
    tools: &'a Tools,
    kernel: &'a Kernel,
    name: &'a str,
    shares: Vec<Share>,
}

/// One boot.
struct Run<'a> {
    accel: Accel,
    smp: u8,
    boot_limit: Duration,
    timeout: Duration,
    /// Soft-RoCE or none; with it the number of hosts behind a bridge, or one pair.
    rdma: Option<Option<u8>>,
    /// Whether systemd is the first process.
    systemd: bool,
    words: &'a [String],
    sink: Sink,
}

impl Lab<'_> {
    /// Writes the guest's scripts into a new folder, boots, and removes the folder.
    fn start(&self, run: &Run<'_>) -> Result<Outcome> {
        let dir = run_folder()?;
        let inside = dir.path().join("guest");
        let put = |name: &str, text: &str| fs::write(inside.join(name), text).context("write the guest's scripts");
        fs::create_dir(&inside)?;
        let folder = if self.shares.iter().any(|share| share.tag == "share") { "/mnt/share" } else { "/root" };
        put(guest::START, &guest::second_script(&self.shares))?;
        put(guest::COMMAND, &guest::command_script(run.words, folder, self.name))?;
        if let Some(hosts) = run.rdma {
            put(guest::RDMA, &rdma::script(hosts))?;
            put(rdma::IP_BATCH, &rdma::ip_batch(hosts))?;
        }
        if run.systemd {
            put(guest::SYSTEMD, "")?;
        }
        fs::write(dir.path().join("initramfs"), guest::first_root(self.tools, self.kernel)?)?;
        let own = Share { tag: guest::RUN_TAG, host: inside.clone(), guest: guest::RUN_FOLDER, writable: true };
        let shares: Vec<_> = self.shares.iter().cloned().chain([own]).collect();
        let machine = Machine {
            tools: self.tools,
            kernel: self.kernel,
            accel: run.accel,
            smp: run.smp,
            boot_limit: run.boot_limit,
            timeout: run.timeout,
            shares: &shares,
            dir: dir.path(),
            said: &inside,
            sink: run.sink,
        };
        machine.run()
    }
}

/// The project's release programs: beside the folder that this program was built into.
fn programs() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    Some(own.parent()?.parent()?.join("release")).filter(|dir| dir.is_dir())
}

/// A new folder for one run, removed when dropped. What killed runs left behind goes first.
fn run_folder() -> Result<TempDir> {
    let parent = std::env::temp_dir();
    for entry in fs::read_dir(&parent).with_context(|| format!("list {}", parent.display()))?.flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(RUN_PREFIX)).and_then(|rest| rest.split_once('-'));
        if owner.is_some_and(|(pid, _)| pid.parse::<u32>().is_ok() && !Path::new("/proc").join(pid).exists()) {
            // Another user's cannot be removed, and another run may be removing it too: neither matters to this one.
            drop(fs::remove_dir_all(entry.path()));
        }
    }
    let prefix = format!("{RUN_PREFIX}{}-", std::process::id());
    tempfile::Builder::new().prefix(&prefix).tempdir_in(&parent).context("make a folder for the run")
}

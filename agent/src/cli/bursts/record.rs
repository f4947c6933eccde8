//! `fabricscope bursts record`: a fixed number of samples of one device, from a start in wall-clock time, to a file.

use std::io::{self, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use agent_common::bucket::SLOTS;
use analysis::counter_samples::CounterSamples;
use analysis::series::{BitsPerSecond, Direction, DurationNs, Series, UtcNs};
use anyhow::{Context as _, bail};
use jiff::Timestamp;

mod counters;

use crate::bursts::clock::HostClocks;
use crate::bursts::device::Origin;
use crate::bursts::file;
use crate::bursts::placed::Regularity;
use crate::bursts::run::{self, Ended, Outcome, Plan, Progress};
use crate::bursts::sessions::{Host as _, KernelHost};
use crate::cli::Usage;
use crate::config::rate::rate;
use crate::config::units::{CLOCK_NAMES, INTERVAL_NAMES, clock_fits, prefix};
use crate::config::{limits, time};
use crate::counters::fast::Choice;
use crate::host::kernel::KernelFacts;
use crate::host::links::Link;
use crate::host::roots::Roots;
use crate::kernel::sampler::{Clock, Marks, Options, Prefix};

/// Sample a network device for a fixed number of samples, and write a file
///
/// The programs are the run's own: an agent that samples the same device goes on undisturbed. The name of the file is
/// printed. Exit status: 0 if the samples are there or the run was ended by SIGINT, 1 if not.
#[derive(Debug, clap::Args)]
pub(crate) struct RecordArgs {
    /// The network device, such as eth0
    #[arg(long, value_name = "NAME")]
    netdev: String,
    /// How long a sample lasts: 100us, 1ms or 10ms
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = interval)]
    interval: DurationNs,
    /// What tells samples apart: read, the clock at each packet, or tick, a timer of the kernel
    ///
    /// The timer costs nothing at a packet and something at each sample, which pays for a device of very many packets. It
    /// runs after the packets that wait on its CPU: samples are as long as they were, and those that had no tick are
    /// told at the end. From 1ms on.
    #[arg(long, value_name = "CLOCK", default_value = "read", value_parser = clock)]
    clock: Clock,
    /// How many samples
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = samples())]
    samples: u64,
    /// When the first sample begins, such as 2026-11-30T09:00:00Z, for runs of several hosts at once [default: now]
    #[arg(long, value_name = "TIME", value_parser = start)]
    start_at: Option<UtcNs>,
    /// The line rate, such as 100Gbit, if the device states none or a wrong one
    #[arg(long, value_name = "RATE", value_parser = rate)]
    line_rate: Option<BitsPerSecond>,
    /// A prefix of the host's own region; bytes to and from elsewhere are counted apart
    #[arg(long = "region", value_name = "PREFIX", value_parser = region)]
    regions: Vec<Prefix>,
    /// Look received segments up in their sockets, to tell which may have been sent again
    #[arg(long)]
    suspected: bool,
    /// The file to write, - for standard output [default: NETDEV-TIME.parquet in this folder]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Sample counters of the device and its RDMA port too, such as "pause congestion": to files beside
    ///
    /// Groups are traffic, pause, congestion, transport, host, link and requests; names are those of `fabricscope
    /// counters`.
    #[arg(long, value_name = "WORDS")]
    counters: Option<Choice>,
    /// How often
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = every, requires = "counters")]
    counters_interval: Duration,
    #[command(flatten)]
    roots: Roots,
}

/// The pace of counters.
fn every(text: &str) -> Result<Duration, String> {
    let found = time::parse(text)?;
    let range = Duration::from_millis(1)..=Duration::from_secs(1);
    if range.contains(&found) { Ok(found) } else { Err("write a time from 1ms to 1s".to_owned()) }
}

pub(super) fn interval(text: &str) -> Result<DurationNs, String> {
    let found = INTERVAL_NAMES.iter().find(|(name, _)| *name == text);
    found.map(|(_, interval)| *interval).ok_or_else(|| "write 100us, 1ms or 10ms".to_owned())
}

pub(super) fn clock(text: &str) -> Result<Clock, String> {
    let found = CLOCK_NAMES.iter().find(|(name, _)| *name == text);
    found.map(|(_, clock)| *clock).ok_or_else(|| "write read or tick".to_owned())
}

fn samples() -> clap::builder::RangedU64ValueParser<u64> {
    clap::value_parser!(u64).range(1..=limits::SAMPLES_PER_FILE as u64)
}

fn start(text: &str) -> Result<UtcNs, String> {
    let time: Timestamp =
        text.parse().map_err(|error| format!("{error}; write a time such as 2026-11-30T09:00:00Z"))?;
    i64::try_from(time.as_nanosecond()).map(UtcNs).map_err(|_| "this time is out of range".to_owned())
}

fn region(text: &str) -> Result<Prefix, String> {
    prefix(text).ok_or_else(|| "write a prefix, such as 10.0.0.0/8 or 2001:db8::/32".to_owned())
}

/// Samples, writes, and says what came of it.
///
/// # Errors
///
/// If there is no such device, the start is past, nothing can be attached, or the file cannot be written.
pub(super) fn run(args: &RecordArgs, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(
        args.counters.is_none() || args.output.as_deref() != Some(Path::new("-")),
        "samples of counters go to files beside that of the traffic: give --output a file"
    );
    clock_fits(args.clock, args.interval).map_err(Usage)?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).context("installing a signal handler")?;
    }
    let host = KernelHost { sysfs: args.roots.sysfs.clone() };
    let links = host.links().context("cannot list the network devices")?;
    let link = find(&links, &args.netdev)?;
    let plan = plan(args, link);
    if plan.line_rate.is_none() {
        eprintln!(
            "fabricscope: {} states no speed: there will be no bursts in these samples; give --line-rate",
            link.name
        );
    }
    let facts = KernelFacts::read(&args.roots);
    let origin = Origin { host: facts.hostname.unwrap_or_default(), boot_id: facts.boot_id.unwrap_or_default() };
    let counters = args.counters.as_ref().map(|choice| counters::Run::start(args, choice, &origin)).transpose()?;
    let mut shown = Shown::new(args);
    let outcome = run::run(&plan, &origin, &host, &HostClocks, &mut |progress| {
        shown.show(progress);
        !stop.load(Ordering::Relaxed)
    });
    shown.clear();
    let outcome = outcome?;
    // Ended first: it gives away what it has.
    let counters = counters.map(counters::Run::end).unwrap_or_default();
    finish(args, &outcome, &counters, out)
}

fn find<'a>(links: &'a [Link], name: &str) -> anyhow::Result<&'a Link> {
    if let Some(link) = links.iter().find(|link| link.name == name) {
        return Ok(link);
    }
    let names: Vec<&str> = links.iter().filter(|link| !link.loopback).map(|link| &*link.name).take(16).collect();
    bail!("there is no network device {name:?}; there are: {}", names.join(", "))
}

fn plan(args: &RecordArgs, link: &Link) -> Plan {
    let options = Options {
        ifindex: link.ifindex,
        netdev: link.name.clone(),
        interval: args.interval,
        clock: args.clock,
        slots: SLOTS,
        clsact: false,
        sketch: true,
        suspected: args.suspected,
        marks: Marks::Ignored,
        regions: args.regions.clone(),
    };
    Plan { options, line_rate: args.line_rate.or(link.speed), start: args.start_at, samples: args.samples }
}

/// Writes what there is, and says so.
fn finish(
    args: &RecordArgs,
    outcome: &Outcome,
    counters: &[CounterSamples],
    out: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    let series = &outcome.series;
    let Some(first) = series.covered.first() else {
        bail!("nothing was sampled of {}: {}", args.netdev, why(outcome.ended));
    };
    let path = match args.output.as_deref() {
        Some(path) if path == Path::new("-") => PathBuf::from("/dev/stdout"),
        Some(path) => path.to_owned(),
        None => default_path(&args.netdev, first.start),
    };
    file::write(&path, series)?;
    if args.output.is_none() {
        writeln!(out, "{}", path.display())?;
    }
    counters::write(counters, series, &path, args.output.is_none(), out)?;
    eprintln!("{}", summary(series));
    if let Some(Regularity { missed, longest }) = outcome.ticks {
        let longest = longest.seconds();
        eprintln!(
            "fabricscope: {missed} samples had no tick and went into the one before; the longest took {longest:.6} s"
        );
    }
    if let Some(step) = outcome.step_ns {
        eprintln!("fabricscope: the clock was set by {} meanwhile: times may be wrong by that", seconds(step));
    }
    if series.clock_error.is_none() {
        eprintln!("fabricscope: nobody keeps this host's clock (NTP, PTP): do not compare it with other hosts");
    }
    match outcome.ended {
        Ended::Complete => Ok(ExitCode::SUCCESS),
        Ended::Stopped => {
            eprintln!("fabricscope: {}", why(outcome.ended));
            Ok(ExitCode::SUCCESS)
        }
        Ended::Vanished => bail!("{}: {}", args.netdev, why(outcome.ended)),
    }
}

fn why(ended: Ended) -> &'static str {
    match ended {
        Ended::Complete => "all buckets were lost: this host is too busy to read them in time",
        Ended::Stopped => "the run was ended before all samples were there",
        Ended::Vanished => "the device has gone before all samples were there",
    }
}

fn default_path(netdev: &str, start: UtcNs) -> PathBuf {
    let time = Timestamp::from_nanosecond(start.0.into()).unwrap_or_default();
    PathBuf::from(format!("{netdev}-{}.parquet", time.strftime("%Y%m%dT%H%M%S%.3fZ")))
}

fn summary(series: &Series) -> String {
    let sum = |direction: Direction| -> u64 {
        series.samples.iter().map(|sample| direction.of(sample).bytes).fold(0, u64::saturating_add)
    };
    let covered: f64 = series.covered.iter().map(|span| span.end.since(span.start).seconds()).sum();
    let error = series.clock_error.map_or(String::new(), |error| format!(", clock within {:.6} s", error.seconds()));
    format!(
        "{}: {covered:.3} s sampled, {} bytes received, {} sent, {} buckets lost{error}",
        series.netdev,
        sum(Direction::Rx),
        sum(Direction::Tx),
        series.lost,
    )
}

fn seconds(ns: i64) -> String {
    format!("{:+.6} s", DurationNs(ns.unsigned_abs()).seconds().copysign(if ns < 0 { -1.0 } else { 1.0 }))
}

/// The progress on standard error, rewritten in place; one line where that is no terminal.
struct Shown {
    terminal: bool,
    told: bool,
    samples: u64,
    netdev: String,
}

impl Shown {
    fn new(args: &RecordArgs) -> Self {
        Self { terminal: io::stderr().is_terminal(), told: false, samples: args.samples, netdev: args.netdev.clone() }
    }

    fn show(&mut self, progress: Progress) {
        if !self.terminal {
            // Who starts it from a script wants to know when to begin.
            if matches!(progress, Progress::Has(_)) && !self.told {
                self.told = true;
                let _ = writeln!(io::stderr(), "{} is sampled", self.netdev);
            }
            return;
        }
        let text = match progress {
            Progress::Waits(left) => format!("begins in {:.1} s", left.seconds()),
            Progress::Has(count) => format!("{count} of {} samples", self.samples),
        };
        // Progress that cannot be shown is no reason to end.
        let _ = write!(io::stderr(), "\r\x1b[K{}: {text}", self.netdev);
    }

    fn clear(&self) {
        if self.terminal {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

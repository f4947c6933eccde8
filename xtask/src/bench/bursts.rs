//! `cargo xtask bench bursts`: what the burst sampler adds to a packet, beside tcpdump and bpftrace on the same device with
//! the same sender; what draining takes; what a sample takes on disk.

mod drain;
mod network;
mod report;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail, ensure};
use clap::builder::RangedU64ValueParser;
use serde_json::Value;

use network::{Beside, Pair, RIGHT};
use report::{Figures, Tcp};

use super::counters::median;
use crate::runner::{agent, output, target};
use crate::{apt, build};

/// Batches of a run, datagrams of a batch, their payload, runs of a program by test run.
const BATCHES: u32 = 20;
const DATAGRAMS: u32 = 5000;
const PAYLOAD: u32 = 1200;
const REPEAT: u32 = 1_000_000;
/// Bytes sent by TCP for the account of the receiving side.
const TCP_BYTES: u32 = 200_000_000;
/// Samples of the file whose size is told.
const SAMPLES: u32 = 5000;
/// Where the other tools come from.
const SUITE: &str = "trixie";
const PACKAGES: [&str; 2] = ["bpftrace", "tcpdump"];
/// Bytes of each millisecond, at the place where tcpdump looks.
const SCRIPT: &str = "rawtracepoint:net_dev_queue { @[nsecs / 1000000] = sum(((struct sk_buff *)arg0)->len); }";

/// Measures what the burst sampler costs.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How often each run is made
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = RangedU64ValueParser::<u32>::new().range(1..=100))]
    rounds: u32,
    /// Measure this fabricscope, in place of the release build, which is then not made
    #[arg(long, value_name = "FILE")]
    agent: Option<PathBuf>,
    /// Where the figures go as JSON [default: bursts.json in the target folder's bench]
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Who is on the device's hooks while the tool sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Nobody,
    /// The tool's own program.
    Idle(&'static str),
    /// `bursts totals` with these words.
    Ours(&'static [&'static str]),
    Tcpdump,
    Bpftrace,
}

/// A run, by what it is called in the table.
#[derive(Debug)]
struct Run {
    name: &'static str,
    by: By,
}

/// The run that the aim is for, and the one that it is held against.
const ALL: &str = "all fields, 1 ms";
const EMPTY: &str = "empty program";

const RUNS: &[Run] = &[
    Run { name: "nothing", by: By::Nobody },
    Run { name: EMPTY, by: By::Idle("empty") },
    Run { name: "clock only", by: By::Idle("clock") },
    Run { name: "no sketch, 1 ms", by: By::Ours(&["--no-sketch"]) },
    Run { name: ALL, by: By::Ours(&["--interval", "1ms"]) },
    Run { name: "no sketch, 1 ms, tick", by: By::Ours(&["--clock", "tick", "--no-sketch"]) },
    Run { name: "all fields, 1 ms, tick", by: By::Ours(&["--clock", "tick"]) },
    Run { name: "no sketch, 100 us", by: By::Ours(&["--interval", "100us", "--no-sketch"]) },
    Run { name: "all fields, 100 us", by: By::Ours(&["--interval", "100us"]) },
    Run { name: "no sketch, 1 ms, clsact", by: By::Ours(&["--clsact", "--no-sketch"]) },
    Run { name: "all fields, 1 ms, clsact", by: By::Ours(&["--clsact"]) },
    Run { name: "all fields, 100 us, clsact", by: By::Ours(&["--clsact", "--interval", "100us"]) },
    Run { name: "tcpdump -w", by: By::Tcpdump },
    Run { name: "bpftrace, bytes per ms", by: By::Bpftrace },
];

/// Runs the command line: measures, prints the tables, writes the JSON.
///
/// # Errors
/// When something that is needed is not there, or a run fails.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    ensure!(
        output(Command::new("id").arg("-u"))?.trim() == "0",
        "the sampler loads programs into the kernel: run as root"
    );
    let agent = match &args.agent {
        Some(agent) => fs::canonicalize(agent).with_context(|| format!("find {}", agent.display()))?,
        None => {
            build::agent(true)?;
            agent()?
        }
    };
    let folder = target()?.join("bench");
    fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
    let bench = Bench { agent, tool: network::tool()?, tools: tools()?, pair: Pair::new()? };
    let mut figures: Vec<Figures> = RUNS.iter().map(|run| Figures::new(run.name)).collect();
    let mut tcp = Tcp::default();
    for round in 0..args.rounds {
        for (run, figures) in RUNS.iter().zip(&mut figures) {
            eprintln!("bench: round {round}, {}", run.name);
            if let Err(error) = bench.measure(run.by, figures) {
                figures.failed(&error);
            }
        }
        eprintln!("bench: round {round}, socket look-up");
        tcp.without.extend(bench.received(&[])?);
        tcp.with.extend(bench.received(&["--suspected"])?);
    }
    let bytes_per_sample = bench.bytes_per_sample()?;
    let mut drains = Vec::new();
    for drain in drain::DRAINS {
        let load = if drain.busy { "with traffic" } else { "idle" };
        eprintln!("bench: draining {} devices at {}, {load}", drain.devices, drain.interval.0);
        drains.push(drain::share(&bench.agent, &bench.tool, drain)?);
    }
    let report = report::Report { rounds: args.rounds, figures, tcp, bytes_per_sample, drains };
    print!("{}", report.text()?);
    let path = args.json.clone().unwrap_or_else(|| folder.join("bursts.json"));
    fs::write(&path, format!("{:#}\n", report.json())).with_context(|| format!("write {}", path.display()))?;
    println!("\nwritten: {}", path.display());
    Ok(ExitCode::SUCCESS)
}

/// Where the other tools are, with their libraries and loader.
fn tools() -> Result<PathBuf> {
    let folder = apt::cache_dir()?.join("bench-tools");
    if !folder.exists() {
        let parent = apt::cache_dir()?;
        fs::create_dir_all(&parent).with_context(|| format!("make {}", parent.display()))?;
        let packages = tempfile::tempdir_in(&parent).context("make a folder for packages")?;
        let half_made = tempfile::tempdir_in(&parent).context("make a folder for tools")?;
        let files = apt::download_with_dependencies(SUITE, &PACKAGES, packages.path())?;
        apt::unpack(&files, half_made.path())?;
        fs::rename(half_made.keep(), &folder).with_context(|| format!("keep {}", folder.display()))?;
    }
    Ok(folder)
}

/// What all runs share.
struct Bench {
    agent: PathBuf,
    tool: PathBuf,
    tools: PathBuf,
    pair: Pair,
}

impl Bench {
    /// A program of the other tools, run by their own loader inside the left namespace.
    fn other(&self, program: &str) -> Command {
        let mut command = self.pair.left.command(&self.tools.join("usr/lib64/ld-linux-x86-64.so.2"));
        command.arg("--library-path").arg(self.tools.join("usr/lib/x86_64-linux-gnu"));
        command.arg(self.tools.join("usr/bin").join(program));
        command
    }

    /// The words by which the tool sends and measures.
    fn cost(&self) -> Vec<String> {
        let numbers = [BATCHES, DATAGRAMS, PAYLOAD, REPEAT].map(|number| number.to_string());
        let words = [self.tool.display().to_string(), "cost".to_owned(), RIGHT.to_owned(), "5001".to_owned()];
        words.into_iter().chain(numbers).collect()
    }

    /// One run, added to its figures.
    fn measure(&self, by: By, figures: &mut Figures) -> Result<()> {
        let held = ["hold-udp", RIGHT, "5001"];
        let _receiver = Beside::start(self.pair.right.command(&self.tool).args(held), "ready", false)?;
        let cost = self.cost();
        let alone = || output(self.pair.left.command(&self.tool).args(&cost[1..]));
        let text = match by {
            By::Nobody => alone()?,
            By::Idle(program) => {
                let mut command = self.pair.left.command(&self.tool);
                let _idle = Beside::start(command.args(["idle", "va", program]), "ready", false)?;
                alone()?
            }
            By::Ours(words) => {
                let mut command = self.pair.left.command(&self.agent);
                command.args(["bursts", "totals", "-o", "json", "--netdev", "va"]).args(words).arg("--").args(&cost);
                output(&mut command)?
            }
            By::Tcpdump => {
                let folder = tempfile::tempdir().context("make a folder for the capture")?;
                let mut command = self.other("tcpdump");
                command.args(["-n", "-i", "va", "-Z", "root", "-w"]).arg(folder.path().join("capture"));
                let tcpdump = Beside::start(&mut command, "listening on", true)?;
                let before = tcpdump.running.cpu_seconds()?;
                let text = alone()?;
                let seconds = tcpdump.running.cpu_seconds()? - before;
                figures.own_ns.push(seconds * 1e9 / f64::from(2 * BATCHES * DATAGRAMS));
                text
            }
            By::Bpftrace => output(self.other("bpftrace").args(["-c", &cost.join(" "), "-e", SCRIPT]))?,
        };
        figures.add(&records(&text)?, u64::from(BATCHES * DATAGRAMS))
    }

    /// What a run of the receiving program takes while TCP is received: nanoseconds.
    fn received(&self, words: &[&str]) -> Result<Option<f64>> {
        let serve = ["serve-tcp", RIGHT, "5002", "1"];
        let _server = Beside::start(self.pair.right.command(&self.tool).args(serve), "ready", false)?;
        let mut command = self.pair.right.command(&self.agent);
        command.args(["bursts", "totals", "-o", "json", "--netdev", "vb"]).args(words).arg("--");
        // From the right namespace into the left one: `ip` itself is the command.
        let send = self.pair.left.command(&self.tool);
        command.arg(send.get_program()).args(send.get_args());
        command.args(["cost-tcp", RIGHT, "5002", &TCP_BYTES.to_string()]);
        let found = records(&output(&mut command)?)?;
        let account = found.iter().filter(|record| record["account"] == "fs_sampler_rx");
        let of = |record: &Value| Some((record["runs"].as_u64()?, record["ns"].as_u64()?));
        // The host's own agent may sample too: the device under load has the most runs.
        Ok(account.filter_map(of).max().map(|(runs, ns)| ns as f64 / runs as f64))
    }

    /// Records a device while it carries datagrams; the size of the file by its samples.
    fn bytes_per_sample(&self) -> Result<f64> {
        let folder = tempfile::tempdir().context("make a folder for the samples")?;
        let file = folder.path().join("va.parquet");
        let held = ["hold-udp", RIGHT, "5001"];
        let _receiver = Beside::start(self.pair.right.command(&self.tool).args(held), "ready", false)?;
        // Bursts of up to a millisecond, each 7 ms, for longer than is recorded.
        let now = output(Command::new("date").arg("+%s%N"))?;
        let bursts = ["send-bursts", RIGHT, "5001", now.trim(), "2000", "7000", "100", "1200"];
        let mut sender = self.pair.left.command(&self.tool);
        let _sender = Beside::start(sender.args(bursts), "start_ns", false)?;
        let mut command = self.pair.left.command(&self.agent);
        command.args(["bursts", "record", "--netdev", "va", "--samples", &SAMPLES.to_string(), "-o"]).arg(&file);
        output(&mut command)?;
        let bytes = fs::metadata(&file).context("the size of the samples")?.len();
        Ok(bytes as f64 / f64::from(SAMPLES))
    }
}

/// The lines that are JSON; others print besides.
fn records(text: &str) -> Result<Vec<Value>> {
    let lines = text.lines().filter(|line| line.starts_with('{'));
    let records: Vec<Value> = lines.map(serde_json::from_str).collect::<Result<_, _>>().context("the tool's JSON")?;
    if records.is_empty() {
        bail!("nothing was measured: {text}");
    }
    Ok(records)
}

/// The middle of what there is.
fn middle(values: &[f64]) -> Option<f64> {
    median(values.to_vec()).ok()
}

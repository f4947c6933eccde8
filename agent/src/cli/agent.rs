//! `fabricscope agent`: the daemon.

use std::fs::DirBuilder;
use std::io::{self, IsTerminal as _, Write};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use analysis::burst::Share;
use anyhow::Context as _;
use sd_notify::NotifyState;
use terminal_size::terminal_size;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tracing::level_filters::LevelFilter;

use super::bursts::show::with_plot;
use crate::bursts::clock::HostClocks;
use crate::bursts::device::Origin;
use crate::bursts::recorder::{self, Recorder};
use crate::bursts::sessions::{KernelHost, Sessions};
use crate::bursts::state::{Bursts as State, Retraced};
use crate::config::bursts::Bursts;
use crate::config::{Config, limits, time};
use crate::counters::collector::Collector;
use crate::counters::fast::{self, Sampler};
use crate::counters::kernel::Kernel;
use crate::counters::service::Service;
use crate::daemon::handle::Info;
use crate::daemon::health::{attached_of, degraded, idle};
use crate::daemon::run::{Daemon, Sampling, Setup, ending_signals};
use crate::daemon::source::Source;
use crate::daemon::summary::Summary;
use crate::daemon::{http, tracer::TracerSource};
use crate::host::kernel::KernelFacts;
use crate::kernel::sampler::Retransmissions;
use crate::log::Log;
use crate::rpc::{server, socket::Socket};
use crate::terminal::Paper;

/// Columns where the terminal does not say.
const COLUMNS: usize = 80;

/// Run the agent: trace, log failures, serve metrics and the command line
///
/// It runs until SIGTERM or SIGINT ends it, and leaves nothing in the kernel. The exit status is 0 when it was ended,
/// 1 when it could not start.
#[derive(Debug, clap::Args)]
pub(crate) struct AgentArgs {
    /// The configuration file; without it all defaults hold
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// End by itself after this time, such as 20s or 5m
    #[arg(long = "for", value_name = "TIME", value_parser = time::parse_positive)]
    run_for: Option<Duration>,

    /// Show a live summary on standard output, one line each second where that is no terminal
    ///
    /// Failures are then logged to standard error, and not at all where that is a terminal.
    #[arg(long)]
    summary: bool,
}

/// Runs the daemon on this host's kernel.
pub(crate) fn run(args: &AgentArgs) -> anyhow::Result<ExitCode> {
    run_with(args, TracerSource::start)
}

fn run_with<S: Source>(args: &AgentArgs, start: impl FnOnce(&Config) -> anyhow::Result<S>) -> anyhow::Result<ExitCode> {
    let config = match &args.config {
        Some(path) => Config::read(path),
        None => Config::parse("").map_err(|problems| crate::config::Problems { file: String::new(), problems }),
    };
    let config = match config {
        Ok(config) => config,
        Err(problems) => {
            writeln!(io::stderr(), "{problems}")?;
            return Ok(ExitCode::FAILURE);
        }
    };
    let quiet = args.summary && io::stdout().is_terminal() && io::stderr().is_terminal();
    diagnostics(if quiet { LevelFilter::WARN } else { LevelFilter::INFO });
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("starting the async runtime")?;
    runtime.block_on(serve(args, config, start))?;
    Ok(ExitCode::SUCCESS)
}

async fn serve<S: Source>(
    args: &AgentArgs,
    mut config: Config,
    start: impl FnOnce(&Config) -> anyhow::Result<S>,
) -> anyhow::Result<()> {
    // Everything that may be refused comes before the kernel is touched.
    let signals = ending_signals().context("installing the signal handlers")?;
    let listener = match config.metrics {
        Some(address) => Some(http::bind(address).await?),
        None => None,
    };
    let folder = config.socket.as_deref().and_then(Path::parent).map(Folder::make).transpose()?;
    let socket = config.socket.as_deref().map(Socket::bind).transpose().context("rpc.socket")?;
    let metrics = listener.as_ref().map(|listener| listener.local_addr()).transpose().context("reading the address")?;
    let info = info(&config, metrics);
    let (summary, out) = outputs(args.summary);
    config.log_failures &= out.is_some();
    let log =
        Log::new(config.fold_window, &info, out.unwrap_or_else(|| Box::new(io::sink()))).context("starting the log")?;
    super::trace::remove_leftovers(&config.roots);
    let source = start(&config)?;
    announce(&source, &info);
    let bursts = config.bursts.as_ref().and_then(|wish| sampling(wish, &config, &info));
    let counters = counters(&config).context("starting to read NIC and RDMA counters")?;
    let recorder = bursts.as_ref().and_then(|sampling| sampling.bursts.recorder.clone());
    let fast = fast(&config, &info, recorder).context("starting to sample counters")?;
    let recorder = bursts.as_ref().and_then(|sampling| sampling.bursts.recorder.clone()).filter(|_| args.summary);
    let threshold = config.bursts.as_ref().map(|bursts| bursts.threshold).unwrap_or_default();
    let setup = Setup { source, config, bursts, info, log, summary, counters, fast, run_for: args.run_for, signals };
    let (daemon, handle, asker) = Daemon::new(setup);
    if let Some(listener) = listener {
        tokio::spawn(http::serve(listener, asker));
    }
    let (stop, stopped) = oneshot::channel::<()>();
    let calls = socket.map(|socket| {
        tokio::spawn(server::serve(socket, handle, async {
            // Told to stop, or left alone: it stops either way.
            let _ = stopped.await;
        }))
    });
    tell_service_manager(NotifyState::Ready);
    let source = daemon.run().await;
    tell_service_manager(NotifyState::Stopping);
    drop(stop);
    if let Some(recorder) = recorder {
        // A reader that is gone has seen enough.
        let _ = tell(&recorder, threshold, &mut io::stdout().lock());
    }
    if let Some(calls) = calls {
        match timeout(limits::SHUTDOWN, calls).await {
            Ok(ended) => ended.context("serving the socket")?.context("serving the socket")?,
            Err(_) => tracing::warn!("clients of the socket did not go; they are cut off"),
        }
    }
    // Last, so that nobody is told of hooks that are gone already.
    drop(source?);
    drop(folder);
    Ok(())
}

/// Tells the one that started the agent as a service, if one did: `systemctl start` returns when all that could be
/// attached is, and fails if the agent could not start.
fn tell_service_manager(state: NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(&[state]) {
        tracing::warn!("cannot tell the service manager: {error}");
    }
}

/// The reader of NIC and RDMA counters, if they are wanted.
fn counters(config: &Config) -> io::Result<Option<Service>> {
    if !config.counters {
        return Ok(None);
    }
    let (roots, filter) = (config.roots.clone(), config.counters_filter.clone());
    let collector = Collector::new(roots, filter, false, Box::new(Kernel::new()?));
    Service::start(collector, &config.roots, config.counters_every).map(Some)
}

/// The sampler of counters, if any are to be sampled fast and there is a recorder for them.
fn fast(config: &Config, info: &Info, recorder: Option<Arc<Recorder>>) -> io::Result<Option<fast::service::Service>> {
    let (choice, interval) = config.counters_fast.clone();
    let Some(recorder) = recorder.filter(|_| !choice.is_empty()) else { return Ok(None) };
    let wish = fast::Wish {
        roots: config.roots.clone(),
        filter: config.counters_filter.clone(),
        choice,
        interval,
        origin: origin(info),
    };
    let sampler = Sampler::new(wish, Box::new(Kernel::new()?), HostClocks);
    fast::service::Service::start(sampler, move |piece| recorder.push(piece)).map(Some)
}

/// The host, as it stands in samples.
fn origin(info: &Info) -> Origin {
    Origin { host: info.host.clone().unwrap_or_default(), boot_id: info.boot_id.clone().unwrap_or_default() }
}

/// The socket's folder. One that was not there goes with the agent; systemd makes and removes its own.
#[derive(Debug)]
struct Folder(Option<PathBuf>);

impl Folder {
    fn make(path: &Path) -> anyhow::Result<Self> {
        let made = match DirBuilder::new().mode(0o750).create(path) {
            Ok(()) => Some(path.to_owned()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => None,
            Err(error) => {
                let text = format!("cannot make {} for rpc.socket; run as root, or change it", path.display());
                return Err(anyhow::Error::new(error).context(text));
            }
        };
        Ok(Self(made))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // Somebody else may have put something there.
            let _ = std::fs::remove_dir(path);
        }
    }
}

/// Starts the burst sampler. The agent runs without it if that fails.
fn sampling(wish: &Bursts, config: &Config, info: &Info) -> Option<Sampling> {
    let origin = origin(info);
    let host = KernelHost { sysfs: config.roots.sysfs.clone() };
    match Sessions::start(wish.wish.clone(), origin, Box::new(host)) {
        Ok((sessions, updates)) => {
            let recorder = Recorder::start(recorder(wish));
            let recorder = recorder.inspect_err(|error| tracing::error!("no samples are kept: {error:#}")).ok();
            let mut bursts = State::new(wish.threshold, recorder);
            bursts.marks = wish.wish.marks;
            bursts.notes().for_each(|note| tracing::warn!("bursts: {note}"));
            let retransmissions = Retransmissions::attach(&config.roots)
                .inspect_err(|error| tracing::warn!("bursts: retransmits are counted by the sampler alone: {error:#}"));
            bursts.retransmissions = retransmissions.ok().map(|found| Box::new(found) as Box<dyn Retraced>);
            Some(Sampling { bursts, updates, sessions })
        }
        Err(error) => {
            tracing::error!("network devices are not sampled: {error:#}");
            None
        }
    }
}

/// The bursts of each sampled device, with a plot: how a run with a summary ends.
fn tell(recorder: &Recorder, threshold: Share, out: &mut impl Write) -> io::Result<()> {
    for netdev in recorder.netdevs().iter().take(limits::DEVICES_TOLD) {
        if let Some(series) = recorder.last(netdev, limits::TOLD) {
            write!(out, "\n{}", with_plot(series, threshold, Paper::of_stdout()))?;
        }
    }
    out.flush()
}

fn recorder(wish: &Bursts) -> recorder::Settings {
    let disk = |folder: &PathBuf| recorder::DiskSettings {
        folder: folder.clone(),
        age: wish.keep_for,
        bytes: wish.keep_bytes,
    };
    recorder::Settings {
        memory: usize::try_from(wish.memory).unwrap_or(usize::MAX),
        disk: wish.directory.as_ref().map(disk),
    }
}

/// The agent's own diagnostics, on standard error.
fn diagnostics(level: LevelFilter) {
    let subscriber = tracing_subscriber::fmt().with_writer(io::stderr).with_max_level(level).without_time();
    // Set already in tests that run in one process.
    let _ = subscriber.with_target(false).try_init();
}

fn info(config: &Config, metrics: Option<std::net::SocketAddr>) -> Info {
    let facts = KernelFacts::read(&config.roots);
    Info {
        version: env!("CARGO_PKG_VERSION"),
        started: SystemTime::now(),
        host: facts.hostname,
        kernel: facts.release,
        boot_id: facts.boot_id,
        metrics,
    }
}

type Out = Box<dyn Write + Send>;

/// The summary, if one is wanted, and where failures are logged.
fn outputs(summary: bool) -> (Option<Summary>, Option<Out>) {
    if !summary {
        return (None, Some(Box::new(io::stdout())));
    }
    let summary = if io::stdout().is_terminal() {
        let width = || terminal_size().map_or(COLUMNS, |(width, _)| usize::from(width.0));
        Summary::on_terminal(Box::new(io::stdout()), Box::new(width))
    } else {
        Summary::as_lines(Box::new(io::stdout()))
    };
    let log = (!io::stderr().is_terminal()).then(|| Box::new(io::stderr()) as Out);
    (Some(summary), log)
}

/// One line of what runs, one for each fault, and one for each reason why hooks do not run.
fn announce(source: &impl Source, info: &Info) {
    let hooks = source.hooks();
    let (attached, wanted) = attached_of(&hooks);
    let metrics = info.metrics_url().unwrap_or_else(|| "not served".to_owned());
    tracing::info!("fabricscope {} runs: {attached} of {wanted} hooks attached, metrics: {metrics}", info.version);
    for fault in degraded(&hooks) {
        tracing::warn!("{fault}");
    }
    for why in idle(&hooks) {
        tracing::info!("idle: {why}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::fake::Fake;

    fn write(folder: &Path, text: &str) -> AgentArgs {
        let config = folder.join("agent.toml");
        std::fs::write(&config, text).unwrap();
        AgentArgs { config: Some(config), run_for: Some(Duration::from_millis(50)), summary: false }
    }

    #[test]
    fn a_broken_configuration_ends_it_before_anything_is_attached() {
        let folder = tempfile::tempdir().unwrap();
        let args = write(folder.path(), "unknown = 1");
        let status = run_with(&args, |_| -> anyhow::Result<Fake> { panic!("attached") }).unwrap();
        assert_eq!(format!("{status:?}"), format!("{:?}", ExitCode::FAILURE));
    }

    #[test]
    fn a_port_in_use_ends_it_before_anything_is_attached() {
        let folder = tempfile::tempdir().unwrap();
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let text =
            format!("metrics.listen = '{}'\nrpc.enabled = false\nbursts.enabled = false", taken.local_addr().unwrap());
        let args = write(folder.path(), &text);
        let error = run_with(&args, |_| -> anyhow::Result<Fake> { panic!("attached") }).unwrap_err();
        assert!(error.to_string().contains("metrics.listen"), "{error:#}");
    }

    #[test]
    fn it_makes_its_socket_runs_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("run");
        let socket = run.join("agent.sock");
        let args = write(
            folder.path(),
            &format!("metrics.listen = '127.0.0.1:0'\nrpc.socket = '{}'\nbursts.enabled = false", socket.display()),
        );
        let start = |config: &Config| {
            assert!(config.socket.as_deref().is_some_and(Path::exists), "the socket is there first");
            Ok(Fake::new().0)
        };
        let status = run_with(&args, start).unwrap();
        assert_eq!(format!("{status:?}"), format!("{:?}", ExitCode::SUCCESS));
        assert!(!run.exists(), "the socket and its folder are gone");
    }
}

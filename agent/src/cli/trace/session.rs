//! One session: open a source, start the command, show events until there is a reason to end, sum up.

use std::collections::HashSet;
use std::io::{self, Write};
use std::process::{Child, ExitCode, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use super::args::{Output, Trace, Wish};
use super::scope::Scope;
use super::source::Source;
use super::stuck;
use super::summary::Summary;
use crate::cli::EXIT_NOTHING_ATTACHED;
use crate::cli::client::is_unreachable;
use crate::daemon::handle::Filter;
use crate::event::Event;
use crate::host::kernel::KernelFacts;
use crate::host::rdma::RdmaFacts;
use crate::host::roots::Roots;
use crate::probes::Subject;
use crate::terminal::{Paper, Table};
use crate::verbs::json::{self, Origin};
use crate::verbs::text::COLUMNS;

/// How long to wait for events before looking at everything else.
const WAIT: Duration = Duration::from_millis(100);

/// How long nothing has to come from an agent after the command's end before the session ends: the agent takes events
/// from the kernel and passes them on, which takes its time where all processors are busy.
const AGENT_SILENCE: Duration = Duration::from_secs(1);

/// Runs a session.
pub(crate) fn run(args: &Trace) -> anyhow::Result<ExitCode> {
    let mut wish = args.wish();
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).context("installing a signal handler")?;
    }
    let (scope, source) = match prepare(&mut wish) {
        Ok(ready) => ready,
        // The command's own statuses are passed on, so this one says that it was not run.
        Err(error) if !wish.session.command.is_empty() && !is_unreachable(&error) => {
            eprintln!("fabricscope: {error:#}");
            return Ok(ExitCode::from(EXIT_NOTHING_ATTACHED));
        }
        Err(error) => return Err(error),
    };
    let child = scope.as_ref().map(|scope| scope.start(&wish.session.command)).transpose()?;
    let facts = KernelFacts::read(&wish.session.roots);
    let mut session = Session {
        show: Show::new(wish.session.output, &facts),
        filter: wish.filter.clone(),
        source,
        child,
        stop,
        summary: Summary::default(),
    };
    let ended = session.follow(&wish);
    let status = session.end_child()?;
    ended?;
    session.close()?;
    Ok(status.map_or(ExitCode::SUCCESS, exit_code))
}

/// Makes everything that must be there before the command starts.
fn prepare(wish: &mut Wish<'_>) -> anyhow::Result<(Option<Scope>, Source)> {
    check_device(wish)?;
    let scope = if wish.session.command.is_empty() { None } else { Some(Scope::new(&wish.session.roots)?) };
    // Events of devices and of the connection manager belong to no process: all of the command's time are shown.
    if let Some(scope) = scope.as_ref().filter(|_| wish.filter.kinds.contains(&Subject::Verbs)) {
        wish.filter.cgroup_id = Some(scope.id);
    }
    let source = Source::open(wish)?;
    Ok((scope, source))
}

struct Session {
    show: Show,
    filter: Filter,
    source: Source,
    child: Option<Child>,
    stop: Arc<AtomicBool>,
    summary: Summary,
}

impl Session {
    /// Shows events until there is a reason to end.
    fn follow(&mut self, wish: &Wish<'_>) -> anyhow::Result<()> {
        let end = wish.session.duration.map(|duration| Instant::now() + duration);
        let enough = wish.session.count.unwrap_or(u64::MAX);
        let mut told = HashSet::new();
        // What the command did last may still be on its way when it ends.
        let silence = match self.source {
            Source::Agent(_) => AGENT_SILENCE,
            Source::Own(_) => Duration::ZERO,
        };
        let mut silent_since = None;
        loop {
            let seen = self.round(wish, enough, &mut told)?;
            if seen > 0 {
                silent_since = silent_since.map(|_| Instant::now());
            }
            let over = end.is_some_and(|end| Instant::now() >= end) || self.stop.load(Ordering::Relaxed);
            let silent = silent_since.is_some_and(|since: Instant| seen == 0 && since.elapsed() >= silence);
            if over || self.summary.count() >= enough || silent {
                return Ok(());
            }
            if let Some(child) = &mut self.child
                && silent_since.is_none()
                && child.try_wait()?.is_some()
            {
                self.catch_up(wish);
                silent_since = Some(Instant::now());
            }
        }
    }

    /// Waits until an agent has taken what the kernel has told so far: its loop may be busy for longer than any silence
    /// that would be bearable here.
    fn catch_up(&self, wish: &Wish<'_>) {
        if matches!(self.source, Source::Agent(_))
            && let Ok(Some(mut agent)) = wish.session.socket.agent()
        {
            // An agent that does not answer ends the session soon enough.
            let _ = agent.status();
        }
    }

    fn round(&mut self, wish: &Wish<'_>, enough: u64, told: &mut HashSet<(u32, u64)>) -> anyhow::Result<usize> {
        let Self { show, filter, source, summary, .. } = self;
        let mut taken = Vec::new();
        let seen = source.next(WAIT, summary, &mut |event| {
            taken.push(event);
            Ok(())
        })?;
        if wish.stuck {
            self.show_stuck(&wish.session.roots, enough, told)?;
            return Ok(seen);
        }
        for event in taken.iter().filter(|event| filter.matches(event)) {
            if summary.count() < enough {
                show.event(event)?;
                summary.shown(event);
            }
        }
        Ok(seen)
    }

    /// Tells each stuck call that is wanted once.
    fn show_stuck(&mut self, roots: &Roots, enough: u64, told: &mut HashSet<(u32, u64)>) -> anyhow::Result<()> {
        let Source::Own(own) = &self.source else { return Ok(()) };
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let now_ns = u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0);
        let calls = own.tracer.snapshot()?.in_flight;
        let json = self.show.output == Output::Json;
        for (call, waiting) in stuck::stuck(&calls, now_ns) {
            let device = own.decoder.device_of(call.rdev);
            let thread = stuck::Thread::read(roots, call.tid);
            let wanted = stuck::wanted(&self.filter, &call, device, &thread);
            if wanted && self.summary.count() < enough && told.insert((call.tid, call.start_ns)) {
                stuck::print(&mut io::stdout().lock(), json, device, &thread, (&call, waiting))?;
                self.summary.stuck(&call, device);
            }
        }
        // What has returned need not be remembered.
        told.retain(|(tid, start)| calls.iter().any(|call| call.tid == *tid && call.start_ns == *start));
        Ok(())
    }

    /// Ends the command if it still runs, and says how it ended.
    fn end_child(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        let Some(child) = &mut self.child else { return Ok(None) };
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        let pid = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
        if let Some(pid) = pid {
            // It may have ended in the meantime.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        Ok(Some(child.wait()?))
    }

    fn close(&mut self) -> anyhow::Result<()> {
        if let Source::Own(own) = &self.source {
            let snapshot = own.tracer.snapshot()?;
            self.summary.close(&own.tracer, &snapshot);
        }
        self.summary.print(&mut io::stderr().lock())?;
        Ok(())
    }
}

/// How events are printed.
struct Show {
    output: Output,
    paper: Paper,
    heading: bool,
    host: Option<String>,
    boot_id: Option<String>,
}

impl Show {
    fn new(output: Output, facts: &KernelFacts) -> Self {
        let (host, boot_id) = (facts.hostname.clone(), facts.boot_id.clone());
        Self { output, paper: Paper::of_stdout(), heading: false, host, boot_id }
    }

    fn event(&mut self, event: &Event) -> anyhow::Result<()> {
        let out = &mut io::stdout().lock();
        if self.output == Output::Json {
            let origin = Origin { host: self.host.as_deref(), boot_id: self.boot_id.as_deref() };
            json::write_line(event, origin, out)?;
        } else {
            let table = Table::new(&COLUMNS, self.paper);
            if !self.heading {
                self.heading = true;
                writeln!(out, "{}", table.heading())?;
            }
            writeln!(out, "{}", table.row(event))?;
        }
        out.flush()?;
        Ok(())
    }
}

/// A device that is not there would show nothing for ever.
fn check_device(wish: &Wish<'_>) -> anyhow::Result<()> {
    let Some(wanted) = &wish.filter.device else { return Ok(()) };
    let facts = RdmaFacts::read(&wish.session.roots);
    let is_netdev = || wish.session.roots.sysfs.join("class/net").join(wanted).exists();
    if facts.device(wanted).is_some() || wish.filter.kinds.contains(&Subject::Health) && is_netdev() {
        return Ok(());
    }
    let names: Vec<&str> = facts.devices.iter().map(|device| device.name.as_str()).collect();
    if names.is_empty() {
        bail!("no RDMA device {wanted}: this host has none");
    }
    bail!("no RDMA device {wanted}: this host has {}", names.join(", "))
}

/// The command's own status; 128 and its number if a signal ended it.
fn exit_code(status: ExitStatus) -> ExitCode {
    use std::os::unix::process::ExitStatusExt as _;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

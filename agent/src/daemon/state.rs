//! The state that the loop owns, and what each input does to it. Nothing here waits.

mod answers;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

use super::findings::Findings;
use super::handle::Info;
use super::losses::UserLosses;
use super::source::Source;
use super::summary::Summary;
use super::watchers::Watchers;
use super::{Flow, Input};
use crate::bursts::state::Bursts;
use crate::config::{Config, limits};
use crate::counters::fast;
use crate::counters::findings::board::Change;
use crate::counters::service::Service;
use crate::event::Event;
use crate::kernel::state::Snapshot;
use crate::log::Log;
use crate::metrics::Metrics;

/// A reading of the counters and when it was taken.
#[derive(Debug)]
struct Taken {
    at: Instant,
    monotonic_ns: u64,
    snapshot: Snapshot,
}

/// The loop's state.
#[derive(Debug)]
pub(super) struct State<S> {
    pub(super) source: S,
    config: Config,
    /// Ends before the recorder does, to which it gives what it has.
    fast: Option<fast::service::Service>,
    bursts: Option<Bursts>,
    info: Info,
    started: Instant,
    taken: Option<Taken>,
    metrics: Metrics,
    log: Log,
    watchers: Watchers,
    last_failures: VecDeque<Arc<Event>>,
    user: UserLosses,
    commands_refused: Arc<AtomicU64>,
    scrapes_refused: Arc<AtomicU64>,
    summary: Option<Summary>,
    counters: Option<Service>,
    findings: Findings,
    ticks: u64,
    /// When the measuring of run times began or is to begin again.
    measuring: Option<Instant>,
    measured: Instant,
    /// More events wait than were taken at once.
    pub(super) more: bool,
    /// Hooks wait to be attached.
    pub(super) attaching: bool,
}

/// What the loop starts with.
#[derive(Debug)]
pub(super) struct Parts<S> {
    pub(super) source: S,
    pub(super) config: Config,
    pub(super) bursts: Option<Bursts>,
    pub(super) info: Info,
    pub(super) log: Log,
    pub(super) summary: Option<Summary>,
    pub(super) counters: Option<Service>,
    pub(super) fast: Option<fast::service::Service>,
    pub(super) commands_refused: Arc<AtomicU64>,
    pub(super) scrapes_refused: Arc<AtomicU64>,
}

impl<S: Source> State<S> {
    pub(super) fn new(parts: Parts<S>) -> Self {
        let now = Instant::now();
        Self {
            source: parts.source,
            config: parts.config,
            bursts: parts.bursts,
            info: parts.info,
            started: now,
            taken: None,
            metrics: Metrics::default(),
            log: parts.log,
            watchers: Watchers::default(),
            last_failures: VecDeque::with_capacity(limits::LAST_FAILURES),
            user: UserLosses::default(),
            commands_refused: parts.commands_refused,
            scrapes_refused: parts.scrapes_refused,
            summary: parts.summary,
            counters: parts.counters,
            findings: Findings::default(),
            fast: parts.fast,
            ticks: 0,
            measuring: None,
            measured: now,
            more: false,
            attaching: false,
        }
    }

    /// One input, from beginning to end.
    pub(super) fn handle(&mut self, input: Input) -> Flow {
        match input {
            Input::Tick => self.tick(),
            Input::Ring => self.ring(),
            Input::Attach => self.attach(),
            Input::Bursts(update) => {
                if let Some(bursts) = &mut self.bursts {
                    bursts.take(*update);
                }
            }
            Input::Scrape(scrape) => self.scrape(scrape),
            Input::Command(command) => self.command(command),
            Input::Signal(name) => {
                tracing::info!(signal = name, "stopping");
                return Flow::Stop;
            }
            Input::Deadline => {
                tracing::info!("stopping: the time to run is over");
                return Flow::Stop;
            }
        }
        Flow::Continue
    }

    /// Takes what still waits, and writes what is still folded.
    pub(super) fn finish(&mut self) {
        // As much as a ring can hold, so that a storm cannot keep the agent alive.
        self.take_events(limits::LAST_DRAINS);
        self.log.flush();
        self.show_summary(true);
    }

    /// Waits, within bounds, until the log is written, and gives the source back.
    pub(super) fn end(self) -> S {
        self.log.close();
        self.source
    }

    fn tick(&mut self) {
        let now = Instant::now();
        let changed = match self.source.refresh() {
            Ok(changed) => changed,
            Err(error) => {
                tracing::warn!("cannot look at the modules: {error:#}");
                false
            }
        };
        self.attaching |= changed;
        if changed || self.ticks.is_multiple_of(limits::DEVICES_EVERY_TICKS) {
            self.source.refresh_devices();
        }
        self.ticks += 1;
        self.measure(now);
        // Should a wake-up of the ring buffer ever be lost, its events are late and not lost.
        self.ring();
        if self.summary.is_some() || self.taken.as_ref().is_none_or(|taken| now - taken.at >= limits::SNAPSHOT_IDLE) {
            self.read_counters(now);
        }
        self.stuck();
        self.judge();
        self.watchers.remove_gone();
        self.log.due(now);
        self.show_summary(false);
    }

    /// Attaches some of what waits for it. A driver that came has brought its devices by the time when it is done.
    fn attach(&mut self) {
        self.attaching = self.source.attach();
        if !self.attaching {
            self.source.refresh_devices();
        }
    }

    /// Run times are measured in short windows: measuring costs as much as a small program.
    fn measure(&mut self, now: Instant) {
        let result = match self.measuring {
            Some(began) if now - began >= self.config.statistics_window => {
                self.measuring = None;
                self.measured = now;
                self.source.measure(false)
            }
            None if !self.config.statistics_window.is_zero() && now - self.measured >= self.config.statistics_every => {
                self.measuring = Some(now);
                self.source.measure(true)
            }
            _ => Ok(()),
        };
        if let Err(error) = result {
            tracing::warn!("cannot measure run times: {error:#}");
        }
    }

    fn ring(&mut self) {
        let mut events = Vec::with_capacity(limits::DECODE_AT_ONCE);
        let count = self.source.drain(limits::DECODE_AT_ONCE, &mut |event| events.push(event));
        self.more = count >= limits::DECODE_AT_ONCE;
        for event in events {
            match event {
                Ok(event) => self.event(Arc::new(event)),
                Err(error) => {
                    self.user.decode += 1;
                    tracing::debug!("an event is lost: {error:#}");
                }
            }
        }
    }

    fn take_events(&mut self, rounds: usize) {
        for _ in 0..rounds {
            self.ring();
            if !self.more {
                break;
            }
        }
    }

    fn event(&mut self, event: Arc<Event>) {
        if let Event::Verbs(failure) = &*event {
            if self.config.log_failures && (!failure.probe || self.config.probes) {
                self.log.failure(Instant::now(), &event);
            }
            if !failure.probe {
                self.last_failures.truncate(limits::LAST_FAILURES - 1);
                self.last_failures.push_front(Arc::clone(&event));
            }
        }
        self.user.watch += self.watchers.send(&event);
    }

    fn stuck(&mut self) {
        let Some(taken) = &self.taken else { return };
        if self.config.log_failures {
            let devices = self.source.devices();
            self.log.stuck(taken.monotonic_ns, self.config.stuck_after, &taken.snapshot.in_flight, devices);
        }
    }

    /// Takes what the detectors have said, and logs what has changed.
    fn judge(&mut self) {
        let Some(counters) = &self.counters else { return };
        for verdicts in counters.verdicts() {
            let changes = self.findings.take(verdicts);
            self.log_findings(&changes);
        }
    }

    fn log_findings(&mut self, changes: &[Change]) {
        if self.config.log_failures {
            changes.iter().for_each(|change| self.log.finding(change));
        }
    }
}

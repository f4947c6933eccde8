//! The loop: waits for whichever input comes first and hands it to the state.

use std::io;
use std::time::Duration;

use anyhow::Context as _;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use super::handle::{Handle, Info};
use super::source::Source;
use super::state::{Parts, State};
use super::summary::Summary;
use super::{Flow, Input, Inputs, http};
use crate::bursts::sessions::{Sessions, Update};
use crate::bursts::state::Bursts;
use crate::config::{Config, limits};
use crate::counters::fast;
use crate::counters::service::Service;
use crate::kernel::readable;
use crate::log::Log;

/// The loop with all it needs, not yet running.
#[derive(Debug)]
pub(crate) struct Daemon<S> {
    state: State<S>,
    inputs: Inputs,
    /// Ends before the state does.
    sessions: Option<Sessions>,
    deadline: Option<Instant>,
}

/// What the daemon is made from.
#[derive(Debug)]
pub(crate) struct Setup<S> {
    /// Where events come from.
    pub(crate) source: S,
    /// The checked configuration.
    pub(crate) config: Config,
    /// Who this agent is.
    pub(crate) info: Info,
    /// The burst sampler, if it is on.
    pub(crate) bursts: Option<Sampling>,
    /// Where failures are written.
    pub(crate) log: Log,
    /// The live summary, if one is wanted.
    pub(crate) summary: Option<Summary>,
    /// NIC and RDMA counters, if they are read.
    pub(crate) counters: Option<Service>,
    /// Counters that are sampled fast, if any.
    pub(crate) fast: Option<fast::service::Service>,
    /// Ends by itself after this time.
    pub(crate) run_for: Option<Duration>,
    /// Signals that end it, by name.
    pub(crate) signals: mpsc::Receiver<&'static str>,
}

/// The burst sampler: the loop's part of it, and the thread with what it reads.
#[derive(Debug)]
pub(crate) struct Sampling {
    /// The loop's part.
    pub(crate) bursts: Bursts,
    /// What the thread reads.
    pub(crate) updates: mpsc::Receiver<Update>,
    /// The thread.
    pub(crate) sessions: Sessions,
}

impl<S: Source> Daemon<S> {
    /// The daemon, and the ways to it: for the socket and for the HTTP server.
    pub(crate) fn new(setup: Setup<S>) -> (Self, Handle, http::Asker) {
        let (handle, commands, commands_refused) = Handle::new();
        let (asker, scrapes, scrapes_refused) = http::Asker::new();
        let (bursts, updates, sessions) = match setup.bursts {
            Some(Sampling { bursts, updates, sessions }) => (Some(bursts), Some(updates), Some(sessions)),
            None => (None, None, None),
        };
        let state = State::new(Parts {
            source: setup.source,
            config: setup.config,
            bursts,
            info: setup.info,
            log: setup.log,
            summary: setup.summary,
            counters: setup.counters,
            fast: setup.fast,
            commands_refused,
            scrapes_refused,
        });
        let inputs = Inputs { commands, scrapes, updates, signals: setup.signals };
        let deadline = setup.run_for.map(|run_for| Instant::now() + run_for);
        (Self { state, inputs, deadline, sessions }, handle, asker)
    }

    /// Runs until a signal or the deadline ends it, and gives the source back, so that it ends last.
    ///
    /// # Errors
    ///
    /// If the ring buffer cannot be waited for.
    pub(crate) async fn run(mut self) -> anyhow::Result<S> {
        let ring = self.state.source.events_fd().and_then(readable).context("waiting for the ring buffer")?;
        let mut ticks = interval(limits::TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let input = tokio::select! {
                Some(name) = self.inputs.signals.recv() => Input::Signal(name),
                () = at(self.deadline) => Input::Deadline,
                Some(command) = self.inputs.commands.recv() => Input::Command(command),
                Some(scrape) = self.inputs.scrapes.recv() => Input::Scrape(scrape),
                update = next(self.inputs.updates.as_mut()) => match update {
                    Some(update) => Input::Bursts(Box::new(update)),
                    // The thread has ended, which it does not by itself.
                    None => {
                        self.inputs.updates = None;
                        continue;
                    }
                },
                _ = ticks.tick() => Input::Tick,
                // Cleared before the events are taken: one that comes meanwhile wakes the loop again.
                ready = ring.readable() => { ready.context("waiting for the ring buffer")?.clear_ready(); Input::Ring }
                () = tokio::task::yield_now(), if self.state.more => Input::Ring,
                () = tokio::task::yield_now(), if self.state.attaching => Input::Attach,
            };
            if self.state.handle(input) == Flow::Stop {
                break;
            }
        }
        drop(self.sessions.take());
        // What the thread read last is still on its way.
        if let Some(updates) = self.inputs.updates.as_mut() {
            while let Ok(update) = updates.try_recv() {
                self.state.handle(Input::Bursts(Box::new(update)));
            }
        }
        self.state.finish();
        drop(ring);
        Ok(self.state.end())
    }
}

async fn next(updates: Option<&mut mpsc::Receiver<Update>>) -> Option<Update> {
    match updates {
        Some(updates) => updates.recv().await,
        None => std::future::pending().await,
    }
}

async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Signals that end the agent, as they come. Must be called inside the runtime.
///
/// # Errors
///
/// If the kernel refuses the handlers.
pub(crate) fn ending_signals() -> io::Result<mpsc::Receiver<&'static str>> {
    // The second signal needs no room: the first one ends the agent.
    let (sender, receiver) = mpsc::channel(1);
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::spawn(async move {
        let name = tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        };
        // The loop may have ended by itself.
        let _ = sender.send(name).await;
    });
    Ok(receiver)
}

//! Where a session's events come from: the agent that runs on this host, or hooks of the session's own.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::args::Wish;
use super::summary::Summary;
use crate::cli::client::{Next, Watch};
use crate::event::Event;
use crate::kernel::{Options, Tracer};
use crate::probes::{Hook, Subject};
use crate::verbs::record::Decoder;

/// How often hooks are checked against the modules that are loaded.
const REFRESH: Duration = Duration::from_secs(1);
/// The most events that are taken at once.
const BATCH: usize = 1024;

/// Where events come from.
pub(crate) enum Source {
    /// A running agent.
    Agent(Box<Watch>),
    /// The session's own hooks.
    Own(Box<Own>),
}

/// The session's own hooks.
pub(crate) struct Own {
    pub(crate) tracer: Tracer,
    pub(crate) decoder: Decoder,
    ready: OwnedFd,
    checked: Instant,
}

impl Source {
    /// Finds or makes one.
    ///
    /// # Errors
    ///
    /// If an agent refuses, or nothing can be attached.
    pub(crate) fn open(wish: &Wish<'_>) -> anyhow::Result<Self> {
        let alone = wish.all || wish.stuck || wish.session.no_fexit;
        if !alone && let Some(agent) = wish.session.socket.agent()? {
            return Ok(Self::Agent(Box::new(agent.watch(&wish.filter)?)));
        }
        let subjects = wish.filter.kinds.clone();
        let tracer = Tracer::start(&Options {
            roots: wish.session.roots.clone(),
            latency: wish.latency,
            subjects: subjects.clone(),
            all: wish.all,
            fexit: !wish.session.no_fexit,
        })?;
        if let Some(why) = nothing_attached(&tracer, &subjects) {
            bail!("nothing could be attached: {why}; `fabricscope doctor` tells what this host lacks");
        }
        let decoder = Decoder::new(&wish.session.roots);
        let ready = tracer.events_fd().context("waiting for the ring buffer")?;
        let mut own = Own { tracer, decoder, ready, checked: Instant::now() };
        own.tell_decoder();
        Ok(Self::Own(Box::new(own)))
    }

    /// Waits at most so long for events, and hands over what there is.
    ///
    /// # Errors
    ///
    /// If the connection to the agent breaks, or hooks can no longer be kept.
    pub(crate) fn next(
        &mut self,
        wait: Duration,
        summary: &mut Summary,
        sink: &mut dyn FnMut(Event) -> anyhow::Result<()>,
    ) -> anyhow::Result<usize> {
        match self {
            Self::Agent(watch) => match watch.next_within(wait)? {
                Next::Nothing => Ok(0),
                Next::Ended => bail!("the agent has ended"),
                Next::Seen(seen) => {
                    summary.lost("agent", "client", "slow", seen.lost_before);
                    seen.event.map_or(Ok(0), |event| sink(event).map(|()| 1))
                }
            },
            Self::Own(own) => own.next(wait, summary, sink),
        }
    }
}

impl Own {
    fn next(
        &mut self,
        wait: Duration,
        summary: &mut Summary,
        sink: &mut dyn FnMut(Event) -> anyhow::Result<()>,
    ) -> anyhow::Result<usize> {
        self.wait(wait);
        if self.checked.elapsed() >= REFRESH {
            self.checked = Instant::now();
            if self.tracer.refresh()? {
                self.decoder.refresh();
                self.tell_decoder();
            }
        }
        let mut events = Vec::new();
        let Self { tracer, decoder, .. } = self;
        let count = tracer.drain(BATCH, &mut |bytes| match decoder.decode(bytes) {
            Ok(event) => events.push(event),
            Err(_) => summary.lost("agent", "decode", "bad_record", 1),
        });
        events.into_iter().try_for_each(sink)?;
        Ok(count)
    }

    fn wait(&self, wait: Duration) {
        let mut fds = [PollFd::new(&self.ready, PollFlags::IN)];
        let wait =
            Timespec { tv_sec: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX), tv_nsec: wait.subsec_nanos().into() };
        // An interrupted wait is one that ends early.
        let _ = poll(&mut fds, Some(&wait));
    }

    fn tell_decoder(&mut self) {
        let function = |number| self.tracer.function(number).map(str::to_owned);
        let functions = Hook::all().map(|(number, _)| function(number)).collect();
        self.decoder.set_functions(functions);
    }
}

/// Why no hook of these subjects runs; `None` if one does.
fn nothing_attached(tracer: &Tracer, subjects: &[Subject]) -> Option<String> {
    let hooks = tracer.hooks();
    let wanted = |number| Hook::by_number(number).is_some_and(|hook| subjects.contains(&hook.subject));
    let mut wanted = hooks.iter().filter(|hook| wanted(hook.number));
    if wanted.clone().any(|hook| hook.state.is_attached()) {
        return None;
    }
    Some(wanted.next().map_or_else(|| "there is no such hook".to_owned(), |hook| hook.state.to_string()))
}

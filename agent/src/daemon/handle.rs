//! How others in this process talk to the daemon's loop: commands over one bounded channel, domain types as answers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use analysis::series::DurationNs;
use tokio::sync::{mpsc, oneshot};

use super::findings::Firing;
use crate::bursts::kept::Kept;
use crate::bursts::state::Live;
use crate::config::limits;
use crate::event::{Event, Failure};
use crate::host::rdma::RdmaDevice;
use crate::kernel::state::HookState;
use crate::probes::Subject;

/// What the loop can be asked for. An answer that nobody waits for any more is thrown away.
#[derive(Debug)]
pub(crate) enum Command {
    /// Who this agent is.
    GetInfo(oneshot::Sender<Info>),
    /// How it is doing.
    GetStatus(oneshot::Sender<Status>),
    /// Every hook with its state and accounts.
    ListHooks(oneshot::Sender<Vec<HookState>>),
    /// The last samples of network devices.
    Samples(Samples),
    /// Events from now on, until the receiver is dropped.
    Watch(Watch),
}

/// A request for samples.
#[derive(Debug)]
pub(crate) struct Samples {
    /// The network device; `None` for all.
    pub(crate) netdev: Option<String>,
    /// How far to go back.
    pub(crate) last: DurationNs,
    /// Those of counters too.
    pub(crate) counters: bool,
    /// One piece for each device and source.
    pub(crate) answer: oneshot::Sender<Result<Vec<Kept>, Refused>>,
}

/// A request for events.
#[derive(Debug)]
pub(crate) struct Watch {
    /// Which events.
    pub(crate) filter: Filter,
    /// Told once whether the watch was taken.
    pub(crate) accepted: oneshot::Sender<Result<(), Refused>>,
    /// Where they go; made by [`Handle::watch`] with room for [`limits::WATCH_QUEUE`].
    pub(crate) events: mpsc::Sender<Watched>,
}

/// An event on its way to a client.
#[derive(Clone, Debug)]
pub(crate) struct Watched {
    /// The event.
    pub(crate) event: Arc<Event>,
    /// How many events were lost to this client, for its slowness, since the one before.
    pub(crate) lost_before: u64,
}

/// Why the loop does not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    /// As many clients watch as are allowed.
    #[error("{} clients watch events already; end one of them first", limits::WATCHERS)]
    TooManyWatchers,
    /// Nothing is known of the network device.
    #[error("there are no samples of network device {0:?}; see bursts.netdevs in the agent's configuration")]
    NoSamples(String),
    /// Network devices are not sampled, or nothing of it is kept.
    #[error("this agent keeps no samples of network devices; see bursts.enabled in its configuration")]
    NotKept,
    /// More commands wait than the loop takes.
    #[error("the agent is busy: {} commands wait already; try again", limits::COMMANDS)]
    Busy,
    /// The loop has ended.
    #[error("the agent is stopping")]
    Stopping,
}

/// Who this agent is. Nothing here changes while it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Info {
    /// The version of the program.
    pub(crate) version: &'static str,
    /// When it started, on the wall clock.
    pub(crate) started: SystemTime,
    /// `uname -n`, if it can be read.
    pub(crate) host: Option<String>,
    /// `uname -r`, if it can be read.
    pub(crate) kernel: Option<String>,
    /// Names this boot of the host, if it can be read.
    pub(crate) boot_id: Option<String>,
    /// Where `/metrics` is served.
    pub(crate) metrics: Option<SocketAddr>,
}

impl Info {
    /// What to open to see the metrics: an address that is open to all is reached by this host's own name.
    pub(crate) fn metrics_url(&self) -> Option<String> {
        let address = self.metrics?;
        let port = address.port();
        Some(match address.ip().is_unspecified() {
            true => {
                // What the kernel says where no name was set.
                let host = self.host.as_deref().filter(|host| *host != "(none)");
                format!("http://{}:{port}/metrics", host.unwrap_or("localhost"))
            }
            false => format!("http://{address}/metrics"),
        })
    }
}

/// How the agent is doing.
#[derive(Clone, Debug)]
pub(crate) struct Status {
    /// Who it is.
    pub(crate) info: Info,
    /// How long it has run.
    pub(crate) uptime: Duration,
    /// Hooks that run.
    pub(crate) hooks_attached: usize,
    /// Hooks that are wanted here: all but the disabled ones and those that wait for a module.
    pub(crate) hooks_wanted: usize,
    /// What does not run as configured and why, one sentence each; empty when all is well.
    pub(crate) degraded: Vec<String>,
    /// Hooks that do not run though nothing is wrong, by reason, the most first; a few lines.
    pub(crate) idle: Vec<String>,
    /// What is worth knowing and no fault, one sentence each.
    pub(crate) notes: Vec<String>,
    /// Verbs calls that returned.
    pub(crate) calls: u64,
    /// Of these, failures.
    pub(crate) failures: u64,
    /// Of these, refused probes.
    pub(crate) probes: u64,
    /// Everything that was lost, rows of zero left out.
    pub(crate) lost: Vec<Loss>,
    /// The last failures, newest first, at most [`limits::LAST_FAILURES`].
    pub(crate) last_failures: Vec<Arc<Event>>,
    /// Network devices that are sampled, in the last second.
    pub(crate) netdevs: Vec<Live>,
    /// RDMA devices and their ports.
    pub(crate) devices: Vec<RdmaDevice>,
    /// Findings that fire, at most [`limits::FINDINGS_TOLD`].
    pub(crate) findings: Vec<Firing>,
}

impl Status {
    /// The last failures as what they are.
    pub(crate) fn last_failures(&self) -> impl Iterator<Item = &Failure> {
        self.last_failures.iter().filter_map(|event| match &**event {
            Event::Verbs(failure) => Some(&**failure),
            _ => None,
        })
    }

    /// How much was lost altogether.
    pub(crate) fn lost_total(&self) -> u64 {
        self.lost.iter().fold(0, |sum, loss| sum.saturating_add(loss.count))
    }
}

/// Things lost in one way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Loss {
    /// The program family that lost them, or `agent`.
    pub(crate) program: &'static str,
    /// Where on the way.
    pub(crate) stage: &'static str,
    /// Why.
    pub(crate) reason: &'static str,
    /// How many.
    pub(crate) count: u64,
}

/// Which events a client wants. What is empty or absent lets everything through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    /// Kinds of event.
    pub(crate) kinds: Vec<Subject>,
    /// The process; lets only verbs events through.
    pub(crate) pid: Option<u32>,
    /// The thread's name; lets only verbs events through.
    pub(crate) comm: Option<String>,
    /// The RDMA device, for health events also the network device; lets no CM events through, which name none.
    pub(crate) device: Option<String>,
    /// The verb by name; lets only verbs events through.
    pub(crate) verb: Option<String>,
    /// A positive errno; lets only verbs events through.
    pub(crate) errno: Option<i32>,
    /// The cgroup v2 id; lets only verbs events through.
    pub(crate) cgroup_id: Option<u64>,
    /// Refused probes too.
    pub(crate) include_probes: bool,
}

impl Filter {
    /// Whether the event is wanted.
    pub(crate) fn matches(&self, event: &Event) -> bool {
        let kind = match event {
            Event::Verbs(_) => Subject::Verbs,
            Event::Cm(_) => Subject::Cm,
            Event::Device(_) => Subject::Device,
            Event::Health(_) => Subject::Health,
        };
        let of_a_call = self.pid.is_some()
            || self.comm.is_some()
            || self.verb.is_some()
            || self.errno.is_some()
            || self.cgroup_id.is_some();
        (self.kinds.is_empty() || self.kinds.contains(&kind))
            && match event {
                Event::Verbs(failure) => self.matches_failure(failure),
                Event::Cm(_) => !of_a_call && self.device.is_none(),
                Event::Device(event) => !of_a_call && (self.device.is_none() || self.device == event.device),
                Event::Health(event) => !of_a_call && self.device.as_ref().is_none_or(|name| event.is_about(name)),
            }
    }

    fn matches_failure(&self, failure: &Failure) -> bool {
        (self.include_probes || !failure.probe)
            && self.pid.is_none_or(|pid| pid == failure.pid)
            && self.comm.as_ref().is_none_or(|comm| *comm == failure.comm)
            && (self.device.is_none() || self.device == failure.device)
            && self.verb.as_ref().is_none_or(|verb| *verb == failure.verb)
            && self.errno.is_none_or(|errno| errno == failure.errno)
            && self.cgroup_id.is_none_or(|id| id == failure.cgroup_id)
    }
}

/// The way to the loop. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Handle {
    commands: mpsc::Sender<Command>,
    refused: Arc<AtomicU64>,
}

impl Handle {
    /// A handle and the loop's end of it. The counter is of commands refused because too many waited.
    pub(crate) fn new() -> (Self, mpsc::Receiver<Command>, Arc<AtomicU64>) {
        let (commands, receiver) = mpsc::channel(limits::COMMANDS);
        let refused = Arc::new(AtomicU64::new(0));
        (Self { commands, refused: Arc::clone(&refused) }, receiver, refused)
    }

    /// Who this agent is.
    pub(crate) async fn info(&self) -> Result<Info, Refused> {
        self.ask(Command::GetInfo).await
    }

    /// How it is doing.
    pub(crate) async fn status(&self) -> Result<Status, Refused> {
        self.ask(Command::GetStatus).await
    }

    /// Every hook with its state and accounts.
    pub(crate) async fn hooks(&self) -> Result<Vec<HookState>, Refused> {
        self.ask(Command::ListHooks).await
    }

    /// The last samples of one network device, or of all; of its counters too if `counters`.
    pub(crate) async fn samples(
        &self,
        netdev: Option<String>,
        last: DurationNs,
        counters: bool,
    ) -> Result<Vec<Kept>, Refused> {
        self.ask(|answer| Command::Samples(Samples { netdev, last, counters, answer })).await?
    }

    /// Events from now on. The stream ends when the agent does; dropping the receiver ends the watch.
    pub(crate) async fn watch(&self, filter: Filter) -> Result<mpsc::Receiver<Watched>, Refused> {
        let (events, receiver) = mpsc::channel(limits::WATCH_QUEUE);
        self.ask(|accepted| Command::Watch(Watch { filter, accepted, events })).await??;
        Ok(receiver)
    }

    async fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Result<T, Refused> {
        let (answer, receiver) = oneshot::channel();
        match self.commands.try_send(command(answer)) {
            Ok(()) => receiver.await.map_err(|_| Refused::Stopping),
            Err(mpsc::error::TrySendError::Closed(_)) => Err(Refused::Stopping),
            Err(mpsc::error::TrySendError::Full(_)) => {
                self.refused.fetch_add(1, Ordering::Relaxed);
                Err(Refused::Busy)
            }
        }
    }
}

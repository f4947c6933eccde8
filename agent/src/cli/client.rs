//! The command line's way to a running agent, without asynchronous code.

use std::path::{Path, PathBuf};
use std::time::Duration;

use analysis::series::DurationNs;
use anyhow::Context as _;
use tokio::runtime::Runtime;

use crate::bursts::kept::Kept;
use crate::daemon::handle::Filter;
use crate::kernel::state::HookState;
use crate::rpc::client::{Client, ClientError, Events, Seen};
use crate::rpc::seen::{AgentInfo, AgentStatus};

/// Where an agent listens if its configuration does not say otherwise.
pub(crate) const SOCKET_DEFAULT: &str = "/run/fabricscope/agent.sock";

/// Exit status when the agent that was asked for is not there.
pub(crate) const EXIT_UNREACHABLE: u8 = 3;

/// Which agent to ask.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
pub(crate) struct SocketArgs {
    /// Ask the agent that listens on this socket [default: /run/fabricscope/agent.sock, if one runs]
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
}

impl SocketArgs {
    /// Where to look.
    pub(crate) fn path(&self) -> &Path {
        self.socket.as_deref().unwrap_or(Path::new(SOCKET_DEFAULT))
    }

    /// The agent; `None` if none runs and none was asked for by its socket.
    ///
    /// # Errors
    ///
    /// If the agent that was asked for is unreachable ([`EXIT_UNREACHABLE`]), or if one runs and may not be asked.
    pub(crate) fn agent(&self) -> anyhow::Result<Option<Agent>> {
        match Agent::connect(self.path()) {
            Ok(agent) => Ok(Some(agent)),
            Err(error) => match error.downcast_ref::<ClientError>() {
                Some(ClientError::Unreachable(_, why)) if self.socket.is_none() && is_absent(why) => Ok(None),
                _ => Err(error),
            },
        }
    }
}

/// Nobody listens, as opposed to somebody who may not be asked.
fn is_absent(error: &std::io::Error) -> bool {
    use std::io::ErrorKind;
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused)
}

/// Whether an error means [`EXIT_UNREACHABLE`].
pub(crate) fn is_unreachable(error: &anyhow::Error) -> bool {
    error.downcast_ref::<ClientError>().is_some_and(ClientError::is_unreachable)
}

/// A running agent.
#[derive(Debug)]
pub(crate) struct Agent {
    runtime: Runtime,
    client: Client,
}

impl Agent {
    /// Connects to the agent on `socket`.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if it is unreachable.
    pub(crate) fn connect(socket: &Path) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.context("cannot start the client's event loop")?;
        let client = runtime.block_on(Client::connect(socket))?;
        Ok(Self { runtime, client })
    }

    /// Which agent this is.
    pub(crate) fn info(&mut self) -> Result<AgentInfo, ClientError> {
        self.runtime.block_on(self.client.info())
    }

    /// How it is doing.
    pub(crate) fn status(&mut self) -> Result<AgentStatus, ClientError> {
        self.runtime.block_on(self.client.status())
    }

    /// Every hook with its state and accounts.
    pub(crate) fn hooks(&mut self) -> Result<Vec<HookState>, ClientError> {
        self.runtime.block_on(self.client.hooks())
    }

    /// The last samples of one network device, or of all; of its counters too if `counters`.
    pub(crate) fn samples(
        &mut self,
        netdev: Option<&str>,
        last: DurationNs,
        counters: bool,
    ) -> Result<Vec<Kept>, ClientError> {
        self.runtime.block_on(self.client.samples(netdev, last, counters))
    }

    /// Events from now on: what happens after this returns is seen.
    pub(crate) fn watch(mut self, filter: &Filter) -> Result<Watch, ClientError> {
        let events = self.runtime.block_on(self.client.watch(filter))?;
        Ok(Watch { runtime: self.runtime, events })
    }
}

/// Events of a running agent, one after the other.
#[derive(Debug)]
pub(crate) struct Watch {
    runtime: Runtime,
    events: Events,
}

/// What waiting for an event came to.
#[derive(Debug)]
pub(crate) enum Next {
    /// An event, or losses, or both.
    Seen(Box<Seen>),
    /// Nothing happened in this time.
    Nothing,
    /// The agent has ended.
    Ended,
}

impl Watch {
    /// Waits for the next event, but not longer than `wait`.
    ///
    /// # Errors
    ///
    /// If the connection breaks, or if an event is not understood.
    pub(crate) fn next_within(&mut self, wait: Duration) -> Result<Next, ClientError> {
        let next = self.runtime.block_on(async { tokio::time::timeout(wait, self.events.next()).await });
        Ok(match next {
            Err(_) => Next::Nothing,
            Ok(seen) => seen?.map_or(Next::Ended, |seen| Next::Seen(Box::new(seen))),
        })
    }
}

impl Iterator for Watch {
    type Item = Result<Seen, ClientError>;

    /// Waits for the next event without end.
    fn next(&mut self) -> Option<Self::Item> {
        self.runtime.block_on(self.events.next()).transpose()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::daemon::handle::Watched;
    use crate::rpc::tests::Agent as TestAgent;
    use crate::verbs::samples;

    #[test]
    fn without_a_socket_argument_a_missing_agent_is_no_error() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("none.sock");
        let error = SocketArgs { socket: Some(socket) }.agent().unwrap_err();
        assert!(is_unreachable(&error), "{error:#}");
        for (kind, absent) in [
            (std::io::ErrorKind::NotFound, true),
            (std::io::ErrorKind::ConnectionRefused, true),
            (std::io::ErrorKind::PermissionDenied, false),
        ] {
            assert_eq!(is_absent(&kind.into()), absent, "{kind}");
        }
    }

    #[tokio::test]
    async fn events_come_one_after_the_other_and_waiting_has_an_end() {
        let mut agent = TestAgent::start();
        let socket = agent.socket();
        let (ready, mut waiting) = tokio::sync::mpsc::channel(1);
        let reader = tokio::task::spawn_blocking(move || {
            let mut watch = Agent::connect(&socket).unwrap().watch(&Filter::default()).unwrap();
            assert!(matches!(watch.next_within(Duration::from_millis(10)), Ok(Next::Nothing)));
            ready.blocking_send(()).unwrap();
            let mut seen = Vec::new();
            loop {
                match watch.next_within(Duration::from_secs(20)).unwrap() {
                    Next::Seen(event) => seen.push((event.event.unwrap(), event.lost_before)),
                    Next::Nothing => panic!("nothing within 20 s"),
                    Next::Ended => return seen,
                }
            }
        });
        let (_, events) = agent.accept(Ok(())).await;
        waiting.recv().await.unwrap();
        for (event, lost_before) in samples::all().into_iter().zip(0..) {
            events.send(Watched { event: Arc::new(event), lost_before }).await.unwrap();
        }
        drop(events);
        let seen = reader.await.unwrap();
        let expected: Vec<_> = samples::all().into_iter().zip(0..).collect();
        assert_eq!(format!("{seen:?}"), format!("{expected:?}"));
    }

    #[tokio::test]
    async fn the_agent_s_answers_come_without_asynchronous_code() {
        let agent = TestAgent::start();
        let args = SocketArgs { socket: Some(agent.socket()) };
        let answers = tokio::task::spawn_blocking(move || {
            let mut agent = args.agent().unwrap().unwrap();
            (agent.info().unwrap(), agent.status().unwrap(), agent.hooks().unwrap())
        });
        let (info, status, hooks) = answers.await.unwrap();
        assert_eq!(status.info, info);
        assert_eq!(hooks.len(), 1);
    }
}

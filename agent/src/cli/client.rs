//! The command line's way to a running agent, without asynchronous code.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use tokio::runtime::Runtime;

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

    /// Events from now on: what happens after this returns is seen.
    pub(crate) fn watch(mut self, filter: &Filter) -> Result<Watch, ClientError> {
        let events = self.runtime.block_on(self.client.watch(filter))?;
        Ok(Watch { runtime: self.runtime, events })
    }
}

/// Connects to the agent on `socket` and watches; see [`Agent::watch`].
///
/// # Errors
///
/// If the agent is unreachable or refuses.
pub(crate) fn watch(socket: &Path, filter: &Filter) -> anyhow::Result<Watch> {
    Ok(Agent::connect(socket)?.watch(filter)?)
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

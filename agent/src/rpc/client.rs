//! Talks to an agent on its Unix socket.

use std::io;
use std::path::{Path, PathBuf};

use analysis::counter_samples::CounterSamples;
use analysis::series::{DurationNs, Series};
use proto::v1;
use proto::v1::agent_client::AgentClient;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Streaming};

use super::convert::{WireError, counters_from_wire, required, series_from_wire};
use super::limits;
use super::seen::{AgentInfo, AgentStatus};
use crate::bursts::kept::Kept;
use crate::daemon::handle::Filter;
use crate::event::Event;
use crate::kernel::state::HookState;

/// Why an agent gives no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    /// Nobody listens on the socket, or it may not be used.
    #[error("agent unreachable on {}", .0.display())]
    Unreachable(PathBuf, #[source] io::Error),
    /// It took the connection and does not answer.
    #[error("agent unreachable on {}: no answer within {} s", .0.display(), limits::ANSWER_WAIT.as_secs())]
    Silent(PathBuf),
    /// The connection broke.
    #[error("the connection to the agent broke: {0}")]
    Broken(String),
    /// It says no.
    #[error("the agent refuses: {0}")]
    Refused(String),
    /// It answers what this version does not understand.
    #[error("the agent's answer is not understood; use the fabricscope command of the agent's version")]
    Answer(#[from] WireError),
}

impl ClientError {
    /// Whether there is no agent to ask, rather than one that says no.
    pub(crate) const fn is_unreachable(&self) -> bool {
        matches!(self, Self::Unreachable(..) | Self::Silent(_))
    }
}

/// An event of a stream.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// The event; absent if only losses are told.
    pub(crate) event: Option<Event>,
    /// Events that this client has lost since the one before, since it read too slowly.
    pub(crate) lost_before: u64,
}

/// A connection to an agent.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    socket: PathBuf,
    agent: AgentClient<Channel>,
}

/// Events of an agent as they happen.
#[derive(Debug)]
pub(crate) struct Events(Streaming<v1::WatchEventsResponse>);

impl Client {
    /// Connects to the agent on `socket`.
    ///
    /// # Errors
    ///
    /// If nobody listens there, or if the socket may not be used.
    pub(crate) async fn connect(socket: &Path) -> Result<Self, ClientError> {
        let unreachable = |error| ClientError::Unreachable(socket.to_owned(), error);
        // The transport hides why it cannot connect, so this is asked first.
        tokio::net::UnixStream::connect(socket).await.map_err(unreachable)?;
        let broken = |error: tonic::transport::Error| unreachable(io::Error::other(error));
        let path = socket.to_str().ok_or_else(|| unreachable(io::Error::other("the path is not UTF-8")))?;
        let endpoint = Endpoint::from_shared(format!("unix://{path}")).map_err(broken)?;
        let endpoint = endpoint.http2_max_header_list_size(limits::HEADER_BYTES);
        let channel = bounded(socket, endpoint.connect()).await?.map_err(broken)?;
        let agent = AgentClient::new(channel).max_decoding_message_size(limits::ANSWER_BYTES);
        Ok(Self { socket: socket.to_owned(), agent })
    }

    /// Which agent this is.
    ///
    /// # Errors
    ///
    /// As all calls: if the agent does not answer, refuses, or says what this version does not understand.
    pub(crate) async fn info(&mut self) -> Result<AgentInfo, ClientError> {
        let answer = bounded(&self.socket, self.agent.get_info(v1::GetInfoRequest {})).await?.map_err(refused)?;
        let info = answer.into_inner().info.ok_or(WireError::Missing("info"))?;
        Ok(info.try_into()?)
    }

    /// How it is doing. Errors as of [`Self::info`].
    pub(crate) async fn status(&mut self) -> Result<AgentStatus, ClientError> {
        let answer = bounded(&self.socket, self.agent.get_status(v1::GetStatusRequest {})).await?.map_err(refused)?;
        Ok(answer.into_inner().try_into()?)
    }

    /// Every hook with its state and accounts. Errors as of [`Self::info`].
    pub(crate) async fn hooks(&mut self) -> Result<Vec<HookState>, ClientError> {
        let answer = bounded(&self.socket, self.agent.list_hooks(v1::ListHooksRequest {})).await?.map_err(refused)?;
        let hooks = answer.into_inner().hooks.into_iter().map(TryInto::try_into);
        Ok(hooks.collect::<Result<_, WireError>>()?)
    }

    /// The last samples of one network device, or of all, with those of its counters if `counters`: parts of one source follow each
    /// other. Errors as of [`Self::info`].
    pub(crate) async fn samples(
        &mut self,
        netdev: Option<&str>,
        last: DurationNs,
        counters: bool,
    ) -> Result<Vec<Kept>, ClientError> {
        let request = v1::GetSamplesRequest { netdev: netdev.map(str::to_owned), last_ns: last.0, counters };
        let answer = bounded(&self.socket, self.agent.get_samples(request)).await?.map_err(refused)?;
        let (mut parts, mut found): (_, Vec<Kept>) = (answer.into_inner(), Vec::new());
        while let Some(part) = bounded(&self.socket, parts.message()).await?.map_err(refused)? {
            match part.counters {
                Some(counters) => add_counters(&mut found, counters_from_wire(counters)?),
                None => add_traffic(&mut found, series_from_wire(required("samples", part.samples)?)?),
            }
        }
        Ok(found)
    }

    /// Events from now on: what happens after this returns is seen. Errors as of [`Self::info`].
    pub(crate) async fn watch(&mut self, filter: &Filter) -> Result<Events, ClientError> {
        let request = v1::WatchEventsRequest::from(filter);
        let answer = bounded(&self.socket, self.agent.watch_events(request)).await?.map_err(refused)?;
        Ok(Events(answer.into_inner()))
    }
}

impl Events {
    /// The next event; `None` when the agent has ended.
    ///
    /// # Errors
    ///
    /// If the connection breaks, or if an event is not understood.
    pub(crate) async fn next(&mut self) -> Result<Option<Seen>, ClientError> {
        let Some(wire) = self.0.message().await.map_err(refused)? else { return Ok(None) };
        let event = wire.event.map(TryInto::try_into).transpose()?;
        Ok(Some(Seen { event, lost_before: wire.lost_before }))
    }
}

/// Adds a part to what came before it.
fn add_traffic(found: &mut Vec<Kept>, part: Series) {
    match found.last_mut() {
        Some(Kept::Traffic(series)) if series.netdev == part.netdev => series.samples.extend(part.samples),
        _ => found.push(Kept::Traffic(part)),
    }
}

/// The same of counters.
fn add_counters(found: &mut Vec<Kept>, part: CounterSamples) {
    match found.last_mut() {
        Some(Kept::Counters(samples)) if samples.same_source(&part) => {
            for (at, when) in part.when.iter().enumerate() {
                samples.push(*when, part.columns.iter().map(|column| column.growth(at)));
            }
        }
        _ => found.push(Kept::Counters(part)),
    }
}

async fn bounded<T>(socket: &Path, call: impl Future<Output = T>) -> Result<T, ClientError> {
    let answer = tokio::time::timeout(limits::ANSWER_WAIT, call).await;
    answer.map_err(|_| ClientError::Silent(socket.to_owned()))
}

fn refused(status: tonic::Status) -> ClientError {
    let text = status.message().to_owned();
    match status.code() {
        // What the transport itself reports.
        Code::Unknown | Code::Cancelled | Code::Internal => ClientError::Broken(text),
        Code::Unimplemented => ClientError::Refused("it does not know this call; its version is older".to_owned()),
        _ => ClientError::Refused(text),
    }
}

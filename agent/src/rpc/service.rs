//! The methods of the service `Agent`, and how the domain's refusals look on the wire.

use std::pin::Pin;

use proto::v1;
use tokio::sync::watch;
use tokio_stream::wrappers::{ReceiverStream, WatchStream};
use tokio_stream::{Stream, StreamExt as _};
use tonic::{Request, Response, Status};

use analysis::series::DurationNs;

use super::convert::{
    WireError, counters_to_wire, event_to_wire, hook_to_wire, info_to_wire, series_to_wire, status_to_wire,
};
use super::limits;
use crate::bursts::kept::Kept;
use crate::daemon::handle::{Handle, Refused};

/// The service. Cheap to clone, as the handle is.
#[derive(Clone, Debug)]
pub(super) struct Service {
    handle: Handle,
    stopping: watch::Receiver<()>,
}

impl Service {
    /// The service; `stopping` changes when the open streams are to end.
    pub(super) fn new(handle: Handle, stopping: watch::Receiver<()>) -> Self {
        Self { handle, stopping }
    }
}

/// What can be wrong with a call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum CallError {
    /// With what the client sent.
    #[error(transparent)]
    Request(#[from] WireError),
    /// With the agent at this moment.
    #[error(transparent)]
    Refused(#[from] Refused),
}

/// The one place where domain errors become gRPC's.
impl From<CallError> for Status {
    fn from(error: CallError) -> Self {
        let text = error.to_string();
        match error {
            CallError::Request(_) => Self::invalid_argument(text),
            CallError::Refused(Refused::TooManyWatchers) => Self::resource_exhausted(text),
            CallError::Refused(Refused::NoSamples(_)) => Self::not_found(text),
            CallError::Refused(Refused::NotKept) => Self::unavailable(text),
            CallError::Refused(Refused::Busy | Refused::Stopping) => Self::unavailable(text),
        }
    }
}

/// Samples as the parts that are sent of them.
fn parts(kept: Kept) -> Box<dyn Iterator<Item = v1::GetSamplesResponse> + Send> {
    let response = v1::GetSamplesResponse::default();
    match kept {
        Kept::Traffic(series) => Box::new(
            series_to_wire(series)
                .map(move |samples| v1::GetSamplesResponse { samples: Some(samples), ..response.clone() }),
        ),
        Kept::Counters(samples) => Box::new(
            counters_to_wire(samples)
                .map(move |part| v1::GetSamplesResponse { counters: Some(part), ..response.clone() }),
        ),
    }
}

#[tonic::async_trait]
impl v1::agent_server::Agent for Service {
    async fn get_info(&self, _: Request<v1::GetInfoRequest>) -> Result<Response<v1::GetInfoResponse>, Status> {
        let info = self.handle.info().await.map_err(CallError::from)?;
        Ok(Response::new(v1::GetInfoResponse { info: Some(info_to_wire(&info)) }))
    }

    async fn list_hooks(&self, _: Request<v1::ListHooksRequest>) -> Result<Response<v1::ListHooksResponse>, Status> {
        let hooks = self.handle.hooks().await.map_err(CallError::from)?;
        Ok(Response::new(v1::ListHooksResponse { hooks: hooks.iter().filter_map(hook_to_wire).collect() }))
    }

    type WatchEventsStream = Pin<Box<dyn Stream<Item = Result<v1::WatchEventsResponse, Status>> + Send>>;

    async fn watch_events(
        &self,
        request: Request<v1::WatchEventsRequest>,
    ) -> Result<Response<Self::WatchEventsStream>, Status> {
        let filter = request.into_inner().try_into().map_err(CallError::from)?;
        let info = self.handle.info().await.map_err(CallError::from)?;
        let watched = self.handle.watch(filter).await.map_err(CallError::from)?;
        let responses = ReceiverStream::new(watched).map(move |watched| {
            let event = Some(event_to_wire(&watched.event, &info));
            Some(Ok(v1::WatchEventsResponse { event, lost_before: watched.lost_before }))
        });
        // It ends with the events or when the server stops, whichever comes first: each of them ends with `None`.
        let stopping = WatchStream::from_changes(self.stopping.clone()).map(|()| None);
        let until = responses.chain(tokio_stream::once(None)).merge(stopping).map_while(|response| response);
        Ok(Response::new(Box::pin(until)))
    }

    type GetSamplesStream = Pin<Box<dyn Stream<Item = Result<v1::GetSamplesResponse, Status>> + Send>>;

    async fn get_samples(
        &self,
        request: Request<v1::GetSamplesRequest>,
    ) -> Result<Response<Self::GetSamplesStream>, Status> {
        let request = request.into_inner();
        if request.netdev.as_ref().is_some_and(|name| name.len() > limits::NETDEV) {
            return Err(CallError::from(WireError::TooLong("netdev", limits::NETDEV)).into());
        }
        let last = DurationNs(request.last_ns);
        let found = self.handle.samples(request.netdev, last, request.counters).await.map_err(CallError::from)?;
        let responses = found.into_iter().flat_map(|kept| parts(kept).map(Ok));
        Ok(Response::new(Box::pin(tokio_stream::iter(responses))))
    }

    async fn get_status(&self, _: Request<v1::GetStatusRequest>) -> Result<Response<v1::GetStatusResponse>, Status> {
        let status = self.handle.status().await.map_err(CallError::from)?;
        Ok(Response::new(status_to_wire(&status)))
    }
}

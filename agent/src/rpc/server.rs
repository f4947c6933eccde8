//! Serves the agent's interface on its socket, with health and reflection, to a bounded number of clients.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use proto::v1;
use proto::v1::agent_server::AgentServer;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::Connected;

use super::limits;
use super::service::Service;
use super::socket::Socket;
use crate::daemon::handle::Handle;

/// How long to wait after a connection could not be accepted: it fails again at once where file descriptors are short.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Why serving ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServeError {
    /// The socket cannot be used.
    #[error("cannot use the agent's socket")]
    Socket(#[from] io::Error),
    /// The transport failed.
    #[error("serving gRPC failed")]
    Transport(#[from] tonic::transport::Error),
    /// The descriptors for reflection cannot be read.
    #[error("the service cannot be described")]
    Reflection(#[from] tonic_reflection::server::Error),
}

/// Serves until `stop`; open streams of events then end, and other calls have a moment to do so. The socket's file goes
/// at the end; connections that are still open end with the runtime.
///
/// # Errors
///
/// If the socket fails altogether; a client that fails ends only its own connection.
pub(crate) async fn serve(
    socket: Socket,
    handle: Handle,
    stop: impl Future<Output = ()> + Send,
) -> Result<(), ServeError> {
    let (listener, _file) = socket.into_parts()?;
    let (health, health_service) = tonic_health::server::health_reporter();
    health.set_serving::<AgentServer<Service>>().await;
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(v1::FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1()?;
    let (streams, stop_streams) = watch::channel(());
    let agent = AgentServer::new(Service::new(handle, stop_streams)).max_decoding_message_size(limits::REQUEST_BYTES);
    let (told, stopping) = oneshot::channel();
    let serving = tonic::transport::Server::builder()
        .max_concurrent_streams(limits::STREAMS_PER_CONNECTION)
        .http2_max_header_list_size(limits::HEADER_BYTES)
        .add_service(agent)
        .add_service(health_service)
        .add_service(reflection)
        .serve_with_incoming_shutdown(connections(listener), async move {
            stop.await;
            health.set_not_serving::<AgentServer<Service>>().await;
            streams.send_replace(());
            // Nobody waits any more if serving has ended by itself.
            let _ = told.send(());
        });
    let patience = async {
        // The sender goes away only with `serving`.
        let _ = stopping.await;
        tokio::time::sleep(limits::STOP_WAIT).await;
    };
    tokio::select! {
        ended = serving => Ok(ended?),
        () = patience => Ok(()),
    }
}

/// Accepts connections, no more at a time than allowed. Ends when the stream is dropped.
fn connections(listener: UnixListener) -> ReceiverStream<io::Result<Connection>> {
    let (accepted, connections) = mpsc::channel(1);
    let permits = Arc::new(Semaphore::new(limits::CONNECTIONS));
    tokio::spawn(async move {
        while let Ok(slot) = accepted.reserve().await {
            let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { break };
            tokio::select! {
                connection = listener.accept() => match connection {
                    Ok((stream, _)) => slot.send(Ok(Connection { stream, _permit: permit })),
                    Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
                },
                () = accepted.closed() => break,
            }
        }
    });
    ReceiverStream::new(connections)
}

/// A client's connection; counts against the limit as long as it is there.
#[derive(Debug)]
struct Connection {
    stream: UnixStream,
    _permit: OwnedSemaphorePermit,
}

impl Connected for Connection {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

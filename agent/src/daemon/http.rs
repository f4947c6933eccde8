//! The HTTP server: `/metrics` and `/healthz`, bounded in every direction. It asks the loop and computes nothing.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context as _;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::timeout;

use super::Scrape;
use super::health::Health;
use crate::config::limits;
use crate::metrics;

const TEXT: &str = "text/plain; charset=utf-8";
const INDEX: &str = "fabricscope agent\n/metrics  Prometheus text\n/healthz  200 when all runs that should, else 503\n";

/// The server's way to the loop. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Asker {
    scrapes: mpsc::Sender<Scrape>,
    refused: Arc<AtomicU64>,
}

/// Why the loop gave no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Silence {
    Busy,
    Late,
    Stopping,
}

impl Asker {
    /// The server's end, the loop's end, and the count of requests refused because too many waited.
    pub(super) fn new() -> (Self, mpsc::Receiver<Scrape>, Arc<AtomicU64>) {
        let (scrapes, receiver) = mpsc::channel(limits::SCRAPES);
        let refused = Arc::new(AtomicU64::new(0));
        (Self { scrapes, refused: Arc::clone(&refused) }, receiver, refused)
    }

    async fn ask<T>(&self, scrape: impl FnOnce(oneshot::Sender<T>) -> Scrape) -> Result<T, Silence> {
        let (answer, receiver) = oneshot::channel();
        match self.scrapes.try_send(scrape(answer)) {
            Ok(()) => {}
            Err(mpsc::error::TrySendError::Closed(_)) => return Err(Silence::Stopping),
            Err(mpsc::error::TrySendError::Full(_)) => {
                self.refused.fetch_add(1, Ordering::Relaxed);
                return Err(Silence::Busy);
            }
        }
        match timeout(limits::LOOP_SILENCE, receiver).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_)) => Err(Silence::Stopping),
            Err(_) => Err(Silence::Late),
        }
    }
}

/// Takes the port. Must be called inside the runtime, before anything is attached.
///
/// # Errors
///
/// If the address cannot be had: in use, not of this host, or not permitted.
pub(crate) async fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| {
        format!("cannot serve metrics on {address}; end what uses it, or give another address in metrics.listen")
    })
}

/// Serves until the runtime ends.
pub(crate) async fn serve(listener: TcpListener, asker: Asker) {
    let places = Arc::new(Semaphore::new(limits::HTTP_CONNECTIONS));
    // The semaphore is never closed.
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => {
                let asker = asker.clone();
                tokio::spawn(async move {
                    connection(stream, asker).await;
                    drop(place);
                });
            }
            Err(error) => {
                // Mostly a lack of file descriptors: trying again at once would only burn time.
                tracing::warn!("cannot take an HTTP connection: {error}");
                tokio::time::sleep(limits::TICK).await;
            }
        }
    }
}

async fn connection(stream: TcpStream, asker: Asker) {
    let service = service_fn(move |request: Request<Incoming>| {
        let asker = asker.clone();
        async move { Ok::<_, Infallible>(respond(request.method(), request.uri().path(), &asker).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits::HTTP_HEADER_TIME)
        .max_buf_size(limits::HTTP_HEADER_BYTES)
        .max_headers(limits::HTTP_HEADERS)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    match timeout(limits::HTTP_CONNECTION_TIME, connection).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!("an HTTP connection broke: {error}"),
        Err(_) => tracing::debug!("an HTTP connection took too long"),
    }
}

async fn respond(method: &Method, path: &str, asker: &Asker) -> Response<Full<Bytes>> {
    if method != Method::GET && method != Method::HEAD {
        let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n");
        response.headers_mut().insert(ALLOW, hyper::header::HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    match path {
        "/metrics" => match asker.ask(Scrape::Metrics).await {
            Ok(Ok(page)) => with_type(StatusCode::OK, metrics::CONTENT_TYPE, page),
            Ok(Err(error)) => text(StatusCode::INTERNAL_SERVER_ERROR, error + "\n"),
            Err(silence) => silent(silence),
        },
        "/healthz" => match asker.ask(Scrape::Health).await {
            Ok(health) => healthz(&health),
            Err(silence) => silent(silence),
        },
        "/" => text(StatusCode::OK, INDEX),
        _ => text(StatusCode::NOT_FOUND, "there is only /metrics and /healthz\n"),
    }
}

fn healthz(health: &Health) -> Response<Full<Bytes>> {
    let status = if health.reasons.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let mut body = String::from(if health.reasons.is_empty() { "ok\n" } else { "degraded\n" });
    for line in health.reasons.iter().chain(&health.notes) {
        body.push_str(line);
        body.push('\n');
    }
    text(status, body)
}

fn silent(silence: Silence) -> Response<Full<Bytes>> {
    match silence {
        Silence::Busy => text(StatusCode::TOO_MANY_REQUESTS, "too many requests wait already\n"),
        Silence::Late => text(StatusCode::SERVICE_UNAVAILABLE, "the agent's loop does not answer\n"),
        Silence::Stopping => text(StatusCode::SERVICE_UNAVAILABLE, "the agent is stopping\n"),
    }
}

fn text(status: StatusCode, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    with_type(status, TEXT, body)
}

fn with_type(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static(content_type));
    response
}

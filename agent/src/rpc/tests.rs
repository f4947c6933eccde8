//! Server and client on a real socket, with the daemon's loop played by the test.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use analysis::counter_samples::{Column, CounterSamples};
use analysis::counter_series::When;
use analysis::series::{DurationNs, Sample, Series, Span, Traffic, UtcNs};
use proto::v1;
use proto::v1::agent_client::AgentClient;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tonic::Code;
use tonic::transport::{Channel, Endpoint};

use super::client::{Client, ClientError};
use super::convert::tests::{info, status};
use super::server::{ServeError, serve};
use super::service::CallError;
use super::socket::Socket;
use super::{convert, limits};
use crate::bursts::kept::Kept;
use crate::daemon::handle::{Command, Filter, Handle, Refused, Samples, Watch, Watched};
use crate::event::Event;
use crate::kernel::state::{HookState, State};
use crate::verbs::samples;

/// An agent that answers as the test says, on a socket in a directory of its own.
pub(crate) struct Agent {
    directory: tempfile::TempDir,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<Result<(), ServeError>>,
    watches: mpsc::Receiver<Watch>,
}

impl Agent {
    /// Serves from now on; needs a runtime.
    pub(crate) fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let socket = Socket::bind(&directory.path().join("agent.sock")).unwrap();
        let (handle, mut commands, _) = Handle::new();
        let (stop, stopped) = oneshot::channel::<()>();
        let (watch, watches) = mpsc::channel(8);
        tokio::spawn(async move {
            while let Some(command) = commands.recv().await {
                match command {
                    Command::GetInfo(answer) => drop(answer.send(info())),
                    Command::GetStatus(answer) => drop(answer.send(status())),
                    Command::ListHooks(answer) => drop(answer.send(hooks())),
                    Command::Samples(Samples { netdev, answer, .. }) => {
                        let found = match netdev.as_deref() {
                            Some("gone") => Err(Refused::NoSamples("gone".into())),
                            _ => Ok(many_samples()),
                        };
                        drop(answer.send(found));
                    }
                    Command::Watch(request) => watch.send(request).await.unwrap(),
                }
            }
        });
        let serving = tokio::spawn(serve(socket, handle, async move {
            // The test may also just drop it.
            let _ = stopped.await;
        }));
        Self { directory, stop, serving, watches }
    }

    /// Where it listens.
    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.path().join("agent.sock")
    }

    /// The next request to watch, answered.
    pub(crate) async fn accept(&mut self, answer: Result<(), Refused>) -> (Filter, mpsc::Sender<Watched>) {
        let Watch { filter, accepted, events } = self.watches.recv().await.unwrap();
        accepted.send(answer).unwrap();
        (filter, events)
    }
}

fn hooks() -> Vec<HookState> {
    let waiting = State::Waiting("mlx5_core is not loaded".to_owned());
    vec![HookState { number: 0, state: waiting, transitions: 1, run_count: 2, run_time_ns: 3, missed: 4 }]
}

async fn channel(socket: &Path) -> Channel {
    Endpoint::from_shared(format!("unix://{}", socket.display())).unwrap().connect().await.unwrap()
}

/// Everything below must come to an end.
async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), what).await.expect("an end within 20 s")
}

#[tokio::test]
async fn an_agent_tells_who_it_is_and_how_it_does() {
    let agent = Agent::start();
    let mut client = soon(Client::connect(&agent.socket())).await.unwrap();
    assert_eq!(soon(client.info()).await.unwrap().host.as_deref(), Some("node17"));
    assert_eq!(soon(client.status()).await.unwrap().losses[0].count, 5);
    let seen = soon(client.hooks()).await.unwrap();
    assert_eq!(format!("{seen:?}"), format!("{:?}", hooks()));
}

#[tokio::test]
async fn events_and_losses_reach_the_client_until_the_agent_ends() {
    let mut agent = Agent::start();
    let mut client = soon(Client::connect(&agent.socket())).await.unwrap();
    let wanted = Filter { verb: Some("reg_mr".to_owned()), errno: Some(12), ..Filter::default() };
    let (watching, (filter, events)) = soon(async { tokio::join!(client.watch(&wanted), agent.accept(Ok(()))) }).await;
    assert_eq!(filter, wanted);
    let mut seen = watching.unwrap();
    let mut sent: VecDeque<Event> = samples::all().into();
    let mut lost = 0;
    while let Some(event) = sent.pop_front() {
        events.send(Watched { event: Arc::new(event.clone()), lost_before: lost }).await.unwrap();
        let next = soon(seen.next()).await.unwrap().unwrap();
        assert_eq!(format!("{:?}", next.event.unwrap()), format!("{event:?}"));
        assert_eq!(next.lost_before, lost);
        lost += 3;
    }
    drop(events);
    assert!(soon(seen.next()).await.unwrap().is_none());
}

#[tokio::test]
async fn a_client_that_goes_away_ends_its_watch() {
    let mut agent = Agent::start();
    let mut client = soon(Client::connect(&agent.socket())).await.unwrap();
    let every = Filter::default();
    let (watching, (_, events)) = soon(async { tokio::join!(client.watch(&every), agent.accept(Ok(()))) }).await;
    drop((watching.unwrap(), client));
    soon(events.closed()).await;
}

#[tokio::test]
async fn one_watcher_too_many_is_told_so() {
    let mut agent = Agent::start();
    let mut client = soon(Client::connect(&agent.socket())).await.unwrap();
    let refused = agent.accept(Err(Refused::TooManyWatchers));
    let every = Filter::default();
    let (watching, _) = soon(async { tokio::join!(client.watch(&every), refused) }).await;
    let error = watching.unwrap_err();
    assert!(matches!(&error, ClientError::Refused(text) if text.contains("watch events already")), "{error}");
}

#[tokio::test]
async fn a_filter_that_cannot_be_is_the_client_s_mistake() {
    let agent = Agent::start();
    let mut client = AgentClient::new(channel(&agent.socket()).await);
    let request = v1::WatchEventsRequest { kinds: vec![9], ..v1::WatchEventsRequest::default() };
    let refused = soon(client.watch_events(request)).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(refused.message().contains("kinds"), "{refused}");
}

#[test]
fn every_refusal_has_a_code() {
    let wire = convert::WireError::Missing("kind");
    for (error, code) in [
        (CallError::from(wire), Code::InvalidArgument),
        (Refused::TooManyWatchers.into(), Code::ResourceExhausted),
        (Refused::Busy.into(), Code::Unavailable),
        (Refused::Stopping.into(), Code::Unavailable),
    ] {
        let text = error.to_string();
        let status = tonic::Status::from(error);
        assert_eq!((status.code(), status.message()), (code, text.as_str()));
    }
}

#[tokio::test]
async fn health_and_reflection_answer() {
    use tonic_health::pb::health_check_response::ServingStatus;
    use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};
    use tonic_reflection::pb::v1::ServerReflectionRequest;
    use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
    use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
    use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

    let agent = Agent::start();
    let channel = channel(&agent.socket()).await;
    let request = HealthCheckRequest { service: "fabricscope.v1.Agent".to_owned() };
    let health = soon(HealthClient::new(channel.clone()).check(request)).await.unwrap();
    assert_eq!(health.into_inner().status(), ServingStatus::Serving);

    let request = MessageRequest::ListServices(String::new());
    let request = ServerReflectionRequest { host: String::new(), message_request: Some(request) };
    let mut client = ServerReflectionClient::new(channel);
    let mut answers = soon(client.server_reflection_info(tokio_stream::once(request))).await.unwrap().into_inner();
    let answer = soon(answers.message()).await.unwrap().unwrap();
    let Some(MessageResponse::ListServicesResponse(services)) = answer.message_response else {
        panic!("{answer:?}");
    };
    let names: Vec<_> = services.service.iter().map(|service| service.name.as_str()).collect();
    for expected in ["fabricscope.v1.Agent", "grpc.health.v1.Health"] {
        assert!(names.contains(&expected), "{names:?}");
    }
}

#[tokio::test]
async fn clients_over_the_limit_wait_and_are_served_when_others_leave() {
    let agent = Agent::start();
    let mut clients = Vec::new();
    for _ in 0..limits::CONNECTIONS {
        let mut client = soon(Client::connect(&agent.socket())).await.unwrap();
        soon(client.info()).await.unwrap();
        clients.push(client);
    }
    let mut late = AgentClient::new(channel(&agent.socket()).await);
    let waiting = tokio::spawn(async move { late.get_info(v1::GetInfoRequest {}).await.map(|_| ()) });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    clients.truncate(limits::CONNECTIONS / 2);
    soon(waiting).await.unwrap().unwrap();
}

#[tokio::test]
async fn stopping_ends_open_streams_and_takes_the_socket_away() {
    let mut agent = Agent::start();
    let mut client = soon(Client::connect(&agent.socket())).await.unwrap();
    let every = Filter::default();
    let (watching, (_, _events)) = soon(async { tokio::join!(client.watch(&every), agent.accept(Ok(()))) }).await;
    let mut seen = watching.unwrap();
    let socket = agent.socket();
    agent.stop.send(()).unwrap();
    assert!(soon(seen.next()).await.unwrap().is_none());
    soon(agent.serving).await.unwrap().unwrap();
    assert!(!socket.exists());
    let error = soon(Client::connect(&socket)).await.unwrap_err();
    assert!(error.is_unreachable(), "{error}");
}

/// Two devices, of which one has more samples than a message.
fn many_samples() -> Vec<Kept> {
    let interval = DurationNs(1_000_000);
    let series = |netdev: &str, count: i64| {
        let sample = |at: i64| {
            let rx = Traffic { bytes: at.unsigned_abs(), ..Traffic::default() };
            Sample { start: UtcNs(at * 1_000_000), length: interval, rx, ..Sample::default() }
        };
        let span = Span { start: UtcNs(0), end: UtcNs(count * 1_000_000) };
        let samples = (0..count).map(sample).collect();
        Series { netdev: netdev.into(), interval, samples, covered: vec![span], lost: 1, ..Series::default() }
    };
    let traffic = [series("eth0", 40_000), series("eth1", 3)].map(Kept::Traffic);
    traffic.into_iter().chain([Kept::Counters(many_counters())]).collect()
}

/// Counters with more samples than a message.
fn many_counters() -> CounterSamples {
    let columns = vec![Column::new("rdma_cnp_sent_packets".into(), None)];
    let mut samples = CounterSamples { device: "mlx5_0".into(), port: Some(1), columns, ..CounterSamples::default() };
    for at in 0..100_000 {
        let when = When { start: UtcNs(at * 1_000_000), length: DurationNs(1_000_000) };
        samples.push(when, [(at % 9 > 0).then_some(at.unsigned_abs())]);
    }
    samples
}

#[tokio::test]
async fn samples_come_whole_however_many_they_are() {
    let agent = Agent::start();
    let mut client = Client::connect(&agent.socket()).await.unwrap();
    assert_eq!(client.samples(None, DurationNs(1), true).await.unwrap(), many_samples());
    for (netdev, says) in [("gone", "\"gone\""), ("a234567890123456", "netdev")] {
        let error = client.samples(Some(netdev), DurationNs(1), true).await.unwrap_err();
        assert!(matches!(&error, ClientError::Refused(text) if text.contains(says)), "{error}");
    }
}

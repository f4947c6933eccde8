//! The daemon: one loop owns the state; everything that reaches it is one closed enum.

#[cfg(test)]
pub(crate) mod fake;
pub(crate) mod findings;
pub(crate) mod handle;
pub(crate) mod health;
pub(crate) mod http;
mod losses;
pub(crate) mod run;
pub(crate) mod source;
mod state;
pub(crate) mod summary;
#[cfg(test)]
mod tests;
pub(crate) mod tracer;
mod watchers;

use tokio::sync::{mpsc, oneshot};

use crate::bursts::sessions::Update;
use handle::Command;
use health::Health;

/// Everything that can reach the loop.
#[derive(Debug)]
pub(crate) enum Input {
    /// A second has passed: modules, devices, folded lines and the summary are looked at.
    Tick,
    /// Events wait in the ring buffer.
    Ring,
    /// Hooks wait to be attached.
    Attach,
    /// Network devices were read.
    Bursts(Box<Update>),
    /// A client of the HTTP server asks.
    Scrape(Scrape),
    /// A client of the socket asks.
    Command(Command),
    /// A signal that ends the agent, by name.
    Signal(&'static str),
    /// The time to run is over.
    Deadline,
}

/// What the HTTP server asks of the loop.
#[derive(Debug)]
pub(crate) enum Scrape {
    /// The text of `/metrics`.
    Metrics(oneshot::Sender<Result<String, String>>),
    /// The state of health.
    Health(oneshot::Sender<Health>),
}

/// The loop's ends of its queues.
#[derive(Debug)]
pub(crate) struct Inputs {
    /// From the socket.
    pub(crate) commands: mpsc::Receiver<Command>,
    /// From the HTTP server.
    pub(crate) scrapes: mpsc::Receiver<Scrape>,
    /// From the burst sampler, if it is on.
    pub(crate) updates: Option<mpsc::Receiver<Update>>,
    /// Signals, by name.
    pub(crate) signals: mpsc::Receiver<&'static str>,
}

/// Whether the loop goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    /// It does.
    Continue,
    /// It ends, in order.
    Stop,
}

//! An agent as a client sees it: what it tells of itself, which may be of another version.

use std::time::{Duration, SystemTime};

use crate::event::Event;
use crate::host::rdma::RdmaDevice;

/// Which agent, on which host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AgentInfo {
    /// The agent's version.
    pub(crate) version: String,
    /// When it started, on the wall clock.
    pub(crate) started: SystemTime,
    /// The host's name.
    pub(crate) host: Option<String>,
    /// The kernel's release.
    pub(crate) kernel: Option<String>,
    /// Names this boot of the host.
    pub(crate) boot_id: Option<String>,
    /// Where `/metrics` is served, as `address:port`.
    pub(crate) metrics: Option<String>,
}

/// How it is doing.
#[derive(Clone, Debug)]
pub(crate) struct AgentStatus {
    /// Which agent.
    pub(crate) info: AgentInfo,
    /// How long it has run.
    pub(crate) uptime: Duration,
    /// Hooks that run.
    pub(crate) hooks_attached: u32,
    /// Hooks that are wanted.
    pub(crate) hooks_wanted: u32,
    /// What does not run as configured and why.
    pub(crate) degraded: Vec<String>,
    /// Hooks that do not run though nothing is wrong, by reason.
    pub(crate) idle: Vec<String>,
    /// What is worth knowing and no fault.
    pub(crate) notes: Vec<String>,
    /// Verbs calls that returned.
    pub(crate) calls: u64,
    /// Of these, failures.
    pub(crate) failures: u64,
    /// Of these, refused probes.
    pub(crate) probes: u64,
    /// What was lost.
    pub(crate) losses: Vec<AgentLoss>,
    /// The last failures, newest first.
    pub(crate) last_failures: Vec<Event>,
    /// RDMA devices and their ports; without GIDs and character devices, which are not told.
    pub(crate) devices: Vec<RdmaDevice>,
}

/// Things lost in one way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AgentLoss {
    /// The program family that lost them.
    pub(crate) program: String,
    /// Where on the way.
    pub(crate) stage: String,
    /// Why.
    pub(crate) reason: String,
    /// How many.
    pub(crate) count: u64,
}

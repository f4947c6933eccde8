//! How all findings stand: of ports and devices, from the reader of counters; of completion queues, from the kernel side.

use analysis::evidence::Evidence;
use analysis::port::State;
use analysis::series::UtcNs;
use analysis::verdict::Verdict;

use crate::counters::findings::Judged;
use crate::counters::findings::board::{Board, Change, Standing};
use crate::counters::findings::record::priority;
use crate::counters::service::Verdicts;

/// All findings.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    ports: Board,
    vectors: Board,
    /// Ports that are one too many to be judged.
    ports_left_out: usize,
    /// There was a reading: what is not among the findings is not looked at.
    judged: bool,
}

impl Findings {
    /// Takes what the detectors say of one reading, and tells what has changed.
    pub(crate) fn take(&mut self, verdicts: Verdicts) -> Vec<Change> {
        self.ports_left_out = verdicts.ports_left_out;
        self.judged = true;
        self.ports.take(verdicts.judged, verdicts.at)
    }

    /// Takes what is said of the completion queues that were made, and tells what has changed.
    pub(crate) fn take_vectors(&mut self, judged: Vec<Judged>, at: UtcNs) -> Vec<Change> {
        self.vectors.take(judged, at)
    }

    /// All that is looked at.
    pub(crate) fn standings(&self) -> impl Iterator<Item = &Standing> {
        self.ports.standings().chain(self.vectors.standings())
    }

    /// What fires.
    pub(crate) fn firing(&self) -> impl Iterator<Item = &Standing> {
        self.standings().filter(|standing| standing.state == State::Firing)
    }

    /// Whether there was a reading yet.
    pub(crate) const fn is_judged(&self) -> bool {
        self.judged
    }

    /// Ports that are one too many to be judged.
    pub(crate) const fn ports_left_out(&self) -> usize {
        self.ports_left_out
    }
}

/// A finding that fires, as it is told to clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Firing {
    /// The detector's name.
    pub(crate) finding: String,
    /// The RDMA device.
    pub(crate) device: Option<String>,
    /// Its port.
    pub(crate) port: Option<u32>,
    /// The network device.
    pub(crate) netdev: Option<String>,
    /// The priority, of what is told by priority.
    pub(crate) priority: Option<u32>,
    /// The kind of objects, of what is told of those.
    pub(crate) object: Option<String>,
    /// The reading with which it began to fire.
    pub(crate) since: UtcNs,
    /// The evidence in words.
    pub(crate) evidence: Vec<String>,
}

impl From<&Standing> for Firing {
    fn from(standing: &Standing) -> Self {
        let judged = &standing.judged;
        let [device, netdev] = judged.about.names().map(|name| name.map(str::to_owned));
        let found: &[Evidence] = match &judged.finding.verdict {
            Verdict::Firing(found) => found,
            _ => &[],
        };
        Self {
            finding: judged.finding.detector.to_owned(),
            device,
            port: judged.about.place.port,
            netdev,
            priority: priority(judged.finding.lane).map(u32::from),
            object: judged.about.object.clone(),
            since: standing.since,
            evidence: found.iter().filter(|evidence| evidence.is_ongoing()).map(ToString::to_string).collect(),
        }
    }
}

impl Firing {
    /// `mlx5_0 port 1 (eth0): storm: pause storm from this host …`, one line for each piece of evidence.
    pub(crate) fn lines(&self) -> Vec<String> {
        let port = self.port.map(|port| format!(" port {port}")).unwrap_or_default();
        let about = match (&self.device, &self.netdev) {
            (Some(device), Some(netdev)) => format!("{device}{port} ({netdev})"),
            (Some(device), None) => format!("{device}{port}"),
            (None, netdev) => netdev.clone().unwrap_or_default(),
        };
        let object = self.object.as_ref().map(|object| format!(" {object}")).unwrap_or_default();
        let line = |evidence: &String| format!("{about}{object}: {}: {evidence}", self.finding);
        self.evidence.iter().map(line).collect()
    }
}

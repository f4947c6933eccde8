//! What one full reading of all counters has found.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::catalogue::{Row, Source};
use super::netlink::devlink::Reporter;
use super::netlink::rdma::Bound;
use super::relations::Relations;
use super::value::Failure;
use crate::health::resources::Used;

/// Whether a subject is an RDMA device or a network device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    /// An RDMA device, such as `mlx5_0`.
    Rdma,
    /// A network device, such as `eth0`.
    Netdev,
}

/// What a counter belongs to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
    /// What it is.
    pub(crate) kind: Kind,
    /// The device's name.
    pub(crate) device: String,
    /// The port of an RDMA device; absent for what counts for the whole device.
    pub(crate) port: Option<u32>,
}

/// A device that is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    /// What it is.
    pub(crate) kind: Kind,
    /// Its name.
    pub(crate) name: String,
    /// Its module or bus driver.
    pub(crate) driver: Option<String>,
    /// The RDMA device and port a network device belongs to.
    pub(crate) port_of: Option<(String, u32)>,
    /// Priorities for which flow control is on; absent where nobody can say.
    pub(crate) priorities: Option<u8>,
    /// Why it is left alone at the moment, and for how much longer.
    pub(crate) quarantined: Option<(String, Duration)>,
    /// How often a counter could not be read, by reason, since the start.
    pub(crate) failures: Vec<(&'static str, u64)>,
    /// What it belongs to, and when its link changed.
    pub(crate) relations: Relations,
}

/// One counter by meaning.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    /// Whose.
    pub(crate) place: Arc<Place>,
    /// What it means.
    pub(crate) row: &'static Row,
    /// Of those that count by priority.
    pub(crate) priority: Option<u8>,
    /// In the row's unit; seconds are kept as microseconds.
    pub(crate) value: u64,
    /// It stands at the end of its range and counts no more.
    pub(crate) saturated: bool,
    /// The same as long as the count has not begun again.
    pub(crate) epoch: u64,
    /// Where it was read.
    pub(crate) source: Source,
}

impl Series {
    /// The value in the row's unit.
    pub(crate) fn number(&self) -> f64 {
        self.row.in_unit(self.value)
    }
}

/// One counter as the driver shows it.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    /// Whose.
    pub(crate) place: Arc<Place>,
    /// Where it was read.
    pub(crate) source: Source,
    /// The driver's name for it.
    pub(crate) name: String,
    /// What stands there.
    pub(crate) outcome: Result<u64, Failure>,
    /// What it means, if that is known.
    pub(crate) row: Option<&'static Row>,
}

/// A full reading.
#[derive(Clone, Debug)]
pub(crate) struct Readout {
    /// When it was over.
    pub(crate) at: Instant,
    /// Every device, read or left alone.
    pub(crate) subjects: Vec<Subject>,
    /// By device, then in the catalogue's order.
    pub(crate) series: Vec<Series>,
    /// Everything as the drivers show it; empty unless asked for.
    pub(crate) shown: Vec<Shown>,
    /// Objects that RDMA devices hold.
    pub(crate) resources: Vec<Used>,
    /// How long each source took.
    pub(crate) durations: Vec<(Source, Duration)>,
    /// Counters whose files or names were read.
    pub(crate) counters: usize,
    /// What is told besides.
    pub(crate) further: Further,
}

/// What stands beside the counters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Further {
    /// Health reporters of the devices that are read.
    pub(crate) reporters: Vec<Reporter>,
    /// Counters bound to queue pairs, by RDMA device; only where they were asked for.
    pub(crate) bound: Vec<(String, Bound)>,
    /// Network namespaces that may hide RDMA devices and could not be entered.
    pub(crate) closed_namespaces: usize,
}

impl Readout {
    /// The subject of a place.
    pub(crate) fn subject(&self, place: &Place) -> Option<&Subject> {
        self.subjects.iter().find(|subject| subject.kind == place.kind && subject.name == place.device)
    }
}

//! One row of the catalogue: a meaning, whatever the drivers call it.

use super::name::Name;

/// What a counter is about; the command line groups by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Group {
    /// Bytes and packets.
    Traffic,
    /// Priority and link pause.
    Pause,
    /// ECN, CNP, rate control.
    Congestion,
    /// Lost, late and repeated packets of connections.
    Transport,
    /// What the host and its adapter could not take.
    Host,
    /// The cable, the optics and the link.
    Link,
    /// Requests and their errors.
    Requests,
}

impl Group {
    /// A heading.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Traffic => "traffic",
            Self::Pause => "pause",
            Self::Congestion => "congestion",
            Self::Transport => "transport",
            Self::Host => "host and adapter",
            Self::Link => "link",
            Self::Requests => "requests",
        }
    }
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Bytes.
    Bytes,
    /// Packets, or frames.
    Packets,
    /// Pause frames.
    Frames,
    /// Seconds.
    Seconds,
    /// Bits.
    Bits,
    /// Things that happened.
    Events,
    /// Percent of a time: goes up and down.
    Percent,
    /// The driver's source does not say.
    Raw,
}

impl Unit {
    /// The word at the end of a row's name.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Packets => "packets",
            Self::Frames => "frames",
            Self::Seconds => "seconds",
            Self::Bits => "bits",
            Self::Events => "events",
            Self::Percent => "percent",
            Self::Raw => "raw",
        }
    }
}

/// Seen from this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// From the network.
    Rx,
    /// To the network.
    Tx,
    /// Neither.
    None,
}

/// One row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// Its own name: the metric is this between `fabricscope_` and `_total`.
    pub(crate) name: &'static str,
    /// What it is about.
    pub(crate) group: Group,
    /// What is counted.
    pub(crate) unit: Unit,
    /// Which way.
    pub(crate) direction: Direction,
    /// What it says, one sentence.
    pub(crate) meaning: &'static str,
    /// It is a metric.
    pub(crate) metric: bool,
    /// Why it grows, where that is a sign of trouble; empty where it is none.
    pub(crate) raised: &'static str,
    /// What to look at next.
    pub(crate) next: &'static str,
    /// What the drivers call it.
    pub(crate) names: &'static [Name],
}

impl Row {
    /// Whether it is the same row. By name: a constant's address may differ from one use to the next.
    pub(crate) fn is(&self, other: &Self) -> bool {
        std::ptr::eq(self, other) || self.name == other.name
    }

    /// A row that is no metric and no sign of trouble.
    pub(super) const fn new(
        name: &'static str,
        group: Group,
        unit: Unit,
        direction: Direction,
        meaning: &'static str,
    ) -> Self {
        Self { name, group, unit, direction, meaning, metric: false, raised: "", next: "", names: &[] }
    }

    /// It is served as a metric.
    pub(super) const fn metric(mut self) -> Self {
        self.metric = true;
        self
    }

    /// Its growth is a sign of trouble.
    pub(super) const fn trouble(mut self, raised: &'static str, next: &'static str) -> Self {
        self.raised = raised;
        self.next = next;
        self
    }

    /// What the drivers call it.
    pub(super) const fn names(mut self, names: &'static [Name]) -> Self {
        self.names = names;
        self
    }

    /// Whether its growth is a sign of trouble.
    pub(crate) fn is_trouble(&self) -> bool {
        !self.raised.is_empty()
    }

    /// Whether it counts by priority.
    pub(crate) fn is_by_priority(&self) -> bool {
        self.names.iter().any(|name| name.name.contains("{p}"))
    }

    /// A count in the row's unit; seconds are counted in microseconds.
    #[expect(clippy::cast_precision_loss, reason = "for showing; whole numbers are passed on as such")]
    pub(crate) fn in_unit(&self, count: u64) -> f64 {
        if self.unit == Unit::Seconds { count as f64 * 1e-6 } else { count as f64 }
    }

    /// What is said of the metric; of pause also what it means for whom.
    pub(crate) fn help(&self) -> String {
        if self.group == Group::Pause && self.is_trouble() {
            format!("{} {}", self.meaning, self.raised)
        } else {
            self.meaning.to_owned()
        }
    }

    /// The metric's full name.
    pub(crate) fn metric_name(&self) -> String {
        match self.pause_metric() {
            Some((name, _)) => name.to_owned(),
            None => format!("fabricscope_{}_total", self.name),
        }
    }

    /// Pause of both directions is one metric with a label for the direction.
    pub(crate) fn pause_metric(&self) -> Option<(&'static str, &'static str)> {
        let direction = match self.direction {
            Direction::Rx => "rx",
            Direction::Tx => "tx",
            Direction::None => return None,
        };
        let metric = match self.name {
            "pfc_received_pause_frames" | "pfc_sent_pause_frames" => "fabricscope_pfc_pause_frames_total",
            "pfc_received_pause_seconds" | "pfc_sent_pause_seconds" => "fabricscope_pfc_pause_seconds_total",
            _ => return None,
        };
        Some((metric, direction))
    }
}

//! What the recorder keeps: samples of traffic, and samples of counters.

use analysis::counter_samples::CounterSamples;
use analysis::series::{Sample, Series, Span, UtcNs};

/// How the names of files begin that hold samples of traffic, and of counters.
pub(crate) const TRAFFIC: &str = "bursts";
/// Of counters.
pub(crate) const COUNTERS: &str = "counters";

/// Samples of one source.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kept {
    /// Of a network device's traffic.
    Traffic(Series),
    /// Of counters that are read fast.
    Counters(CounterSamples),
}

impl From<Series> for Kept {
    fn from(series: Series) -> Self {
        Self::Traffic(series)
    }
}

impl From<CounterSamples> for Kept {
    fn from(samples: CounterSamples) -> Self {
        Self::Counters(samples)
    }
}

impl Kept {
    /// Names what it is of, in memory and in the names of files.
    pub(crate) fn stem(&self) -> String {
        match self {
            Self::Traffic(series) => format!("{TRAFFIC}-{}", series.netdev),
            Self::Counters(samples) => format!("{COUNTERS}-{}-{}", samples.source, samples.name()),
        }
    }

    /// How many samples it holds.
    pub(crate) fn samples(&self) -> usize {
        match self {
            Self::Traffic(series) => series.samples.len(),
            Self::Counters(samples) => samples.when.len(),
        }
    }

    /// The same in samples of traffic that would take as much memory: what bounds count in.
    pub(crate) fn weight(&self) -> usize {
        match self {
            Self::Traffic(series) => series.samples.len(),
            Self::Counters(samples) => samples.when.len().max(samples.bytes() / size_of::<Sample>()),
        }
    }

    /// Bytes of memory that it takes.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Traffic(series) => {
                series.samples.capacity() * size_of::<Sample>() + series.covered.len() * size_of::<Span>()
            }
            Self::Counters(samples) => samples.bytes(),
        }
    }

    /// From its first time to its last; `None` if there is none.
    pub(crate) fn span(&self) -> Option<Span> {
        let (start, end) = match self {
            Self::Traffic(series) => (series.start(), series.end()),
            Self::Counters(samples) => (samples.start(), samples.end()),
        };
        Some(Span { start: start?, end: end? })
    }

    /// When it begins.
    pub(crate) fn start(&self) -> Option<UtcNs> {
        self.span().map(|span| span.start)
    }

    /// When it ends.
    pub(crate) fn end(&self) -> Option<UtcNs> {
        self.span().map(|span| span.end)
    }

    /// Whether the other follows on it.
    pub(crate) fn continues_in(&self, next: &Self) -> bool {
        match (self, next) {
            (Self::Traffic(series), Self::Traffic(next)) => series.continues_in(next),
            (Self::Counters(samples), Self::Counters(next)) => samples.continues_in(next),
            _ => false,
        }
    }

    /// Adds a piece that follows; `false`, and nothing is changed, if it does not.
    pub(crate) fn continue_with(&mut self, next: &Self) -> bool {
        match (self, next) {
            (Self::Traffic(series), Self::Traffic(next)) => series.continue_with(next),
            (Self::Counters(samples), Self::Counters(next)) => samples.continue_with(next),
            _ => false,
        }
    }

    /// Its source and its time, without samples.
    pub(crate) fn tail(&self, span: Span) -> Self {
        match self {
            Self::Traffic(series) => Self::Traffic(Series {
                host: series.host.clone(),
                boot_id: series.boot_id.clone(),
                netdev: series.netdev.clone(),
                rack: series.rack.clone(),
                samples: Vec::new(),
                covered: vec![span],
                ..*series
            }),
            Self::Counters(samples) => Self::Counters(CounterSamples { covered: vec![span], ..samples.frame() }),
        }
    }

    /// Only what begins in this span.
    pub(crate) fn clipped(self, span: Span) -> Self {
        match self {
            Self::Traffic(series) => Self::Traffic(series.clipped(span)),
            Self::Counters(samples) => Self::Counters(samples.clipped(span)),
        }
    }

    /// Gives memory back that was reserved for more.
    pub(crate) fn shrink(&mut self) {
        if let Self::Traffic(series) = self {
            series.samples.shrink_to_fit();
        }
    }
}

//! What `fabricscope bursts show` shows: a series, its totals and its bursts.

use analysis::answer::Answer;
use analysis::burst::{Burst, Share, Unknown, bursts};
use analysis::counter_samples::CounterSamples;
use analysis::series::{BitsPerSecond, Direction, Series, Span};
use analysis::utilisation::{Total, total};

use super::pause::Pause;

/// The quantiles that are told of every distribution.
pub(super) const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0)];

/// A series and what it says.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) series: Series,
    pub(super) threshold: Share,
    rx: Way,
    tx: Way,
    /// Samples of the device's counters.
    pub(super) counters: Vec<CounterSamples>,
    /// Its pause, if it was sampled.
    pub(super) pause: Option<Pause>,
}

/// What one direction says.
#[derive(Debug)]
struct Way {
    total: Total,
    /// In order of time, or why there is no telling.
    found: Result<Vec<Burst>, Unknown>,
}

impl Way {
    fn of(series: &Series, direction: Direction, threshold: Share) -> Self {
        let found = match bursts(series, direction, threshold) {
            Answer::Found(found) => Ok(found),
            Answer::Quiet => Ok(Vec::new()),
            Answer::CannotTell(why) => Err(why),
        };
        Self { total: total(series, direction), found }
    }
}

impl Report {
    pub(super) fn of(series: Series, threshold: Share) -> Self {
        let [rx, tx] = Direction::ALL.map(|direction| Way::of(&series, direction, threshold));
        Self { series, threshold, rx, tx, counters: Vec::new(), pause: None }
    }

    /// The same with what the device's counters say.
    pub(super) fn with_counters(mut self, counters: Vec<CounterSamples>) -> Self {
        self.pause = Pause::of(&counters);
        self.counters = counters;
        self
    }

    /// Whether traffic was sampled; else there are counters alone.
    pub(super) fn has_traffic(&self) -> bool {
        !self.series.covered.is_empty()
    }

    /// The time that is shown: that of the traffic, or of the counters where there is none.
    pub(super) fn window(&self) -> Option<Span> {
        let counters = || {
            let windows = self.counters.iter().filter_map(CounterSamples::window);
            windows.reduce(|one, other| Span { start: one.start.min(other.start), end: one.end.max(other.end) })
        };
        self.series.window().or_else(counters)
    }

    const fn way(&self, direction: Direction) -> &Way {
        match direction {
            Direction::Rx => &self.rx,
            Direction::Tx => &self.tx,
        }
    }

    /// What one direction carried in all.
    pub(super) const fn total(&self, direction: Direction) -> &Total {
        &self.way(direction).total
    }

    /// Bursts of one direction in order of time, or why there is no telling.
    pub(super) fn found(&self, direction: Direction) -> Result<&[Burst], Unknown> {
        self.way(direction).found.as_deref().map_err(|why| *why)
    }

    /// Bursts of one direction in order of time; none where there is no telling.
    pub(super) fn bursts(&self, direction: Direction) -> &[Burst] {
        self.found(direction).unwrap_or_default()
    }

    /// Bursts of both directions in order of time, as far as they can be told.
    pub(super) fn all_bursts(&self) -> Vec<Burst> {
        let mut all: Vec<Burst> =
            Direction::ALL.iter().flat_map(|direction| self.bursts(*direction)).copied().collect();
        all.sort_by_key(|burst| burst.start);
        all
    }

    /// Why there is no telling of bursts in either direction; `None` if there is in one.
    pub(super) fn cannot_tell(&self) -> Option<String> {
        let (rx, tx) = (self.found(Direction::Rx).err()?, self.found(Direction::Tx).err()?);
        Some(if rx == tx { rx.to_string() } else { format!("{rx}, {tx}") })
    }

    /// The rate above which a sample belongs to a burst.
    pub(super) fn limit(&self) -> Option<BitsPerSecond> {
        self.series.line_rate.map(|rate| self.threshold.of(rate))
    }
}

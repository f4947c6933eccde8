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
    rx: Total,
    tx: Total,
    /// Of both directions in order of time, or why there is no telling.
    pub(super) found: Result<Vec<Burst>, Unknown>,
    /// Samples of the device's counters.
    pub(super) counters: Vec<CounterSamples>,
    /// Its pause, if it was sampled.
    pub(super) pause: Option<Pause>,
}

impl Report {
    pub(super) fn of(series: Series, threshold: Share) -> Self {
        let (rx, tx) = (total(&series, Direction::Rx), total(&series, Direction::Tx));
        let mut found = Ok(Vec::new());
        for direction in Direction::ALL {
            match (bursts(&series, direction, threshold), &mut found) {
                (Answer::Found(more), Ok(all)) => all.extend(more),
                (Answer::CannotTell(why), _) => found = Err(why),
                _ => {}
            }
        }
        if let Ok(all) = &mut found {
            all.sort_by_key(|burst| burst.start);
        }
        Self { series, threshold, rx, tx, found, counters: Vec::new(), pause: None }
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

    /// What one direction carried in all.
    pub(super) const fn total(&self, direction: Direction) -> &Total {
        match direction {
            Direction::Rx => &self.rx,
            Direction::Tx => &self.tx,
        }
    }

    /// Bursts of one direction in order of time; none where there is no telling.
    pub(super) fn bursts(&self, direction: Direction) -> impl Iterator<Item = &Burst> {
        self.found.iter().flatten().filter(move |burst| burst.direction == direction)
    }

    /// The rate above which a sample belongs to a burst.
    pub(super) fn limit(&self) -> Option<BitsPerSecond> {
        self.series.line_rate.map(|rate| self.threshold.of(rate))
    }
}

//! What a detector answers: quiet, firing, or that it cannot tell, and how a run of samples becomes one of them.

use std::fmt;
use std::ops::Range;

use crate::counter_series::{Break, Counter, CounterSeries, When};
use crate::delta::Gap;
use crate::series::{DurationNs, Span, UtcNs};

/// A detector's answer about the samples it was given.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict<E> {
    /// It did not happen, whatever the samples that are missing held.
    Quiet,
    /// It happened, with the evidence.
    Firing(E),
    /// It may have happened.
    CannotTell(Why),
}

impl<E> Verdict<E> {
    /// The same answer with other evidence.
    #[must_use]
    pub fn map<T>(self, with: impl FnOnce(E) -> T) -> Verdict<T> {
        match self {
            Self::Quiet => Verdict::Quiet,
            Self::Firing(evidence) => Verdict::Firing(with(evidence)),
            Self::CannotTell(why) => Verdict::CannotTell(why),
        }
    }

    /// The name used in output, files and metrics.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Quiet => "quiet",
            Self::Firing(_) => "firing",
            Self::CannotTell(_) => "cannot tell",
        }
    }
}

/// Why a detector cannot tell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Why {
    /// A counter that it needs has no value.
    Absent {
        /// Which.
        counter: Counter,
        /// Why not.
        gap: Gap,
    },
    /// There are fewer than it needs.
    TooFew {
        /// So many there are.
        have: usize,
        /// So many are needed.
        need: usize,
        /// Of what.
        of: &'static str,
    },
    /// There are no samples after this time, for a while.
    Hole(UtcNs),
    /// The clock was set back at this time.
    ClockBack(UtcNs),
    /// Ports that belong together were not read together.
    NotTogether(UtcNs),
    /// Pause frames tell a time only at a known line rate.
    NoLineRate,
    /// The pause took so many times the time that passed.
    MoreThanPassed(f64),
    /// Nothing but CNPs, of so many, tells of congestion, and firmware has been seen to count those wrong.
    OnlyCnps(u64),
    /// There is no limit to compare with.
    NoLimit,
}

impl Why {
    pub(crate) const fn absent(counter: Counter, gap: Gap) -> Self {
        Self::Absent { counter, gap }
    }

    /// One word, for labels: a closed set.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Absent { gap, .. } => gap.name(),
            Self::TooFew { .. } => "too_few",
            Self::Hole(_) => "hole",
            Self::ClockBack(_) => "clock_back",
            Self::NotTogether(_) => "not_together",
            Self::NoLineRate => "no_line_rate",
            Self::MoreThanPassed(_) => "implausible",
            Self::OnlyCnps(_) => "only_cnps",
            Self::NoLimit => "no_limit",
        }
    }

    /// There is nothing here yet that could be judged: no such counter, no limit, not enough readings so far.
    #[must_use]
    pub const fn is_not_looked_at(&self) -> bool {
        matches!(self, Self::Absent { gap: Gap::NotOffered | Gap::First, .. } | Self::TooFew { .. } | Self::NoLimit)
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent { counter, gap } => write!(f, "{counter}: {}", gap.text()),
            Self::TooFew { have, need, of } => write!(f, "{have} {of}, at least {need} needed"),
            Self::Hole(_) => f.write_str("a time without samples"),
            Self::ClockBack(_) => f.write_str("the clock was set back"),
            Self::NotTogether(_) => f.write_str("the ports were not read at the same times"),
            Self::NoLineRate => f.write_str("pause frames tell a time only at a known line rate"),
            Self::MoreThanPassed(times) => write!(f, "pause of {times:.2} times the time that passed"),
            Self::OnlyCnps(count) => write!(f, "{count} CNPs and no other sign of congestion"),
            Self::NoLimit => f.write_str("no limit is known"),
        }
    }
}

/// Two thresholds: what is above one begins an episode, what stays above the other does not end it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hysteresis {
    /// At this value or above.
    pub enter: f64,
    /// Below this value.
    pub leave: f64,
    /// So many samples in a row at or above `enter` begin it.
    pub enter_samples: usize,
    /// So many samples in a row below `leave` end it.
    pub leave_samples: usize,
}

impl Hysteresis {
    pub(crate) fn level(&self, value: f64) -> Level {
        if value >= self.enter {
            Level::High
        } else if value >= self.leave {
            Level::Middle
        } else {
            Level::Low
        }
    }
}

/// What one sample says to a detector.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Level {
    High,
    Middle,
    Low,
    Unknown(Why),
}

/// When something lasted.
#[derive(Clone, Debug, PartialEq)]
pub struct Episode {
    /// From its first sample to the last that kept it up.
    pub span: Span,
    /// The samples.
    pub samples: Range<usize>,
    /// Whether it had not ended with the last sample.
    pub ongoing: bool,
    /// Why it is not known of the last samples whether it went on, or began again.
    pub unseen: Option<Why>,
}

impl Episode {
    /// How long it lasted.
    #[must_use]
    pub const fn length(&self) -> DurationNs {
        self.span.end.since(self.span.start)
    }
}

impl fmt::Display for Episode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ongoing = if self.ongoing { " and going on" } else { "" };
        write!(f, "{:.3} s{ongoing}", self.length().seconds())
    }
}

/// Episodes in `series`, where `level` says what each sample is.
///
/// Samples that are missing count as unknown ones. Quiet is only what no value of the unknown ones could make fire.
pub(crate) fn episodes(
    series: &CounterSeries,
    limits: &Hysteresis,
    level: impl Fn(usize) -> Level,
) -> Verdict<Vec<Episode>> {
    let mut scan = Scan::new(*limits);
    for at in 0..series.len() {
        let start = series.when(at).map(|when| when.start).unwrap_or_default();
        match series.break_before(at) {
            Some(Break::Hole(samples)) => scan.unknown(Why::Hole(start), samples),
            Some(Break::ClockBack) => scan.unknown(Why::ClockBack(start), usize::MAX),
            None => {}
        }
        scan.take(at, level(at));
    }
    if let Some(open) = scan.open.take() {
        scan.found.push((open, true));
    }
    if !scan.found.is_empty() {
        let unseen = scan.doubt.filter(|_| scan.blind > 0 && scan.possible >= limits.enter_samples);
        let found = scan.found.into_iter().map(|(samples, ongoing)| {
            let unseen = unseen.filter(|_| !ongoing);
            episode(series, samples, ongoing, unseen)
        });
        return Verdict::Firing(found.collect());
    }
    match scan.maybe {
        Some(why) => Verdict::CannotTell(why),
        None if series.len() < limits.enter_samples => {
            Verdict::CannotTell(Why::TooFew { have: series.len(), need: limits.enter_samples, of: "samples" })
        }
        None => Verdict::Quiet,
    }
}

fn episode(series: &CounterSeries, samples: Range<usize>, ongoing: bool, unseen: Option<Why>) -> Episode {
    let start = series.when(samples.start).map(|when| when.start).unwrap_or_default();
    let end = samples.end.checked_sub(1).and_then(|last| series.when(last)).map_or(start, When::end);
    Episode { span: Span { start, end }, samples, ongoing, unseen }
}

struct Scan {
    limits: Hysteresis,
    found: Vec<(Range<usize>, bool)>,
    /// The episode that goes on, up to the last sample that kept it up.
    open: Option<Range<usize>>,
    high: usize,
    low: usize,
    /// Unknown samples in a row.
    blind: usize,
    /// Samples in a row that are high or may be, and why one of them is not known.
    possible: usize,
    doubt: Option<Why>,
    /// Why an episode may have been.
    maybe: Option<Why>,
}

impl Scan {
    const fn new(limits: Hysteresis) -> Self {
        let found = Vec::new();
        Self { limits, found, open: None, high: 0, low: 0, blind: 0, possible: 0, doubt: None, maybe: None }
    }

    fn take(&mut self, at: usize, level: Level) {
        let (high, low) = match level {
            Level::Unknown(why) => return self.unknown(why, 1),
            level => (level == Level::High, level == Level::Low),
        };
        self.blind = 0;
        self.high = if high { self.high + 1 } else { 0 };
        self.low = if low { self.low + 1 } else { 0 };
        self.possible = if high { self.possible.saturating_add(1) } else { 0 };
        if !high {
            self.doubt = None;
        }
        if let Some(open) = &mut self.open {
            if !low {
                open.end = at + 1;
            }
        } else if self.high >= self.limits.enter_samples {
            self.open = Some(at + 1 - self.high..at + 1);
        }
        self.suspect();
        if self.low >= self.limits.leave_samples {
            self.close();
        }
    }

    fn unknown(&mut self, why: Why, samples: usize) {
        self.high = 0;
        self.low = 0;
        self.blind = self.blind.saturating_add(samples);
        self.possible = self.possible.saturating_add(samples);
        self.doubt.get_or_insert(why);
        if self.blind >= self.limits.leave_samples.max(2) {
            self.close();
        }
        self.suspect();
    }

    fn suspect(&mut self) {
        if self.open.is_none() && self.possible >= self.limits.enter_samples {
            self.maybe = self.maybe.or(self.doubt);
        }
    }

    fn close(&mut self) {
        self.found.extend(self.open.take().map(|samples| (samples, false)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Hysteresis = Hysteresis { enter: 0.9, leave: 0.5, enter_samples: 2, leave_samples: 2 };

    /// One letter a sample: `h`igh, `m`iddle, `l`ow, `?` unknown, `.` a sample that is missing, `<` the clock set back.
    fn verdict(samples: &str) -> Verdict<Vec<Episode>> {
        let (mut series, mut levels, mut start) = (CounterSeries::new(None, 99), Vec::new(), 0);
        for letter in samples.chars() {
            let level = match letter {
                'h' => LIMITS.level(0.9),
                'm' => LIMITS.level(0.5),
                'l' => LIMITS.level(0.4),
                '?' => Level::Unknown(Why::NoLineRate),
                '.' => {
                    start += 10;
                    continue;
                }
                _ => {
                    start -= 5;
                    continue;
                }
            };
            levels.push(level);
            series.push(When { start: UtcNs(start), length: DurationNs(10) }, []);
            start += 10;
        }
        episodes(&series, &LIMITS, |at| levels[at])
    }

    #[test]
    fn an_episode_is_entered_and_left_at_different_values() {
        let rows = [
            ("lhhl", vec![(1..3, true)]),
            ("lhhll", vec![(1..3, false)]),
            ("hhmmhm", vec![(0..6, true)]),
            ("hhlmll", vec![(0..4, false)]),
            ("hhllhh", vec![(0..2, false), (4..6, true)]),
            ("hh?hh", vec![(0..5, true)]),
            ("hh??mm", vec![(0..2, false)]),
            ("hh...ll", vec![(0..2, false)]),
            ("?.hh", vec![(1..3, true)]),
        ];
        for (samples, expected) in rows {
            let Verdict::Firing(found) = verdict(samples) else { panic!("{samples}: {:?}", verdict(samples)) };
            let found: Vec<_> = found.into_iter().map(|episode| (episode.samples, episode.ongoing)).collect();
            assert_eq!(found, expected, "{samples}");
        }
    }

    #[test]
    fn an_end_that_was_not_seen_is_told() {
        let rows =
            [("hh??", true), ("hhll?", false), ("hhll??", true), ("hh??l", false), ("hh?", false), ("hhll", false)];
        for (samples, expected) in rows {
            let Verdict::Firing(found) = verdict(samples) else { panic!("{samples}") };
            assert_eq!(found.last().unwrap().unseen.is_some(), expected, "{samples}");
        }
    }

    #[test]
    fn quiet_is_what_no_missing_sample_could_change() {
        for samples in ["ll", "lhl", "mmmm", "hlhlh", "l?l", "l.l", "lm?ml", "l?l?l.l", "hm"] {
            assert_eq!(verdict(samples), Verdict::Quiet, "{samples}");
        }
    }

    #[test]
    fn what_may_have_been_is_told_with_its_reason() {
        let unknown = Why::NoLineRate;
        let rows = [
            ("h?l", unknown),
            ("l?hl", unknown),
            ("l??l", unknown),
            ("h.h", Why::Hole(UtcNs(20))),
            ("l..l", Why::Hole(UtcNs(30))),
            ("l<l", Why::ClockBack(UtcNs(5))),
            ("", Why::TooFew { have: 0, need: 2, of: "samples" }),
            ("l", Why::TooFew { have: 1, need: 2, of: "samples" }),
        ];
        for (samples, expected) in rows {
            assert_eq!(verdict(samples), Verdict::CannotTell(expected), "{samples}");
        }
    }
}

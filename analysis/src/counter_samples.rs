//! Samples of the counters of one place as they are kept: many in a second, most of them of nothing.

use crate::counter_series::When;
use crate::series::{BitsPerSecond, DurationNs, Span, UtcNs};

/// Stands for growth that is not known; no counter grows by as much.
const UNKNOWN: u64 = u64::MAX;

/// One counter over time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Column {
    /// Its name by meaning, such as `pfc_sent_pause_seconds`.
    pub counter: String,
    /// Of those that count by priority.
    pub priority: Option<u8>,
    /// By how much it grew in each sample; empty as long as it never did.
    growth: Vec<u64>,
}

impl Column {
    /// A counter that was not sampled yet.
    #[must_use]
    pub const fn new(counter: String, priority: Option<u8>) -> Self {
        Self { counter, priority, growth: Vec::new() }
    }

    /// Whether it moved in any sample, or may have.
    #[must_use]
    pub fn moved(&self) -> bool {
        self.growth.iter().any(|growth| *growth != 0)
    }

    /// What it grew by in the samples in which that is known.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.growth.iter().filter(|growth| **growth != UNKNOWN).fold(0, |sum, growth| sum.saturating_add(*growth))
    }

    /// By how much it grew in sample `at`; `None` where that is not known.
    #[must_use]
    pub fn growth(&self, at: usize) -> Option<u64> {
        Some(self.growth.get(at).copied().unwrap_or(0)).filter(|growth| *growth != UNKNOWN)
    }

    fn is(&self, other: &Self) -> bool {
        self.counter == other.counter && self.priority == other.priority
    }

    /// Takes the growth in the sample after the first `before`.
    fn push(&mut self, before: usize, growth: Option<u64>) {
        let growth = growth.map_or(UNKNOWN, |growth| growth.min(UNKNOWN - 1));
        if growth != 0 || !self.growth.is_empty() {
            self.growth.resize(before, 0);
            self.growth.push(growth);
        }
    }
}

/// Samples of one place from one source, in order of time.
///
/// Samples in which nothing moved may be left out: what tells them from time that was not measured is `covered`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CounterSamples {
    /// The host, as it names itself.
    pub host: String,
    /// The host's boot, by its id; empty if unknown.
    pub boot_id: String,
    /// The device that counts: an RDMA device, or a network device.
    pub device: String,
    /// Its port, of an RDMA device.
    pub port: Option<u32>,
    /// The network device: itself, or that of the port; empty if there is none.
    pub netdev: String,
    /// By which way the counters are read.
    pub source: String,
    /// The time from one reading to the next that was asked for: no sample is finer, those of a slow source are coarser.
    pub interval: DurationNs,
    /// The line rate; `None` if the device states none.
    pub line_rate: Option<BitsPerSecond>,
    /// How far the times may be off from UTC, by the kernel's own estimate; `None` if unknown.
    pub clock_error: Option<DurationNs>,
    /// The counters that are read, those that never moved too.
    pub columns: Vec<Column>,
    /// When each sample was taken.
    pub when: Vec<When>,
    /// When was measured: in order, none overlapping or touching another.
    pub covered: Vec<Span>,
}

impl CounterSamples {
    /// The device with its port, as files are named by.
    #[must_use]
    pub fn name(&self) -> String {
        self.port.map_or_else(|| self.device.clone(), |port| format!("{}.{port}", self.device))
    }

    /// Takes a sample: of each column the growth, unknown for those that are not told.
    pub fn push(&mut self, when: When, growth: impl IntoIterator<Item = Option<u64>>) {
        let before = self.when.len();
        let growth = growth.into_iter().chain(std::iter::repeat(None));
        self.columns.iter_mut().zip(growth).for_each(|(column, growth)| column.push(before, growth));
        self.when.push(when);
    }

    /// Adds a time that was measured and does not begin before the last one ended.
    pub fn cover(&mut self, span: Span) {
        match self.covered.last_mut() {
            Some(last) if last.end == span.start => last.end = span.end,
            _ => self.covered.push(span),
        }
    }

    /// About how many bytes it takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let cells: usize = self.columns.iter().map(|column| column.growth.capacity()).sum();
        self.when.capacity() * size_of::<When>()
            + cells * size_of::<u64>()
            + self.columns.len() * size_of::<Column>()
            + self.covered.len() * size_of::<Span>()
    }

    /// The same without samples and times.
    #[must_use]
    pub fn frame(&self) -> Self {
        let column = |column: &Column| Column::new(column.counter.clone(), column.priority);
        Self {
            columns: self.columns.iter().map(column).collect(),
            when: Vec::new(),
            covered: Vec::new(),
            host: self.host.clone(),
            boot_id: self.boot_id.clone(),
            device: self.device.clone(),
            netdev: self.netdev.clone(),
            source: self.source.clone(),
            ..*self
        }
    }

    /// Whether the other is of the same counters from the same source.
    #[must_use]
    pub fn same_source(&self, other: &Self) -> bool {
        let names = |samples: &Self| (samples.host.clone(), samples.boot_id.clone(), samples.device.clone());
        let of = |samples: &Self| (samples.port, samples.interval, samples.line_rate);
        names(self) == names(other)
            && of(self) == of(other)
            && (&self.netdev, &self.source) == (&other.netdev, &other.source)
            && self.columns.len() == other.columns.len()
            && self.columns.iter().zip(&other.columns).all(|(one, other)| one.is(other))
    }

    /// When the first begins of what it covers and holds; `None` if that is nothing.
    #[must_use]
    pub fn start(&self) -> Option<UtcNs> {
        let covered = self.covered.first().map(|span| span.start);
        covered.into_iter().chain(self.when.first().map(|when| when.start)).min()
    }

    /// When the last ends of what it covers and holds; `None` if that is nothing.
    #[must_use]
    pub fn end(&self) -> Option<UtcNs> {
        let covered = self.covered.last().map(|span| span.end);
        covered.into_iter().chain(self.when.last().map(|when| when.end())).max()
    }

    /// From the first measured time to the last; `None` if nothing was measured.
    #[must_use]
    pub fn window(&self) -> Option<Span> {
        Some(Span { start: self.covered.first()?.start, end: self.covered.last()?.end })
    }

    /// How much time was measured.
    #[must_use]
    pub fn measured(&self) -> DurationNs {
        DurationNs(self.covered.iter().fold(0, |sum: u64, span| sum.saturating_add(span.length().0)))
    }

    /// Whether [`continue_with`](Self::continue_with) takes the other.
    #[must_use]
    pub fn continues_in(&self, next: &Self) -> bool {
        let in_order = match (self.end(), next.start()) {
            (Some(end), Some(start)) => end <= start,
            _ => true,
        };
        in_order && self.same_source(next)
    }

    /// Adds a piece that follows on this one; `false`, and nothing is changed, if it does not follow. The clock's error
    /// is the larger one, unknown if either is.
    pub fn continue_with(&mut self, next: &Self) -> bool {
        if !self.continues_in(next) {
            return false;
        }
        let before = self.when.len();
        for (column, more) in self.columns.iter_mut().zip(&next.columns) {
            if !more.growth.is_empty() {
                column.growth.resize(before, 0);
                column.growth.extend_from_slice(&more.growth);
            }
        }
        self.when.extend_from_slice(&next.when);
        self.fill();
        next.covered.iter().for_each(|span| self.cover(*span));
        self.clock_error = self.clock_error.zip(next.clock_error).map(|(one, other)| one.max(other));
        true
    }

    /// Columns that ever moved have a value for each sample.
    fn fill(&mut self) {
        let count = self.when.len();
        for column in self.columns.iter_mut().filter(|column| !column.growth.is_empty()) {
            column.growth.resize(count, 0);
        }
    }

    /// Only the samples that begin in this span, and what is covered of it.
    #[must_use]
    pub fn clipped(&self, span: Span) -> Self {
        let mut part = self.frame();
        let inside = |when: &When| span.start <= when.start && when.start < span.end;
        for (at, when) in self.when.iter().enumerate().filter(|(_, when)| inside(when)) {
            part.push(*when, self.columns.iter().map(|column| column.growth(at)));
        }
        part.covered = self.covered.iter().filter_map(|covered| covered.overlap(span)).collect();
        part
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn time(ms: u64) -> UtcNs {
        UtcNs(0).after(DurationNs(ms * MS))
    }

    /// Two columns in samples of a millisecond; a sample without growth is left out.
    fn samples(from: u64, growth: &[[Option<u64>; 2]]) -> CounterSamples {
        let column = |name: &str| Column::new(name.to_owned(), Some(3));
        let mut samples = CounterSamples {
            device: "eth0".to_owned(),
            interval: DurationNs(MS),
            clock_error: Some(DurationNs(7)),
            columns: vec![column("a"), column("b")],
            ..CounterSamples::default()
        };
        for (at, growth) in (from..).zip(growth) {
            if *growth != [Some(0); 2] {
                samples.push(When { start: time(at), length: DurationNs(MS) }, *growth);
            }
            samples.cover(Span { start: time(at), end: time(at + 1) });
        }
        samples
    }

    const ALL: [[Option<u64>; 2]; 6] =
        [[Some(0), Some(0)], [Some(5), Some(0)], [Some(0); 2], [None, Some(0)], [Some(0), Some(2)], [Some(0); 2]];

    #[test]
    fn what_moved_is_kept_and_the_rest_is_covered() {
        let all = samples(0, &ALL);
        assert_eq!(all.when.iter().map(|when| when.start).collect::<Vec<_>>(), [time(1), time(3), time(4)]);
        assert_eq!(all.covered, [Span { start: time(0), end: time(6) }]);
        let [a, b] = &all.columns[..] else { panic!() };
        assert_eq!([0, 1, 2].map(|at| a.growth(at)), [Some(5), None, Some(0)]);
        assert_eq!([0, 1, 2].map(|at| b.growth(at)), [Some(0), Some(0), Some(2)]);
        assert_eq!((a.total(), b.total(), a.moved(), b.moved()), (5, 2, true, true));
    }

    #[test]
    fn pieces_are_the_whole_however_it_is_cut() {
        let whole = samples(0, &ALL);
        for cut in 1..ALL.len() {
            let (before, after) = ALL.split_at(cut);
            let mut joined = samples(0, before);
            assert!(joined.continue_with(&samples(cut as u64, after)), "{cut}");
            assert_eq!(joined.when, whole.when, "{cut}");
            assert_eq!(joined.covered, whole.covered, "{cut}");
            for (at, column) in whole.columns.iter().enumerate() {
                for sample in 0..whole.when.len() {
                    assert_eq!(joined.columns[at].growth(sample), column.growth(sample), "{cut} {at} {sample}");
                }
            }
        }
    }

    #[test]
    fn what_does_not_follow_is_refused() {
        let whole = samples(2, &ALL);
        assert!(!whole.clone().continue_with(&samples(7, &ALL)), "it begins too early");
        let changes: [fn(&mut CounterSamples); 5] = [
            |other| other.columns[0].priority = None,
            |other| other.columns.truncate(1),
            |other| other.source.push('x'),
            |other| other.interval = DurationNs(1),
            |other| other.port = Some(1),
        ];
        for change in changes {
            let mut other = samples(8, &ALL);
            assert!(whole.clone().continue_with(&other));
            change(&mut other);
            assert!(!whole.clone().continue_with(&other), "{other:?}");
        }
    }

    #[test]
    fn a_part_holds_what_begins_in_it() {
        let part = samples(0, &ALL).clipped(Span { start: time(2), end: time(4) });
        assert_eq!((part.when.len(), part.covered), (1, vec![Span { start: time(2), end: time(4) }]));
        assert_eq!(part.columns[0].growth(0), None);
    }
}

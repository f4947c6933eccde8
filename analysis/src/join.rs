//! Pieces of a series: put together, and cut.

use crate::series::{Sample, Series, Span, UtcNs};

impl Series {
    /// Whether the other is of the same source in the same state, so that samples of both can stand in one series.
    #[must_use]
    pub fn same_source(&self, other: &Self) -> bool {
        let of = |series: &Self| (series.interval, series.line_rate, series.fields);
        (&self.host, &self.boot_id, &self.netdev) == (&other.host, &other.boot_id, &other.netdev)
            && of(self) == of(other)
    }

    /// When the first begins of what it covers and holds; `None` if that is nothing.
    #[must_use]
    pub fn start(&self) -> Option<UtcNs> {
        let covered = self.covered.first().map(|span| span.start);
        let sample = self.samples.first().map(|sample| sample.start);
        covered.into_iter().chain(sample).min()
    }

    /// When the last ends of what it covers and holds; `None` if that is nothing.
    #[must_use]
    pub fn end(&self) -> Option<UtcNs> {
        let covered = self.covered.last().map(|span| span.end);
        let sample = self.samples.last().map(|sample| sample.end());
        covered.into_iter().chain(sample).max()
    }

    /// Whether [`continue_with`](Self::continue_with) takes the other.
    #[must_use]
    pub fn continues_in(&self, next: &Self) -> bool {
        let in_order = match (self.end(), next.start()) {
            (Some(end), Some(start)) => end <= start,
            _ => true,
        };
        self.same_source(next) && in_order
    }

    /// Adds a piece that follows on this one; `false`, and nothing is changed, if it does not follow: it is of another
    /// source, or begins before this one ends. The clock's error is the larger one, unknown if either is.
    pub fn continue_with(&mut self, next: &Self) -> bool {
        if !self.continues_in(next) {
            return false;
        }
        self.samples.extend_from_slice(&next.samples);
        for span in &next.covered {
            match self.covered.last_mut() {
                Some(last) if last.end == span.start => last.end = span.end,
                _ => self.covered.push(*span),
            }
        }
        self.clock_error = self.clock_error.zip(next.clock_error).map(|(one, other)| one.max(other));
        self.lost = self.lost.saturating_add(next.lost);
        true
    }

    /// One series out of pieces of one device, in any order. Of samples that overlap, those of the earlier piece stay;
    /// what one piece does not measure the whole does not, and the last line rate counts.
    #[must_use]
    pub fn join(mut pieces: Vec<Self>) -> Self {
        pieces.sort_by_key(Self::start);
        let mut pieces = pieces.into_iter();
        let Some(mut whole) = pieces.next() else { return Self::default() };
        for piece in pieces {
            whole.absorb(piece);
        }
        whole
    }

    /// Adds a piece that does not begin earlier than this one.
    fn absorb(&mut self, next: Self) {
        let end = self.samples.last().map_or(UtcNs(i64::MIN), Sample::end);
        self.samples.extend(next.samples.into_iter().filter(|sample| sample.start >= end));
        for span in next.covered {
            match self.covered.last_mut().filter(|last| span.start <= last.end) {
                Some(last) => last.end = last.end.max(span.end),
                None => self.covered.push(span),
            }
        }
        self.line_rate = next.line_rate.or(self.line_rate);
        self.clock_error = self.clock_error.zip(next.clock_error).map(|(one, other)| one.max(other));
        self.fields = self.fields.and(next.fields);
        self.lost = self.lost.saturating_add(next.lost);
    }

    /// Only the samples that begin in this span, and what is covered of it. How many lost buckets belong to it is not
    /// known: at most as many as intervals were not measured in it, of gaps that lie across its edges too.
    #[must_use]
    pub fn clipped(mut self, span: Span) -> Self {
        let within = self.window().and_then(|window| window.overlap(span));
        self.samples.retain(|sample| span.start <= sample.start && sample.start < span.end);
        self.covered = self.covered.iter().filter_map(|covered| covered.overlap(span)).collect();
        let missing = within.map_or(0, |within| within.length().0).saturating_sub(self.measured().0);
        self.lost = self.lost.min(missing.checked_div(self.interval.0).unwrap_or_default());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::DurationNs;
    use crate::testing::{INTERVAL, START, series};

    /// A series that begins so many samples later.
    fn later(pattern: &str, samples: usize) -> Series {
        let mut all = series(&format!("{}{pattern}", "?".repeat(samples)));
        all.lost -= samples as u64;
        all
    }

    #[test]
    fn pieces_of_a_series_are_the_series() {
        let whole = "12..3?4..#";
        for cut in 1..whole.len() {
            let (before, after) = whole.split_at(cut);
            let mut joined = series(before);
            assert!(joined.continue_with(&later(after, cut)), "{cut}");
            assert_eq!(joined, series(whole), "{cut}");
        }
    }

    #[test]
    fn what_does_not_follow_is_refused() {
        let first = series("123");
        let mut rows =
            vec![(later("1", 3), true), (later("1", 9), true), (later("1", 2), false), (first.clone(), false)];
        let changes: [fn(&mut Series); 5] = [
            |series| series.boot_id.push('x'),
            |series| series.interval = DurationNs(1),
            |series| series.fields.tx.bytes = false,
            |series| series.fields.rx.napi = true,
            |series| series.line_rate = None,
        ];
        for change in changes {
            let mut other = later("1", 3);
            change(&mut other);
            rows.push((other, false));
        }
        for (next, expected) in rows {
            let mut joined = first.clone();
            assert_eq!(joined.continue_with(&next), expected, "{next:?}");
            assert_eq!(joined == first, !expected);
        }
    }

    #[test]
    fn an_unknown_clock_stays_unknown() {
        let (mut first, mut next) = (series("1"), later("1", 1));
        next.clock_error = Some(DurationNs(1 << 40));
        assert!(first.continue_with(&next));
        assert_eq!(first.clock_error, next.clock_error);
        next = later("1", 2);
        next.clock_error = None;
        assert!(first.continue_with(&next));
        assert_eq!(first.clock_error, None);
    }

    #[test]
    fn a_part_holds_what_begins_in_it() {
        let time = |samples: u64| UtcNs(START).after(DurationNs(INTERVAL.0 * samples));
        let part = series("12?45").clipped(Span { start: time(1), end: time(4) });
        assert_eq!(part.samples.iter().map(|sample| sample.start).collect::<Vec<_>>(), [time(1), time(3)]);
        let spans = [Span { start: time(1), end: time(2) }, Span { start: time(3), end: time(4) }];
        assert_eq!(part.covered, spans);
        assert_eq!((part.start(), part.end()), (Some(time(1)), Some(time(4))));
    }

    #[test]
    fn pieces_of_one_source_are_one_series() {
        let all = series("12.4?6.8");
        let piece = |from: i64, to: i64| {
            let time = |ms: i64| UtcNs(START + ms * 1_000_000);
            let within = Span { start: time(from), end: time(to) };
            let mut piece = all.clone();
            piece.samples.retain(|sample| within.overlap(sample.span()).is_some());
            piece.covered = all.covered.iter().filter_map(|covered| covered.overlap(within)).collect();
            piece.lost = u64::from(from == 2);
            piece
        };
        assert_eq!(Series::join(vec![piece(0, 2), piece(2, 8)]), all);
        assert_eq!(Series::join(vec![piece(2, 8), piece(0, 2)]), all, "in any order");
        assert_eq!(Series::join(vec![piece(0, 4), piece(2, 8)]), all, "what is in both is there once");
        assert_eq!(Series::join(Vec::new()), Series::default());
        let mut second = piece(2, 8);
        second.clock_error = None;
        second.fields.rx.ce = false;
        let whole = Series::join(vec![piece(0, 2), second]);
        assert_eq!((whole.clock_error, whole.fields.rx.ce, whole.fields.tx.ce), (None, false, true));
    }

    #[test]
    fn a_part_has_no_more_lost_than_was_not_measured() {
        let time = |samples: u64| UtcNs(START).after(DurationNs(INTERVAL.0 * samples));
        let rows =
            [((0, 10), 2), ((1, 4), 0), ((2, 5), 1), ((3, 6), 1), ((4, 8), 1), ((5, 8), 0), ((20, 30), 0), ((3, 1), 0)];
        for ((from, to), expected) in rows {
            let part = series("12.4?6.8?9").clipped(Span { start: time(from), end: time(to) });
            assert_eq!(part.lost, expected, "{from} to {to}");
        }
    }
}

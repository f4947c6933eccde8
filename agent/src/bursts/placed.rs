//! When buckets began and how long they were: by the clock all alike, by a tick as each of them came.

use agent_common::tick::Tick;
use analysis::series::DurationNs;

/// The ticks of a run of buckets, by rising number; none where the clock tells buckets apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Placed {
    ticks: Vec<Tick>,
}

/// How regular the ticks of a run were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Regularity {
    /// Numbers that got no bucket: their tick came too late, and the bucket before was that much longer.
    pub(crate) missed: u64,
    /// The longest bucket.
    pub(crate) longest: DurationNs,
}

impl Placed {
    /// Of ticks by rising number.
    pub(crate) fn new(ticks: Vec<Tick>) -> Self {
        Self { ticks }
    }

    /// When a bucket began (`CLOCK_MONOTONIC` in nanoseconds). One without a tick takes no time: it begins where the next
    /// one does.
    pub(crate) fn start_ns(&self, sequence: u64, interval: DurationNs) -> u64 {
        let Some(last) = self.ticks.last() else { return sequence.saturating_mul(interval.0) };
        let at = self.ticks.partition_point(|tick| tick.sequence < sequence);
        self.ticks.get(at).unwrap_or(last).start_ns
    }

    /// How long a bucket was: until the next one began.
    pub(crate) fn length(&self, sequence: u64, interval: DurationNs) -> DurationNs {
        let end = self.start_ns(sequence.saturating_add(1), interval);
        DurationNs(end.saturating_sub(self.start_ns(sequence, interval)))
    }

    /// Adds the ticks that follow.
    pub(crate) fn extend(&mut self, more: Self) {
        let last = self.ticks.last().map_or(0, |tick| tick.sequence);
        self.ticks.extend(more.ticks.into_iter().filter(|tick| tick.sequence > last));
    }

    /// Of the buckets from `start` on to before `end`; `None` where the clock tells buckets apart.
    pub(crate) fn regularity(&self, start: u64, end: u64) -> Option<Regularity> {
        let within = self.ticks.windows(2).filter_map(|pair| match pair {
            [one, next] if one.sequence >= start && one.sequence < end => Some((one, next)),
            _ => None,
        });
        let one = |sum: Regularity, (one, next): (&Tick, &Tick)| Regularity {
            missed: sum.missed.saturating_add(next.sequence.saturating_sub(one.sequence + 1)),
            longest: sum.longest.max(DurationNs(next.start_ns.saturating_sub(one.start_ns))),
        };
        let none = Regularity { missed: 0, longest: DurationNs(0) };
        (!self.ticks.is_empty()).then(|| within.fold(none, one))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const INTERVAL: DurationNs = DurationNs(MS);

    fn placed(ticks: &[(u64, u64)]) -> Placed {
        Placed::new(
            ticks.iter().map(|(sequence, start_ns)| Tick { sequence: *sequence, start_ns: *start_ns }).collect(),
        )
    }

    #[test]
    fn by_the_clock_all_buckets_are_alike() {
        let clock = Placed::default();
        assert_eq!((clock.start_ns(7, INTERVAL), clock.length(7, INTERVAL)), (7 * MS, INTERVAL));
        assert_eq!(clock.regularity(0, 10), None);
        assert_eq!(clock.start_ns(u64::MAX, INTERVAL), u64::MAX);
    }

    #[test]
    fn by_a_tick_each_is_as_long_as_it_was() {
        // 3 came late, 4 and 5 not at all.
        let ticked = placed(&[(2, 2 * MS + 5), (3, 3 * MS + 900_000), (6, 6 * MS + 10), (7, 7 * MS)]);
        let rows = [
            (2, 2 * MS + 5, MS + 899_995),
            (3, 3 * MS + 900_000, 2 * MS + 100_010),
            (4, 6 * MS + 10, 0),
            (5, 6 * MS + 10, 0),
            (6, 6 * MS + 10, MS - 10),
            // The end of what was read: when it ends is not known yet.
            (7, 7 * MS, 0),
        ];
        for (sequence, start, length) in rows {
            assert_eq!(ticked.start_ns(sequence, INTERVAL), start, "{sequence}");
            assert_eq!(ticked.length(sequence, INTERVAL), DurationNs(length), "{sequence}");
        }
        let all = Regularity { missed: 2, longest: DurationNs(2 * MS + 100_010) };
        assert_eq!(ticked.regularity(2, 7), Some(all));
        assert_eq!(ticked.regularity(2, 3), Some(Regularity { missed: 0, longest: DurationNs(MS + 899_995) }));
    }

    #[test]
    fn what_follows_is_added_once() {
        let mut first = placed(&[(1, MS), (2, 2 * MS)]);
        first.extend(placed(&[(2, 2 * MS), (4, 4 * MS)]));
        assert_eq!(first, placed(&[(1, MS), (2, 2 * MS), (4, 4 * MS)]));
    }
}

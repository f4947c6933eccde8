//! From the numbers of one counter, reading by reading, to a count that goes on: wraps, resets and saturation told apart.

use super::catalogue::Width;

/// What is remembered of one counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Track {
    last: Option<u64>,
    /// What earlier rounds of a counter that wraps add.
    before: u64,
    /// How often it has begun again.
    pub(crate) restarts: u32,
}

/// A count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Count {
    /// Goes on over wraps, begins again after a reset.
    pub(crate) value: u64,
    /// The counter stands at the end of its range and counts no more.
    pub(crate) saturated: bool,
}

impl Track {
    /// Whether this number can only come from a counter that was set back, or is a new one under the old name.
    pub(crate) fn tells_reset(&self, raw: u64, width: Width) -> bool {
        self.last.is_some_and(|last| raw < last && width != Width::Gauge && !may_have_wrapped(last, raw, width))
    }

    /// Takes the next number. `reset` says that another counter beside it was set back since the last reading, so that
    /// a smaller number is no wrap here either.
    pub(crate) fn take(&mut self, raw: u64, width: Width, reset: bool) -> Count {
        if width == Width::Gauge {
            return Count { value: raw, saturated: false };
        }
        if let Some(last) = self.last.filter(|last| raw < *last) {
            match width.largest().filter(|_| !reset && may_have_wrapped(last, raw, width)) {
                Some(largest) => self.before = self.before.saturating_add(largest).saturating_add(1),
                None => {
                    self.before = 0;
                    self.restarts = self.restarts.wrapping_add(1);
                }
            }
        }
        self.last = Some(raw);
        let saturated = matches!(width, Width::Saturates(_)) && width.largest() == Some(raw);
        Count { value: self.before.saturating_add(raw), saturated }
    }
}

/// A counter that wraps goes less than half its range between two readings, or the pace is far too slow for it.
fn may_have_wrapped(last: u64, raw: u64, width: Width) -> bool {
    let Width::Wraps(_) = width else { return false };
    let Some(largest) = width.largest() else { return false };
    last <= largest && largest.saturating_sub(last).saturating_add(raw) < largest / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOUR_G: u64 = 1 << 32;

    /// Numbers in, (count, restarts) out.
    #[track_caller]
    fn check(width: Width, numbers: &[u64], expected: &[(u64, u32)]) {
        let mut track = Track::default();
        let found: Vec<_> = numbers
            .iter()
            .map(|raw| {
                let reset = track.tells_reset(*raw, width);
                let count = track.take(*raw, width, reset);
                (count.value, track.restarts)
            })
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn what_grows_goes_on() {
        check(Width::Full, &[5, 5, 9, u64::MAX], &[(5, 0), (5, 0), (9, 0), (u64::MAX, 0)]);
        check(Width::Wraps(32), &[5, FOUR_G - 1], &[(5, 0), (FOUR_G - 1, 0)]);
    }

    #[test]
    fn a_wrap_goes_on_and_a_reset_begins_again() {
        check(Width::Wraps(32), &[FOUR_G - 10, 20], &[(FOUR_G - 10, 0), (FOUR_G + 20, 0)]);
        let twice = [FOUR_G - 1, 0, FOUR_G - 1, 3];
        check(Width::Wraps(32), &twice, &[(FOUR_G - 1, 0), (FOUR_G, 0), (2 * FOUR_G - 1, 0), (2 * FOUR_G + 3, 0)]);
        // From the lower half there is no way around.
        check(Width::Wraps(32), &[1000, 20], &[(1000, 0), (20, 1)]);
        check(Width::Full, &[FOUR_G * 9, 20, 21], &[(FOUR_G * 9, 0), (20, 1), (21, 1)]);
        check(Width::Saturates(16), &[65_535, 0, 3], &[(65_535, 0), (0, 1), (3, 1)]);
        // More than a counter of this width can hold: the catalogue is wrong, and nothing is made up.
        check(Width::Wraps(32), &[FOUR_G + 5, 2], &[(FOUR_G + 5, 0), (2, 1)]);
    }

    #[test]
    fn half_the_range_is_the_boundary() {
        let half = FOUR_G / 2;
        check(Width::Wraps(32), &[half + 1, 0], &[(half + 1, 0), (FOUR_G, 0)]);
        check(Width::Wraps(32), &[half, 0], &[(half, 0), (0, 1)]);
    }

    #[test]
    fn a_reset_beside_it_is_no_wrap() {
        let mut track = Track::default();
        track.take(FOUR_G - 10, Width::Wraps(32), false);
        assert!(!track.tells_reset(20, Width::Wraps(32)));
        let count = track.take(20, Width::Wraps(32), true);
        assert_eq!((count.value, track.restarts), (20, 1));
    }

    #[test]
    fn only_the_end_of_a_saturating_counter_is_saturated() {
        let rows = [
            (Width::Saturates(8), 255, true),
            (Width::Saturates(8), 254, false),
            (Width::Saturates(4), 15, true),
            (Width::Saturates(16), 65_535, true),
            (Width::Saturates(32), 4_294_967_295, true),
            // A device with extended counters has 64 bits under the same name.
            (Width::Saturates(32), 4_294_967_296, false),
            (Width::Wraps(32), 4_294_967_295, false),
            (Width::Full, u64::MAX, false),
        ];
        for (width, raw, saturated) in rows {
            assert_eq!(Track::default().take(raw, width, false).saturated, saturated, "{width:?} {raw}");
        }
    }

    #[test]
    fn a_gauge_is_what_it_is() {
        check(Width::Gauge, &[80, 3, 100], &[(80, 0), (3, 0), (100, 0)]);
    }
}

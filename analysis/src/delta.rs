//! What a counter counted between two readings: growth, or why that is not known.

/// What one interval of a counter tells: how much it grew, or why that cannot be said.
pub type Delta = Result<u64, Gap>;

/// How far a counter counts, and what it does there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    /// 32 bits, then from 0 again.
    Wraps32,
    /// 64 bits, then from 0 again.
    Wraps64,
    /// Stays at 15. The widths that stay are those of the `PortCounters` attribute of InfiniBand performance management.
    Stops4,
    /// Stays at 255.
    Stops8,
    /// Stays at 65,535.
    Stops16,
    /// Stays at 4,294,967,295.
    Stops32,
}

impl Width {
    /// The largest value.
    #[must_use]
    pub const fn max(self) -> u64 {
        match self {
            Self::Wraps64 => u64::MAX,
            Self::Wraps32 | Self::Stops32 => u32::MAX as u64,
            Self::Stops16 => u16::MAX as u64,
            Self::Stops8 => u8::MAX as u64,
            Self::Stops4 => 15,
        }
    }

    /// Whether it stays at its largest value until somebody clears it.
    #[must_use]
    pub const fn stops(self) -> bool {
        match self {
            Self::Wraps32 | Self::Wraps64 => false,
            Self::Stops4 | Self::Stops8 | Self::Stops16 | Self::Stops32 => true,
        }
    }

    /// Whether a counter of this width that shows `value` counts no further.
    #[must_use]
    pub const fn saturated(self, value: u64) -> bool {
        self.stops() && value == self.max()
    }
}

/// Why one interval of a counter has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Gap {
    /// There is no earlier reading to compare with.
    First,
    /// It counts from the start again: driver reloaded, device made anew, counter cleared.
    Reset,
    /// It stands at its largest value and counts no further.
    Saturated,
    /// The value cannot be right: wider than the counter, further on than it can have come, or all ones, which is what
    /// a device that has left the bus answers.
    Implausible,
    /// It was asked for and not answered.
    Unread,
    /// The answer was a repeat from a cache.
    Cached,
    /// The source has no such counter.
    NotOffered,
}

impl Gap {
    /// One word, for labels.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Reset => "reset",
            Self::Saturated => "saturated",
            Self::Implausible => "implausible",
            Self::Unread => "unread",
            Self::Cached => "cached",
            Self::NotOffered => "not_offered",
        }
    }

    /// A fragment that follows the counter's name.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::First => "was read only once yet",
            Self::Reset => "was reset",
            Self::Saturated => "stands at its largest value and counts no further",
            Self::Implausible => "showed a value that cannot be right",
            Self::Unread => "could not be read",
            Self::Cached => "was not updated",
            Self::NotOffered => "is not offered",
        }
    }
}

/// The growth from `previous` to `now`.
///
/// A step down is a wrap if the growth that it would mean is at most half the counter's range, otherwise a reset. Where
/// the most that can have passed is known, [`delta_within`] tells better.
///
/// # Errors
///
/// [`Gap::Reset`], [`Gap::Saturated`] or [`Gap::Implausible`].
pub const fn delta(previous: u64, now: u64, width: Width) -> Delta {
    delta_within(previous, now, width, u64::MAX)
}

/// As [`delta`], of a counter that cannot have grown by more than `growth_max`: what the line carries in the interval,
/// and some more for a source that updates at its own times.
///
/// # Errors
///
/// [`Gap::Reset`], [`Gap::Saturated`] or [`Gap::Implausible`].
pub const fn delta_within(previous: u64, now: u64, width: Width, growth_max: u64) -> Delta {
    let max = width.max();
    if now > max || previous > max {
        return Err(Gap::Implausible);
    }
    if width.saturated(now) {
        return Err(Gap::Saturated);
    }
    if width.stops() {
        return match now.checked_sub(previous) {
            None => Err(Gap::Reset),
            Some(growth) if growth > growth_max => Err(Gap::Implausible),
            Some(growth) => Ok(growth),
        };
    }
    if now == max || previous == max {
        return Err(Gap::Implausible);
    }
    let growth = now.wrapping_sub(previous) & max;
    let growth_max = if growth_max < max / 2 { growth_max } else { max / 2 };
    if growth <= growth_max {
        Ok(growth)
    } else if now < previous {
        Err(Gap::Reset)
    } else {
        Err(Gap::Implausible)
    }
}

/// Follows one counter from reading to reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tracker {
    width: Width,
    previous: Option<u64>,
    /// It may have counted all that it shows in the last interval.
    fresh: bool,
}

impl Tracker {
    /// A counter that was not read yet.
    #[must_use]
    pub const fn new(width: Width) -> Self {
        Self { width, previous: None, fresh: false }
    }

    /// Takes the next reading, which cannot be more than `growth_max` on from the one before.
    ///
    /// # Errors
    ///
    /// Why the interval that ends here has no value. After an implausible one the counter begins anew, so that what
    /// made no sense is not compared with either.
    pub const fn step(&mut self, now: u64, growth_max: u64) -> Delta {
        let delta = match self.previous {
            Some(previous) => delta_within(previous, now, self.width, growth_max),
            None if self.width.saturated(now) => Err(Gap::Saturated),
            None if now >= self.width.max() => Err(Gap::Implausible),
            None => Err(Gap::First),
        };
        self.fresh = now <= growth_max;
        self.previous = if matches!(delta, Err(Gap::Implausible)) { None } else { Some(now) };
        delta
    }

    /// What the last step, which gave `delta`, tells if another counter of the same device was reset in that interval: a
    /// device that is made anew begins with all of them, and one that shows no more than can have passed since may only
    /// look as if it had wrapped, or grown.
    ///
    /// # Errors
    ///
    /// As [`Self::step`].
    pub const fn beside_reset(&self, delta: Delta) -> Delta {
        if self.fresh && delta.is_ok() { Err(Gap::Reset) } else { delta }
    }

    /// The reading failed: the next one that works has nothing to compare with, for its interval would be longer than
    /// the sample it stands in. A counter of rare events, as link changes, is better not told: what was counted
    /// meanwhile then falls to the sample in which it is seen.
    pub const fn miss(&mut self) {
        self.previous = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_wrap_reset_and_saturation_are_told_apart() {
        let top = u64::from(u32::MAX);
        let rows = [
            (0, 0, Width::Wraps64, Ok(0)),
            (5, 12, Width::Wraps64, Ok(7)),
            (12, 5, Width::Wraps64, Err(Gap::Reset)),
            (u64::MAX - 1, 3, Width::Wraps64, Ok(5)),
            (5, u64::MAX, Width::Wraps64, Err(Gap::Implausible)),
            (u64::MAX, 5, Width::Wraps64, Err(Gap::Implausible)),
            (5, 1 << 63, Width::Wraps64, Ok((1 << 63) - 5)),
            (5, (1 << 63) + 5, Width::Wraps64, Err(Gap::Implausible)),
            (top - 9, 10, Width::Wraps32, Ok(20)),
            (top - 9, top - 1, Width::Wraps32, Ok(8)),
            (5_000, 10, Width::Wraps32, Err(Gap::Reset)),
            (0, top, Width::Wraps32, Err(Gap::Implausible)),
            (0, top + 1, Width::Wraps32, Err(Gap::Implausible)),
            (top + 1, 0, Width::Wraps32, Err(Gap::Implausible)),
            (0, top / 2, Width::Wraps32, Ok(top / 2)),
            (0, top / 2 + 1, Width::Wraps32, Err(Gap::Implausible)),
            (3, 9, Width::Stops8, Ok(6)),
            (3, 255, Width::Stops8, Err(Gap::Saturated)),
            (255, 255, Width::Stops8, Err(Gap::Saturated)),
            (255, 0, Width::Stops8, Err(Gap::Reset)),
            (9, 3, Width::Stops8, Err(Gap::Reset)),
            (3, 256, Width::Stops8, Err(Gap::Implausible)),
            (0, 14, Width::Stops4, Ok(14)),
            (14, 15, Width::Stops4, Err(Gap::Saturated)),
            (0, 65_535, Width::Stops16, Err(Gap::Saturated)),
            (0, top - 1, Width::Stops32, Ok(top - 1)),
            (0, top, Width::Stops32, Err(Gap::Saturated)),
        ];
        for (previous, now, width, expected) in rows {
            assert_eq!(delta(previous, now, width), expected, "{previous} -> {now}, {width:?}");
        }
    }

    #[test]
    fn what_the_line_carries_decides_between_wrap_and_reset() {
        let rows = [
            // A device made anew after three thousand million packets is no wrap.
            (3_000_000_000, 5, 1_000_000, Err(Gap::Reset)),
            (3_000_000_000, 5, u64::MAX, Ok(1_294_967_301)),
            (4_294_967_290, 5, 1_000_000, Ok(11)),
            (10, 1_000_010, 1_000_000, Ok(1_000_000)),
            (10, 1_000_011, 1_000_000, Err(Gap::Implausible)),
        ];
        for (previous, now, growth_max, expected) in rows {
            let found = delta_within(previous, now, Width::Wraps32, growth_max);
            assert_eq!(found, expected, "{previous} -> {now}, at most {growth_max}");
        }
        assert_eq!(delta_within(1, 9, Width::Stops8, 7), Err(Gap::Implausible));
        assert_eq!(delta_within(1, 9, Width::Stops8, 8), Ok(8));
    }

    #[track_caller]
    fn follow(width: Width, readings: &[u64], expected: &[Delta]) {
        let mut tracker = Tracker::new(width);
        let found: Vec<Delta> = readings.iter().map(|&now| tracker.step(now, u64::MAX)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_counter_is_followed_through_resets_and_nonsense() {
        follow(Width::Wraps64, &[7, 9, 2, 5], &[Err(Gap::First), Ok(2), Err(Gap::Reset), Ok(3)]);
        let nonsense = Err(Gap::Implausible);
        follow(
            Width::Wraps64,
            &[7, u64::MAX, u64::MAX, 9, 10],
            &[Err(Gap::First), nonsense, nonsense, Err(Gap::First), Ok(1)],
        );
        let saturated = Err(Gap::Saturated);
        follow(Width::Stops4, &[15, 15, 0, 3], &[saturated, saturated, Err(Gap::Reset), Ok(3)]);
    }

    #[test]
    fn beside_a_reset_only_what_cannot_have_been_reset_is_known() {
        let rows = [
            (4_294_967_290, 4, Ok(10), Err(Gap::Reset)),
            (7, 9, Ok(2), Err(Gap::Reset)),
            (0, 0, Ok(0), Err(Gap::Reset)),
            (90, 100, Ok(10), Err(Gap::Reset)),
            (91, 101, Ok(10), Ok(10)),
            (900, 8, Err(Gap::Reset), Err(Gap::Reset)),
            (900, 2_000, Err(Gap::Implausible), Err(Gap::Implausible)),
        ];
        for (previous, now, alone, beside) in rows {
            let mut tracker = Tracker::new(Width::Wraps32);
            assert_eq!(tracker.step(previous, 100), Err(Gap::First));
            let delta = tracker.step(now, 100);
            assert_eq!((delta, tracker.beside_reset(delta)), (alone, beside), "{previous} -> {now}");
        }
    }

    #[test]
    fn after_a_miss_a_counter_begins_anew() {
        let mut tracker = Tracker::new(Width::Wraps32);
        assert_eq!(tracker.step(1, u64::MAX), Err(Gap::First));
        tracker.miss();
        assert_eq!(tracker.step(9, u64::MAX), Err(Gap::First));
        assert_eq!(tracker.step(10, u64::MAX), Ok(1));
    }
}

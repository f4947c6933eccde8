//! Objects of a device against the most that it can hold: exhaustion that is seen before it fails a job.

use std::fmt;

use crate::verdict::{Verdict, Why};

/// When a resource counts as running out: shares of the limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UseLimits {
    /// At this share or above.
    pub enter: f64,
    /// Until it is below this share.
    pub leave: f64,
}

/// Nine tenths; over below eight. The project's own choice.
pub const USE: UseLimits = UseLimits { enter: 0.9, leave: 0.8 };

/// A resource that runs out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exhaustion {
    /// In use now.
    pub used: u64,
    /// The most there can be.
    pub limit: u64,
}

impl fmt::Display for Exhaustion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { used, limit } = self;
        write!(f, "{used} of {limit} in use ({:.0} %)", *used as f64 * 100.0 / (*limit).max(1) as f64)
    }
}

/// Whether a resource of which `used` (oldest first, `None` where it was not read) were in use is about to run out.
#[must_use]
pub fn exhaustion(used: &[Option<u64>], limit: Option<u64>, limits: UseLimits) -> Verdict<Exhaustion> {
    let Some(limit) = limit.filter(|limit| *limit > 0) else { return Verdict::CannotTell(Why::NoLimit) };
    let Some(Some(now)) = used.last().copied() else {
        return Verdict::CannotTell(Why::TooFew { have: 0, need: 1, of: "readings" });
    };
    let running_out = used.iter().flatten().fold(false, |before, used| {
        let share = *used as f64 / limit as f64;
        share >= limits.enter || before && share >= limits.leave
    });
    if running_out { Verdict::Firing(Exhaustion { used: now, limit }) } else { Verdict::Quiet }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_runs_out_at_nine_tenths_until_it_is_below_eight() {
        let rows = [
            (vec![Some(89)], Some(100), "quiet"),
            (vec![Some(90)], Some(100), "firing"),
            (vec![Some(90), Some(80)], Some(100), "firing"),
            (vec![Some(90), Some(79)], Some(100), "quiet"),
            (vec![Some(90), Some(79), Some(89)], Some(100), "quiet"),
            (vec![Some(90), None, Some(85)], Some(100), "firing"),
            (vec![Some(90), None], Some(100), "cannot tell"),
            (vec![], Some(100), "cannot tell"),
            (vec![Some(5)], None, "cannot tell"),
            (vec![Some(5)], Some(0), "cannot tell"),
            (vec![Some(101)], Some(100), "firing"),
        ];
        for (used, limit, expected) in rows {
            assert_eq!(exhaustion(&used, limit, USE).name(), expected, "{used:?} of {limit:?}");
        }
        assert_eq!(Exhaustion { used: 95, limit: 100 }.to_string(), "95 of 100 in use (95 %)");
    }
}

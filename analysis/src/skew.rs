//! Work that is to be shared and falls on one: members of a bond, completion vectors.

use std::fmt;

use crate::counter_series::{Counter, CounterSeries, Lane};
use crate::series::{BitsPerSecond, Direction};
use crate::verdict::{Episode, Hysteresis, Level, Verdict, Why, episodes};

/// When a bond counts as skewed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BondLimits {
    /// Over the busiest member's bytes, as a multiple of the mean.
    pub ratio: Hysteresis,
    /// A bond that carries less than this is idle, and how it shares that is of no interest.
    pub load_min: BitsPerSecond,
}

/// Of two members, one carries four fifths, over three samples. The project's own choice.
pub const BOND: BondLimits = BondLimits {
    ratio: Hysteresis { enter: 1.6, leave: 1.4, enter_samples: 3, leave_samples: 3 },
    load_min: BitsPerSecond(1_000_000_000),
};

/// A time in which one member of a bond carried much more than its part.
#[derive(Clone, Debug, PartialEq)]
pub struct BondSkew {
    /// Which way.
    pub direction: Direction,
    /// When.
    pub episode: Episode,
    /// What each member carried, in the order in which they were given.
    pub bytes: Vec<u64>,
    /// The busiest member's bytes over the mean.
    pub ratio: f64,
}

impl fmt::Display for BondSkew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.bytes.iter().fold(0u64, |sum, bytes| sum.saturating_add(*bytes)).max(1);
        write!(f, "one member of the bond carried {:.1} times the mean of {}", self.ratio, self.direction.name())?;
        write!(f, " for {}; shares in %:", self.episode)?;
        self.bytes.iter().try_for_each(|bytes| write!(f, " {:.0}", *bytes as f64 * 100.0 / total as f64))
    }
}

/// Whether one of a bond's members carried much more than the others. The members' samples were taken together.
#[must_use]
pub fn bond(members: &[&CounterSeries], direction: Direction, limits: &BondLimits) -> Verdict<Vec<BondSkew>> {
    let (first, have) = match members {
        [first, _, ..] => (*first, members.len()),
        few => return Verdict::CannotTell(Why::TooFew { have: few.len(), need: 2, of: "members" }),
    };
    let found = episodes(first, &limits.ratio, |at| match shares(members, direction, at) {
        Ok(bytes) => {
            let total = bytes.iter().fold(0u64, |sum, bytes| sum.saturating_add(*bytes));
            let length = first.when(at).map(|when| when.length).unwrap_or_default();
            if (total as f64) < limits.load_min.bytes_in(length) {
                return Level::Low;
            }
            limits.ratio.level(max_over_mean(&bytes))
        }
        Err(why) => Level::Unknown(why),
    });
    found.map(|episodes| {
        let evidence = episodes.into_iter().map(|episode| {
            let mut bytes = vec![0u64; have];
            for known in episode.samples.clone().filter_map(|at| shares(members, direction, at).ok()) {
                bytes.iter_mut().zip(known).for_each(|(sum, more)| *sum = sum.saturating_add(more));
            }
            BondSkew { direction, ratio: max_over_mean(&bytes), bytes, episode }
        });
        evidence.collect()
    })
}

/// What each member carried in sample `at`.
fn shares(members: &[&CounterSeries], direction: Direction, at: usize) -> Result<Vec<u64>, Why> {
    let counter = Counter::Bytes(Lane::Port, direction);
    let mut together = None;
    let each = members.iter().map(|member| {
        let when = member.when(at);
        let (Some(when), first) = (when, *together.get_or_insert(when)) else {
            return Err(Why::TooFew { have: member.len(), need: at + 1, of: "samples" });
        };
        let first = first.unwrap_or(when);
        let apart = when.start.since(first.start).0.max(first.start.since(when.start).0);
        if apart > first.length.0 / 4 || when.length.0.abs_diff(first.length.0) > first.length.0 / 4 {
            return Err(Why::NotTogether(when.start));
        }
        member.delta(counter, at).map_err(|gap| Why::absent(counter, gap))
    });
    each.collect()
}

/// The largest over the mean; 1 where there is nothing to share.
#[must_use]
pub fn max_over_mean(parts: &[u64]) -> f64 {
    let total: f64 = parts.iter().map(|part| *part as f64).sum();
    let largest = parts.iter().copied().max().unwrap_or(0);
    if total > 0.0 { largest as f64 * parts.len() as f64 / total } else { 1.0 }
}

/// Four times what the best share would put on one vector. The project's own choice.
pub const VECTOR_RATIO_MAX: f64 = 4.0;

/// Completion queues that are badly shared out.
#[derive(Clone, Debug, PartialEq)]
pub struct VectorSkew {
    /// How many vectors there are.
    pub vectors: usize,
    /// The vector with the most.
    pub busiest: usize,
    /// The queues on it.
    pub queues: u64,
    /// All queues.
    pub total: u64,
    /// The busiest over the mean.
    pub ratio: f64,
}

impl fmt::Display for VectorSkew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { vectors, busiest, queues, total, ratio } = self;
        write!(f, "{queues} of {total} completion queues are on vector {busiest} of {vectors}, ")?;
        write!(f, "{ratio:.1} times the mean: one core serves them")
    }
}

/// Whether one completion vector serves far more of the completion queues in `queues` (one count a vector) than the best
/// share would put on it. With fewer queues than vectors, the best share is one.
#[must_use]
pub fn vectors(queues: &[u64], ratio_max: f64) -> Verdict<VectorSkew> {
    let Some((busiest, most)) = queues.iter().copied().enumerate().max_by_key(|(at, count)| (*count, usize::MAX - at))
    else {
        return Verdict::CannotTell(Why::TooFew { have: 0, need: 1, of: "vectors" });
    };
    let total = queues.iter().fold(0u64, |sum, count| sum.saturating_add(*count));
    let best = total.div_ceil(queues.len() as u64);
    if most as f64 > best as f64 * ratio_max {
        let ratio = max_over_mean(queues);
        return Verdict::Firing(VectorSkew { vectors: queues.len(), busiest, queues: most, total, ratio });
    }
    Verdict::Quiet
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counter_series::When;
    use crate::delta::{Delta, Gap};
    use crate::series::{DurationNs, UtcNs};

    const GB: u64 = 1_000_000_000;

    fn member(start: i64, bytes: &[Delta]) -> CounterSeries {
        let mut series = CounterSeries::new(None, 99);
        for (at, bytes) in bytes.iter().enumerate() {
            let when = When { start: UtcNs(start + at as i64 * 1_000_000_000), length: DurationNs(1_000_000_000) };
            series.push(when, [(Counter::Bytes(Lane::Port, Direction::Tx), *bytes)]);
        }
        series
    }

    #[test]
    fn a_bond_is_skewed_if_one_member_carries_most_of_a_load() {
        let rows = [
            (vec![[Ok(8 * GB); 3], [Ok(2 * GB); 3]], "firing"),
            (vec![[Ok(79 * GB); 3], [Ok(21 * GB); 3]], "quiet"),
            (vec![[Ok(8 * GB), Ok(8 * GB), Ok(2 * GB)], [Ok(2 * GB); 3]], "quiet"),
            (vec![[Ok(GB / 9); 3], [Ok(0); 3]], "quiet"),
            (vec![[Ok(GB / 8); 3], [Ok(0); 3]], "firing"),
            (vec![[Ok(4 * GB); 3], [Ok(4 * GB); 3], [Ok(4 * GB); 3], [Ok(0); 3]], "quiet"),
            (vec![[Ok(4 * GB); 3], [Ok(2 * GB); 3], [Ok(2 * GB); 3], [Ok(2 * GB); 3]], "firing"),
            (vec![[Ok(8 * GB); 3], [Err(Gap::Unread); 3]], "cannot tell"),
            (vec![[Ok(8 * GB); 3]], "cannot tell"),
            (vec![], "cannot tell"),
        ];
        for (bytes, expected) in rows {
            let members: Vec<_> = bytes.iter().map(|bytes| member(0, bytes)).collect();
            let found = bond(&members.iter().collect::<Vec<_>>(), Direction::Tx, &BOND);
            assert_eq!(found.name(), expected, "{bytes:?}");
        }
    }

    #[test]
    fn members_that_were_not_read_together_are_not_compared() {
        let busy = member(0, &[Ok(8 * GB); 3]);
        let late = member(400_000_000, &[Ok(GB); 3]);
        let found = bond(&[&busy, &late], Direction::Tx, &BOND);
        assert_eq!(found, Verdict::CannotTell(Why::NotTogether(UtcNs(400_000_000))));
        let short = member(0, &[Ok(GB)]);
        assert_eq!(bond(&[&busy, &short], Direction::Tx, &BOND).name(), "cannot tell");
        let near = member(200_000_000, &[Ok(GB); 3]);
        let Verdict::Firing(found) = bond(&[&busy, &near], Direction::Tx, &BOND) else { panic!() };
        assert_eq!(
            found[0].to_string(),
            "one member of the bond carried 1.8 times the mean of tx for 3.000 s and going on; shares in %: 89 11"
        );
    }

    #[test]
    fn vectors_are_held_against_the_best_share() {
        let rows: [(&[u64], &str); 8] = [
            (&[], "cannot tell"),
            (&[0, 0, 0, 0], "quiet"),
            (&[64], "quiet"),
            (&[4, 0, 0, 0, 0, 0, 0, 0], "quiet"),
            (&[5, 0, 0, 0, 0, 0, 0, 0], "firing"),
            (&[8, 8, 8, 8], "quiet"),
            (&[1, 1, 1, 1, 1, 1, 1, 1], "quiet"),
            (&[u64::MAX, u64::MAX], "quiet"),
        ];
        for (queues, expected) in rows {
            assert_eq!(vectors(queues, VECTOR_RATIO_MAX).name(), expected, "{queues:?}");
        }
        let Verdict::Firing(found) = vectors(&[1, 15, 0, 0, 0, 0, 0, 0], VECTOR_RATIO_MAX) else { panic!() };
        assert_eq!(
            found.to_string(),
            "15 of 16 completion queues are on vector 1 of 8, 7.5 times the mean: one core serves them"
        );
    }
}

//! Loss, as a reliable transport shows it: packets out of order, negative acknowledgements, timeouts.

use std::fmt;

use crate::counter_series::{Counter, CounterSeries, Lane};
use crate::series::Direction;
use crate::sum::Sum;
use crate::verdict::{Episode, Hysteresis, Level, Verdict, Why, episodes};

/// When loss counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossLimits {
    /// Over the share of the port's packets.
    pub share: Hysteresis,
    /// Fewer events than this in a sample are none: a share of few packets says little.
    pub events_min: u64,
}

/// One in ten thousand packets over two samples: in a network that is to lose none, and where one lost packet means that
/// all after it are sent again. The project's own choice.
pub const LOSS: LossLimits =
    LossLimits { share: Hysteresis { enter: 1e-4, leave: 2e-5, enter_samples: 2, leave_samples: 2 }, events_min: 10 };

/// A time with much loss.
#[derive(Clone, Debug, PartialEq)]
pub struct Loss {
    /// Tx: what this host sent. Rx: what was sent to it.
    pub direction: Direction,
    /// When.
    pub episode: Episode,
    /// What was counted, and how often.
    pub events: Vec<(Counter, u64)>,
    /// The port's packets of that direction in the same samples.
    pub packets: u64,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.direction {
            Direction::Tx => "what this host sends has to be sent again",
            Direction::Rx => "what is sent to this host does not come in order",
        };
        write!(f, "{what}: for {}", self.episode)?;
        self.events.iter().try_for_each(|(counter, count)| write!(f, ", {count} {counter}"))?;
        write!(f, " in {} packets", self.packets)
    }
}

/// What tells of loss in each direction.
const fn signs(direction: Direction) -> &'static [Counter] {
    match direction {
        Direction::Tx => &[Counter::SequenceErrors, Counter::ImpliedNaks, Counter::Timeouts, Counter::ReceiverNotReady],
        Direction::Rx => &[Counter::OutOfSequence],
    }
}

/// Whether too much of what passed in `direction` was lost, came late, or met a receiver that was not ready.
#[must_use]
pub fn losses(series: &CounterSeries, direction: Direction, limits: &LossLimits) -> Verdict<Vec<Loss>> {
    let (signs, packets) = (signs(direction), Counter::Packets(Lane::Port, direction));
    if series.len() >= limits.share.enter_samples && series.is_still(signs.iter().copied()) {
        return Verdict::Quiet;
    }
    let found = episodes(series, &limits.share, |at| {
        let events = Sum::of(series, signs.iter().copied(), at..at + 1);
        match series.delta(packets, at) {
            Ok(packets) => events.level(|count| {
                let share = count as f64 / packets.max(count).max(1) as f64;
                if count < limits.events_min { Level::Low } else { limits.share.level(share) }
            }),
            Err(_) if events.doubt.is_none() && events.known < limits.events_min => Level::Low,
            Err(gap) => Level::Unknown(Why::absent(packets, gap)),
        }
    });
    found.map(|episodes| {
        let evidence = episodes.into_iter().map(|episode| {
            let known = |counter| series.known(counter, episode.samples.clone());
            let moved = signs.iter().filter_map(|&counter| Some((counter, known(counter)?)));
            let events = moved.filter(|(_, count)| *count > 0).collect();
            Loss { direction, events, packets: known(packets).unwrap_or(0), episode }
        });
        evidence.collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counter_series::When;
    use crate::delta::{Delta, Gap};
    use crate::series::{DurationNs, UtcNs};

    const SENT: Counter = Counter::Packets(Lane::Port, Direction::Tx);

    /// Two samples that are alike.
    fn two(values: &[(Counter, Delta)]) -> CounterSeries {
        let mut series = CounterSeries::new(None, 99);
        for at in 0..2 {
            let when = When { start: UtcNs(at * 1_000_000_000), length: DurationNs(1_000_000_000) };
            series.push(when, values.iter().copied());
        }
        series
    }

    #[test]
    fn loss_is_a_share_of_enough_events() {
        let (errors, timeouts) = (Counter::SequenceErrors, Counter::Timeouts);
        let rows: [(&[(Counter, Delta)], &str); 11] = [
            (&[(SENT, Ok(100_000)), (errors, Ok(10))], "firing"),
            (&[(SENT, Ok(100_001)), (errors, Ok(10))], "quiet"),
            (&[(SENT, Ok(100)), (errors, Ok(9))], "quiet"),
            (&[(SENT, Ok(100_000)), (errors, Ok(5)), (timeouts, Ok(5))], "firing"),
            (&[(SENT, Ok(0)), (timeouts, Ok(10))], "firing"),
            (&[(SENT, Ok(1_000)), (errors, Err(Gap::Reset)), (timeouts, Ok(10))], "firing"),
            (&[(SENT, Ok(1_000)), (errors, Err(Gap::Reset)), (timeouts, Ok(9))], "cannot tell"),
            (&[(errors, Ok(10))], "cannot tell"),
            (&[(errors, Ok(9))], "quiet"),
            (&[(SENT, Ok(1_000))], "cannot tell"),
            (&[(SENT, Ok(1_000)), (Counter::OutOfSequence, Ok(900))], "cannot tell"),
        ];
        for (values, expected) in rows {
            assert_eq!(losses(&two(values), Direction::Tx, &LOSS).name(), expected, "{values:?}");
        }
    }

    #[test]
    fn each_direction_tells_what_was_counted() {
        let say = |direction, values: &[(Counter, Delta)]| match losses(&two(values), direction, &LOSS) {
            Verdict::Firing(found) => found[0].to_string(),
            other => panic!("{other:?}"),
        };
        let values = [(SENT, Ok(1_000)), (Counter::Timeouts, Ok(20)), (Counter::ReceiverNotReady, Ok(1))];
        assert_eq!(
            say(Direction::Tx, &values),
            "what this host sends has to be sent again: for 2.000 s and going on, 40 acknowledgement timeouts, \
             2 receiver not ready in 2000 packets"
        );
        let values = [(Counter::Packets(Lane::Port, Direction::Rx), Ok(1_000)), (Counter::OutOfSequence, Ok(20))];
        assert_eq!(
            say(Direction::Rx, &values),
            "what is sent to this host does not come in order: for 2.000 s and going on, 40 packets out of sequence \
             in 2000 packets"
        );
    }
}

//! What a detector fires on: in words, and as numbers with their units and the counters that they come from.

use std::fmt;

use crate::congestion::{HostCongestion, NetworkCongestion};
use crate::counter_series::{Counter, Lane};
use crate::link::Flap;
use crate::pause::{Basis, Pressure};
use crate::resource::Exhaustion;
use crate::retransmission::Loss;
use crate::series::Direction;
use crate::skew::VectorSkew;
use crate::storm::{Reported, Storm};
use crate::verdict::{Episode, Why};

/// What a detector found.
#[derive(Clone, Debug, PartialEq)]
pub enum Evidence {
    /// Of pause.
    Pressure(Pressure),
    /// Of a storm, as its cause or as its victim.
    Storm(Storm),
    /// Of a storm, by the device's word.
    Reported(Reported),
    /// Of this host's congestion.
    Host(HostCongestion),
    /// Of the network's congestion.
    Network(NetworkCongestion),
    /// Of a link that flaps.
    Flap(Flap),
    /// Of loss.
    Loss(Loss),
    /// Of a resource that runs out, now.
    Exhaustion(Exhaustion),
    /// Of completion queues that are badly shared out, now.
    Vectors(VectorSkew),
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pressure(evidence) => evidence.fmt(f),
            Self::Storm(evidence) => evidence.fmt(f),
            Self::Reported(evidence) => evidence.fmt(f),
            Self::Host(evidence) => evidence.fmt(f),
            Self::Network(evidence) => evidence.fmt(f),
            Self::Flap(evidence) => evidence.fmt(f),
            Self::Loss(evidence) => evidence.fmt(f),
            Self::Exhaustion(evidence) => evidence.fmt(f),
            Self::Vectors(evidence) => evidence.fmt(f),
        }
    }
}

/// A number of a piece of evidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A count.
    Whole(u64),
    /// A share, or a multiple.
    Real(f64),
}

/// A number with its name and unit, and the counters that it was computed from, if it was from counters.
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    /// What it is.
    pub name: &'static str,
    /// How much.
    pub value: Number,
    /// Of what: `ratio` for shares and multiples.
    pub unit: &'static str,
    /// Where it comes from.
    pub counters: Vec<Counter>,
}

impl Measure {
    const fn new(name: &'static str, value: Number, unit: &'static str, counters: Vec<Counter>) -> Self {
        Self { name, value, unit, counters }
    }

    const fn count(name: &'static str, count: u64, unit: &'static str) -> Self {
        Self::new(name, Number::Whole(count), unit, Vec::new())
    }

    fn of(counter: Counter, count: u64) -> Self {
        Self::new(counter.key(), Number::Whole(count), counter.unit(), vec![counter])
    }
}

fn pause(lane: Lane, direction: Direction, basis: Basis) -> Counter {
    match basis {
        Basis::Time => Counter::PauseTime(lane, direction),
        Basis::Frames { .. } => Counter::PauseFrames(lane, direction),
    }
}

impl Evidence {
    /// When it was; `None` for what is only known to be now.
    #[must_use]
    pub const fn episode(&self) -> Option<&Episode> {
        match self {
            Self::Pressure(Pressure { episode, .. })
            | Self::Storm(Storm { episode, .. })
            | Self::Reported(Reported { episode, .. })
            | Self::Host(HostCongestion { episode, .. })
            | Self::Network(NetworkCongestion { episode, .. })
            | Self::Flap(Flap { episode, .. })
            | Self::Loss(Loss { episode, .. }) => Some(episode),
            Self::Exhaustion(_) | Self::Vectors(_) => None,
        }
    }

    /// Whether it had not ended when it was last looked at.
    #[must_use]
    pub const fn is_ongoing(&self) -> bool {
        match self.episode() {
            Some(episode) => episode.ongoing,
            None => true,
        }
    }

    /// Why it is not known whether it goes on, if it is not.
    #[must_use]
    pub fn unseen(&self) -> Option<Why> {
        self.episode().and_then(|episode| episode.unseen)
    }

    /// The numbers.
    #[must_use]
    pub fn measures(&self) -> Vec<Measure> {
        let ratio = |name, value, counters| Measure::new(name, Number::Real(value), "ratio", counters);
        let all = |counts: &[(Counter, u64)]| -> Vec<Measure> {
            counts.iter().map(|(counter, count)| Measure::of(*counter, *count)).collect()
        };
        match self {
            Self::Pressure(Pressure { direction, lane, share, share_max, basis, .. }) => {
                let counter = pause(*lane, *direction, *basis);
                vec![ratio("share", *share, vec![counter]), ratio("share_max", *share_max, vec![counter])]
            }
            Self::Storm(Storm { direction, lane, share_min, basis, .. }) => {
                let carried = Counter::Packets(*lane, direction.other());
                vec![
                    ratio("share_min", *share_min, vec![pause(*lane, *direction, *basis)]),
                    Measure::new("carried", Number::Whole(0), carried.unit(), vec![carried]),
                ]
            }
            Self::Reported(Reported { warnings, errors, .. }) => {
                all(&[(Counter::StormWarnings, *warnings), (Counter::StormErrors, *errors)])
            }
            Self::Host(HostCongestion { signs, .. }) => all(signs),
            Self::Network(NetworkCongestion { pause_max, marked, cnps, .. }) => {
                let shares = [
                    pause_max.map(|share| ratio("pause_share_max", share, Vec::new())),
                    marked.map(|share| ratio("marked_share", share, vec![Counter::EcnMarked])),
                ];
                shares.into_iter().flatten().chain(all(cnps)).collect()
            }
            Self::Flap(Flap { downs, .. }) => all(&[(Counter::LinkDowns, *downs)]),
            Self::Loss(Loss { direction, events, packets, .. }) => {
                let packets = [(Counter::Packets(Lane::Port, *direction), *packets)];
                [all(events), all(&packets)].concat()
            }
            Self::Exhaustion(Exhaustion { used, limit }) => vec![
                Measure::count("used", *used, "objects"),
                Measure::count("limit", *limit, "objects"),
                ratio("share", *used as f64 / (*limit).max(1) as f64, Vec::new()),
            ],
            Self::Vectors(VectorSkew { vectors, busiest, queues, total, ratio: times }) => vec![
                ratio("max_over_mean", *times, Vec::new()),
                Measure::count("busiest", *busiest as u64, "vector"),
                Measure::count("queues", *queues, "queues"),
                Measure::count("total", *total, "queues"),
                Measure::count("vectors", *vectors as u64, "vectors"),
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::{Span, UtcNs};

    fn episode(ongoing: bool, unseen: Option<Why>) -> Episode {
        Episode { span: Span { start: UtcNs(0), end: UtcNs(10) }, samples: 0..2, ongoing, unseen }
    }

    fn storm(ongoing: bool, unseen: Option<Why>) -> Evidence {
        let (direction, lane) = (Direction::Tx, Lane::Priority(3));
        Evidence::Storm(Storm {
            direction,
            lane,
            episode: episode(ongoing, unseen),
            share_min: 0.99,
            basis: Basis::Time,
        })
    }

    #[test]
    fn a_storm_is_told_by_its_pause_and_by_what_did_not_come() {
        let measures = storm(true, None).measures();
        let (paused, received) =
            (Counter::PauseTime(Lane::Priority(3), Direction::Tx), Counter::Packets(Lane::Priority(3), Direction::Rx));
        assert_eq!(
            measures,
            [
                Measure::new("share_min", Number::Real(0.99), "ratio", vec![paused]),
                Measure::new("carried", Number::Whole(0), "packets", vec![received]),
            ]
        );
    }

    #[test]
    fn what_goes_on_is_told_from_what_has_ended_and_from_what_is_out_of_sight() {
        let told = |evidence: Evidence| (evidence.is_ongoing(), evidence.unseen().is_some());
        assert_eq!(told(storm(true, None)), (true, false));
        assert_eq!(told(storm(false, None)), (false, false));
        assert_eq!(told(storm(false, Some(Why::NoLineRate))), (false, true));
        assert_eq!(told(Evidence::Exhaustion(Exhaustion { used: 95, limit: 100 })), (true, false));
    }

    #[test]
    fn every_count_has_the_unit_of_its_counter() {
        let signs = vec![(Counter::OutOfBuffer, 7), (Counter::BusStalls, 2)];
        let found = Evidence::Host(HostCongestion { episode: episode(true, None), signs }).measures();
        let found: Vec<_> = found.iter().map(|measure| (measure.name, measure.value, measure.unit)).collect();
        let expected = [("out_of_buffer", Number::Whole(7), "packets"), ("bus_stalls", Number::Whole(2), "seconds")];
        assert_eq!(found, expected);
    }
}

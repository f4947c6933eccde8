//! All detectors of one port, as one table.

use std::fmt;

use crate::congestion::{self, HostCongestion, HostLimits, NetworkCongestion};
use crate::counter_series::{Counter, CounterSeries, Lane};
use crate::delta::Gap;
use crate::link::{self, Flap, FlapLimits};
use crate::pause::{self, Pressure};
use crate::retransmission::{self, Loss, LossLimits};
use crate::series::Direction;
use crate::storm::{self, Reported, Storm};
use crate::verdict::{Hysteresis, Verdict, Why};

/// What the detectors of a port hold its counters against.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// What a pause frame asks for, where the device does not count the time.
    pub quanta: u16,
    /// Of [`pause::pressure`].
    pub pressure: Hysteresis,
    /// Of [`storm::storms`].
    pub storm: Hysteresis,
    /// Of [`storm::reported`].
    pub reported: Hysteresis,
    /// Of [`congestion::host`].
    pub host: HostLimits,
    /// Of [`congestion::network`].
    pub network: Hysteresis,
    /// Of [`link::flaps`].
    pub flap: FlapLimits,
    /// Of [`retransmission::losses`].
    pub loss: LossLimits,
}

impl Limits {
    /// The limits that hold if nothing else is said.
    pub const DEFAULT: Self = Self {
        quanta: pause::QUANTA_MAX,
        pressure: pause::PRESSURE,
        storm: storm::STORM,
        reported: storm::REPORTED,
        host: congestion::HOST,
        network: congestion::NETWORK,
        flap: link::FLAP,
        loss: retransmission::LOSS,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// What a detector of a port found.
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
        }
    }
}

/// One detector's answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// [`Detector::name`].
    pub detector: &'static str,
    /// What it looked at; `None` if that is the port as a whole.
    pub lane: Option<Lane>,
    /// The answer, with all that it found.
    pub verdict: Verdict<Vec<Evidence>>,
}

/// A detector of a port.
#[derive(Clone, Copy, Debug)]
pub struct Detector {
    /// The name used in output, files and metrics.
    pub name: &'static str,
    /// What it says when it fires.
    pub help: &'static str,
    run: Run,
}

#[derive(Clone, Copy, Debug)]
enum Run {
    Port(fn(&CounterSeries, &Limits) -> Verdict<Vec<Evidence>>),
    /// What happens seldom: it looks at samples that go back further.
    Link(fn(&CounterSeries, &Limits) -> Verdict<Vec<Evidence>>),
    /// Once for each lane that pause can stop in this direction.
    Lanes(Direction, fn(&CounterSeries, Lane, Direction, &Limits) -> Verdict<Vec<Evidence>>),
}

/// Every detector of a port.
pub const DETECTORS: [Detector; 9] = [
    Detector { name: "rx_pause", help: pause::meaning(Direction::Rx), run: Run::Lanes(Direction::Rx, pressure) },
    Detector { name: "tx_pause", help: pause::meaning(Direction::Tx), run: Run::Lanes(Direction::Tx, pressure) },
    Detector {
        name: "storm",
        help: "this host pauses the network all the time and receives nothing",
        run: Run::Lanes(Direction::Tx, storms),
    },
    Detector {
        name: "storm_victim",
        help: "the network pauses this host all the time, and it sends nothing",
        run: Run::Lanes(Direction::Rx, storms),
    },
    Detector {
        name: "storm_reported",
        help: "the device reports that it pauses the network for too long",
        run: Run::Port(|series, limits| all(storm::reported(series, &limits.reported), Evidence::Reported)),
    },
    Detector {
        name: "host_congestion",
        help: "this host pauses the network, and its buffers or its bus show why",
        run: Run::Port(|series, limits| all(congestion::host(series, &limits.host, limits.quanta), Evidence::Host)),
    },
    Detector {
        name: "network_congestion",
        help: "the network pauses this host, or marks what it carries to it",
        run: Run::Port(|series, limits| {
            all(congestion::network(series, &limits.network, limits.quanta), Evidence::Network)
        }),
    },
    Detector {
        name: "link_flap",
        help: "the link goes down again and again",
        run: Run::Link(|series, limits| all(link::flaps(series, &limits.flap), Evidence::Flap)),
    },
    Detector {
        name: "loss",
        help: "what is sent has to be sent again, or does not come in order",
        run: Run::Port(|series, limits| {
            let [tx, rx] = [Direction::Tx, Direction::Rx]
                .map(|direction| all(retransmission::losses(series, direction, &limits.loss), Evidence::Loss));
            either(tx, rx)
        }),
    },
];

fn pressure(series: &CounterSeries, lane: Lane, direction: Direction, limits: &Limits) -> Verdict<Vec<Evidence>> {
    all(pause::pressure(series, lane, direction, &limits.pressure, limits.quanta), Evidence::Pressure)
}

fn storms(series: &CounterSeries, lane: Lane, direction: Direction, limits: &Limits) -> Verdict<Vec<Evidence>> {
    all(storm::storms(series, lane, direction, &limits.storm, limits.quanta), Evidence::Storm)
}

fn all<E>(verdict: Verdict<Vec<E>>, of: fn(E) -> Evidence) -> Verdict<Vec<Evidence>> {
    verdict.map(|found| found.into_iter().map(of).collect())
}

/// Both answers as one.
fn either(one: Verdict<Vec<Evidence>>, other: Verdict<Vec<Evidence>>) -> Verdict<Vec<Evidence>> {
    match (one, other) {
        (Verdict::Firing(mut found), Verdict::Firing(more)) => {
            found.extend(more);
            Verdict::Firing(found)
        }
        (Verdict::Firing(found), _) | (_, Verdict::Firing(found)) => Verdict::Firing(found),
        (Verdict::CannotTell(why), _) | (_, Verdict::CannotTell(why)) => Verdict::CannotTell(why),
        (Verdict::Quiet, Verdict::Quiet) => Verdict::Quiet,
    }
}

impl Detector {
    /// What it says of a port's samples: one answer for each lane, or one for the port. `link` has the samples of
    /// [`Counter::LinkDowns`] alone, over a longer time.
    #[must_use]
    pub fn run(&self, series: &CounterSeries, link: &CounterSeries, limits: &Limits) -> Vec<Finding> {
        let say = |lane, verdict| Finding { detector: self.name, lane, verdict };
        match self.run {
            Run::Port(run) => vec![say(None, run(series, limits))],
            Run::Link(run) => vec![say(None, run(link, limits))],
            Run::Lanes(direction, run) => {
                let lanes = series.lanes(direction);
                if lanes.is_empty() {
                    let counter = Counter::PauseFrames(Lane::Port, direction);
                    return vec![say(None, Verdict::CannotTell(Why::absent(counter, Gap::NotOffered)))];
                }
                lanes.into_iter().map(|lane| say(Some(lane), run(series, lane, direction, limits))).collect()
            }
        }
    }
}

/// What every detector says of a port's samples.
#[must_use]
pub fn findings(series: &CounterSeries, limits: &Limits) -> Vec<Finding> {
    findings_with_link(series, series, limits)
}

/// The same, with samples of [`Counter::LinkDowns`] that go back further than the others.
#[must_use]
pub fn findings_with_link(series: &CounterSeries, link: &CounterSeries, limits: &Limits) -> Vec<Finding> {
    DETECTORS.iter().flat_map(|detector| detector.run(series, link, limits)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counter_series::When;
    use crate::series::{DurationNs, UtcNs};

    #[test]
    fn without_counters_no_detector_can_tell() {
        let mut series = CounterSeries::new(None, 9);
        for _ in 0..2 {
            for finding in findings(&series, &Limits::DEFAULT) {
                assert_eq!((finding.verdict.name(), finding.lane), ("cannot tell", None), "{}", finding.detector);
            }
            for at in 0..3 {
                series.push(When { start: UtcNs(at * 1_000), length: DurationNs(1_000) }, []);
            }
        }
    }

    #[test]
    fn each_lane_has_an_answer_of_its_own() {
        let mut series = CounterSeries::new(None, 9);
        let time = |priority| Counter::PauseTime(Lane::Priority(priority), Direction::Tx);
        for at in 0..3 {
            let when = When { start: UtcNs(at * 1_000), length: DurationNs(1_000) };
            series.push(when, [(time(3), Ok(1_000)), (time(4), Ok(0))]);
        }
        let found: Vec<_> = findings(&series, &Limits::DEFAULT)
            .into_iter()
            .filter(|finding| finding.lane.is_some())
            .map(|finding| (finding.detector, finding.lane, finding.verdict.name()))
            .collect();
        let (three, four) = (Some(Lane::Priority(3)), Some(Lane::Priority(4)));
        assert_eq!(
            found,
            [
                ("tx_pause", three, "firing"),
                ("tx_pause", four, "quiet"),
                ("storm", three, "cannot tell"),
                ("storm", four, "quiet"),
            ]
        );
    }

    #[test]
    fn names_are_unique() {
        for (at, detector) in DETECTORS.iter().enumerate() {
            assert!(DETECTORS.iter().skip(at + 1).all(|other| other.name != detector.name), "{}", detector.name);
        }
    }
}

//! Congestion that is more than pause: a host that drops what it is sent, and a network that marks what it carries.

use std::fmt;

use crate::counter_series::{Counter, CounterSeries, Lane};
use crate::delta::Gap;
use crate::pause::{self, meaning, occupancy};
use crate::series::{Direction, DurationNs};
use crate::sum::Sum;
use crate::verdict::{Episode, Hysteresis, Level, Verdict, Why, episodes};

/// When a host counts as congested.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HostLimits {
    /// Tx pause for this share of a sample counts.
    pub pause: f64,
    /// Signs within this time of each other belong together: devices count bus stalls in whole seconds.
    pub hold: DurationNs,
    /// Over the count of the other signs.
    pub signs: Hysteresis,
}

/// A hundredth of the time, and one sign beside it, over two samples. The project's own choice.
pub const HOST: HostLimits = HostLimits {
    pause: 0.01,
    hold: DurationNs(1_000_000_000),
    signs: Hysteresis { enter: 1.0, leave: 1.0, enter_samples: 2, leave_samples: 2 },
};

/// A hundredth of the time or of the packets, over two samples. The project's own choice.
pub const NETWORK: Hysteresis = Hysteresis { enter: 0.01, leave: 0.005, enter_samples: 2, leave_samples: 2 };

/// A time in which this host could not take what it was sent, and where that showed.
#[derive(Clone, Debug, PartialEq)]
pub struct HostCongestion {
    /// When.
    pub episode: Episode,
    /// What moved beside tx pause, and by how much.
    pub signs: Vec<(Counter, u64)>,
}

impl fmt::Display for HostCongestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: for {}", meaning(Direction::Tx), self.episode)?;
        list(f, &self.signs)
    }
}

fn list(f: &mut fmt::Formatter<'_>, signs: &[(Counter, u64)]) -> fmt::Result {
    signs.iter().try_for_each(|(counter, count)| write!(f, ", {count} {counter}"))
}

/// What a host that cannot take its traffic counts beside tx pause.
fn host_signs(series: &CounterSeries) -> Vec<Counter> {
    let of_lanes = series.counters().filter(|counter| matches!(counter, Counter::BufferDiscards(_)));
    let others = [Counter::OutOfBuffer, Counter::BusStalls, Counter::BusDiscards, Counter::Discards(Direction::Rx)];
    of_lanes.chain(others).collect()
}

/// Whether this host holds the network back and shows why: buffers that are full, a bus that stalls.
#[must_use]
pub fn host(series: &CounterSeries, limits: &HostLimits, quanta: u16) -> Verdict<Vec<HostCongestion>> {
    let signs = host_signs(series);
    if series.len() >= limits.signs.enter_samples && series.is_still(signs.iter().copied()) {
        return Verdict::Quiet;
    }
    let paused: Vec<Level> = (0..series.len()).map(|at| tx_paused(series, limits, quanta, at)).collect();
    let found = episodes(series, &limits.signs, |at| {
        let recent = series.back(at, limits.hold);
        let sign = Sum::of(series, signs.iter().copied(), recent.clone());
        let sign = sign.level(|count| limits.signs.level(count as f64));
        let pause = paused.get(recent).unwrap_or_default();
        match (sign, either(pause.iter().copied())) {
            (Level::Low, _) | (_, Level::Low) => Level::Low,
            (Level::Unknown(why), _) | (_, Level::Unknown(why)) => Level::Unknown(why),
            (sign, _) => sign,
        }
    });
    found.map(|episodes| {
        let evidence = episodes.into_iter().map(|episode| {
            let start = series.back(episode.samples.start, limits.hold).start;
            let known = |counter| Some((counter, series.known(counter, start..episode.samples.end)?));
            let moved = signs.iter().filter_map(|&counter| known(counter)).filter(|(_, count)| *count > 0);
            HostCongestion { signs: moved.collect(), episode }
        });
        evidence.collect()
    })
}

fn tx_paused(series: &CounterSeries, limits: &HostLimits, quanta: u16, at: usize) -> Level {
    let limits = Hysteresis { enter: limits.pause, leave: limits.pause, ..limits.signs };
    pause_level(series, Direction::Tx, &limits, quanta, at)
}

/// The highest level of any lane's pause.
fn pause_level(series: &CounterSeries, direction: Direction, limits: &Hysteresis, quanta: u16, at: usize) -> Level {
    let lanes = series.lanes(direction);
    if lanes.is_empty() {
        return Level::Unknown(Why::absent(Counter::PauseFrames(Lane::Port, direction), Gap::NotOffered));
    }
    either(lanes.into_iter().map(|lane| match occupancy(series, lane, direction, at, quanta) {
        Ok(known) => limits.level(known.share),
        Err(why) => Level::Unknown(why),
    }))
}

/// The highest of several levels; an unknown one may be higher than all but the highest.
fn either(levels: impl Iterator<Item = Level>) -> Level {
    levels.fold(Level::Low, |so_far, level| match (so_far, level) {
        (Level::High, _) | (_, Level::High) => Level::High,
        (Level::Unknown(why), _) | (_, Level::Unknown(why)) => Level::Unknown(why),
        (Level::Middle, _) | (_, Level::Middle) => Level::Middle,
        (Level::Low, Level::Low) => Level::Low,
    })
}

/// A time in which the network was congested, as it showed at this host.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkCongestion {
    /// When.
    pub episode: Episode,
    /// The largest share of a sample in which the network paused a lane of this host; `None` if pause is not measured.
    pub pause_max: Option<f64>,
    /// Of the packets that came, the share that was marked, if that is measured.
    pub marked: Option<f64>,
    /// CNPs, which support the rest and are never the only evidence: firmware has been seen to count them wrong.
    pub cnps: Vec<(Counter, u64)>,
}

impl fmt::Display for NetworkCongestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the network is congested: for {}", self.episode)?;
        if let Some(share) = self.pause_max.filter(|share| *share > 0.0) {
            write!(f, ", up to {:.1} % of a sample paused ({})", share * 100.0, meaning(Direction::Rx))?;
        }
        if let Some(share) = self.marked.filter(|share| *share > 0.0) {
            write!(f, ", {:.1} % of the packets that came were marked on their way", share * 100.0)?;
        }
        list(f, &self.cnps)
    }
}

/// Whether the network pauses this host or marks what it sends here.
#[must_use]
pub fn network(series: &CounterSeries, limits: &Hysteresis, quanta: u16) -> Verdict<Vec<NetworkCongestion>> {
    let lanes = series.lanes(Direction::Rx);
    let counted = [Counter::EcnMarked, Counter::CnpHandled, Counter::CnpSent];
    let is_marked = series.offers(Counter::EcnMarked);
    let is_still = (!lanes.is_empty() || is_marked)
        && lanes.iter().all(|lane| pause::is_still(series, *lane, Direction::Rx))
        && counted.into_iter().all(|counter| !series.offers(counter) || series.is_still([counter]));
    if series.len() >= limits.enter_samples && is_still {
        return Verdict::Quiet;
    }
    let found = episodes(series, limits, |at| {
        let signs = [
            (!lanes.is_empty()).then(|| pause_level(series, Direction::Rx, limits, quanta, at)),
            is_marked.then(|| share(series, Counter::EcnMarked, Direction::Rx, limits, at)),
        ];
        if signs.contains(&Some(Level::High)) {
            return Level::High;
        }
        let cnps = [(Counter::CnpHandled, Direction::Tx), (Counter::CnpSent, Direction::Rx)];
        for (counter, direction) in cnps {
            if let (Ok(count), Level::High) = (series.delta(counter, at), share(series, counter, direction, limits, at))
            {
                return Level::Unknown(Why::OnlyCnps(count));
            }
        }
        if signs == [None, None] {
            return Level::Unknown(Why::absent(Counter::EcnMarked, Gap::NotOffered));
        }
        either(signs.into_iter().flatten())
    });
    found.map(|episodes| episodes.into_iter().map(|episode| seen(series, episode, quanta)).collect())
}

/// The level of a count's share of the port's packets.
fn share(series: &CounterSeries, counter: Counter, direction: Direction, limits: &Hysteresis, at: usize) -> Level {
    let packets = Counter::Packets(Lane::Port, direction);
    match (series.delta(counter, at), series.delta(packets, at)) {
        (Ok(0), _) => Level::Low,
        (Ok(count), Ok(packets)) => limits.level(count as f64 / packets.max(count) as f64),
        (Err(gap), _) => Level::Unknown(Why::absent(counter, gap)),
        (_, Err(gap)) => Level::Unknown(Why::absent(packets, gap)),
    }
}

fn seen(series: &CounterSeries, episode: Episode, quanta: u16) -> NetworkCongestion {
    let (mut pause_max, mut marked, mut packets) = (None::<f64>, None, 0u64);
    for at in episode.samples.clone() {
        for lane in series.lanes(Direction::Rx) {
            if let Ok(known) = occupancy(series, lane, Direction::Rx, at, quanta) {
                pause_max = Some(pause_max.unwrap_or(0.0).max(known.share));
            }
        }
        if let (Ok(count), Ok(all)) =
            (series.delta(Counter::EcnMarked, at), series.delta(Counter::Packets(Lane::Port, Direction::Rx), at))
        {
            marked = Some(marked.unwrap_or(0u64).saturating_add(count));
            packets = packets.saturating_add(all.max(count));
        }
    }
    let marked = marked.map(|marked| marked as f64 / packets.max(1) as f64);
    let known = |counter| Some((counter, series.known(counter, episode.samples.clone()).filter(|count| *count > 0)?));
    let cnps = [Counter::CnpSent, Counter::CnpHandled].into_iter().filter_map(known).collect();
    NetworkCongestion { pause_max, marked, cnps, episode }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counter_series::When;
    use crate::delta::Delta;
    use crate::pause::QUANTA_MAX;
    use crate::series::UtcNs;

    const LANE: Lane = Lane::Priority(3);
    const TX_PAUSE: Counter = Counter::PauseTime(LANE, Direction::Tx);
    const RX_PAUSE: Counter = Counter::PauseTime(LANE, Direction::Rx);
    const RX_PACKETS: Counter = Counter::Packets(Lane::Port, Direction::Rx);

    /// Three samples of one second that are alike.
    fn three(values: &[(Counter, Delta)]) -> CounterSeries {
        let mut series = CounterSeries::new(None, 99);
        for at in 0..3 {
            let when = When { start: UtcNs(at * 1_000_000_000), length: DurationNs(1_000_000_000) };
            series.push(when, values.iter().copied());
        }
        series
    }

    const PAUSED: (Counter, Delta) = (TX_PAUSE, Ok(10_000_000));

    #[test]
    fn a_host_is_congested_if_it_pauses_and_shows_why() {
        let why = |counter, gap| Verdict::CannotTell(Why::absent(counter, gap));
        let stalls = Counter::BusStalls;
        let signs = [stalls, Counter::OutOfBuffer, Counter::BusDiscards, Counter::BufferDiscards(LANE)];
        for sign in signs {
            let expected = Verdict::Firing(vec![(sign, 3)]);
            let found = host(&three(&[PAUSED, (sign, Ok(1))]), &HOST, QUANTA_MAX);
            assert_eq!(found.map(|mut found| found.remove(0).signs), expected);
        }
        let rows: [(&[(Counter, Delta)], _); 7] = [
            (&[PAUSED, (stalls, Ok(0))], Verdict::Quiet),
            (&[(TX_PAUSE, Ok(9_999_999)), (stalls, Ok(1))], Verdict::Quiet),
            (&[(TX_PAUSE, Err(Gap::Reset)), (stalls, Ok(0))], Verdict::Quiet),
            (&[(RX_PAUSE, Ok(10_000_000)), (stalls, Ok(1))], {
                why(Counter::PauseFrames(Lane::Port, Direction::Tx), Gap::NotOffered)
            }),
            (&[PAUSED], why(Counter::OutOfBuffer, Gap::NotOffered)),
            (&[PAUSED, (stalls, Err(Gap::Unread))], why(stalls, Gap::Unread)),
            (&[(TX_PAUSE, Err(Gap::Reset)), (stalls, Ok(1))], why(TX_PAUSE, Gap::Reset)),
        ];
        for (values, expected) in rows {
            assert_eq!(host(&three(values), &HOST, QUANTA_MAX), expected, "{values:?}");
        }
    }

    #[test]
    fn signs_that_are_counted_by_the_second_belong_to_a_pause_of_milliseconds() {
        let mut series = CounterSeries::new(None, 99);
        for at in 0..40i64 {
            let when = When { start: UtcNs(at * 100_000_000), length: DurationNs(100_000_000) };
            let paused = if at % 5 == 0 { 50_000_000 } else { 0 };
            series.push(when, [(TX_PAUSE, Ok(paused)), (Counter::BusStalls, Ok(u64::from(at % 10 == 9)))]);
        }
        let Verdict::Firing(found) = host(&series, &HOST, QUANTA_MAX) else { panic!() };
        assert_eq!((found.len(), found[0].episode.samples.clone()), (1, 9..40));
        assert_eq!(
            found[0].to_string(),
            "tx pause: this host cannot take what the network sends: for 3.100 s and going on, 4 seconds of bus stall"
        );
    }

    #[test]
    fn cnps_are_never_the_only_evidence() {
        let (handled, marked) = (Counter::CnpHandled, Counter::EcnMarked);
        let sent = Counter::Packets(Lane::Port, Direction::Tx);
        let packets = [(RX_PACKETS, Ok(1_000)), (sent, Ok(1_000))];
        let rows: [(&[(Counter, Delta)], &str); 9] = [
            (&[(marked, Ok(10))], "firing"),
            (&[(marked, Ok(9))], "quiet"),
            (&[(marked, Ok(0)), (handled, Ok(9))], "quiet"),
            (&[(marked, Ok(0)), (handled, Ok(10))], "cannot tell"),
            (&[(marked, Ok(10)), (handled, Ok(10))], "firing"),
            (&[(RX_PAUSE, Ok(10_000_000)), (handled, Ok(10))], "firing"),
            (&[(RX_PAUSE, Ok(0)), (handled, Ok(0))], "quiet"),
            (&[(handled, Ok(0))], "cannot tell"),
            (&[(RX_PAUSE, Ok(0)), (marked, Err(Gap::Unread))], "cannot tell"),
        ];
        for (values, expected) in rows {
            let found = network(&three(&[&packets, values].concat()), &NETWORK, QUANTA_MAX);
            assert_eq!(found.name(), expected, "{values:?}: {found:?}");
        }
        let found = network(&three(&[&packets[..], &[(marked, Ok(0)), (handled, Ok(10))]].concat()), &NETWORK, 1);
        assert_eq!(found, Verdict::CannotTell(Why::OnlyCnps(10)));
    }

    #[test]
    fn what_is_seen_is_told() {
        let values = [(RX_PAUSE, Ok(20_000_000)), (RX_PACKETS, Ok(100)), (Counter::EcnMarked, Ok(3))];
        let series = three(&[&values[..], &[(Counter::CnpSent, Ok(2))]].concat());
        let Verdict::Firing(found) = network(&series, &NETWORK, QUANTA_MAX) else { panic!() };
        assert_eq!(
            found[0].to_string(),
            "the network is congested: for 3.000 s and going on, up to 2.0 % of a sample paused (rx pause: the network \
             cannot take what this host sends), 3.0 % of the packets that came were marked on their way, 6 CNPs sent"
        );
    }
}

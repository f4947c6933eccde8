//! What happens on a host, and what is true about it.

use analysis::counter_series::Counter;
use analysis::series::Direction::{Rx, Tx};

use crate::device::{Phase, frames, packets, port_packets, time};
use crate::random::Random;

/// What is true of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Truth {
    /// The detector's condition held.
    Held,
    /// It did not hold.
    Not,
    /// Nobody could know from these counters.
    Unknowable,
}

/// A scenario, for one detector.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scenario {
    pub(crate) detector: &'static str,
    pub(crate) name: &'static str,
    pub(crate) truth: Truth,
    /// Seconds between two readings.
    pub(crate) interval: f64,
    pub(crate) counters: &'static [Counter],
    pub(crate) phases: fn(&mut Random) -> Vec<Phase>,
}

/// A device that counts pause time, and one that counts frames only.
const TIMED: &[Counter] = &[time(Rx), time(Tx), packets(Rx), packets(Tx)];
const FRAMED: &[Counter] = &[frames(Rx), frames(Tx), packets(Rx), packets(Tx)];
const HOST: &[Counter] = &[time(Tx), packets(Rx), Counter::BusStalls, Counter::BufferDiscards(crate::device::LANE)];
const MARKS: &[Counter] =
    &[time(Rx), Counter::EcnMarked, Counter::CnpHandled, Counter::CnpSent, port_packets(Rx), port_packets(Tx)];
const LOSS: &[Counter] = &[
    Counter::SequenceErrors,
    Counter::Timeouts,
    Counter::OutOfSequence,
    Counter::ReceiverNotReady,
    port_packets(Rx),
    port_packets(Tx),
];

const FAST: f64 = 0.1;
const SLOW: f64 = 10.0;

/// Pause time is counted in nanoseconds; frames that follow on one another hold 335.5 us each at 100 Gbit/s and are
/// sent again at half of that.
const NS: f64 = 1e9;
const FRAMES: f64 = 2.0 / 335.5e-6;

const fn fast(
    detector: &'static str,
    name: &'static str,
    truth: Truth,
    counters: &'static [Counter],
    phases: fn(&mut Random) -> Vec<Phase>,
) -> Scenario {
    Scenario { detector, name, truth, interval: FAST, counters, phases }
}

const fn flap(name: &'static str, truth: Truth, phases: fn(&mut Random) -> Vec<Phase>) -> Scenario {
    Scenario { detector: "link_flap", name, truth, interval: SLOW, counters: &[Counter::LinkDowns], phases }
}

/// All of them.
pub(crate) const SCENARIOS: &[Scenario] = &[
    fast("storm", "pause, nothing received", Truth::Held, TIMED, |random| {
        around(random, |random| vec![(time(Tx), random.within(0.993..1.0) * NS), traffic(random, Tx)])
    }),
    fast("storm", "pause, nothing received, frames only", Truth::Held, FRAMED, |random| {
        around(random, |random| vec![(frames(Tx), random.within(1.0..1.5) * FRAMES), traffic(random, Tx)])
    }),
    fast("storm", "pause with progress", Truth::Not, TIMED, |random| {
        around(random, |random| vec![(time(Tx), NS), (packets(Rx), random.within(50.0..1e6))])
    }),
    fast("storm", "pause with progress, frames only", Truth::Not, FRAMED, |random| {
        around(random, |random| vec![(frames(Tx), FRAMES), (packets(Rx), random.within(50.0..1e6))])
    }),
    fast("storm", "much pause, nothing received", Truth::Not, TIMED, |random| {
        around(random, |random| vec![(time(Tx), random.within(0.5..0.98) * NS)])
    }),
    fast("storm", "pause of less than a sample", Truth::Not, TIMED, |random| {
        let seconds = random.within(0.02..0.15);
        vec![busy(random, 3.0), Phase { seconds, rates: vec![(time(Tx), NS)] }, busy(random, 3.0)]
    }),
    fast("storm", "the victim of one", Truth::Not, TIMED, |random| {
        around(random, |random| vec![(time(Rx), NS), traffic(random, Rx)])
    }),
    fast("storm", "idle", Truth::Not, TIMED, |_| vec![Phase { seconds: 6.0, rates: Vec::new() }]),
    fast("storm_victim", "pause, nothing sent", Truth::Held, TIMED, |random| {
        around(random, |random| vec![(time(Rx), random.within(0.993..1.0) * NS), traffic(random, Rx)])
    }),
    fast("storm_victim", "pause with progress", Truth::Not, TIMED, |random| {
        around(random, |random| vec![(time(Rx), NS), (packets(Tx), random.within(50.0..1e6))])
    }),
    fast("storm_victim", "the cause of one", Truth::Not, TIMED, |random| {
        around(random, |random| vec![(time(Tx), NS), traffic(random, Tx)])
    }),
    fast(
        "storm_reported",
        "the device reports",
        Truth::Held,
        &[Counter::StormWarnings, Counter::StormErrors],
        |random| {
            let counter = if random.chance(0.5) { Counter::StormErrors } else { Counter::StormWarnings };
            around(random, |random| vec![(counter, random.within(2.0..9.0))])
        },
    ),
    fast("storm_reported", "nothing", Truth::Not, &[Counter::StormWarnings, Counter::StormErrors], |random| {
        vec![busy(random, 6.0)]
    }),
    fast("rx_pause", "a good part of the time", Truth::Held, TIMED, |random| {
        around(random, |random| vec![(time(Rx), random.within(0.06..0.9) * NS), traffic(random, Tx)])
    }),
    fast("rx_pause", "little", Truth::Not, TIMED, |random| {
        around(random, |random| vec![(time(Rx), random.within(0.0..0.045) * NS), traffic(random, Tx)])
    }),
    fast("rx_pause", "the other way", Truth::Not, TIMED, |random| {
        around(random, |random| vec![(time(Tx), random.within(0.1..0.9) * NS), traffic(random, Rx)])
    }),
    fast("tx_pause", "a good part of the time, frames only", Truth::Held, FRAMED, |random| {
        around(random, |random| vec![(frames(Tx), random.within(0.06..1.0) * FRAMES / 2.0), traffic(random, Rx)])
    }),
    fast("tx_pause", "little, frames only", Truth::Not, FRAMED, |random| {
        around(random, |random| vec![(frames(Tx), random.within(0.0..0.04) * FRAMES / 2.0), traffic(random, Rx)])
    }),
    fast("host_congestion", "pause and stalls of the bus", Truth::Held, HOST, |random| {
        around(random, |random| vec![(time(Tx), random.within(0.02..0.9) * NS), (Counter::BusStalls, 1.0)])
    }),
    fast("host_congestion", "pause and full buffers", Truth::Held, HOST, |random| {
        let discards = Counter::BufferDiscards(crate::device::LANE);
        around(random, |random| vec![(time(Tx), 0.3 * NS), (discards, random.within(20.0..1e5))])
    }),
    fast("host_congestion", "pause alone", Truth::Not, HOST, |random| {
        around(random, |random| vec![(time(Tx), random.within(0.02..1.0) * NS)])
    }),
    fast("host_congestion", "stalls alone", Truth::Not, HOST, |random| {
        around(random, |_| vec![(Counter::BusStalls, 1.0)])
    }),
    fast("network_congestion", "marks", Truth::Held, MARKS, |random| {
        let (packets, share) = (random.within(1e5..1e7), random.within(0.02..0.5));
        marked(random, packets, &[(Counter::EcnMarked, share), (Counter::CnpSent, share / 3.0)])
    }),
    fast("network_congestion", "few marks", Truth::Not, MARKS, |random| {
        let (packets, share) = (random.within(1e5..1e7), random.within(0.0..0.009));
        marked(random, packets, &[(Counter::EcnMarked, share), (Counter::CnpSent, share / 3.0)])
    }),
    fast("network_congestion", "CNPs alone", Truth::Unknowable, MARKS, |random| {
        let (packets, share) = (random.within(1e5..1e7), random.within(0.02..0.5));
        marked(random, packets, &[(Counter::CnpHandled, share)])
    }),
    fast("loss", "what is sent", Truth::Held, LOSS, |random| {
        let (packets, share) = (random.within(1e6..1e7), random.within(1.5e-4..1e-2));
        marked(random, packets, &[(Counter::SequenceErrors, share / 2.0), (Counter::Timeouts, share / 2.0)])
    }),
    fast("loss", "what is received", Truth::Held, LOSS, |random| {
        let (packets, share) = (random.within(1e6..1e7), random.within(1.5e-4..1e-2));
        marked(random, packets, &[(Counter::OutOfSequence, share)])
    }),
    fast("loss", "little", Truth::Not, LOSS, |random| {
        let (packets, share) = (random.within(1e5..1e7), random.within(0.0..8e-5));
        marked(random, packets, &[(Counter::OutOfSequence, share), (Counter::SequenceErrors, share)])
    }),
    flap("three to six within nine minutes", Truth::Held, |random| {
        // Half of one more, so that no rounding takes the last.
        let downs = 3.5 + random.below(4) as f64;
        downs_in(random, downs, 540.0)
    }),
    flap("two", Truth::Not, |random| downs_in(random, 2.5, 540.0)),
    flap("one each eleven minutes", Truth::Not, |_| vec![steady(2_640.0, 1.0 / 660.0)]),
    flap("more than the counter holds", Truth::Unknowable, |_| {
        // A register that starts at 200 or more is full before the first reading; the others are by then, too.
        vec![steady(1.0, 400.0), steady(1_200.0, 0.0)]
    }),
];

fn traffic(random: &mut Random, direction: analysis::series::Direction) -> (Counter, f64) {
    (packets(direction), random.within(1e3..1e7))
}

/// Traffic both ways, some of it a little paused.
fn busy(random: &mut Random, seconds: f64) -> Phase {
    let pause = random.within(0.0..0.008) * NS;
    let packets = [traffic(random, Rx), traffic(random, Tx)];
    let port = [(port_packets(Rx), 1e6), (port_packets(Tx), 1e6)];
    let rates = [&packets[..], &port, &[(time(Rx), pause), (frames(Tx), FRAMES * 0.005)]].concat();
    Phase { seconds, rates }
}

/// One to five seconds of what `rates` says, with a busy time before and after it.
fn around(random: &mut Random, rates: impl Fn(&mut Random) -> Vec<(Counter, f64)>) -> Vec<Phase> {
    let seconds = random.within(1.0..5.0);
    let rates = rates(random);
    vec![busy(random, 2.0), Phase { seconds, rates }, busy(random, 2.0)]
}

/// As much as `share` of `packets` a second each way.
fn marked(random: &mut Random, packets: f64, shares: &[(Counter, f64)]) -> Vec<Phase> {
    let mut rates: Vec<_> = shares.iter().map(|(counter, share)| (*counter, share * packets)).collect();
    rates.extend([(port_packets(Rx), packets), (port_packets(Tx), packets)]);
    let seconds = random.within(1.0..5.0);
    vec![busy(random, 2.0), Phase { seconds, rates }, busy(random, 2.0)]
}

fn steady(seconds: f64, downs: f64) -> Phase {
    Phase { seconds, rates: vec![(Counter::LinkDowns, downs)] }
}

/// So many times down within `seconds`, and calm before and after.
fn downs_in(random: &mut Random, downs: f64, seconds: f64) -> Vec<Phase> {
    vec![steady(random.within(60.0..600.0), 0.0), steady(seconds, downs / seconds), steady(600.0, 0.0)]
}

//! A device whose registers are known at any time, and a reader that meets all that readers meet.

use analysis::counter_series::{Counter, CounterSeries, Lane, When};
use analysis::delta::{Delta, Gap, Tracker, Width};
use analysis::series::{BitsPerSecond, Direction, DurationNs, UtcNs};

use crate::random::Random;

pub(crate) const LINE: BitsPerSecond = BitsPerSecond(100_000_000_000);
pub(crate) const LANE: Lane = Lane::Priority(3);

/// When a run begins.
pub(crate) const EPOCH: i64 = 1_700_000_000_000_000_000;

/// Every device counts them.
const BYTES: Counter = Counter::Bytes(Lane::Port, Direction::Rx);

/// Packets a second that fill the line: 64 bytes each, and 20 bytes of preamble and gap.
const PACKETS_MAX: f64 = 100e9 / 8.0 / 84.0;

/// What the registers count a second, for so long.
#[derive(Clone, Debug)]
pub(crate) struct Phase {
    pub(crate) seconds: f64,
    pub(crate) rates: Vec<(Counter, f64)>,
}

/// What goes wrong between the device and the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// Readings come late, by up to one and a half intervals.
    Late,
    /// The device is made anew, once or twice.
    Reset,
    /// A counter in thirty cannot be read.
    Unread,
    /// A register answers all ones, once in a while.
    Nonsense,
    /// The reader is away for a while and starts anew.
    Away,
    /// The clock is set, forward or back.
    ClockSet,
}

impl Fault {
    pub(crate) const ALL: [Self; 7] =
        [Self::None, Self::Late, Self::Reset, Self::Unread, Self::Nonsense, Self::Away, Self::ClockSet];
}

struct Register {
    counter: Counter,
    width: Width,
    start: u64,
    tracker: Tracker,
}

impl Register {
    fn new(counter: Counter, random: &mut Random) -> Self {
        let width = width(counter);
        let start = match width {
            // No port carries so many bytes in its life.
            Width::Wraps64 if counter == BYTES => random.below(1 << 50),
            // As the seed has it, just before a wrap, or anywhere.
            Width::Wraps32 | Width::Wraps64 if random.chance(0.3) => width.max() - random.below(100_000),
            Width::Wraps64 => random.below(1 << 50),
            Width::Wraps32 => random.below(1 << 32),
            Width::Stops4 | Width::Stops8 | Width::Stops16 | Width::Stops32 => random.below(200),
        };
        Self { counter, width, start, tracker: Tracker::new(width) }
    }

    /// What it shows after `growth` since the device was made.
    fn shows(&self, growth: f64, made_anew: bool) -> u64 {
        let (start, growth) = (if made_anew { 0 } else { self.start }, growth as u64);
        if self.width.stops() {
            start.saturating_add(growth).min(self.width.max())
        } else {
            start.wrapping_add(growth) & self.width.max()
        }
    }

    /// What the reader makes of it.
    fn step(&mut self, shown: u64, seconds: f64, fault: Fault, random: &mut Random) -> Delta {
        if fault == Fault::Unread && random.chance(1.0 / 30.0) {
            if self.counter != Counter::LinkDowns {
                self.tracker.miss();
            }
            return Err(Gap::Unread);
        }
        let nonsense = fault == Fault::Nonsense && !self.width.stops() && random.chance(0.01);
        self.tracker.step(if nonsense { self.width.max() } else { shown }, self.growth_max(seconds))
    }

    /// The most that can have passed in an interval, and as much again for what the device had yet to show.
    fn growth_max(&self, seconds: f64) -> u64 {
        let rate = match self.counter {
            Counter::PauseTime(..) => 1e9,
            Counter::Bytes(..) => LINE.0 as f64 / 8.0,
            _ => PACKETS_MAX,
        };
        (seconds * rate * 2.0) as u64
    }
}

/// Pause time is kept in 64 bits, link downs in eight that stop, and counts of events often in 32.
const fn width(counter: Counter) -> Width {
    match counter {
        Counter::LinkDowns => Width::Stops8,
        Counter::Bytes(..) | Counter::PauseTime(..) | Counter::PauseFrames(..) => Width::Wraps64,
        _ => Width::Wraps32,
    }
}

/// Counts of `counter` up to `time`.
pub(crate) fn count(phases: &[Phase], counter: Counter, time: f64) -> f64 {
    let (mut sum, mut start) = (0.0, 0.0);
    for phase in phases {
        let inside = (time - start).clamp(0.0, phase.seconds);
        if counter == BYTES {
            sum += inside * 1e9;
        }
        let rates = phase.rates.iter().filter(|(of, _)| *of == counter);
        sum += rates.map(|(_, rate)| rate * inside).sum::<f64>();
        start += phase.seconds;
    }
    sum
}

/// When the device was made anew, when the reader was away, when the clock was set and by how much.
struct Accidents {
    resets: Vec<f64>,
    away: Option<(f64, f64)>,
    clock: Option<(f64, f64)>,
}

impl Accidents {
    fn of(fault: Fault, random: &mut Random, end: f64, interval: f64) -> Self {
        let mut accidents = Self { resets: Vec::new(), away: None, clock: None };
        match fault {
            Fault::Reset => accidents.resets = (0..=random.below(2)).map(|_| random.within(0.0..end)).collect(),
            Fault::Away => accidents.away = Some((random.within(0.0..end), random.within(2.0..8.0) * interval)),
            Fault::ClockSet => {
                let by = random.within(0.5..60.0) * if random.chance(0.5) { 1.0 } else { -1.0 };
                accidents.clock = Some((random.within(0.0..end), by));
            }
            Fault::None | Fault::Late | Fault::Unread | Fault::Nonsense => {}
        }
        accidents.resets.sort_by(f64::total_cmp);
        // Made anew twice within a sample, it may show more than it did before: nobody could tell from its values.
        accidents.resets.dedup_by(|next, reset| *next - *reset < 3.0 * interval);
        accidents
    }

    fn utc(&self, time: f64) -> UtcNs {
        let set = self.clock.map_or(0.0, |(at, by)| if time >= at { by } else { 0.0 });
        UtcNs(EPOCH + ((time + set) * 1e9) as i64)
    }
}

/// What a reader makes of a device that goes through `phases`, at about `interval` seconds a reading.
pub(crate) fn read(
    phases: &[Phase],
    counters: &[Counter],
    interval: f64,
    fault: Fault,
    random: &mut Random,
) -> CounterSeries {
    let counters = counters.iter().copied().chain([BYTES]);
    let mut registers: Vec<Register> = counters.map(|counter| Register::new(counter, random)).collect();
    let end: f64 = phases.iter().map(|phase| phase.seconds).sum();
    let accidents = Accidents::of(fault, random, end, interval);
    let mut series = CounterSeries::new(Some(LINE), 10_000);
    let (mut time, mut before) = (random.within(0.0..interval), None::<f64>);
    while time < end {
        if let Some((at, length)) = accidents.away.filter(|(at, length)| (*at..at + length).contains(&time)) {
            (time, before) = (at + length, None);
            registers.iter_mut().for_each(|register| register.tracker = Tracker::new(register.width));
            continue;
        }
        // A device shows what it counted a little while ago.
        let seen = (time - random.within(0.0..interval / 1_000.0)).max(0.0);
        let made = accidents.resets.iter().copied().rfind(|reset| *reset <= seen);
        let seconds = before.map_or(0.0, |before| time - before);
        let mut values = Vec::new();
        for register in &mut registers {
            let growth = count(phases, register.counter, seen)
                - made.map_or(0.0, |made| count(phases, register.counter, made).floor());
            let shown = register.shows(growth.max(0.0), made.is_some());
            values.push((register.counter, register.step(shown, seconds, fault, random)));
        }
        if values.iter().any(|(_, delta)| *delta == Err(Gap::Reset)) {
            let all = values.iter_mut().zip(&registers);
            all.for_each(|((_, delta), register)| *delta = register.tracker.beside_reset(*delta));
        }
        if let Some(before) = before {
            series.push(When { start: accidents.utc(before), length: DurationNs((seconds * 1e9) as u64) }, values);
        }
        before = Some(time);
        let late = if fault == Fault::Late && random.chance(0.2) { random.within(0.1..1.5) } else { 0.0 };
        time += interval * (random.within(0.95..1.05) + late);
    }
    series
}

pub(crate) const fn time(direction: Direction) -> Counter {
    Counter::PauseTime(LANE, direction)
}

pub(crate) const fn frames(direction: Direction) -> Counter {
    Counter::PauseFrames(LANE, direction)
}

pub(crate) const fn packets(direction: Direction) -> Counter {
    Counter::Packets(LANE, direction)
}

pub(crate) const fn port_packets(direction: Direction) -> Counter {
    Counter::Packets(Lane::Port, direction)
}

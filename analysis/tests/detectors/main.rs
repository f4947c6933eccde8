//! The detectors against generated counters of which the truth is known: how often each is right.
//!
//! `cargo test -p analysis --test detectors -- --nocapture` prints the tables.

mod device;
mod random;
mod scenarios;

use analysis::counter_series::CounterSeries;
use analysis::pause::{Basis, QUANTA_MAX, occupancy, pause_time};
use analysis::port::{DETECTORS, Limits};
use analysis::series::{Direction, DurationNs, UtcNs};
use analysis::storm::{STORM, storms};
use analysis::verdict::Verdict;

use device::{EPOCH, Fault, LANE, LINE, Phase};
use random::Random;
use scenarios::{SCENARIOS, Scenario, Truth};

const SEEDS: u32 = 50;

/// How often a detector was right, and how often it left the question open.
#[derive(Clone, Copy, Debug, Default)]
struct Score {
    /// It fired, and rightly.
    hits: u32,
    /// It fired, and wrongly.
    false_alarms: u32,
    /// It was quiet, and wrongly.
    misses: u32,
    /// It was quiet, and rightly.
    quiet: u32,
    /// It could not tell what was so.
    open_held: u32,
    /// It could not tell what was not so.
    open_not: u32,
    /// It could not tell, and nobody could have.
    unknowable: u32,
}

impl Score {
    fn take<E>(&mut self, truth: Truth, verdict: &Verdict<E>) {
        let place = match (truth, verdict) {
            (Truth::Held, Verdict::Firing(_)) => &mut self.hits,
            (Truth::Not | Truth::Unknowable, Verdict::Firing(_)) => &mut self.false_alarms,
            (Truth::Held | Truth::Unknowable, Verdict::Quiet) => &mut self.misses,
            (Truth::Not, Verdict::Quiet) => &mut self.quiet,
            (Truth::Held, Verdict::CannotTell(_)) => &mut self.open_held,
            (Truth::Not, Verdict::CannotTell(_)) => &mut self.open_not,
            (Truth::Unknowable, Verdict::CannotTell(_)) => &mut self.unknowable,
        };
        *place += 1;
    }

    fn add(&mut self, other: Self) {
        self.hits += other.hits;
        self.false_alarms += other.false_alarms;
        self.misses += other.misses;
        self.quiet += other.quiet;
        self.open_held += other.open_held;
        self.open_not += other.open_not;
        self.unknowable += other.unknowable;
    }

    /// Of the alarms, those that were right; `None` without any.
    fn precision(self) -> Option<f64> {
        share(self.hits, self.hits + self.false_alarms)
    }

    /// Of what was so, what it fired at; `None` if nothing was.
    fn recall(self) -> Option<f64> {
        share(self.hits, self.hits + self.misses + self.open_held)
    }

    /// Of what was not so, where it said so; `None` if all was.
    fn cleared(self) -> Option<f64> {
        share(self.quiet, self.quiet + self.false_alarms + self.open_not)
    }

    fn row(self, name: &str) -> String {
        let show = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.3}"));
        let [precision, recall, cleared] = [self.precision(), self.recall(), self.cleared()].map(show);
        let counts = [self.hits, self.false_alarms, self.misses, self.quiet, self.open_held + self.open_not];
        let counts: String = counts.iter().map(|count| format!("{count:>7}")).collect();
        format!("{name:<62} {precision:>9} {recall:>7} {cleared:>8}{counts} {:>10}", self.unknowable)
    }
}

fn share(part: u32, all: u32) -> Option<f64> {
    (all > 0).then(|| f64::from(part) / f64::from(all))
}

const HEAD: &str = "precision  recall  cleared   hits  false missed  quiet   open unknowable";

/// The answer of the scenario's detector.
fn answer(series: &CounterSeries, scenario: &Scenario) -> Verdict<usize> {
    let detector = DETECTORS.iter().find(|detector| detector.name == scenario.detector);
    let found = detector.expect("each scenario names a detector of the table").run(series, series, &Limits::DEFAULT);
    let own = found.into_iter().find(|finding| finding.lane.is_none_or(|lane| lane == LANE));
    own.expect("each device has the lane").verdict.map(|evidence| evidence.len())
}

fn score(scenario: &Scenario, fault: Fault) -> Score {
    let mut score = Score::default();
    for seed in 0..SEEDS {
        let mut random = Random::new(seed.into());
        let phases = (scenario.phases)(&mut random);
        let series = device::read(&phases, scenario.counters, scenario.interval, fault, &mut random);
        score.take(scenario.truth, &answer(&series, scenario));
    }
    score
}

#[test]
fn detectors_are_right_and_say_when_they_cannot_tell() {
    let mut wrong = Vec::new();
    let mut by_fault = Fault::ALL.map(|fault| (fault, Score::default()));
    let mut by_detector = DETECTORS.map(|detector| (detector.name, Score::default()));
    println!("{:<62} {HEAD}", format!("scenario, {SEEDS} seeds of each of {} faults", Fault::ALL.len()));
    for scenario in SCENARIOS {
        let name = format!("{}: {}", scenario.detector, scenario.name);
        let mut all = Score::default();
        for (fault, sum) in &mut by_fault {
            let score = score(scenario, *fault);
            sum.add(score);
            all.add(score);
            if !holds(scenario.truth, *fault, score) {
                wrong.push(score.row(&format!("{name}, {fault:?}")));
            }
        }
        println!("{}", all.row(&name));
        by_detector.iter_mut().filter(|(name, _)| *name == scenario.detector).for_each(|(_, sum)| sum.add(all));
    }
    println!("\n{:<62} {HEAD}", "detector, all scenarios and faults");
    by_detector.iter().for_each(|(name, score)| println!("{}", score.row(name)));
    println!("\n{:<62} {HEAD}", "fault, all scenarios");
    by_fault.iter().for_each(|(fault, score)| println!("{}", score.row(&format!("{fault:?}"))));
    assert!(wrong.is_empty(), "{HEAD}\n{}", wrong.join("\n"));
    for (name, score) in by_detector {
        assert_eq!(score.precision(), Some(1.0), "{name}");
        assert!(score.recall() >= Some(0.98), "{name}: {:?}", score.recall());
    }
}

/// No wrong answer, whatever goes wrong with the readings; where nothing does, hardly an open question (a register that
/// shows all ones in passing is not believed); and few of them at what is so where something does.
fn holds(truth: Truth, fault: Fault, score: Score) -> bool {
    let right = score.false_alarms == 0 && score.misses == 0;
    match (truth, fault) {
        (Truth::Held, Fault::None | Fault::Late) => right && score.recall() == Some(1.0),
        (Truth::Held, _) => right && score.recall() >= Some(0.95),
        (Truth::Not, Fault::None | Fault::Late) => right && score.cleared() >= Some(0.98),
        (Truth::Not, _) => right,
        // Made anew, a counter that was full counts again, and what it counts can be known.
        (Truth::Unknowable, Fault::Reset) => score.false_alarms == 0,
        (Truth::Unknowable, _) => right && score.unknowable == SEEDS,
    }
}

/// The share of a sample that a pause truly held, where the true time is `counter`'s.
fn truth(phases: &[Phase], start: UtcNs, length: DurationNs) -> f64 {
    let begin = (start.0 - EPOCH) as f64 / 1e9;
    let time = device::time(Direction::Tx);
    (device::count(phases, time, begin + length.seconds()) - device::count(phases, time, begin)) / length.0 as f64
}

#[test]
fn occupancy_is_that_of_the_time_that_passed() {
    let (mut samples, mut unknown, mut off_max) = (0u32, 0u32, 0.0f64);
    for fault in Fault::ALL.into_iter().filter(|fault| *fault != Fault::ClockSet) {
        for seed in 0..SEEDS {
            let mut random = Random::new(seed.into());
            let mut phase = || {
                let share = random.within(0.0..1.0);
                let rates = vec![(device::time(Direction::Tx), share * 1e9)];
                Phase { seconds: random.within(0.1..1.0), rates }
            };
            let phases: Vec<Phase> = (0..4).map(|_| phase()).collect();
            let series = device::read(&phases, &[device::time(Direction::Tx)], 0.1, fault, &mut random);
            for (at, when) in (0..series.len()).filter_map(|at| Some((at, series.when(at)?))) {
                samples += 1;
                let Ok(known) = occupancy(&series, LANE, Direction::Tx, at, QUANTA_MAX) else {
                    unknown += 1;
                    continue;
                };
                assert_eq!(known.basis, Basis::Time);
                let off = (known.share - truth(&phases, when.start, when.length)).abs();
                off_max = off_max.max(off);
                assert!(off < 0.01, "{fault:?}, seed {seed}, sample {at}: {known:?} is off by {off}");
            }
        }
    }
    println!("occupancy of {samples} samples: {unknown} unknown, the others off by at most {off_max:.5}");
    assert!(unknown * 10 < samples);
}

#[test]
fn pause_frames_bound_the_time_and_say_what_they_assume() {
    let frames = device::frames(Direction::Tx);
    for seed in 0..SEEDS {
        let mut random = Random::new(seed.into());
        // Frames of any size, as many as the time has room for.
        let quanta = random.within(1.0..f64::from(QUANTA_MAX)) as u16;
        let hold = pause_time(1, quanta, LINE).seconds();
        let rate = random.within(100.0..(1.0 / hold).clamp(101.0, 1e6));
        let rates = vec![(frames, rate), (device::time(Direction::Tx), rate * hold * 1e9)];
        let phases = vec![Phase { seconds: 3.0, rates }];
        let series = device::read(&phases, &[frames], 0.1, Fault::None, &mut random);
        for at in 0..series.len() {
            let (when, known) = (series.when(at).unwrap(), occupancy(&series, LANE, Direction::Tx, at, QUANTA_MAX));
            let Ok(known) = known else { continue };
            let share = truth(&phases, when.start, when.length);
            assert_eq!(known.basis, Basis::Frames { quanta: QUANTA_MAX });
            assert!(known.at_least <= share && share <= known.at_most + 0.01, "seed {seed}: {share}, {known:?}");
            // With the quanta that were sent, the share is the true one.
            let told = occupancy(&series, LANE, Direction::Tx, at, quanta).unwrap();
            assert!((told.share - share).abs() < 0.02, "seed {seed}: {share}, {told:?}");
        }
    }
}

#[test]
fn a_storm_is_placed_where_it_was() {
    for scenario in SCENARIOS.iter().filter(|scenario| scenario.detector == "storm" && scenario.truth == Truth::Held) {
        for seed in 0..SEEDS {
            let mut random = Random::new(seed.into());
            let phases = (scenario.phases)(&mut random);
            let series = device::read(&phases, scenario.counters, scenario.interval, Fault::None, &mut random);
            let found = storms(&series, LANE, Direction::Tx, &STORM, QUANTA_MAX);
            let Verdict::Firing(found) = found else { panic!("seed {seed}: {found:?}") };
            let [one] = &found[..] else { panic!("seed {seed}: {found:?}") };
            let seconds = |time: UtcNs| (time.0 - EPOCH) as f64 / 1e9;
            let (begin, length) = (phases[0].seconds, phases[1].seconds);
            // The sample in which it began, and that in which it ended, held progress.
            let late = seconds(one.episode.span.start) - begin;
            let early = begin + length - seconds(one.episode.span.end);
            let sample = scenario.interval * 1.06;
            assert!((-1e-3..sample).contains(&late) && (-1e-3..sample).contains(&early), "seed {seed}: {late} {early}");
            assert!(!one.episode.ongoing && one.share_min >= 0.99);
        }
    }
}

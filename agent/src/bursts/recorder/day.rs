//! A day of samples as a training host has it, through packing and retention.
//!
//! No two minutes are alike: jobs of different kinds begin and end through the day, the night is quiet but for a backup,
//! and each minute has its own seed. A day at a millisecond has 86.4 million buckets, which takes minutes to make: the
//! test makes one minute of each twenty at the full rate, spread over the day, and holds them against a twentieth of the
//! budget. `FABRICSCOPE_DAY=whole cargo test --release -p agent a_day_stays -- --nocapture` makes all of them.

use std::ops::Range;

use analysis::series::{DurationNs, Fields, Measured, Sample, Series, Sketch, Span, Traffic, UtcNs};

use super::disk::{Disk, DiskSettings, Store as _};
use crate::bursts::file;
use crate::config::limits;

const MS: u64 = 1_000_000;
const MINUTE: u64 = 60_000;
const MINUTES: u64 = 24 * 60;
const START: UtcNs = UtcNs(1_767_225_600_000_000_000);

/// Bytes of a millisecond at 100 Gbit/s.
const LINE: u64 = 12_500_000;

/// Numbers that look random and are the same each time (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % limit.max(1)
    }

    fn within(&mut self, range: Range<u64>) -> u64 {
        range.start + self.below(range.end - range.start)
    }

    fn once_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}

/// What the host does in a minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    /// Heartbeats and name look-ups.
    Idle,
    /// Requests of many clients, answered: a little in most milliseconds.
    Serving,
    /// Steps of so many milliseconds, the first part of each near line rate over so many connections.
    Training { step: u64, exchange: u64, flows: u64 },
    /// A model or a backup goes out at a steady rate, in percent of line rate.
    Copying { percent: u64 },
}

/// The day's plan: what is done in each minute.
fn plan(random: &mut Random) -> Vec<Doing> {
    let mut minutes = vec![Doing::Idle; MINUTES as usize];
    let mut set = |range: Range<u64>, doing: Doing| {
        minutes.iter_mut().take(range.end as usize).skip(range.start as usize).for_each(|minute| *minute = doing);
    };
    let backup = random.within(2 * 60..5 * 60);
    set(backup..backup + random.within(10..40), Doing::Copying { percent: 25 });
    // From about six in the morning on jobs follow each other, with pauses, to late in the evening.
    let mut at = random.within(5 * 60..7 * 60);
    while at < 23 * 60 {
        let end = at + random.within(20..150);
        if random.once_in(4) {
            set(at..end, Doing::Serving);
        } else {
            let step = random.within(180..1500);
            let exchange = step * random.within(10..60) / 100;
            set(at..end, Doing::Training { step, exchange, flows: random.within(4..64) });
            let mut checkpoint = at + 30;
            while checkpoint < end {
                set(checkpoint..checkpoint + 1, Doing::Copying { percent: 60 });
                checkpoint += 30;
            }
        }
        at = end + random.within(5..60);
    }
    minutes
}

/// So many flows, each in a bit of its own for the minute, of which each sends with the chance given.
fn sketch(random: &mut Random, first: u64, flows: u64, of_ten: u64) -> Sketch {
    let bits = (0..flows).filter(|_| random.below(10) < of_ten).map(|flow| (first + flow * 37) % 128);
    Sketch(bits.fold(0, |sketch, bit| sketch | 1 << bit))
}

/// What one direction carries in a millisecond.
fn millisecond(random: &mut Random, at: u64, doing: Doing, first: u64) -> Traffic {
    let (bytes, flows) = match doing {
        Doing::Training { step, exchange, flows } if at % step < exchange => {
            let near = LINE * random.within(86..100) / 100;
            (if random.below(10) < 7 { near } else { random.below(9_000_000) }, sketch(random, first, flows, 9))
        }
        Doing::Copying { percent } => (LINE * percent / 100 + random.below(200_000), sketch(random, first, 2, 10)),
        Doing::Serving if !random.once_in(4) => {
            let clients = random.within(1..30);
            (clients * random.within(200..20_000), sketch(random, random.0 % 128, clients, 8))
        }
        Doing::Training { .. } | Doing::Serving if random.once_in(3) => {
            (random.within(66..3000), Sketch(1 << (first % 128)))
        }
        _ if random.once_in(40) => (random.within(66..1500), Sketch(1 << random.below(128))),
        _ => return Traffic::default(),
    };
    let busy = bytes > LINE / 2;
    Traffic {
        bytes,
        packets: bytes / 4154 + random.within(1..20),
        ce_bytes: if busy && random.once_in(20) { bytes / random.within(1..10) } else { 0 },
        retransmit_bytes: if busy && random.once_in(50) { 4096 * random.within(1..20) } else { 0 },
        flows,
        ..Traffic::default()
    }
}

fn minute(number: u64, doing: Doing) -> Series {
    let mut random = Random(number);
    let first = random.below(128);
    let time = |at: u64| START.after(DurationNs((number * MINUTE + at) * MS));
    let mut samples = Vec::new();
    for at in 0..MINUTE {
        let day = number * MINUTE + at;
        let (rx, tx) = (millisecond(&mut random, day, doing, first), millisecond(&mut random, day, doing, first));
        if rx.bytes + tx.bytes > 0 {
            samples.push(Sample { start: time(at), length: DurationNs(MS), rx, tx });
        }
    }
    let rx = Measured { packets: true, ce: true, flows: true, ..Measured::BYTES };
    Series {
        host: "gpu-0042".to_owned(),
        netdev: "eth0".to_owned(),
        interval: DurationNs(MS),
        fields: Fields { rx, tx: Measured { retransmits: true, ..rx } },
        samples,
        covered: vec![Span { start: time(0), end: time(MINUTE) }],
        ..Series::default()
    }
}

#[test]
fn a_day_stays_within_the_budget_of_the_disk() {
    let every = if std::env::var("FABRICSCOPE_DAY").is_ok_and(|day| day == "whole") { 1 } else { 20 };
    let plan = plan(&mut Random(2026));
    let folder = tempfile::tempdir().unwrap();
    let budget = limits::RECORDER_BYTES / every;
    let age = std::time::Duration::from_secs(24 * 3600);
    let mut disk = Disk::new(DiskSettings { folder: folder.path().to_owned(), age, bytes: budget });
    let (mut made, mut day) = ([(0, 0, 0); 4], (0, 0));
    // One minute out of each so many, not always the same one.
    for number in (0..MINUTES / every).map(|group| group * every + Random(group).below(every)) {
        let doing = plan[number as usize];
        let series = minute(number, doing);
        let samples = series.samples.len() as u64;
        let bytes = file::pack(&series.into()).unwrap();
        let length = bytes.len() as u64;
        let kind = match doing {
            Doing::Idle => 0,
            Doing::Serving => 1,
            Doing::Training { .. } => 2,
            Doing::Copying { .. } => 3,
        };
        made[kind] = (made[kind].0 + 1, made[kind].1 + samples, made[kind].2 + length);
        day = (day.0 + samples * every, day.1 + length * every);
        let start = START.after(DurationNs(number * MINUTE * MS));
        disk.put("bursts-eth0", start, &bytes, start).unwrap();
    }
    for (name, (minutes, samples, bytes)) in ["idle", "serving", "training", "copying"].iter().zip(made) {
        let each = bytes as f64 / f64::from(u32::try_from(samples).unwrap());
        println!("{name}: {minutes} minutes, {samples} samples, {bytes} bytes, {each:.1} bytes a sample");
        assert!(minutes > 0 && each < 24.0, "{name}: {each}");
    }
    let each = day.1 as f64 / day.0 as f64;
    println!("a day, {every} minutes as one: {} samples, {} bytes, {each:.1} bytes a sample", day.0, day.1);
    println!("on disk (files, bytes) {:?} of {budget}", disk.usage());
    let on_disk: u64 =
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum();
    assert_eq!(disk.usage().1, on_disk);
    assert!(on_disk <= budget && day.0 < MINUTES * MINUTE, "{on_disk} of {budget}");
    assert!(day.0 > MINUTES * MINUTE / 5 && each < 16.0, "{day:?}");
    // The day fits: nothing of it had to go. With a fifth of the budget, only the last of it stays.
    assert_eq!(disk.usage().0, MINUTES / every);
    let mut small = Disk::new(DiskSettings { folder: folder.path().to_owned(), age, bytes: budget / 5 });
    drop(disk);
    small.open(START.after(DurationNs(MINUTES * MINUTE * MS))).unwrap();
    assert!(small.usage().1 <= budget / 5 && small.usage().1 > budget / 10, "{:?}", small.usage());
}

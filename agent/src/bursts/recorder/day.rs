//! A day of samples as a training host has it, through packing and retention.

use analysis::series::{DurationNs, Fields, Sample, Series, Sketch, Span, Traffic, UtcNs};

use super::disk::{Disk, DiskSettings, Store as _};
use crate::bursts::file;

const MS: u64 = 1_000_000;
const MINUTE: u64 = 60_000;

/// Numbers that look random and are the same each time (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// What a direction carries in a millisecond at 100 Gbit/s: a third of each training step near line rate over 24
/// connections, some of it marked and sent again; else now and then what any host says.
fn millisecond(random: &mut Random, at: u64, trains: bool) -> Traffic {
    let mut traffic = Traffic::default();
    if trains && at % 800 < 260 {
        traffic.bytes =
            if random.below(10) < 7 { 11_000_000 + random.below(1_400_000) } else { random.below(9_000_000) };
        traffic.packets = traffic.bytes / 4154 + random.below(40);
        traffic.ce_bytes = if random.below(20) == 0 { traffic.bytes / (1 + random.below(10)) } else { 0 };
        traffic.retransmit_bytes = if random.below(50) == 0 { 4096 * random.below(20) } else { 0 };
        for flow in (0..24).filter(|_| random.below(10) < 9) {
            traffic.flows.0 |= 1 << (flow * 37 % 128);
        }
    } else if random.below(if trains { 3 } else { 20 }) == 0 {
        traffic.packets = 1 + random.below(30);
        traffic.bytes = 66 * traffic.packets + random.below(1400);
        traffic.flows = Sketch(1 << random.below(128));
    }
    traffic
}

fn minute(number: u64, trains: bool) -> Series {
    let mut random = Random(number + 1);
    let time = |at: u64| UtcNs(1_767_225_600_000_000_000).after(DurationNs((number * MINUTE + at) * MS));
    let mut samples = Vec::new();
    for at in 0..MINUTE {
        let (rx, tx) = (millisecond(&mut random, at, trains), millisecond(&mut random, at, trains));
        if rx.bytes + tx.bytes > 0 {
            samples.push(Sample { start: time(at), length: DurationNs(MS), rx, tx });
        }
    }
    Series {
        host: "gpu-0042".to_owned(),
        netdev: "eth0".to_owned(),
        interval: DurationNs(MS),
        fields: Fields { packets: true, ce: true, retransmits_tx: true, flows: true, ..Fields::default() },
        samples,
        covered: vec![Span { start: time(0), end: time(MINUTE) }],
        ..Series::default()
    }
}

/// A minute of each hour is generated, and stands for the sixty of that hour. It trains in the first eight hours.
#[test]
fn a_day_stays_within_the_budget_of_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let budget = 100 << 20;
    let age = std::time::Duration::from_secs(3 * 24 * 3600);
    let mut disk = Disk::new(DiskSettings { folder: folder.path().to_owned(), age, bytes: budget });
    let (mut day_samples, mut day_bytes) = (0, 0);
    for hour in 0..24 {
        let series = minute(hour * 60, hour < 8);
        let samples = series.samples.len() as u64;
        let bytes = file::pack(&series.into()).unwrap();
        let (samples, length) = (samples, bytes.len() as u64);
        let each = length as f64 / samples as f64;
        println!("hour {hour}: {samples} samples a minute, {length} bytes, {each:.1} bytes a sample");
        assert!(each < 24.0, "{each}");
        for minute in hour * 60..hour * 60 + 60 {
            let start = UtcNs(1_767_225_600_000_000_000).after(DurationNs(minute * MINUTE * MS));
            disk.put("bursts-eth0", start, &bytes, start).unwrap();
        }
        (day_samples, day_bytes) = (day_samples + 60 * samples, day_bytes + 60 * length);
        let on_disk: u64 =
            std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum();
        assert_eq!(disk.usage().1, on_disk);
        assert!(on_disk <= budget, "{on_disk}");
    }
    let each = day_bytes as f64 / day_samples as f64;
    println!("a day: {day_samples} samples, {day_bytes} bytes, {each:.1} bytes a sample; on disk {:?}", disk.usage());
    assert!(day_bytes > 2 * budget && disk.usage().1 > budget - (2 << 20), "the budget was used up");
}

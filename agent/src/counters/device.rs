//! One device that is read: its blocks, what failed, and whether it is left alone for a while.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::Statistics;
use super::block::{Block, Gathered};
use super::catalogue::Source;
use super::readout::{Kind, Subject};
use super::relations::Relations;
use crate::config::limits;

/// A device.
#[derive(Debug)]
pub(super) struct Device {
    pub(super) kind: Kind,
    pub(super) name: String,
    /// Its module or bus driver.
    pub(super) driver: Option<String>,
    /// Another number for another device under the same name.
    pub(super) identity: u64,
    /// The RDMA device and port a network device belongs to.
    pub(super) port_of: Option<(String, u32)>,
    /// What it belongs to.
    pub(super) relations: Relations,
    /// Its index, of a network device that can be asked; or its number, of an RDMA device.
    pub(super) index: Option<u32>,
    pub(super) blocks: Vec<Block>,
    /// Priorities for which flow control is on, as last asked.
    pub(super) priorities: Option<u8>,
    failures: BTreeMap<&'static str, u64>,
    quarantine: Quarantine,
}

/// A device that answers with errors is left alone, for twice as long each time.
#[derive(Debug, Default)]
struct Quarantine {
    until: Option<Instant>,
    times: u32,
    why: String,
}

impl Quarantine {
    /// For how much longer.
    fn left(&self, now: Instant) -> Option<Duration> {
        self.until.and_then(|until| until.checked_duration_since(now)).filter(|left| !left.is_zero())
    }

    /// What a reading says: errors of the device itself, of so many counters asked. One that still answers is not left
    /// alone: what fails there rests by itself.
    fn judge(&mut self, errors: usize, asked: usize, why: &str, now: Instant) -> bool {
        if errors < limits::QUARANTINE_ERRORS || errors < asked {
            if asked > 0 {
                *self = Self::default();
            }
            return false;
        }
        let doublings = self.times.min(limits::QUARANTINE_DOUBLINGS);
        self.until = now.checked_add(limits::QUARANTINE_FIRST.saturating_mul(1 << doublings));
        self.times = self.times.saturating_add(1);
        why.clone_into(&mut self.why);
        true
    }
}

/// Found on the host, not yet read.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) kind: Kind,
    pub(super) name: String,
    pub(super) driver: Option<String>,
    pub(super) identity: u64,
    pub(super) port_of: Option<(String, u32)>,
    pub(super) relations: Relations,
    pub(super) index: Option<u32>,
    pub(super) blocks: Vec<Block>,
}

/// What the reading of one device was like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    /// Something is no longer there.
    pub(super) gone: bool,
}

impl Device {
    pub(super) fn new(facts: Facts) -> Self {
        let Facts { kind, name, driver, identity, port_of, relations, index, blocks } = facts;
        let (failures, quarantine) = (BTreeMap::new(), Quarantine::default());
        let priorities = None;
        Self { kind, name, driver, identity, port_of, relations, index, blocks, priorities, failures, quarantine }
    }

    /// What was known of a device of this name goes on; its counts do only if it is still the same one.
    pub(super) fn inherit(&mut self, mut old: Self) {
        self.failures = old.failures;
        if old.identity != self.identity {
            return;
        }
        self.quarantine = old.quarantine;
        self.priorities = old.priorities;
        for block in &mut self.blocks {
            if let Some(known) = old.blocks.iter_mut().find(|known| known.is_like(block)) {
                block.inherit(known);
            }
        }
    }

    /// Reads every block, unless the device is left alone.
    pub(super) fn read(
        &mut self,
        now: Instant,
        statistics: &dyn Statistics,
        durations: &mut BTreeMap<Source, Duration>,
        gathered: &mut Gathered,
    ) -> Outcome {
        let mut outcome = Outcome::default();
        if self.quarantine.left(now).is_some() {
            return outcome;
        }
        let (asked, failed) = (gathered.asked, gathered.failures.len());
        for block in &mut self.blocks {
            let began = Instant::now();
            block.read(self.identity, statistics, gathered);
            *durations.entry(block.source).or_default() += began.elapsed();
        }
        let (mut errors, mut why) = (0, String::new());
        for failed in gathered.failures.get(failed..).unwrap_or_default() {
            *self.failures.entry(failed.failure.reason()).or_default() += 1;
            outcome.gone |= failed.failure.is_gone();
            if failed.failure.is_device_error() {
                errors += 1;
                why = failed.failure.to_string();
            }
            if failed.first && !failed.failure.is_gone() {
                tracing::info!("counter {} of {} cannot be read: {}", failed.name, self.name, failed.failure);
            }
        }
        let why = format!("all of {errors} counters answered with errors, such as {why}");
        if self.quarantine.judge(errors, gathered.asked - asked, &why, now) {
            let left = self.quarantine.left(now).unwrap_or_default().as_secs();
            tracing::warn!("{} is left alone for {left} s: {why}", self.name);
        }
        outcome
    }

    /// How it is doing.
    pub(super) fn subject(&self, now: Instant) -> Subject {
        Subject {
            kind: self.kind,
            name: self.name.clone(),
            driver: self.driver.clone(),
            port_of: self.port_of.clone(),
            priorities: self.priorities,
            quarantined: self.quarantine.left(now).map(|left| (self.quarantine.why.clone(), left)),
            failures: self.failures.iter().map(|(reason, count)| (*reason, *count)).collect(),
            relations: self.relations.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After a reading with errors of so many asked: whether the device is left alone.
    #[track_caller]
    fn check(errors: usize, asked: usize, expected: bool) {
        let mut quarantine = Quarantine::default();
        assert_eq!(quarantine.judge(errors, asked, "", Instant::now()), expected, "{errors} of {asked}");
    }

    #[test]
    fn a_device_is_left_alone_for_errors_of_all_its_counters() {
        check(0, 40, false);
        check(1, 1, false);
        check(limits::QUARANTINE_ERRORS - 1, limits::QUARANTINE_ERRORS, false);
        check(limits::QUARANTINE_ERRORS, limits::QUARANTINE_ERRORS, true);
        check(40, 40, true);
        check(39, 40, false);
    }

    #[test]
    fn it_is_left_alone_for_twice_as_long_each_time_and_forgiven_at_once() {
        let now = Instant::now();
        let mut quarantine = Quarantine::default();
        let mut seen = Vec::new();
        for _ in 0..10 {
            quarantine.judge(40, 40, "EIO", now);
            seen.push(quarantine.left(now).unwrap().as_secs());
        }
        assert_eq!(seen, [60, 120, 240, 480, 960, 1920, 3840, 3840, 3840, 3840]);
        assert!(!quarantine.judge(0, 40, "", now));
        assert_eq!(quarantine.left(now), None);
        quarantine.judge(40, 40, "EIO", now);
        assert_eq!(quarantine.left(now).unwrap().as_secs(), 60);
        assert_eq!(quarantine.left(now + Duration::from_secs(60)), None);
    }
}

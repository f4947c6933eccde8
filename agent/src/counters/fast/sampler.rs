//! All sources of fast samples: which there are, when each is read, and the pieces that they make.

use std::io;
use std::time::Duration;

use analysis::counter_samples::{Column, CounterSamples};
use analysis::counter_series::When;
use analysis::series::{DurationNs, Span, UtcNs};

use super::choice::Choice;
use super::pace::{Change, Pace};
use super::source::{Fast, Reading};
use crate::bursts::clock::{Clocks, Placing, Window};
use crate::bursts::device::Origin;
use crate::config::limits;
use crate::counters::Statistics;
use crate::counters::device::Facts;
use crate::counters::discover::{Search, fingerprint};
use crate::counters::filter::Filter;
use crate::counters::readout::{Kind, Place};
use crate::host::links::stated_speed;
use crate::host::roots::Roots;

/// What a source has kept may be two ticks of the kernel's clock older than it says, and those may last 10 ms.
const TICKS: Duration = Duration::from_millis(20);

/// What is sampled.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    /// Where the devices stand.
    pub(crate) roots: Roots,
    /// Whose counters.
    pub(crate) filter: Filter,
    /// Which counters.
    pub(crate) choice: Choice,
    /// How often.
    pub(crate) interval: Duration,
    /// The host, as it stands in samples.
    pub(crate) origin: Origin,
}

/// A source, as it fares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Status {
    /// The device.
    pub(crate) device: String,
    /// Its port, of an RDMA device.
    pub(crate) port: Option<u32>,
    /// By which way it is read.
    pub(crate) source: &'static str,
    /// How many counters are sampled.
    pub(crate) counters: usize,
    /// The time from one reading to the next: as asked for, and as it is.
    pub(crate) asked: Duration,
    /// As it is.
    pub(crate) pace: Duration,
    /// Readings, and how long all of them took.
    pub(crate) readings: u64,
    /// All of them.
    pub(crate) took: Duration,
    /// Why it cannot be read at the moment.
    pub(crate) failing: Option<String>,
}

/// A source with what was read of it.
#[derive(Debug)]
struct Sampled {
    identity: u64,
    fast: Fast,
    pace: Pace,
    /// When it is read next, and when the last reading was that was new, by `CLOCK_MONOTONIC`.
    due: u64,
    last: Option<u64>,
    /// What has grown since then.
    carried: Vec<Option<u64>>,
    /// Samples since the last piece, their times by `CLOCK_MONOTONIC`.
    pending: CounterSamples,
    /// The longest that a reading took since then.
    longest: u64,
    readings: u64,
    took: Duration,
    /// It has answered since it was found.
    answered: bool,
    failed: u32,
    failing: Option<String>,
    /// It has to be looked for anew.
    stale: bool,
}

/// The sampler.
pub(crate) struct Sampler<C> {
    wish: Wish,
    statistics: Box<dyn Statistics>,
    clocks: C,
    placing: Placing,
    sources: Vec<Sampled>,
    fingerprint: Vec<(String, u64)>,
    looked: Option<u64>,
    left_out: usize,
    buffer: Vec<u64>,
}

fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// A time of `CLOCK_MONOTONIC` where samples have one of UTC.
fn raw(monotonic: u64) -> UtcNs {
    UtcNs(i64::try_from(monotonic).unwrap_or(i64::MAX))
}

impl<C: Clocks> Sampler<C> {
    /// A sampler that has looked for its sources.
    pub(crate) fn new(wish: Wish, statistics: Box<dyn Statistics>, clocks: C) -> Self {
        let placing = Placing::new(&clocks);
        let (sources, fingerprint, looked) = (Vec::new(), Vec::new(), None);
        let mut sampler =
            Self { wish, statistics, clocks, placing, sources, fingerprint, looked, left_out: 0, buffer: Vec::new() };
        sampler.look();
        sampler
    }

    /// Now, by `CLOCK_MONOTONIC`.
    pub(crate) fn now(&self) -> u64 {
        self.clocks.monotonic()
    }

    /// Reads every source whose time has come; when the next one's will have. `None` if there is none.
    pub(crate) fn turn(&mut self) -> Option<u64> {
        let parts = limits::FAST_SHARE.saturating_mul(u32::try_from(self.sources.len()).unwrap_or(u32::MAX));
        for source in &mut self.sources {
            if !source.stale && source.due <= self.clocks.monotonic() {
                source.read(&*self.statistics, &self.clocks, &mut self.buffer, parts);
            }
        }
        self.sources.iter().filter(|source| !source.stale).map(|source| source.due).min()
    }

    /// What was sampled since the last time, placed on UTC. Then it is looked whether devices have changed.
    pub(crate) fn flush(&mut self) -> Vec<CounterSamples> {
        let window = self.placing.window(&self.clocks);
        let pieces = self.sources.iter_mut().filter_map(|source| source.piece(&window)).collect();
        self.look();
        pieces
    }

    /// How the sources fare.
    pub(crate) fn status(&self) -> Vec<Status> {
        self.sources.iter().map(Sampled::status).collect()
    }

    /// Looks for sources if devices have changed, and from time to time in any case.
    fn look(&mut self) {
        let (now, found) = (self.clocks.monotonic(), fingerprint(&self.wish.roots));
        let recent = self.looked.is_some_and(|looked| now.saturating_sub(looked) < ns(limits::COUNTER_LOOK));
        let stale = self.sources.iter().any(|source| source.stale);
        if recent && !stale && found == self.fingerprint {
            return;
        }
        (self.fingerprint, self.looked) = (found, Some(now));
        let Wish { roots, filter, choice, .. } = &self.wish;
        let devices = Search { roots, filter, all: false, statistics: &*self.statistics }.devices();
        let mut old = std::mem::take(&mut self.sources);
        let mut left_out = 0;
        for facts in &devices {
            for block in &facts.blocks {
                let same = |known: &Sampled| {
                    let fast = &known.fast;
                    !known.stale
                        && known.identity == facts.identity
                        && (&*fast.place, fast.source) == (&*block.place, block.source)
                };
                let mut known = old.iter().position(same).map(|known| old.swap_remove(known));
                if known.is_none() {
                    let fast = Fast::of(block, choice, &*self.statistics);
                    known = fast.map(|fast| Sampled::new(facts.identity, fast, &self.wish, now));
                }
                let Some(mut source) = known else { continue };
                if self.sources.len() >= limits::FAST_SOURCES {
                    left_out += 1;
                    continue;
                }
                source.learn(&devices, roots);
                self.sources.push(source);
            }
        }
        for gone in old.iter().filter(|gone| !self.sources.iter().any(|source| source.name() == gone.name())) {
            tracing::info!("{} are sampled no more", gone.name());
        }
        if left_out != self.left_out {
            tracing::warn!("{left_out} sources of counters are left out, only {} are sampled", limits::FAST_SOURCES);
        }
        self.left_out = left_out;
    }
}

/// The network device of a place.
fn netdev_of(place: &Place, devices: &[Facts]) -> Option<String> {
    if place.kind == Kind::Netdev {
        return Some(place.device.clone());
    }
    let port = (place.device.clone(), place.port?);
    devices.iter().find(|facts| facts.port_of.as_ref() == Some(&port)).map(|facts| facts.name.clone())
}

impl Sampled {
    fn new(identity: u64, fast: Fast, wish: &Wish, now: u64) -> Self {
        let pace = Pace::new(wish.interval.max(fast.keeps));
        let column =
            |(row, priority): &(&crate::counters::catalogue::Row, _)| Column::new(row.name.to_owned(), *priority);
        let pending = CounterSamples {
            host: wish.origin.host.clone(),
            boot_id: wish.origin.boot_id.clone(),
            device: fast.place.device.clone(),
            port: fast.place.port,
            source: fast.source.name().to_owned(),
            interval: DurationNs(ns(pace.asked())),
            columns: fast.columns.iter().map(column).collect(),
            ..CounterSamples::default()
        };
        let source = Self {
            identity,
            fast,
            pace,
            due: now,
            last: None,
            carried: Vec::new(),
            pending,
            longest: 0,
            readings: 0,
            took: Duration::ZERO,
            answered: false,
            failed: 0,
            failing: None,
            stale: false,
        };
        let count = source.fast.columns.len();
        tracing::info!("{} are sampled: {count} of them, each {}", source.name(), shown(source.pace.asked()));
        if source.fast.left_out > 0 {
            tracing::warn!("{}: {} more of them are left out", source.name(), source.fast.left_out);
        }
        source
    }

    /// As people read it.
    fn name(&self) -> String {
        format!("counters of {} ({})", self.pending.name(), self.fast.source.name())
    }

    /// What may change while it is sampled.
    fn learn(&mut self, devices: &[Facts], roots: &Roots) {
        self.pending.netdev = netdev_of(&self.fast.place, devices).unwrap_or_default();
        let folder = roots.sysfs.join("class/net").join(&self.pending.netdev);
        self.pending.line_rate = if self.pending.netdev.is_empty() { None } else { stated_speed(&folder) };
    }

    fn read(&mut self, statistics: &dyn Statistics, clocks: &impl Clocks, buffer: &mut Vec<u64>, parts: u32) {
        let before = clocks.monotonic();
        let reading = self.fast.read(statistics, buffer);
        let after = clocks.monotonic();
        let took = after.saturating_sub(before);
        self.readings += 1;
        self.took = self.took.saturating_add(Duration::from_nanos(took));
        match reading {
            Ok(reading) => {
                self.answered = true;
                self.failed = 0;
                self.failing = None;
                self.longest = self.longest.max(took);
                self.take(before.saturating_add(took / 2), took, reading);
            }
            Err(error) => return self.fail(&error, after),
        }
        if let Some(change) = self.pace.note(Duration::from_nanos(took), parts) {
            let (pace, took) = (shown(self.pace.now()), shown(Duration::from_nanos(took)));
            match change {
                Change::Slower => tracing::warn!("{} are read each {pace} now: a reading takes {took}", self.name()),
                Change::Faster => tracing::info!("{} are read each {pace} again", self.name()),
            }
        }
        // What was missed while others were read is left out: the sample is the longer for it.
        let pace = ns(self.pace.now()).max(1);
        self.due = self.due.saturating_add((after.saturating_sub(self.due) / pace + 1).saturating_mul(pace));
    }

    /// Takes a reading of this time, which is known to half of what the reading `took`.
    fn take(&mut self, at: u64, took: u64, reading: Reading) {
        let (Reading::Grown(mut growth), Some(start)) = (reading, self.last) else {
            self.last = Some(at);
            self.carried.clear();
            return;
        };
        let length = at.saturating_sub(start);
        let moved = growth.iter().chain(&self.carried).any(|growth| *growth != Some(0));
        let keeps = self.fast.keeps;
        let kept = !keeps.is_zero() && length <= ns(keeps.saturating_add(TICKS));
        for (growth, carried) in growth.iter_mut().zip(&self.carried) {
            *growth = growth.zip(*carried).map(|(growth, carried)| growth.saturating_add(carried));
        }
        // What the source has kept, or nothing that moved: that is known when it would have shown something new. And
        // where the thread was held up nobody knows when in that time the source answered: the sample goes on.
        if length == 0 || length < ns(keeps) || !moved && kept || took > length / u64::from(limits::FAST_SHARE) {
            self.carried = growth;
            return;
        }
        self.carried.clear();
        if moved {
            self.pending.push(When { start: raw(start), length: DurationNs(length) }, growth);
        }
        self.pending.cover(Span { start: raw(start), end: raw(at) });
        self.last = Some(at);
    }

    /// What fails has no samples until it answers again; what is gone or has other names is looked for, unless it has
    /// just been found.
    fn fail(&mut self, error: &io::Error, now: u64) {
        self.last = None;
        self.carried.clear();
        if self.answered && matches!(error.raw_os_error(), Some(libc::ENODEV | libc::ENOENT | libc::EAGAIN)) {
            self.stale = true;
            return;
        }
        if self.failing.is_none() {
            tracing::warn!("{} cannot be sampled: {error}", self.name());
        }
        self.failing = Some(error.to_string());
        let rest = limits::FAST_REST.saturating_mul(1 << self.failed.min(16)).min(limits::FAST_REST_MAX);
        self.failed = self.failed.saturating_add(1);
        self.due = now.saturating_add(ns(rest));
    }

    /// What waits, as samples on UTC.
    fn piece(&mut self, window: &Window) -> Option<CounterSamples> {
        if self.pending.covered.is_empty() {
            return None;
        }
        let frame = self.pending.frame();
        let mut piece = std::mem::replace(&mut self.pending, frame);
        let utc = |time: UtcNs| window.offset.utc(u64::try_from(time.0).unwrap_or_default());
        piece.when.iter_mut().for_each(|when| when.start = utc(when.start));
        for span in &mut piece.covered {
            *span = Span { start: utc(span.start), end: utc(span.end) };
        }
        // A number is as old as its reading began, or as its source has kept it.
        let own = (std::mem::take(&mut self.longest) / 2).saturating_add(ns(self.fast.keeps));
        piece.clock_error = window.error.map(|error| DurationNs(error.0.saturating_add(own)));
        Some(piece)
    }

    fn status(&self) -> Status {
        Status {
            device: self.fast.place.device.clone(),
            port: self.fast.place.port,
            source: self.fast.source.name(),
            counters: self.fast.columns.len(),
            asked: self.pace.asked(),
            pace: self.pace.now(),
            readings: self.readings,
            took: self.took,
            failing: self.failing.clone(),
        }
    }
}

impl Status {
    fn name(&self) -> String {
        let port = self.port.map(|port| format!(" port {port}")).unwrap_or_default();
        format!("counters of {}{port} ({})", self.device, self.source)
    }

    /// Why nothing is sampled though it should be, one sentence.
    pub(crate) fn degraded(&self) -> Option<String> {
        let why = self.failing.as_ref()?;
        Some(format!("{} cannot be sampled: {why}", self.name()))
    }

    /// That it is read more seldom than asked for, one sentence. No fault: a busy host does that of itself, and comes back.
    pub(crate) fn stepped_down(&self) -> Option<String> {
        (self.failing.is_none() && self.pace > self.asked).then(|| {
            let (pace, asked) = (shown(self.pace), shown(self.asked));
            format!("{} are read each {pace}, not each {asked}: a reading takes too long", self.name())
        })
    }
}

/// A time for people.
fn shown(time: Duration) -> String {
    format!("{} ms", (time.as_secs_f64() * 1e5).round() / 1e2)
}

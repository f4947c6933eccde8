//! What the agent runs on: every value checked, every default written here and nowhere else.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use super::bursts::{self, Bursts};
use super::raw::{Entry, Raw, Value};
use super::{Problem, limits, time};
use crate::counters::fast::{Choice, choice};
use crate::counters::filter::{Filter, Patterns};
use crate::host::roots::Roots;

/// Which hooks attach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HookSet {
    /// The default set: it alone names every failure.
    Default,
    /// Every row of the probe table that this kernel has.
    All,
}

/// The checked configuration.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Config {
    /// Where the kernel's file systems are mounted.
    pub(crate) roots: Roots,
    /// Failed verbs calls are traced.
    pub(crate) verbs: bool,
    /// Time stamps and latency histograms.
    pub(crate) latency: bool,
    /// Which hooks attach.
    pub(crate) hooks: HookSet,
    /// Refused probes are logged like failures.
    pub(crate) probes: bool,
    /// A call under way for longer hangs.
    pub(crate) stuck_after: Duration,
    /// Connection manager events are traced.
    pub(crate) cm: bool,
    /// Device events are traced.
    pub(crate) device: bool,
    /// What drivers and the kernel say about NICs that are not well.
    pub(crate) health: bool,
    /// Polls that used up their budget are counted.
    pub(crate) napi: bool,
    /// Dropped packets are counted by reason.
    pub(crate) drops: bool,
    /// The burst sampler; `None` if it is off.
    pub(crate) bursts: Option<Bursts>,
    /// NIC and RDMA counters are read.
    pub(crate) counters: bool,
    /// How often.
    pub(crate) counters_every: Duration,
    /// Of which devices and drivers.
    pub(crate) counters_filter: Filter,
    /// Which of them are sampled fast, and how often.
    pub(crate) counters_fast: (Choice, Duration),
    /// Where `/metrics` is served; `None` if nowhere.
    pub(crate) metrics: Option<SocketAddr>,
    /// The Unix socket for the command line; `None` if there is none.
    pub(crate) socket: Option<PathBuf>,
    /// Failures are logged.
    pub(crate) log_failures: bool,
    /// How long like failures are folded into one line.
    pub(crate) fold_window: Duration,
    /// How long the run time of programs is measured each time; zero for never.
    pub(crate) statistics_window: Duration,
    /// The time from one measurement to the next.
    pub(crate) statistics_every: Duration,
    /// When a hook that comes and goes is left alone.
    pub(crate) quarantine: Quarantine,
}

/// When a hook that comes and goes is left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quarantine {
    /// More attaches and detaches than these …
    pub(crate) transitions: u32,
    /// … within this time.
    pub(crate) window: Duration,
}

pub(super) const SECOND: Duration = Duration::from_secs(1);
pub(super) const DAY: Duration = Duration::from_secs(24 * 3600);

/// Checks everything; the answer is a configuration or every problem there is.
pub(super) fn check(raw: Raw) -> Result<Config, Vec<Problem>> {
    let mut reader = Reader::new(raw);
    let fast = reader.raw.entries.get("counters.fast").map(|entry| entry.line);
    let config = config(&mut reader);
    if !config.counters_fast.0.is_empty() && (config.bursts.is_none() || !config.counters) {
        let text = "counters.fast needs counters.enabled and bursts.enabled: its samples go where those of bursts do; \
                    bursts.netdevs = [\"!*\"] samples no device's traffic";
        reader.raw.problems.push(Problem { line: fast, text: text.to_owned() });
    }
    let problems = reader.finish();
    if problems.is_empty() { Ok(config) } else { Err(problems) }
}

/// Every key, in alphabetical order.
#[cfg(test)]
pub(super) fn keys() -> Vec<&'static str> {
    let mut reader = Reader::new(Raw::default());
    config(&mut reader);
    reader.known.into_iter().collect()
}

fn config(reader: &mut Reader) -> Config {
    let metrics_on = reader.switch("metrics.enabled", true);
    let metrics = reader.address("metrics.listen", SocketAddr::from(([127, 0, 0, 1], 17317)));
    let socket_on = reader.switch("rpc.enabled", true);
    let socket = reader.path("rpc.socket", "/run/fabricscope/agent.sock");
    Config {
        roots: Roots::at(reader.path("host.path.sysfs", "/sys"), reader.path("host.path.procfs", "/proc")),
        verbs: reader.switch("verbs.enabled", true),
        latency: reader.switch("verbs.latency", true),
        hooks: reader.choice("verbs.hooks", &[("default", HookSet::Default), ("all", HookSet::All)]),
        probes: reader.switch("verbs.probes", false),
        stuck_after: reader.duration("verbs.stuck_after", SECOND, SECOND..=DAY),
        cm: reader.switch("cm.enabled", true),
        device: reader.switch("device.enabled", true),
        health: reader.switch("health.enabled", true),
        napi: reader.switch("health.napi", false),
        drops: reader.switch("health.drops", true),
        bursts: bursts::check(reader),
        metrics: metrics_on.then_some(metrics),
        socket: socket_on.then_some(socket),
        counters: reader.switch("counters.enabled", true),
        counters_every: reader.duration("counters.every", SECOND * 10, SECOND..=SECOND * 3600),
        counters_filter: Filter {
            devices: reader.patterns("counters.devices"),
            drivers: reader.patterns("counters.drivers"),
            ports: Vec::new(),
        },
        counters_fast: fast(reader),
        log_failures: reader.switch("log.failures", true),
        fold_window: reader.duration("log.fold_window", SECOND * 60, SECOND..=DAY),
        statistics_window: reader.duration("statistics.window", SECOND, Duration::ZERO..=SECOND * 60),
        statistics_every: reader.duration("statistics.every", SECOND * 600, SECOND * 60..=DAY),
        quarantine: Quarantine {
            transitions: reader.number("quarantine.transitions", 10, 2..=10_000),
            window: reader.duration("quarantine.window", SECOND * 60, SECOND..=DAY),
        },
    }
}

/// What is sampled fast, and how often.
fn fast(reader: &mut Reader) -> (Choice, Duration) {
    let words = reader.list("counters.fast", limits::FAST_WORDS, &choice::want(), |text| text.parse().ok());
    let millisecond = Duration::from_millis(1);
    let every = reader.duration("counters.fast_interval", millisecond * 10, millisecond..=SECOND);
    (Choice(words), every)
}

/// Takes one key after the other out of a file; what is left over at the end is unknown.
pub(super) struct Reader {
    raw: Raw,
    known: BTreeSet<&'static str>,
}

impl Reader {
    fn new(raw: Raw) -> Self {
        Self { raw, known: BTreeSet::new() }
    }

    /// The value of a key as `read` takes it, or the default where it stands nowhere or is refused.
    pub(super) fn take<T>(
        &mut self,
        key: &'static str,
        default: T,
        read: impl FnOnce(&Value) -> Result<T, String>,
    ) -> T {
        self.known.insert(key);
        let Some(Entry { line, value }) = self.raw.entries.remove(key) else {
            return default;
        };
        read(&value).unwrap_or_else(|want| {
            let text = format!("{key} is {}: {want}", shown(&value));
            self.raw.problems.push(Problem { line: Some(line), text });
            default
        })
    }

    pub(super) fn switch(&mut self, key: &'static str, default: bool) -> bool {
        self.take(key, default, |value| match value {
            Value::Bool(value) => Ok(*value),
            _ => Err("write true or false, without quotes".to_owned()),
        })
    }

    pub(super) fn choice<T: Copy>(&mut self, key: &'static str, choices: &[(&str, T)]) -> T {
        self.take(key, choices[0].1, |value| {
            let found = choices.iter().find(|(name, _)| matches!(value, Value::Text(text) if text == name));
            let names = || choices.iter().map(|(name, _)| format!("{name:?}")).collect::<Vec<_>>().join(" or ");
            found.map(|(_, choice)| *choice).ok_or_else(|| format!("write {}", names()))
        })
    }

    fn patterns(&mut self, key: &'static str) -> Patterns {
        self.take(key, Patterns::default(), |value| match value {
            Value::Text(text) => text.parse(),
            _ => Err("write names in quotes, such as \"mlx5_* !mlx5_9\"".to_owned()),
        })
    }

    fn number(&mut self, key: &'static str, default: u32, range: RangeInclusive<u32>) -> u32 {
        self.take(key, default, |value| {
            let number = match value {
                Value::Integer(Some(number)) => u32::try_from(*number).ok(),
                _ => None,
            };
            number
                .filter(|number| range.contains(number))
                .ok_or_else(|| format!("write a number from {} to {}, without quotes", range.start(), range.end()))
        })
    }

    pub(super) fn duration(
        &mut self,
        key: &'static str,
        default: Duration,
        range: RangeInclusive<Duration>,
    ) -> Duration {
        self.take(key, default, |value| {
            let duration = match value {
                Value::Text(text) => time::parse(text).ok(),
                _ => None,
            };
            duration.filter(|duration| range.contains(duration)).ok_or_else(|| {
                let (from, to) = (time::shown(*range.start()), time::shown(*range.end()));
                format!("write a time with its unit, such as {:?}, from {from} to {to}", time::shown(default))
            })
        })
    }

    /// A text that `parse` takes; `want` says which it does.
    pub(super) fn text<T>(&mut self, key: &'static str, default: T, want: &str, parse: fn(&str) -> Option<T>) -> T {
        self.take(key, default, |value| match value {
            Value::Text(text) => parse(text).ok_or_else(|| want.to_owned()),
            _ => Err(want.to_owned()),
        })
    }

    /// A list of texts that `parse` takes, at most `most`; `want` says which it does. Empty where it stands nowhere.
    pub(super) fn list<T>(
        &mut self,
        key: &'static str,
        most: usize,
        want: &str,
        parse: fn(&str) -> Option<T>,
    ) -> Vec<T> {
        self.take(key, Vec::new(), |value| {
            let Value::List(texts) = value else { return Err(want.to_owned()) };
            if texts.len() > most {
                return Err(format!("write at most {most} of them"));
            }
            let one = |text: &String| parse(text).ok_or_else(|| format!("{text:?} is not understood; {want}"));
            texts.iter().map(one).collect()
        })
    }

    fn address(&mut self, key: &'static str, default: SocketAddr) -> SocketAddr {
        self.take(key, default, |value| {
            match value {
                Value::Text(text) => text.parse().map_err(|_| ()),
                _ => Err(()),
            }
            .map_err(|()| {
                format!("write an IP address and a port, such as {:?} or \"[::]:17317\"", default.to_string())
            })
        })
    }

    pub(super) fn path(&mut self, key: &'static str, default: &str) -> PathBuf {
        self.take(key, PathBuf::from(default), |value| match value {
            Value::Text(text) if text.starts_with('/') && !text.contains('\0') => Ok(PathBuf::from(text)),
            _ => Err(format!("write an absolute path, such as {default:?}")),
        })
    }

    /// All problems, those of keys that nobody asked for among them.
    fn finish(mut self) -> Vec<Problem> {
        for (key, Entry { line, value }) in std::mem::take(&mut self.raw.entries) {
            let section = format!("{key}.");
            let is_section = self.known.iter().any(|known| known.starts_with(&section));
            let text = match value {
                Value::EmptySection if is_section => continue,
                _ if is_section => format!("{key} is {}: it is a section, write [{key}]", shown(&value)),
                _ => format!("{key} is no known key: {}", self.suggestion(&key)),
            };
            self.raw.problems.push(Problem { line: Some(line), text });
        }
        self.raw.problems.sort_by_key(|problem| problem.line);
        self.raw.problems
    }

    fn suggestion(&self, key: &str) -> String {
        let name = |key: &str| key.rsplit('.').next().unwrap_or_default().to_owned();
        let near = self.known.iter().min_by_key(|known| {
            let elsewhere = usize::from(name(known) != name(key));
            (elsewhere.min(distance(known, key)), distance(known, key))
        });
        match near.filter(|known| distance(known, key) <= 3 || name(known) == name(key)) {
            Some(known) => format!("did you mean {known}? Else remove it"),
            None => "remove it".to_owned(),
        }
    }
}

/// A value as it may be written.
fn shown(value: &Value) -> String {
    match value {
        Value::Bool(value) => value.to_string(),
        Value::Integer(Some(value)) => value.to_string(),
        Value::Integer(None) => "a number that is too large".to_owned(),
        Value::Text(text) => format!("{:?}", text.chars().take(80).collect::<String>()),
        Value::List(texts) => format!("a list of {}", texts.len()),
        Value::EmptySection => "an empty section".to_owned(),
        Value::Other(name) => format!("of type {name}"),
    }
}

/// The number of letters to insert, delete or replace to make one word of the other (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(80).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, other) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

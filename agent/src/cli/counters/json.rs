//! The counters as JSON, one object for each interval. What is not known is absent.

use std::io::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;

use super::findings::told;
use super::further;
use crate::counters::carrier::Change;
use crate::counters::catalogue::Unit;
use crate::counters::findings::{self, Windows};
use crate::counters::rates::{Interval, Rate};
use crate::counters::readout::{Kind, Readout, Subject};
use crate::verbs::json::time_text;

/// Names the layout of the objects. Keys are only ever added to it.
const SCHEMA: &str = "fabricscope.counters.v1";

/// Where the counters come from.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Origin<'a> {
    /// The host's name.
    pub(super) host: Option<&'a str>,
    /// Names this boot of the host.
    pub(super) boot_id: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct Record<'a> {
    schema: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    boot_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<String>,
    time_ns: u128,
    interval_seconds: f64,
    /// What the later reading took, and how many counters it asked for.
    read_seconds: f64,
    read_counters: usize,
    devices: Vec<Device<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    health_reporters: Vec<further::ReporterRecord<'a>>,
    /// Network namespaces that may hide RDMA devices and could not be entered.
    #[serde(skip_serializing_if = "Option::is_none")]
    closed_namespaces: Option<usize>,
    /// Counters bound to queue pairs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    queue_pairs: Vec<further::BoundRecord<'a>>,
    findings: Vec<findings::record::Record<'a>>,
    /// Ports that are one too many to be judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    ports_left_out: Option<usize>,
}

#[derive(Debug, Serialize)]
struct Device<'a> {
    kind: &'static str,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    driver: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    port: Option<u32>,
    /// Where it stands on its bus.
    #[serde(skip_serializing_if = "Option::is_none")]
    bus: Option<&'a str>,
    /// Of a virtual function: its physical one's device, and its number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pf: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    vf: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bond: Option<&'a str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    members: &'a [String],
    /// The network namespace that it is in, if that is not the agent's.
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<&'a str>,
    /// Changes of the link in the last ten minutes; absent where nobody listens.
    #[serde(skip_serializing_if = "Option::is_none")]
    link_changes: Option<Vec<LinkChange>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pfc_priorities: Option<Vec<u8>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    quarantined: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failures: Vec<Failure>,
    counters: Vec<Counter>,
}

#[derive(Debug, Serialize)]
struct LinkChange {
    time_ns: i64,
    up: bool,
    ups: u32,
    downs: u32,
}

impl From<&Change> for LinkChange {
    fn from(change: &Change) -> Self {
        Self { time_ns: change.at.0, up: change.up, ups: change.ups, downs: change.downs }
    }
}

#[derive(Debug, Serialize)]
struct Failure {
    reason: &'static str,
    count: u64,
}

#[derive(Debug, Serialize)]
struct Counter {
    name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    port: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<u8>,
    unit: &'static str,
    value: Number,
    #[serde(skip_serializing_if = "Option::is_none")]
    increase: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    per_second: Option<f64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    saturated: bool,
    source: &'static str,
}

/// Counts are whole, times are not.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Number {
    Whole(u64),
    Seconds(f64),
}

impl Number {
    fn of(rate: &Rate, count: u64) -> Self {
        if rate.row.unit == Unit::Seconds { Self::Seconds(rate.row.in_unit(count)) } else { Self::Whole(count) }
    }
}

/// An interval between two readings.
#[derive(Clone, Copy)]
pub(super) struct Shown<'a> {
    pub(super) earlier: &'a Readout,
    pub(super) later: &'a Readout,
    pub(super) interval: &'a Interval,
    pub(super) windows: &'a Windows,
}

/// Writes one interval as one line.
pub(super) fn write(
    shown: Shown<'_>,
    all: bool,
    origin: Origin<'_>,
    now: SystemTime,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let Shown { earlier, later: readout, interval, windows } = shown;
    let found = told(windows, all);
    let record = Record {
        schema: SCHEMA,
        host: origin.host,
        boot_id: origin.boot_id,
        time: time_text(now),
        time_ns: now.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos(),
        interval_seconds: interval.elapsed.as_secs_f64(),
        read_seconds: readout.durations.iter().map(|(_, duration)| *duration).sum::<Duration>().as_secs_f64(),
        read_counters: readout.counters,
        devices: readout.subjects.iter().map(|subject| device(subject, interval, all)).collect(),
        health_reporters: readout.further.reporters.iter().map(Into::into).collect(),
        closed_namespaces: Some(readout.further.closed_namespaces).filter(|count| *count > 0),
        queue_pairs: further::bound_records(Some(earlier), readout),
        findings: found.iter().map(findings::record::Record::of).collect(),
        ports_left_out: Some(windows.left_out()).filter(|count| *count > 0),
    };
    // In one piece: standard output looks for ends of lines in every one it is given.
    let mut line = serde_json::to_vec(&record)?;
    line.push(b'\n');
    out.write_all(&line)?;
    Ok(())
}

fn device<'a>(subject: &'a Subject, interval: &Interval, all: bool) -> Device<'a> {
    let rates = interval.of(subject).iter().filter(|rate| all || rate.moved() || rate.saturated);
    let counters = rates.map(|rate| Counter {
        name: rate.row.name,
        port: rate.place.port,
        priority: rate.priority,
        unit: rate.row.unit.word(),
        value: Number::of(rate, rate.value),
        increase: rate.increase.map(|increase| Number::of(rate, increase)),
        per_second: rate.per_second(interval.elapsed),
        saturated: rate.saturated,
        source: rate.source.name(),
    });
    let relations = &subject.relations;
    Device {
        bus: relations.bus.as_deref(),
        pf: relations.function.as_ref().map(|function| function.physical.as_str()),
        vf: relations.function.as_ref().map(|function| function.number),
        bond: relations.bond.as_deref(),
        members: &relations.members,
        namespace: relations.namespace.as_deref(),
        link_changes: relations.changes.as_ref().map(|changes| changes.iter().map(Into::into).collect()),
        kind: match subject.kind {
            Kind::Rdma => "rdma",
            Kind::Netdev => "netdev",
        },
        name: &subject.name,
        driver: subject.driver.as_deref(),
        device: subject.port_of.as_ref().map(|(device, _)| device.as_str()),
        port: subject.port_of.as_ref().map(|(_, port)| *port),
        pfc_priorities: subject.priorities.map(|mask| (0..8).filter(|bit| mask & (1 << bit) != 0).collect()),
        quarantined: subject.quarantined.as_ref().map(|(why, _)| why.as_str()),
        failures: subject.failures.iter().map(|(reason, count)| Failure { reason, count: *count }).collect(),
        counters: counters.collect(),
    }
}

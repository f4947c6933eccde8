//! What stands beside the counters: health reporters, and counters that are bound to queue pairs.

use std::io::{self, Write};
use std::time::{Duration, UNIX_EPOCH};

use serde::Serialize;

use crate::counters::netlink::devlink::Reporter;
use crate::counters::netlink::rdma::Bound;
use crate::counters::readout::Readout;
use crate::terminal::{Paper, clean};
use crate::verbs::json::time_text;

/// Columns for a number.
const NUMBER: usize = 14;
/// Queue pairs of one set that are named; JSON has all.
pub(super) const QUEUE_PAIRS: usize = 8;

/// Writes the reporters that have something to tell and the bound counters that moved, or all of them.
pub(super) fn write(
    earlier: &Readout,
    later: &Readout,
    all: bool,
    paper: Paper,
    out: &mut impl Write,
) -> io::Result<()> {
    let bold = anstyle::Style::new().bold();
    let lines = sentences(&later.further.reporters, all);
    if !lines.is_empty() {
        writeln!(out, "\n{}", paper.styled(bold, "Health reporters"))?;
        lines.iter().try_for_each(|line| writeln!(out, "  {}", clean(line)))?;
    }
    for (device, bound) in &later.further.bound {
        let before = find(earlier, device, bound);
        let moved: Vec<String> = bound.values.iter().filter_map(|value| line(before, value, all)).collect();
        if !moved.is_empty() {
            writeln!(out, "\n{}", paper.styled(bold, &clean(&heading(device, bound))))?;
            moved.iter().try_for_each(|line| writeln!(out, "{}", clean(line)))?;
        }
    }
    Ok(())
}

/// A sentence on each reporter that has something to tell, or on all.
pub(crate) fn sentences(reporters: &[Reporter], all: bool) -> Vec<String> {
    let shown = reporters.iter().filter(|reporter| all || reporter.errors > 0 || is_ill(reporter));
    shown.map(sentence).collect()
}

fn is_ill(reporter: &Reporter) -> bool {
    reporter.healthy == Some(false)
}

/// `pci/0000:3b:00.0 fw_fatal: in error, 1 reported, 0 recovered, dump of …; see devlink health`.
fn sentence(reporter: &Reporter) -> String {
    let Reporter { bus, device, name, errors, recoveries, .. } = reporter;
    let port = reporter.port.map(|port| format!(" port {port}")).unwrap_or_default();
    let state = match reporter.healthy {
        Some(true) => "healthy",
        Some(false) => "in error",
        None => "state not known",
    };
    let dumped = reporter.dumped_ns.and_then(|ns| time_text(UNIX_EPOCH.checked_add(Duration::from_nanos(ns))?));
    let dump = dumped.map(|time| format!(", dump of {time}")).unwrap_or_default();
    let advice = if is_ill(reporter) {
        format!(". `devlink health diagnose {bus}/{device} reporter {name}` tells more")
    } else {
        String::new()
    };
    format!("{bus}/{device}{port} {name}: {state}, {errors} errors, {recoveries} recoveries{dump}{advice}")
}

fn find<'a>(readout: &'a Readout, device: &str, bound: &Bound) -> Option<&'a Bound> {
    let same = |other: &&(String, Bound)| other.0 == device && other.1.port == bound.port && other.1.id == bound.id;
    readout.further.bound.iter().find(same).map(|(_, bound)| bound)
}

/// What the set's counter grew by; absent for a set that is new or was set back.
fn increase(before: Option<&Bound>, (name, value): &(String, u64)) -> Option<u64> {
    let before = before?.values.iter().find(|(other, _)| other == name)?;
    value.checked_sub(before.1)
}

fn line(before: Option<&Bound>, value: &(String, u64), all: bool) -> Option<String> {
    let increase = increase(before, value);
    if !all && increase.unwrap_or(value.1) == 0 {
        return None;
    }
    let grown = increase.map_or("new".to_owned(), |increase| format!("+{increase}"));
    Some(format!("    {grown:>NUMBER$}  {} = {}", value.0, value.1))
}

/// `mlx5_0 port 1, counter set 4 of queue pairs 17 18`.
fn heading(device: &str, bound: &Bound) -> String {
    let numbers: Vec<String> = bound.queue_pairs.iter().take(QUEUE_PAIRS).map(u32::to_string).collect();
    let further = match bound.queue_pairs.len().saturating_sub(QUEUE_PAIRS) {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    let of = if numbers.is_empty() { "no queue pair any more".to_owned() } else { numbers.join(" ") };
    let process = bound.pid.map(|pid| format!(" of process {pid}")).unwrap_or_default();
    format!("{device} port {}, counter set {} of queue pairs {of}{further}{process}", bound.port, bound.id)
}

/// A reporter in JSON.
#[derive(Debug, Serialize)]
pub(crate) struct ReporterRecord<'a> {
    bus: &'a str,
    device: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    port: Option<u32>,
    reporter: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    healthy: Option<bool>,
    errors: u64,
    recoveries: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    dump_time_ns: Option<u64>,
}

impl<'a> From<&'a Reporter> for ReporterRecord<'a> {
    fn from(reporter: &'a Reporter) -> Self {
        Self {
            bus: &reporter.bus,
            device: &reporter.device,
            port: reporter.port,
            reporter: &reporter.name,
            healthy: reporter.healthy,
            errors: reporter.errors,
            recoveries: reporter.recoveries,
            dump_time_ns: reporter.dumped_ns,
        }
    }
}

/// A set of bound counters in JSON.
#[derive(Debug, Serialize)]
pub(super) struct BoundRecord<'a> {
    device: &'a str,
    port: u32,
    set: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    queue_pairs: &'a [u32],
    counters: Vec<BoundCounter<'a>>,
}

#[derive(Debug, Serialize)]
struct BoundCounter<'a> {
    name: &'a str,
    value: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    increase: Option<u64>,
}

/// Every set of a reading; `earlier` is the one before, if there was one.
pub(super) fn bound_records<'a>(earlier: Option<&Readout>, later: &'a Readout) -> Vec<BoundRecord<'a>> {
    let record = |(device, bound): &'a (String, Bound)| {
        let before = earlier.and_then(|earlier| find(earlier, device, bound));
        let counter = |value: &'a (String, u64)| BoundCounter {
            name: &value.0,
            value: value.1,
            increase: increase(before, value),
        };
        let counters = bound.values.iter().map(counter).collect();
        let Bound { port, id, pid, queue_pairs, .. } = bound;
        BoundRecord { device, port: *port, set: *id, pid: *pid, queue_pairs, counters }
    };
    later.further.bound.iter().map(record).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::counters::readout::Further;

    fn readout(value: u64, reporters: Vec<Reporter>) -> Readout {
        let values = vec![("out_of_buffer".to_owned(), value), ("quiet".to_owned(), 7)];
        let bound = Bound { port: 1, id: 4, pid: None, queue_pairs: (17..30).collect(), values };
        Readout {
            at: Instant::now(),
            subjects: vec![],
            series: vec![],
            shown: vec![],
            resources: vec![],
            durations: vec![],
            counters: 0,
            further: Further { reporters, bound: vec![("mlx5_0".to_owned(), bound)], ..Further::default() },
        }
    }

    fn written(earlier: &Readout, later: &Readout, all: bool) -> String {
        let mut out = Vec::new();
        write(earlier, later, all, Paper::PLAIN, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn counters_of_queue_pairs_are_shown_where_they_move() {
        let text = written(&readout(3, vec![]), &readout(5, vec![]), false);
        assert!(
            text.contains("mlx5_0 port 1, counter set 4 of queue pairs 17 18 19 20 21 22 23 24 and 5 more"),
            "{text}"
        );
        assert!(text.contains("+2  out_of_buffer = 5") && !text.contains("quiet"), "{text}");
        assert_eq!(written(&readout(5, vec![]), &readout(5, vec![]), false), "");
        assert!(written(&readout(5, vec![]), &readout(5, vec![]), true).contains("+0  quiet = 7"));
        let json = serde_json::to_value(bound_records(Some(&readout(9, vec![])), &readout(5, vec![]))).unwrap();
        assert_eq!(
            json[0]["counters"][0],
            serde_json::json!({ "name": "out_of_buffer", "value": 5 }),
            "it was set back"
        );
    }

    #[test]
    fn a_reporter_is_shown_once_it_has_something_to_tell() {
        let reporter = |healthy, errors| Reporter {
            bus: "pci".into(),
            device: "0000:3b:00.0".into(),
            port: None,
            name: "fw".into(),
            healthy: Some(healthy),
            errors,
            recoveries: 0,
            dumped_ns: Some(1_500_000_000),
        };
        let of = |reporter: Reporter, all| {
            let readout =
                Readout { further: Further { reporters: vec![reporter], ..Further::default() }, ..readout(0, vec![]) };
            written(&readout, &readout, all)
        };
        assert_eq!(of(reporter(true, 0), false), "");
        assert!(of(reporter(true, 0), true).contains("pci/0000:3b:00.0 fw: healthy, 0 errors"));
        let ill = of(reporter(false, 1), false);
        assert!(ill.contains("in error, 1 errors, 0 recoveries, dump of 1970-01-01"), "{ill}");
        assert!(ill.contains("devlink health diagnose pci/0000:3b:00.0 reporter fw"), "{ill}");
    }
}

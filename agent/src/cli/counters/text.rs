//! The counters for people: first what stands out, in sentences, then what moved, in groups.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::time::Duration;

use crate::counters::catalogue::{Direction, Group, Unit};
use crate::counters::rates::{Interval, Rate};
use crate::counters::readout::{Kind, Place, Readout, Subject};
use crate::terminal::{Paper, clean};

/// Columns for a rate, and for a counter's name.
const RATE: usize = 14;
const NAME: usize = 44;

/// Writes one interval.
pub(super) fn write(
    readout: &Readout,
    interval: &Interval,
    all: bool,
    paper: Paper,
    out: &mut impl Write,
) -> io::Result<()> {
    if readout.subjects.is_empty() {
        let none = "no RDMA device and no network adapter, or none that --device, --driver and --port take";
        return writeln!(out, "{none}: nothing to count");
    }
    let bold = anstyle::Style::new().bold();
    let seconds = interval.elapsed.as_secs_f64();
    writeln!(out, "{}", paper.styled(bold, &format!("What stands out in {seconds:.1} s")))?;
    let lines = outstanding(readout, interval);
    for line in &lines {
        writeln!(out, "  {}", clean(line))?;
    }
    if lines.is_empty() {
        let (counters, devices) = (readout.counters, readout.subjects.len());
        let devices = if devices == 1 { "1 device".to_owned() } else { format!("{devices} devices") };
        writeln!(out, "  nothing: of {counters} counters on {devices} none that tells of trouble moved")?;
    }
    for rates in interval.rates.chunk_by(|a, b| a.place == b.place) {
        let shown = |rate: &&Rate| all || rate.moved() || rate.saturated;
        let rates: Vec<&Rate> = rates.iter().filter(shown).collect();
        let Some(place) = rates.first().map(|rate| &rate.place) else { continue };
        writeln!(out, "\n{}", paper.styled(bold, &clean(&heading(place, readout.subject(place)))))?;
        let mut group: Option<Group> = None;
        for rate in rates {
            if group.replace(rate.row.group) != Some(rate.row.group) {
                writeln!(out, "  {}", rate.row.group.title())?;
            }
            writeln!(out, "{}", line(rate, interval.elapsed, paper))?;
        }
    }
    Ok(())
}

/// `mlx5_0 port 1, mlx5_ib`, `eth0, port 1 of mlx5_0, mlx5_core`.
fn heading(place: &Place, subject: Option<&Subject>) -> String {
    let mut parts = vec![match place.port {
        Some(port) => format!("{} port {port}", place.device),
        None => place.device.clone(),
    }];
    if place.kind == Kind::Rdma && place.port.is_none() {
        parts.push("the whole device".to_owned());
    }
    if let Some((device, port)) = subject.and_then(|subject| subject.port_of.as_ref()) {
        parts.push(format!("port {port} of {device}"));
    }
    if let Some(relations) = subject.map(|subject| &subject.relations) {
        let function = relations.function.as_ref();
        parts.extend(function.map(|vf| format!("virtual function {} of {}", vf.number, vf.physical)));
        parts.extend(relations.bond.as_ref().map(|bond| format!("member of {bond}")));
        if !relations.members.is_empty() {
            parts.push(format!("bond of {}", relations.members.join(" ")));
        }
        parts.extend(relations.namespace.as_ref().map(|name| format!("in another network namespace ({name})")));
    }
    parts.extend(subject.and_then(|subject| subject.driver.clone()));
    parts.join(", ")
}

fn line(rate: &Rate, elapsed: Duration, paper: Paper) -> String {
    let priority = rate.priority.map(|priority| format!(" priority {priority}")).unwrap_or_default();
    let name = format!("{}{priority}", rate.row.name);
    let text = format!("    {:>RATE$}  {name:<NAME$}  {}", measure(rate, elapsed), rate.row.meaning);
    match paper.width {
        Some(width) => text.chars().take(width).collect(),
        None => text,
    }
}

/// What a counter did, in a unit for people.
fn measure(rate: &Rate, elapsed: Duration) -> String {
    if rate.saturated {
        return "saturated".to_owned();
    }
    if rate.row.unit == Unit::Percent {
        return format!("{} %", rate.value);
    }
    let Some(per_second) = rate.per_second(elapsed) else { return "began again".to_owned() };
    match rate.row.unit {
        Unit::Bytes => format!("{}B/s", scaled(per_second)),
        // Seconds in a second are a share of the time.
        Unit::Seconds => format!("{:.1} % of time", per_second * 100.0),
        _ => format!("{}/s", scaled(per_second)),
    }
}

/// With a prefix of thousands.
fn scaled(number: f64) -> String {
    let steps = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k")];
    match steps.iter().find(|(step, _)| number >= *step) {
        Some((1e4, prefix)) => format!("{:.1} {prefix}", number / 1e3),
        Some((step, prefix)) => format!("{:.2} {prefix}", number / step),
        None if number.fract().abs() < 1e-9 => format!("{number:.0} "),
        None => format!("{number:.1} "),
    }
}

/// Sentences on what is a sign of trouble, then on what cannot be relied on.
fn outstanding(readout: &Readout, interval: &Interval) -> Vec<String> {
    let mut lines = Vec::new();
    let troubled: Vec<&Rate> = interval.rates.iter().filter(|rate| rate.row.is_trouble() && rate.moved()).collect();
    let timed: BTreeSet<_> = troubled
        .iter()
        .filter(|rate| rate.row.group == Group::Pause && rate.row.unit == Unit::Seconds)
        .map(|rate| (&rate.place.device, rate.priority, rate.row.direction == Direction::Rx))
        .collect();
    for rate in &troubled {
        // Where the time is known, frames say nothing more.
        let frames =
            rate.row.group == Group::Pause && rate.row.unit != Unit::Seconds && !rate.row.name.contains("storm");
        if frames && timed.contains(&(&rate.place.device, rate.priority, rate.row.direction == Direction::Rx)) {
            continue;
        }
        let at = heading(&Place { ..(*rate.place).clone() }, None);
        let priority = rate.priority.map(|priority| format!(" priority {priority}")).unwrap_or_default();
        let measure = measure(rate, interval.elapsed);
        lines.push(format!("{at}{priority}: {} {measure}. {}", rate.row.name, rate.row.raised));
        lines.push(format!("    {}", rate.row.next));
    }
    for rate in interval.rates.iter().filter(|rate| rate.saturated) {
        let at = heading(&rate.place, None);
        lines.push(format!("{at}: {} stands at its end and counts no more; clear it to see", rate.row.name));
    }
    let ill = readout.further.reporters.iter().filter(|reporter| reporter.healthy == Some(false));
    lines.extend(ill.map(|reporter| {
        format!("{}/{}: the health reporter {} is in error", reporter.bus, reporter.device, reporter.name)
    }));
    if readout.further.closed_namespaces > 0 {
        let count = readout.further.closed_namespaces;
        lines.push(format!("{count} network namespaces may have RDMA devices of their own and cannot be looked into"));
    }
    for subject in &readout.subjects {
        let changes = subject.relations.changes.as_deref().unwrap_or_default();
        let downs: u64 = changes.iter().map(|change| u64::from(change.downs)).sum();
        if downs > 0 {
            lines.push(format!("{}: the link went down {downs} times in the last ten minutes", subject.name));
        }
        if let Some((why, left)) = &subject.quarantined {
            lines.push(format!("{} is left alone for {} s: {why}", subject.name, left.as_secs()));
            continue;
        }
        // What a driver says it does not keep is missing by its own word.
        let odd = subject.failures.iter().filter(|(reason, _)| !matches!(*reason, "not_kept" | "not_supported"));
        let reasons: Vec<String> = odd.map(|(reason, count)| format!("{count} {reason}")).collect();
        if !reasons.is_empty() {
            lines.push(format!("{}: counters that cannot be read: {}", subject.name, reasons.join(", ")));
        } else if subject.kind == Kind::Rdma && is_silent(readout, &subject.name) {
            let driver = subject.driver.as_deref().unwrap_or("its driver");
            lines.push(format!("{}: {driver} offers no counter that is known; see its network device's", subject.name));
        }
    }
    lines
}

/// Whether an RDMA device has no counter that has a meaning: soft-iWARP has none at all.
fn is_silent(readout: &Readout, name: &str) -> bool {
    !readout.series.iter().any(|series| series.place.kind == Kind::Rdma && series.place.device == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_for_people() {
        let rows = [
            (0.0, "0 "),
            (0.5, "0.5 "),
            (12.0, "12 "),
            (9999.0, "9999 "),
            (12_345.0, "12.3 k"),
            (1_234_567.0, "1.23 M"),
            (49_900_000_000.0, "49.90 G"),
            (2e12, "2.00 T"),
        ];
        for (number, expected) in rows {
            assert_eq!(scaled(number), expected);
        }
    }
}

//! Compares what was to be seen with what was: rows of the workload, events of the agent.

use std::fmt;

use crate::event::Event;
use crate::facts::{Class, Expected};
use crate::workload::Row;

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The call, or what the event says of itself when no call was known.
    pub recipe: String,
    /// What differs.
    pub what: &'static str,
    /// What it should be.
    pub expected: String,
    /// What it is.
    pub seen: String,
}

/// All differences, to be shown as a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report(pub Vec<Mismatch>);

impl Report {
    fn add(&mut self, recipe: &str, what: &'static str, expected: impl Into<String>, seen: impl Into<String>) {
        let (expected, seen) = (expected.into(), seen.into());
        if expected != seen {
            self.0.push(Mismatch { recipe: recipe.to_owned(), what, expected, seen });
        }
    }

    /// Whether nothing differs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = Mismatch { recipe: "call".into(), what: "what", expected: "expected".into(), seen: "seen".into() };
        let width = |of: fn(&Mismatch) -> usize| self.0.iter().map(of).chain([of(&head)]).max().unwrap_or_default();
        let recipe = width(|row| row.recipe.chars().count());
        let what = width(|row| row.what.chars().count());
        let expected = width(|row| row.expected.chars().count());
        for row in std::iter::once(&head).chain(&self.0) {
            let Mismatch { recipe: name, what: kind, expected: should, seen } = row;
            writeln!(f, "{name:recipe$}  {kind:what$}  {should:expected$}  {seen}")?;
        }
        Ok(())
    }
}

/// Compares what the workload itself saw with the table: each call once, with the error it has on this kernel.
#[must_use]
pub fn compare_calls(expected: &[Expected], rows: &[Row]) -> Report {
    let mut report = Report::default();
    for call in expected {
        let seen: Vec<_> = rows.iter().filter(|row| row.recipe == call.recipe).map(|row| &*row.errno).collect();
        report.add(&call.recipe, "errno in the program", &*call.errno, seen.join(", "));
    }
    for row in rows.iter().filter(|row| expected.iter().all(|call| call.recipe != row.recipe)) {
        report.add(&row.recipe, "known call", "yes", "no");
    }
    report
}

/// Compares the events of a session with the calls that were made in it; `probes` says whether it was to show them.
///
/// An event belongs to the call of the same thread whose time it returned in. Events of successes are left out. Every
/// other event has to belong to a call that is known to be refused.
#[must_use]
pub fn compare_events(expected: &[Expected], rows: &[Row], events: &[Event], probes: bool) -> Report {
    let mut report = Report::default();
    let refused: Vec<_> = events.iter().filter(|event| event.refused() || event.probe).collect();
    for row in rows {
        let own: Vec<_> = refused.iter().copied().filter(|event| belongs(event, row)).collect();
        let Some(call) = expected.iter().find(|call| call.recipe == row.recipe) else {
            report.add(&row.recipe, "known call", "yes", "no");
            continue;
        };
        let count = match call.class {
            Class::Ok | Class::UserSpace => 0,
            Class::Failure => 1,
            Class::Probe | Class::OkWithProbe => usize::from(probes),
        };
        report.add(&row.recipe, "events", count.to_string(), many(&own));
        if let ([event], 1) = (&*own, count) {
            compare_event(&mut report, call, row, event);
        }
    }
    for event in refused {
        if !rows.iter().any(|row| belongs(event, row)) {
            report.add(&describe(event), "events of no call", "none", "one");
        }
    }
    report
}

fn compare_event(report: &mut Report, call: &Expected, row: &Row, event: &Event) {
    let name = &*call.recipe;
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let probe = call.class != Class::Failure;
    report.add(name, "verb", &*call.verb, &*event.verb);
    report.add(name, "errno", call.refused_with.clone().unwrap_or_default(), text(&event.errno));
    report.add(name, "probe", probe.to_string(), event.probe.to_string());
    report.add(name, "pid", row.pid.to_string(), event.pid.to_string());
    let (layer, function) = (text(&event.layer), plain(&text(&event.function)).to_owned());
    if let Some(innermost) = &call.innermost {
        report.add(name, "function", &*innermost.function, &*function);
        if !innermost.layers.contains(&layer) {
            report.add(name, "layer", innermost.layers.join("/"), &*layer);
        }
        let error = event.error.map(|error| error.to_string());
        report.add(name, "error", innermost.error.to_string(), error.unwrap_or_default());
    }
    let answer = event.chain.iter().any(|link| link.layer == layer && plain(&link.function) == function);
    report.add(name, "chain holds the answer", "true", answer.to_string());
    // A verb that the device cannot do; what has no verb's name says nothing of a device.
    if !probe && !name.starts_with("raw ") {
        let unsupported = call.errno == "EOPNOTSUPP";
        report.add(name, "unsupported", unsupported.to_string(), event.unsupported.to_string());
    }
}

/// The name of a function without what a compiler adds to parts and copies of it (`.part.0`, `.isra.0`).
fn plain(function: &str) -> &str {
    function.split_once('.').map_or(function, |(name, _)| name)
}

fn belongs(event: &Event, row: &Row) -> bool {
    event.tid == row.tid && (row.before_ns..=row.after_ns).contains(&event.monotonic_ns)
}

fn many(events: &[&Event]) -> String {
    if events.len() < 2 {
        return events.len().to_string();
    }
    let each: Vec<_> = events.iter().map(|event| describe(event)).collect();
    format!("{}: {}", events.len(), each.join("; "))
}

fn describe(event: &Event) -> String {
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "?".to_owned());
    let kind = if event.probe { " (probe)" } else { "" };
    format!("{} {} in {}{kind}, pid {}", event.verb, text(&event.errno), text(&event.function), event.pid)
}

#[cfg(test)]
mod tests;

//! What a session ends with: calls, failures and losses, by verb and error.

use std::collections::BTreeMap;
use std::io::{self, Write};

use agent_common::counter;

use crate::event::{Event, Failure};
use crate::host::errno::errno_name;
use crate::kernel::Tracer;
use crate::kernel::state::{InFlight, Snapshot};
use crate::verbs::names::verb_name;

/// The most lines of failures; the rest is one line.
const LINES: usize = 20;

/// What was seen.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    shown: u64,
    groups: BTreeMap<(String, String, String), u64>,
    lost: BTreeMap<(&'static str, &'static str, &'static str), u64>,
    /// Calls on this host by verb: all, failed, refused probes. Absent where an agent counts them.
    calls: Option<BTreeMap<String, (u64, u64, u64)>>,
    missed: u64,
}

impl Summary {
    /// Counts an event that was shown.
    pub(crate) fn shown(&mut self, event: &Event) {
        self.shown += 1;
        let (verb, error, place) = match event {
            Event::Verbs(failure) => failure_group(failure),
            Event::Cm(event) => (event.name.to_string(), String::new(), event.reason.clone().unwrap_or_default()),
            Event::Device(event) => (event.name.to_string(), String::new(), event.device.clone().unwrap_or_default()),
            Event::Health(event) => {
                let part = event.part.clone().unwrap_or_default();
                (event.event.clone(), part, event.place.name().unwrap_or_default().to_owned())
            }
        };
        *self.groups.entry((verb, error, place)).or_default() += 1;
    }

    /// Counts a call that was shown because it does not return.
    pub(crate) fn stuck(&mut self, call: &InFlight, device: Option<&str>) {
        self.shown += 1;
        let group = (verb_name(call.key).into_owned(), "not returned".to_owned(), device.unwrap_or("-").to_owned());
        *self.groups.entry(group).or_default() += 1;
    }

    /// How many were shown.
    pub(crate) const fn count(&self) -> u64 {
        self.shown
    }

    /// Counts a loss.
    pub(crate) fn lost(&mut self, program: &'static str, stage: &'static str, reason: &'static str, count: u64) {
        if count > 0 {
            *self.lost.entry((program, stage, reason)).or_default() += count;
        }
    }

    /// Takes the kernel side's counters at the end of a session of its own.
    pub(crate) fn close(&mut self, tracer: &Tracer, snapshot: &Snapshot) {
        let mut calls: BTreeMap<String, (u64, u64, u64)> = BTreeMap::new();
        for (_, key, counters) in &snapshot.calls {
            let sum = calls.entry(verb_name(*key).into_owned()).or_default();
            sum.0 += counters.calls;
            sum.1 += counters.failures;
            sum.2 += counters.probes;
        }
        self.calls = Some(calls);
        for (counter, count) in counter::TABLE.iter().zip(&snapshot.lost) {
            self.lost(counter.program, counter.stage, counter.reason, *count);
        }
        self.missed = tracer.hooks().iter().map(|hook| hook.missed).sum();
    }

    /// Prints it.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub(crate) fn print(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out)?;
        // What a hook missed is a link of a chain, and no event: shown and lost events add up to the failures.
        let lost: u64 = self.lost.values().sum();
        let shown = number(self.shown, "event");
        if let Some(calls) = &self.calls {
            let (calls, failures, probes) = calls.values().fold((0, 0, 0), |a, b| (a.0 + b.0, a.1 + b.1, a.2 + b.2));
            let (calls, failures) = (number(calls, "call"), number(failures, "failure"));
            // The kernel side counts for the whole host, whatever the session was asked to show.
            let probes = number(probes, "refused probe");
            writeln!(out, "{shown} shown; on the whole host: {calls}, {failures}, {probes}, {lost} lost")?;
        } else {
            writeln!(out, "{shown} shown, {lost} lost")?;
        }
        let mut groups: Vec<_> = self.groups.iter().collect();
        groups.sort_by(|a, b| b.1.cmp(a.1));
        for ((verb, error, place), count) in groups.iter().take(LINES) {
            writeln!(out, "{count:>8}  {verb:<18} {error:<14} {place}")?;
        }
        if groups.len() > LINES {
            writeln!(out, "          and {} more kinds", groups.len() - LINES)?;
        }
        for ((program, stage, reason), count) in &self.lost {
            writeln!(out, "{count:>8}  lost: {program}, {stage}, {reason}")?;
        }
        if self.missed > 0 {
            writeln!(
                out,
                "{:>8}  missed: links of chains, by hooks that could not run when they were hit (fabricscope hooks)",
                self.missed
            )?;
        }
        Ok(())
    }
}

/// `1 call`, `2 calls`
fn number(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn failure_group(failure: &Failure) -> (String, String, String) {
    let place = format!("{} {}", failure.answer.layer.name(), failure.answer.function);
    (failure.verb.to_string(), errno_name(failure.errno).into_owned(), place)
}

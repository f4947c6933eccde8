//! The default set against what discovery ends in.

use serde::Serialize;

use super::exceptions::{BY_HAND, LEFT_OUT};
use super::{HEURISTICS, Outcome, assumed, narrow};
use crate::probes::Hook;

/// How a row of the probe table stands to discovery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "verdict")]
pub(crate) enum Verdict {
    /// In the default set, and discovery ends in it.
    Found {
        /// The function it ends in.
        function: String,
        /// What can part there.
        reason: String,
    },
    /// In the default set without being found.
    ByHand {
        /// Why it is there all the same.
        reason: String,
    },
    /// In the default set, and this kernel does not have its functions.
    Absent,
    /// Not in the default set, as discovery says.
    SessionOnly {
        /// The heuristic that dropped it and why; empty if the kernel does not have its functions.
        reason: String,
    },
    /// Discovery and the default set do not agree, and no reason is written down.
    Disagrees {
        /// What discovery says.
        reason: String,
    },
}

/// The verdicts on all rows, in the table's order, and the functions that discovery ends in without a row.
pub(crate) fn compare<'a>(outcomes: &'a [Outcome<'a>]) -> (Vec<Verdict>, Vec<(&'a Outcome<'a>, &'static str)>) {
    let verdicts = Hook::all().map(|(_, hook)| verdict(hook, outcomes)).collect();
    let covered = |outcome: &Outcome<'_>| Hook::all().any(|(_, hook)| hook.default && is_of(hook, outcome));
    let left = outcomes.iter().filter(|outcome| outcome.is_kept() && !covered(outcome));
    let reason = |outcome: &Outcome<'_>| find(LEFT_OUT, &outcome.function.name).unwrap_or("no row has it");
    (verdicts, left.map(|outcome| (outcome, reason(outcome))).collect())
}

/// Why each row is in the default set, or why not, told from the table alone: in the table's order.
pub(crate) fn why_each() -> Vec<Verdict> {
    let functions = assumed::table();
    compare(&narrow(&functions)).0
}

fn verdict(hook: &Hook, outcomes: &[Outcome<'_>]) -> Verdict {
    let own = || outcomes.iter().filter(|outcome| is_of(hook, outcome));
    let kept = own().find(|outcome| outcome.is_kept());
    let by_hand = find(BY_HAND, hook.name);
    match (hook.default, kept, by_hand) {
        (true, Some(outcome), _) => {
            Verdict::Found { function: outcome.function.name.clone(), reason: outcome.reason.clone() }
        }
        (true, None, Some(reason)) => Verdict::ByHand { reason: reason.to_owned() },
        (false, Some(outcome), _) => Verdict::Disagrees { reason: outcome.reason.clone() },
        (default, None, _) => {
            let furthest = own().max_by_key(|outcome| outcome.passed);
            let reason = furthest.map(dropped);
            match (default, reason) {
                (true, Some(reason)) => Verdict::Disagrees { reason },
                (true, None) => Verdict::Absent,
                (false, reason) => Verdict::SessionOnly { reason: reason.unwrap_or_default() },
            }
        }
    }
}

/// The heuristic that dropped a function, and why.
fn dropped(outcome: &Outcome<'_>) -> String {
    let name = HEURISTICS.get(outcome.passed).map_or("", |heuristic| heuristic.name);
    format!("{name}: {}", outcome.reason)
}

/// Whether a function is one of a row's. Functions move between modules above the drivers.
fn is_of(hook: &Hook, outcome: &Outcome<'_>) -> bool {
    let module = outcome.function.module.as_str();
    (module.is_empty() || hook.modules.contains(&module)) && hook.functions.contains(&outcome.function.name.as_str())
}

fn find(table: &[(&str, &'static str)], name: &str) -> Option<&'static str> {
    table.iter().find(|(row, _)| *row == name).map(|(_, reason)| *reason)
}

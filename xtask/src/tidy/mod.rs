//! `cargo xtask tidy`: the rules that neither the compiler nor clippy holds, as pure functions over the sources.
//!
//! [`RULES`] is the table. A rule sees every text file of the workspace and returns what it found; what
//! [`EXCEPTIONS`] names is let pass, and an exception that lets nothing pass is itself a finding.

mod fences;
mod manifest;
mod shape;
mod source;

use anyhow::{Result, bail};

use crate::runner::workspace;
use source::Source;

/// One breach of a rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Finding {
    pub(super) path: String,
    /// From 1.
    pub(super) line: usize,
    /// What stands there that should not: the word, function or dependency; what an exception names.
    pub(super) item: String,
    pub(super) message: String,
}

struct Rule {
    name: &'static str,
    find: fn(&[Source]) -> Vec<Finding>,
}

const RULES: &[Rule] = &[
    Rule { name: "fence", find: fences::words },
    Rule { name: "pure-analysis", find: fences::analysis },
    Rule { name: "who-knows-whom", find: manifest::members },
    Rule { name: "log-in-debug-only", find: manifest::kernel_log },
    Rule { name: "doc-line", find: shape::doc_line },
    Rule { name: "file-length", find: shape::file_length },
    Rule { name: "function-length", find: shape::function_length },
    Rule { name: "owned-todo", find: shape::owned_todo },
    Rule { name: "no-ignored-test", find: shape::ignored_test },
    Rule { name: "no-sleep-in-tests", find: shape::sleep_in_tests },
];

/// A breach that is let pass, and why.
struct Exception {
    rule: &'static str,
    path: &'static str,
    item: &'static str,
    /// Kept beside the row for who reads it; printed when the exception is no longer used.
    reason: &'static str,
}

const EXCEPTIONS: &[Exception] = &[
    Exception {
        rule: "no-sleep-in-tests",
        path: "tests/src/command.rs",
        item: "sleep",
        reason: "the one poll with a deadline of the end-to-end tests",
    },
    Exception {
        rule: "no-sleep-in-tests",
        path: "agent/src/daemon/tests.rs",
        item: "sleep",
        reason: "the one pause between looks of the daemon's polls with a deadline",
    },
];

/// Holds every rule against the workspace and prints what it finds.
///
/// # Errors
/// If a file cannot be read, or anything was found.
pub(crate) fn run() -> Result<()> {
    let sources = source::collect(&workspace())?;
    let findings = judge(&sources, RULES, EXCEPTIONS);
    for (rule, finding) in &findings {
        eprintln!("{}:{}: {} ({rule})", finding.path, finding.line, finding.message);
    }
    match findings.len() {
        0 => {
            eprintln!("tidy: {} files hold {} rules", sources.len(), RULES.len());
            Ok(())
        }
        count => bail!("tidy: {count} breaches"),
    }
}

fn judge(sources: &[Source], rules: &[Rule], exceptions: &[Exception]) -> Vec<(&'static str, Finding)> {
    let mut used = vec![false; exceptions.len()];
    let mut findings = Vec::new();
    for rule in rules {
        for finding in (rule.find)(sources) {
            let excepted = exceptions.iter().position(|exception| {
                exception.rule == rule.name && exception.path == finding.path && exception.item == finding.item
            });
            match excepted.and_then(|at| used.get_mut(at)) {
                Some(used) => *used = true,
                None => findings.push((rule.name, finding)),
            }
        }
    }
    for (exception, _) in exceptions.iter().zip(used).filter(|(_, used)| !used) {
        let message = format!("the exception for `{}` lets nothing pass: {}", exception.item, exception.reason);
        let finding = Finding { path: exception.path.into(), line: 1, item: exception.item.into(), message };
        findings.push((exception.rule, finding));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORD: Rule = Rule {
        name: "word",
        find: |sources| {
            let item = || String::from("bad");
            let finding =
                |source: &Source| Finding { path: source.path.clone(), line: 1, item: item(), message: item() };
            sources.iter().filter(|source| source.text.contains("bad")).map(finding).collect()
        },
    };

    fn exception(path: &'static str) -> Exception {
        Exception { rule: "word", path, item: "bad", reason: "why" }
    }

    #[test]
    fn an_exception_covers_its_own_file_only() {
        let sources = [Source::new("a.rs", "bad"), Source::new("b.rs", "bad")];
        let found = judge(&sources, &[WORD], &[exception("a.rs")]);
        let paths: Vec<_> = found.iter().map(|(_, finding)| finding.path.as_str()).collect();
        assert_eq!(paths, ["b.rs"]);
    }

    #[test]
    fn an_unused_exception_is_a_finding() {
        let found = judge(&[Source::new("a.rs", "good")], &[WORD], &[exception("a.rs")]);
        assert_eq!(found.len(), 1);
        assert!(found[0].1.message.contains("lets nothing pass: why"), "{}", found[0].1.message);
    }
}

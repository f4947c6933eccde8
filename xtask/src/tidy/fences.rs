//! What each part of the project must not know, held against the words of its code.

use super::Finding;
use super::source::Source;

/// Where a word may stand although a fence surrounds it.
#[derive(Debug, Clone, Copy)]
enum Gate {
    /// Everything under a folder, seen from the workspace.
    Under(&'static str),
    /// A module of this name in any crate: the folder, or the file.
    Module(&'static str),
}

/// These words stand nowhere `within` but behind the gates.
struct Fence {
    /// The start of a path; empty for everywhere.
    within: &'static str,
    words: &'static [&'static str],
    gates: &'static [Gate],
    why: &'static str,
}

const FENCES: &[Fence] = &[
    Fence {
        within: "",
        words: &["aya", "aya_obj"],
        gates: &[Gate::Under("agent/src/kernel/")],
        why: "only agent/src/kernel/ knows the library that talks to the kernel",
    },
    Fence {
        within: "agent/",
        words: &["unsafe"],
        gates: &[Gate::Under("agent/src/kernel/")],
        why: "the agent's unsafe code stands in agent/src/kernel/",
    },
    Fence {
        within: "",
        words: &["tonic", "prost", "prost_types", "tonic_prost"],
        gates: &[Gate::Module("rpc"), Gate::Under("proto/")],
        why: "the wire format is known to the rpc modules only",
    },
    Fence {
        within: "",
        words: &["prometheus_client"],
        gates: &[Gate::Module("metrics")],
        why: "the metrics library is known to the metrics modules only",
    },
    Fence {
        within: "analysis/",
        words: &["Instant", "SystemTime", "dbg", "eprint", "eprintln", "print", "println", "tokio", "tracing"],
        gates: &[Gate::Under("analysis/tests/")],
        why: "analysis is pure: the same input gives the same answer",
    },
];

/// Modules of the standard library that reach out of a pure function.
const OUTSIDE: &[&str] = &["env", "fs", "io", "net", "os", "process", "thread"];

pub(super) fn words(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources.iter().filter(|source| source.is_rust()) {
        let fences: Vec<_> = FENCES.iter().filter(|fence| fence.surrounds(&source.path)).collect();
        for word in source.words() {
            for fence in fences.iter().filter(|fence| fence.words.contains(&word.text)) {
                let message = format!("`{}` stands outside its fence: {}", word.text, fence.why);
                findings.push(finding(source, word.line, word.text, message));
            }
        }
    }
    findings
}

impl Fence {
    fn surrounds(&self, path: &str) -> bool {
        let open = |gate: &Gate| match gate {
            Gate::Under(folder) => path.starts_with(folder),
            Gate::Module(name) => path.split('/').any(|part| part == *name || part.strip_suffix(".rs") == Some(name)),
        };
        path.starts_with(self.within) && !self.gates.iter().any(open)
    }
}

/// `std::fs` and its like in analysis, in a path or in a group of imports.
pub(super) fn analysis(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources.iter().filter(|source| source.is_rust() && source.path.starts_with("analysis/")) {
        for word in source.words().filter(|word| OUTSIDE.contains(&word.text)) {
            if of_std(source.code.get(..word.start).unwrap_or_default()) {
                let message = format!("`std::{}` in analysis, which is pure", word.text);
                findings.push(finding(source, word.line, word.text, message));
            }
        }
    }
    findings
}

/// Whether a name after `before` is a member of `std`: after `std::`, or at the first level of `std::{…`.
fn of_std(before: &str) -> bool {
    let before = before.trim_end();
    if before.ends_with("std::") {
        return true;
    }
    let statement = before.rsplit(';').next().unwrap_or_default();
    let Some((_, group)) = statement.rsplit_once("std::{") else { return false };
    let depth = |open: char, close: char| group.matches(open).count() == group.matches(close).count();
    depth('{', '}') && (group.is_empty() || group.ends_with([',', '}']))
}

fn finding(source: &Source, line: usize, item: &str, message: String) -> Finding {
    Finding { path: source.path.clone(), line, item: item.to_owned(), message }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(rule: fn(&[Source]) -> Vec<Finding>, path: &str, text: &str, expected: &[&str]) {
        let found = rule(&[Source::new(path, text)]);
        let items: Vec<_> = found.iter().map(|finding| finding.item.as_str()).collect();
        assert_eq!(items, expected, "{path}: {text}");
    }

    #[test]
    fn words_stand_behind_their_gate_only() {
        check(words, "agent/src/kernel/load.rs", "use aya::Ebpf; unsafe {}", &[]);
        check(words, "agent/src/daemon.rs", "use aya::Ebpf; unsafe {}", &["aya", "unsafe"]);
        check(words, "agent/src/kernel.rs", "aya::x()", &["aya"]);
        check(words, "tests/src/a.rs", "aya_obj::x()", &["aya_obj"]);
        check(words, "agent-ebpf/src/main.rs", "use aya_ebpf::x; unsafe {}", &[]);
        check(words, "agent/src/rpc/mod.rs", "tonic::x()", &[]);
        check(words, "orchestrator/src/rpc.rs", "prost::x()", &[]);
        check(words, "agent/src/rpcs.rs", "prost::x()", &["prost"]);
        check(words, "proto/src/generated/x.rs", "prost::x()", &[]);
        check(words, "agent/src/metrics/verbs.rs", "prometheus_client::x()", &[]);
        check(words, "agent/src/verbs/mod.rs", "prometheus_client::x()", &["prometheus_client"]);
    }

    #[test]
    fn comments_and_other_words_do_not_count() {
        check(words, "agent/src/daemon.rs", "// aya\nlet aya_like = \"aya unsafe\";", &[]);
        check(words, "agent/src/main.rs", "#![deny(unsafe_code)]", &[]);
    }

    #[test]
    fn analysis_reaches_nothing_outside() {
        check(analysis, "analysis/src/burst.rs", "use std::fs;", &["fs"]);
        check(analysis, "analysis/src/burst.rs", "use std::{collections::{A, B}, io, thread};", &["io", "thread"]);
        check(analysis, "analysis/src/burst.rs", "use std::collections::A; let io = net; x.process()", &[]);
        check(analysis, "agent/src/burst.rs", "use std::fs;", &[]);
        check(words, "analysis/src/burst.rs", "let t = Instant::now(); println!()", &["Instant", "println"]);
    }
}

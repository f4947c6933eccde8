//! Who knows whom: the dependencies that each member's Cargo.toml names.

use super::Finding;
use super::source::Source;

/// A member and the members it may name. What is not listed here is no member: a new crate says whom it knows.
const KNOWS: &[(&str, &[&str])] = &[
    ("agent", &["agent-common", "analysis", "ebpf-build", "proto"]),
    ("agent-common", &[]),
    ("agent-ebpf", &["agent-common"]),
    ("analysis", &[]),
    ("ebpf-build", &[]),
    ("orchestrator", &["analysis", "proto"]),
    ("proto", &[]),
    ("tests", &[]),
    ("xtask", &["ebpf-build"]),
];

/// Members that depend on nothing at all.
const ALONE: &[&str] = &["agent-common", "ebpf-build"];

pub(super) fn members(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources {
        let Some(member) = member(&source.path) else { continue };
        let Some((_, knows)) = KNOWS.iter().find(|(name, _)| *name == member) else {
            let message = format!("{member} is not in tidy's table of who knows whom");
            findings.push(Finding { path: source.path.clone(), line: 1, item: member.to_owned(), message });
            continue;
        };
        for dependency in dependencies(&source.text) {
            let is_member = KNOWS.iter().any(|(name, _)| *name == dependency.name);
            let message = if ALONE.contains(&member) {
                format!("{member} depends on nothing, but names {}", dependency.name)
            } else if is_member && !knows.contains(&dependency.name) {
                format!("{member} must not know {}", dependency.name)
            } else {
                continue;
            };
            let (line, item) = (dependency.line, dependency.name.to_owned());
            findings.push(Finding { path: source.path.clone(), line, item, message });
        }
    }
    findings
}

/// Logging from the kernel side costs thousands of verified instructions: never in the shipped object.
pub(super) fn kernel_log(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources.iter().filter(|source| member(&source.path) == Some("agent-ebpf")) {
        for dependency in dependencies(&source.text) {
            if dependency.name.starts_with("aya-log") && !dependency.settings.contains("optional = true") {
                let message = format!("{} must be optional: it is for debug builds only", dependency.name);
                let (line, item) = (dependency.line, dependency.name.to_owned());
                findings.push(Finding { path: source.path.clone(), line, item, message });
            }
        }
    }
    findings
}

/// The member whose manifest this is.
fn member(path: &str) -> Option<&str> {
    path.strip_suffix("/Cargo.toml").filter(|folder| !folder.contains('/'))
}

struct Dependency<'a> {
    name: &'a str,
    line: usize,
    /// What stands after the name.
    settings: &'a str,
}

/// The dependencies of every kind and target that a manifest names, in the one-line form this project uses and
/// in the form of a table of their own.
fn dependencies(toml: &str) -> Vec<Dependency<'_>> {
    let mut found = Vec::new();
    let mut inside = false;
    for (line, text) in (1..).zip(toml.lines()).map(|(line, text)| (line, text.trim())) {
        if let Some(header) = text.strip_prefix('[') {
            let header = header.split(']').next().unwrap_or_default();
            // The target's condition may itself hold dots: only the end of the header counts.
            inside = header.ends_with("dependencies");
            if let Some((_, name)) = header.split_once("dependencies.") {
                found.push(Dependency { name, line, settings: "" });
            }
        } else if inside && !text.starts_with('#') {
            let Some(end) = text.find(['.', '=', ' ']) else { continue };
            let (name, settings) = text.split_at(end);
            found.push(Dependency { name, line, settings });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(rule: fn(&[Source]) -> Vec<Finding>, path: &str, text: &str, expected: &[(usize, &str)]) {
        let found = rule(&[Source::new(path, text)]);
        let items: Vec<_> = found.iter().map(|finding| (finding.line, finding.item.as_str())).collect();
        assert_eq!(items, expected, "{path}: {text}");
    }

    #[test]
    fn members_name_only_whom_they_may_know() {
        let agent =
            "[dependencies]\nagent-common.workspace = true\n\n[dev-dependencies]\norchestrator = { path = \"x\" }\n";
        check(members, "agent/Cargo.toml", agent, &[(5, "orchestrator")]);
        check(
            members,
            "xtask/Cargo.toml",
            "[dependencies]\n# why\nanyhow.workspace = true\nagent-common.workspace = true",
            &[(4, "agent-common")],
        );
        check(
            members,
            "xtask/Cargo.toml",
            "[dependencies]\nebpf-build.workspace = true\n[lints]\nagent-common = 1",
            &[],
        );
    }

    #[test]
    fn some_members_depend_on_nothing_at_all() {
        check(
            members,
            "agent-common/Cargo.toml",
            "[target.'cfg(a = \"b.c\")'.dependencies]\nserde = \"1\"\n",
            &[(2, "serde")],
        );
        check(members, "agent-common/Cargo.toml", "[dependencies.serde]\nversion = \"1\"\n", &[(1, "serde")]);
        check(members, "agent-common/Cargo.toml", "[package]\nname = \"agent-common\"\n[dependencies]\n", &[]);
    }

    #[test]
    fn a_member_outside_the_table_is_named() {
        check(members, "extra/Cargo.toml", "[package]\n", &[(1, "extra")]);
        check(members, "Cargo.toml", "[workspace.dependencies]\nagent = 1\n", &[]);
    }

    #[test]
    fn logging_in_the_kernel_side_is_optional() {
        let always = "[dependencies]\naya-log-ebpf.workspace = true\n";
        check(kernel_log, "agent-ebpf/Cargo.toml", always, &[(2, "aya-log-ebpf")]);
        let optional = "[dependencies]\naya-log-ebpf = { workspace = true, optional = true }\n";
        check(kernel_log, "agent-ebpf/Cargo.toml", optional, &[]);
    }
}

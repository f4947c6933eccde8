//! Holds what people read against what the program knows: help texts, the tables of the README, small outputs.
//!
//! `FABRICSCOPE_REWRITE=1 cargo test -p agent` writes the files anew; the difference is then read by a
//! person before it is committed.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Command;
use clap::error::ErrorKind;

use crate::cli::help;
use crate::counters::catalogue;
use crate::metrics::page::counter_labels;
use crate::metrics::table::TABLE as METRICS;
use crate::probes::{Hook, Layer};

/// Columns that help is wrapped to here, whatever the terminal.
const COLUMNS: usize = 100;

pub(crate) fn workspace(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// The file holds this text.
#[track_caller]
pub(crate) fn holds(path: &Path, expected: &str) {
    let found = fs::read_to_string(path).unwrap_or_default();
    if found == expected {
        return;
    }
    if std::env::var_os("FABRICSCOPE_REWRITE").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, expected).unwrap();
        return;
    }
    panic!(
        "{} differs from what the program knows; FABRICSCOPE_REWRITE=1 writes it anew. Found:\n{found}\nExpected:\n{expected}",
        path.display()
    );
}

/// The part of the README between two comments holds this table.
#[track_caller]
fn readme_holds(part: &str, table: &str) {
    let path = workspace("README.md");
    let readme = fs::read_to_string(&path).unwrap();
    let (begin, end) = (format!("<!-- {part} -->\n"), format!("<!-- end of {part} -->"));
    let start = readme.find(&begin).unwrap_or_else(|| panic!("no {begin} in the README")) + begin.len();
    let stop = start + readme[start..].find(&end).unwrap_or_else(|| panic!("no {end} in the README"));
    holds(&path, &format!("{}{table}{}", &readme[..start], &readme[stop..]));
}

/// Help of a command and of all commands below it, each with the words it is called by.
fn help_texts(command: &mut Command, words: &str, texts: &mut Vec<(String, String)>) {
    let text = command.render_long_help().to_string();
    // Clap leaves blanks at the ends of empty lines, which editors take away.
    let lines: String = text.lines().flat_map(|line| [line.trim_end(), "\n"]).collect();
    texts.push((words.to_owned(), lines));
    for child in command.get_subcommands_mut().filter(|child| child.get_name() != "help") {
        let words = format!("{words} {}", child.get_name());
        help_texts(child, &words, texts);
    }
}

#[test]
fn help_reads_as_it_was_last_read() {
    let mut command = help::command().term_width(COLUMNS);
    command.build();
    let mut texts = Vec::new();
    help_texts(&mut command, "fabricscope", &mut texts);
    assert!(texts.len() > 8, "{}", texts.len());
    let folder = workspace("agent/src/cli/help");
    for (words, text) in &texts {
        holds(&folder.join(format!("{}.txt", words.replace(' ', "-"))), text);
    }
    for entry in fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let known = |(words, _): &(String, String)| format!("{}.txt", words.replace(' ', "-")) == name;
        assert!(texts.iter().any(known), "{name} is the help of no command");
    }
}

#[test]
fn the_readme_counts_the_hooks_there_are() {
    let mut table = "| layer | hooks | always on | modules |\n|---|---:|---:|---|\n".to_owned();
    for layer in Layer::ALL {
        let hooks: Vec<&Hook> = Hook::all().map(|(_, hook)| hook).filter(|hook| hook.layer == layer).collect();
        let on = hooks.iter().filter(|hook| hook.default).count();
        let mut modules: Vec<&str> = hooks.iter().flat_map(|hook| hook.modules).copied().collect();
        modules.sort_unstable();
        modules.dedup();
        let modules: Vec<String> = modules.iter().map(|module| format!("`{module}`")).collect();
        writeln!(table, "| {} | {} | {on} | {} |", layer.name(), hooks.len(), modules.join(" ")).unwrap();
    }
    readme_holds("hooks", &table);
}

#[test]
fn the_readme_lists_the_metrics_there_are() {
    let mut table = "| metric | labels | what it says |\n|---|---|---|\n".to_owned();
    for row in METRICS {
        writeln!(table, "| `{}` | {} | {} |", row.name, row.labels.join(", "), row.help).unwrap();
    }
    for row in catalogue::rows().filter(|row| row.metric && row.pause_metric().is_none()) {
        let labels = counter_labels(row).join(", ");
        writeln!(table, "| `{}` | {labels} | {} |", row.metric_name(), row.help()).unwrap();
    }
    readme_holds("metrics", &table);
}

/// Every command line of this program in a text: at the start of a line, or in backquotes.
fn command_lines(text: &str) -> Vec<String> {
    // A text may break a line inside of backquotes.
    let text = text.replace("\n            ", " ");
    let quoted = text.split('`').skip(1).step_by(2);
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
    // What the program prints begins with its name and version.
    let is_command =
        |line: &&str| line.strip_prefix("fabricscope ").is_some_and(|rest| rest.starts_with(char::is_alphabetic));
    let all = quoted.chain(lines).map(str::trim).filter(is_command);
    all.filter(|line| !line.contains(['{', '…', '/', '\\'])).map(str::to_owned).collect()
}

#[test]
fn commands_that_are_written_down_are_taken() {
    let rows = [("README.md", 10), ("deploy/prometheus/fabricscope.rules.yml", 4), ("deploy/agent.toml", 2)];
    for (path, least) in rows {
        let lines = command_lines(&fs::read_to_string(workspace(path)).unwrap());
        assert!(lines.len() >= least, "{path}: {lines:?}");
        for line in lines {
            match help::command().try_get_matches_from(line.split_whitespace()) {
                Ok(_) => {}
                // A command that is spoken of, not to be copied.
                Err(error) if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {}
                Err(error) => panic!("{path}: {line}: {error}"),
            }
        }
    }
}

#[test]
fn the_packaged_rules_name_hooks_that_exist() {
    let rules = fs::read_to_string(workspace("deploy/prometheus/fabricscope.rules.yml")).unwrap();
    let lists: Vec<&str> = rules.split("hook=~\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert!(!lists.is_empty());
    for name in lists.iter().flat_map(|list| list.split('|')) {
        assert!(Hook::all().any(|(_, hook)| hook.name == name), "{name} is no hook");
    }
}

#[test]
fn each_packaged_alert_says_what_to_do() {
    let rules = fs::read_to_string(workspace("deploy/prometheus/fabricscope.rules.yml")).unwrap();
    let alerts: Vec<&str> = rules.split("- alert: ").skip(1).collect();
    assert!(alerts.len() >= 5);
    for alert in alerts {
        let name = alert.lines().next().unwrap();
        let (_, summary) = alert.split_once("summary: >-").unwrap_or_else(|| panic!("{name} has no summary"));
        // What is wrong is one sentence, what to do another.
        assert!(summary.split(['.', ';', ':']).filter(|part| part.trim().len() > 20).count() >= 2, "{name}:{summary}");
        assert!(alert.contains("severity: ") && alert.contains("expr: "), "{name}");
    }
}

//! The first screen of help: examples, then the commands in groups. A command is in [`GROUPS`] once.

use std::fmt::Write as _;

use clap::{Command, CommandFactory as _};

use super::Cli;

/// What can be copied into a shell as it stands.
const EXAMPLES: [(&str, &str); 3] = [
    ("fabricscope trace verbs -- ibv_devinfo", "run a program, see which RDMA calls fail and why"),
    ("fabricscope trace verbs --all --duration 30s", "every process of this host, every layer, 30 s"),
    ("fabricscope doctor", "what this host lacks, and how to mend it"),
];

/// Every command, in the order of the help. A group without commands is not shown.
const GROUPS: [(&str, &[&str]); 4] = [
    ("Now", &["trace", "counters", "status", "doctor", "explain", "hooks"]),
    ("Afterwards", &["bursts"]),
    ("Fleet", &[]),
    ("Operate", &["agent", "check", "halt"]),
];

/// The command line with its first screen of help.
pub(crate) fn command() -> Command {
    let command = Cli::command();
    let template = template(&command);
    // However it was started, it is called by its name.
    command.bin_name("fabricscope").help_template(template)
}

/// Clap's template: only what stands in braces is filled in by clap.
fn template(command: &Command) -> String {
    let mut text = "{about-with-newline}\nExamples:\n".to_owned();
    let example_width = EXAMPLES.iter().map(|(line, _)| line.len()).max().unwrap_or_default();
    // Writing to a string does not fail.
    for (line, why) in EXAMPLES {
        let _ = writeln!(text, "  {line:<example_width$}  # {why}");
    }
    text.push_str("\n{usage-heading} {usage}\n");
    let width = GROUPS.iter().flat_map(|(_, names)| *names).map(|name| name.len()).max().unwrap_or_default();
    for (title, names) in GROUPS.iter().filter(|(_, names)| !names.is_empty()) {
        let _ = writeln!(text, "\n{title}:");
        for name in *names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(text, "  {name:<width$}  {about}");
        }
    }
    text.push_str("\nOptions:\n{options}\n\n`fabricscope help COMMAND` tells more.\n");
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::error::ErrorKind;

    use super::*;

    #[test]
    fn each_command_is_in_one_group() {
        let listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        let known = Cli::command();
        let known: BTreeSet<&str> =
            known.get_subcommands().map(Command::get_name).filter(|name| *name != "help").collect();
        assert_eq!(listed.iter().copied().collect::<BTreeSet<_>>(), known);
        assert_eq!(listed.len(), known.len(), "a command is in two groups");
    }

    #[test]
    fn each_command_says_what_it_does_on_one_line_of_a_terminal() {
        let help = command().render_help().to_string();
        for line in help.lines() {
            assert!(line.chars().count() <= 100, "{line}");
        }
        for name in Cli::command().get_subcommands() {
            assert!(name.get_about().is_some_and(|about| !about.to_string().is_empty()), "{}", name.get_name());
        }
    }

    #[test]
    fn examples_are_what_the_command_line_takes() {
        for (line, _) in EXAMPLES {
            let outcome = command().try_get_matches_from(line.split_whitespace());
            assert!(outcome.is_ok(), "{line}: {outcome:?}");
        }
    }

    #[test]
    fn examples_come_before_everything_that_must_be_read() {
        let help = command().try_get_matches_from(["fabricscope", "--help"]).unwrap_err();
        assert_eq!(help.kind(), ErrorKind::DisplayHelp);
        let help = help.to_string();
        let at = |text: &str| help.find(text).unwrap_or_else(|| panic!("no {text} in {help}"));
        assert!(at("Examples:") < at("Usage:") && at("Usage:") < at("Now:") && at("Now:") < at("Operate:"));
        assert!(!help.contains("Fleet:"), "a group without commands is shown:\n{help}");
    }
}

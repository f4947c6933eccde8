//! The files that are installed beside the binary: they are read by the programs they are for.

use std::fs;

use tests::command::workspace;

use crate::program::{Scratch, start, text_of};

#[test]
fn the_configuration_passes_check() {
    let seen = start(&["check", "--config", &text_of(&workspace().join("deploy/agent.toml"))]);
    assert_eq!((seen.status.code(), &*seen.stderr), (Some(0), ""));
}

#[test]
fn the_unit_calls_the_program_by_words_that_it_knows() {
    let unit = fs::read_to_string(workspace().join("deploy/fabricscope.service")).unwrap();
    let commands: Vec<&str> = unit.lines().filter(|line| line.starts_with("Exec")).collect();
    assert_eq!(commands.len(), 3, "{commands:?}");
    // As far as the words go, the unit and the command line are of one mind.
    for command in commands {
        let (_, words) = command.split_once("/usr/bin/fabricscope ").unwrap();
        let subcommand = words.split(' ').next().unwrap();
        let help = start(&[subcommand, "--help"]);
        for flag in words.split(' ').filter(|word| word.starts_with("--")) {
            assert!(help.stdout.contains(flag), "{subcommand} has no {flag}");
        }
    }
}

#[test]
fn prometheus_takes_the_rules_and_the_scrape_configuration() {
    let folder = workspace().join("deploy/prometheus");
    tests::promtool::check_rules(&folder.join("fabricscope.rules.yml")).unwrap();
    tests::promtool::test_rules(&folder.join("fabricscope.rules.test.yml")).unwrap();
    let scratch = Scratch::new();
    let jobs = fs::read_to_string(folder.join("scrape.yml")).unwrap();
    let jobs: String = jobs.lines().flat_map(|line| ["  ", line, "\n"]).collect();
    let config = scratch.file("prometheus.yml", &format!("scrape_configs:\n{jobs}"));
    tests::promtool::check_config(config.as_ref()).unwrap();
}

//! The files that are installed beside the binary: they are read by the programs they are for.

use std::fs;
use std::process::Command;

use tests::command::{fabricscope, workspace};

use crate::program::{LIMIT, Scratch, start, text_of};

/// Runs a checker that hosts may lack; `None` where it is not there.
fn checker(command: &mut Command) -> Option<tests::command::Finished> {
    let name = command.get_program().to_string_lossy().into_owned();
    let found = std::env::split_paths(&std::env::var_os("PATH")?).any(|folder| folder.join(&name).is_file());
    if !found {
        println!("{name} is not there: not checked by it");
        return None;
    }
    Some(tests::command::run(command, LIMIT).unwrap())
}

#[test]
fn the_configuration_passes_check() {
    let seen = start(&["check", "--config", &text_of(&workspace().join("deploy/agent.toml"))]);
    assert_eq!((seen.status.code(), &*seen.stderr), (Some(0), ""));
}

#[test]
fn the_unit_is_one_that_systemd_takes_without_a_warning() {
    let unit = fs::read_to_string(workspace().join("deploy/fabricscope.service")).unwrap();
    let commands: Vec<&str> = unit.lines().filter(|line| line.starts_with("Exec")).collect();
    assert_eq!(commands.len(), 2, "{commands:?}");
    // As far as the words go, the unit and the command line are of one mind.
    for command in commands {
        let (_, words) = command.split_once("/usr/bin/fabricscope ").unwrap();
        let subcommand = words.split(' ').next().unwrap();
        let help = start(&[subcommand, "--help"]);
        for flag in words.split(' ').filter(|word| word.starts_with("--")) {
            assert!(help.stdout.contains(flag), "{subcommand} has no {flag}");
        }
    }
    let scratch = Scratch::new();
    let installed = unit.replace("/usr/bin/fabricscope", &text_of(&fabricscope()));
    let copy = scratch.file("fabricscope.service", &installed);
    if let Some(seen) = checker(Command::new("systemd-analyze").args(["verify", &copy])) {
        let said = seen.stdout + &seen.stderr;
        assert!(seen.status.success() && !said.contains("fabricscope.service"), "{said}");
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

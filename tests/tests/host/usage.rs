//! Help, bad words and bad files: what the program says, and the status it ends with.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use tests::command::{Finished, fabricscope, run};

/// Far longer than any of these takes on a busy host.
const LIMIT: Duration = Duration::from_secs(30);

/// A usage error: the words on the command line are wrong.
const USAGE: i32 = 2;

fn program() -> Command {
    let path = fabricscope();
    assert!(path.is_file(), "{} is not there: build it, or name one by FABRICSCOPE_BIN", path.display());
    Command::new(path)
}

#[track_caller]
fn start(words: &[&str]) -> Finished {
    let seen = run(program().args(words), LIMIT).unwrap();
    assert!(!seen.stderr.contains("panicked"), "{words:?}:\n{}", seen.stderr);
    seen
}

/// Refused with this status, with every one of `says` in the message, and nothing on standard output.
#[track_caller]
fn refused(words: &[&str], status: i32, says: &[&str]) {
    let seen = start(words);
    assert_eq!(seen.status.code(), Some(status), "{words:?}:\n{}", seen.stderr);
    for part in says {
        assert!(seen.stderr.contains(part), "{words:?} does not say {part}:\n{}", seen.stderr);
    }
    assert_eq!(seen.stdout, "", "{words:?}");
}

/// Help on standard output, with every one of `says`.
#[track_caller]
fn helps(words: &[&str], says: &[&str]) {
    let seen = start(words);
    assert_eq!((seen.status.code(), &*seen.stderr), (Some(0), ""), "{words:?}");
    for part in says {
        assert!(seen.stdout.contains(part), "{words:?} does not say {part}:\n{}", seen.stdout);
    }
}

#[test]
fn help_names_the_commands_and_their_flags() {
    helps(&["--help"], &["Usage: fabricscope", "agent", "check", "doctor", "hooks", "status", "trace"]);
    helps(&["-h"], &["Usage: fabricscope"]);
    helps(&["trace", "--help"], &["verbs", "cm", "device"]);
    let flags =
        ["--all", "--cgroup", "--comm", "--count", "--device", "--duration", "--errno", "--pid", "--probes", "--verb"];
    helps(&["trace", "verbs", "--help"], &flags);
    helps(&["doctor", "--help"], &["--output"]);
    helps(&["agent", "--help"], &["--config"]);
}

#[test]
fn wrong_words_are_usage_errors_that_name_them() {
    refused(&[], USAGE, &["Usage"]);
    refused(&["trase"], USAGE, &["trase", "trace"]);
    refused(&["--no-such-flag"], USAGE, &["--no-such-flag"]);
    refused(&["doctor", "--output", "yaml"], USAGE, &["--output", "yaml", "json"]);
    refused(&["trace", "verbs", "--pid", "many"], USAGE, &["--pid", "many"]);
    refused(&["trace", "verbs", "--errno", "ENOSUCH"], USAGE, &["--errno", "ENOSUCH"]);
    refused(&["trace", "verbs", "--duration", "long"], USAGE, &["--duration", "long"]);
    refused(&["trace", "verbs", "-o", "yaml"], USAGE, &["yaml", "json"]);
    refused(&["check"], USAGE, &["--config"]);
    refused(&["agent", "--config"], USAGE, &["--config"]);
}

#[test]
fn a_configuration_that_cannot_be_read_is_a_failure_that_names_it() {
    refused(&["check", "--config", "/no/such/file"], 1, &["/no/such/file"]);
    refused(&["agent", "--config", "/no/such/file"], 1, &["/no/such/file"]);
}

/// A file of its own for one test, gone when dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("fabricscope-host-{}-{name}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        Scratch(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // The test has its verdict already.
        drop(std::fs::remove_file(&self.0));
    }
}

#[test]
fn every_unknown_key_of_a_configuration_is_named_at_once() {
    let file = Scratch::new("unknown.toml", "first_nonsense = 1\nsecond_nonsense = 2\n");
    refused(&["check", "--config", file.path()], 1, &["first_nonsense", "second_nonsense"]);
    refused(&["agent", "--config", file.path()], 1, &["first_nonsense", "second_nonsense"]);
}

#[test]
fn an_empty_configuration_is_a_good_one() {
    let file = Scratch::new("empty.toml", "");
    let seen = start(&["check", "--config", file.path()]);
    assert_eq!(seen.status.code(), Some(0), "{}", seen.stderr);
}

#[test]
fn the_doctor_answers_in_json_whatever_the_host_lacks() {
    let seen = start(&["doctor", "--output", "json"]);
    assert!(matches!(seen.status.code(), Some(0 | 1)), "{}", seen.stderr);
    let answer: serde_json::Value = serde_json::from_str(&seen.stdout).unwrap();
    assert!(answer.get("checks").is_some_and(|checks| checks.as_array().is_some_and(|all| !all.is_empty())));
}

/// The reader of the output goes before the first byte.
#[test]
fn a_closed_pipe_ends_the_program_in_silence() {
    let mut child = program().arg("doctor").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let seen = child.wait_with_output().unwrap();
    let words = String::from_utf8_lossy(&seen.stderr);
    assert!(!words.contains("panicked"), "{words}");
}

#[test]
fn output_that_cannot_be_written_is_a_failure_that_says_so() {
    let full = std::fs::File::create("/dev/full").unwrap();
    let child = program().args(["doctor", "--output", "json"]).stdout(full).stderr(Stdio::piped()).spawn().unwrap();
    let seen = child.wait_with_output().unwrap();
    let words = String::from_utf8_lossy(&seen.stderr);
    assert_eq!(seen.status.code(), Some(1), "{words}");
    assert!(words.contains("No space left on device") && !words.contains("panicked"), "{words}");
}

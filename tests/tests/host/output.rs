//! Output that nobody reads, and output that finds no room.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use crate::program::program;

/// Commands that print without help of an agent or of the kernel side.
const PRINT: &[&[&str]] = &[
    &["--help"],
    &["doctor"],
    &["doctor", "--output", "json"],
    &["counters", "--all", "--interval", "10ms"],
    &["counters", "--raw"],
    &["explain", "counter"],
    &["hooks", "--table"],
    &["hooks", "--table", "--json"],
    &["status"],
    &["status", "--output", "json"],
    &["trace", "verbs", "--help"],
];

/// The reader goes before the first byte.
#[test]
fn a_closed_pipe_ends_the_program_in_silence() {
    for words in PRINT {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let child = program().args(*words).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
        let seen = child.wait_with_output().unwrap();
        assert_eq!((seen.status.code(), &*String::from_utf8_lossy(&seen.stderr)), (Some(0), ""), "{words:?}");
    }
}

/// What `| head -1` does.
#[test]
fn a_reader_that_has_seen_enough_ends_the_program_in_silence() {
    let mut child = program().args(["hooks", "--table"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let seen = child.wait_with_output().unwrap();
    assert!(line.contains("uverbs_ioctl"), "{line}");
    assert_eq!((seen.status.code(), &*String::from_utf8_lossy(&seen.stderr)), (Some(0), ""));
}

#[test]
fn a_full_disk_is_a_failure_that_says_so() {
    for words in PRINT {
        let full = File::create("/dev/full").unwrap();
        let child = program().args(*words).stdout(full).stderr(Stdio::piped()).spawn().unwrap();
        let seen = child.wait_with_output().unwrap();
        let says = String::from_utf8_lossy(&seen.stderr);
        assert_eq!(seen.status.code(), Some(1), "{words:?}: {says}");
        assert!(says.contains("cannot write") && says.contains("No space left on device"), "{words:?}: {says}");
    }
}

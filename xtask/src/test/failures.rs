//! What each failed test said, kept from what `cargo test` prints, to stand at the end of a long run. Pure.
//!
//! An hour of output may be cut by whoever keeps it; its end is what is left.

/// Lines kept of what one test said: so many of its beginning, where the assertion is ...
const FIRST: usize = 4;
/// ... and so many of its end, where a machine's or a program's last words are.
const LAST: usize = 8;
/// Failed tests that are told of; more are counted only.
const TESTS: usize = 20;

/// The failed tests so far, while output arrives line by line.
#[derive(Debug, Default)]
pub(super) struct Failures {
    kept: Vec<(String, Vec<String>)>,
    /// Tests beyond [`TESTS`].
    more: u64,
    /// Whether the lines that come are those of the last one kept.
    inside: bool,
}

impl Failures {
    /// Takes one line without its end.
    pub(super) fn line(&mut self, line: &str) {
        if let Some(name) = heading(line) {
            self.inside = self.kept.len() < TESTS;
            if self.inside {
                self.kept.push((name.to_owned(), Vec::new()));
            } else {
                self.more += 1;
            }
        } else if matches!(line, "failures:" | "successes:" | "stack backtrace:") {
            self.inside = false;
        } else if self.inside
            && let Some((_, said)) = self.kept.last_mut()
            && !line.is_empty()
            && !line.starts_with("note: run with `RUST_BACKTRACE")
        {
            said.push(line.to_owned());
            if said.len() > FIRST + LAST + 1 {
                said.remove(FIRST);
                "[…]".clone_into(&mut said[FIRST]);
            }
        }
    }

    /// The lines to show: what tests said alike stands once.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut shown: Vec<(&str, Vec<&str>)> = Vec::new();
        for (name, said) in &self.kept {
            // The thread has the test's name, the place its line: neither makes it another failure.
            let words: Vec<&str> = said.iter().skip(1).map(String::as_str).collect();
            let same = shown.iter().find(|(_, other)| !words.is_empty() && *other == words);
            if let Some((first, _)) = same {
                lines.push(format!("{name} failed: as {first}"));
                continue;
            }
            lines.push(format!("{name} failed:"));
            lines.extend(said.iter().map(|line| format!("    {line}")));
            shown.push((name, words));
        }
        if self.more > 0 {
            lines.push(format!("{} more failed", self.more));
        }
        lines
    }
}

/// `---- NAME stdout ----`
fn heading(line: &str) -> Option<&str> {
    line.strip_prefix("---- ")?.strip_suffix(" stdout ----")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(output: &str) -> Vec<String> {
        let mut failures = Failures::default();
        output.lines().for_each(|line| failures.line(line));
        failures.lines()
    }

    fn said(name: &str, words: &str) -> String {
        format!(
            "---- {name} stdout ----\n\nthread '{name}' (12) panicked at a.rs:1:2:\n{words}\nstack backtrace:\n   0: f\n\n"
        )
    }

    #[test]
    fn what_a_test_said_is_kept_without_its_backtrace() {
        let output = format!(
            "running 2 tests\ntest a ... FAILED\nother\n\nfailures:\n\n{}\nfailures:\n    a\n",
            said("a", "no\nyes")
        );
        assert_eq!(shown(&output), ["a failed:", "    thread 'a' (12) panicked at a.rs:1:2:", "    no", "    yes"]);
    }

    #[test]
    fn what_tests_said_alike_stands_once() {
        let output = [said("a", "no"), said("b", "no"), said("c", "yes")].concat();
        let lines = shown(&output);
        assert_eq!(lines.iter().filter(|line| line.contains("panicked")).count(), 2, "{lines:?}");
        assert!(lines.contains(&"b failed: as a".to_owned()), "{lines:?}");
    }

    #[test]
    fn the_middle_of_a_long_message_is_left_out() {
        let words: Vec<String> = (0..100).map(|line| line.to_string()).collect();
        let lines = shown(&said("a", &words.join("\n")));
        assert_eq!(lines.len(), 1 + FIRST + 1 + LAST, "{lines:?}");
        assert_eq!(lines[FIRST..FIRST + 3], ["    2", "    […]", "    92"].map(str::to_owned), "{lines:?}");
        assert_eq!(lines.last().map(String::as_str), Some("    99"));
    }

    #[test]
    fn more_tests_than_are_told_of_are_counted() {
        let output: String = (0..TESTS + 3).map(|test| said(&format!("t{test}"), &test.to_string())).collect();
        let lines = shown(&output);
        assert_eq!(lines.iter().filter(|line| line.ends_with("failed:")).count(), TESTS);
        assert_eq!(lines.last().map(String::as_str), Some("3 more failed"));
    }

    #[test]
    fn a_run_without_failures_shows_nothing() {
        assert!(shown("running 1 test\ntest a ... ok\n\ntest result: ok. 1 passed; 0 failed;").is_empty());
    }
}

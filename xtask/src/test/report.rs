//! Counts tests from what `cargo test` prints. Pure.

/// How many tests ran, by outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) passed: u64,
    pub(super) failed: u64,
}

impl Tally {
    pub(super) const PASSED: Self = Self { passed: 1, failed: 0 };
    pub(super) const FAILED: Self = Self { passed: 0, failed: 1 };
}

/// The count so far, while output arrives line by line.
#[derive(Debug, Default)]
pub(super) struct Report {
    tally: Tally,
    /// A test binary said that it runs, and has not said yet how it ended.
    running: bool,
}

impl Report {
    /// Takes one line without its end.
    pub(super) fn line(&mut self, line: &str) {
        if is_start(line) {
            self.close();
            self.running = true;
        } else if let Some(tally) = result(line) {
            self.tally.passed += tally.passed;
            self.tally.failed += tally.failed;
            self.running = false;
        }
    }

    /// The count at the end. What gave no result counts as one failure each: a binary that died, a build that
    /// failed before any test, a stage that found no test to run.
    pub(super) fn finish(mut self, success: bool) -> Tally {
        self.close();
        let Tally { passed, failed } = self.tally;
        if failed == 0 && (!success || passed == 0) {
            self.tally.failed = 1;
        }
        self.tally
    }

    fn close(&mut self) {
        self.tally.failed += u64::from(self.running);
        self.running = false;
    }
}

/// `running 5 tests`
fn is_start(line: &str) -> bool {
    let count = line.strip_prefix("running ").and_then(|rest| rest.split_once(" test"));
    count.is_some_and(|(count, plural)| count.parse::<u64>().is_ok() && matches!(plural, "" | "s"))
}

/// `test result: ok. 5 passed; 0 failed; 0 ignored; …`
fn result(line: &str) -> Option<Tally> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let count = |word: &str| {
        let part = counts.split("; ").find_map(|part| part.strip_suffix(word))?;
        part.trim().parse().ok()
    };
    Some(Tally { passed: count("passed")?, failed: count("failed")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO_PASS: &str =
        "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s";
    const ONE_FAILS: &str =
        "test result: FAILED. 4 passed; 1 failed; 0 ignored; 0 measured; 3 filtered out; finished in 0.01s";
    const NONE: &str = "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s";

    #[track_caller]
    fn check(lines: &[&str], success: bool, passed: u64, failed: u64) {
        let mut report = Report::default();
        lines.iter().for_each(|line| report.line(line));
        assert_eq!(report.finish(success), Tally { passed, failed }, "{lines:?}");
    }

    #[test]
    fn results_of_all_binaries_are_summed() {
        check(&["running 2 tests", "test a ... ok", "test b ... ok", "", TWO_PASS], true, 2, 0);
        check(&["running 2 tests", TWO_PASS, "running 5 tests", ONE_FAILS, "running 0 tests", NONE], false, 6, 1);
    }

    #[test]
    fn a_binary_that_dies_is_one_failure() {
        check(&["running 2 tests", "test a ... ok"], false, 0, 1);
        check(&["running 1 test", "running 2 tests", TWO_PASS], false, 2, 1);
    }

    #[test]
    fn a_build_that_fails_is_one_failure() {
        check(&[], false, 0, 1);
        check(&["running 2 tests", TWO_PASS], false, 2, 1);
    }

    #[test]
    fn a_stage_without_tests_is_one_failure() {
        check(&[], true, 0, 1);
        check(&["running 0 tests", NONE], true, 0, 1);
    }

    #[test]
    fn other_lines_count_nothing() {
        check(&["running 2 tests", "running late tests", "test result: pending", TWO_PASS], true, 2, 0);
    }
}

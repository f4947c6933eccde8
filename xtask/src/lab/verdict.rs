//! How a run ended, from what the guest left behind.

/// What the guest wrote down at its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The command ran and ended with this status (128 + N when killed by signal N, as shells say it).
    Exit(u8),
    /// The guest could not get ready for the command.
    SetUpFailed,
}

/// Reads the verdict; nothing else than a whole verdict is one.
pub(super) fn parse(text: &str) -> Option<Verdict> {
    match text.strip_suffix('\n')?.split_once(' ')? {
        ("exit", status) => status.parse().ok().map(Verdict::Exit),
        ("setup", "failed") => Some(Verdict::SetUpFailed),
        _ => None,
    }
}

/// What a console without a verdict tells: the sentence that says why, if one is known.
pub(super) fn cause(console: &str) -> &'static str {
    const MARKS: &[(&str, &str)] = &[
        ("Attempted to kill init", "its first process ended"),
        ("Kernel panic", "its kernel panicked"),
        ("Out of memory", "it ran out of memory"),
    ];
    MARKS.iter().find(|(mark, _)| console.contains(mark)).map_or("the machine stopped", |(_, sentence)| sentence)
}

/// The last lines of a console, without the signs that only a terminal understands.
pub(super) fn tail(console: &str, lines: usize) -> String {
    let clean: String = console.chars().filter(|sign| *sign == '\n' || *sign == '\t' || !sign.is_control()).collect();
    let all: Vec<_> = clean.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<Verdict>) {
        assert_eq!(parse(text), expected);
    }

    #[test]
    fn only_whole_verdicts_count() {
        check("exit 0\n", Some(Verdict::Exit(0)));
        check("exit 137\n", Some(Verdict::Exit(137)));
        check("setup failed\n", Some(Verdict::SetUpFailed));
        for broken in ["", "exit 0", "exit\n", "exit 256\n", "exit -1\n", "exit 1\nexit 2\n", "ok 0\n", "setup\n"] {
            check(broken, None);
        }
    }

    #[test]
    fn the_console_says_why() {
        assert_eq!(cause("Kernel panic - not syncing: sysrq triggered crash"), "its kernel panicked");
        assert_eq!(cause("Kernel panic - not syncing: Attempted to kill init!"), "its first process ended");
        assert_eq!(cause(""), "the machine stopped");
    }

    #[test]
    fn the_tail_is_the_last_lines_without_control_signs() {
        assert_eq!(tail("a\r\nb\x1b\nc\n", 2), "b\nc");
        assert_eq!(tail("a", 5), "a");
        assert_eq!(tail("", 5), "");
    }
}

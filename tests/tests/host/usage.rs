//! Help, wrong words and broken configurations: what the program says, and the status it ends with.

use crate::program::{FAILED, Scratch, USAGE, refused, start};

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
    let commands = [
        "Examples:",
        "Usage: fabricscope",
        "agent",
        "check",
        "counters",
        "doctor",
        "explain",
        "hooks",
        "status",
        "trace",
    ];
    for words in ["--help", "-h", "help"] {
        helps(&[words], &commands);
    }
    helps(&["trace", "--help"], &["verbs", "cm", "device"]);
    let flags =
        ["--all", "--cgroup", "--comm", "--count", "--device", "--duration", "--errno", "--pid", "--probes", "--verb"];
    helps(&["trace", "verbs", "--help"], &flags);
    helps(&["doctor", "--help"], &["--output"]);
    helps(&["agent", "--help"], &["--config"]);
    helps(&["--version"], &["fabricscope "]);
}

#[test]
fn wrong_words_are_usage_errors_that_name_them() {
    refused(&[], USAGE, &["Usage"]);
    refused(&["trase"], USAGE, &["trase", "trace"]);
    refused(&["--no-such-flag"], USAGE, &["--no-such-flag"]);
    refused(&["doctor", "--output", "yaml"], USAGE, &["--output", "yaml", "json"]);
    refused(&["check"], USAGE, &["--config"]);
    refused(&["agent", "--config"], USAGE, &["--config"]);
    refused(&["agent", "--for", "0s"], USAGE, &["--for", "0s"]);
    refused(&["agent", "--for", "20"], USAGE, &["--for", "20"]);
}

#[test]
fn wrong_filters_of_a_trace_are_usage_errors_that_name_them() {
    let rows: &[(&[&str], &[&str])] = &[
        (&["--pid", "many"], &["--pid", "many"]),
        (&["--pid", "-1"], &["-1"]),
        (&["--errno", "ENOSUCH"], &["--errno", "ENOSUCH", "ENOMEM"]),
        (&["--errno", "0"], &["--errno"]),
        (&["--verb", "reg_mrr"], &["--verb", "reg_mrr", "reg_mr"]),
        (&["--cgroup", "name"], &["--cgroup", "name"]),
        (&["--duration", "long"], &["--duration", "long"]),
        (&["--duration", "30"], &["--duration", "unit"]),
        (&["--count", "0"], &["--count", "0"]),
        (&["-o", "yaml"], &["yaml", "json"]),
        (&["--stuck", "--no-latency"], &["--stuck", "--no-latency"]),
        (&["--stuck", "--errno", "12"], &["--stuck", "--errno"]),
    ];
    for (words, says) in rows {
        refused(&[&["trace", "verbs"], *words].concat(), USAGE, says);
    }
    refused(&["trace", "cm", "--device", "mlx5_0"], USAGE, &["--device", "connection manager"]);
}

#[test]
fn a_tick_for_too_short_an_interval_is_a_usage_error_that_says_what_to_write() {
    for command in ["record", "totals"] {
        let words = ["bursts", command, "--netdev", "lo", "--interval", "100us", "--clock"];
        refused(&[&words[..], &["tick"]].concat(), USAGE, &["1ms or 10ms", "read"]);
        refused(&[&words[..], &["jiffies"]].concat(), USAGE, &["--clock", "jiffies", "read or tick"]);
    }
}

#[test]
fn a_configuration_that_cannot_be_read_is_a_failure_that_names_it() {
    refused(&["check", "--config", "/no/such/file"], FAILED, &["/no/such/file"]);
    refused(&["agent", "--config", "/no/such/file"], FAILED, &["/no/such/file"]);
    refused(&["check", "--config", "/proc"], FAILED, &["/proc"]);
}

#[test]
fn every_problem_of_a_configuration_is_named_at_once_with_its_line() {
    let scratch = Scratch::new();
    let text = "first_nonsense = 1\n[verbs]\nlatency = 'perhaps'\nhooks = 'most'\n[metrics]\nlisten = 'here'\n\
                [log]\nfold_window = '60'\n";
    let file = scratch.file("broken.toml", text);
    let says = ["first_nonsense", "verbs.latency", "verbs.hooks", "most", "metrics.listen", "here", "log.fold_window"];
    refused(&["check", "--config", &file], FAILED, &says);
    refused(&["agent", "--config", &file], FAILED, &says);
}

#[test]
fn text_that_is_no_configuration_is_refused_with_its_place() {
    let scratch = Scratch::new();
    let file = scratch.file("no.toml", "[verbs]\nenabled = = true\n");
    refused(&["check", "--config", &file], FAILED, &[&file, "2"]);
}

#[test]
fn an_empty_configuration_is_a_good_one() {
    let scratch = Scratch::new();
    let file = scratch.file("empty.toml", "");
    let seen = start(&["check", "--config", &file]);
    assert_eq!(seen.status.code(), Some(0), "{}", seen.stderr);
}

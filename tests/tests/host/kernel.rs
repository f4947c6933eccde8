//! Hosts that lack something: privileges, type information, kprobes, an RDMA device.

use std::process::Command;

use tests::command::fabricscope;

use crate::program::{FAILED, NOT_TRACED, Scratch, end, is_root, refused, says_why, start, text_of};

/// Nobody, by its number everywhere.
const NOBODY: &str = "65534";

/// The program as a user without privileges, who may not look into the folder it was built in.
fn as_nobody(scratch: &Scratch) -> Command {
    let copy = scratch.inside("fabricscope");
    if !copy.exists() {
        // By a process that ends: a child that another test starts meanwhile would have the file open for writing.
        assert!(end(Command::new("cp").arg(fabricscope()).arg(&copy)).status.success());
    }
    if !rustix::process::geteuid().is_root() {
        return Command::new(copy);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--inh-caps=-all", "--no-new-privs", "--"]);
    command.arg(copy);
    command
}

#[test]
fn without_privileges_it_says_which_are_needed() {
    let scratch = Scratch::new();
    let config = scratch.file("agent.toml", "metrics.enabled = false\nrpc.enabled = false\n");
    // An agent that runs on this host would be asked in their place; not for this.
    let rows: &[(&[&str], i32)] = &[
        (&["hooks"], FAILED),
        (&["trace", "verbs", "--no-fexit", "--duration", "1s"], FAILED),
        (&["trace", "cm", "--no-fexit", "--duration", "1s"], FAILED),
        (&["trace", "verbs", "--no-fexit", "--", "true"], NOT_TRACED),
        (&["agent", "--config", &config, "--for", "1s"], FAILED),
    ];
    for (words, status) in rows {
        let seen = end(as_nobody(&scratch).args(*words));
        says_why(&seen, *status, &["root"]);
    }
    let seen = end(as_nobody(&scratch).arg("doctor"));
    assert_eq!(seen.status.code(), Some(1), "{}", seen.stderr);
    assert!(seen.stdout.contains("CAP_BPF"), "{}", seen.stdout);
}

#[test]
fn the_doctor_answers_in_json_whatever_the_host_lacks() {
    let scratch = Scratch::new();
    let none = text_of(scratch.path());
    for more in [&[][..], &["--path.sysfs", &none], &["--path.sysfs", &none, "--path.procfs", &none]] {
        let seen = start(&[&["doctor", "--output", "json"], more].concat());
        assert!(matches!(seen.status.code(), Some(0 | 1)), "{}", seen.stderr);
        let answer: serde_json::Value = serde_json::from_str(&seen.stdout).unwrap();
        assert!(answer["checks"].as_array().is_some_and(|all| !all.is_empty()), "{answer}");
    }
}

#[test]
fn without_type_information_the_doctor_names_it_and_what_it_costs() {
    let scratch = Scratch::new();
    let none = text_of(scratch.path());
    let seen = start(&["doctor", "--path.sysfs", &none]);
    assert_eq!(seen.status.code(), Some(1));
    let line = seen.stdout.lines().find(|line| line.contains("vmlinux BTF")).unwrap();
    assert!(line.starts_with("missing"), "{line}");
    if !is_root() {
        return;
    }
    // It still runs, and each hook says for itself how far it gets.
    let seen = start(&["hooks", "--json", "--path.sysfs", &none]);
    assert_eq!(seen.status.code(), Some(0), "{}", seen.stderr);
    assert!(seen.stdout.lines().count() > 20, "{}", seen.stdout);
}

#[test]
fn a_device_that_is_not_there_is_named_with_those_that_are() {
    for kind in ["verbs", "device"] {
        refused(&["trace", kind, "--device", "mlx5_77"], FAILED, &["mlx5_77", "this host has"]);
    }
    refused(&["trace", "verbs", "--device", "mlx5_77", "--", "true"], NOT_TRACED, &["mlx5_77"]);
}

#[test]
fn a_socket_without_an_agent_is_status_3() {
    let scratch = Scratch::new();
    let socket = text_of(&scratch.inside("none.sock"));
    for words in [&["status"][..], &["trace", "verbs", "--duration", "1s"]] {
        refused(&[words, &["--socket", &socket]].concat(), 3, &[&socket, "agent"]);
    }
}

/// Whether verbs can be traced here, as the doctor tells it.
fn verbs_can_be_traced() -> bool {
    start(&["doctor"]).status.code() == Some(0)
}

#[test]
fn where_nothing_can_be_traced_each_hook_and_the_trace_say_why() {
    if !is_root() {
        return;
    }
    if verbs_can_be_traced() {
        println!("verbs can be traced on this host: the rest of this test is for hosts where they cannot");
        return;
    }
    let seen = start(&["hooks", "--json"]);
    assert_eq!(seen.status.code(), Some(0), "{}", seen.stderr);
    let mut attached = 0;
    for line in seen.stdout.lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        if row["state"] == "attached" {
            attached += 1;
        } else if row["default"] == true {
            let reason = row["reason"].as_str().unwrap();
            assert!(!reason.is_empty() && reason != "not wanted", "{line}");
            assert_ne!(row["state"], "disabled", "{line}");
        }
    }
    assert_eq!(attached, 0, "the doctor says that nothing can be attached:\n{}", seen.stdout);
    refused(&["trace", "verbs", "--no-fexit", "--duration", "1s"], FAILED, &["nothing could be attached", "doctor"]);
    refused(&["trace", "verbs", "--no-fexit", "--", "true"], NOT_TRACED, &["nothing could be attached", "doctor"]);
}

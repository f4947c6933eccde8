//! What `fabricscope trace verbs` prints: its JSON lines, and the numbers of its summary.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use serde::Deserialize;
use serde_json::Value;

/// One traced call. Only what the tests look at is read; the optional fields are absent or null where not known.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
pub struct Event {
    /// When it returned: wall clock, RFC 3339.
    pub time: String,
    /// When it returned: CLOCK_MONOTONIC in nanoseconds.
    pub monotonic_ns: u64,
    /// The RDMA device.
    pub device: Option<String>,
    /// The verb by its libibverbs name.
    pub verb: String,
    /// The error's name; absent for a success.
    pub errno: Option<String>,
    /// The error's positive number; absent or 0 for a success.
    pub error: Option<u32>,
    /// The layer of the answer.
    pub layer: Option<String>,
    /// The function of the answer.
    pub function: Option<String>,
    /// Every failing hook, innermost first.
    #[serde(default)]
    pub chain: Vec<Link>,
    /// The process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// The thread's name.
    pub comm: Option<String>,
    /// The user.
    pub uid: Option<u32>,
    /// How long the call took.
    pub duration_ns: Option<u64>,
    /// Everything else by key: what was being built (`qp`, `mr`, `cq`, `ah`), what the firmware said.
    #[serde(flatten)]
    pub rest: serde_json::Map<String, Value>,
    /// Whether it is a probing call that was refused.
    #[serde(default)]
    pub probe: bool,
    /// Whether it failed because the device or the kernel cannot do it.
    #[serde(default)]
    pub unsupported: bool,
}

/// One failing hook of a call.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
pub struct Link {
    /// Its layer: `syscall`, `core`, `driver` or `firmware`.
    pub layer: String,
    /// The kernel function.
    pub function: String,
    /// The error's name.
    pub errno: String,
    /// The error's positive number.
    pub error: u32,
}

/// An event of `trace cm` or `trace device`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
pub struct Notice {
    /// `cm`, `device` or `health`.
    pub kind: String,
    /// Its name: `rejected`, `port_err`.
    pub event: String,
    /// The RDMA device.
    pub device: Option<String>,
    /// The device's port.
    pub port: Option<u32>,
    /// A negative errno, or why a connection was rejected.
    pub status: Option<i32>,
    /// The same in words.
    pub reason: Option<String>,
    /// The address and port that were asked for.
    pub destination: Option<String>,
    /// The network device.
    pub netdev: Option<String>,
    /// The device's address on its bus.
    pub pci: Option<String>,
    /// The part of it that reports.
    pub reporter: Option<String>,
    /// What the driver says in words.
    pub message: Option<String>,
    /// The numbers that came with it.
    #[serde(default)]
    pub values: BTreeMap<String, i64>,
}

/// A call that hangs, as `trace verbs --stuck` tells it.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Stuck {
    /// Always `stuck`.
    pub kind: String,
    /// The verb by its libibverbs name.
    pub verb: String,
    /// The RDMA device.
    pub device: Option<String>,
    /// The process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// The thread's name.
    pub comm: Option<String>,
    /// For how long it has not returned.
    pub waiting_ns: u64,
}

impl Event {
    /// Whether the call was refused, by whatever name.
    #[must_use]
    pub fn refused(&self) -> bool {
        self.error.is_some_and(|error| error != 0)
    }

    /// What else is told, by a path such as `qp.state_to`; null where it is not.
    #[must_use]
    pub fn at(&self, path: &str) -> &Value {
        let mut keys = path.split('.');
        let first = keys.next().and_then(|key| self.rest.get(key));
        first.and_then(|part| keys.try_fold(part, |part, key| part.get(key))).unwrap_or(&Value::Null)
    }
}

/// The numbers of a session's summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// All calls.
    pub calls: u64,
    /// Those that failed.
    pub failures: u64,
    /// Events that were lost, for whatever reason.
    pub lost: u64,
}

/// Finds the line of the summary: `N calls, N failures, N lost`, with whatever else between and behind.
///
/// # Errors
/// When no line has all three.
pub fn summary(stderr: &str) -> Result<Summary> {
    let number = |line: &str, word: &str| -> Option<u64> {
        let words: Vec<_> = line.split([' ', ',', ';', '\t']).filter(|word| !word.is_empty()).collect();
        let at = words.iter().position(|other| *other == word || other.strip_suffix('s') == Some(word))?;
        words.get(at.checked_sub(1)?)?.parse().ok()
    };
    let read = |line: &str| {
        let [calls, failures, lost] = ["call", "failure", "lost"].map(|word| number(line, word));
        Some(Summary { calls: calls?, failures: failures?, lost: lost? })
    };
    stderr.lines().rev().find_map(read).with_context(|| format!("no summary in:\n{stderr}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::lines;

    #[test]
    fn a_line_is_read_whatever_else_it_says() {
        let text = r#"{"time":"2026-01-02T03:04:05.000000006Z","monotonic_ns":7,"host":"h","device":"rxe0","port":1,
            "verb":"reg_mr","errno":"EINVAL","error":22,"layer":"core","function":"ib_umem_get","pid":1,"tid":2,
            "chain":[{"layer":"core","function":"ib_umem_get","errno":"EINVAL","error":22}],"mr":{"length":0}}"#;
        let events: Vec<Event> = lines(&text.replace('\n', " ")).unwrap();
        assert_eq!(events[0].chain[0].function, "ib_umem_get");
        assert!(events[0].refused() && !events[0].probe);
        assert_eq!((events[0].at("mr.length"), events[0].at("mr.access")), (&Value::from(0), &Value::Null));
    }

    #[test]
    fn a_success_is_not_refused() {
        for error in [None, Some(0)] {
            assert!(!Event { error, ..Event::default() }.refused());
        }
    }

    #[track_caller]
    fn check(text: &str, expected: Option<(u64, u64, u64)>) {
        let seen = summary(text).ok().map(|seen| (seen.calls, seen.failures, seen.lost));
        assert_eq!(seen, expected);
    }

    #[test]
    fn the_summary_is_found_among_other_lines() {
        check("attached\n12 calls, 3 failures, 0 lost\nreg_mr EINVAL 3\n", Some((12, 3, 0)));
        check("1 call, 1 failure, 2 lost (ring full)", Some((1, 1, 2)));
        check("calls, failures, lost", None);
        check("12 calls, 3 failures", None);
        check("", None);
    }
}

//! Calls that have not returned: a modify_qp that waits for a dead neighbour returns nothing for seconds.

use std::io::{self, Write};

use serde::Serialize;

use crate::daemon::handle::Filter;
use crate::host::process;
use crate::host::roots::Roots;
use crate::kernel::state::InFlight;
use crate::verbs::names::verb_name;

/// A call is stuck when it has not returned after this many nanoseconds.
pub(crate) const STUCK_NS: u64 = 1_000_000_000;

#[derive(Debug, Serialize)]
struct Row<'a> {
    kind: &'a str,
    verb: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<&'a str>,
    pid: u32,
    tid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    comm: Option<&'a str>,
    waiting_ns: u64,
}

/// The stuck calls among those in flight, the oldest first, with how long they have waited in nanoseconds.
pub(crate) fn stuck(in_flight: &[InFlight], now_ns: u64) -> Vec<(InFlight, u64)> {
    let waits = |call: &InFlight| (*call, now_ns.saturating_sub(call.start_ns));
    let timed = in_flight.iter().filter(|call| call.start_ns != 0).map(waits);
    let mut stuck: Vec<_> = timed.filter(|(_, waiting)| *waiting >= STUCK_NS).collect();
    stuck.sort_by_key(|(call, _)| call.start_ns);
    stuck
}

/// The thread of a call, as /proc tells of it at this moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Thread {
    comm: Option<String>,
    cgroup_id: Option<u64>,
}

impl Thread {
    /// Reads it. What cannot be read is absent: it may have ended.
    pub(crate) fn read(roots: &Roots, tid: u32) -> Self {
        let comm = std::fs::read_to_string(roots.procfs.join(tid.to_string()).join("comm")).ok();
        let comm = comm.map(|comm| crate::terminal::clean(comm.trim_end()));
        Self { comm, cgroup_id: process::cgroup_id(roots, tid) }
    }
}

/// Whether a session wants the call. What is not known is not what was asked for.
pub(crate) fn wanted(filter: &Filter, call: &InFlight, device: Option<&str>, thread: &Thread) -> bool {
    filter.pid.is_none_or(|pid| pid == call.pid)
        && (filter.comm.is_none() || filter.comm == thread.comm)
        && (filter.device.is_none() || filter.device.as_deref() == device)
        && filter.verb.as_ref().is_none_or(|verb| *verb == *verb_name(call.key))
        && (filter.cgroup_id.is_none() || filter.cgroup_id == thread.cgroup_id)
}

/// Prints one.
///
/// # Errors
///
/// If it cannot be written.
pub(crate) fn print(
    out: &mut impl Write,
    json: bool,
    device: Option<&str>,
    thread: &Thread,
    (call, waiting_ns): (&InFlight, u64),
) -> io::Result<()> {
    let (verb, comm) = (verb_name(call.key).into_owned(), thread.comm.as_deref());
    let row = Row { kind: "stuck", verb, device, pid: call.pid, tid: call.tid, comm, waiting_ns };
    if json {
        serde_json::to_writer(&mut *out, &row)?;
        return writeln!(out);
    }
    let seconds = waiting_ns as f64 / 1e9;
    let (device, comm) = (device.unwrap_or("-"), comm.unwrap_or("-"));
    writeln!(out, "{seconds:>8.1} s  {device:<10} {:<18} {comm} {}/{}", row.verb, row.pid, row.tid)
}

#[cfg(test)]
mod tests {
    use agent_common::verb::VerbKey;

    use super::*;

    #[test]
    fn only_calls_over_a_second_are_stuck_and_the_oldest_comes_first() {
        let call = |tid, start_ns| InFlight { pid: 1, tid, key: VerbKey::MMAP, rdev: 0, start_ns };
        let now = 10_000_000_000;
        let calls = [call(1, now), call(2, now - STUCK_NS), call(3, 0), call(4, 1), call(5, now - STUCK_NS + 1)];
        let found: Vec<u32> = stuck(&calls, now).iter().map(|(call, _)| call.tid).collect();
        assert_eq!(found, [4, 2]);
        assert_eq!(stuck(&[call(1, now + 5)], now), []);
    }

    #[test]
    fn every_filter_holds_for_what_it_names() {
        let call = InFlight { pid: 7, tid: 8, key: VerbKey::MMAP, rdev: 0, start_ns: 1 };
        let thread = Thread { comm: Some("train".into()), cgroup_id: Some(99) };
        let check = |filter: Filter, device, thread: &Thread, expected| {
            assert_eq!(wanted(&filter, &call, device, thread), expected, "{filter:?} {device:?} {thread:?}");
        };
        let text = |text: &str| Some(text.to_owned());
        let rows = [
            (Filter::default(), true),
            (Filter { pid: Some(7), ..Filter::default() }, true),
            (Filter { pid: Some(8), ..Filter::default() }, false),
            (Filter { comm: text("train"), ..Filter::default() }, true),
            (Filter { comm: text("tra"), ..Filter::default() }, false),
            (Filter { device: text("mlx5_0"), ..Filter::default() }, true),
            (Filter { device: text("mlx5_1"), ..Filter::default() }, false),
            (Filter { verb: text("mmap"), ..Filter::default() }, true),
            (Filter { verb: text("reg_mr"), ..Filter::default() }, false),
            (Filter { cgroup_id: Some(99), ..Filter::default() }, true),
            (Filter { cgroup_id: Some(98), ..Filter::default() }, false),
            (Filter { pid: Some(7), verb: text("reg_mr"), ..Filter::default() }, false),
        ];
        for (filter, expected) in rows {
            check(filter, Some("mlx5_0"), &thread, expected);
        }
        // Of a thread that has ended nothing is known.
        check(Filter { device: text("mlx5_0"), ..Filter::default() }, None, &thread, false);
        check(Filter { comm: text("train"), ..Filter::default() }, None, &Thread::default(), false);
        check(Filter { cgroup_id: Some(99), ..Filter::default() }, None, &Thread::default(), false);
    }
}

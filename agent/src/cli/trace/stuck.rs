//! Calls that have not returned: a modify_qp that waits for a dead neighbour returns nothing for seconds.

use std::io::{self, Write};

use serde::Serialize;

use crate::kernel::state::InFlight;
use crate::verbs::names::verb_name;
use crate::verbs::record::Decoder;

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
    comm: Option<String>,
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

/// Prints one.
///
/// # Errors
///
/// If it cannot be written.
pub(crate) fn print(
    out: &mut impl Write,
    json: bool,
    decoder: &Decoder,
    call: &InFlight,
    waiting_ns: u64,
) -> io::Result<()> {
    let comm = std::fs::read_to_string(format!("/proc/{}/comm", call.tid)).ok();
    let row = Row {
        kind: "stuck",
        verb: verb_name(call.key).into_owned(),
        device: decoder.device_of(call.rdev),
        pid: call.pid,
        tid: call.tid,
        comm: comm.map(|comm| crate::terminal::clean(comm.trim_end())),
        waiting_ns,
    };
    if json {
        serde_json::to_writer(&mut *out, &row)?;
        return writeln!(out);
    }
    let seconds = waiting_ns as f64 / 1e9;
    let (device, comm) = (row.device.unwrap_or("-"), row.comm.as_deref().unwrap_or("-"));
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
}

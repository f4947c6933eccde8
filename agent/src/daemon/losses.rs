//! Everything that is lost between the kernel and whoever reads, by program, stage and reason.

use agent_common::counter;

use super::handle::Loss;
use crate::bursts::recorder::Losses;
use crate::kernel::state::{HookState, Snapshot};
use crate::probes::Hook;

/// What user space itself has lost, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UserLosses {
    /// Records that were none.
    pub(crate) decode: u64,
    /// Events that a client was too slow for.
    pub(crate) watch: u64,
    /// Lines that the log's reader was too slow for.
    pub(crate) log: u64,
    /// Readings of network devices that found the queue full.
    pub(crate) bursts: u64,
    /// Commands that found the queue full.
    pub(crate) commands: u64,
    /// HTTP requests that found the queue full.
    pub(crate) scrapes: u64,
}

/// Every way to lose something with its count, those of zero too; of the hooks only those that missed calls.
pub(crate) fn losses(
    snapshot: Option<&Snapshot>,
    hooks: &[HookState],
    user: &UserLosses,
    recorder: Option<Losses>,
) -> Vec<Loss> {
    let kernel = counter::TABLE.iter().filter_map(|row| {
        // Not measured is absent.
        let count = *snapshot?.lost.get(usize::try_from(row.slot).ok()?)?;
        Some(Loss { program: row.program, stage: row.stage, reason: row.reason, count })
    });
    let missed = hooks.iter().filter(|hook| hook.missed > 0).filter_map(|hook| {
        let program = Hook::by_number(hook.number)?.name;
        Some(Loss { program, stage: "hook", reason: "missed", count: hook.missed })
    });
    let agent = |stage, reason, count| Loss { program: "agent", stage, reason, count };
    let own = [
        agent("decode", "decode_error", user.decode),
        agent("watch", "queue_full", user.watch),
        agent("log", "queue_full", user.log),
        agent("bursts", "queue_full", user.bursts),
        agent("commands", "queue_full", user.commands),
        agent("scrapes", "queue_full", user.scrapes),
    ];
    let recorder = recorder.iter().flat_map(|losses| losses.rows());
    let recorder = recorder.map(|(stage, reason, count)| Loss { program: "recorder", stage, reason, count });
    kernel.chain(missed).chain(own).chain(recorder).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::state::State;

    #[test]
    fn each_stage_stands_for_itself() {
        let mut snapshot = Snapshot { lost: vec![0; counter::TABLE.len()], ..Snapshot::default() };
        snapshot.lost[counter::RING_CM as usize] = 7;
        let state = State::Disabled(String::new());
        let hooks = [HookState { number: 0, state, transitions: 0, run_count: 0, run_time_ns: 0, missed: 5 }];
        let user = UserLosses { decode: 1, watch: 2, log: 3, bursts: 7, commands: 4, scrapes: 6 };
        let found = losses(Some(&snapshot), &hooks, &user, Some(Losses::default()));
        assert_eq!(found.len(), counter::TABLE.len() + 1 + 6 + Losses::default().rows().count());
        assert_eq!(found.iter().map(|loss| loss.count).sum::<u64>(), 7 + 5 + 23);
        assert!(found.contains(&Loss { program: "cm", stage: "ring", reason: "no_space", count: 7 }));
        assert!(found.contains(&Loss { program: "uverbs_ioctl", stage: "hook", reason: "missed", count: 5 }));
        assert_eq!(losses(None, &[], &user, None).len(), 6, "what the kernel side did not say is absent");
    }
}

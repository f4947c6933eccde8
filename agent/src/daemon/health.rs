//! Whether the agent does what it is configured to do: from the hooks' states, as a pure function.

use crate::kernel::state::{HookState, State};
use crate::probes::{Hook, Layer};

/// The answer of `/healthz`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Health {
    /// Why not; empty when all is well.
    pub(crate) reasons: Vec<String>,
    /// What is worth knowing, and no fault.
    pub(crate) notes: Vec<String>,
}

/// A hook without which failed calls would go unseen.
fn is_required(hook: &Hook) -> bool {
    hook.layer == Layer::Syscall && hook.default
}

/// A hook that waits for its module is no fault: the agent attaches to it when it comes.
pub(crate) fn health(hooks: &[HookState]) -> Health {
    let mut health = Health::default();
    for (hook, state) in named(hooks).filter(|(hook, _)| is_required(hook)) {
        let text = format!("hook {} is {}: {}", hook.name, state.name(), state);
        match state {
            State::Attached { .. } | State::Disabled(_) => {}
            State::Waiting(_) => health.notes.push(text),
            State::Unsupported(_) | State::Failed(_) | State::Quarantined(_) => health.reasons.push(text),
        }
    }
    health
}

/// What does not run as configured and why, one sentence each. A function further in that this kernel does not have
/// is no fault: rows are written for many kernels.
pub(crate) fn degraded(hooks: &[HookState]) -> Vec<String> {
    let is_fault = |hook: &Hook, state: &State| match state {
        State::Failed(_) | State::Quarantined(_) => true,
        State::Unsupported(_) => is_required(hook),
        State::Attached { .. } | State::Disabled(_) | State::Waiting(_) => false,
    };
    named(hooks)
        .filter(|(hook, state)| is_fault(hook, state))
        .map(|(hook, state)| format!("hook {} is {}: {}", hook.name, state.name(), state))
        .collect()
}

/// Reasons shown for hooks that are idle.
const IDLE_REASONS: usize = 6;

/// Hooks that do not run though nothing is wrong, counted by reason, the most first.
pub(crate) fn idle(hooks: &[HookState]) -> Vec<String> {
    let mut reasons: Vec<(&str, usize)> = Vec::new();
    for (hook, state) in named(hooks) {
        let why = match state {
            State::Waiting(why) => why,
            State::Unsupported(_) if !is_required(hook) => "not to be had here (`fabricscope hooks` says why)",
            _ => continue,
        };
        match reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, count)) => *count += 1,
            None => reasons.push((why, 1)),
        }
    }
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let line = |count: usize, why: &str| format!("{count} {}: {why}", if count == 1 { "hook" } else { "hooks" });
    let mut lines: Vec<String> = reasons.iter().take(IDLE_REASONS).map(|(why, count)| line(*count, why)).collect();
    let rest: usize = reasons.iter().skip(IDLE_REASONS).map(|(_, count)| count).sum();
    if rest > 0 {
        lines.push(line(rest, "other reasons (`fabricscope hooks` names them)"));
    }
    lines
}

/// Hooks that run, and hooks that are wanted.
pub(crate) fn attached_of(hooks: &[HookState]) -> (usize, usize) {
    let wanted = hooks.iter().filter(|hook| !matches!(hook.state, State::Disabled(_)));
    (hooks.iter().filter(|hook| hook.state.is_attached()).count(), wanted.count())
}

fn named(hooks: &[HookState]) -> impl Iterator<Item = (&'static Hook, &State)> {
    hooks.iter().filter_map(|hook| Some((Hook::by_number(hook.number)?, &hook.state)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::state::How;

    #[track_caller]
    fn check(name: &str, state: State, reasons: usize, notes: usize, degraded_by: usize) {
        let (number, _) = Hook::all().find(|(_, hook)| hook.name == name).expect("a row");
        let hooks = [HookState { number, state, transitions: 1, run_count: 0, run_time_ns: 0, missed: 0 }];
        let found = health(&hooks);
        assert_eq!((found.reasons.len(), found.notes.len(), degraded(&hooks).len()), (reasons, notes, degraded_by));
        for text in found.reasons.iter().chain(&found.notes) {
            assert!(text.contains(name), "{text}");
        }
    }

    #[test]
    fn idle_hooks_are_counted_by_reason() {
        let number = |name| Hook::all().find(|(_, hook)| hook.name == name).expect("a row").0;
        let hook = |name, state| HookState {
            number: number(name),
            state,
            transitions: 0,
            run_count: 0,
            run_time_ns: 0,
            missed: 0,
        };
        let waits = |why: &str| State::Waiting(why.to_owned());
        let hooks = [
            hook("umem_get", State::Unsupported("no such function".into())),
            hook("uverbs_ioctl", waits("no a")),
            hook("uverbs_write", waits("no a")),
            hook("uverbs_mmap", State::Failed("EPERM".into())),
            hook("uverbs_open", State::Unsupported("a fault".into())),
            hook("dereg_mr", waits("no b")),
            hook("destroy_cq", waits("no c")),
            hook("destroy_qp", waits("no d")),
            hook("cgroup_charge", waits("no e")),
            hook("get_gid_attr", waits("no f")),
        ];
        let lines = idle(&hooks);
        assert_eq!(lines[0], "2 hooks: no a");
        assert_eq!(lines[1], "1 hook: not to be had here (`fabricscope hooks` says why)");
        assert_eq!(lines[6], "1 hook: other reasons (`fabricscope hooks` names them)");
        assert!(idle(&[]).is_empty());
    }

    #[test]
    fn only_what_should_run_and_cannot_is_a_fault() {
        let attached = State::Attached { how: How::Kprobe, function: "f".into(), module: String::new(), instead: None };
        check("uverbs_ioctl", attached, 0, 0, 0);
        check("uverbs_ioctl", State::Disabled("not wanted".into()), 0, 0, 0);
        check("uverbs_ioctl", State::Waiting("no ib_uverbs".into()), 0, 1, 0);
        check("uverbs_ioctl", State::Failed("EPERM".into()), 1, 0, 1);
        check("uverbs_ioctl", State::Quarantined("it flaps".into()), 1, 0, 1);
        check("uverbs_ioctl", State::Unsupported("no such function".into()), 1, 0, 1);
        check("umem_get", State::Failed("EPERM".into()), 0, 0, 1);
        check("umem_get", State::Unsupported("no such function".into()), 0, 0, 0);
    }
}

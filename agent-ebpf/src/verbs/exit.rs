//! A verbs call returns: it is counted, and if it failed an event goes out.
//!
//! What is a failure (kernel sources in drivers/infiniband/core):
//! - `EPROTONOSUPPORT` comes only from the framework, for an object, method or attribute it does not know
//!   (uverbs_ioctl.c): probing.
//! - `ENOIOCTLCMD` (515), which user space sees as `ENOTTY`, is an unknown ioctl: probing.
//! - `ENOSPC` from the framework itself is an answer buffer that is too small (`uverbs_copy_to`, and the check of the
//!   response size in the `INVOKE_WRITE` handler, uverbs_std_types_device.c): a size query. From a function further in
//!   it is a failure.
//! - `EOPNOTSUPP` of a query is probing; of a verb that creates, modifies or registers it is a failure, marked
//!   unsupported.
//! - `ERESTART*` (512, 513, 514, 516) starts the call again: nothing has happened yet (include/linux/errno.h).
//! - `EAGAIN` of `rdma_get_cm_event` on a non-blocking file says that there is no event yet.
//! - Every other negative result is a failure. A call that succeeds clears what failed on its way.

use agent_common::counter;
use agent_common::histogram;
use agent_common::hook::{Cookie, layer, role};
use agent_common::record::{Call, ErrorKey, Link, VerbCounterKey, flag, outcome};
use agent_common::verb::{VerbKey, interface};
use aya_ebpf::helpers::generated::bpf_ktime_get_ns;

use super::{chain, cq, decode, event, qp};
use crate::maps;

const EOPNOTSUPP: i32 = -95;
const EPROTONOSUPPORT: i32 = -93;
const ENOSPC: i32 = -28;
const EAGAIN: i32 = -11;
const ENOTTY: i32 = -25;
const ENOIOCTLCMD: i32 = -515;
const ERESTARTSYS: i32 = -512;
const ERESTARTNOINTR: i32 = -513;
const ERESTARTNOHAND: i32 = -514;
const ERESTART_RESTARTBLOCK: i32 = -516;

/// `RDMA_USER_CM_CMD_GET_EVENT` (include/uapi/rdma/rdma_user_cm.h).
const GET_EVENT: VerbKey = VerbKey::ucma(12);

/// Stands in counters for what no table of the kernel's knows, so that a caller cannot fill ours with numbers.
const NO_SUCH: u16 = 0xffff;

/// Closes the thread's record.
#[inline(always)]
pub(crate) fn leave(cookie: Cookie, result: u64) {
    if maps::settings().is_none() {
        return;
    }
    let Some((call, place)) = maps::open(super::thread()) else {
        maps::lost(counter::NO_ENTRY);
        without_entry(cookie, result);
        return;
    };
    // SAFETY: the map gave the pointer, and only this thread writes its own record.
    returned(unsafe { &mut *call }, cookie, result);
    maps::end(call, place);
}

/// A call that was under way when the hooks were attached: counted, without a name.
#[inline(always)]
fn without_entry(cookie: Cookie, result: u64) {
    let error = cookie.error_of(result);
    let own = Link { hook: cookie.hook(), layer: layer::SYSCALL, role: cookie.role(), error };
    let outcome = classify(error, VerbKey::UNKNOWN, own);
    count(&VerbCounterKey { key: 0, rdev: 0, reserved: 0 }, outcome, 0);
    if outcome == outcome::FAILURE {
        maps::count_error(&ErrorKey { key: 0, rdev: 0, errno: -error as u16, hook: cookie.hook() });
    }
}

#[inline(always)]
fn returned(call: &mut Call, cookie: Cookie, result: u64) {
    let error = cookie.error_of(result);
    if call.flags & flag::NO_HEADER != 0
        && let Some(key) = decode::key(cookie.role(), call.request, call.request_len)
    {
        // The page was not there at entry; the kernel has read it since.
        call.key = key.0;
        call.flags &= !flag::NO_HEADER;
    }
    let key = VerbKey(call.key);
    // SAFETY: a helper without arguments.
    let now = if call.start_ns != 0 || error != 0 { unsafe { bpf_ktime_get_ns() } } else { 0 };
    let duration = if call.start_ns == 0 { 0 } else { now.saturating_sub(call.start_ns) };

    if error == 0 {
        count(&VerbCounterKey { key: key.0, rdev: call.rdev, reserved: 0 }, outcome::SUCCESS, duration);
        if call.start_ns != 0 {
            maps::observe(key.0, histogram::bucket(duration));
        }
        qp::succeeded(call);
        cq::succeeded(call);
        return;
    }
    let own = Link { hook: cookie.hook(), layer: layer::SYSCALL, role: cookie.role(), error };
    let answer = chain::answer(call, own);
    let outcome = classify(error, key, answer.link);
    let counted = VerbCounterKey { key: counted(key, error, answer.link).0, rdev: call.rdev, reserved: 0 };
    count(&counted, outcome, 0);
    match outcome {
        outcome::FAILURE => {
            let errno = -error as u16;
            maps::count_error(&ErrorKey { key: counted.key, rdev: call.rdev, errno, hook: answer.link.hook });
            if error == EOPNOTSUPP {
                call.flags |= flag::UNSUPPORTED;
            }
            event::send(call, own, answer.index, now, duration);
        }
        outcome::PROBE => {
            call.flags |= flag::PROBE;
            event::send(call, own, answer.index, now, duration);
        }
        _ => {}
    }
}

/// One of [`outcome`].
#[inline(always)]
fn classify(error: i32, key: VerbKey, answer: Link) -> u32 {
    match error {
        0 => outcome::SUCCESS,
        ERESTARTSYS | ERESTARTNOINTR | ERESTARTNOHAND | ERESTART_RESTARTBLOCK => outcome::RESTART,
        ENOIOCTLCMD | ENOTTY | EPROTONOSUPPORT => outcome::PROBE,
        EOPNOTSUPP if key.is_query() => outcome::PROBE,
        EAGAIN if key.0 == GET_EVENT.0 => outcome::SUCCESS,
        ENOSPC if framework(answer) => outcome::PROBE,
        _ => outcome::FAILURE,
    }
}

/// True if no function behind the framework has this error.
#[inline(always)]
fn framework(link: Link) -> bool {
    link.role == role::FRAMEWORK || link.layer == layer::SYSCALL
}

/// The key a call is counted under. Numbers that the framework refuses to know are counted as one.
#[inline(always)]
fn counted(key: VerbKey, error: i32, answer: Link) -> VerbKey {
    let refused = error == EPROTONOSUPPORT || (answer.role == role::IOCTL && key.interface() == interface::IOCTL);
    if refused && key.interface() == interface::IOCTL {
        VerbKey::new(interface::IOCTL, 0, NO_SUCH, NO_SUCH)
    } else {
        key
    }
}

#[inline(always)]
fn count(key: &VerbCounterKey, outcome: u32, duration: u64) {
    if outcome == outcome::RESTART {
        return;
    }
    let Some(counters) = maps::verb_counters(key) else { return };
    // SAFETY: the map gave the pointer, and per-CPU values are not shared.
    let counters = unsafe { &mut *counters };
    counters.calls += 1;
    match outcome {
        outcome::FAILURE => counters.failures += 1,
        outcome::PROBE => counters.probes += 1,
        _ => counters.duration_ns += duration,
    }
}

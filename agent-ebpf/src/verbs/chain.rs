//! A function further in returns. If it failed inside a verbs call, the call's chain gets a link.

use agent_common::counter;
use agent_common::hook::Cookie;
use agent_common::record::{CHAIN, Call, Link, flag};

use crate::maps;

/// `MAX_ERRNO` (include/linux/err.h).
const MAX_ERRNO: u32 = 4095;

/// False for nearly every success, told without asking what the hook is: an error of either kind has an errno in its
/// lower half, and few other results have.
#[inline(always)]
pub(crate) fn may_be_error(result: u64) -> bool {
    (result as u32).wrapping_neg().wrapping_sub(1) < MAX_ERRNO
}

/// A function further in has returned `result`; the context stands `above` bytes below where it was called.
#[inline(always)]
pub(crate) fn returned(cookie: Cookie, result: u64, context: u64, above: u64) {
    let error = cookie.error_of(result);
    if error == 0 || maps::settings().is_none() {
        return;
    }
    // Kernel consumers of the same functions have no call open.
    if let Some(call) = maps::call(super::thread()) {
        // SAFETY: the map gave the pointer, and only this thread writes its own record.
        push(unsafe { &mut *call }, cookie, error, context, above);
    }
}

/// Adds a link.
#[inline(always)]
pub(crate) fn push(call: &mut Call, cookie: Cookie, error: i32, context: u64, above: u64) {
    let used = call.chain_len;
    if used >= CHAIN as u32 {
        call.flags |= flag::CHAIN_FULL;
        maps::lost(counter::CHAIN_FULL);
        return;
    }
    let index = bounded(used);
    let link = Link { hook: cookie.hook(), layer: cookie.layer(), role: cookie.role(), error };
    // SAFETY: the index is below CHAIN.
    unsafe {
        *call.chain.get_unchecked_mut(index) = link;
        // The verifier does not add a number it does not know to a context; read back from a map it is a number too.
        let frame = call.frames.as_mut_ptr().add(index);
        frame.write_volatile(context);
        frame.write_volatile(frame.read_volatile() + above);
    }
    call.chain_len = used + 1;
}

/// The index again, as a number whose bound older verifiers see too: they forget a comparison of its lower half.
#[inline(always)]
pub(crate) fn bounded(index: u32) -> usize {
    core::hint::black_box(index as usize) & (CHAIN - 1)
}

const _: () = assert!(CHAIN.is_power_of_two());

/// A link and its place in the chain.
#[derive(Clone, Copy)]
pub(crate) struct Answer {
    /// Where it stands.
    pub(crate) index: u32,
    /// What it says.
    pub(crate) link: Link,
}

/// The deepest link whose error is the call's own: the newest link first, then each older one that was called from
/// further in. `own`, what the boundary saw, where no link has that error; its place is behind the others, or the last
/// where the chain is full.
///
/// A failure that was recovered from has another error, or stands beside the path the error came up by.
#[inline(always)]
pub(crate) fn answer(call: &Call, own: Link) -> Answer {
    let last = if call.chain_len < CHAIN as u32 { call.chain_len } else { CHAIN as u32 - 1 };
    let mut best = Answer { index: last, link: own };
    let mut frame = u64::MAX;
    for step in 0..CHAIN {
        let index = CHAIN - 1 - step;
        if index as u32 >= call.chain_len {
            continue;
        }
        // SAFETY: the index is below CHAIN.
        let (link, at) = unsafe { (*call.chain.get_unchecked(index), *call.frames.get_unchecked(index)) };
        if link.error == own.error && at <= frame {
            frame = at;
            best = Answer { index: index as u32, link };
        }
    }
    best
}

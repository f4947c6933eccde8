//! A function further in returns. If it failed inside a verbs call, the call's chain gets a link.

use agent_common::counter;
use agent_common::hook::Cookie;
use agent_common::record::{CHAIN, Call, Link, flag};

use crate::maps;

/// A function further in has returned `result`; `frame` is the stack address it was called at.
#[inline(always)]
pub fn returned(cookie: Cookie, result: u64, frame: u64) {
    let error = cookie.error_of(result);
    if error == 0 || maps::halted() {
        return;
    }
    // Kernel consumers of the same functions have no call open.
    if let Some(call) = maps::call(super::thread()) {
        // SAFETY: the map gave the pointer, and only this thread writes its own record.
        push(unsafe { &mut *call }, cookie, error, frame);
    }
}

/// Adds a link.
#[inline(always)]
pub fn push(call: &mut Call, cookie: Cookie, error: i32, frame: u64) {
    let index = core::hint::black_box(call.chain_len) as usize;
    if index >= CHAIN {
        call.flags |= flag::CHAIN_FULL;
        maps::lost(counter::CHAIN_FULL);
        return;
    }
    let link = Link { hook: cookie.hook(), layer: cookie.layer(), role: cookie.role(), error };
    // SAFETY: the index is below CHAIN.
    unsafe {
        *call.chain.get_unchecked_mut(index) = link;
        *call.frames.get_unchecked_mut(index) = frame;
    }
    call.chain_len = index as u32 + 1;
}

/// The deepest link whose error is the call's: the newest link first, then each older one that was called from
/// further in. `None` where no link has the call's error.
///
/// A failure that was recovered from has another error, or stands beside the path the error came up by.
#[inline(always)]
pub fn answer(call: &Call, error: i32) -> Option<(u32, Link)> {
    let mut best = None;
    let mut frame = u64::MAX;
    for step in 0..CHAIN {
        let index = CHAIN - 1 - step;
        if index as u32 >= call.chain_len {
            continue;
        }
        // SAFETY: the index is below CHAIN.
        let (link, at) = unsafe { (*call.chain.get_unchecked(index), *call.frames.get_unchecked(index)) };
        if link.error == error && at <= frame {
            frame = at;
            best = Some((index as u32, link));
        }
    }
    best
}

//! The verbs tracer: programs for the system call boundary, for functions further in, and for firmware commands.
//!
//! At the boundary a record opens on entry and closes on return. A function further in that fails adds a link to the
//! open record. On return the call is counted, and if it failed one event tells the chain.

mod chain;
mod cq;
mod decode;
mod entry;
mod event;
mod exit;
mod firmware;
mod qp;

use core::mem::MaybeUninit;

use agent_common::hook::Cookie;
use aya_ebpf::EbpfContext as _;
use aya_ebpf::helpers::generated::{
    bpf_get_attach_cookie, bpf_get_current_pid_tgid, bpf_get_func_arg, bpf_get_func_arg_cnt, bpf_get_func_ret,
};
use aya_ebpf::macros::{fentry, fexit, kprobe, kretprobe};
use aya_ebpf::programs::{FEntryContext, FExitContext, ProbeContext, RetProbeContext};

use crate::read;

/// A call enters.
#[kprobe]
pub(crate) fn syscall_entry_kprobe(ctx: ProbeContext) -> u32 {
    let args = [ctx.arg(0).unwrap_or(0), ctx.arg(1).unwrap_or(0), ctx.arg(2).unwrap_or(0)];
    entry::enter(cookie(&ctx), args);
    0
}

/// See [`syscall_entry_kprobe`].
#[fentry]
pub(crate) fn syscall_entry_fentry(ctx: FEntryContext) -> i32 {
    let mut place = MaybeUninit::<[u64; 3]>::uninit();
    // SAFETY: words of 64 bits.
    let args = unsafe { read::clear(&mut place) };
    // SAFETY: helpers that only read the context; a missing argument leaves its zero.
    unsafe {
        bpf_get_func_arg(ctx.as_ptr(), 0, &raw mut args[0]);
        bpf_get_func_arg(ctx.as_ptr(), 1, &raw mut args[1]);
        bpf_get_func_arg(ctx.as_ptr(), 2, &raw mut args[2]);
    }
    entry::enter(cookie(&ctx), *args);
    0
}

/// A call returns.
#[kretprobe]
pub(crate) fn syscall_exit_kretprobe(ctx: RetProbeContext) -> u32 {
    exit::leave(cookie(&ctx), ctx.ret());
    0
}

/// See [`syscall_exit_kretprobe`].
#[fexit]
pub(crate) fn syscall_exit_fexit(ctx: FExitContext) -> i32 {
    exit::leave(cookie(&ctx), result(&ctx));
    0
}

/// A function further in returns.
#[kretprobe]
pub(crate) fn inner_exit_kretprobe(ctx: RetProbeContext) -> u32 {
    let result = ctx.ret();
    if chain::may_be_error(result) {
        // The registers were pushed at the place the caller's return address came from.
        chain::returned(cookie(&ctx), result, ctx.as_ptr() as u64, REGISTERS);
    }
    0
}

/// See [`inner_exit_kretprobe`].
#[fexit]
pub(crate) fn inner_exit_fexit(ctx: FExitContext) -> i32 {
    let result = result(&ctx);
    if !chain::may_be_error(result) {
        return 0;
    }
    // The trampoline keeps arguments and result right below its frame pointer: adding their size gives an address
    // that does not depend on how many arguments the function has.
    // SAFETY: a helper that only reads the context.
    let arguments = unsafe { bpf_get_func_arg_cnt(ctx.as_ptr()) } as u64;
    let above = 8 * (arguments + 1) + TRAMPOLINE;
    chain::returned(cookie(&ctx), result, ctx.as_ptr() as u64, above);
    0
}

/// Bytes of `struct pt_regs` (x86-64: 21 registers): what a return probe pushes at the caller's stack pointer.
const REGISTERS: u64 = 168;
/// Bytes between a trampoline's frame pointer and the stack pointer of the function's caller: the saved frame pointer
/// and two return addresses.
const TRAMPOLINE: u64 = 24;

#[inline(always)]
fn cookie<C: aya_ebpf::EbpfContext>(ctx: &C) -> Cookie {
    // SAFETY: a helper that only reads the context.
    Cookie(unsafe { bpf_get_attach_cookie(ctx.as_ptr()) })
}

#[inline(always)]
fn result(ctx: &FExitContext) -> u64 {
    let mut result = 0;
    // SAFETY: a helper that only reads the context.
    unsafe { bpf_get_func_ret(ctx.as_ptr(), &raw mut result) };
    result
}

/// Process and thread id, as the kernel packs them: the key of calls in flight.
#[inline(always)]
fn thread() -> u64 {
    // SAFETY: a helper without arguments.
    unsafe { bpf_get_current_pid_tgid() }
}

//! The burst sampler: what a network device receives and sends, in buckets of time. One instance for each device.
//!
//! Two programs of traffic control, which see every packet and change none: their answer is always to go on as if they
//! were not there. `maps` owns the buckets, `parse` and `walk` read headers, `tcp` and `roce` tell what was sent again.
//! Where the configuration asks for it, a third one stands in for the one of what is sent: it marks what TCP sends again.
//! A program of its own, so that whoever lists programs sees that packets are changed. And one program on a tracepoint
//! counts what the kernel says of what TCP sends again; another sees where the host does not keep up (`napi`). `tick` is
//! run once, where a timer is to tell the time instead of the clock.
#![cfg_attr(target_arch = "bpf", no_std, no_main)]
#![cfg_attr(target_arch = "bpf", feature(asm_experimental_arch))]
#![cfg_attr(target_arch = "bpf", expect(unsafe_code, reason = "maps and helpers of the kernel are raw pointers"))]

#[cfg(not(target_arch = "bpf"))]
fn main() {}

#[cfg(target_arch = "bpf")]
mod count;
#[cfg(target_arch = "bpf")]
mod load;
#[cfg(target_arch = "bpf")]
mod maps;
#[cfg(target_arch = "bpf")]
mod marks;
#[cfg(target_arch = "bpf")]
mod napi;
#[cfg(target_arch = "bpf")]
mod parse;
#[cfg(target_arch = "bpf")]
mod region;
#[cfg(target_arch = "bpf")]
mod retransmissions;
#[cfg(target_arch = "bpf")]
mod roce;
#[cfg(target_arch = "bpf")]
mod tcp;
#[cfg(target_arch = "bpf")]
mod tick;
#[cfg(target_arch = "bpf")]
mod walk;

#[cfg(target_arch = "bpf")]
mod programs {
    use agent_common::bucket::direction;
    use aya_ebpf::bindings::TC_ACT_UNSPEC;
    use aya_ebpf::macros::{classifier, raw_tracepoint};
    use aya_ebpf::programs::{RawTracePointContext, TcContext};

    use super::count::count;
    use super::napi;
    use super::{retransmissions, tick};

    /// What comes in: after the driver and GRO, before anything else of the network stack.
    #[classifier]
    pub(crate) fn fs_sampler_rx(ctx: TcContext) -> i32 {
        count(ctx.skb.skb, direction::RX, false);
        // As a filter: go on to the next one. As a TCX program: the same, by the name of `TCX_NEXT`.
        TC_ACT_UNSPEC
    }

    /// What goes out: before the device's queue.
    #[classifier]
    pub(crate) fn fs_sampler_tx(ctx: TcContext) -> i32 {
        count(ctx.skb.skb, direction::TX, false);
        TC_ACT_UNSPEC
    }

    /// The same, and marks what TCP sends again.
    #[classifier]
    pub(crate) fn fs_sampler_mark(ctx: TcContext) -> i32 {
        count(ctx.skb.skb, direction::TX, true);
        TC_ACT_UNSPEC
    }

    /// Sets the tick for the first time. Run once, on no packet.
    #[classifier]
    pub(crate) fn fs_sampler_tick(_ctx: TcContext) -> i32 {
        tick::start() as i32
    }

    /// TCP has sent something again, or has tried to.
    #[raw_tracepoint(tracepoint = "tcp_retransmit_skb")]
    pub(crate) fn fs_retransmit(ctx: RawTracePointContext) -> i32 {
        retransmissions::count(&ctx);
        0
    }

    /// `napi:napi_poll`: some device's driver has handled packets.
    #[raw_tracepoint]
    pub(crate) fn fs_sampler_napi(ctx: RawTracePointContext) -> i32 {
        napi::count(ctx.arg(0), ctx.arg(1), ctx.arg(2));
        0
    }
}

/// The kernel gives its helpers that look into sockets only to programs that declare this licence.
#[cfg(target_arch = "bpf")]
#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";

#[cfg(target_arch = "bpf")]
#[panic_handler]
fn panic(_info: &core::panic::PanicInfo<'_>) -> ! {
    // An endless loop: a panic that can be reached is refused by the verifier instead of misbehaving.
    loop {}
}

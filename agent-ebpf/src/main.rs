//! The kernel side. On the host this is an empty program, so that the workspace builds as one.
//!
//! One module per subject; `maps` owns every map, nobody else touches one. A program is a thin wrapper that fetches
//! arguments and the attach cookie in the way of its attach type; the work is done in functions that do not know how
//! they were attached. So the same code serves fentry/fexit and kprobe/kretprobe.
#![cfg_attr(target_arch = "bpf", no_std, no_main)]
#![cfg_attr(target_arch = "bpf", feature(asm_experimental_arch))]
#![cfg_attr(target_arch = "bpf", expect(unsafe_code, reason = "maps and helpers of the kernel are raw pointers"))]
#![cfg_attr(
    target_arch = "bpf",
    expect(
        clippy::needless_borrows_for_generic_args,
        reason = "a value passed whole is copied to a stack of 512 bytes"
    )
)]

#[cfg(not(target_arch = "bpf"))]
fn main() {}

#[cfg(target_arch = "bpf")]
mod cm;
#[cfg(target_arch = "bpf")]
mod device;
#[cfg(target_arch = "bpf")]
mod health;
#[cfg(target_arch = "bpf")]
mod maps;
#[cfg(target_arch = "bpf")]
mod read;
#[cfg(target_arch = "bpf")]
mod verbs;

/// The kernel gives its helpers that read memory and tracing state only to programs that declare this licence.
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

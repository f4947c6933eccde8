//! The kernel side. On the host this is an empty program, so that the workspace builds as one.
#![cfg_attr(target_arch = "bpf", no_std, no_main)]

#[cfg(not(target_arch = "bpf"))]
fn main() {}

#[cfg(target_arch = "bpf")]
#[panic_handler]
fn panic(_info: &core::panic::PanicInfo<'_>) -> ! {
    // An endless loop: a panic that can be reached is refused by the verifier instead of misbehaving.
    loop {}
}

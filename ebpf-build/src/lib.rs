//! Builds the kernel side. The one place that knows how; used by the agent's build script and by xtask.
//!
//! # Why a crate of its own
//!
//! The kernel side (`agent-ebpf`) is compiled for `bpfel-unknown-none`, a target for which no compiled `core`
//! is shipped and whose linker is not part of the toolchain. Two pieces are therefore needed beside the pinned
//! stable toolchain, and `cargo xtask setup` brings both into the cache folder ([`cache`]):
//!
//! | piece | where | why |
//! |---|---|---|
//! | sources of `core` | the sysroot's `rust-src`, else `CACHE/rust-VERSION/library` | `core` is compiled for BPF |
//! | `bpf-linker` | `CACHE/rust-VERSION/bpf-linker/bin/bpf-linker` | turns LLVM bitcode into one BPF object |
//!
//! The linker is built against the compiler's own `libLLVM`, so both sides speak one dialect of bitcode by
//! construction. That is why its folder carries the compiler's version: a new compiler needs a new linker.
//!
//! # What a build is
//!
//! [`Kernel::build`] runs an inner cargo with `-Z build-std=core` (`RUSTC_BOOTSTRAP=1` opens that flag on the stable
//! compiler) in one shared target folder, `bpf/` inside the workspace's own, so that debug and release builds
//! do not compile `core` twice. It holds a file lock meanwhile: two builds at once wait for each other.
//! What the outer cargo put into the environment for *its* build (flags, wrappers, profile) is kept away from
//! the inner one ([`inherit`]). The object is refused when it still contains code that can panic, because no
//! kernel loads such an object and the kernel's own message would not say why.
//!
//! Nothing is downloaded here: a missing piece is [`Error::Missing`], whose text names it and the command
//! that brings it.

pub mod cache;
mod error;
pub mod inherit;
mod kernel;
mod object;
mod toolchain;

pub use error::{Error, Result};
pub use kernel::{Kernel, target_dir};
pub use toolchain::{Pieces, Toolchain};

/// The kernel side's package.
pub const PACKAGE: &str = "agent-ebpf";

/// Its object files: the tracer's, of which there is one instance, and the sampler's, with one for each network device.
pub const OBJECTS: [&str; 2] = ["agent-ebpf", "agent-ebpf-bursts"];

/// The target triple of the kernel side: BPF, little endian.
pub const TARGET: &str = "bpfel-unknown-none";

/// The linker's release, as the crate registry names it.
pub const LINKER_VERSION: &str = "0.13.0";

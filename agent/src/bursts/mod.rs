//! The burst sampler's user side: which devices, which buckets may be read, where they lie in time, who keeps them.
//!
//! It must not know how buckets come about: the kernel side is reached through [`drain::Buckets`] alone.

pub(crate) mod account;
pub(crate) mod clock;
pub(crate) mod device;
pub(crate) mod drain;
#[cfg(test)]
pub(crate) mod fake;
pub(crate) mod file;
pub(crate) mod follow;
pub(crate) mod kept;
pub(crate) mod placed;
pub(crate) mod recorder;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod sessions;
pub(crate) mod state;

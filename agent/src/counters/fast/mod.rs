//! Chosen counters, read up to a thousand times a second, by a thread of its own, into the recorder.
//!
//! A sample is the growth between two readings of the source with the measured time between them; readings are taken at
//! the middle of the time that they took. What a source has kept since the reading before is no sample: sysfs keeps
//! `hw_counters` for their `lifespan`, and some drivers fill their statistics by a timer; such readings are passed over.
//! RDMA netlink and the other drivers ask the device each time.
//!
//! All readings together take at most one in [`limits::FAST_SHARE`](crate::config::limits::FAST_SHARE) of the thread's
//! time: a source that is slower is read more seldom, which is told, and faster again when it has been quick for a while.

pub(crate) mod choice;
mod pace;
mod sampler;
pub(crate) mod service;
mod source;
#[cfg(test)]
mod tests;

pub(crate) use choice::Choice;
pub(crate) use sampler::{Sampler, Status, Wish};

//! Pure functions over samples: the same input gives the same answer.
//!
//! Nothing here does I/O, reads a clock, spawns or logs. A [`series::Series`] is source-neutral: samples of tc buckets
//! and of counters that are read at times of their own look alike to a detector.

pub mod answer;
pub mod burst;
pub mod contention;
pub mod distribution;
pub mod join;
pub mod series;
pub mod sketch;
#[cfg(test)]
mod testing;
pub mod utilisation;

//! Pure functions over samples: the same input gives the same answer.
//!
//! Nothing here does I/O, reads a clock, spawns or logs. A [`series::Series`] is source-neutral: samples of tc buckets
//! and of counters that are read at times of their own look alike to a detector.

pub mod answer;
pub mod burst;
pub mod congestion;
pub mod contention;
mod counter;
pub mod counter_samples;
pub mod counter_series;
pub mod delta;
pub mod distribution;
pub mod evidence;
pub mod join;
pub mod link;
pub mod occupancy;
pub mod pause;
pub mod port;
pub mod resource;
pub mod retransmission;
pub mod series;
pub mod sketch;
pub mod skew;
pub mod storm;
mod sum;
#[cfg(test)]
mod testing;
pub mod utilisation;
pub mod verdict;

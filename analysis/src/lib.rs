//! Pure functions over samples: the same input gives the same answer.
//!
//! Nothing here does I/O, reads a clock, spawns or logs. A [`series::Series`] is source-neutral: samples of tc buckets
//! and of counters that are read at times of their own look alike to a detector.

pub mod congestion;
pub mod counter_series;
pub mod delta;
pub mod link;
pub mod pause;
pub mod port;
pub mod resource;
pub mod retransmission;
pub mod series;
pub mod skew;
pub mod storm;
mod sum;
pub mod verdict;

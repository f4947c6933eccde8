//! The tick: a timer of the kernel that says which bucket is written, so that no packet needs to look at a clock.
//!
//! A tick comes at the end of each interval of `CLOCK_MONOTONIC`, or later: it runs after the packets that wait on its
//! CPU. Bucket `n` then begins at its tick, not at `n * interval`, and lasts until the next one; a number whose tick did
//! not come in time has no bucket, and the bucket before it lasts that much longer. So each tick tells when it came.

/// When bucket `sequence` began. In a ring as long as those of the buckets, at the same place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(8))]
pub struct Tick {
    /// The bucket's number, or [`NO_SEQUENCE`](crate::bucket::NO_SEQUENCE) while this is written.
    pub sequence: u64,
    /// `CLOCK_MONOTONIC` in nanoseconds, as the tick read it: in the interval of its number.
    pub start_ns: u64,
}

const _: () = assert!(size_of::<Tick>() == 16);

/// What packets read of the tick, and what it says of itself. Written by the tick alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(8))]
pub struct Ticking {
    /// The bucket that is written.
    pub current: u64,
    /// Ticks that came.
    pub ticks: u64,
    /// Numbers that got no bucket, since their tick came too late.
    pub missed: u64,
    /// When the bucket that is written began.
    pub start_ns: u64,
    /// Not used: packets read this, so it has a cache line of its own.
    pub reserved: [u64; 4],
}

const _: () = assert!(size_of::<Ticking>() == 64);

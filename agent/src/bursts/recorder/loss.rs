//! What the recorder has lost, by cause.

/// Why samples were lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Memory ended before there was room on the disk again.
    DiskFull,
    /// Memory ended before the disk took anything again.
    DiskRefused,
    /// Memory ended before the disk took what it was given.
    DiskSlow,
    /// Too many samples at once.
    TooLarge,
    /// They could not be packed.
    Unfit,
}

/// Every cause with the stage and the reason that metrics name.
const CAUSES: [(Cause, &str, &str); 5] = [
    (Cause::DiskFull, "disk", "no_space"),
    (Cause::DiskRefused, "disk", "io_error"),
    (Cause::DiskSlow, "disk", "too_slow"),
    (Cause::TooLarge, "memory", "too_large"),
    (Cause::Unfit, "memory", "pack_error"),
];

/// Samples lost since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Losses([u64; CAUSES.len()]);

impl Losses {
    pub(super) fn add(&mut self, cause: Cause, samples: usize) {
        for (count, (row, ..)) in self.0.iter_mut().zip(CAUSES) {
            *count += if row == cause { samples as u64 } else { 0 };
        }
    }

    /// Stage, reason and number of samples of each way to lose them, those of none too.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> + '_ {
        CAUSES.iter().zip(self.0).map(|((_, stage, reason), count)| (*stage, *reason, count))
    }
}

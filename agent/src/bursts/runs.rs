//! What the programs and ticks of sampled devices came to, those that are gone too.

use super::device::Device;
use crate::kernel::ProgramAccount;

/// All devices together, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Runs {
    /// How often programs ran and how long, while that was measured. Ticks are not among them: the kernel keeps no account
    /// of what its timers run.
    pub(crate) programs: ProgramAccount,
    /// Ticks that came, where one tells buckets apart.
    pub(crate) ticks: u64,
    /// Buckets that had none, since their tick came too late.
    pub(crate) missed: u64,
}

impl Runs {
    /// Adds what a device has come to.
    pub(crate) fn add(&mut self, device: &Device) {
        let account = device.account();
        let sum = &mut self.programs;
        sum.run_count = sum.run_count.saturating_add(account.run_count);
        sum.run_time_ns = sum.run_time_ns.saturating_add(account.run_time_ns);
        sum.recursion_misses = sum.recursion_misses.saturating_add(account.recursion_misses);
        if let Some(ticking) = device.ticking() {
            self.ticks = self.ticks.saturating_add(ticking.ticks);
            self.missed = self.missed.saturating_add(ticking.missed);
        }
    }
}

//! The kernel's clocks, and its own estimate of how wrong the wall clock may be.

use analysis::series::DurationNs;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// `CLOCK_MONOTONIC` in nanoseconds: what the kernel side's `bpf_ktime_get_ns` reads.
pub(crate) fn monotonic_ns() -> u64 {
    // The clock begins at 0 and lasts for 292 years.
    u64::try_from(nanoseconds(clock_gettime(ClockId::Monotonic))).unwrap_or_default()
}

/// `CLOCK_REALTIME`: nanoseconds since 1970-01-01 UTC.
pub(crate) fn realtime_ns() -> i64 {
    nanoseconds(clock_gettime(ClockId::Realtime))
}

fn nanoseconds(time: Timespec) -> i64 {
    time.tv_sec.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec)
}

/// The largest error of `CLOCK_REALTIME`, as whoever keeps it (NTP, PTP) tells the kernel, which lets it grow by 500 us
/// a second until it is told again (adjtimex(2), `maxerror`). `None` where nobody keeps the clock.
pub(crate) fn realtime_error() -> Option<DurationNs> {
    // SAFETY: the structure is plain data, for which zeroes are a value: `modes` 0 asks and changes nothing.
    let mut timex: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel fills in the structure, which lives through the call.
    let state = unsafe { libc::adjtimex(&raw mut timex) };
    if state < 0 || state == libc::TIME_ERROR || timex.status & libc::STA_UNSYNC != 0 {
        return None;
    }
    Some(DurationNs(u64::try_from(timex.maxerror).ok()?.saturating_mul(1_000)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clocks_go_on() {
        let (monotonic, realtime) = (monotonic_ns(), realtime_ns());
        assert!(monotonic > 0 && monotonic_ns() >= monotonic);
        // 2020-01-01: a host whose clock was never set has no date at all.
        assert!(realtime > 1_577_836_800_000_000_000, "{realtime}");
    }

    #[test]
    fn a_kept_clock_states_an_error_that_the_kernel_allows() {
        // NTP_PHASE_LIMIT: from 16 s on the clock counts as not kept.
        assert!(realtime_error().is_none_or(|error| error.0 <= 16_000_000_000));
    }
}

//! Whether a guest's clock runs as the host's does.
//!
//! Under emulation a kernel that measures its time stamp counter while the host is busy may come to a frequency that is
//! several times too low. Its clock is then that many times too fast from the boot on, and every time limit in the
//! guest too short.

use std::time::Duration;

/// How much faster than the host's a guest's clock may be. What a busy host adds to a measurement stays below.
const FASTEST: f64 = 1.5;
/// After this time the clock may be called right.
const SHORT: Duration = Duration::from_millis(300);
/// Before this time it is not called wrong: the host may have been late to see the first reading.
const LONG: Duration = Duration::from_secs(2);

/// What is known of the pace of a guest's clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Pace {
    /// Nothing yet.
    Unknown,
    /// As that of the host, or slower.
    Right,
    /// So many times that of the host.
    Wrong(f64),
}

/// A guest's clock beside the host's.
#[derive(Debug, Default)]
pub(super) struct Clock {
    /// The first reading of both: the host's, the guest's in seconds.
    first: Option<(Duration, f64)>,
    /// The guest's last one.
    last: Option<f64>,
}

impl Clock {
    /// Takes a reading of both: `host` since any moment, `uptime` the text of the guest's `/proc/uptime`, which may be
    /// missing or half written.
    pub(super) fn look(&mut self, host: Duration, uptime: &str) -> Pace {
        let guest = uptime.split_once(' ').and_then(|(seconds, _)| seconds.parse::<f64>().ok());
        // One that was read before says nothing new, however long it stands there.
        let Some(guest) = guest.filter(|guest| self.last != Some(*guest)) else { return Pace::Unknown };
        self.last = Some(guest);
        let (host_first, guest_first) = *self.first.get_or_insert((host, guest));
        let passed = host.saturating_sub(host_first);
        let pace = (guest - guest_first) / passed.as_secs_f64();
        if passed >= LONG && pace > FASTEST {
            Pace::Wrong(pace)
        } else if passed >= SHORT && pace <= FASTEST {
            Pace::Right
        } else {
            Pace::Unknown
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(readings: &[(u64, &str)], expected: Pace) {
        let mut clock = Clock::default();
        let paces = readings.iter().map(|(host, guest)| clock.look(Duration::from_millis(*host), guest));
        assert_eq!(paces.last(), Some(expected), "{readings:?}");
    }

    #[test]
    fn a_clock_is_judged_when_enough_time_has_passed() {
        check(&[(1000, "3.10 2.00\n")], Pace::Unknown);
        check(&[(1000, "3.10 2.00\n"), (1200, "3.30 2.00\n")], Pace::Unknown);
        check(&[(1000, "3.10 2.00\n"), (1300, "3.40 2.00\n")], Pace::Right);
        check(&[(1000, "3.00 2.00\n"), (3000, "6.00 2.00\n")], Pace::Right);
        check(&[(1000, "3.00 2.00\n"), (3000, "7.00 2.00\n")], Pace::Wrong(2.0));
    }

    #[test]
    fn a_reading_that_came_late_makes_no_clock_wrong() {
        // The guest wrote the first one 200 ms before it was seen.
        check(&[(1000, "3.00 2.00\n"), (1300, "3.50 2.00\n")], Pace::Unknown);
        check(&[(1000, "3.00 2.00\n"), (1300, "3.50 2.00\n"), (1700, "3.90 2.00\n")], Pace::Right);
    }

    #[test]
    fn an_old_reading_says_nothing() {
        check(&[(1000, "3.00 2.00\n"), (9000, "3.00 2.00\n")], Pace::Unknown);
        check(&[(1000, "3.00 2.00\n"), (9000, "3.00 2.00\n"), (9100, "35.00 2.00\n")], Pace::Wrong(32.0 / 8.1));
        check(&[(1000, "3.00 2.00\n"), (9000, "3.01 2.00\n")], Pace::Right);
    }

    #[test]
    fn what_is_no_reading_is_passed_over() {
        check(&[(1000, "3.00 2.00\n"), (1500, "")], Pace::Unknown);
        check(&[(1000, ""), (1500, "3")], Pace::Unknown);
        check(&[(1000, "x y")], Pace::Unknown);
    }
}

//! Values with units, as people write them in the configuration and on the command line.

use std::net::IpAddr;

use analysis::burst::Share;
use analysis::series::DurationNs;

use crate::kernel::sampler::{Clock, INTERVALS, Prefix};

/// `10MiB`, `2GB`, `4096`: a number of bytes.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    parse_size::parse_size(text).ok()
}

/// `50%`: a share of line rate.
pub(crate) fn share(text: &str) -> Option<Share> {
    let percent: f64 = text.trim().strip_suffix('%')?.trim_end().parse().ok()?;
    Share::new(percent / 100.0)
}

/// `10.0.0.0/8`, `2001:db8::/32`: a network prefix.
pub(crate) fn prefix(text: &str) -> Option<Prefix> {
    let (address, length) = text.trim().split_once('/')?;
    let address: IpAddr = address.parse().ok()?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let length = length.parse().ok().filter(|length| *length <= most)?;
    Some(Prefix { address, length })
}

/// The lengths of a sample by name.
pub(crate) const INTERVAL_NAMES: [(&str, DurationNs); 3] =
    [("1ms", INTERVALS[1]), ("100us", INTERVALS[0]), ("10ms", INTERVALS[2])];

/// What may tell samples apart, by name.
pub(crate) const CLOCK_NAMES: [(&str, Clock); 2] = [("read", Clock::Read), ("tick", Clock::Tick)];

/// Why a clock cannot tell samples of this length apart.
pub(crate) fn clock_fits(clock: Clock, interval: DurationNs) -> Result<(), &'static str> {
    if interval >= clock.shortest() {
        return Ok(());
    }
    Err("a tick is too dear for an interval below 1ms: make that 1ms or 10ms, or let the clock be \"read\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check<T: PartialEq + std::fmt::Debug>(parse: fn(&str) -> Option<T>, rows: &[(&str, Option<T>)]) {
        for (text, expected) in rows {
            assert_eq!(parse(text), *expected, "{text}");
        }
    }

    #[test]
    fn bytes_have_binary_and_decimal_units() {
        check(
            bytes,
            &[("10MiB", Some(10 << 20)), ("2GB", Some(2_000_000_000)), ("7", Some(7)), ("-1", None), ("", None)],
        );
    }

    #[test]
    fn shares_are_percent_of_line_rate() {
        check(share, &[("50%", Share::new(0.5)), ("0.5 %", Share::new(0.005)), ("100%", Share::new(1.0))]);
        check(share, &["0%", "101%", "50", "-1%", "NaN%", "%", ""].map(|text| (text, None)));
    }

    #[test]
    fn prefixes_have_a_length_that_their_address_has() {
        let of = |address: &str, length| Some(Prefix { address: address.parse().unwrap(), length });
        check(
            prefix,
            &[("10.0.0.0/8", of("10.0.0.0", 8)), ("2001:db8::/32", of("2001:db8::", 32)), ("::/0", of("::", 0))],
        );
        check(prefix, &["10.0.0.0", "10.0.0.0/33", "::/129", "a/8", "10.0.0.0/", ""].map(|text| (text, None)));
    }

    #[test]
    fn every_interval_has_a_name() {
        for interval in INTERVALS {
            assert!(INTERVAL_NAMES.iter().any(|(_, named)| *named == interval), "{interval:?}");
        }
    }
}

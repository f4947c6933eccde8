//! Values with units, as people write them in the configuration and on the command line.

use std::net::IpAddr;

use analysis::burst::Share;
use analysis::series::{BitsPerSecond, DurationNs};

use crate::kernel::sampler::{INTERVALS, Prefix};

/// `10MiB`, `2GB`, `4096`: a number of bytes.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    parse_size::parse_size(text).ok()
}

/// `100Gbit`, `25Gbit/s`, `2.5Gbit`: a rate, whose unit must be there.
pub(crate) fn rate(text: &str) -> Option<BitsPerSecond> {
    let number = text.trim().strip_suffix("bit/s").or_else(|| text.trim().strip_suffix("bit"))?;
    // The library's units are for bytes: a "B" before "bit" is none.
    let bits = parse_size::parse_size(number).ok().filter(|_| !number.contains(['B', 'b']))?;
    (bits > 0).then_some(BitsPerSecond(bits))
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
    fn rates_have_their_unit() {
        let rows = [("100Gbit", 100_000_000_000), ("2.5Gbit/s", 2_500_000_000), ("10 Mbit", 10_000_000), ("9bit", 9)];
        check(rate, &rows.map(|(text, rate)| (text, Some(BitsPerSecond(rate)))));
        check(
            rate,
            &["100", "100G", "100GB", "1GBbit", "0bit", "bit", "-1Gbit", "1e40bit", ""].map(|text| (text, None)),
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

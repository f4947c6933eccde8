//! Numbers with their units, short enough to be read: three digits.

use analysis::series::{BitsPerSecond, DurationNs, UtcNs};

/// A quantity's units, from the largest.
type Units = &'static [(f64, &'static str)];

/// Units of volumes.
const BYTES: Units = &[(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")];

/// Units of rates.
const RATES: Units = &[(1e12, "Tbit/s"), (1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")];

/// Units of times; minutes and hours are left to the reader.
const TIMES: Units = &[(1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")];

/// The unit in which a quantity is a number from 1 to 1000, if there is one.
fn unit(value: f64, units: Units) -> (f64, &'static str) {
    let fitting = units.iter().find(|(size, _)| value >= *size);
    fitting.or(units.last()).copied().unwrap_or((1.0, ""))
}

fn with_unit(value: f64, units: Units) -> String {
    let (size, name) = unit(value, units);
    format!("{} {name}", digits(value / size))
}

/// A number with three digits or all those before the point, without zeros at the end.
pub(super) fn digits(value: f64) -> String {
    let places = if value >= 99.95 {
        0
    } else if value >= 9.995 {
        1
    } else {
        2
    };
    let text = format!("{value:.places$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A volume: `1.23 GB`.
pub(super) fn bytes(bytes: u64) -> String {
    with_unit(bytes as f64, BYTES)
}

/// A rate: `24.8 Gbit/s`.
pub(super) fn rate(rate: BitsPerSecond) -> String {
    with_unit(rate.0 as f64, RATES)
}

/// The unit for an axis up to this rate, in bits a second.
pub(super) fn rate_unit(top: f64) -> (f64, &'static str) {
    unit(top, RATES)
}

/// A length of time: `3.2 ms`.
pub(super) fn duration(length: DurationNs) -> String {
    with_unit(length.0 as f64, TIMES)
}

/// A share as a percentage: `3.5 %`.
pub(super) fn percent(share: f64) -> String {
    if share > 0.0 && share < 0.0001 { "<0.01 %".to_owned() } else { format!("{} %", digits(share * 100.0)) }
}

/// A point in time as RFC 3339 with nanoseconds; `None` for what no calendar has.
pub(super) fn rfc3339(time: UtcNs) -> Option<String> {
    let time = jiff::Timestamp::from_nanosecond(i128::from(time.0)).ok()?;
    Some(format!("{time:.9}"))
}

/// The day, and the time of day in the digits that samples of this interval can tell apart.
pub(super) fn day_and_time(time: UtcNs, interval: DurationNs) -> (String, String) {
    let places = if interval.0 < 1_000_000 { 6 } else { 3 };
    let text = rfc3339(time).unwrap_or_default();
    let part = |range: std::ops::Range<usize>| text.get(range).unwrap_or("-").to_owned();
    (part(0..10), part(11..20 + places))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        let rows = [
            (0.0, "0"),
            (0.004, "0"),
            (0.05, "0.05"),
            (1.0, "1"),
            (1.234, "1.23"),
            (9.996, "10"),
            (12.34, "12.3"),
            (99.96, "100"),
            (100.0, "100"),
            (1234.5, "1234"),
        ];
        for (value, expected) in rows {
            assert_eq!(digits(value), expected, "{value}");
        }
    }

    #[test]
    fn quantities_have_the_unit_that_suits_them() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1_234_567), "1.23 MB");
        assert_eq!(rate(BitsPerSecond(24_800_000_000)), "24.8 Gbit/s");
        assert_eq!(duration(DurationNs(100_000)), "100 us");
        assert_eq!(duration(DurationNs(60_000_000_000)), "60 s");
        assert_eq!(percent(0.0), "0 %");
        assert_eq!(percent(0.00001), "<0.01 %");
        assert_eq!(percent(0.0351), "3.51 %");
    }

    #[test]
    fn times_show_what_samples_can_tell() {
        let time = UtcNs(1_700_000_000_123_456_789);
        let (ms, us) = (DurationNs(1_000_000), DurationNs(100_000));
        assert_eq!(day_and_time(time, ms), ("2023-11-14".to_owned(), "22:13:20.123".to_owned()));
        assert_eq!(day_and_time(time, us).1, "22:13:20.123456");
        assert_eq!(rfc3339(time).as_deref(), Some("2023-11-14T22:13:20.123456789Z"));
    }
}

//! A time as it is written everywhere: on the command line and in the configuration.

use std::time::Duration;

use jiff::fmt::friendly::{Designator, Spacing, SpanParser, SpanPrinter};

/// Reads a time with its unit, such as `500ms` or `1h 30m`.
///
/// # Errors
///
/// What is wrong with it, for people.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    SpanParser::new()
        .parse_unsigned_duration(text)
        .map_err(|_| "a time is a number and a unit: 500ms, 30s, 5m or 1h".to_owned())
}

/// As [`parse`], but for a time in which something is to happen.
///
/// # Errors
///
/// As [`parse`], and for no time at all.
pub(crate) fn parse_positive(text: &str) -> Result<Duration, String> {
    let time = parse(text)?;
    if time.is_zero() { Err("it would end at once".to_owned()) } else { Ok(time) }
}

/// `60s`, `10m`: a time as [`parse`] reads it.
pub(super) fn shown(time: Duration) -> String {
    SpanPrinter::new().designator(Designator::Compact).spacing(Spacing::None).unsigned_duration_to_string(&time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_need_a_unit() {
        let rows: [(&str, Option<u64>); 17] = [
            ("500ms", Some(500)),
            ("30s", Some(30_000)),
            ("20 s", Some(20_000)),
            ("5m", Some(300_000)),
            ("1.5m", Some(90_000)),
            ("2h", Some(7_200_000)),
            ("1h 1s", Some(3_601_000)),
            ("1h1s", Some(3_601_000)),
            ("0s", Some(0)),
            ("", None),
            ("30", None),
            ("s", None),
            ("-1s", None),
            ("1s ago", None),
            ("1e99h", None),
            ("99999999999999999999s", None),
            ("2 parsecs", None),
        ];
        for (text, expected) in rows {
            let time = expected.map(Duration::from_millis);
            assert_eq!(parse(text).ok(), time, "{text}");
            assert_eq!(parse_positive(text).ok(), time.filter(|time| !time.is_zero()), "{text}");
        }
    }

    #[test]
    fn what_is_shown_is_read_again() {
        for (millis, text) in [(1_000, "1s"), (60_000, "1m"), (500, "500ms"), (86_400_000, "24h")] {
            assert_eq!(
                (shown(Duration::from_millis(millis)).as_str(), parse(text)),
                (text, Ok(Duration::from_millis(millis)))
            );
        }
    }
}

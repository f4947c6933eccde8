//! Line rates as people write them: `100Gbit`, `2.5G`, `800Gbit/s`.

use analysis::series::BitsPerSecond;

/// What may stand before the unit, in any case.
const PREFIXES: [(char, f64); 4] = [('k', 1e3), ('m', 1e6), ('g', 1e9), ('t', 1e12)];

/// Ways to write bits a second.
const UNITS: [&str; 5] = ["", "bit", "bit/s", "b/s", "bps"];

/// Slower is no network device, and faster none that is made.
const RANGE: std::ops::RangeInclusive<f64> = 1e3..=1e15;

/// A line rate: a number, a prefix, and bits a second in any of the usual ways to write it.
///
/// # Errors
///
/// What to write instead.
pub(crate) fn rate(text: &str) -> Result<BitsPerSecond, String> {
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let example = || "a rate is a number with its unit, such as 100Gbit, 2.5Gbit or 800G".to_owned();
    let number: f64 = number.parse().map_err(|_| example())?;
    let unit = unit.trim_start();
    if unit.contains('B') {
        return Err("rates are in bits: write 100Gbit for 12.5 gigabytes a second".to_owned());
    }
    let prefix = unit.chars().next().ok_or_else(example)?.to_ascii_lowercase();
    let (factor, rest) = match PREFIXES.iter().find(|(letter, _)| *letter == prefix) {
        Some((_, factor)) => (*factor, unit.get(1..).unwrap_or_default()),
        None => (1.0, unit),
    };
    if !UNITS.contains(&rest) {
        return Err(example());
    }
    let bits = number * factor;
    if !RANGE.contains(&bits) {
        return Err("write a rate from 1kbit to 1000Tbit".to_owned());
    }
    Ok(BitsPerSecond(bits.round() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_written_in_the_usual_ways() {
        let rows = [
            ("100Gbit", 100_000_000_000),
            ("1Gbit", 1_000_000_000),
            ("800G", 800_000_000_000),
            ("2.5Gbit/s", 2_500_000_000),
            ("10 Mbit", 10_000_000),
            ("25Gb/s", 25_000_000_000),
            ("25Gbps", 25_000_000_000),
            ("1.6tbit", 1_600_000_000_000),
            ("64kbit", 64_000),
            ("1000bit", 1_000),
        ];
        for (text, expected) in rows {
            assert_eq!(rate(text), Ok(BitsPerSecond(expected)), "{text}");
        }
    }

    #[test]
    fn what_is_no_rate_is_told_what_to_write() {
        let rows = [
            ("", "100Gbit"),
            ("100", "unit"),
            ("fast", "100Gbit"),
            ("-1Gbit", "100Gbit"),
            ("1.2.3G", "100Gbit"),
            ("12GB", "bits"),
            ("12GB/s", "bits"),
            ("0Gbit", "from 1kbit"),
            ("1bit", "from 1kbit"),
            ("9999999Tbit", "1000Tbit"),
            ("1Gbyte", "100Gbit"),
            ("1Gö", "100Gbit"),
            ("1ö", "100Gbit"),
        ];
        for (text, says) in rows {
            let error = rate(text).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}

//! How many flows a sketch has seen.

use std::fmt;

use crate::series::Sketch;

/// From here on a sketch of 128 bits tells flows no more apart: with two bits left one flow more or less moves the
/// estimate by a hundred.
pub const FLOWS_MAX: u32 = 500;

/// The number of flows, by linear counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Flows {
    /// About so many: the standard error is 6 % up to 24 flows, 9 % at 256, 15 % at 500.
    About(u32),
    /// [`FLOWS_MAX`] or more.
    Saturated,
}

impl fmt::Display for Flows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::About(count) => write!(f, "{count}"),
            Self::Saturated => write!(f, "{FLOWS_MAX}+"),
        }
    }
}

impl Sketch {
    /// Flows of both.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// How many flows set these bits: with `m` bits, of which `z` are not set, `-m ln(z / m)`.
    #[must_use]
    pub fn flows(self) -> Flows {
        let (bits, zero) = (f64::from(u128::BITS), f64::from(self.0.count_zeros()));
        let estimate = (-bits * (zero / bits).ln()).round();
        // No bit left: the logarithm is infinite.
        if estimate < f64::from(FLOWS_MAX) { Flows::About(estimate as u32) } else { Flows::Saturated }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_flows_are_counted_and_many_are_many() {
        let of = |set: u32| Sketch(if set == 128 { u128::MAX } else { (1 << set) - 1 }).flows();
        let rows = [
            (0, Flows::About(0)),
            (1, Flows::About(1)),
            (12, Flows::About(13)),
            (64, Flows::About(89)),
            (125, Flows::About(480)),
            (126, Flows::Saturated),
            (128, Flows::Saturated),
        ];
        for (set, expected) in rows {
            assert_eq!(of(set), expected, "{set} bits");
        }
        assert_eq!(Flows::Saturated.to_string(), "500+");
    }

    #[test]
    fn the_same_flow_on_two_processors_is_one() {
        assert_eq!(Sketch(0b11).or(Sketch(0b110)).flows(), Flows::About(3));
    }
}

//! Exact quantiles of what was measured.

/// Values in order of size: at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distribution {
    sorted: Vec<u64>,
}

impl Distribution {
    /// `None` if there are no values.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = u64>) -> Option<Self> {
        let mut sorted: Vec<u64> = values.into_iter().collect();
        sorted.sort_unstable();
        (!sorted.is_empty()).then_some(Self { sorted })
    }

    /// The smallest value that at least the share `q` of all values does not exceed: always a value that was measured.
    /// A `q` below 0 is the least value, one above 1 the largest.
    #[must_use]
    pub fn quantile(&self, q: f64) -> u64 {
        let rank = (q * self.sorted.len() as f64).ceil() as usize;
        let at = rank.clamp(1, self.sorted.len()) - 1;
        self.sorted.get(at).copied().unwrap_or_default()
    }

    /// The largest value.
    #[must_use]
    pub fn max(&self) -> u64 {
        self.quantile(1.0)
    }

    /// The sum over the count.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.sorted.iter().map(|value| *value as f64).sum::<f64>() / self.sorted.len() as f64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quantiles_are_values() {
        let hundred = Distribution::of((1..=100).rev()).unwrap();
        for (q, expected) in [(0.0, 1), (0.01, 1), (0.011, 2), (0.5, 50), (0.99, 99), (1.0, 100), (2.0, 100), (-1.0, 1)]
        {
            assert_eq!(hundred.quantile(q), expected, "{q}");
        }
        assert_eq!((hundred.max(), hundred.mean()), (100, 50.5));
        assert_eq!(hundred.quantile(f64::NAN), 1);
        assert_eq!(Distribution::of([7]).unwrap().quantile(0.5), 7);
        assert_eq!(Distribution::of([]), None);
    }

    proptest! {
        #[test]
        fn no_more_than_its_share_lies_below_a_quantile(values in prop::collection::vec(0u64..50, 1..60), q in 0.0..1.0) {
            let quantile = Distribution::of(values.iter().copied()).unwrap().quantile(q);
            let below = values.iter().filter(|value| **value < quantile).count() as f64;
            let up_to = values.iter().filter(|value| **value <= quantile).count() as f64;
            let all = values.len() as f64;
            prop_assert!(below <= q * all && q * all <= up_to);
        }
    }
}

//! Random numbers that are the same for the same seed everywhere (splitmix64).

use std::ops::Range;

/// A source of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Any value of the range.
    pub(crate) fn within(&mut self, range: Range<f64>) -> f64 {
        let unit = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        range.start + unit * (range.end - range.start)
    }

    /// Any whole number of the range.
    pub(crate) const fn below(&mut self, end: u64) -> u64 {
        // The bias of the remainder does not matter for ranges this small.
        self.next() % end
    }

    /// Whether something of this probability happens.
    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        self.within(0.0..1.0) < probability
    }
}

#[test]
fn the_numbers_are_those_of_splitmix64() {
    let mut random = Random::new(1_234_567);
    let found: Vec<u64> = (0..3).map(|_| random.next()).collect();
    assert_eq!(found, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
}

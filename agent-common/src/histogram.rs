//! The latency histogram: log-linear buckets, computed in the kernel with shifts only.

/// Buckets below this many nanoseconds are one.
const FLOOR_SHIFT: u32 = 10;
/// Each power of two is cut into this many buckets: 2, as a shift.
const SUB_SHIFT: u32 = 1;
/// Powers of two covered: from 1,024 ns to about 34 s.
const POWERS: u32 = 25;

/// How many buckets there are. The first takes all below 1,024 ns, the last all from about 34 s on.
pub const BUCKETS: usize = ((POWERS << SUB_SHIFT) + 2) as usize;

/// The bucket of a duration in nanoseconds: always below [`BUCKETS`].
#[must_use]
#[inline(always)]
pub const fn bucket(nanoseconds: u64) -> usize {
    if nanoseconds >> FLOOR_SHIFT == 0 {
        return 0;
    }
    let power = ilog2(nanoseconds);
    let offset = power - FLOOR_SHIFT;
    if offset >= POWERS {
        return BUCKETS - 1;
    }
    let sub = (nanoseconds >> (power - SUB_SHIFT)) as u32 & ((1 << SUB_SHIFT) - 1);
    (1 + (offset << SUB_SHIFT) + sub) as usize
}

/// The exclusive upper bound of a bucket in nanoseconds; `None` for the last, which has none.
#[must_use]
pub const fn upper_bound(bucket: usize) -> Option<u64> {
    if bucket >= BUCKETS - 1 {
        return None;
    }
    if bucket == 0 {
        return Some(1 << FLOOR_SHIFT);
    }
    let index = bucket as u64 - 1;
    let power = FLOOR_SHIFT as u64 + (index >> SUB_SHIFT);
    let sub = index & ((1 << SUB_SHIFT) - 1);
    Some((1 << power) + ((sub + 1) << (power - SUB_SHIFT as u64)))
}

/// `ilog2` by halving: the BPF instruction set has no count of leading zeros, and a loop would cost more to verify.
const fn ilog2(value: u64) -> u32 {
    let mut rest = value;
    let mut log = 0;
    if rest >> 32 != 0 {
        rest >>= 32;
        log += 32;
    }
    if rest >> 16 != 0 {
        rest >>= 16;
        log += 16;
    }
    if rest >> 8 != 0 {
        rest >>= 8;
        log += 8;
    }
    if rest >> 4 != 0 {
        rest >>= 4;
        log += 4;
    }
    if rest >> 2 != 0 {
        rest >>= 2;
        log += 2;
    }
    if rest >> 1 != 0 {
        log += 1;
    }
    log
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_duration_lies_below_its_buckets_bound_and_not_below_the_one_before() {
        let mut values = [0u64; 64 * 5];
        for power in 0..64 {
            for (i, delta) in [-1i64, 0, 1, 1 << 5, 1 << 9].into_iter().enumerate() {
                values[power * 5 + i] = (1u64 << power).wrapping_add(delta as u64);
            }
        }
        for value in values {
            let found = bucket(value);
            assert!(found < BUCKETS, "{value}");
            if let Some(bound) = upper_bound(found) {
                assert!(value < bound, "{value} in bucket {found} below {bound}");
            }
            if found > 0 {
                let lower = upper_bound(found - 1).expect("only the last has no bound");
                assert!(value >= lower, "{value} in bucket {found} from {lower}");
            }
        }
    }

    #[test]
    fn bounds_grow() {
        let bounds: [Option<u64>; BUCKETS] = core::array::from_fn(upper_bound);
        assert!(bounds[..BUCKETS - 1].is_sorted_by(|a, b| a < b));
        assert_eq!(bounds[BUCKETS - 1], None);
        assert_eq!(bounds[1], Some(1536));
    }

    #[test]
    fn the_logarithm_is_the_standard_librarys() {
        for power in 0..64 {
            for value in [1u64 << power, (1 << power) | 1, u64::MAX >> power] {
                assert_eq!(ilog2(value), value.ilog2());
            }
        }
    }
}

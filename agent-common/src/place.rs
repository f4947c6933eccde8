//! Where the record of a thread's call in flight stands: a table without locks, and without copying at its ends.

/// Places for calls in flight.
pub const PLACES: usize = 8192;
/// How many places a thread may take: where all of them are taken, its call has no record. With 2048 calls in flight,
/// a quarter of the places, that happens to one call in 2^32.
pub const WINDOW: u32 = 16;

/// The place that a thread looks at in its step `step` of [`WINDOW`].
///
/// Double hashing (Knuth, The Art of Computer Programming, volume 3, 6.4): threads with the same place have different
/// next ones. Each bit of the number acts on each bit of the place (the finalizer of MurmurHash3, 32 bits), since the
/// threads of one program have neighbouring numbers.
#[inline(always)]
#[must_use]
pub const fn place(thread: u64, step: u32) -> u32 {
    let mut mixed = thread as u32;
    mixed = (mixed ^ mixed >> 16).wrapping_mul(0x85eb_ca6b);
    mixed = (mixed ^ mixed >> 13).wrapping_mul(0xc2b2_ae35);
    mixed ^= mixed >> 16;
    let stride = mixed >> PLACES.ilog2() | 1;
    mixed.wrapping_add(stride.wrapping_mul(step)) & (PLACES as u32 - 1)
}

const _: () = assert!(PLACES.is_power_of_two());

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of these threads find no place while all of the others have theirs.
    fn without_place(threads: impl Iterator<Item = u64>) -> usize {
        let mut taken = [false; PLACES];
        let mut takes = |thread| {
            let mut places = (0..WINDOW).map(|step| place(thread, step) as usize);
            let free = places.find(|place| !taken[*place]);
            free.map(|place| taken[place] = true)
        };
        threads.filter(|thread| takes(*thread).is_none()).count()
    }

    #[test]
    fn as_many_calls_as_hosts_have_find_their_places() {
        // One program, whose threads have neighbouring numbers.
        for first in [1, 4_000, 4_194_303 - 4_096] {
            assert_eq!(without_place(first..first + 4_096), 0, "{first}");
        }
        // Sixteen programs of 128 threads, begun at any time: numbers from a linear congruential generator.
        let mut state = 7_u32;
        for round in 0..1_000 {
            let firsts: [u32; 16] = core::array::from_fn(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                state >> 10
            });
            let threads = firsts.iter().flat_map(|first| (0..128).map(move |thread| u64::from(first + thread)));
            assert_eq!(without_place(threads), 0, "{firsts:?} in round {round}");
        }
    }

    #[test]
    fn a_call_without_a_place_is_told() {
        let (places, threads) = (PLACES, 4 * PLACES);
        let without = without_place(0..threads as u64);
        assert!((threads - places..threads - places / 2).contains(&without), "{without}");
    }

    #[test]
    fn places_are_within_their_table() {
        for thread in [0, 1, 17, u64::from(u32::MAX), u64::MAX] {
            for step in [0, WINDOW - 1, u32::MAX] {
                assert!((place(thread, step) as usize) < PLACES, "{thread} {step}");
            }
        }
    }
}

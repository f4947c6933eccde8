//! The totals of a device: mapped for reading, summed over CPUs.

use std::io;
use std::os::fd::BorrowedFd;

use agent_common::bucket::{Totals, direction};

use super::mapping::{Mapping, copy};

/// Words of an entry.
const WORDS: usize = size_of::<Totals>() / size_of::<u64>();

/// The totals of both directions.
#[derive(Debug)]
pub(super) struct TotalsMap {
    entries: Mapping<WORDS>,
    /// Entries of one direction: one for each CPU that can ever be there.
    cpus: u32,
}

impl TotalsMap {
    /// Maps the totals. `cpus` is the number that the map was made for.
    ///
    /// # Errors
    ///
    /// If the kernel does not map it.
    pub(super) fn map(map: BorrowedFd<'_>, cpus: u32) -> io::Result<Self> {
        Ok(Self { entries: Mapping::new(map, (direction::COUNT * cpus) as usize)?, cpus })
    }

    /// Received and sent. Each number is exact; they are not all of one instant while packets pass.
    pub(super) fn read(&self) -> [Totals; 2] {
        [direction::RX, direction::TX].map(|direction| {
            let entries = (0..self.cpus).filter_map(|cpu| self.entries.entry(direction * self.cpus + cpu));
            totals(entries.map(copy).fold([0; WORDS], add))
        })
    }
}

fn add(mut sum: [u64; WORDS], words: [u64; WORDS]) -> [u64; WORDS] {
    sum.iter_mut().zip(words).for_each(|(sum, word)| *sum = sum.wrapping_add(word));
    sum
}

/// The fields, whose layout is `#[repr(C)]` without padding.
fn totals(words: [u64; WORDS]) -> Totals {
    let [
        skbs,
        skb_bytes,
        segments,
        wire_bytes,
        unparsed,
        no_ring,
        rotations,
        retransmit_bytes,
        retransmit_segments,
        ce_packets,
        ce_bytes,
        marked_bytes,
        marked_segments,
        ..,
    ] = words;
    Totals {
        skbs,
        skb_bytes,
        segments,
        wire_bytes,
        unparsed,
        no_ring,
        rotations,
        retransmit_bytes,
        retransmit_segments,
        ce_packets,
        ce_bytes,
        marked_bytes,
        marked_segments,
        reserved: [0; 3],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_summed_over_cpus_each_field_from_its_own_place() {
        let numbers: [u64; WORDS] = std::array::from_fn(|index| index as u64 + 1);
        let found = totals([numbers, numbers.map(|number| 10 * number)].into_iter().fold([0; WORDS], add));
        let expected = Totals {
            skbs: 11,
            skb_bytes: 22,
            segments: 33,
            wire_bytes: 44,
            unparsed: 55,
            no_ring: 66,
            rotations: 77,
            retransmit_bytes: 88,
            retransmit_segments: 99,
            ce_packets: 110,
            ce_bytes: 121,
            marked_bytes: 132,
            marked_segments: 143,
            reserved: [0; 3],
        };
        assert_eq!(found, expected);
        assert_eq!(std::mem::offset_of!(Totals, marked_segments), 12 * size_of::<u64>());
    }
}

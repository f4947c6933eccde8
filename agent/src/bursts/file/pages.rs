//! Holds the page headers of a Parquet file against bounds before anything is unpacked.
//!
//! The library reserves what a page's header promises. A header is a structure in Thrift's compact protocol, of which
//! as much is read here as bounds need: <https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift>
//! (`PageHeader`) and <https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md>.

use parquet::file::metadata::ColumnChunkMetaData;

use super::error::Fault;
use crate::config::limits;

/// How deep structures may lie in each other: headers need three.
const DEPTH: u32 = 8;

/// The kind of page that is written here: a data page of the first kind.
const DATA_PAGE: i64 = 0;

/// The encodings of what is read: plain, and deltas. The library panics where a page wants a dictionary that is not
/// there, so that no page may want one.
const ENCODINGS: [i64; 2] = [0, 5];

/// What a header says that matters here; negative is what it does not say.
#[derive(Debug, PartialEq, Eq)]
struct Header {
    kind: i64,
    unpacked: i64,
    packed: i64,
    values: i64,
    encoding: i64,
}

/// Every page of the column is one that is safe to unpack.
pub(super) fn check(file: &[u8], column: &ColumnChunkMetaData) -> Result<(), Fault> {
    let start = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
    let range = || {
        let start = usize::try_from(start).ok()?;
        file.get(start..start.checked_add(usize::try_from(column.compressed_size()).ok()?)?)
    };
    walk(range().ok_or_else(|| damaged("a column lies outside of it"))?)
}

/// Every page of a column.
fn walk(pages: &[u8]) -> Result<(), Fault> {
    let mut pages = Rest(pages);
    while !pages.0.is_empty() {
        let header = pages.header().ok_or_else(|| damaged("a page's header cannot be read"))?;
        if header.unpacked > limits::SAMPLE_PAGE_BYTES {
            let limit = limits::SAMPLE_PAGE_BYTES.unsigned_abs();
            return Err(Fault::TooLarge(format!("a page of {} bytes", header.unpacked), limit));
        }
        if header.values > limits::SAMPLES_PER_FILE as i64 {
            let limit = limits::SAMPLES_PER_FILE as u64;
            return Err(Fault::TooLarge(format!("a page of {} values", header.values), limit));
        }
        if header.kind != DATA_PAGE || !ENCODINGS.contains(&header.encoding) {
            return Err(damaged("a page is of a kind that is not written to such files"));
        }
        let packed = usize::try_from(header.packed).ok().and_then(|length| pages.take(length));
        if packed.is_none() || header.unpacked < 0 || header.values < 0 {
            return Err(damaged("a page's size is none"));
        }
    }
    Ok(())
}

fn damaged(what: &str) -> Fault {
    Fault::Damaged(what.to_owned())
}

/// What is left to be read. `None` is the answer to everything that is not as it should be.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn integer(&mut self) -> Option<i64> {
        let value = self.varint()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    fn header(&mut self) -> Option<Header> {
        let mut header = Header { kind: -1, unpacked: -1, packed: -1, values: -1, encoding: -1 };
        self.fields(|rest, field, kind| {
            match (field, kind) {
                (1, 5) => header.kind = rest.integer()?,
                (2, 5) => header.unpacked = rest.integer()?,
                (3, 5) => header.packed = rest.integer()?,
                // The header of a data page.
                (5, 12) => rest.fields(|rest, field, kind| {
                    match (field, kind) {
                        (1, 5) => header.values = rest.integer()?,
                        (2, 5) => header.encoding = rest.integer()?,
                        _ => rest.skip(kind, DEPTH)?,
                    }
                    Some(())
                })?,
                _ => rest.skip(kind, DEPTH)?,
            }
            Some(())
        })?;
        Some(header)
    }

    /// Hands out each field of a structure by number and type.
    fn fields(&mut self, mut each: impl FnMut(&mut Self, i64, u8) -> Option<()>) -> Option<()> {
        let mut field = 0_i64;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Some(());
            }
            field = match head >> 4 {
                0 => self.integer()?,
                step => field.checked_add(i64::from(step))?,
            };
            each(self, field, head & 0x0f)?;
        }
    }

    fn skip(&mut self, kind: u8, depth: u32) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match kind {
            // The type is the value.
            1 | 2 => {}
            3 => drop(self.byte()?),
            4..=6 => drop(self.varint()?),
            7 => drop(self.take(8)?),
            8 => {
                let length = usize::try_from(self.varint()?).ok()?;
                self.take(length)?;
            }
            9 | 10 => {
                let head = self.byte()?;
                let count = if head >> 4 == 15 { self.varint()? } else { u64::from(head >> 4) };
                // Each element takes a byte at least, so that a count of any size ends with the bytes.
                for _ in 0..count {
                    match head & 0x0f {
                        1 | 2 => drop(self.byte()?),
                        kind => self.skip(kind, depth)?,
                    }
                }
            }
            12 => self.fields(|rest, _, kind| rest.skip(kind, depth))?,
            _ => return None,
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number as a field one after the last.
    fn integer(value: i64) -> Vec<u8> {
        let mut bytes = vec![0x15];
        let mut rest = ((value << 1) ^ (value >> 63)) as u64;
        while rest > 0x7f {
            bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        bytes.push(rest as u8);
        bytes
    }

    /// A page with a checksum, a header of a data page, statistics in it, and `packed` bytes.
    fn page(kind: i64, unpacked: i64, packed: i64, values: i64, encoding: i64) -> Vec<u8> {
        let mut page = [integer(kind), integer(unpacked), integer(packed), integer(-7)].concat();
        page.push(0x1c);
        page.extend([integer(values), integer(encoding), integer(3), integer(3)].concat());
        // A structure of a text, a list of two structures that are empty, and a truth.
        page.extend([0x1c, 0x18, 2, b'a', b'b', 0x19, 0x2c, 0, 0, 0x11, 0, 0, 0]);
        page.extend(vec![0xff; usize::try_from(packed).unwrap_or_default()]);
        page
    }

    #[test]
    fn a_page_is_held_against_every_bound() {
        let too_large = |what: &str, limit: u64| Err(Fault::TooLarge(what.to_owned(), limit));
        let (bytes, values) = (limits::SAMPLE_PAGE_BYTES, limits::SAMPLES_PER_FILE as i64);
        let odd = || Err(damaged("a page is of a kind that is not written to such files"));
        let none = || Err(damaged("a page's size is none"));
        let unreadable = || Err(damaged("a page's header cannot be read"));
        let rows = [
            (page(0, 100, 9, 10, 0), Ok(())),
            ([page(0, bytes, 9, values, 0), page(0, 1, 0, 1, 5)].concat(), Ok(())),
            (page(0, bytes + 1, 9, 10, 0), too_large("a page of 33554433 bytes", bytes as u64)),
            (page(0, 1, 9, values + 1, 0), too_large("a page of 1048577 values", values as u64)),
            // A dictionary, a page that wants one, and a data page of the second kind.
            (page(2, 100, 9, 10, 0), odd()),
            (page(0, 100, 9, 10, 8), odd()),
            (page(3, 100, 9, 10, 0), odd()),
            (page(0, -1, 9, 10, 0), none()),
            (page(0, 1, -1, 10, 0), none()),
            (page(0, 1, 9, -1, 0), none()),
            (page(0, 1, 9, 1, 0)[..30].to_vec(), none()),
            (page(0, 1, 9, 1, 0)[..20].to_vec(), unreadable()),
            // Structures in structures, a list of as many as there can be numbers, a number without an end.
            (vec![0x1c; 100], unreadable()),
            ([vec![0x19, 0xf1], vec![0xff; 9], vec![1]].concat(), unreadable()),
            ([vec![0x15], vec![0xff; 20]].concat(), unreadable()),
        ];
        for (number, (bytes, expected)) in rows.into_iter().enumerate() {
            assert_eq!(walk(&bytes), expected, "row {number}");
        }
    }
}

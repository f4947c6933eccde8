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

/// What a header says that matters here.
#[derive(Debug, Default, PartialEq, Eq)]
struct Header {
    unpacked: i64,
    packed: i64,
    /// The most that any of the nested headers names.
    values: i64,
}

/// Every page of the column is one that is safe to unpack.
pub(super) fn check(file: &[u8], column: &ColumnChunkMetaData) -> Result<(), Fault> {
    let start = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
    let range = || {
        let start = usize::try_from(start).ok()?;
        file.get(start..start.checked_add(usize::try_from(column.compressed_size()).ok()?)?)
    };
    let mut pages = Rest(range().ok_or_else(|| damaged("a column lies outside of it"))?);
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
        let mut header = Header::default();
        self.fields(|rest, field, kind| {
            match (field, kind) {
                (2, 5) => header.unpacked = rest.integer()?,
                (3, 5) => header.packed = rest.integer()?,
                // Headers of data pages, of a dictionary, and of data pages of the second kind.
                (5 | 7 | 8, 12) => rest.fields(|rest, field, kind| {
                    match (field, kind) {
                        (1, 5) => {
                            let values = rest.integer()?;
                            // A negative number is not hidden by one that is none.
                            header.values = if header.values < 0 { header.values } else { values };
                        }
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

//! Sample files: Parquet that other programs read as it is, and the JSON of the public Millisampler data set.
//!
//! A file holds the samples of one network device, one row a sample, in order of time. Samples in which nothing passed
//! may be left out: what tells an idle time from one that was not measured is `covered` in the metadata. Columns are
//! those of [`columns::COLUMNS`], always all of them, so that files of different sources can be read together; a field
//! that the source does not measure is null in each row, never 0. Times are `TIMESTAMP(NANOS, UTC)`.
//!
//! The metadata hold `fabricscope.schema`, the version, and `fabricscope`, a JSON object: `host`, `boot_id`, `rack`, `netdev`,
//! `interval_ns`, `line_rate_bps`, `clock_error_ns`, `fields` (what is measured beside bytes, in at least one direction),
//! `without` (what is not measured in one direction, such as `rx_bytes`), `covered` (start and end of each span, in
//! nanoseconds since 1970) and `lost` (buckets overwritten before they were read). What is unknown is absent.
//!
//! A file of counters (`counters-…`) has the same metadata under `fabricscope.counters`, `counters` in place of `fields`,
//! and a column for each counter: by how much it grew in the sample, null where that is not known. Its columns in front
//! are `host`, `device`, `port`, `netdev`, `source`, `time` and `length_ns`, the measured time of the sample.
//!
//! A file appears under its name when all of it is on the disk: it is written beside and renamed.

mod columns;
mod counters;
mod csv;
mod decode;
mod encode;
mod error;
mod json;
mod meta;
mod pages;
#[cfg(test)]
mod tests;

use std::fs::{self, File, Permissions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use analysis::counter_samples::CounterSamples;
use analysis::series::Series;
use bytes::Bytes;

use error::Fault;
pub(crate) use error::FileError;

use super::kept::Kept;
use crate::config::limits;

/// How the name of a file begins and ends that is not complete yet.
const PART: (&str, &str) = (".fabricscope-", ".part");

/// Whether a file of this name is one that is not complete, or never will be.
pub(crate) fn is_part(name: &str) -> bool {
    name.starts_with(PART.0) && name.ends_with(PART.1)
}

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    /// Bytes of the file.
    pub(crate) bytes: u64,
    /// Samples in it.
    pub(crate) samples: u64,
}

/// What samples can be written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// As [`write`] does.
    Parquet,
    /// The layout of the public Millisampler data set.
    Json,
    /// The same, packed by gzip.
    JsonPacked,
    /// A line a sample.
    Csv,
}

/// How names end, and what that means.
const ENDINGS: &[(&str, Format)] = &[
    (".parquet", Format::Parquet),
    (".json", Format::Json),
    (".json.gz", Format::JsonPacked),
    (".txt.gz", Format::JsonPacked),
    (".csv", Format::Csv),
];

impl Format {
    /// The format that the end of a name tells.
    pub(crate) fn of(name: &str) -> Option<Self> {
        ENDINGS.iter().find(|(ending, _)| name.ends_with(ending)).map(|(_, format)| *format)
    }

    /// How a name may end, for people.
    pub(crate) fn endings() -> String {
        let endings: Vec<&str> = ENDINGS.iter().map(|(ending, _)| *ending).collect();
        endings.join(", ")
    }
}

/// The columns of a sample file with what they hold, one a line.
pub(crate) fn columns_help() -> String {
    let width = columns::COLUMNS.iter().map(|column| column.name.len()).max().unwrap_or_default();
    let line = |column: &columns::Column| format!("  {:width$}  {}\n", column.name, column.help);
    columns::COLUMNS.iter().map(line).collect()
}

/// Writes samples in any format; there is a whole file or none under this name afterwards.
///
/// # Errors
/// As [`write`], and if the format cannot hold them.
pub(crate) fn write_as(path: &Path, series: &Series, format: Format) -> Result<Written, FileError> {
    let bytes = match format {
        Format::Parquet => return write(path, series),
        Format::Json => json::to_json(series),
        Format::JsonPacked => json::to_json(series).and_then(|text| json::pack(&text)),
        Format::Csv => Ok(csv::to_csv(series).into_bytes()),
    };
    let bytes = bytes.map_err(|fault| fault.of(path))?;
    put(path, &bytes)?;
    Ok(Written { bytes: bytes.len() as u64, samples: series.samples.len() as u64 })
}

/// Writes a sample file; there is a whole one or none under this name afterwards.
///
/// # Errors
/// No room, a file system that refuses, or more samples than are read.
pub(crate) fn write(path: &Path, series: &Series) -> Result<Written, FileError> {
    let bytes = encode(series).map_err(|fault| fault.of(path))?;
    put(path, &bytes)?;
    Ok(Written { bytes: bytes.len() as u64, samples: series.samples.len() as u64 })
}

/// Writes samples of counters; there is a whole file or none under this name afterwards.
///
/// # Errors
/// As [`write`].
pub(crate) fn write_counters(path: &Path, samples: &CounterSamples) -> Result<Written, FileError> {
    let bytes = checked(counters::encode(samples), samples.when.len()).map_err(|fault| fault.of(path))?;
    put(path, &bytes)?;
    Ok(Written { bytes: bytes.len() as u64, samples: samples.when.len() as u64 })
}

/// The bytes of a sample file; an error is that of samples that none can hold.
pub(crate) fn pack(kept: &Kept) -> Result<Vec<u8>, FileError> {
    let bytes = match kept {
        Kept::Traffic(series) => encode(series),
        Kept::Counters(samples) => checked(counters::encode(samples), samples.when.len()),
    };
    bytes.map_err(|fault| fault.of(Path::new("a piece in memory")))
}

/// The samples that [`pack`] packed.
pub(crate) fn unpack(bytes: Bytes) -> Result<Kept, FileError> {
    parquet(bytes).map_err(|fault| fault.of(Path::new("a piece in memory")))
}

/// The bytes of a sample file.
fn encode(series: &Series) -> Result<Vec<u8>, Fault> {
    checked(encode::encode(series), series.samples.len())
}

/// What was encoded, if it is no more than is read.
fn checked(encoded: Result<Vec<u8>, Fault>, samples: usize) -> Result<Vec<u8>, Fault> {
    let too_large = |count: usize, what, limit: usize| {
        if count > limit { Err(Fault::TooLarge(format!("{count} {what}"), limit as u64)) } else { Ok(()) }
    };
    too_large(samples, "samples", limits::SAMPLES_PER_FILE)?;
    let bytes = encoded?;
    too_large(bytes.len(), "bytes", limits::SAMPLE_FILE_BYTES)?;
    Ok(bytes)
}

/// Puts a whole file under this name: beside it first, then renamed, on the disk before and after.
///
/// What stands there and is no regular file, such as a pipe or a device, is written to as it is.
///
/// # Errors
/// No room, or a file system that refuses.
pub(crate) fn put(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        let file = File::options().write(true).open(path);
        return file.and_then(|mut file| file.write_all(bytes)).map_err(|error| FileError::io("write", path, error));
    }
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut part = tempfile::Builder::new()
        .prefix(PART.0)
        .suffix(PART.1)
        // Less what the process masks, as of any file.
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder)
        .map_err(|error| FileError::io("make a file beside", path, error))?;
    part.write_all(bytes)
        .and_then(|()| part.as_file().sync_all())
        .map_err(|error| FileError::io("write", path, error))?;
    part.persist(path).map_err(|error| FileError::io("rename a file to", path, error.error))?;
    // The name is on the disk when its folder is.
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(|error| FileError::io("write the folder of", path, error))
}

/// Reads a sample file: Parquet as [`write`] writes it, or the JSON of Millisampler, packed by gzip or not. What it is
/// is told by what it holds, not by its name.
///
/// # Errors
/// Each with its own message: no sample file, cut short, of another version, damaged, too large, not to be read; samples
/// of counters.
pub(crate) fn read(path: &Path) -> Result<Series, FileError> {
    match read_any(path)? {
        Kept::Traffic(series) => Ok(series),
        Kept::Counters(_) => {
            let why = "it holds samples of counters, which `fabricscope bursts show` reads".to_owned();
            Err(Fault::NotSamples(why).of(path))
        }
    }
}

/// The same of a file of traffic or of counters.
///
/// # Errors
/// As [`read`].
pub(crate) fn read_any(path: &Path) -> Result<Kept, FileError> {
    let mut bytes = Vec::new();
    let limit = limits::SAMPLE_FILE_BYTES;
    File::open(path)
        .and_then(|file| file.take(limit as u64 + 1).read_to_end(&mut bytes))
        .map_err(|error| FileError::io("read", path, error))?;
    if bytes.len() > limit {
        return Err(Fault::TooLarge("more bytes than a sample file has".to_owned(), limit as u64).of(path));
    }
    decode(bytes).map_err(|fault| fault.of(path))
}

/// The samples that these bytes are.
fn decode(bytes: Vec<u8>) -> Result<Kept, Fault> {
    if bytes.starts_with(decode::MAGIC) {
        return parquet(Bytes::from(bytes));
    }
    if json::is_packed(&bytes) || bytes.trim_ascii_start().starts_with(b"{") {
        return json::from_bytes(&bytes).map(Kept::Traffic);
    }
    let what = if bytes.is_empty() { "it is empty" } else { "it is neither Parquet nor the JSON of Millisampler" };
    Err(Fault::NotSamples(what.to_owned()))
}

fn parquet(file: Bytes) -> Result<Kept, Fault> {
    let reader = decode::reader(&file)?;
    match counters::frame(&reader)? {
        Some(frame) => counters::decode(&file, &reader, frame).map(Kept::Counters),
        None => decode::decode(&file, &reader).map(Kept::Traffic),
    }
}

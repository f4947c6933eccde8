//! The bytes of a Parquet file to samples.

use analysis::series::{Sample, Series, Sketch};
use bytes::Bytes;
use parquet::basic::Type as Physical;
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{DataType, FixedLenByteArray, FixedLenByteArrayType, Int64Type};
use parquet::file::reader::{FileReader as _, RowGroupReader};
use parquet::file::serialized_reader::SerializedFileReader;

use super::columns::{COLUMNS, Cells, Column};
use super::error::Fault;
use super::{meta, pages};
use crate::config::limits;

/// What a Parquet file begins and ends with.
pub(super) const MAGIC: &[u8] = b"PAR1";

/// A file as Parquet.
pub(super) type Reader = SerializedFileReader<Bytes>;

/// Opens what begins as Parquet.
pub(super) fn reader(file: &Bytes) -> Result<Reader, Fault> {
    if !file.ends_with(MAGIC) || file.len() < 3 * MAGIC.len() {
        return Err(Fault::Truncated);
    }
    Ok(SerializedFileReader::new(file.clone())?)
}

/// How many rows a file says to hold, if it is no more than is read.
pub(super) fn rows(reader: &Reader) -> Result<u64, Fault> {
    let groups = reader.metadata().row_groups().iter().map(|group| group.num_rows());
    let rows = groups.map(u64::try_from).try_fold(0_u64, |sum, rows| sum.checked_add(rows.ok()?));
    let rows = rows.ok_or_else(|| Fault::Damaged("it holds a negative number of rows".to_owned()))?;
    if rows > limits::SAMPLES_PER_FILE as u64 {
        return Err(Fault::TooLarge(format!("{rows} samples"), limits::SAMPLES_PER_FILE as u64));
    }
    Ok(rows)
}

/// The series that a file holds.
pub(super) fn decode(file: &Bytes, reader: &Reader) -> Result<Series, Fault> {
    let metadata = reader.metadata();
    let mut series = meta::from_keys(metadata.file_metadata().key_value_metadata())?;
    rows(reader)?;
    for index in 0..metadata.num_row_groups() {
        // The last row group of a damaged file may not be one of this schema.
        read_group(file, &*reader.get_row_group(index)?, &mut series)?;
    }
    let sorted = series.samples.is_sorted_by(|earlier, later| earlier.start < later.start);
    if sorted { Ok(series) } else { Err(Fault::Damaged("its samples are out of order".to_owned())) }
}

/// Adds the samples of a row group to a series.
fn read_group(file: &[u8], group: &dyn RowGroupReader, series: &mut Series) -> Result<(), Fault> {
    let rows = usize::try_from(group.metadata().num_rows()).unwrap_or_default();
    let mut samples: Vec<Sample> = Vec::new();
    // The first column that is read says how many there are in truth.
    for column in COLUMNS.iter().filter(|column| (column.measured)(&series.fields)) {
        match column.cells {
            Cells::Time(_, set) => column.read::<Int64Type>(file, group, rows, &mut samples, |sample, value| {
                set(sample, *value);
                Some(())
            })?,
            Cells::Number(_, set) => column.read::<Int64Type>(file, group, rows, &mut samples, |sample, value| {
                set(sample, u64::try_from(*value).ok()?);
                Some(())
            })?,
            Cells::Sketch(_, set) => {
                column.read::<FixedLenByteArrayType>(
                    file,
                    group,
                    rows,
                    &mut samples,
                    |sample, bits: &FixedLenByteArray| {
                        set(sample, Sketch(u128::from_be_bytes(bits.data().try_into().ok()?)));
                        Some(())
                    },
                )?;
            }
            Cells::Text(_) | Cells::Flows(_) => {}
        }
    }
    series.samples.append(&mut samples);
    Ok(())
}

impl Column {
    /// Puts the cells of this column into the samples; there are as many of those afterwards as the group has rows.
    fn read<T: DataType>(
        &self,
        file: &[u8],
        group: &dyn RowGroupReader,
        rows: usize,
        samples: &mut Vec<Sample>,
        mut set: impl FnMut(&mut Sample, &T::T) -> Option<()>,
    ) -> Result<(), Fault> {
        let (values, levels) = cells::<T>(file, group, self.name, rows)?;
        if levels.contains(&0) {
            return Err(damaged(self.name, "lacks values that were measured"));
        }
        if samples.is_empty() {
            samples.resize(rows, Sample::default());
        }
        for (sample, value) in samples.iter_mut().zip(&values) {
            set(sample, value).ok_or_else(|| damaged(self.name, "holds what is no such value"))?;
        }
        Ok(())
    }
}

fn damaged(name: &str, what: &str) -> Fault {
    Fault::Damaged(format!("its column {name} {what}"))
}

/// The values of a column of a group of so many rows, and its levels: 0 stands for a row without a value. A column that
/// must have values has no levels.
pub(super) fn cells<T: DataType>(
    file: &[u8],
    group: &dyn RowGroupReader,
    name: &str,
    rows: usize,
) -> Result<(Vec<T::T>, Vec<i16>), Fault> {
    let columns = group.metadata().columns();
    let index = columns.iter().position(|column| column.column_path().string() == name);
    let (index, column) =
        index.and_then(|index| Some((index, columns.get(index)?))).ok_or_else(|| damaged(name, "is missing"))?;
    let descriptor = column.column_descr();
    let shape = (descriptor.physical_type(), descriptor.max_rep_level(), descriptor.type_length());
    let length = if T::get_physical_type() == Physical::FIXED_LEN_BYTE_ARRAY { 16 } else { shape.2 };
    if shape != (T::get_physical_type(), 0, length) {
        return Err(damaged(name, "is of another type"));
    }
    pages::check(file, column)?;
    let optional = descriptor.max_def_level() > 0;
    let mut reader = get_typed_column_reader::<T>(group.get_column_reader(index)?);
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    let mut records = 0;
    while records < rows {
        let levels = optional.then_some(&mut levels);
        let (read, _, _) = reader.read_records(rows - records, levels, None, &mut values)?;
        if read == 0 {
            return Err(damaged(name, "lacks values that were measured"));
        }
        records += read;
    }
    if optional && levels.len() != rows || values.len() != rows - levels.iter().filter(|level| **level == 0).count() {
        return Err(damaged(name, "holds another number of values than it says"));
    }
    Ok((values, levels))
}

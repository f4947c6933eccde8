//! Samples to the bytes of a Parquet file.

use std::sync::Arc;

use analysis::series::{Sample, Series, Sketch};
use analysis::sketch::{FLOWS_MAX, Flows};
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, TimeUnit, Type as Physical, ZstdLevel};
use parquet::data_type::{
    ByteArray, ByteArrayType, DataType, FixedLenByteArray, FixedLenByteArrayType, Int32Type, Int64Type,
};
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, Type};

use super::columns::{COLUMNS, Cells, Column};
use super::error::Fault;
use super::meta;

/// Samples that share one chunk of each column.
const ROW_GROUP: usize = 1 << 16;

type Group<'a> = SerializedRowGroupWriter<'a, Vec<u8>>;

/// The file that holds this series.
pub(super) fn encode(series: &Series) -> std::result::Result<Vec<u8>, Fault> {
    let keys = meta::to_keys(series)?;
    let mut properties = WriterProperties::builder()
        .set_created_by(concat!("fabricscope ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_key_value_metadata(Some(keys))
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        // Numbers from traffic seldom repeat.
        .set_dictionary_enabled(false);
    for column in COLUMNS {
        let path = ColumnPath::from(column.name);
        properties = match column.cells {
            Cells::Text(_) => properties.set_column_dictionary_enabled(path, true),
            Cells::Time(..) => properties.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED),
            // Byte stream split takes 17 % less, but few engines read it of whole numbers.
            Cells::Number(..) | Cells::Sketch(..) | Cells::Flows(_) => {
                properties.set_column_encoding(path, Encoding::PLAIN)
            }
        };
    }
    let columns = COLUMNS.iter().map(|column| column.declared().map(Arc::new)).collect::<Result<_>>()?;
    let schema = Arc::new(Type::group_type_builder("samples").with_fields(columns).build()?);
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties.build()))?;
    for samples in series.samples.chunks(ROW_GROUP) {
        let mut group = writer.next_row_group()?;
        for column in COLUMNS {
            column.write(&mut group, series, samples)?;
        }
        group.close()?;
    }
    Ok(writer.into_inner()?)
}

impl Column {
    fn declared(&self) -> Result<Type> {
        let (physical, logical) = match self.cells {
            Cells::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Cells::Time(..) => (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::NANOS))),
            Cells::Number(..) => (Physical::INT64, None),
            Cells::Sketch(..) => (Physical::FIXED_LEN_BYTE_ARRAY, None),
            Cells::Flows(_) => (Physical::INT32, None),
        };
        let length = if physical == Physical::FIXED_LEN_BYTE_ARRAY { 16 } else { -1 };
        let repetition = if self.optional() { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        Type::primitive_type_builder(self.name, physical)
            .with_repetition(repetition)
            .with_logical_type(logical)
            .with_length(length)
            .build()
    }

    /// Writes the column's cells of these samples: as the next column of the group.
    fn write(&self, group: &mut Group<'_>, series: &Series, samples: &[Sample]) -> Result<()> {
        let measured = (self.measured)(&series.fields);
        let levels = self.optional().then(|| vec![i16::from(measured); samples.len()]);
        let (cells, levels) = (if measured { samples } else { &[] }, levels.as_deref());
        match self.cells {
            Cells::Text(text) => put::<ByteArrayType>(group, cells, levels, |_| ByteArray::from(text(series))),
            Cells::Time(get, _) => put::<Int64Type>(group, cells, levels, get),
            Cells::Number(get, _) => {
                put::<Int64Type>(group, cells, levels, |sample| i64::try_from(get(sample)).unwrap_or(i64::MAX))
            }
            Cells::Sketch(get, _) => put::<FixedLenByteArrayType>(group, cells, levels, |sample| {
                FixedLenByteArray::from(get(sample).0.to_be_bytes().to_vec())
            }),
            Cells::Flows(get) => put::<Int32Type>(group, cells, levels, |sample| estimate(get(sample))),
        }
    }
}

fn put<T: DataType>(
    group: &mut Group<'_>,
    cells: &[Sample],
    levels: Option<&[i16]>,
    value: impl FnMut(&Sample) -> T::T,
) -> Result<()> {
    let missing = || ParquetError::General("a column too many".to_owned());
    let mut column = group.next_column()?.ok_or_else(missing)?;
    let values: Vec<T::T> = cells.iter().map(value).collect();
    column.typed::<T>().write_batch(&values, levels, None)?;
    column.close()
}

/// The number of flows that a cell holds: [`FLOWS_MAX`] stands for that or more.
pub(super) fn estimate(sketch: Sketch) -> i32 {
    let count = match sketch.flows() {
        Flows::About(count) => count,
        Flows::Saturated => FLOWS_MAX,
    };
    // Below a thousand.
    count as i32
}

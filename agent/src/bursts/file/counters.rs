//! Samples of counters to the bytes of a Parquet file and back: a row a sample, a column a counter.

use std::sync::Arc;

use analysis::counter_samples::{Column, CounterSamples};
use analysis::counter_series::When;
use analysis::series::{BitsPerSecond, DurationNs, UtcNs};
use bytes::Bytes;
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, TimeUnit, Type as Physical, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::FileReader as _;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, Type};
use serde::{Deserialize, Serialize};

use super::decode::{self, Reader};
use super::error::Fault;
use super::meta::{self, SCHEMA, SCHEMA_KEY};
use crate::config::limits;

/// The key of everything that is said once, in JSON.
const META_KEY: &str = "fabricscope.counters";

/// What stands in such a column.
type Text = fn(&CounterSamples) -> &str;

/// The columns in front of the counters': texts that are the same in each row, the port, and the two of time.
const TEXTS: [(&str, Text); 4] = [
    ("host", |samples| &samples.host),
    ("device", |samples| &samples.device),
    ("netdev", |samples| &samples.netdev),
    ("source", |samples| &samples.source),
];
const PORT: &str = "port";
const TIME: &str = "time";
const LENGTH: &str = "length_ns";

type Group<'a> = SerializedRowGroupWriter<'a, Vec<u8>>;

/// All of the samples but themselves.
#[derive(Debug, Deserialize, Serialize, PartialEq, Eq)]
struct Meta {
    host: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    boot_id: String,
    device: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    port: Option<u32>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    netdev: String,
    source: String,
    interval_ns: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    line_rate_bps: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    clock_error_ns: Option<u64>,
    counters: Vec<Named>,
    covered: Vec<[i64; 2]>,
}

/// A counter and the column it stands in.
#[derive(Debug, Deserialize, Serialize, PartialEq, Eq)]
struct Named {
    column: String,
    counter: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    priority: Option<u8>,
}

/// The name of a counter's column. Seconds stand there in whole microseconds.
fn column_name(column: &Column) -> String {
    let base = match column.counter.strip_suffix("_seconds") {
        Some(base) => format!("{base}_microseconds"),
        None => column.counter.clone(),
    };
    column.priority.map_or(base.clone(), |priority| format!("{base}_prio{priority}"))
}

impl Meta {
    fn of(samples: &CounterSamples) -> Self {
        let named = |column: &Column| Named {
            column: column_name(column),
            counter: column.counter.clone(),
            priority: column.priority,
        };
        Self {
            host: samples.host.clone(),
            boot_id: samples.boot_id.clone(),
            device: samples.device.clone(),
            port: samples.port,
            netdev: samples.netdev.clone(),
            source: samples.source.clone(),
            interval_ns: samples.interval.0,
            line_rate_bps: samples.line_rate.map(|rate| rate.0),
            clock_error_ns: samples.clock_error.map(|error| error.0),
            counters: samples.columns.iter().map(named).collect(),
            covered: samples.covered.iter().map(|span| [span.start.0, span.end.0]).collect(),
        }
    }
}

/// The file that holds these samples.
pub(super) fn encode(samples: &CounterSamples) -> Result<Vec<u8>, Fault> {
    let json = serde_json::to_string(&Meta::of(samples)).map_err(|error| Fault::Unfit(error.to_string()))?;
    let keys = vec![KeyValue::new(SCHEMA_KEY.to_owned(), SCHEMA.to_string()), KeyValue::new(META_KEY.to_owned(), json)];
    let mut properties = WriterProperties::builder()
        .set_created_by(concat!("fabricscope ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_key_value_metadata(Some(keys))
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_dictionary_enabled(false);
    for (name, _) in TEXTS {
        properties = properties.set_column_dictionary_enabled(ColumnPath::from(name), true);
    }
    let numbers = samples.columns.iter().map(column_name);
    for name in numbers.clone().chain([TIME, LENGTH].map(str::to_owned)) {
        properties = properties.set_column_encoding(ColumnPath::from(name), Encoding::DELTA_BINARY_PACKED);
    }
    let text = |name: &str| declared(name, Physical::BYTE_ARRAY, Some(LogicalType::String), Repetition::REQUIRED);
    let number = |name: &str, repetition| declared(name, Physical::INT64, None, repetition);
    let stamp = LogicalType::timestamp(true, TimeUnit::NANOS);
    let mut columns = TEXTS.iter().map(|(name, _)| text(name)).collect::<Result<Vec<_>, Fault>>()?;
    columns.push(number(PORT, Repetition::OPTIONAL)?);
    columns.push(declared(TIME, Physical::INT64, Some(stamp), Repetition::REQUIRED)?);
    columns.push(number(LENGTH, Repetition::REQUIRED)?);
    for name in numbers {
        columns.push(number(&name, Repetition::OPTIONAL)?);
    }
    let schema = Arc::new(Type::group_type_builder("counters").with_fields(columns).build()?);
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties.build()))?;
    if !samples.when.is_empty() {
        let mut group = writer.next_row_group()?;
        write(samples, &mut group)?;
        group.close()?;
    }
    Ok(writer.into_inner()?)
}

fn declared(name: &str, physical: Physical, logical: Option<LogicalType>, of: Repetition) -> Result<Arc<Type>, Fault> {
    let column = Type::primitive_type_builder(name, physical).with_repetition(of).with_logical_type(logical);
    Ok(Arc::new(column.build()?))
}

fn write(samples: &CounterSamples, group: &mut Group<'_>) -> Result<(), Fault> {
    let rows = samples.when.len();
    for (_, text) in TEXTS {
        put::<ByteArrayType>(group, &vec![ByteArray::from(text(samples)); rows], None)?;
    }
    let port = samples.port.map_or(Vec::new(), |port| vec![i64::from(port); rows]);
    put::<Int64Type>(group, &port, Some(&vec![i16::from(samples.port.is_some()); rows]))?;
    put::<Int64Type>(group, &samples.when.iter().map(|when| when.start.0).collect::<Vec<_>>(), None)?;
    put::<Int64Type>(group, &samples.when.iter().map(|when| signed(when.length.0)).collect::<Vec<_>>(), None)?;
    for column in &samples.columns {
        let growth: Vec<Option<u64>> = (0..rows).map(|at| column.growth(at)).collect();
        let levels: Vec<i16> = growth.iter().map(|growth| i16::from(growth.is_some())).collect();
        let values: Vec<i64> = growth.into_iter().flatten().map(signed).collect();
        put::<Int64Type>(group, &values, Some(&levels))?;
    }
    Ok(())
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn put<T: DataType>(group: &mut Group<'_>, values: &[T::T], levels: Option<&[i16]>) -> Result<(), Fault> {
    let missing = || ParquetError::General("a column too many".to_owned());
    let mut column = group.next_column()?.ok_or_else(missing)?;
    column.typed::<T>().write_batch(values, levels, None)?;
    Ok(column.close()?)
}

/// Whose samples a file holds, without them; `None` if it holds none of counters.
pub(super) fn frame(reader: &Reader) -> Result<Option<CounterSamples>, Fault> {
    let keys = reader.metadata().file_metadata().key_value_metadata();
    let Some(json) = meta::value(keys, META_KEY)? else { return Ok(None) };
    let meta: Meta = serde_json::from_str(json).map_err(|error| Fault::Damaged(format!("its metadata: {error}")))?;
    if meta.counters.len() > limits::COUNTER_COLUMNS {
        return Err(Fault::TooLarge(format!("{} counters", meta.counters.len()), limits::COUNTER_COLUMNS as u64));
    }
    let columns: Vec<Column> =
        meta.counters.iter().map(|named| Column::new(named.counter.clone(), named.priority)).collect();
    if !columns.iter().map(column_name).eq(meta.counters.iter().map(|named| named.column.clone())) {
        return Err(Fault::Damaged("its counters stand in columns of other names".to_owned()));
    }
    Ok(Some(CounterSamples {
        host: meta.host,
        boot_id: meta.boot_id,
        device: meta.device,
        port: meta.port,
        netdev: meta.netdev,
        source: meta.source,
        interval: DurationNs(meta.interval_ns),
        line_rate: meta.line_rate_bps.map(BitsPerSecond),
        clock_error: meta.clock_error_ns.map(DurationNs),
        columns,
        when: Vec::new(),
        covered: meta::spans(&meta.covered)?,
    }))
}

/// Fills a frame with the samples of its file.
pub(super) fn decode(file: &Bytes, reader: &Reader, mut samples: CounterSamples) -> Result<CounterSamples, Fault> {
    let cells = decode::rows(reader)?.saturating_mul(samples.columns.len() as u64);
    if cells > limits::COUNTER_CELLS {
        return Err(Fault::TooLarge(format!("{cells} values of counters"), limits::COUNTER_CELLS));
    }
    let names: Vec<String> = samples.columns.iter().map(column_name).collect();
    for index in 0..reader.metadata().num_row_groups() {
        let group = reader.get_row_group(index)?;
        let rows = usize::try_from(group.metadata().num_rows()).unwrap_or_default();
        let (starts, _) = decode::cells::<Int64Type>(file, &*group, TIME, rows)?;
        let (lengths, _) = decode::cells::<Int64Type>(file, &*group, LENGTH, rows)?;
        let columns = names.iter().map(|name| growth(file, &*group, name, rows)).collect::<Result<Vec<_>, Fault>>()?;
        for (at, (start, length)) in starts.iter().zip(&lengths).enumerate() {
            let length = u64::try_from(*length).map_err(|_| Fault::Damaged("a sample has no length".to_owned()))?;
            let when = When { start: UtcNs(*start), length: DurationNs(length) };
            samples.push(when, columns.iter().map(|column| column.get(at).copied().flatten()));
        }
    }
    let sorted = samples.when.is_sorted_by(|earlier, later| earlier.start < later.start);
    if sorted { Ok(samples) } else { Err(Fault::Damaged("its samples are out of order".to_owned())) }
}

/// The cells of a counter, `None` for those that are null.
fn growth(
    file: &[u8],
    group: &dyn parquet::file::reader::RowGroupReader,
    name: &str,
    rows: usize,
) -> Result<Vec<Option<u64>>, Fault> {
    let (values, levels) = decode::cells::<Int64Type>(file, group, name, rows)?;
    let mut values = values.into_iter();
    let levels = if levels.is_empty() { vec![1; rows] } else { levels };
    let cell = |level: i16| match level {
        0 => Ok(None),
        _ => values.next().and_then(|value| u64::try_from(value).ok()).map(Some).ok_or(()),
    };
    let cells: Result<Vec<_>, ()> = levels.into_iter().map(cell).collect();
    cells.map_err(|()| Fault::Damaged(format!("its column {name} holds what is no growth")))
}

#[cfg(test)]
mod tests {
    use analysis::series::Span;

    use super::super::{Kept, checked, decode, pack, unpack};
    use super::*;

    const MS: u64 = 1_000_000;

    fn time(ms: u64) -> UtcNs {
        UtcNs(1_767_225_600_000_000_000).after(DurationNs(ms * MS))
    }

    fn samples(rows: u64) -> CounterSamples {
        let column = |name: &str, priority| Column::new(name.to_owned(), priority);
        let mut samples = CounterSamples {
            host: "gpu-17".to_owned(),
            boot_id: "b00t".to_owned(),
            device: "mlx5_0".to_owned(),
            port: Some(1),
            netdev: "eth0".to_owned(),
            source: "rdma_netlink".to_owned(),
            interval: DurationNs(MS),
            line_rate: Some(BitsPerSecond(100_000_000_000)),
            clock_error: Some(DurationNs(250_000)),
            columns: vec![
                column("pfc_sent_pause_seconds", Some(3)),
                column("rdma_cnp_sent_packets", None),
                column("rdma_timeout_events", None),
            ],
            ..CounterSamples::default()
        };
        for row in 0..rows {
            let when = When { start: time(row), length: DurationNs(MS - row % 7) };
            samples.push(when, [Some(990), (row % 5 > 0).then_some(row), Some(0)]);
        }
        samples.cover(Span { start: time(0), end: time(rows + 3) });
        samples
    }

    #[test]
    fn what_is_written_comes_back() {
        for rows in [0, 1, 3000] {
            let samples = samples(rows);
            let bytes = pack(&samples.clone().into()).unwrap();
            println!("{rows} samples: {} bytes", bytes.len());
            assert!(unpack(bytes.into()).unwrap() == Kept::Counters(samples), "{rows}");
        }
        let mut bare = samples(2);
        (bare.port, bare.line_rate, bare.clock_error, bare.netdev) = (None, None, None, String::new());
        assert_eq!(unpack(pack(&bare.clone().into()).unwrap().into()).unwrap(), Kept::Counters(bare));
    }

    #[test]
    fn columns_are_named_by_meaning_unit_and_priority() {
        let names: Vec<String> = samples(0).columns.iter().map(column_name).collect();
        assert_eq!(names, ["pfc_sent_pause_microseconds_prio3", "rdma_cnp_sent_packets", "rdma_timeout_events"]);
    }

    #[test]
    fn damage_is_an_error_or_other_samples() {
        let good = encode(&samples(300)).unwrap();
        for place in (0..good.len()).step_by(7) {
            let mut bytes = good.clone();
            bytes[place] ^= 0x41;
            // No panic, whatever it is taken for.
            let _ = decode(bytes);
        }
        for length in 0..good.len() {
            assert!(decode(good[..length].to_vec()).is_err(), "{length}");
        }
    }

    #[test]
    fn more_than_is_read_is_not_written() {
        assert!(checked(Ok(Vec::new()), limits::SAMPLES_PER_FILE + 1).is_err());
        let mut many = samples(1);
        many.columns = (0..=limits::COUNTER_COLUMNS).map(|at| Column::new(format!("c{at}"), None)).collect();
        assert!(unpack(encode(&many).unwrap().into()).is_err());
    }
}

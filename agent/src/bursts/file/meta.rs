//! What a sample file says once: the source, and what was measured when.

use analysis::series::{BitsPerSecond, Direction, DurationNs, Fields, Measured, Series, Span, UtcNs};
use parquet::file::metadata::KeyValue;
use serde::{Deserialize, Serialize};

use super::error::Fault;

/// The version of columns and metadata that is written and read.
pub(super) const SCHEMA: u32 = 1;

/// The key of the version, which stays whatever else changes.
pub(super) const SCHEMA_KEY: &str = "fabricscope.schema";

/// The key of everything else, in JSON.
const META_KEY: &str = "fabricscope";

/// All of a series but its samples.
#[derive(Debug, Deserialize, Serialize, PartialEq, Eq)]
pub(super) struct Meta {
    /// The host, as it names itself.
    host: String,
    /// The host's boot; absent if unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    boot_id: String,
    /// The host's rack; absent if unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    rack: String,
    /// The network device.
    netdev: String,
    /// The nominal length of a sample.
    interval_ns: u64,
    /// Bits a second in each direction; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    line_rate_bps: Option<u64>,
    /// How far the times may be off from UTC; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    clock_error_ns: Option<u64>,
    /// The names of what is measured beside bytes in at least one direction, as in [`FIELDS`].
    fields: Vec<String>,
    /// What is not measured in one direction, such as `rx_bytes`: bytes, and fields that only the other direction has.
    /// Absent where there is no such thing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    without: Vec<String>,
    /// When it was measured: start and end of each span, in nanoseconds since 1970 in UTC.
    covered: Vec<[i64; 2]>,
    /// Buckets that were overwritten before they were read.
    lost: u64,
}

/// A field by its name: the directions it tells of, and its place in what is measured there.
type Field = (&'static str, &'static [Direction], fn(&mut Measured) -> &mut bool);

/// The field that every file has, unless it says otherwise: it is in no list of [`Meta::fields`].
const BYTES: &str = "bytes";

const BOTH: &[Direction] = &Direction::ALL;

/// What a source may measure.
const FIELDS: &[Field] = &[
    (BYTES, BOTH, |measured| &mut measured.bytes),
    ("packets", BOTH, |measured| &mut measured.packets),
    ("ce", BOTH, |measured| &mut measured.ce),
    ("retransmits_tx", &[Direction::Tx], |measured| &mut measured.retransmits),
    ("retransmits_rx", &[Direction::Rx], |measured| &mut measured.retransmits),
    ("regions", BOTH, |measured| &mut measured.regions),
    ("flows", BOTH, |measured| &mut measured.flows),
    ("roce", BOTH, |measured| &mut measured.roce),
    ("napi", &[Direction::Rx], |measured| &mut measured.napi),
];

/// A field of one direction, as it is named where it is missing.
fn missing(name: &str, direction: Direction) -> String {
    format!("{}_{name}", direction.name())
}

/// The names of [`Meta::fields`] and [`Meta::without`].
fn names(fields: &Fields) -> (Vec<String>, Vec<String>) {
    let (mut named, mut without) = (Vec::new(), Vec::new());
    for (name, directions, of) in FIELDS {
        let lacks = |direction: &&Direction| !*of(&mut fields.of(**direction).clone());
        let lacking: Vec<&Direction> = directions.iter().filter(lacks).collect();
        if *name != BYTES {
            if lacking.len() == directions.len() {
                continue;
            }
            named.push((*name).to_owned());
        }
        without.extend(lacking.into_iter().map(|direction| missing(name, *direction)));
    }
    (named, without)
}

impl Meta {
    /// Of a series.
    pub(super) fn of(series: &Series) -> Self {
        let (fields, without) = names(&series.fields);
        Self {
            host: series.host.clone(),
            boot_id: series.boot_id.clone(),
            rack: series.rack.clone(),
            netdev: series.netdev.clone(),
            interval_ns: series.interval.0,
            line_rate_bps: series.line_rate.map(|rate| rate.0),
            clock_error_ns: series.clock_error.map(|error| error.0),
            fields,
            without,
            covered: series.covered.iter().map(|span| [span.start.0, span.end.0]).collect(),
            lost: series.lost,
        }
    }

    /// The series without samples. Fields of a name not known here were written by a later version that changed
    /// nothing else: they are left out.
    pub(super) fn series(self) -> Result<Series, Fault> {
        let mut fields = Fields::default();
        for (name, directions, of) in FIELDS {
            let named = *name == BYTES || self.fields.iter().any(|field| field == name);
            for direction in directions.iter().filter(|_| named) {
                *of(fields.of_mut(*direction)) = !self.without.contains(&missing(name, *direction));
            }
        }
        let covered = spans(&self.covered)?;
        Ok(Series {
            host: self.host,
            boot_id: self.boot_id,
            rack: self.rack,
            netdev: self.netdev,
            interval: DurationNs(self.interval_ns),
            line_rate: self.line_rate_bps.map(BitsPerSecond),
            clock_error: self.clock_error_ns.map(DurationNs),
            fields,
            samples: Vec::new(),
            covered,
            lost: self.lost,
        })
    }
}

/// Spans of time as they stand in a file, which are in order.
pub(super) fn spans(written: &[[i64; 2]]) -> Result<Vec<Span>, Fault> {
    let spans: Vec<Span> = written.iter().map(|[from, to]| Span { start: UtcNs(*from), end: UtcNs(*to) }).collect();
    let mut last = None;
    for span in &spans {
        if span.start >= span.end || last.is_some_and(|end| span.start < end) {
            return Err(Fault::Damaged("the spans it covers are out of order".to_owned()));
        }
        last = Some(span.end);
    }
    Ok(spans)
}

/// The value of a key, of a file of the version that is read here. `None` if there is no such key.
pub(super) fn value<'a>(keys: Option<&'a Vec<KeyValue>>, key: &str) -> Result<Option<&'a str>, Fault> {
    let value = |key: &str| {
        let pair = keys?.iter().find(|pair| pair.key == key)?;
        pair.value.as_deref()
    };
    let Some(version) = value(SCHEMA_KEY) else {
        return Err(Fault::NotSamples("it is Parquet that another program wrote".to_owned()));
    };
    if version.parse() != Ok(SCHEMA) {
        return Err(Fault::Schema(version.chars().take(20).collect()));
    }
    Ok(value(key))
}

/// The metadata of a Parquet file.
pub(super) fn to_keys(series: &Series) -> Result<Vec<KeyValue>, Fault> {
    let json = serde_json::to_string(&Meta::of(series)).map_err(|error| Fault::Unfit(error.to_string()))?;
    Ok(vec![KeyValue::new(SCHEMA_KEY.to_owned(), SCHEMA.to_string()), KeyValue::new(META_KEY.to_owned(), json)])
}

/// The series that the metadata of a Parquet file tell of, without samples.
pub(super) fn from_keys(keys: Option<&Vec<KeyValue>>) -> Result<Series, Fault> {
    let json = value(keys, META_KEY)?.ok_or_else(|| Fault::Damaged("its metadata are missing".to_owned()))?;
    let meta: Meta = serde_json::from_str(json).map_err(|error| Fault::Damaged(format!("its metadata: {error}")))?;
    meta.series()
}

//! Reports on bursts as one JSON object. What is not known is absent.

use std::io::Write;

use analysis::burst::{Burst, gaps};
use analysis::distribution::Distribution;
use analysis::series::{Direction, Series};
use serde::{Serialize, Serializer};

use super::field::Record;
use super::format;
use super::pause::{CounterRecord, Pause, PauseRecord, counter_records};
use super::report::{QUANTILES, Report};
use super::table::{FIELDS, Row};

/// Names the layout of the object. Keys are only ever added to it.
const SCHEMA: &str = "fabricscope.bursts.v1";

/// Which device, when, and how it was measured.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
pub(super) struct SeriesRecord<'a> {
    host: Option<&'a str>,
    boot_id: Option<&'a str>,
    netdev: Option<&'a str>,
    start: Option<String>,
    start_ns: Option<i64>,
    end: Option<String>,
    end_ns: Option<i64>,
    interval_ns: u64,
    measured_ns: u64,
    lost_buckets: u64,
    clock_error_ns: Option<u64>,
    line_rate_bits_per_second: Option<u64>,
}

impl<'a> SeriesRecord<'a> {
    pub(super) fn of(series: &'a Series) -> Self {
        let known = |text: &'a str| (!text.is_empty()).then_some(text);
        let window = series.window();
        Self {
            host: known(&series.host),
            boot_id: known(&series.boot_id),
            netdev: known(&series.netdev),
            start: window.and_then(|window| format::rfc3339(window.start)),
            start_ns: window.map(|window| window.start.0),
            end: window.and_then(|window| format::rfc3339(window.end)),
            end_ns: window.map(|window| window.end.0),
            interval_ns: series.interval.0,
            measured_ns: series.measured().0,
            lost_buckets: series.lost,
            clock_error_ns: series.clock_error.map(|error| error.0),
            line_rate_bits_per_second: series.line_rate.map(|rate| rate.0),
        }
    }
}

#[serde_with::skip_serializing_none]
#[derive(Serialize)]
struct ShowRecord<'a> {
    schema: &'static str,
    #[serde(flatten)]
    series: SeriesRecord<'a>,
    threshold: f64,
    rx: DirectionRecord,
    tx: DirectionRecord,
    /// Why there are no bursts of either direction.
    cannot_tell: Option<String>,
    /// Of each direction that they can be told of.
    bursts: Option<Vec<Record<Row>>>,
    /// Absent where pause was not sampled; empty where there was none.
    pause: Option<Vec<PauseRecord>>,
    /// Absent where no counters were sampled.
    counters: Option<Vec<CounterRecord<'a>>>,
}

#[serde_with::skip_serializing_none]
#[derive(Serialize)]
struct DirectionRecord {
    bytes: Option<u64>,
    packets: Option<u64>,
    ce_bytes: Option<u64>,
    retransmit_bytes: Option<u64>,
    /// Of rx alone.
    napi_exhausted: Option<u64>,
    mean_bits_per_second: Option<u64>,
    peak_bits_per_second: Option<u64>,
    /// Why there are no bursts of this direction.
    cannot_tell: Option<String>,
    bursts: Option<usize>,
    burst_ns: Option<u64>,
    burst_length_ns: Option<DistributionRecord>,
    burst_bytes: Option<DistributionRecord>,
    /// Only those that were measured from end to start.
    gap_ns: Option<DistributionRecord>,
}

/// Its quantiles, by name.
struct DistributionRecord(Distribution);

impl DistributionRecord {
    fn of(values: impl IntoIterator<Item = u64>) -> Option<Self> {
        Distribution::of(values).map(Self)
    }
}

impl Serialize for DistributionRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(QUANTILES.iter().map(|(name, q)| (name, self.0.quantile(*q))))
    }
}

fn direction(report: &Report, direction: Direction) -> DirectionRecord {
    let total = report.total(direction);
    let (bursts, known) = (report.bursts(direction), report.found(direction).is_ok());
    DirectionRecord {
        bytes: total.bytes,
        packets: total.packets,
        ce_bytes: total.ce_bytes,
        retransmit_bytes: total.retransmit_bytes,
        napi_exhausted: total.napi_exhausted,
        mean_bits_per_second: total.mean.map(|rate| rate.0),
        peak_bits_per_second: total.peak.map(|rate| rate.0),
        cannot_tell: report.found(direction).err().map(|why| why.to_string()),
        bursts: known.then_some(bursts.len()),
        burst_ns: known.then(|| bursts.iter().map(|burst| burst.length.0).sum()),
        burst_length_ns: DistributionRecord::of(bursts.iter().map(|burst| burst.length.0)),
        burst_bytes: DistributionRecord::of(bursts.iter().map(|burst| burst.bytes)),
        gap_ns: DistributionRecord::of(gaps(&report.series, bursts).iter().map(|gap| gap.0)),
    }
}

/// Prints one series.
pub(super) fn show(report: &Report, out: &mut impl Write) -> anyhow::Result<()> {
    let (series, line_rate) = (&report.series, report.series.line_rate);
    let row =
        |burst: &Burst| Some(Record(FIELDS, Row { burst: *burst, line_rate: line_rate?, interval: series.interval }));
    let cannot_tell = report.cannot_tell();
    let record = ShowRecord {
        schema: SCHEMA,
        series: SeriesRecord::of(series),
        threshold: report.threshold.value(),
        rx: direction(report, Direction::Rx),
        tx: direction(report, Direction::Tx),
        bursts: cannot_tell.is_none().then(|| report.all_bursts().iter().filter_map(row).collect()),
        cannot_tell,
        pause: report.pause.as_ref().map(Pause::records),
        counters: (!report.counters.is_empty()).then(|| counter_records(&report.counters)),
    };
    serde_json::to_writer(&mut *out, &record)?;
    writeln!(out)?;
    Ok(())
}

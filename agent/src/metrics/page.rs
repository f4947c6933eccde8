//! One page of metrics: rows under the table's names, bounded in number, then written as Prometheus text.

use std::collections::BTreeMap;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeLabelSet, LabelSetEncoder, MetricEncoder, NoLabelSet, prometheus_text,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use super::table::{BEFORE_COUNTERS, Kind, Metric, Row};
use crate::config::limits;
use crate::counters::catalogue;

/// The value of a series.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    /// A whole number.
    Whole(u64),
    /// Seconds, or a share.
    Real(f64),
    /// Upper bounds with what lies below each and not below the one before; the last is infinite.
    Histogram {
        /// By rising bound.
        buckets: Vec<(f64, u64)>,
        /// Of all values.
        sum: f64,
    },
}

impl Value {
    /// Lines on the page.
    fn series(&self) -> usize {
        match self {
            Self::Whole(_) | Self::Real(_) => 1,
            Self::Histogram { buckets, .. } => buckets.len() + 2,
        }
    }
}

/// What a series belongs to: a row of the table, or one of the counters' catalogue by its place there. What comes last
/// is left out first where there are too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Family {
    First(Metric),
    Counter(usize),
    Rest(Metric),
}

/// What is written above the series of a family.
struct Description {
    name: String,
    kind: Kind,
    labels: &'static [&'static str],
    help: String,
}

impl Family {
    fn description(self) -> Option<Description> {
        match self {
            Self::First(metric) | Self::Rest(metric) => {
                let Row { name, kind, labels, help, .. } = *metric.row();
                Some(Description { name: name.to_owned(), kind, labels, help: help.to_owned() })
            }
            Self::Counter(index) => {
                let row = catalogue::rows().nth(index)?;
                let labels = counter_labels(row);
                Some(Description { name: row.metric_name(), kind: Kind::Counter, labels, help: row.help() })
            }
        }
    }
}

/// The labels of a counter's metric.
pub(crate) fn counter_labels(row: &catalogue::Row) -> &'static [&'static str] {
    if row.name.starts_with("rdma_") { &["device", "port"] } else { &["netdev"] }
}

/// A page that is being filled.
#[derive(Debug, Default)]
pub(super) struct Page {
    rows: BTreeMap<Family, BTreeMap<Vec<String>, Value>>,
    /// Series that had no place on it.
    pub(super) left_out: usize,
}

impl Page {
    /// Adds a series. `labels` are values in the order of the metric's row; a further number for the same labels is
    /// added to the first.
    pub(super) fn add(&mut self, metric: Metric, labels: &[&str], value: Value) {
        debug_assert_eq!(labels.len(), metric.row().labels.len(), "{}", metric.row().name);
        let family = if metric <= BEFORE_COUNTERS { Family::First(metric) } else { Family::Rest(metric) };
        self.put(family, labels, value);
    }

    /// Adds the series of a counter by its place in the catalogue.
    pub(super) fn add_counter(&mut self, index: usize, labels: &[&str], value: Value) {
        self.put(Family::Counter(index), labels, value);
    }

    fn put(&mut self, family: Family, labels: &[&str], value: Value) {
        let labels = labels.iter().map(|label| cut(label).to_owned()).collect();
        let series = self.rows.entry(family).or_default();
        match (series.get_mut(&labels), value) {
            (Some(Value::Whole(sum)), Value::Whole(more)) => *sum = sum.saturating_add(more),
            (_, value) => drop(series.insert(labels, value)),
        }
    }

    /// Takes series away until at most `most` are left, those of the table's last rows first, and says how many went.
    pub(super) fn bound(&mut self, most: usize) -> usize {
        let mut left = most;
        let mut dropped = self.left_out;
        for series in self.rows.values_mut() {
            series.retain(|_, value| {
                let fits = value.series() <= left;
                if fits {
                    left -= value.series();
                } else {
                    dropped += value.series();
                }
                fits
            });
        }
        dropped
    }

    /// The page as Prometheus text.
    pub(super) fn text(self) -> Result<String, String> {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self));
        let mut text = String::new();
        prometheus_text::encode(&mut text, &registry)
            .map_err(|error| format!("the page cannot be written: {error}"))?;
        Ok(text)
    }
}

/// The first bytes of a label's value, whole letters only.
fn cut(label: &str) -> &str {
    &label[..label.floor_char_boundary(limits::LABEL_BYTES)]
}

impl Collector for Page {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        for (family, series) in self.rows.iter().filter(|(_, series)| !series.is_empty()) {
            let Some(row) = family.description() else { continue };
            // The library writes the ending of counters itself.
            let name = row.name.strip_suffix("_total").filter(|_| row.kind == Kind::Counter).unwrap_or(&row.name);
            let kind = match row.kind {
                Kind::Counter => MetricType::Counter,
                Kind::Gauge => MetricType::Gauge,
                Kind::Histogram => MetricType::Histogram,
            };
            let mut metric = encoder.encode_descriptor(name, &row.help, None, kind)?;
            for (values, value) in series {
                if row.labels.is_empty() {
                    write(&mut metric, row.kind, value)?;
                } else {
                    let labels = Labels { names: row.labels, values };
                    write(&mut metric.encode_family(&labels)?, row.kind, value)?;
                }
            }
        }
        Ok(())
    }
}

fn write(encoder: &mut MetricEncoder<'_>, kind: Kind, value: &Value) -> Result<(), std::fmt::Error> {
    match (kind, value) {
        (Kind::Counter, Value::Whole(value)) => encoder.encode_counter::<NoLabelSet, _, u64>(value, None),
        (Kind::Counter, Value::Real(value)) => encoder.encode_counter::<NoLabelSet, _, u64>(value, None),
        (_, Value::Whole(value)) => encoder.encode_gauge(value),
        (_, Value::Real(value)) => encoder.encode_gauge(value),
        (_, Value::Histogram { buckets, sum }) => {
            let count = buckets.iter().map(|(_, count)| count).sum();
            encoder.encode_histogram::<NoLabelSet>(*sum, count, buckets, None)
        }
    }
}

/// Names and values of one series.
struct Labels<'a> {
    names: &'static [&'static str],
    values: &'a [String],
}

impl EncodeLabelSet for Labels<'_> {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> Result<(), std::fmt::Error> {
        use prometheus_client::encoding::EncodeLabel as _;
        for (name, value) in self.names.iter().zip(self.values) {
            // An empty value is no label at all to Prometheus, and promtool says so.
            if !value.is_empty() {
                (*name, value.as_str()).encode(encoder.encode_label())?;
            }
        }
        Ok(())
    }
}

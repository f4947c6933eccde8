//! The bursts of a file of Millisampler: its `burst_result`.
//!
//! The data set comes without a description of them: keys are those that programs read which work with it. Volumes are
//! bytes, `Position` and `Length` count samples.

use std::collections::BTreeMap;

use analysis::answer::Answer;
use analysis::burst::{Burst, Share, bursts};
use analysis::series::{Direction, Series, UtcNs};
use serde::Serialize;
use serde_json::Value;

use super::super::error::Fault;
use super::connections;

/// Bursts by direction, then by the time of the first sample in microseconds.
pub(super) type BurstResult = BTreeMap<String, BTreeMap<String, Value>>;

/// A burst, as it is written. What is not measured is absent.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BurstRecord {
    #[serde(rename = "Position")]
    position: u64,
    #[serde(rename = "Length")]
    length: usize,
    /// Of its fullest sample.
    ingress_max: u64,
    ingress_vol: u64,
    ecn_vol: Option<u64>,
    ingress_retx_vol: Option<u64>,
    max_connections: Option<u64>,
    avg_connections: Option<f64>,
}

/// The bursts received, under the time of the first sample; nothing where there is no telling.
pub(super) fn result(series: &Series, start: UtcNs) -> Result<BurstResult, Fault> {
    let found = match bursts(series, Direction::Rx, Share::DEFAULT) {
        Answer::Found(found) => found,
        Answer::Quiet => Vec::new(),
        Answer::CannotTell(_) => return Ok(BTreeMap::new()),
    };
    let records: Vec<BurstRecord> = found.iter().map(|burst| record(series, burst, start)).collect();
    let records = serde_json::to_value(records).map_err(|error| Fault::Unfit(error.to_string()))?;
    let microseconds = start.0.div_euclid(1000).to_string();
    Ok(BTreeMap::from([("ingress".to_owned(), BTreeMap::from([(microseconds, records)]))]))
}

fn record(series: &Series, burst: &Burst, start: UtcNs) -> BurstRecord {
    let within = series.samples.partition_point(|sample| sample.start < burst.start);
    let samples = series.samples.iter().skip(within).take(burst.samples);
    let connections: Vec<u64> = samples.clone().map(connections).filter(|_| burst.flows.is_some()).collect();
    let average = |sum: u64| sum as f64 / connections.len() as f64;
    BurstRecord {
        position: burst.start.since(start).0 / series.interval.0.max(1),
        length: burst.samples,
        ingress_max: samples.map(|sample| sample.rx.bytes).max().unwrap_or_default(),
        ingress_vol: burst.bytes,
        ecn_vol: burst.ce_bytes,
        ingress_retx_vol: burst.retransmit_bytes,
        max_connections: connections.iter().copied().max(),
        avg_connections: (!connections.is_empty()).then(|| average(connections.iter().sum())),
    }
}

/// The time of the first sample.
pub(super) fn start(bursts: &BurstResult) -> UtcNs {
    let microseconds = bursts.values().flat_map(BTreeMap::keys).filter_map(|key| key.parse::<i64>().ok()).min();
    UtcNs(microseconds.and_then(|time| time.checked_mul(1000)).unwrap_or_default())
}

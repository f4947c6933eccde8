//! Samples of counters, to the wire and back.

use analysis::counter_samples::{Column, CounterSamples};
use analysis::counter_series::When;
use analysis::series::{BitsPerSecond, DurationNs, Span, UtcNs};
use proto::v1;

use super::{Result, WireError};
use crate::rpc::limits;

/// Samples as parts that each fit into a message.
pub(crate) fn counters_to_wire(samples: CounterSamples) -> impl Iterator<Item = v1::CounterSamples> {
    let columns = samples.columns.iter().filter(|column| column.moved()).count().max(1);
    let rows = (limits::COUNTER_VALUES_PER_MESSAGE / columns).max(1);
    let count = samples.when.len().div_ceil(rows).max(1);
    (0..count).map(move |part| {
        let end = samples.when.len().min((part + 1) * rows);
        part_to_wire(&samples, part * rows..end, part == 0)
    })
}

fn part_to_wire(samples: &CounterSamples, rows: std::ops::Range<usize>, first: bool) -> v1::CounterSamples {
    let when = samples.when.get(rows.clone()).unwrap_or_default();
    let column = |column: &Column| {
        let growth: Vec<Option<u64>> = rows.clone().map(|at| column.growth(at)).collect();
        let unknown = (0u32..).zip(&growth).filter(|(_, growth)| growth.is_none()).map(|(at, _)| at);
        let moved = growth.iter().any(|growth| *growth != Some(0));
        v1::CounterColumn {
            counter: column.counter.clone(),
            priority: column.priority.map(u32::from),
            unknown: unknown.collect(),
            growth: if moved { growth.into_iter().map(Option::unwrap_or_default).collect() } else { Vec::new() },
        }
    };
    let spans = samples.covered.iter().filter(|_| first);
    v1::CounterSamples {
        host: samples.host.clone(),
        boot_id: samples.boot_id.clone(),
        device: samples.device.clone(),
        port: samples.port,
        netdev: samples.netdev.clone(),
        source: samples.source.clone(),
        interval_ns: samples.interval.0,
        line_rate_bps: samples.line_rate.map(|rate| rate.0),
        clock_error_ns: samples.clock_error.map(|error| error.0),
        starts_ns: when.iter().map(|when| when.start.0).collect(),
        lengths_ns: when.iter().map(|when| when.length.0).collect(),
        columns: samples.columns.iter().map(column).collect(),
        covered: spans.map(|span| v1::MeasuredSpan { start_ns: span.start.0, end_ns: span.end.0 }).collect(),
    }
}

/// A part of samples.
pub(crate) fn counters_from_wire(wire: v1::CounterSamples) -> Result<CounterSamples> {
    let count = wire.starts_ns.len();
    if wire.lengths_ns.len() != count {
        return Err(WireError::OutOfRange("lengths_ns"));
    }
    if wire.columns.len() > crate::config::limits::COUNTER_COLUMNS {
        return Err(WireError::TooLong("columns", crate::config::limits::COUNTER_COLUMNS));
    }
    let mut columns = Vec::with_capacity(wire.columns.len());
    let mut values = Vec::with_capacity(wire.columns.len());
    for column in wire.columns {
        let priority = column.priority.map(u8::try_from).transpose().map_err(|_| WireError::OutOfRange("priority"))?;
        if !column.growth.is_empty() && column.growth.len() != count {
            return Err(WireError::OutOfRange("growth"));
        }
        let mut growth: Vec<Option<u64>> = column.growth.into_iter().map(Some).collect();
        growth.resize(count, Some(0));
        for at in column.unknown {
            let place = usize::try_from(at).ok().and_then(|at| growth.get_mut(at));
            *place.ok_or(WireError::OutOfRange("unknown"))? = None;
        }
        columns.push(Column::new(column.counter, priority));
        values.push(growth);
    }
    let span = |span: &v1::MeasuredSpan| Span { start: UtcNs(span.start_ns), end: UtcNs(span.end_ns) };
    let mut samples = CounterSamples {
        host: wire.host,
        boot_id: wire.boot_id,
        device: wire.device,
        port: wire.port,
        netdev: wire.netdev,
        source: wire.source,
        interval: DurationNs(wire.interval_ns),
        line_rate: wire.line_rate_bps.map(BitsPerSecond),
        clock_error: wire.clock_error_ns.map(DurationNs),
        columns,
        when: Vec::with_capacity(count),
        covered: wire.covered.iter().map(span).collect(),
    };
    for (at, (start, length)) in wire.starts_ns.iter().zip(&wire.lengths_ns).enumerate() {
        let when = When { start: UtcNs(*start), length: DurationNs(*length) };
        samples.push(when, values.iter().map(|growth| growth.get(at).copied().flatten()));
    }
    Ok(samples)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(rows: i64) -> CounterSamples {
        let column = |name: &str, priority| Column::new(name.to_owned(), priority);
        let mut samples = CounterSamples {
            host: "gpu-17".into(),
            device: "mlx5_0".into(),
            port: Some(1),
            netdev: "eth0".into(),
            source: "rdma_netlink".into(),
            interval: DurationNs(1_000_000),
            line_rate: Some(BitsPerSecond(100_000_000_000)),
            columns: vec![column("pfc_sent_pause_seconds", Some(3)), column("a", None), column("b", None)],
            covered: vec![Span { start: UtcNs(0), end: UtcNs(i64::MAX) }],
            ..CounterSamples::default()
        };
        for row in 0..rows {
            let when = When { start: UtcNs(row * 1_000_000), length: DurationNs(999_999) };
            samples.push(when, [Some(row.unsigned_abs()), (row % 3 > 0).then_some(7), Some(0)]);
        }
        samples
    }

    #[test]
    fn samples_come_back_as_they_went() {
        for rows in [0, 1, 5, limits::COUNTER_VALUES_PER_MESSAGE as i64] {
            let all = samples(rows);
            let mut parts = counters_to_wire(all.clone()).map(|part| counters_from_wire(part).unwrap());
            let mut back = parts.next().unwrap();
            let more: Vec<CounterSamples> = parts.collect();
            assert_eq!(more.is_empty(), rows < 10, "{rows}");
            for part in more {
                assert!(part.covered.is_empty(), "told once");
                for (at, when) in part.when.iter().enumerate() {
                    back.push(*when, part.columns.iter().map(|column| column.growth(at)));
                }
            }
            assert!(back == all, "{rows}");
        }
    }

    #[test]
    fn what_does_not_fit_together_is_refused() {
        let good = counters_to_wire(samples(3)).next().unwrap();
        type Spoil = fn(&mut v1::CounterSamples);
        let rows: [(Spoil, &str); 5] = [
            (|wire| wire.lengths_ns.push(1), "lengths_ns"),
            (|wire| wire.columns[0].growth.truncate(1), "growth"),
            (|wire| wire.columns[0].unknown.push(3), "unknown"),
            (|wire| wire.columns[0].priority = Some(256), "priority"),
            (|wire| wire.columns = vec![v1::CounterColumn::default(); 300], "columns"),
        ];
        for (spoil, field) in rows {
            let mut wire = good.clone();
            spoil(&mut wire);
            let error = counters_from_wire(wire).unwrap_err();
            assert!(error.to_string().contains(field), "{error}");
        }
    }
}

//! The counters as the drivers show them, those that nobody knows too.

use std::io::{self, Write};
use std::sync::Arc;

use serde::Serialize;

use super::further::{self, QUEUE_PAIRS};
use crate::counters::catalogue::Source;
use crate::counters::netlink::rdma::Bound;
use crate::counters::readout::{Kind, Place, Readout, Shown};
use crate::terminal::{Column, Paper, Table};

const COLUMNS: [Column<Shown>; 6] = [
    Column { title: "DEVICE", min: 6, wanted: 12, rank: 0, value: |shown| shown.place.device.clone() },
    Column {
        title: "PORT",
        min: 4,
        wanted: 4,
        rank: 4,
        value: |shown| shown.place.port.map(|port| port.to_string()).unwrap_or_default(),
    },
    Column { title: "SOURCE", min: 6, wanted: 11, rank: 3, value: |shown| shown.source.name().to_owned() },
    Column { title: "NAME", min: 10, wanted: 34, rank: 0, value: |shown| shown.name.clone() },
    Column { title: "VALUE", min: 8, wanted: 20, rank: 0, value },
    Column { title: "COUNTER", min: 8, wanted: 30, rank: 2, value: |shown| row_name(shown).to_owned() },
];

fn value(shown: &Shown) -> String {
    match &shown.outcome {
        Ok(number) => number.to_string(),
        Err(failure) => failure.to_string(),
    }
}

fn row_name(shown: &Shown) -> &'static str {
    shown.row.map_or("", |row| row.name)
}

/// Writes a table.
pub(super) fn write(readout: &Readout, paper: Paper, out: &mut impl Write) -> io::Result<()> {
    let table = Table::new(&COLUMNS, paper);
    writeln!(out, "{}", table.heading())?;
    for shown in readout.shown.iter().chain(&bound(readout)) {
        writeln!(out, "{}", table.row(shown))?;
    }
    Ok(())
}

/// Counters that are bound to queue pairs as if the driver showed them: their set stands in the name.
fn bound(readout: &Readout) -> Vec<Shown> {
    let of = |(device, bound): &(String, Bound)| {
        let place = Arc::new(Place { kind: Kind::Rdma, device: device.clone(), port: Some(bound.port) });
        let pairs: Vec<String> = bound.queue_pairs.iter().take(QUEUE_PAIRS).map(u32::to_string).collect();
        let set = format!("set {}, queue pairs {}", bound.id, pairs.join(" "));
        let shown = |(name, value): &(String, u64)| Shown {
            place: Arc::clone(&place),
            source: Source::RdmaNetlink,
            name: format!("{name} ({set})"),
            outcome: Ok(*value),
            row: None,
        };
        bound.values.iter().map(shown).collect::<Vec<_>>()
    };
    readout.further.bound.iter().flat_map(of).collect()
}

#[derive(Debug, Serialize)]
struct Record<'a> {
    device: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    port: Option<u32>,
    source: &'static str,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    counter: Option<&'static str>,
}

/// Writes one object a line.
pub(super) fn write_json(readout: &Readout, out: &mut impl Write) -> anyhow::Result<()> {
    for shown in &readout.shown {
        let record = Record {
            device: &shown.place.device,
            port: shown.place.port,
            source: shown.source.name(),
            name: &shown.name,
            value: shown.outcome.as_ref().ok().copied(),
            failure: shown.outcome.as_ref().err().map(crate::counters::value::Failure::reason),
            counter: shown.row.map(|row| row.name),
        };
        serde_json::to_writer(&mut *out, &record)?;
        writeln!(out)?;
    }
    for record in further::bound_records(None, readout) {
        serde_json::to_writer(&mut *out, &record)?;
        writeln!(out)?;
    }
    Ok(())
}

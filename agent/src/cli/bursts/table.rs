//! What is told of a burst: one table for the heading, the rows and JSON.

use analysis::burst::Burst;
use analysis::series::{BitsPerSecond, DurationNs};
use analysis::sketch::{FLOWS_MAX, Flows};

use super::field::{Field, NONE, right};
use super::format;
use crate::terminal::Column;

/// A burst and what is needed to tell of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) burst: Burst,
    pub(super) line_rate: BitsPerSecond,
    pub(super) interval: DurationNs,
}

impl Row {
    fn share(&self, rate: BitsPerSecond) -> f64 {
        rate.0 as f64 / self.line_rate.0 as f64
    }
}

/// All that is told of a burst, in its order.
pub(super) const FIELDS: &[Field<Row>] = &[
    Field::text(
        Column { title: "START (UTC)", min: 12, wanted: 15, rank: 0, value: start },
        &[("start", |row| format::rfc3339(row.burst.start).into()), ("start_ns", |row| row.burst.start.0.into())],
    ),
    Field::number(
        "DIR",
        0,
        |row| row.burst.direction.name().to_owned(),
        &[("direction", |row| row.burst.direction.name().into())],
    ),
    Field::number(
        "  LENGTH",
        0,
        |row| right(format::duration(row.burst.length), 8),
        &[("length_ns", |row| row.burst.length.0.into()), ("samples", |row| row.burst.samples.into())],
    ),
    Field::number(
        "  VOLUME",
        1,
        |row| right(format::bytes(row.burst.bytes), 8),
        &[("bytes", |row| row.burst.bytes.into()), ("packets", |row| row.burst.packets.into())],
    ),
    Field::number(
        "       PEAK",
        2,
        |row| right(format::rate(row.burst.peak), 11),
        &[("peak_bits_per_second", |row| row.burst.peak.0.into())],
    ),
    Field::number(
        "  PEAK%",
        1,
        |row| right(format::percent(row.share(row.burst.peak)), 7),
        &[("peak_share", |row| row.share(row.burst.peak).into())],
    ),
    Field::number(
        "    AVERAGE",
        5,
        |row| right(format::rate(row.burst.average), 11),
        &[
            ("average_bits_per_second", |row| row.burst.average.0.into()),
            ("average_share", |row| row.share(row.burst.average).into()),
        ],
    ),
    Field::number(
        "FLOWS",
        3,
        |row| right(row.burst.flows.map_or_else(|| NONE.to_owned(), |flows| flows.to_string()), 5),
        &[
            ("flows", |row| row.burst.flows.map(flows).into()),
            ("flows_saturated", |row| row.burst.flows.map(|flows| flows == Flows::Saturated).into()),
        ],
    ),
    Field::number(
        "     ECN",
        4,
        |row| right(share(row.burst.ce_share()), 8),
        &[("ce_bytes", |row| row.burst.ce_bytes.into()), ("ce_share", |row| row.burst.ce_share().into())],
    ),
    Field::number(
        " RETRANS",
        4,
        |row| right(share(row.burst.retransmit_share()), 8),
        &[
            ("retransmit_bytes", |row| row.burst.retransmit_bytes.into()),
            ("retransmit_share", |row| row.burst.retransmit_share().into()),
        ],
    ),
    Field::number(
        "CUT   ",
        6,
        |row| cut(&row.burst).to_owned(),
        &[("cut_before", |row| row.burst.cut_before.into()), ("cut_after", |row| row.burst.cut_after.into())],
    ),
];

fn start(row: &Row) -> String {
    format::day_and_time(row.burst.start, row.interval).1
}

fn share(share: Option<f64>) -> String {
    share.map_or_else(|| NONE.to_owned(), format::percent)
}

fn flows(flows: Flows) -> u32 {
    match flows {
        Flows::About(count) => count,
        Flows::Saturated => FLOWS_MAX,
    }
}

/// At which end the burst may have gone on in a time that was not measured.
fn cut(burst: &Burst) -> &'static str {
    match (burst.cut_before, burst.cut_after) {
        (false, false) => "",
        (true, false) => "start",
        (false, true) => "end",
        (true, true) => "both",
    }
}

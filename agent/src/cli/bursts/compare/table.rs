//! What is told of devices side by side: tables for headings, rows and JSON.

use analysis::contention::{Member, Pair};

use super::super::field::{Field, NONE, right};
use super::super::format;
use crate::terminal::Column;

/// One device.
#[derive(Clone, Debug)]
pub(super) struct MemberRow {
    name: String,
    bursts: usize,
    bins: u64,
    measured: u64,
    bursting: u64,
    contended: u64,
}

impl MemberRow {
    pub(super) fn of(name: &str, member: &Member, bins: usize) -> Self {
        Self {
            name: name.to_owned(),
            bursts: member.bursts.len(),
            bins: bins as u64,
            measured: member.measured_bins,
            bursting: member.bursting_bins,
            contended: member.contended_bins,
        }
    }
}

/// A part of a whole, if there is a whole.
fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| NONE.to_owned(), format::percent)
}

/// All that is told of a device, in its order. What device it is, JSON has beside it.
pub(super) const MEMBERS: &[Field<MemberRow>] = &[
    Field::text(Column { title: "DEVICE", min: 12, wanted: 28, rank: 0, value: |row| row.name.clone() }, &[]),
    Field::number("BURSTS", 1, |row| right(row.bursts.to_string(), 6), &[("bursts", |row| row.bursts.into())]),
    Field::number(
        "BURSTING",
        0,
        |row| right(percent(share(row.bursting, row.measured)), 8),
        &[
            ("bursting_bins", |row| row.bursting.into()),
            ("bursting_share", |row| share(row.bursting, row.measured).into()),
        ],
    ),
    Field::number(
        "WITH OTHERS",
        0,
        |row| right(percent(share(row.contended, row.bursting)), 11),
        &[
            ("contended_bins", |row| row.contended.into()),
            ("contended_share", |row| share(row.contended, row.bursting).into()),
        ],
    ),
    Field::number(
        "MEASURED",
        2,
        |row| right(percent(share(row.measured, row.bins)), 8),
        &[("measured_bins", |row| row.measured.into())],
    ),
];

/// Two devices.
#[derive(Clone, Debug)]
pub(super) struct PairRow {
    pair: Pair,
    names: [String; 2],
}

impl PairRow {
    pub(super) fn of(pair: Pair, names: &[String]) -> Self {
        let name = |place: usize| names.get(place).cloned().unwrap_or_default();
        Self { pair, names: [name(pair.first), name(pair.second)] }
    }
}

/// All that is told of a pair, in its order. JSON has their places among the devices.
pub(super) const PAIRS: &[Field<PairRow>] = &[
    Field::number(
        "OVERLAP",
        0,
        |row| right(percent(row.pair.overlap()), 7),
        &[
            ("first", |row| row.pair.first.into()),
            ("second", |row| row.pair.second.into()),
            ("overlap", |row| row.pair.overlap().into()),
        ],
    ),
    Field::number(
        " LIFT",
        1,
        |row| right(row.pair.lift().map_or_else(|| NONE.to_owned(), format::digits), 5),
        &[("lift", |row| row.pair.lift().into())],
    ),
    Field::number(
        "BINS TOGETHER",
        2,
        |row| right(row.pair.both.to_string(), 13),
        &[
            ("bins_together", |row| row.pair.both.into()),
            ("bins_by_first", |row| row.pair.by_first.into()),
            ("bins_by_second", |row| row.pair.by_second.into()),
            ("bins_measured", |row| row.pair.measured.into()),
        ],
    ),
    Field::text(Column { title: "DEVICES", min: 12, wanted: 40, rank: 0, value: |row| row.names.join(" and ") }, &[]),
];

//! Every counter the agent knows, one row each: what it means, in which unit, how wide, and what each driver calls it.
//!
//! Metrics, the command line and the documentation take names, units and words from here and from nowhere else. A name
//! that stands in no row is shown as it is by `fabricscope counters --raw`, and never becomes a metric.

mod congestion;
mod driver;
mod host;
mod link;
mod name;
mod pause;
mod requests;
mod row;
#[cfg(test)]
mod tests;
mod traffic;
mod transport;

use std::collections::HashMap;
use std::sync::LazyLock;

pub(crate) use driver::Driver;
pub(crate) use name::{CARRIER_DOWNS, CARRIER_UPS, Found, Name, Scale, Source, Width, origin};
pub(crate) use row::{Direction, Group, Row, Unit};

/// The rows, by subject; the order is that of the command line and of metrics.
const TABLES: &[&[Row]] =
    &[traffic::ROWS, pause::ROWS, congestion::ROWS, transport::ROWS, host::ROWS, link::ROWS, requests::ROWS];

/// Every row.
pub(crate) fn rows() -> impl Iterator<Item = &'static Row> {
    TABLES.iter().copied().flatten()
}

/// The row's place among all of them.
pub(crate) fn order(row: &Row) -> usize {
    static ORDER: LazyLock<HashMap<&str, usize>> =
        LazyLock::new(|| rows().enumerate().map(|(at, row)| (row.name, at)).collect());
    ORDER.get(row.name).copied().unwrap_or(usize::MAX)
}

/// A row by its own name.
#[cfg(test)]
pub(crate) fn row(name: &str) -> Option<&'static Row> {
    rows().find(|row| row.name == name)
}

/// What a driver means by a name it shows.
///
/// A driver that is not known is taken for the one that has such a name, as long as all of them mean the same by it,
/// and the unit is not the driver's own choice: a duration of an unknown driver has no known unit.
pub(crate) fn find(driver: Driver, source: Source, shown: &str) -> Option<Found> {
    let source = if source == Source::RdmaNetlink { Source::HwCounters } else { source };
    let exact = all(source, shown).find(|found| found.name.driver == driver);
    let any = || all(source, shown).find(|found| found.name.driver == Driver::Any);
    exact.or_else(any).or_else(|| if driver == Driver::Any { agreed(source, shown) } else { None })
}

fn all(source: Source, shown: &str) -> impl Iterator<Item = Found> + '_ {
    rows().flat_map(move |row| {
        let names = row.names.iter().filter(move |name| name.source == source);
        names.filter_map(move |name| Some(Found { row, name, priority: name.matches(shown)? }))
    })
}

fn agreed(source: Source, shown: &str) -> Option<Found> {
    let mut found = all(source, shown);
    let first = found.next()?;
    let same = found.all(|other| other.row.is(first.row) && other.name.scale == first.name.scale);
    (same && matches!(first.name.scale, Scale::One)).then_some(first)
}

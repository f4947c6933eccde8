//! What recorded samples of counters say to detectors and pictures.

use std::collections::BTreeSet;

use analysis::counter_samples::{Column, CounterSamples};
use analysis::counter_series::{Counter, CounterSeries, Lane, When};
use analysis::delta::Gap;
use analysis::series::{Direction, DurationNs, Span};

use super::catalogue::rows;
use super::meanings::{Meaning, meaning};

/// Pause counters by their column's name and priority.
type Key = (String, Option<u8>);

/// The pause of one device in pieces.
#[derive(Debug)]
pub(crate) struct Recorded {
    /// The pieces, in order of time.
    pub(crate) pieces: Vec<CounterSeries>,
    /// Directions in which pause is measured at all.
    pub(crate) directions: Vec<Direction>,
    /// When it was measured.
    pub(crate) covered: Vec<Span>,
}

/// What a column is to pause; `None` if it has nothing to do with it.
fn pause(column: &Column) -> Option<Counter> {
    let counter = (meaning(&column.counter)?.counter)(column.priority.map_or(Lane::Port, Lane::Priority));
    matches!(counter, Counter::PauseFrames(..) | Counter::PauseTime(..)).then_some(counter)
}

fn key(column: &Column) -> Key {
    (column.counter.clone(), column.priority)
}

impl Recorded {
    /// Of samples of one device; `None` if none of them are of pause. A priority that never moved is left out: drivers
    /// show all eight, and with them nobody would look at the pause of the port.
    pub(crate) fn of(all: &[CounterSamples]) -> Option<Self> {
        let with_pause: Vec<&CounterSamples> =
            all.iter().filter(|samples| samples.columns.iter().any(|column| pause(column).is_some())).collect();
        let columns = || with_pause.iter().flat_map(|samples| &samples.columns);
        let moved: BTreeSet<Key> = columns().filter(|column| column.moved()).map(key).collect();
        let of = |direction: &Direction| {
            columns().filter_map(pause).any(|counter| match counter {
                Counter::PauseFrames(_, of) | Counter::PauseTime(_, of) => of == *direction,
                _ => false,
            })
        };
        let directions: Vec<Direction> = Direction::ALL.into_iter().filter(of).collect();
        let recorded = Self {
            pieces: with_pause.iter().map(|samples| series(samples, &moved)).collect(),
            covered: with_pause.iter().flat_map(|samples| samples.covered.clone()).collect(),
            directions,
        };
        (!with_pause.is_empty()).then_some(recorded)
    }
}

/// Samples with the idle times between them.
fn series(samples: &CounterSamples, moved: &BTreeSet<Key>) -> CounterSeries {
    let columns: Vec<(Counter, &Column)> = samples
        .columns
        .iter()
        .filter(|column| moved.contains(&key(column)))
        .filter_map(|c| Some((pause(c)?, c)))
        .collect();
    let most = 2 * samples.when.len() + samples.covered.len() + 1;
    let mut series = CounterSeries::new(samples.line_rate, most);
    let mut at = 0;
    for span in &samples.covered {
        let mut time = span.start;
        while let Some(when) = samples.when.get(at).filter(|when| when.start < span.end) {
            idle(&mut series, &columns, Span { start: time, end: when.start });
            let values = columns.iter().map(|(counter, column)| {
                let growth = column.growth(at).map(|growth| Meaning::in_unit(*counter, growth));
                (*counter, growth.ok_or(Gap::Unread))
            });
            series.push(*when, values);
            time = time.max(when.end());
            at += 1;
        }
        idle(&mut series, &columns, Span { start: time, end: span.end });
    }
    series
}

/// A time in which nothing moved. What is shorter than a thousandth of a second's thousandth is rounding.
fn idle(series: &mut CounterSeries, columns: &[(Counter, &Column)], span: Span) {
    let length = span.length();
    if length > DurationNs(1_000) {
        series.push(When { start: span.start, length }, columns.iter().map(|(counter, _)| (*counter, Ok(0))));
    }
}

/// A number of a counter in its unit, with the unit's word.
pub(crate) fn in_unit(counter: &str, growth: u64) -> (f64, &'static str) {
    match rows().find(|row| row.name == counter) {
        Some(row) => (row.in_unit(growth), row.unit.word()),
        // A file of another version may hold a counter that is not known here.
        None => (growth as f64, ""),
    }
}

#[cfg(test)]
mod tests {
    use analysis::occupancy::total;
    use analysis::series::UtcNs;

    use super::*;

    const MS: u64 = 1_000_000;

    fn time(ms: u64) -> UtcNs {
        UtcNs(0).after(DurationNs(ms * MS))
    }

    /// Ten milliseconds, of which pause is given in the second and the third.
    fn samples(priority: Option<u8>, name: &str) -> CounterSamples {
        let column = |name: &str, priority| Column::new(name.to_owned(), priority);
        let columns = vec![column(name, priority), column("pfc_received_pause_seconds", Some(5)), column("x", None)];
        let mut samples = CounterSamples { device: "eth0".to_owned(), columns, ..CounterSamples::default() };
        for at in [1, 2] {
            samples.push(When { start: time(at), length: DurationNs(MS) }, [Some(500), Some(0), Some(9)]);
        }
        samples.cover(Span { start: time(0), end: time(10) });
        samples
    }

    #[test]
    fn idle_times_count_and_priorities_that_never_moved_do_not() {
        let recorded = Recorded::of(&[samples(Some(3), "pfc_sent_pause_seconds")]).unwrap();
        assert_eq!(recorded.directions, Direction::ALL);
        let [series] = &recorded.pieces[..] else { panic!() };
        assert_eq!(series.lanes(Direction::Tx), BTreeSet::from([Lane::Priority(3)]));
        assert_eq!(series.lanes(Direction::Rx), BTreeSet::new());
        let found = total(series, Lane::Priority(3), Direction::Tx);
        assert_eq!((found.measured, found.share()), (DurationNs(10 * MS), Some(0.1)));
    }

    #[test]
    fn the_pause_of_the_port_is_seen_where_priorities_are_quiet() {
        let recorded = Recorded::of(&[samples(None, "nic_sent_pause_seconds")]).unwrap();
        assert_eq!(recorded.pieces[0].lanes(Direction::Tx), BTreeSet::from([Lane::Port]));
        let other = CounterSamples { columns: vec![Column::new("x".to_owned(), None)], ..CounterSamples::default() };
        assert!(Recorded::of(&[other]).is_none(), "nobody measured pause");
    }

    #[test]
    fn numbers_have_the_unit_of_their_row() {
        assert_eq!(in_unit("pfc_sent_pause_seconds", 2_500_000), (2.5, "seconds"));
        assert_eq!(in_unit("rdma_cnp_sent_packets", 7), (7.0, "packets"));
        assert_eq!(in_unit("of_tomorrow", 7), (7.0, ""));
    }
}

//! Samples that come, are joined and go.

use super::*;

fn when(start: i64, length: u64) -> When {
    When { start: UtcNs(start), length: DurationNs(length) }
}

#[test]
fn what_is_not_given_is_absent() {
    let mut series = CounterSeries::new(None, 3);
    series.push(when(0, 10), [(Counter::LinkDowns, Ok(1))]);
    series.push(when(10, 10), [(Counter::Timeouts, Ok(0)), (Counter::LinkDowns, Err(Gap::Reset))]);
    series.push(when(20, 0), [(Counter::Timeouts, Ok(5))]);
    let absent = Err(Gap::NotOffered);
    let rows = [
        (Counter::LinkDowns, [Ok(1), Err(Gap::Reset), absent]),
        (Counter::Timeouts, [absent, Ok(0), Err(Gap::Cached)]),
        (Counter::CnpSent, [absent; 3]),
    ];
    for (counter, expected) in rows {
        assert_eq!([0, 1, 2].map(|at| series.delta(counter, at)), expected, "{counter}");
    }
    assert_eq!(series.known(Counter::LinkDowns, 0..3), Some(1));
    assert_eq!(series.known(Counter::LinkDowns, 1..3), None);
    assert_eq!(series.known(Counter::CnpSent, 0..3), None);
}

#[test]
fn the_oldest_make_room_and_take_their_counters_with_them() {
    let mut series = CounterSeries::new(None, 2);
    series.push(when(0, 10), [(Counter::LinkDowns, Ok(1))]);
    series.push(when(10, 10), [(Counter::Timeouts, Ok(2))]);
    assert!(series.offers(Counter::LinkDowns));
    series.push(when(20, 10), [(Counter::Timeouts, Ok(3))]);
    assert_eq!(series.len(), 2);
    assert_eq!(series.counters().collect::<Vec<_>>(), [Counter::Timeouts]);
    assert_eq!(series.known(Counter::Timeouts, 0..2), Some(5));
}

#[test]
fn values_of_one_meaning_add_up() {
    let mut series = CounterSeries::new(None, 9);
    let stalls = Counter::BusStalls;
    series.push(when(0, 10), [(stalls, Ok(1)), (stalls, Ok(2))]);
    series.push(when(10, 10), [(stalls, Ok(1)), (stalls, Err(Gap::Unread))]);
    series.push(when(20, 10), [(stalls, Err(Gap::Unread)), (stalls, Ok(1))]);
    assert_eq!([0, 1, 2].map(|at| series.delta(stalls, at)), [Ok(3), Err(Gap::Unread), Err(Gap::Unread)]);
}

#[test]
fn holes_and_steps_of_the_clock_are_seen() {
    let rows = [
        (10, None),
        (12, None),
        (13, Some(Break::Hole(1))),
        (45, Some(Break::Hole(4))),
        (8, None),
        (7, Some(Break::ClockBack)),
    ];
    for (start, expected) in rows {
        let mut series = CounterSeries::new(None, 9);
        series.push(when(0, 10), []);
        series.push(when(start, 10), []);
        assert_eq!(series.break_before(1), expected, "{start}");
        assert_eq!(series.break_before(0), None);
    }
}

#[test]
fn looking_back_keeps_to_its_time() {
    let mut series = CounterSeries::new(None, 9);
    for at in 0..5 {
        series.push(when(at * 10, 10), []);
    }
    let rows = [(4, 30, 2..5), (4, 5, 4..5), (4, 29, 3..5), (0, 30, 0..1), (4, 1_000, 0..5), (7, 10, 7..7)];
    for (at, hold, expected) in rows {
        assert_eq!(series.back(at, DurationNs(hold)), expected, "{at} {hold}");
    }
}

#[test]
fn with_priorities_the_port_is_no_lane() {
    let mut series = CounterSeries::new(None, 9);
    series.push(when(0, 10), [(Counter::PauseFrames(Lane::Port, Direction::Rx), Ok(1))]);
    assert_eq!(series.lanes(Direction::Rx), BTreeSet::from([Lane::Port]));
    series.push(when(10, 10), [(Counter::PauseTime(Lane::Priority(3), Direction::Rx), Ok(1))]);
    assert_eq!(series.lanes(Direction::Rx), BTreeSet::from([Lane::Priority(3)]));
    assert!(series.lanes(Direction::Tx).is_empty());
}

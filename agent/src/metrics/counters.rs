//! The series of NIC and RDMA counters. Their names come from the catalogue, never from a driver.

use std::time::Duration;

use super::function_labels;
use super::page::{Page, Value};
use super::seats::{OTHER, Seats};
use super::table::Metric;
use crate::config::limits;
use crate::counters::catalogue::{self, Direction, Unit};
use crate::counters::fast;
use crate::counters::readout::{Kind, Series, Subject};
use crate::counters::service::Latest;

/// Adds everything of the last reading.
pub(super) fn add(page: &mut Page, seats: &mut Seats, latest: &Latest) {
    let readout = &latest.readout;
    let count = |kind| readout.subjects.iter().filter(|subject| subject.kind == kind).count() as u64;
    for (name, kind) in [("rdma", Kind::Rdma), ("netdev", Kind::Netdev)] {
        page.add(Metric::CounterDevices, &[name], Value::Whole(count(kind)));
    }
    page.add(Metric::CounterPace, &[], seconds(latest.pace));
    for (source, duration) in &readout.durations {
        page.add(Metric::CounterDuration, &[source.name()], seconds(*duration));
    }
    for subject in &readout.subjects {
        add_info(page, seats, subject);
    }
    // By row first: where there is not room for all, each port has the most important ones.
    let of_metrics = readout.series.iter().filter(|series| series.row.metric);
    let mut by_row: Vec<(usize, &Series)> = of_metrics.map(|series| (catalogue::order(series.row), series)).collect();
    by_row.sort_by_key(|(index, _)| *index);
    for (index, series) in by_row {
        add_series(page, seats, index, series, readout.subject(&series.place));
    }
    for subject in &readout.subjects {
        add_subject(page, seats, subject);
    }
}

/// Adds how fast sampling fares: three series for each source, of which there are few.
pub(super) fn add_fast(page: &mut Page, sources: &[fast::Status]) {
    for (number, source) in sources.iter().enumerate() {
        if number >= limits::SERIES_FAST {
            page.left_out += 3;
            continue;
        }
        let port = source.port.map(|port| port.to_string()).unwrap_or_default();
        let labels = [&*source.device, &port, source.source];
        page.add(Metric::FastPace, &labels, seconds(source.pace));
        page.add(Metric::FastReadings, &labels, Value::Whole(source.readings));
        page.add(Metric::FastTime, &labels, seconds(source.took));
    }
}

/// What a device belongs to, where anything is known of it.
fn add_info(page: &mut Page, seats: &mut Seats, subject: &Subject) {
    let relations = &subject.relations;
    let (device, netdev) = match subject.kind {
        Kind::Rdma => (seats.device(&subject.name), ""),
        // Without its RDMA device: one series for each, so that a join by either label finds one.
        Kind::Netdev => ("", subject.name.as_str()),
    };
    let has_seat = match subject.kind {
        Kind::Rdma => device != OTHER && seats.take_counter(device, usize::MAX, "info"),
        Kind::Netdev => seats.take_netdev(netdev, usize::MAX, "info"),
    };
    if !has_seat {
        page.left_out += 1;
        return;
    }
    let (pf, vf) = function_labels(relations.function.as_ref());
    let text = |text: &'_ Option<String>| text.clone().unwrap_or_default();
    let pci = text(if relations.pci.is_some() { &relations.pci } else { &relations.bus });
    let [driver, bond, namespace] = [&subject.driver, &relations.bond, &relations.namespace].map(text);
    page.add(Metric::NicInfo, &[device, netdev, &driver, &pci, pf, &vf, &bond, &namespace], Value::Whole(1));
}

fn seconds(duration: Duration) -> Value {
    Value::Real(duration.as_secs_f64())
}

fn add_series(page: &mut Page, seats: &mut Seats, index: usize, series: &Series, subject: Option<&Subject>) {
    let row = series.row;
    let device = series.place.device.as_str();
    let port = series.place.port.map(|port| port.to_string()).unwrap_or_default();
    let priority = series.priority.map(|priority| priority.to_string()).unwrap_or_default();
    if !is_enabled(series, subject) {
        return;
    }
    let has_seat = match series.place.kind {
        Kind::Rdma => seats.device(device) != OTHER && seats.take_counter(device, index, &port),
        Kind::Netdev => seats.take_netdev(device, index, &priority),
    };
    if !has_seat {
        page.left_out += 1;
        return;
    }
    if series.saturated {
        page.add(Metric::CounterSaturated, &[device, &port, row.name], Value::Whole(1));
        return;
    }
    let value = if row.unit == Unit::Seconds { Value::Real(series.number()) } else { Value::Whole(series.value) };
    match (row.pause_metric(), row.direction) {
        (Some((_, direction)), Direction::Rx | Direction::Tx) => {
            let metric = if row.unit == Unit::Seconds { Metric::PfcPauseSeconds } else { Metric::PfcPauseFrames };
            page.add(metric, &[device, &priority, direction], value);
        }
        _ if series.place.kind == Kind::Rdma => page.add_counter(index, &[device, &port], value),
        _ => page.add_counter(index, &[device], value),
    }
}

/// Priorities without flow control have no series. Where the device does not say which those are, the ones that ever
/// saw a pause are served.
fn is_enabled(series: &Series, subject: Option<&Subject>) -> bool {
    let Some(priority) = series.priority else { return true };
    match subject.and_then(|subject| subject.priorities) {
        Some(mask) => u32::from(mask) >> priority & 1 == 1,
        None => series.value > 0,
    }
}

fn add_subject(page: &mut Page, seats: &mut Seats, subject: &Subject) {
    let device = match subject.kind {
        Kind::Rdma => seats.device(&subject.name),
        Kind::Netdev => &subject.name,
    };
    let room = |seats: &mut Seats, series: &str| match subject.kind {
        Kind::Rdma => seats.take_unreadable(device, series),
        Kind::Netdev => seats.take_netdev(device, usize::MAX, series),
    };
    for (reason, count) in &subject.failures {
        if room(seats, reason) {
            page.add(Metric::CounterFailures, &[device, reason], Value::Whole(*count));
        }
    }
    if subject.quarantined.is_some() && room(seats, "quarantined") {
        page.add(Metric::CounterQuarantined, &[device], Value::Whole(1));
    }
}

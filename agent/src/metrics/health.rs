//! The series of NICs that are not well, and of what the host could not keep up with.

use super::page::{Page, Value};
use super::seats::{OTHER, Seats};
use super::table::Metric;
use crate::config::limits;
use crate::health::Place;
use crate::health::names::Row;
use crate::host::rdma::RdmaFacts;
use crate::kernel::state::Snapshot;
use crate::probes::Hook;

/// Adds health events by device, event and reporter.
pub(super) fn add_events(page: &mut Page, seats: &mut Seats, host: &RdmaFacts, snapshot: &Snapshot) {
    for counted in &snapshot.health {
        let Some(row) = Hook::by_number(counted.hook).and_then(|hook| Row::find(hook.name)) else { continue };
        // The kernel's own name is the seat: what else is known of the device may change.
        let seat = format!("{} {} {}", row.hook, counted.device, counted.part);
        let value = Value::Whole(counted.count);
        if seats.take_shared(Metric::HealthEvents, &seat, limits::SERIES_HEALTH - 1) {
            let Place { device, netdev, pci } = Place::find(row.about, &counted.device, host);
            let [device, netdev, pci] = [device, netdev, pci].map(Option::unwrap_or_default);
            page.add(Metric::HealthEvents, &[&device, &netdev, &pci, row.hook, &counted.part], value);
        } else {
            page.add(Metric::HealthEvents, &["", "", "", OTHER, ""], value);
        }
    }
}

/// Adds polls that used up their budget, by network device.
pub(super) fn add_napi(page: &mut Page, seats: &mut Seats, snapshot: &Snapshot) {
    for (netdev, count) in &snapshot.napi {
        let own = seats.take_shared(Metric::NapiExhausted, netdev, limits::SERIES_NAPI - 1);
        page.add(Metric::NapiExhausted, &[if own { netdev } else { OTHER }], Value::Whole(*count));
    }
}

/// Adds packets that the kernel threw away, by network device and reason.
pub(super) fn add_drops(page: &mut Page, seats: &mut Seats, snapshot: &Snapshot) {
    for (netdev, reason, count) in &snapshot.drops {
        let seat = format!("{netdev} {reason}");
        let own = seats.take_shared(Metric::DroppedPackets, &seat, limits::SERIES_DROPS - 1);
        let labels: [&str; 2] = if own { [netdev, reason] } else { [OTHER, OTHER] };
        page.add(Metric::DroppedPackets, &labels, Value::Whole(*count));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::state::HealthCount;

    fn text(page: Page) -> String {
        page.text().expect("it is written")
    }

    #[test]
    fn an_event_is_told_with_its_reporter() {
        let hook = Hook::all().find(|(_, hook)| hook.name == "devlink_health").map_or(0, |(number, _)| number);
        let count = |part: &str, count| HealthCount { hook, device: "0000:3b:00.0".into(), part: part.into(), count };
        let snapshot = Snapshot { health: vec![count("fw", 2), count("tx", 3)], ..Snapshot::default() };
        let mut page = Page::default();
        add_events(&mut page, &mut Seats::default(), &RdmaFacts::default(), &snapshot);
        let page = text(page);
        for (reporter, count) in [("fw", 2), ("tx", 3)] {
            let line = format!(
                "fabricscope_health_events_total{{pci=\"0000:3b:00.0\",event=\"devlink_health\",reporter=\"{reporter}\"}} {count}\n"
            );
            assert!(page.contains(&line), "{page}");
        }
    }

    #[test]
    fn what_has_no_place_is_counted_together() {
        let drops = (0..limits::SERIES_DROPS as u64 + 5).map(|number| ("eth0".into(), format!("reason_{number}"), 2));
        let napi = (0..limits::SERIES_NAPI as u64 + 5).map(|number| (format!("eth{number}"), 1));
        let snapshot = Snapshot { drops: drops.collect(), napi: napi.collect(), ..Snapshot::default() };
        let (mut page, mut seats) = (Page::default(), Seats::default());
        add_drops(&mut page, &mut seats, &snapshot);
        add_napi(&mut page, &mut seats, &snapshot);
        let page = text(page);
        let lines = |name: &str| page.lines().filter(|line| line.starts_with(name)).count();
        assert_eq!(lines("fabricscope_dropped_packets_total"), limits::SERIES_DROPS);
        assert_eq!(lines("fabricscope_napi_budget_exhausted_total"), limits::SERIES_NAPI);
        assert!(page.contains("fabricscope_dropped_packets_total{netdev=\"other\",reason=\"other\"} 12\n"), "{page}");
        assert!(page.contains("fabricscope_napi_budget_exhausted_total{netdev=\"other\"} 6\n"), "{page}");
    }
}

//! The series of NICs that are not well, and of what the host could not keep up with.

use std::collections::BTreeMap;

use super::page::{Page, Value};
use super::seats::{OTHER, Seats};
use super::table::Metric;
use crate::config::limits;
use crate::counters::netlink::devlink::Reporter;
use crate::health::Place;
use crate::health::names::{About, Row};
use crate::health::resources::Used;
use crate::host::gid::{Gid, GidType};
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

/// What the reporters of one name of one adapter say together: its ports have one each.
#[derive(Default)]
struct Reported {
    errors: u64,
    recoveries: u64,
    healthy: Option<bool>,
    dumped_ns: Option<u64>,
}

/// Adds the health reporters of adapters.
#[expect(clippy::cast_precision_loss, reason = "a time of day needs no more than 53 bits")]
pub(super) fn add_reporters(page: &mut Page, seats: &mut Seats, host: &RdmaFacts, reporters: &[Reporter]) {
    let mut reported: BTreeMap<(&str, &str), Reported> = BTreeMap::new();
    for reporter in reporters {
        let sum = reported.entry((&reporter.device, &reporter.name)).or_default();
        sum.errors = sum.errors.saturating_add(reporter.errors);
        sum.recoveries = sum.recoveries.saturating_add(reporter.recoveries);
        sum.healthy = reporter.healthy.map(|healthy| healthy && sum.healthy.unwrap_or(true)).or(sum.healthy);
        sum.dumped_ns = sum.dumped_ns.max(reporter.dumped_ns);
    }
    for ((device, name), sum) in reported {
        if !seats.take_shared(Metric::ReporterErrors, &format!("{device} {name}"), limits::SERIES_REPORTERS) {
            page.left_out += 1;
            continue;
        }
        let Place { device, netdev, pci } = Place::find(About::Bus, device, host);
        let [device, netdev, pci] = [device, netdev, pci].map(Option::unwrap_or_default);
        let labels = [&*device, &*netdev, &*pci, name];
        page.add(Metric::ReporterErrors, &labels, Value::Whole(sum.errors));
        page.add(Metric::ReporterRecoveries, &labels, Value::Whole(sum.recoveries));
        if let Some(healthy) = sum.healthy {
            page.add(Metric::ReporterHealthy, &labels, Value::Whole(u64::from(healthy)));
        }
        if let Some(dumped_ns) = sum.dumped_ns {
            page.add(Metric::ReporterDumpTime, &labels, Value::Real(dumped_ns as f64 * 1e-9));
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

/// Types of objects of which a device can only hold so many.
const LIMITED: [&str; 5] = ["qp", "cq", "mr", "pd", "srq"];

/// Adds the objects that RDMA devices hold, and their limits.
pub(super) fn add_resources(page: &mut Page, seats: &mut Seats, resources: &[Used]) {
    for Used { device, kind, count, limit } in resources.iter().filter(|used| LIMITED.contains(&used.kind.as_str())) {
        for (metric, value) in [(Metric::RdmaResources, Some(*count)), (Metric::RdmaResourceLimit, *limit)] {
            let Some(value) = value else { continue };
            if seats.take_shared(metric, &format!("{device} {kind}"), limits::SERIES_RESOURCES) {
                page.add(metric, &[device, kind], Value::Whole(value));
            } else {
                page.left_out += 1;
            }
        }
    }
}

/// Adds the GIDs in use, at most so many of each device.
pub(super) fn add_gids(page: &mut Page, seats: &mut Seats, host: &RdmaFacts) {
    for device in &host.devices {
        let mut gids: Vec<(u32, &Gid)> =
            device.ports.iter().flat_map(|port| port.gids.iter().map(move |gid| (port.number, gid))).collect();
        gids.sort_by_key(|(port, gid)| (gid.kind != Some(GidType::RoceV2), !gid.is_ipv4(), *port, gid.index));
        for (place, (port, gid)) in gids.into_iter().take(limits::GIDS_PER_DEVICE).enumerate() {
            let (port, index) = (port.to_string(), gid.index.to_string());
            // A place is of whichever GID stands there: addresses come and go.
            let place = format!("{} {place}", device.name);
            if !seats.take_shared(Metric::RdmaGidInfo, &place, limits::SERIES_GIDS) {
                page.left_out += 1;
                continue;
            }
            let kind = gid.kind.map_or("", GidType::name);
            let netdev = gid.netdev.as_deref().unwrap_or_default();
            let labels = [&device.name, &port, &index, kind, netdev, &gid.gid.to_string()];
            page.add(Metric::RdmaGidInfo, &labels, Value::Whole(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::gid::GidTable;
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
    fn reporters_are_told_by_adapter_with_what_is_known_of_each() {
        let reporter = |device: &str, name: &str, healthy, dumped_ns| Reporter {
            bus: "pci".into(),
            device: device.into(),
            port: None,
            name: name.into(),
            healthy,
            errors: 5,
            recoveries: 4,
            dumped_ns,
        };
        let (tx, of_port) = (reporter("a", "tx", Some(true), None), reporter("a", "tx", Some(false), None));
        let mut reporters = vec![tx, of_port, reporter("0000:3b:00.0", "fw", None, Some(1_500_000_000))];
        reporters.extend((0..limits::SERIES_REPORTERS).map(|number| reporter("z", &format!("{number}"), None, None)));
        let mut page = Page::default();
        add_reporters(&mut page, &mut Seats::default(), &RdmaFacts::default(), &reporters);
        assert_eq!(page.left_out, 2);
        let page = text(page);
        for line in [
            "errors_total{pci=\"0000:3b:00.0\",reporter=\"fw\"} 5\n",
            "recoveries_total{pci=\"0000:3b:00.0\",reporter=\"fw\"} 4\n",
            "dump_time_seconds{pci=\"0000:3b:00.0\",reporter=\"fw\"} 1.5\n",
            "errors_total{pci=\"a\",reporter=\"tx\"} 10\n",
            "healthy{pci=\"a\",reporter=\"tx\"} 0\n",
        ] {
            assert!(page.contains(&format!("fabricscope_health_reporter_{line}")), "{line}{page}");
        }
        assert_eq!((page.matches("healthy{").count(), page.matches("dump_time_seconds{").count()), (1, 1), "{page}");
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

    #[test]
    fn a_limit_is_told_where_there_is_one() {
        let used = |kind: &str, limit| Used { device: "mlx5_0".into(), kind: kind.into(), count: 3, limit };
        let (mut page, mut seats) = (Page::default(), Seats::default());
        add_resources(&mut page, &mut seats, &[used("qp", Some(64)), used("mr", None), used("cm_id", None)]);
        let page = text(page);
        for line in [
            "fabricscope_rdma_resources{device=\"mlx5_0\",type=\"qp\"} 3\n",
            "fabricscope_rdma_resources{device=\"mlx5_0\",type=\"mr\"} 3\n",
            "fabricscope_rdma_resource_limit{device=\"mlx5_0\",type=\"qp\"} 64\n",
        ] {
            assert!(page.contains(line), "{page}");
        }
        assert!(page.matches("limit{").count() == 1 && !page.contains("cm_id"), "{page}");
    }

    #[test]
    fn gids_are_told_the_most_useful_first_and_not_without_end() {
        let last = limits::GIDS_PER_DEVICE as u32 + 2;
        let gid = |index| Gid {
            index,
            gid: if index == last { "::ffff:10.0.0.1".parse() } else { format!("fe80::{index:x}1").parse() }
                .expect("a GID"),
            kind: Some(if index == last { GidType::RoceV2 } else { GidType::IbOrRoceV1 }),
            netdev: Some("eth0".into()),
        };
        let mut host = crate::daemon::fake::devices(1);
        host.devices[0].ports[0].gids = GidTable::of((0..=last).map(gid).collect());
        let mut page = Page::default();
        add_gids(&mut page, &mut Seats::default(), &host);
        let page = text(page);
        let line = format!(
            "fabricscope_rdma_gid_info{{device=\"mlx5_0\",port=\"1\",index=\"{last}\",type=\"RoCE v2\",netdev=\"eth0\",gid=\"::ffff:10.0.0.1\"}} 1\n"
        );
        assert!(page.contains(&line), "{page}");
        assert_eq!(page.matches("gid_info{").count(), limits::GIDS_PER_DEVICE, "{page}");
    }
}

//! The series of NIC and RDMA counters.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::*;
use crate::counters::catalogue::{self, Source};
use crate::counters::netlink::devlink::Reporter;
use crate::counters::readout::{Further, Kind as OfDevice, Place, Readout, Series, Subject};
use crate::counters::relations::Relations;

/// A page with the counters of so many RDMA devices, each with a network device.
pub(super) fn page_of_counters(metrics: &mut Metrics, latest: &Latest, devices: u32) -> String {
    let reading = Reading {
        info: &fake::info(),
        snapshot: Some(&full(devices)),
        monotonic_ns: 9_000_000_000,
        hooks: &fake::hooks(),
        devices: &fake::devices(devices),
        bursts: None,
        counters: Some(latest),
        findings: &Findings::default(),
        fast: &(0..3 * devices).map(fast_source).collect::<Vec<_>>(),
        losses: &[],
        signatures_evicted: 0,
    };
    metrics.page(&reading).unwrap()
}

/// A source that is read fast.
fn fast_source(index: u32) -> fast::Status {
    fast::Status {
        device: format!("eth{index}"),
        port: None,
        source: "ethtool",
        counters: 40,
        asked: Duration::from_millis(1),
        pace: Duration::from_millis(2),
        readings: 1_000,
        took: Duration::from_millis(125),
        failing: None,
    }
}

/// Every counter of the catalogue on every device and its network device.
pub(super) fn all_counters(devices: u32) -> Latest {
    let mut readout = Readout {
        at: Instant::now(),
        subjects: vec![],
        series: vec![],
        shown: vec![],
        resources: (0..devices)
            .map(|index| Used { device: format!("mlx5_{index}"), kind: "qp".into(), count: 3, limit: Some(64) })
            .collect(),
        durations: vec![(Source::Counters, Duration::from_millis(2))],
        counters: 0,
        further: Further {
            reporters: vec![Reporter {
                bus: "pci".to_owned(),
                device: "0000:3b:00.0".to_owned(),
                port: None,
                name: "fw".to_owned(),
                healthy: Some(true),
                errors: 1,
                recoveries: 1,
                dumped_ns: Some(1),
            }],
            ..Further::default()
        },
    };
    for index in 0..devices {
        for (kind, device) in [(OfDevice::Rdma, format!("mlx5_{index}")), (OfDevice::Netdev, format!("eth{index}"))] {
            readout.subjects.push(Subject {
                kind,
                name: device.clone(),
                driver: None,
                port_of: None,
                priorities: Some(0b1000),
                quarantined: Some(("errors".to_owned(), Duration::from_secs(1))),
                failures: vec![("einval", 1)],
                relations: Relations::default(),
            });
            let port = (kind == OfDevice::Rdma).then_some(1);
            let place = Arc::new(Place { kind, device, port });
            let own = |row: &&catalogue::Row| row.name.starts_with("rdma_") == port.is_some();
            for row in catalogue::rows().filter(own) {
                let priorities = if row.is_by_priority() { (0..8).map(Some).collect() } else { vec![None] };
                readout.series.extend(priorities.into_iter().map(|priority| Series {
                    place: Arc::clone(&place),
                    row,
                    priority,
                    value: 2_500_000,
                    saturated: row.name == "rdma_sent_packets",
                    epoch: 0,
                    source: Source::Counters,
                    at: readout.at,
                }));
            }
        }
    }
    Latest { readout, pace: Duration::from_secs(10) }
}

#[test]
fn counters_stand_under_the_catalogue_s_names_within_their_bounds() {
    for count in [0, 1, 9, 40] {
        let mut metrics = Metrics::default();
        let latest = all_counters(count);
        let text = page_of_counters(&mut metrics, &latest, count);
        let found = series(&text);
        assert!(found.len() <= 1500, "{}", found.len());
        // What has a place keeps it.
        let again = series(&page_of_counters(&mut metrics, &latest, count));
        assert_eq!(found.keys().collect::<Vec<_>>(), again.keys().collect::<Vec<_>>());
        for index in 0..count.min(9) {
            let (device, netdev) = (format!("{{device=\"mlx5_{index}\""), format!("{{netdev=\"eth{index}\""));
            let of = |label: &str, part: &str| {
                let apart = |key: &&String| ["_errors_total", "rdma_resource"].iter().any(|name| key.contains(name));
                let own = |key: &&String| key.contains(label) && !apart(key) && key.contains(part);
                found.keys().filter(own).count()
            };
            assert!(of(&device, "") <= 60 && of(&device, "rdma_received_bytes") == 1, "{}", of(&device, ""));
            // Verbs that fill the page take places from the counters' last rows, never from pause.
            assert!(of(&netdev, "") <= 32 && of(&netdev, "pfc_pause") == 4, "{}", of(&netdev, ""));
        }
    }
}

#[test]
fn pause_is_told_by_direction_for_enabled_priorities_alone() {
    let found = series(&page_of_counters(&mut Metrics::default(), &all_counters(1), 1));
    let of = |name: &str| found.keys().filter(|key| key.starts_with(name)).cloned().collect::<Vec<_>>();
    let seconds = "fabricscope_pfc_pause_seconds_total{netdev=\"eth0\",priority=\"3\",direction=";
    assert_eq!(of("fabricscope_pfc_pause_seconds_total").len(), 2);
    for direction in ["rx", "tx"] {
        assert!((found[&format!("{seconds}\"{direction}\"}}")] - 2.5).abs() < 1e-9);
    }
    assert_eq!(of("fabricscope_pfc_pause_frames_total").len(), 2);
}

#[test]
fn a_saturated_counter_is_called_so_and_has_no_value() {
    let found = series(&page_of_counters(&mut Metrics::default(), &all_counters(1), 1));
    let said = "fabricscope_counter_saturated{device=\"mlx5_0\",port=\"1\",counter=\"rdma_sent_packets\"}";
    assert!(found.contains_key(said), "{found:#?}");
    assert!(!found.keys().any(|key| key.starts_with("fabricscope_rdma_sent_packets_total")));
}

#[test]
fn what_is_read_first_takes_no_place_from_the_rest() {
    let latest = all_counters(1);
    let mut counters_first = Metrics::default();
    let expected = series(&page_of_counters(&mut counters_first, &latest, 1));
    for verb in ["create_qp", "modify_qp", "reg_mr"] {
        let calls = format!("fabricscope_verbs_calls_total{{device=\"mlx5_0\",verb=\"{verb}\"}}");
        assert!(expected.contains_key(&calls), "{expected:#?}");
    }
    let mut verbs_first = Metrics::default();
    page_of(&mut verbs_first, Some(&full(1)), &fake::hooks(), &fake::devices(1));
    let found = series(&page_of_counters(&mut verbs_first, &latest, 1));
    let other = found.keys().filter(|key| !expected.contains_key(*key)).collect::<Vec<_>>();
    assert!(found.len() == expected.len() && other.is_empty(), "{other:#?}");
}

#[test]
fn sources_that_are_read_fast_tell_their_pace_and_what_it_costs() {
    let found = series(&page_of_counters(&mut Metrics::default(), &all_counters(1), 1));
    let of = |name: &str| found[&format!("fabricscope_nic_sample_{name}{{device=\"eth0\",source=\"ethtool\"}}")];
    assert!((of("pace_seconds") - 0.002).abs() < 1e-9);
    assert!((of("readings_total") - 1000.0).abs() < 1e-9 && (of("read_seconds_total") - 0.125).abs() < 1e-9);
}

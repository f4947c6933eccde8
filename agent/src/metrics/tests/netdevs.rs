//! Network devices on the page: few series each, and what they say.

use super::*;
use crate::bursts::fake as bursts;

/// A page with these network devices on it.
pub(super) fn page_with(netdevs: u32, snapshot: Option<&Snapshot>, hooks: &[HookState], devices: &RdmaFacts) -> String {
    let names: Vec<String> = (0..netdevs).map(|index| format!("eth{index}")).collect();
    let folder = tempfile::tempdir().unwrap();
    let bursts = bursts::state(&names, UtcNs(realtime_ns()), folder.path());
    let losses = [Loss { program: "verbs", stage: "ring", reason: "no_space", count: 3 }];
    let (info, losses, bursts) = (&fake::info(), &losses[..], Some(&bursts));
    let reading = Reading {
        info,
        snapshot,
        monotonic_ns: 9_000_000_000,
        hooks,
        devices,
        bursts,
        counters: None,
        findings: &Findings::default(),
        fast: &[],
        losses,
        signatures_evicted: 0,
    };
    Metrics::default().page(&reading).unwrap()
}

#[test]
fn network_devices_have_few_series_and_bursts_are_counted() {
    for netdevs in [1, 9, 64] {
        let found = series(&page_with(netdevs, None, &[], &RdmaFacts::default()));
        let of = |name: &str| found.keys().filter(|key| key.starts_with(name)).count();
        let apart = usize::try_from(netdevs).unwrap();
        assert_eq!(of("fabricscope_netdev_bytes_total"), 2 * apart.min(limits::NETDEV_ACCOUNTS + 1));
        let each = found.keys().filter(|key| key.contains("netdev=\"eth0\"")).count();
        assert!(each <= limits::SERIES_PER_NETDEV, "{each}");
        assert!(found.len() <= limits::SERIES && found["fabricscope_metrics_series_dropped"] == 0.0);
    }
    let found = series(&page_with(1, None, &[], &RdmaFacts::default()));
    let value = |name: &str| found[&format!("fabricscope_{name}{{netdev=\"eth0\",direction=\"rx\"}}")];
    assert_eq!((value("netdev_bytes_total"), value("bursts_total")), (100_000.0, 1.0));
    assert!((value("burst_seconds_total") - 0.001).abs() < 1e-9);
    assert!((value("netdev_peak_utilisation_ratio") - 0.8).abs() < 1e-9);
    assert_eq!(found["fabricscope_netdev_buckets_lost_total{netdev=\"eth0\"}"], 3.0);
}

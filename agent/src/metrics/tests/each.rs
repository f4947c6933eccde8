//! One series of each metric, in a file that the tests of the binary hand to promtool.

use std::collections::BTreeMap;
use std::path::Path;

use super::*;
use crate::counters::catalogue;
use crate::documentation::holds;
use crate::host::sriov::VirtualFunction;

/// One of each, under its help and its type, in the order of the names.
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/metrics/tests/each.prom");

/// Pages on which together every metric stands.
fn pages() -> Vec<String> {
    // Without errors and events enough to push the last rows out.
    let snapshot = Snapshot {
        errors: full(0).errors[..4].to_vec(),
        device_events: full(0).device_events[..1].to_vec(),
        health: full(0).health[..1].to_vec(),
        napi: full(0).napi[..1].to_vec(),
        drops: full(0).drops[..1].to_vec(),
        ..full(1)
    };
    let mut devices = fake::devices(12);
    let gid = Gid { index: 3, gid: "fe80::1".parse().unwrap(), kind: Some(GidType::RoceV2), netdev: None };
    devices.devices[0].ports[0].gids = GidTable::of(vec![gid]);
    devices.devices[0].function = Some(VirtualFunction { physical: "mlx5_9".to_owned(), number: 3 });
    devices.devices[0].firmware = Some("a\"b\\c\nd".to_owned());
    let mut alone = Page::default();
    let readout = all_counters(1).readout;
    health::add_resources(&mut alone, &mut Seats::default(), &readout.resources);
    health::add_reporters(&mut alone, &mut Seats::default(), &devices, &readout.further.reporters);
    let mut catalogue = Page::default();
    for (index, row) in catalogue::rows().enumerate().filter(|(_, row)| row.metric && row.pause_metric().is_none()) {
        let labels: Vec<&str> = page::counter_labels(row).iter().map(|_| "1").collect();
        catalogue.add_counter(index, &labels, Value::Whole(1));
    }
    vec![
        netdevs::page_with(1, Some(&snapshot), &fake::hooks(), &devices),
        page_of_counters(&mut Metrics::default(), &all_counters(1), 1),
        alone.text().unwrap(),
        catalogue.text().unwrap(),
        findings::tests::every_state(),
    ]
}

/// The first series of each family; of a histogram with all its buckets.
fn one_of_each(pages: &[String]) -> String {
    let mut families = BTreeMap::new();
    for family in pages.iter().flat_map(|page| page.split("# HELP ").skip(1)) {
        let name = family.split(' ').next().unwrap();
        let count = format!("{name}_count");
        let end = family.lines().position(|line| line.starts_with(&count)).unwrap_or(2);
        let text: String = family.lines().take(end + 1).flat_map(|line| [line, "\n"]).collect();
        families.entry(name).or_insert(text);
    }
    families.into_values().flat_map(|text| ["# HELP ".to_owned(), text]).collect()
}

#[test]
fn every_metric_is_on_a_page_and_one_of_each_is_in_the_file() {
    let each = one_of_each(&pages());
    let found = series(&each);
    let named = |name: &str| found.keys().any(|key| key.split('{').next() == Some(name));
    for row in TABLE {
        let name = if row.kind == Kind::Histogram { format!("{}_bucket", row.name) } else { row.name.to_owned() };
        assert!(named(&name), "{name} is not on the page");
    }
    for row in catalogue::rows().filter(|row| row.metric) {
        assert!(named(&row.metric_name()), "{} is not on the page", row.name);
    }
    let oldest = found["fabricscope_verbs_inflight_oldest_seconds"];
    assert!((oldest - 5.0).abs() < 1e-6, "{oldest}");
    holds(Path::new(PAGE), &each);
}

//! The page against the format's rules and the bounds.

use std::collections::{BTreeMap, BTreeSet};

use agent_common::histogram::{BUCKETS, bucket};
use agent_common::record::VerbCounters;
use agent_common::verb::{VerbKey, interface};

use super::table::{Kind, TABLE};
use super::*;
use crate::daemon::fake;
use crate::health::resources::Used;
use crate::host::gid::{Gid, GidTable, GidType};
use crate::kernel::state::{HealthCount, InFlight};
use counters::{all_counters, page_of_counters};

mod counters;
mod each;
mod netdevs;

/// A page of these, as the first one.
fn page(snapshot: Option<&Snapshot>, hooks: &[HookState], devices: &RdmaFacts) -> String {
    page_of(&mut Metrics::default(), snapshot, hooks, devices)
}

fn page_of(metrics: &mut Metrics, snapshot: Option<&Snapshot>, hooks: &[HookState], devices: &RdmaFacts) -> String {
    let losses = [Loss { program: "verbs", stage: "ring", reason: "no_space", count: 3 }];
    let (info, losses) = (&fake::info(), &losses[..]);
    let counters = None;
    let reading = Reading {
        fast: &[],
        info,
        snapshot,
        monotonic_ns: 9_000_000_000,
        hooks,
        devices,
        bursts: None,
        counters,
        findings: &Findings::default(),
        losses,
        signatures_evicted: 0,
    };
    metrics.page(&reading).unwrap()
}

/// Values by series, read by the rules of the format (version 0.0.4), which are checked on the way.
fn series(page: &str) -> BTreeMap<String, f64> {
    let mut found = BTreeMap::new();
    let mut families = BTreeSet::new();
    let mut family: Option<(&str, &str)> = None;
    let mut help = None;
    assert!(page.ends_with('\n'));
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest.split_once(' ').map(|(name, _)| name);
            continue;
        }
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert_eq!(help, Some(name), "the help comes before the type");
            assert!(families.insert(name), "{name} stands in two places");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            family = Some((name, kind));
            continue;
        }
        let (key, value) = line.rsplit_once(' ').unwrap();
        let value: f64 = value.parse().unwrap_or_else(|_| panic!("no number in {line}"));
        let (name, kind) = family.expect("a family");
        let base = key.split('{').next().unwrap();
        let ending = base.strip_prefix(name).unwrap_or_else(|| panic!("{base} in the family {name}"));
        let endings: &[&str] = if kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
        assert!(endings.contains(&ending), "{line}");
        assert!(base.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_'));
        if let Some(labels) = key.strip_prefix(base).filter(|labels| !labels.is_empty()) {
            assert!(labels.starts_with('{') && labels.ends_with("\"}") && !labels.contains("=\"\""), "{line}");
        }
        assert!(value >= 0.0, "{line}");
        assert!(found.insert(key.to_owned(), value).is_none(), "{key} stands twice");
    }
    found
}

/// More of everything than can be.
fn full(devices: u32) -> Snapshot {
    let mut snapshot = Snapshot { lost: vec![1; 9], cm_events: vec![1; 17], ..Snapshot::default() };
    let counters = VerbCounters { calls: 9, failures: 3, probes: 1, duration_ns: 1_000 };
    let mut keys: Vec<VerbKey> = (0..20).flat_map(|object| (0..6).map(move |m| VerbKey::ioctl(object, m, 0))).collect();
    keys.extend((0..64).map(|command| VerbKey::legacy(interface::LEGACY_IOCTL, command)));
    keys.extend((0x1000..0x1010).flat_map(|object| (0x1000..0x1006).map(move |m| VerbKey::ioctl(object, m, 1))));
    let ucma = (0..30).map(VerbKey::ucma);
    for index in 0..=devices {
        for key in keys.iter().copied().chain(ucma.clone()) {
            snapshot.calls.push((fake::rdev(index), key, counters));
            for errno in [12, 14, 22, 4000] {
                snapshot.errors.push((fake::rdev(index), key, errno, 0, 1));
            }
        }
        for event in 0..30 {
            snapshot.device_events.push((format!("mlx5_{index}"), event % 3, event, 1));
        }
    }
    let mut counts = [0; BUCKETS];
    counts[bucket(1_000_000)] = 5;
    snapshot.durations = keys.iter().copied().chain(ucma).map(|key| (key, counts)).collect();
    let hook = Hook::all().find(|(_, hook)| hook.name == "devlink_health").map_or(0, |(number, _)| number);
    for number in 0..100 {
        let (device, part) = (format!("0000:3b:00.{number}"), "fw".to_owned());
        snapshot.health.push(HealthCount { hook, device, part, count: 1 });
        snapshot.napi.push((format!("eth{number}"), 1));
        snapshot.drops.push((format!("eth{number}"), "no_socket".to_owned(), 1));
    }
    snapshot.in_flight = vec![InFlight { pid: 1, tid: 1, key: keys[0], rdev: fake::rdev(0), start_ns: 4_000_000_000 }];
    snapshot
}

#[test]
fn the_number_of_series_is_bounded_whatever_happens() {
    for count in [0, 1, 9, 20, 64] {
        let snapshot = full(count);
        let found = series(&page(Some(&snapshot), &fake::hooks(), &fake::devices(count)));
        let most = (300 + 60 * count as usize).min(1500);
        assert!(found.len() <= most, "{} series of {count} devices, {most} allowed", found.len());
        for index in 0..count.min(20) {
            let label = format!("device=\"mlx5_{index}\"");
            // Those that have bounds of their own.
            let errors = |key: &&String| {
                let apart = ["verbs_errors_total", "health_events_total", "rdma_resource", "rdma_gid_info"];
                apart.iter().any(|name| key.starts_with(&format!("fabricscope_{name}")))
            };
            let own = found.keys().filter(|key| key.contains(&label)).filter(|key| !errors(key)).count();
            assert!(own <= 60, "{own} series of one device");
        }
        let errors = found.keys().filter(|key| key.starts_with("fabricscope_verbs_errors_total")).count();
        assert!(errors <= 128, "{errors} series of errors");
    }
}

#[test]
fn an_ordinary_host_has_room_for_everything() {
    let mut snapshot = Snapshot { lost: vec![0; 9], ..Snapshot::default() };
    let counters = VerbCounters { calls: 9, failures: 1, probes: 0, duration_ns: 1_000 };
    let verbs = [(3, 0), (3, 1), (4, 0), (4, 1), (7, 1), (7, 4), (7, 5), (0, 3), (0, 2), (1, 0)];
    for index in 0..9 {
        for (object, method) in verbs {
            snapshot.calls.push((fake::rdev(index), VerbKey::ioctl(object, method, 0), counters));
        }
    }
    snapshot.errors.push((fake::rdev(0), VerbKey::ioctl(7, 5, 0), 14, 0, 1));
    let found = series(&page(Some(&snapshot), &fake::hooks(), &fake::devices(9)));
    assert!(found["fabricscope_metrics_series_dropped"].abs() < 0.5, "{found:#?}");
}

#[test]
fn no_failure_is_lost_in_the_sums() {
    let mut metrics = Metrics::default();
    let snapshot = full(9);
    let expected: u64 = snapshot.calls.iter().map(|(_, _, counters)| counters.failures).sum();
    for _ in 0..2 {
        let found = series(&page_of(&mut metrics, Some(&snapshot), &fake::hooks(), &fake::devices(9)));
        let sum: f64 =
            found.iter().filter(|(key, _)| key.starts_with("fabricscope_verbs_failures_total")).map(|(_, v)| v).sum();
        assert!((sum - expected as f64).abs() < 0.5, "{sum} of {expected}");
        let errors: f64 =
            found.iter().filter(|(key, _)| key.starts_with("fabricscope_verbs_errors_total")).map(|(_, v)| v).sum();
        assert!((errors - snapshot.errors.len() as f64).abs() < 0.5, "{errors} of {}", snapshot.errors.len());
    }
}

#[test]
fn a_series_that_has_a_place_keeps_it() {
    let mut metrics = Metrics::default();
    let key = VerbKey::ioctl(14, 0, 0);
    let first = Snapshot {
        calls: vec![(fake::rdev(0), key, VerbCounters { calls: 1, ..VerbCounters::default() })],
        ..Snapshot::default()
    };
    let devices = fake::devices(1);
    let name = "fabricscope_verbs_calls_total{device=\"mlx5_0\",verb=\"alloc_dm\"}";
    assert!(series(&page_of(&mut metrics, Some(&first), &[], &devices)).contains_key(name));
    let found = series(&page_of(&mut metrics, Some(&full(0)), &[], &devices));
    assert!(found.contains_key(name), "{found:#?}");
    assert!(found.contains_key("fabricscope_verbs_calls_total{device=\"mlx5_0\",verb=\"other\"}"));
    // A device that is gone keeps its counts.
    assert!(series(&page_of(&mut metrics, Some(&first), &[], &fake::devices(0))).contains_key(name));
}

#[test]
fn what_was_not_measured_is_absent() {
    let hooks: Vec<_> = fake::hooks()
        .into_iter()
        .map(|hook| HookState { state: State::Waiting("no module".into()), transitions: 0, run_count: 0, ..hook })
        .collect();
    let found = series(&page(None, &hooks, &fake::devices(1)));
    for key in found.keys() {
        let measured = ["fabricscope_verbs_", "fabricscope_mr_", "fabricscope_program_"];
        assert!(!measured.iter().any(|start| key.starts_with(start)), "{key}");
    }
    assert!(found["fabricscope_hook_attached{hook=\"uverbs_ioctl\"}"].abs() < 0.5);
    assert!(
        found
            .keys()
            .any(|key| key.starts_with("fabricscope_rdma_port_info{device=\"mlx5_0\",port=\"1\",netdev=\"eth1\""))
    );
}

#[test]
fn a_hook_in_quarantine_is_told() {
    let mut hooks = fake::hooks();
    hooks[0] = HookState { state: State::Quarantined("it flaps".into()), transitions: 11, ..hooks[0].clone() };
    hooks[1].transitions = 2;
    hooks[2].transitions = 1;
    let found = series(&page(None, &hooks, &fake::devices(1)));
    let of = |index: u16| {
        let name = Hook::by_number(index).unwrap().name;
        let value = |metric| found.get(&format!("{metric}{{hook=\"{name}\"}}")).map(|value| *value as u64);
        ["fabricscope_hook_attached", "fabricscope_hook_quarantined"].map(value)
    };
    assert_eq!([of(0), of(1), of(2)], [[Some(0), Some(1)], [Some(1), Some(0)], [Some(1), None]]);
}

#[test]
fn failures_are_there_from_zero() {
    let found = series(&page(Some(&Snapshot::default()), &fake::hooks(), &fake::devices(2)));
    for device in ["mlx5_0", "mlx5_1"] {
        for verb in ["reg_mr", "modify_qp", "create_cq", "open", "mlx5.devx_obj_create", "other"] {
            let key = format!("fabricscope_verbs_failures_total{{device=\"{device}\",verb=\"{verb}\"}}");
            assert_eq!(found.get(&key).map(|value| *value as u64), Some(0), "{key}");
        }
    }
    assert!(found.contains_key("fabricscope_verbs_failures_total{verb=\"rdma_connect\"}"));
}

#[test]
fn labels_that_want_to_break_the_page_do_not() {
    let mut devices = fake::devices(1);
    devices.devices[0].firmware = Some("a\"b\\c\nd".to_owned() + &"é".repeat(200));
    let text = page(None, &fake::hooks(), &devices);
    let found = series(&text);
    let key = found.keys().find(|key| key.contains("port_info")).unwrap();
    assert!(key.contains(r#"fw="a\"b\\c\ndé"#) && key.len() < 400, "{key}");
}

#[test]
fn the_packaged_rules_name_metrics_that_exist() {
    let rules = include_str!("../../../deploy/prometheus/fabricscope.rules.yml");
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let words = rules.split(|c| !is_part(c)).filter(|word| word.starts_with("fabricscope_"));
    let named: BTreeSet<_> = words.collect();
    assert!(named.len() >= 5, "{named:?}");
    for name in named {
        assert!(TABLE.iter().any(|row| row.name == name), "{name} is no metric");
    }
}

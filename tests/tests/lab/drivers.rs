//! Every driver's hooks without its hardware: the modules are loaded, and each row whose function is there attaches.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Deserialize;
use tests::scenario::{Run, Scenario};

/// What the kernel offers is asked of the kernel: modinfo for the modules, ftrace for the functions.
pub(crate) const SCENARIO: Scenario = Scenario {
    name: "drivers",
    script: r#"for module in rdma_ucm mlx5_ib mlx4_ib bnxt_re irdma mana_ib efa hns_roce_hw_v2; do
    modinfo $module > /dev/null 2>&1 || continue
    modprobe $module && echo $module
done > $out/modules
# Built for this kernel, whose modules do not know it.
modprobe -q -a iw_cm libcrc32c; insmod $out/siw.ko && echo siw >> $out/modules
sed -n 's/^\(\S*\)\s*\[\(\S*\)\]$/\2 \1/p' /sys/kernel/tracing/available_filter_functions > $out/functions
sed 's/.*(\(.*\)).*/\1/' /sys/kernel/debug/sched/preempt > $out/preempt
fabricscope hooks --all --json > $out/all.hooks || exit 1
fabricscope hooks --json > $out/default.hooks || exit 1
fabricscope hooks --discover -o json > $out/discover.json || exit 1
# The maps of the running agent with the bytes that the kernel accounts for.
fabricscope trace verbs -o json -- sh -c "bpftool -j map list > $out/maps.json; bpftool -j map dump name HEALTH_PATHS > $out/paths.json" 2> $out/maps.words
fabricscope hooks | tail -n 1 > $out/footer
exit 0
"#,
    modules: false,
    processors: 1,
    limit: Duration::from_secs(420),
};

/// A line of `fabricscope hooks --json`.
#[derive(Debug, Deserialize)]
struct Row {
    hook: String,
    subject: String,
    layer: String,
    functions: Vec<String>,
    modules: Vec<String>,
    verified: bool,
    default: bool,
    state: String,
    attach: Option<String>,
    unless: Option<String>,
    reason: Option<String>,
}

/// A line of `fabricscope hooks --discover -o json` about a row, or about a function without one.
#[derive(Debug, Deserialize)]
struct Verdict {
    hook: Option<String>,
    verdict: Option<String>,
    reason: Option<String>,
    left_out: Option<String>,
    module: Option<String>,
    function: Option<String>,
}

/// An entry of `bpftool map dump`: bytes as text.
#[derive(Debug, Deserialize)]
struct Entry {
    value: Vec<String>,
}

/// A line of `bpftool map list`.
#[derive(Debug, Deserialize)]
struct Map {
    #[serde(default)]
    name: String,
    bytes_memlock: u64,
}

/// Functions that ftrace can take, by module, without the endings that compilers add.
fn functions(run: &Run) -> BTreeMap<String, BTreeSet<String>> {
    let text = run.output().unwrap().file("functions").unwrap();
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (module, name) in text.lines().filter_map(|line| line.split_once(' ')) {
        let name = name.split('.').next().unwrap_or_default();
        found.entry(module.to_owned()).or_default().insert(name.to_owned());
    }
    assert!(found.contains_key("ib_uverbs") && found.contains_key("mlx5_ib"), "{:?}", found.keys());
    found
}

#[track_caller]
fn attached(run: &Run, file: &str, wanted: impl Fn(&Row) -> bool) -> usize {
    let there = functions(run);
    let rows: Vec<Row> = run.lines(file).unwrap();
    let is_there = |row: &Row| {
        let has = |module: &String| {
            there.get(module).is_some_and(|names| row.functions.iter().any(|name| names.contains(name)))
        };
        row.modules.iter().any(has)
    };
    let mut count = 0;
    for row in rows.iter().filter(|row| row.verified && wanted(row)) {
        let first = row.unless.as_ref().and_then(|first| rows.iter().find(|other| other.hook == *first));
        let stands_back = first.is_some_and(|first| first.state == "attached");
        let tracepoint = row.functions.iter().any(|name| name.contains('/'));
        let expected = match (tracepoint || is_there(row), stands_back) {
            (true, false) => vec!["attached"],
            (true, true) => vec!["disabled"],
            (false, _) => vec!["unsupported", "waiting"],
        };
        assert!(expected.contains(&&*row.state), "{} on {}: {row:?}", row.hook, run.kernel());
        count += usize::from(row.state == "attached");
    }
    eprintln!("{}: {file}: {count} of {} rows attached", run.kernel(), rows.len());
    count
}

/// The types of each driver's module tell how its health functions' arguments lead to the device.
#[track_caller]
pub(crate) fn devices_of_drivers(run: &Run) {
    let entries: Vec<Entry> = serde_json::from_str(&run.output().unwrap().file("paths.json").unwrap()).unwrap();
    let rows: Vec<Row> = run.lines("all.hooks").unwrap();
    let health = |row: &Row| row.subject == "health" && row.layer == "driver" && row.state == "attached";
    let mut seen = 0;
    for (entry, row) in entries.iter().zip(&rows).filter(|(_, row)| health(row)) {
        assert_eq!(entry.value.first().map(String::as_str), Some("0x01"), "{} on {}", row.hook, run.kernel());
        seen += 1;
    }
    assert!(seen >= 9, "{seen} of {rows:?}");
}

#[track_caller]
pub(crate) fn all(run: &Run) {
    let modules = run.output().unwrap().file("modules").unwrap();
    for module in ["mlx5_ib", "mlx4_ib", "irdma", "siw"] {
        assert!(modules.lines().any(|line| line == module), "{module} is not loaded: {modules}");
    }
    let count = attached(run, "all.hooks", |_| true);
    assert!(count > 150, "{count}");
    let rows: Vec<Row> = run.lines("all.hooks").unwrap();
    for module in modules.lines() {
        let of = rows.iter().filter(|row| row.modules.iter().any(|name| name == module) && row.state == "attached");
        assert!(of.count() > 0, "no row of {module} is attached");
    }
}

#[track_caller]
pub(crate) fn default_set(run: &Run) {
    let count = attached(run, "default.hooks", |row| row.default);
    assert!(count > 60, "{count}");
    let rows: Vec<Row> = run.lines("default.hooks").unwrap();
    assert!(rows.iter().all(|row| row.default || row.state == "disabled"), "rows for sessions are attached");
}

/// A driver's module can be unloaded while the agent runs: no hook of it holds it.
#[track_caller]
pub(crate) fn drivers_are_not_held(run: &Run) {
    let rows: Vec<Row> = run.lines("all.hooks").unwrap();
    let of_driver = |row: &&Row| row.modules.iter().any(|module| module == "mlx5_ib") && row.attach.is_some();
    let held: Vec<_> = rows.iter().filter(of_driver).filter(|row| row.attach.as_deref() == Some("fexit")).collect();
    assert!(rows.iter().any(|row| of_driver(&row)) && held.is_empty(), "{held:?}");
}

/// Where the kernel preempts fexit misses runs, so that no hook uses it; elsewhere it is what costs least.
#[track_caller]
pub(crate) fn means(run: &Run) {
    let model = run.output().unwrap().file("preempt").unwrap();
    let preempts = ["full", "lazy"].contains(&model.trim());
    assert!(preempts || ["none", "voluntary"].contains(&model.trim()), "no such model: {model}");
    let rows: Vec<Row> = run.lines("all.hooks").unwrap();
    let by = |how: &str| rows.iter().filter(|row| row.attach.as_deref() == Some(how)).count();
    assert_eq!((by("fexit") > 20, by("fexit") == 0), (!preempts, preempts), "{rows:?}");
    assert!(by("kprobe") > 0);
}

/// A kprobe on a function of another type would be misread: the agent says so in the reason.
#[track_caller]
pub(crate) fn results_are_what_the_table_says(run: &Run) {
    let rows: Vec<Row> = run.lines("all.hooks").unwrap();
    for row in rows {
        let reason = row.reason.unwrap_or_default();
        assert!(!reason.contains("not what the table says"), "{}: {reason}", row.hook);
    }
}

/// Discovery on this kernel, with all modules loaded, ends in the default set.
#[track_caller]
pub(crate) fn discovery(run: &Run) {
    let lines: Vec<Verdict> = run.lines("discover.json").unwrap();
    let rows: Vec<Row> = run.lines("default.hooks").unwrap();
    let of = |verdict: &str| lines.iter().filter(|line| line.verdict.as_deref() == Some(verdict)).count();
    for line in &lines {
        assert_ne!(line.verdict.as_deref(), Some("disagrees"), "{line:?}");
        if line.hook.is_none() && line.left_out.is_some() {
            assert_ne!(line.left_out.as_deref(), Some("no row has it"), "{:?} {:?}", line.module, line.function);
        }
        if line.verdict.as_deref() == Some("by_hand") {
            assert!(line.reason.as_ref().is_some_and(|reason| !reason.is_empty()), "{line:?}");
        }
    }
    let default = rows.iter().filter(|row| row.default).count();
    assert_eq!(of("found") + of("by_hand") + of("absent"), default);
    assert!(of("found") > 50, "{}", of("found"));
}

/// What the agent says of its memory is what the kernel accounts for, rounded up. Older kernels leave out the ring and
/// what elements have beside key and value: they account for less.
#[track_caller]
pub(crate) fn memory(run: &Run) {
    let output = run.output().unwrap();
    let maps: Vec<Map> = serde_json::from_str(&output.file("maps.json").unwrap()).unwrap();
    let own = [
        "OWNERS",
        "CALLS",
        "VERBS",
        "ERRORS",
        "HISTOGRAM",
        "LOST",
        "CM_EVENTS",
        "DEVICE_EVENTS",
        "QPS",
        "EVENTS",
        "HEALTH",
        "NAPI",
        "DROPS",
    ];
    let of = |name: &str| maps.iter().find(|map| map.name == name).map(|map| map.bytes_memlock);
    let bytes: Option<Vec<u64>> = own.iter().map(|name| of(name)).collect();
    let accounted: u64 = bytes.expect("every map is there").iter().sum();
    let footer = output.file("footer").unwrap();
    let said: u64 = footer.split_whitespace().nth(5).and_then(|word| word.parse().ok()).unwrap_or_default();
    assert!(accounted.div_ceil(1 << 20) <= said, "{accounted} bytes: {footer}");
    let in_full = of("EVENTS").is_some_and(|bytes| bytes > 0);
    assert!(!in_full || accounted.div_ceil(1 << 20) == said, "{accounted} bytes: {footer}");
}

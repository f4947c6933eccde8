//! Sample files: what is written comes back, and what is no sample file says so.

use std::fs;

use analysis::series::{BitsPerSecond, DurationNs, Fields, Roce, Sample, Series, Sketch, Span, Traffic, UtcNs};
use proptest::prelude::*;

use super::*;

/// The series in these bytes.
fn decode(bytes: Vec<u8>) -> Result<Series, Fault> {
    match super::decode(bytes)? {
        Kept::Traffic(series) => Ok(series),
        Kept::Counters(_) => panic!("these are counters"),
    }
}

const MAX: u64 = i64::MAX as u64;

prop_compose! {
    fn traffic()(
        numbers in prop::array::uniform6(prop_oneof![Just(0), 0..100_000u64, 0..=MAX]),
        roce in prop::array::uniform6(any::<u32>()),
        flows in any::<u128>(),
    ) -> Traffic {
        let [bytes, packets, ce_bytes, retransmit_bytes, cross_region_bytes, roce_bytes] = numbers;
        let [packets_of_roce, cnps, nak_sequence, nak_rnr, nak_other, retries] = roce;
        Traffic {
            bytes, packets, ce_bytes, retransmit_bytes, cross_region_bytes, flows: Sketch(flows),
            roce: Roce { bytes: roce_bytes, packets: packets_of_roce, cnps, nak_sequence, nak_rnr, nak_other, retries },
            napi_exhausted: retries,
        }
    }
}

prop_compose! {
    fn fields()(bits in prop::array::uniform8(any::<bool>())) -> Fields {
        let [packets, ce, retransmits_tx, retransmits_rx, regions, flows, roce, napi] = bits;
        Fields { packets, ce, retransmits_tx, retransmits_rx, regions, flows, roce, napi }
    }
}

prop_compose! {
    fn series()(
        fields in fields(),
        host in ".{0,12}",
        boot_id in "[0-9a-f-]{0,36}",
        first in any::<i32>(),
        steps in prop::collection::vec((1..10_000_000u64, 0..=MAX, traffic(), traffic()), 0..300),
        rate in prop::option::of(any::<u64>()),
        error in prop::option::of(any::<u64>()),
        lost in any::<u64>(),
    ) -> Series {
        let mut time = i64::from(first) * 1_000_000_000;
        let mut samples = Vec::new();
        for (step, length, rx, tx) in steps {
            time += step as i64;
            let mut sample = Sample { start: UtcNs(time), length: DurationNs(length), rx, tx };
            only_measured(&mut sample, &fields);
            samples.push(sample);
        }
        let covered = vec![Span { start: UtcNs(i64::MIN), end: UtcNs(-1) }, Span { start: UtcNs(0), end: UtcNs(time.max(1)) }];
        Series {
            rack: host.chars().rev().collect(), host, boot_id, netdev: "eth0".to_owned(), interval: DurationNs(1_000_000), line_rate: rate.map(BitsPerSecond),
            clock_error: error.map(DurationNs), fields, samples, covered, lost,
        }
    }
}

/// What is not measured is 0 in memory.
fn only_measured(sample: &mut Sample, fields: &Fields) {
    let (rx, tx) = (fields.retransmits_rx, fields.retransmits_tx);
    for (traffic, retransmits) in [(&mut sample.rx, rx), (&mut sample.tx, tx)] {
        let keep = |measured: bool, number: &mut u64| *number *= u64::from(measured);
        keep(fields.packets, &mut traffic.packets);
        keep(fields.ce, &mut traffic.ce_bytes);
        keep(retransmits, &mut traffic.retransmit_bytes);
        keep(fields.regions, &mut traffic.cross_region_bytes);
        traffic.flows.0 *= u128::from(fields.flows);
        if !fields.roce {
            traffic.roce = Roce::default();
        }
    }
    sample.rx.napi_exhausted *= u32::from(fields.napi);
    sample.tx.napi_exhausted = 0;
}

/// A thousand samples of a millisecond that begin with the year 2026.
fn steady(fields: Fields) -> Series {
    let start = 1_767_225_600_000_000_000;
    let sample = |index: i64| {
        let rx = Traffic {
            bytes: 1500 * index as u64,
            packets: index as u64,
            flows: Sketch(1 << (index % 64)),
            ..Traffic::default()
        };
        let mut sample = Sample { start: UtcNs(start + 1_000_000 * index), length: DurationNs(1_000_000), rx, tx: rx };
        only_measured(&mut sample, &fields);
        sample
    };
    Series {
        host: "gpu-0042".to_owned(),
        netdev: "eth0".to_owned(),
        interval: DurationNs(1_000_000),
        line_rate: Some(BitsPerSecond(100_000_000_000)),
        fields,
        samples: (1..1000).map(sample).collect(),
        covered: vec![Span { start: UtcNs(start), end: UtcNs(start + 1_000_000_000) }],
        ..Series::default()
    }
}

const ALL: Fields = Fields {
    packets: true,
    ce: true,
    retransmits_tx: true,
    retransmits_rx: true,
    regions: true,
    flows: true,
    roce: true,
    napi: true,
};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_comes_back(series in series()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.parquet");
        let written = write(&path, &series).unwrap();
        prop_assert_eq!(written.samples, series.samples.len() as u64);
        prop_assert_eq!(written.bytes, fs::metadata(&path).unwrap().len());
        prop_assert_eq!(read(&path).unwrap(), series);
        prop_assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    /// Nothing that a disk or a hand may do to a file ends the program.
    #[test]
    fn damage_is_an_error_or_other_samples(places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
        let mut bytes = encode(&steady(ALL)).unwrap();
        // Data make most of a file: half of the places lie in what describes them.
        let tail = bytes.len().min(7000);
        for (number, (place, value)) in places.iter().enumerate() {
            let from = if number % 2 == 0 { bytes.len() - tail } else { 0 };
            let length = bytes.len() - from;
            bytes[from + place.index(length)] = *value;
        }
        let _ = decode(bytes);
    }
}

#[test]
fn a_file_that_is_cut_short_says_so_wherever_it_was_cut() {
    let bytes = encode(&steady(ALL)).unwrap();
    for length in (4..bytes.len()).step_by(97) {
        assert_eq!(decode(bytes[..length].to_vec()), Err(Fault::Truncated), "{length}");
    }
    // A file system that lost the middle leaves the end.
    for start in (4..bytes.len() - 4).step_by(97) {
        let mut bytes = bytes.clone();
        bytes.drain(4..start);
        if start > 4 {
            assert!(decode(bytes).is_err(), "{start}");
        }
    }
}

#[test]
fn what_is_not_measured_is_null_and_what_is_idle_takes_no_row() {
    let all = encode(&steady(ALL)).unwrap();
    let none = encode(&steady(Fields::default())).unwrap();
    let read = decode(none.clone()).unwrap();
    assert_eq!((read.fields, read.samples.len()), (Fields::default(), 999));
    assert!(none.len() < all.len());
}

#[test]
fn each_mistake_has_its_own_words() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.parquet");
    let good = encode(&steady(ALL)).unwrap();
    let patched = |old: &str, new: &str| {
        let mut bytes = good.clone();
        let found: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(old.as_bytes())).collect();
        assert!(!found.is_empty(), "{old}");
        for at in found {
            bytes[at..at + old.len()].copy_from_slice(new.as_bytes());
        }
        bytes
    };
    let rows: [(Vec<u8>, &str); 9] = [
        (b"".to_vec(), "is no sample file: it is empty"),
        (b"\x7fELF and so on".to_vec(), "is no sample file: it is neither Parquet nor the JSON"),
        (b"PAR1".to_vec(), "is cut short"),
        (good[..good.len() - 1].to_vec(), "is cut short"),
        (
            patched("fabricscope.schema", "fabricscope.scheme"),
            "is no sample file: it is Parquet that another program wrote",
        ),
        (patched("tx_roce_retries", "tx_roce_retired"), "is damaged: its column tx_roce_retries is missing"),
        (patched("\"lost\":0", "\"lost\":x"), "is damaged: its metadata"),
        (b"{\"a\": 1}".to_vec(), "is no sample file: as the JSON of Millisampler: missing field `server_hostname`"),
        (b"{\"server_hostname\": \"a\", \"ingressBytes\": [1".to_vec(), "is damaged: its JSON ends too early"),
    ];
    for (bytes, expected) in rows {
        fs::write(&path, &bytes).unwrap();
        let error = read(&path).unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("x.parquet"), "{error}, not {expected}");
    }
    let missing = folder.path().join("missing");
    assert!(read(&missing).unwrap_err().to_string().starts_with("cannot read"));
    let whole = format!("{:#}", anyhow::Error::new(read(&missing).unwrap_err()));
    assert_eq!(whole.matches("No such file").count(), 1, "{whole}");
    assert!(read(folder.path()).unwrap_err().to_string().starts_with("cannot read"));
    let nowhere = write(&missing.join("x"), &steady(ALL)).unwrap_err().to_string();
    assert!(nowhere.starts_with("cannot make a file beside"), "{nowhere}");
}

#[test]
fn another_version_is_told_from_damage() {
    let mut bytes = encode(&steady(ALL)).unwrap();
    let key = b"fabricscope.schema";
    let at = (0..bytes.len()).find(|at| bytes[*at..].starts_with(key)).unwrap() + key.len();
    let digit = at + bytes[at..].iter().position(|byte| *byte == b'1').unwrap();
    bytes[digit] = b'7';
    assert_eq!(decode(bytes), Err(Fault::Schema("7".to_owned())));
}

#[test]
fn a_full_disk_is_told_from_other_errors() {
    let error = write(Path::new("/dev/full"), &steady(ALL)).unwrap_err();
    assert!(matches!(error, FileError::Full { .. }), "{error}");
    assert!(error.to_string().starts_with("no room for /dev/full"), "{error}");
    // A device stays what it is.
    assert!(!fs::metadata("/dev/full").unwrap().is_file());
}

#[test]
fn a_file_that_stood_there_is_replaced_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x");
    fs::write(&path, "before").unwrap();
    write(&path, &steady(ALL)).unwrap();
    assert_eq!(read(&path).unwrap(), steady(ALL));
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o600, 0o600);
}

#[track_caller]
fn through(format: Format, series: &Series) -> Series {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x");
    write_as(&path, series, format).unwrap();
    read(&path).unwrap()
}

#[test]
fn the_layout_of_millisampler_keeps_what_it_has_a_place_for() {
    let fields = Fields { ce: true, retransmits_tx: true, retransmits_rx: true, flows: true, ..Fields::default() };
    let mut before = steady(fields);
    // One number of flows for both directions, by which bits none can say.
    for sample in &mut before.samples {
        sample.rx.flows = Sketch((1 << (sample.start.0 / 1_000_000 % 100)) - 1);
        sample.tx.flows = sample.rx.flows;
        sample.tx.ce_bytes = 0;
    }
    assert_eq!(through(Format::Json, &before), before);
    assert_eq!(through(Format::JsonPacked, &before), before);
    before.rack = "3".to_owned();
    assert_eq!(through(Format::Json, &before), before);
    // What is not measured is absent, and stays so.
    let bytes = through(Format::Json, &steady(Fields::default()));
    assert_eq!(bytes, steady(Fields::default()));
}

#[test]
fn a_file_of_the_data_set_is_read() {
    let text = r#"{"server_hostname": 17, "rack_id": 3, "sampling_freq": 1, "unknown": {"a": [1]},
        "ingressBytes": [0, 10, 0, 30], "egressBytes": [0, 0, 0, 7], "inRxmitBytes": [0, 0, 0, 5], "outRxmitBytes": [],
        "inCongestionExperiencedBytes": [0, 10, 0, 0], "connections": [0, 2, 0, 40],
        "burst_result": {"ingress": {"1600000000000000": [{"Position": 3, "Length": 1}]}}}"#;
    let series = decode(text.as_bytes().to_vec()).unwrap();
    let start = UtcNs(1_600_000_000_000_000_000);
    assert_eq!((&*series.host, &*series.rack, series.interval), ("17", "3", DurationNs(1_000_000)));
    // By samples a second, or as an interval in milliseconds.
    for (given, ns) in
        [("1000", 1_000_000), ("10000", 100_000), ("100", 10_000_000), ("0.1", 100_000), ("10", 10_000_000)]
    {
        let text = text.replace("\"sampling_freq\": 1,", &format!("\"sampling_freq\": {given},"));
        assert_eq!(decode(text.into_bytes()).unwrap().interval, DurationNs(ns), "{given}");
    }
    assert_eq!(series.covered, [Span { start, end: start.after(DurationNs(4_000_000)) }]);
    let expected = Fields { ce: true, retransmits_rx: true, flows: true, ..Fields::default() };
    assert_eq!(series.fields, expected);
    let found: Vec<_> =
        series.samples.iter().map(|s| (s.start.since(start).0, s.rx.bytes, s.tx.bytes, s.rx.ce_bytes)).collect();
    assert_eq!(found, [(1_000_000, 10, 0, 10), (3_000_000, 30, 7, 0)]);
    let flows: Vec<i32> = series.samples.iter().map(|s| encode::estimate(s.rx.flows)).collect();
    assert_eq!(flows, [2, 40]);
}

#[test]
fn what_is_written_has_the_keys_that_readers_of_the_data_set_know() {
    let mut series = steady(Fields { flows: true, ..Fields::default() });
    let start = series.covered[0].start;
    series.covered.truncate(1);
    series.line_rate = Some(BitsPerSecond(8_000_000_000));
    series.interval = DurationNs(1_000_000);
    series.rack = "17".to_owned();
    let sample = |at: u64, bytes: u64| {
        let rx = Traffic { bytes, flows: Sketch(0b11), ..Traffic::default() };
        Sample {
            start: start.after(DurationNs(at * 1_000_000)),
            length: DurationNs(1_000_000),
            rx,
            ..Sample::default()
        }
    };
    series.covered[0].end = start.after(DurationNs(10_000_000));
    series.samples = [(1, 100), (3, 600_000), (4, 900_000), (7, 1_000_000)].map(|(at, bytes)| sample(at, bytes)).into();
    let written =
        |series: &Series| -> serde_json::Value { serde_json::from_slice(&json::to_json(series).unwrap()).unwrap() };
    let found = written(&series);
    assert_eq!((&found["rack_id"], &found["sampling_freq"]), (&17.into(), &1000.0.into()));
    let bursts = &found["burst_result"]["ingress"][(start.0 / 1000).to_string()];
    let expected = serde_json::json!([
        {"Position": 3, "Length": 2, "ingressMax": 900_000, "maxConnections": 2},
        {"Position": 7, "Length": 1, "ingressMax": 1_000_000, "maxConnections": 2},
    ]);
    assert_eq!(bursts, &expected);
    // Without a line rate there is no telling, and without a rack none is named.
    (series.line_rate, series.rack) = (None, "a 17".to_owned());
    let found = written(&series);
    assert_eq!((found.get("burst_result"), &found["rack_id"]), (None, &"a 17".into()));
    series.rack.clear();
    assert!(written(&series).get("rack_id").is_none());
}

#[test]
fn what_the_layout_cannot_say_is_refused_both_ways() {
    let refused = |text: &str| decode(text.as_bytes().to_vec()).unwrap_err().of(Path::new("x")).to_string();
    let rows = [
        (r#"{"server_hostname": "a", "egressBytes": [1]}"#, "it lacks ingressBytes"),
        (
            r#"{"server_hostname": "a", "ingressBytes": [1], "egressBytes": [1], "sampling_freq": 3}"#,
            "its sampling_freq is 3, not 100, 1000 or 10000 samples a second",
        ),
        (r#"{"server_hostname": "a", "ingressBytes": [-1], "egressBytes": [1]}"#, "invalid value: integer `-1`"),
        (r#"{"server_hostname": "a", "ingressBytes": 1}"#, "invalid type"),
    ];
    for (text, expected) in rows {
        assert!(refused(text).contains(expected), "{}", refused(text));
    }
    let mut series = steady(ALL);
    series.covered.push(Span { start: UtcNs(i64::MAX - 1), end: UtcNs(i64::MAX) });
    let folder = tempfile::tempdir().unwrap();
    let error = write_as(&folder.path().join("x"), &series, Format::Json).unwrap_err().to_string();
    assert!(error.contains("in 2 spans of time"), "{error}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_small_file_that_unpacks_to_a_large_one_is_refused() {
    let packed = json::pack(&vec![b' '; limits::SAMPLE_FILE_BYTES + 1]).unwrap();
    assert!(packed.len() < 1 << 20);
    assert!(matches!(decode(packed), Err(Fault::TooLarge(..))));
}

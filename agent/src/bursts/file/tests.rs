//! Sample files: what is written comes back, and what is no sample file says so.

use std::fs;

use analysis::series::{
    BitsPerSecond, DurationNs, Fields, Measured, Roce, Sample, Series, Sketch, Span, Traffic, UtcNs,
};
use proptest::prelude::*;

use super::*;

mod millisampler;

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
    fn measured()(bits in prop::array::uniform8(any::<bool>())) -> Measured {
        let [bytes, packets, ce, retransmits, regions, flows, roce, napi] = bits;
        Measured { bytes, packets, ce, retransmits, regions, flows, roce, napi }
    }
}

prop_compose! {
    /// Both directions alike or each for itself.
    fn fields()(rx in measured(), tx in prop::option::of(measured())) -> Fields {
        Fields { rx, tx: Measured { napi: false, ..tx.unwrap_or(rx) } }
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
    for (traffic, measured) in [(&mut sample.rx, fields.rx), (&mut sample.tx, fields.tx)] {
        let keep = |measured: bool, number: &mut u64| *number *= u64::from(measured);
        keep(measured.bytes, &mut traffic.bytes);
        keep(measured.packets, &mut traffic.packets);
        keep(measured.ce, &mut traffic.ce_bytes);
        keep(measured.retransmits, &mut traffic.retransmit_bytes);
        keep(measured.regions, &mut traffic.cross_region_bytes);
        traffic.flows.0 *= u128::from(measured.flows);
        if !measured.roce {
            traffic.roce = Roce::default();
        }
        traffic.napi_exhausted *= u32::from(measured.napi);
    }
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

const ALL: Fields = {
    let tx = Measured {
        bytes: true,
        packets: true,
        ce: true,
        retransmits: true,
        regions: true,
        flows: true,
        roce: true,
        napi: false,
    };
    Fields { rx: Measured { napi: true, ..tx }, tx }
};

const BYTES: Fields = Fields::both(Measured::BYTES);

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
    let bytes = encode(&steady(BYTES)).unwrap();
    let read = decode(bytes.clone()).unwrap();
    assert_eq!((read.fields, read.samples.len()), (BYTES, 999));
    assert!(bytes.len() < all.len());
}

/// Before directions were told apart, `fields` alone said what is measured, and bytes always were.
#[test]
fn metadata_of_old_files_mean_both_directions() {
    let text = r#"{"host": "a", "netdev": "b", "interval_ns": 1, "covered": [], "lost": 0,
        "fields": ["packets", "ce", "retransmits_tx", "napi", "of a later version"]}"#;
    let meta: meta::Meta = serde_json::from_str(text).unwrap();
    let tx = Measured { packets: true, ce: true, retransmits: true, ..Measured::BYTES };
    let rx = Measured { retransmits: false, napi: true, ..tx };
    assert_eq!(meta.series().unwrap().fields, Fields { rx, tx });
    // What both have is written as it was, and what one lacks is named.
    let one = Series { fields: Fields { rx, tx: Measured { ce: true, ..Measured::NOTHING } }, ..Series::default() };
    let written = serde_json::to_value(meta::Meta::of(&one)).unwrap();
    assert_eq!(written["fields"], serde_json::json!(["packets", "ce", "napi"]));
    assert_eq!(written["without"], serde_json::json!(["tx_bytes", "tx_packets"]));
    let both = serde_json::to_value(meta::Meta::of(&steady(ALL))).unwrap();
    assert_eq!((both["fields"].as_array().unwrap().len(), both.get("without")), (8, None));
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

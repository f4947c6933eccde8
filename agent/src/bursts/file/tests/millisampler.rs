//! The JSON of the public data set: what it holds is read, and what is written comes back.

use super::*;

#[track_caller]
fn through(format: Format, series: &Series) -> Series {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x");
    write_as(&path, series, format).unwrap();
    read(&path).unwrap()
}

#[test]
fn the_layout_of_millisampler_keeps_what_it_has_a_place_for() {
    let mut before = steady(ALL);
    assert_eq!(through(Format::Json, &before), before);
    assert_eq!(through(Format::JsonPacked, &before), before);
    before.rack = "3".to_owned();
    assert_eq!(through(Format::Json, &before), before);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Samples on the grid of their interval, which is all that the layout has room for.
    #[test]
    fn whatever_is_measured_comes_back_through_json(
        fields in fields(),
        all in prop::collection::vec((0..3_i64, traffic(), traffic()), 1..50),
    ) {
        let (start, interval) = (UtcNs(1_767_225_600_000_000_000), DurationNs(1_000_000));
        let mut series = Series { host: "a".to_owned(), interval, fields, ..Series::default() };
        let mut end = start;
        for (idle, rx, tx) in all {
            let mut sample =
                Sample { start: UtcNs(end.0 + idle * 1_000_000), length: interval, rx, tx };
            only_measured(&mut sample, &fields);
            end = sample.end();
            // Samples in which nothing passed may be left out.
            if (sample.rx, sample.tx) != (Traffic::default(), Traffic::default()) {
                series.samples.push(sample);
            }
        }
        series.covered = vec![Span { start, end }];
        let text = json::to_json(&series).unwrap();
        if fields.rx.bytes || fields.tx.bytes || !series.samples.is_empty() {
            prop_assert_eq!(decode(text).unwrap(), series);
        }
    }
}

/// By an earlier version, which kept metadata alone: what the layout has no place for is gone, and so not measured.
#[test]
fn a_file_without_columns_has_what_the_layout_has() {
    let mut value: serde_json::Value = serde_json::from_slice(&json::to_json(&steady(ALL)).unwrap()).unwrap();
    value["fabricscope"].as_object_mut().unwrap().remove("columns").unwrap();
    let read = decode(value.to_string().into_bytes()).unwrap();
    let tx = Measured { retransmits: true, flows: true, ..Measured::BYTES };
    assert_eq!(read.fields, Fields { rx: Measured { ce: true, ..tx }, tx });
    assert_eq!(read.samples[7].tx.bytes, steady(ALL).samples[7].tx.bytes);
    // An array that someone took out is not 0.
    value.as_object_mut().unwrap().remove("egressBytes").unwrap();
    assert!(!decode(value.to_string().into_bytes()).unwrap().fields.tx.bytes);
    value["fabricscope"]["columns"] = serde_json::json!({"rx_flows_sketch": ["x"]});
    let error = decode(value.to_string().into_bytes()).unwrap_err();
    assert_eq!(error, Fault::Damaged("its column rx_flows_sketch holds what is no such value".to_owned()));
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
    let tx = Measured { flows: true, ..Measured::BYTES };
    assert_eq!(series.fields, Fields { rx: Measured { ce: true, retransmits: true, ..tx }, tx });
    let found: Vec<_> =
        series.samples.iter().map(|s| (s.start.since(start).0, s.rx.bytes, s.tx.bytes, s.rx.ce_bytes)).collect();
    assert_eq!(found, [(1_000_000, 10, 0, 10), (3_000_000, 30, 7, 0)]);
    let flows: Vec<i32> = series.samples.iter().map(|s| encode::estimate(s.rx.flows)).collect();
    assert_eq!(flows, [2, 40]);
}

#[test]
fn a_direction_that_a_file_lacks_was_not_measured() {
    let of = |arrays: &str| {
        decode(format!(r#"{{"server_hostname": "a", "sampling_freq": 1000, {arrays}}}"#).into_bytes()).unwrap()
    };
    let flows = Measured { flows: true, ..Measured::NOTHING };
    let rows = [
        (r#""egressBytes": [0, 7], "connections": [1, 2]"#, Measured::NOTHING, Measured { bytes: true, ..flows }),
        (r#""ingressBytes": [5, 0], "egressBytes": []"#, Measured::BYTES, Measured::NOTHING),
        (
            r#""inCongestionExperiencedBytes": [5, 0], "outRxmitBytes": [1, 1]"#,
            Measured { ce: true, ..Measured::NOTHING },
            Measured { retransmits: true, ..Measured::NOTHING },
        ),
        (r#""connections": [3, 0]"#, flows, flows),
    ];
    for (arrays, rx, tx) in rows {
        let series = of(arrays);
        assert_eq!(series.fields, Fields { rx, tx }, "{arrays}");
        for sample in &series.samples {
            let mut kept = *sample;
            only_measured(&mut kept, &series.fields);
            assert_eq!(kept, *sample, "{arrays}");
        }
        for format in [Format::Json, Format::JsonPacked, Format::Parquet] {
            assert_eq!(through(format, &series), series, "{arrays}");
        }
    }
    let written: serde_json::Value =
        serde_json::from_slice(&json::to_json(&of(r#""egressBytes": [0, 7]"#)).unwrap()).unwrap();
    assert_eq!((written.get("ingressBytes"), &written["egressBytes"]), (None, &serde_json::json!([0, 7])));
}

#[test]
fn what_is_written_has_the_keys_that_readers_of_the_data_set_know() {
    let measured = Measured { flows: true, ce: true, retransmits: true, ..Measured::BYTES };
    let mut series = steady(Fields::both(measured));
    let start = series.covered[0].start;
    series.covered.truncate(1);
    series.line_rate = Some(BitsPerSecond(8_000_000_000));
    series.interval = DurationNs(1_000_000);
    series.rack = "17".to_owned();
    let sample = |at: u64, bytes: u64| {
        let (flows, ce_bytes) = (Sketch((1 << at) - 1), bytes / 2);
        let rx = Traffic { bytes, flows, ce_bytes, retransmit_bytes: 3, ..Traffic::default() };
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
        {
            "Position": 3, "Length": 2, "ingressMax": 900_000, "ingressVol": 1_500_000, "ecnVol": 750_000,
            "ingressRetxVol": 6, "maxConnections": 4, "avgConnections": 3.5,
        },
        {
            "Position": 7, "Length": 1, "ingressMax": 1_000_000, "ingressVol": 1_000_000, "ecnVol": 500_000,
            "ingressRetxVol": 3, "maxConnections": 7, "avgConnections": 7.0,
        },
    ]);
    assert_eq!(bursts, &expected);
    // What is not measured is absent.
    series.fields = BYTES;
    let found = written(&series);
    let bursts = &found["burst_result"]["ingress"][(start.0 / 1000).to_string()];
    let expected = serde_json::json!(
        {"Position": 3, "Length": 2, "ingressMax": 900_000, "ingressVol": 1_500_000});
    assert_eq!(bursts[0], expected);
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
        (r#"{"server_hostname": "a", "egressBytes": []}"#, "it has none of the arrays ingressBytes, egressBytes"),
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

//! Sample files: other programs read what this one writes, and what is no sample file is refused in words.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tests::command::fabricscope;
use tests::duckdb;

use crate::program::{FAILED, Scratch, USAGE, end, is_root, refused, says_why, start, text_of};

/// A file of the public data set: as many samples, of which each third is idle.
fn data_set(count: u64) -> String {
    let column =
        |value: fn(u64) -> u64| (0..count).map(|at| if at % 3 == 0 { 0 } else { value(at) }).collect::<Vec<_>>();
    json!({
        "server_hostname": "host 17, \"rack\" 3",
        "rack_id": 3,
        "sampling_freq": 1000,
        "ingressBytes": column(|at| at * 1000),
        "egressBytes": column(|at| at),
        "inCongestionExperiencedBytes": column(|at| at * 500),
        "connections": column(|at| at % 40),
        "burst_result": {"ingress": {"1767225600000000": []}},
    })
    .to_string()
}

fn convert(from: &str, to: &str) {
    let seen = start(&["bursts", "convert", from, to]);
    assert_eq!(seen.status.code(), Some(0), "{}", seen.stderr);
}

#[test]
fn duckdb_reads_a_sample_file_as_it_is() {
    let scratch = Scratch::new();
    let (source, file) = (scratch.file("source.json", &data_set(3000)), text_of(&scratch.inside("x.parquet")));
    convert(&source, &file);
    let rows = [
        (
            "count(*), min(host), sum(rx_bytes), sum(tx_bytes), sum(rx_ce_bytes), count(rx_packets), count(tx_retransmit_bytes)",
            json!([2000, "host 17, \"rack\" 3", 3_000_000_000_u64, 3_000_000, 1_500_000_000, 0, 0]),
        ),
        (
            "min(time)::varchar, count(distinct length_ns), min(length_ns)",
            json!(["2026-01-01 00:00:00.001+00", 1, 1_000_000]),
        ),
        (
            "min(rx_flows), max(octet_length(rx_flows_sketch)), sum(abs(rx_flows - rx_bytes / 1000 % 40) > 1)",
            json!([0, 16, 0]),
        ),
        ("typeof(min(time)), typeof(min(rx_bytes))", json!(["TIMESTAMPTZ_NS", "BIGINT"])),
    ];
    for (columns, expected) in rows {
        let found = duckdb::query(&format!("select {columns} from '{file}'")).unwrap();
        assert_eq!(found, [expected], "{columns}");
    }
    let metadata =
        format!("select decode(value) from parquet_kv_metadata('{file}') where key::varchar = 'fabricscope'");
    let found = duckdb::query(&metadata).unwrap();
    let metadata: Value = serde_json::from_str(found[0][0].as_str().unwrap()).unwrap();
    let start = 1_767_225_600_000_000_000_u64;
    assert_eq!(metadata["covered"], json!([[start, start + 3_000_000_000]]));
    assert_eq!(metadata["fields"], json!(["ce", "flows"]));
}

#[test]
fn what_is_converted_to_and_fro_is_the_same() {
    let scratch = Scratch::new();
    let source = scratch.file("source", &data_set(300));
    let inside = |name: &str| text_of(&scratch.inside(name));
    convert(&source, &inside("a.parquet"));
    convert(&inside("a.parquet"), &inside("b.txt.gz"));
    convert(&inside("b.txt.gz"), &inside("c.json"));
    convert(&inside("c.json"), &inside("d.parquet"));
    assert_eq!(fs::read(inside("a.parquet")).unwrap(), fs::read(inside("d.parquet")).unwrap());
    convert(&inside("d.parquet"), &inside("e.csv"));
    let text = fs::read_to_string(inside("e.csv")).unwrap();
    let mut lines = text.lines();
    assert!(lines.next().unwrap().starts_with("host,netdev,time,length_ns,rx_bytes,"));
    assert!(
        lines.next().unwrap().starts_with("\"host 17, \"\"rack\"\" 3\",,2026-01-01T00:00:00.001000000Z,1000000,1000,")
    );
    assert_eq!(lines.count(), 199);
    // What was read before is what was written, whatever stood there.
    let arrays: Value = serde_json::from_str(&fs::read_to_string(inside("c.json")).unwrap()).unwrap();
    let source: Value = serde_json::from_str(&data_set(300)).unwrap();
    for key in
        ["ingressBytes", "egressBytes", "inCongestionExperiencedBytes", "sampling_freq", "server_hostname", "rack_id"]
    {
        let number = |value: &Value| value.as_f64().map_or_else(|| value.clone(), |number| json!(number));
        assert_eq!(number(&arrays[key]), number(&source[key]), "{key}");
    }
    assert!(arrays.get("outRxmitBytes").is_none(), "what was not measured is absent");
}

/// As some files of the public data set are.
#[test]
fn a_file_without_what_was_received_tells_of_what_was_sent() {
    let scratch = Scratch::new();
    let mut source: Value = serde_json::from_str(&data_set(300)).unwrap();
    source.as_object_mut().unwrap().remove("ingressBytes").unwrap();
    let source = scratch.file("half.json", &source.to_string());
    let (file, picture) = (text_of(&scratch.inside("x.parquet")), text_of(&scratch.inside("x.svg")));
    convert(&source, &file);
    let columns = "count(*), count(rx_bytes), sum(tx_bytes), sum(rx_ce_bytes), count(tx_ce_bytes), count(rx_flows)";
    let found = duckdb::query(&format!("select {columns} from '{file}'")).unwrap();
    assert_eq!(found, [json!([200, 0, 30_000, 15_000_000, 0, 0])]);
    for file in [&source, &file] {
        let seen = start(&["bursts", "show", file, "--line-rate", "1Mbit", "--plot", "--svg", &picture]);
        assert_eq!(seen.status.code(), Some(0), "{}", seen.stderr);
        for words in [
            "\nrx         bytes not measured, ECN 15 MB\n",
            "\nbursts rx  cannot tell: rx bytes were not measured\n",
            "\nrx: bytes were not measured\n",
        ] {
            assert!(seen.stdout.contains(words), "{words}: {}", seen.stdout);
        }
        assert!(fs::read_to_string(&picture).unwrap().contains("rx bytes were not measured"));
        let shown = start(&["bursts", "show", file, "--line-rate", "1Mbit", "-o", "json"]);
        let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
        assert_eq!((shown["rx"].get("bytes"), &shown["tx"]["bytes"]), (None, &json!(30_000)));
        assert!(shown["tx"]["bursts"].as_u64().unwrap() > 0);
    }
    let mut other: Value = serde_json::from_str(&data_set(300)).unwrap();
    other["server_hostname"] = json!("other");
    let other = scratch.file("other.json", &other.to_string());
    let refusal = ["rx bytes were not measured", "--direction tx"];
    refused(&["bursts", "compare", &source, &other, "--line-rate", "1Mbit"], FAILED, &refusal);
}

#[test]
fn what_is_no_sample_file_is_refused_in_words() {
    let scratch = Scratch::new();
    let output = text_of(&scratch.inside("out.parquet"));
    let good = scratch.file("good.json", &data_set(30));
    let whole = text_of(&scratch.inside("whole.parquet"));
    convert(&good, &whole);
    let bytes = fs::read(&whole).unwrap();
    fs::write(scratch.inside("cut"), &bytes[..bytes.len() / 2]).unwrap();
    fs::write(scratch.inside("binary"), fs::read(fabricscope()).unwrap().get(..4096).unwrap()).unwrap();
    scratch.file("empty", "");
    scratch.file("other.json", "{\"a\": 1}");
    let rows = [
        ("cut", "is cut short"),
        ("binary", "is no sample file"),
        ("empty", "is no sample file: it is empty"),
        ("other.json", "is no sample file: as the JSON of Millisampler"),
        ("missing", "cannot read"),
    ];
    for (name, says) in rows {
        let path = text_of(&scratch.inside(name));
        refused(&["bursts", "convert", &path, &output], FAILED, &[says, &path]);
        assert!(!Path::new(&output).exists());
    }
    refused(&["bursts", "convert", &good, "out.xml"], USAGE, &[".parquet", ".csv"]);
    refused(&["bursts", "convert", &good], USAGE, &["OUTPUT"]);
}

/// A file system of its own that is too small: nothing of the rest of the machine fills up.
#[test]
fn a_full_disk_says_so_and_keeps_what_stood_there() {
    if !is_root() {
        return;
    }
    let scratch = Scratch::new();
    let source = scratch.file("source.json", &data_set(200_000));
    fs::create_dir(scratch.inside("small")).unwrap();
    let script = "mount -t tmpfs -o size=64k none small && echo before >small/x.parquet && \
        \"$0\" bursts convert \"$1\" small/x.parquet; echo $?; cat small/x.parquet; ls -A small";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script]).arg(fabricscope()).arg(&source).current_dir(scratch.path());
    let seen = end(&mut command);
    says_why(&seen, 0, &["no room for small/x.parquet", "No space left on device"]);
    assert_eq!(seen.stdout, "1\nbefore\nx.parquet\n");
}

//! Counters that an agent samples fast: in memory, in files that other programs read, and what is wrong said in words.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tests::duckdb;

use crate::program::{Scratch, end, is_root, program, start, text_of, until};

/// A tree that stands for a host with one port of an RDMA device, whose counters only sysfs shows.
struct Tree(Scratch);

impl Tree {
    fn new() -> Self {
        let tree = Self(Scratch::new());
        let port = tree.0.path().join("class/infiniband/mlx5_0/ports/1/hw_counters");
        fs::create_dir_all(&port).unwrap();
        fs::create_dir_all(tree.0.path().join("class/infiniband/mlx5_0/device")).unwrap();
        fs::create_dir_all(tree.0.path().join("class/net")).unwrap();
        fs::write(port.join("lifespan"), "10\n").unwrap();
        tree.set("out_of_sequence", 5);
        tree.set("np_cnp_sent", 0);
        tree
    }

    /// In one write over the last one: who reads meanwhile never sees an empty file, as it never does in sysfs.
    fn set(&self, name: &str, value: u64) {
        let path = self.0.path().join("class/infiniband/mlx5_0/ports/1/hw_counters").join(name);
        let file = fs::File::options().write(true).create(true).truncate(false).open(path).unwrap();
        file.write_all_at(format!("{value:<10}\n").as_bytes(), 0).unwrap();
    }
}

struct Agent {
    child: Child,
    scratch: Scratch,
}

impl Agent {
    fn start(tree: &Tree) -> Self {
        let scratch = Scratch::in_memory();
        let (socket, samples) = (text_of(&scratch.inside("agent.sock")), text_of(&scratch.inside("samples")));
        let text = format!(
            "rpc.socket = '{socket}'\nmetrics.listen = '127.0.0.1:0'\nhost.path.sysfs = '{}'\n\
             verbs.enabled = false\ncm.enabled = false\ndevice.enabled = false\nhealth.enabled = false\n\
             [bursts]\nnetdevs = ['!*']\ndirectory = '{samples}'\n\
             [counters]\nfast = ['congestion', 'rdma_out_of_sequence_packets']\nfast_interval = '1ms'\n",
            text_of(tree.0.path())
        );
        let config = scratch.file("agent.toml", &text);
        let log = fs::File::create(scratch.inside("stderr")).unwrap();
        let mut command = program();
        command.args(["agent", "--config", &config]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        Self { child: command.spawn().unwrap(), scratch }
    }

    fn show(&self) -> Option<Value> {
        let socket = text_of(&self.scratch.inside("agent.sock"));
        let seen = start(&["bursts", "show", "--last", "60s", "-o", "json", "--socket", &socket]);
        serde_json::from_str(&seen.stdout).ok()
    }

    fn end(&mut self) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
        until("it ends", || self.child.try_wait().unwrap());
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// By how much a counter grew.
fn increase(found: &Value, name: &str) -> Option<f64> {
    let row = found["counters"].as_array()?.iter().find(|row| row["counter"] == name)?;
    assert_eq!((&row["source"], &row["port"]), (&json!("hw_counters"), &json!(1)), "{row}");
    assert_eq!(row["interval_ns"], 10_000_000, "never finer than the lifespan: {row}");
    row["increase"].as_f64()
}

#[test]
fn fast_samples_are_in_memory_and_in_files_that_duckdb_reads() {
    if !is_root() {
        return;
    }
    let tree = Tree::new();
    let mut agent = Agent::start(&tree);
    // It has read the first values once it says that nothing grew.
    until("counters are sampled", || increase(&agent.show()?, "rdma_cnp_sent_packets"));
    for step in 1..=20 {
        tree.set("np_cnp_sent", step * 10);
        until("the step is seen", || {
            increase(&agent.show()?, "rdma_cnp_sent_packets").filter(|increase| *increase >= step as f64 * 10.0)
        });
    }
    agent.end();
    let log = fs::read_to_string(agent.scratch.inside("stderr")).unwrap();
    assert!(log.contains("counters of mlx5_0.1 (hw_counters) are sampled: 2 of them, each 10 ms"), "{log}");
    let files = fs::read_dir(agent.scratch.inside("samples")).unwrap().map(|entry| text_of(&entry.unwrap().path()));
    let files: Vec<String> = files.filter(|path| path.ends_with(".parquet")).collect();
    assert!(files.len() == 1 && files[0].contains("/counters-hw_counters-mlx5_0.1-20"), "{files:?}");
    let rows = [
        ("sum(rdma_cnp_sent_packets), sum(rdma_out_of_sequence_packets), count(*)", json!([200, 0, 20])),
        ("min(device), min(port), min(source), min(length_ns) >= 10000000", json!(["mlx5_0", 1, "hw_counters", true])),
        ("typeof(min(time)), typeof(min(rdma_cnp_sent_packets))", json!(["TIMESTAMPTZ_NS", "BIGINT"])),
    ];
    for (columns, expected) in rows {
        let found = duckdb::query(&format!("select {columns} from '{}'", files[0])).unwrap();
        assert_eq!(found, [expected], "{columns}");
    }
    let seen = start(&["bursts", "show", &files[0], "-o", "json"]);
    let found: Value = serde_json::from_str(&seen.stdout).unwrap_or_else(|error| panic!("{error}: {}", seen.stderr));
    assert_eq!(increase(&found, "rdma_cnp_sent_packets"), Some(200.0), "{found}");
    let seen = start(&["bursts", "compare", &files[0], &files[0]]);
    assert_eq!(seen.status.code(), Some(1));
    assert!(seen.stderr.contains("it holds samples of counters"), "{}", seen.stderr);
}

#[test]
fn a_choice_that_is_none_is_refused_before_anything_starts() {
    let scratch = Scratch::new();
    let config = scratch.file("agent.toml", "[counters]\nfast = ['pauses']\nfast_interval = '10us'\n");
    let seen = end(program().args(["check", "--config", &config]));
    assert_eq!(seen.status.code(), Some(1), "{}", seen.stderr);
    let said = seen.stdout + &seen.stderr;
    assert!(said.contains("\"pauses\"") && said.contains("from 1ms to 1s"), "{said}");
    let seen = start(&["bursts", "record", "--netdev", "lo", "--counters", "pauses"]);
    assert_eq!(seen.status.code(), Some(2));
    assert!(seen.stderr.contains("pauses") && seen.stderr.contains("congestion"), "{}", seen.stderr);
}

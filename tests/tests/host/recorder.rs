//! The recorder of an agent that is killed and started again: its files are whole, and nothing else is left.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tests::command::fabricscope;
use tests::network::{Pair, RIGHT, tool};

use crate::program::{Scratch, end, is_root, start, text_of, until};

/// Datagrams of a burst, and their payload.
const COUNT: u64 = 2000;
const SIZE: u64 = 1000;

/// An agent in the left namespace that samples its device.
struct Agent<'a> {
    pair: &'a Pair,
    scratch: &'a Scratch,
    child: Child,
}

impl<'a> Agent<'a> {
    fn start(pair: &'a Pair, scratch: &'a Scratch) -> Self {
        let socket = text_of(&scratch.inside("agent.sock"));
        let bursts = format!("[bursts]\nnetdevs = ['va']\ndirectory = '{}'\n", text_of(&scratch.inside("samples")));
        let text = format!("rpc.socket = '{socket}'\nmetrics.listen = '127.0.0.1:0'\nverbs.enabled = false\n{bursts}");
        let config = scratch.file("agent.toml", &text);
        let log = fs::File::create(scratch.inside("stderr")).unwrap();
        let mut command = pair.left.command(&fabricscope());
        command.args(["agent", "--config", &config]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        Self { pair, scratch, child: command.spawn().unwrap() }
    }

    /// Bytes sent in the last minute that the agent has in memory.
    fn sent(&self) -> Option<u64> {
        let socket = text_of(&self.scratch.inside("agent.sock"));
        let words =
            ["bursts", "show", "--last", "60s", "--netdev", "va", "--line-rate", "1Gbit", "-o", "json", "--socket"];
        let seen = start(&[&words[..], &[&socket]].concat());
        let found: Value = serde_json::from_str(&seen.stdout).ok()?;
        found["tx"]["bytes"].as_u64()
    }

    /// Sends datagrams until the agent has seen them all; it may have begun to sample in the middle of the first ones.
    fn send(&self) {
        until("a burst is in memory", || {
            let mut command = self.pair.left.command(&tool().unwrap());
            end(command.args(["send-udp", RIGHT, "5001", &COUNT.to_string(), &SIZE.to_string(), "0"]));
            self.sent().filter(|sent| *sent >= COUNT * SIZE)
        });
    }

    fn end(&mut self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).unwrap();
        kill_process(pid, signal).unwrap();
        until("it ends", || self.child.try_wait().unwrap());
    }
}

impl Drop for Agent<'_> {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn files(scratch: &Scratch) -> Vec<PathBuf> {
    // A thread of the agent's own makes it.
    let entries = until("there is a folder", || fs::read_dir(scratch.inside("samples")).ok());
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| !path.ends_with(".lock"));
    files.sort();
    files
}

#[test]
fn a_killed_agent_leaves_whole_files_and_the_next_one_goes_on() {
    if !is_root() {
        return;
    }
    // An agent that ends waits for its last file a few seconds and no longer, which a busy disk can take.
    let (pair, scratch) = (Pair::new(false).unwrap(), Scratch::in_memory());
    let mut agent = Agent::start(&pair, &scratch);
    agent.send();
    agent.end(Signal::KILL);
    // Nothing was due to be written: what there was in memory is gone, and no half of a file stands there.
    assert_eq!(files(&scratch), Vec::<PathBuf>::new());
    drop(agent);
    let unfinished = scratch.inside("samples/.fabricscope-killed.part");
    fs::write(&unfinished, "PAR1").unwrap();
    fs::write(scratch.inside("samples/notes.txt"), "not ours").unwrap();
    let mut agent = Agent::start(&pair, &scratch);
    agent.send();
    let sent = until("the agent answers", || agent.sent());
    agent.end(Signal::TERM);
    let files = files(&scratch);
    assert!(!unfinished.exists(), "{files:?}");
    let (samples, others): (Vec<_>, Vec<_>) =
        files.iter().partition(|path| path.extension().is_some_and(|extension| extension == "parquet"));
    assert_eq!(others, [&scratch.inside("samples/notes.txt")]);
    assert_eq!(samples.len(), 1, "{samples:?}");
    assert!(samples[0].file_name().unwrap().to_str().unwrap().starts_with("bursts-va-20"), "{samples:?}");
    let seen = start(&["bursts", "show", &text_of(samples[0]), "--line-rate", "1Gbit", "-o", "json"]);
    let found: Value = serde_json::from_str(&seen.stdout).unwrap_or_else(|error| panic!("{error}: {}", seen.stderr));
    let recorded = found["tx"]["bytes"].as_u64().unwrap();
    assert!(recorded >= sent, "{recorded} and {sent}");
}

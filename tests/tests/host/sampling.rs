//! An agent that samples the devices of a namespace, as the tests of the sampler's user side start and ask it.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tests::command::{Finished, fabricscope};
use tests::metrics::sum;
use tests::network::{Pair, RIGHT};

use crate::program::{Scratch, start, text_of, until};

/// An agent in the left namespace of a pair; ended when dropped.
pub(crate) struct Agent<'a> {
    pair: &'a Pair,
    pub(crate) child: Child,
    pub(crate) scratch: Scratch,
    socket: PathBuf,
}

impl<'a> Agent<'a> {
    /// Returns when it samples `va`.
    pub(crate) fn start(pair: &'a Pair, more: &str) -> Self {
        let agent = Self::begin(pair, &format!("netdevs = ['v*']\nline_rates = ['v*=1Gbit']\n{more}"), None);
        agent.until_sampled("va", Some(1.0));
        agent
    }

    /// Starts one with these settings of its sampler. Its samples go to a file system of the size given, if one is,
    /// which nobody else sees: `ip netns exec` gives what it runs a mount name space of its own.
    pub(crate) fn begin(pair: &'a Pair, bursts: &str, size: Option<&str>) -> Self {
        let scratch = Scratch::in_memory();
        let socket = scratch.inside("agent.sock");
        let folder = scratch.inside("samples");
        let config = format!(
            "metrics.listen = '127.0.0.1:17317'\nrpc.socket = '{}'\nverbs.enabled = false\ncm.enabled = false\n\
             device.enabled = false\n[bursts]\ndirectory = '{}'\n{bursts}\n",
            socket.display(),
            folder.display()
        );
        let config = scratch.file("agent.toml", &config);
        let log = fs::File::create(scratch.inside("stderr")).unwrap();
        let mut command = match size {
            None => pair.left.command(&fabricscope()),
            Some(size) => {
                fs::create_dir(&folder).unwrap();
                let script = format!("mount -t tmpfs -o size={size} none \"$0\" && exec \"$@\"");
                let mut command = pair.left.command("sh".as_ref());
                command.args(["-c", &script]).args([&folder, &fabricscope()]);
                command
            }
        };
        command.args(["agent", "--config", &config]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        Self { pair, child: command.spawn().unwrap(), scratch, socket }
    }

    /// The folder of its samples, as it sees it itself.
    pub(crate) fn samples(&self) -> PathBuf {
        let folder = self.scratch.inside("samples");
        PathBuf::from(format!("/proc/{}/root{}", self.child.id(), folder.display()))
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.scratch.inside("stderr")).unwrap()
    }

    /// What `/metrics` says; empty while nobody answers.
    pub(crate) fn metrics(&self) -> String {
        let script = "exec 3<>/dev/tcp/127.0.0.1/17317 && printf 'GET /metrics HTTP/1.0\\r\\n\\r\\n' >&3 && cat <&3";
        let mut shell = self.pair.left.command("bash".as_ref());
        let seen = shell.args(["-c", script]).stderr(Stdio::null()).output().unwrap();
        String::from_utf8_lossy(&seen.stdout).into_owned()
    }

    #[track_caller]
    pub(crate) fn until_sampled(&self, netdev: &str, expected: Option<f64>) {
        until(&format!("{netdev} is sampled: {expected:?}"), || {
            let page = self.metrics();
            let sampled = sum(&page, "fabricscope_netdev_sampled", &[("netdev", netdev)]);
            (!page.is_empty() && sampled == expected).then_some(())
        });
    }

    pub(crate) fn value(&self, name: &str, direction: &str) -> f64 {
        sum(&self.metrics(), name, &[("netdev", "va"), ("direction", direction)]).unwrap_or_default()
    }

    pub(crate) fn lost(&self) -> f64 {
        sum(&self.metrics(), "fabricscope_netdev_buckets_lost_total", &[("netdev", "va")]).unwrap_or_default()
    }

    /// The last minute of `va`.
    pub(crate) fn last(&self) -> Value {
        self.try_last().unwrap_or_else(|error| panic!("{error}{}", self.log()))
    }

    /// The same, or what is said instead.
    pub(crate) fn try_last(&self) -> Result<Value, String> {
        self.try_last_of("60s")
    }

    pub(crate) fn try_last_of(&self, time: &str) -> Result<Value, String> {
        let seen = self.show(&["--last", time, "--netdev", "va", "-o", "json"]);
        if seen.status.code() == Some(0) { Ok(serde_json::from_str(&seen.stdout).unwrap()) } else { Err(seen.stderr) }
    }

    /// Runs `bursts show` on what it has in memory.
    #[track_caller]
    pub(crate) fn show(&self, words: &[&str]) -> Finished {
        start(&[&["bursts", "show", "--socket", &text_of(&self.socket)], words].concat())
    }

    /// What `status` says of it.
    pub(crate) fn status(&self) -> Finished {
        start(&["status", "--socket", &text_of(&self.socket)])
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).unwrap(), signal).unwrap();
    }

    /// Ends it as systemd does; its log.
    pub(crate) fn end(mut self) -> String {
        self.signal(Signal::TERM);
        let status = until("it ends", || self.child.try_wait().unwrap());
        assert_eq!(status.code(), Some(0), "{}", self.log());
        self.log()
    }
}

impl Drop for Agent<'_> {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Sends so many datagrams of 1200 bytes to the right.
pub(crate) fn send(pair: &Pair, count: u32) {
    pair.left.run(&["send-udp", RIGHT, "9", &count.to_string(), "1200", "0"]).unwrap();
}

/// What `va` says of itself: bytes and packets sent.
pub(crate) fn sent(pair: &Pair) -> (f64, f64) {
    let told = pair.left.command("ip".as_ref()).args(["-s", "-j", "link", "show", "dev", "va"]).output().unwrap();
    let told: Value = serde_json::from_slice(&told.stdout).unwrap();
    let tx = &told[0]["stats64"]["tx"];
    (tx["bytes"].as_f64().unwrap(), tx["packets"].as_f64().unwrap())
}

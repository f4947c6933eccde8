//! What the agent takes of a processor while it drains the rings of so many devices.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::network::{Beside, Namespace};
use crate::bench::counters::Running;
use crate::runner::output;

/// How long it is watched.
const TIME: Duration = Duration::from_secs(10);
/// How long it may take until it samples all devices.
const START: Duration = Duration::from_secs(120);

/// What is drained: so many devices sampled at an interval, idle or with something in each bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Drain {
    pub(super) devices: usize,
    /// As the configuration names it, and in microseconds.
    pub(super) interval: (&'static str, u64),
    pub(super) busy: bool,
}

const MS: (&str, u64) = ("1ms", 1000);
const TENTH: (&str, u64) = ("100us", 100);

/// Every measurement; without a device it is the agent without the sampler.
pub(super) const DRAINS: [Drain; 10] = [
    Drain { devices: 0, interval: MS, busy: false },
    Drain { devices: 1, interval: MS, busy: false },
    Drain { devices: 8, interval: MS, busy: false },
    Drain { devices: 64, interval: MS, busy: false },
    Drain { devices: 1, interval: MS, busy: true },
    Drain { devices: 8, interval: MS, busy: true },
    Drain { devices: 64, interval: MS, busy: true },
    Drain { devices: 1, interval: TENTH, busy: true },
    Drain { devices: 8, interval: TENTH, busy: true },
    Drain { devices: 64, interval: TENTH, busy: true },
];

/// What came of one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drained {
    pub(super) drain: Drain,
    /// Of one processor.
    pub(super) share: f64,
    /// Of the buckets, those in which every device carried something: less than all where the host cannot send that
    /// fast beside the agent.
    pub(super) filled: Option<f64>,
}

impl Drained {
    /// As it stands in the table.
    pub(super) fn line(&self) -> String {
        let Drain { devices, interval: (interval, _), .. } = self.drain;
        let traffic = match self.filled {
            None => "idle".to_owned(),
            Some(filled) => format!("traffic in {:.0} % of the buckets", 100.0 * filled),
        };
        let share = 100.0 * self.share;
        format!("the agent with {devices} devices at {interval}, {traffic}: {share:.2} % of a processor")
    }

    pub(super) fn json(&self) -> Value {
        let Drain { devices, interval: (interval, _), .. } = self.drain;
        json!({ "devices": devices, "interval": interval, "share": self.share, "filled": self.filled })
    }
}

/// Measures one. The agent does nothing else.
///
/// # Errors
/// When the agent does not sample the devices in time.
pub(super) fn share(agent: &Path, tool: &Path, drain: Drain) -> Result<Drained> {
    let Drain { devices, interval: (interval, us), busy } = drain;
    let namespace = Namespace::new("drain")?;
    // Both ends of a pair are devices; of one only the first is sampled.
    let pairs = devices.div_ceil(2);
    for pair in 0..pairs {
        namespace.ip(&format!("link add v{pair} type veth peer name w{pair}"))?;
        for end in ["v", "w"] {
            namespace.ip(&format!("link set {end}{pair} up"))?;
        }
    }
    let folder = tempfile::tempdir().context("make a folder for the agent")?;
    let socket = folder.path().join("agent.sock");
    let config = folder.path().join("agent.toml");
    let names = if devices == 1 { "'v*'" } else { "'v*', 'w*'" };
    let text = format!(
        "metrics.listen = '127.0.0.1:0'\nrpc.socket = '{}'\nverbs.enabled = false\ncm.enabled = false\n\
         device.enabled = false\ncounters.enabled = false\nbursts.enabled = {}\nbursts.netdevs = [{names}]\n\
         bursts.interval = '{interval}'\nbursts.files = false\n",
        socket.display(),
        devices > 0
    );
    fs::write(&config, text).context("write the agent's configuration")?;
    let mut command = namespace.command(agent);
    let running = Running::start(command.args(["agent", "--config"]).arg(&config).stdout(Stdio::null()))?;
    let began = Instant::now();
    while sampled(agent, &socket)? != Some(devices) {
        ensure!(began.elapsed() < START, "the agent does not sample {devices} devices");
        std::thread::sleep(Duration::from_millis(200));
    }
    let mut feed = namespace.command(tool);
    feed.args(["feed", "v", &pairs.to_string(), &us.to_string()]);
    let feed = if busy { Some(Beside::start(&mut feed, "ready", false)?) } else { None };
    let before = running.cpu_seconds()?;
    let began = Instant::now();
    std::thread::sleep(TIME);
    let share = (running.cpu_seconds()? - before) / began.elapsed().as_secs_f64();
    let filled = feed.map(|feed| filled(&feed.end()?, us)).transpose()?;
    Ok(Drained { drain, share, filled })
}

/// The share of the buckets that the sender's rounds filled.
fn filled(told: &[String], us: u64) -> Result<f64> {
    let told = told.iter().find(|line| line.starts_with('{')).context("the sender told nothing")?;
    let told: Value = serde_json::from_str(told).context("what the sender told")?;
    let (rounds, seconds) = told["rounds"].as_f64().zip(told["seconds"].as_f64()).context("what the sender told")?;
    Ok((rounds / (seconds * 1e6 / us as f64)).min(1.0))
}

/// How many devices the agent has samples of; `None` while it does not answer.
fn sampled(agent: &Path, socket: &Path) -> Result<Option<usize>> {
    let mut status = Command::new(agent);
    status.args(["status", "--socket"]).arg(socket).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // 1 is the answer of an agent that something is missing to.
    if !matches!(status.status().context("ask the agent")?.code(), Some(0 | 1)) {
        return Ok(None);
    }
    let mut show = Command::new(agent);
    show.args(["bursts", "show", "--last", "2s", "-o", "json", "--socket"]).arg(socket);
    // Without any samples it fails.
    Ok(Some(output(&mut show).map_or(0, |text| text.lines().filter(|line| line.starts_with('{')).count())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_filled_as_far_as_rounds_were_made() {
        let told = |rounds: u64| vec![format!("{{\"rounds\":{rounds},\"seconds\":2.0}}")];
        for (rounds, us, expected) in [(2000, 1000, 1.0), (1000, 1000, 0.5), (5000, 100, 0.25), (2100, 1000, 1.0)] {
            assert!((filled(&told(rounds), us).unwrap() - expected).abs() < 1e-9, "{rounds} {us}");
        }
        assert!(filled(&[], 100).is_err());
    }
}

//! What the agent takes of a processor while it drains the rings of so many devices.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use super::network::Namespace;
use crate::bench::counters::Running;
use crate::runner::output;

/// How long it is watched.
const TIME: Duration = Duration::from_secs(10);
/// How long it may take until it samples all devices.
const START: Duration = Duration::from_secs(120);

/// The share of one processor that an agent takes which samples this many devices at 1 ms, and does nothing else. No
/// device carries traffic; for none the sampler is off.
///
/// # Errors
/// When the agent does not sample them in time.
pub(super) fn share(agent: &Path, devices: usize) -> Result<f64> {
    let namespace = Namespace::new("drain")?;
    // Both ends of a pair are devices; of one only the first is sampled.
    for pair in 0..devices.div_ceil(2) {
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
         bursts.files = false\n",
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
    let before = running.cpu_seconds()?;
    let began = Instant::now();
    std::thread::sleep(TIME);
    Ok((running.cpu_seconds()? - before) / began.elapsed().as_secs_f64())
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

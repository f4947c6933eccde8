//! `cargo xtask bench counters`, second part: what a fast sample costs, by the agent's own account and by the kernel's.
//!
//! The agent samples the files of one adapter's network device at 1 ms. The files are ordinary ones, which stand for
//! reading and for keeping what was read; what a device's firmware takes comes on top, and is in the agent's metrics.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::counters::{Running, free_address, scrape};
use crate::runner::agent;

/// What the kernel shows of a network device.
const STATISTICS: &str = "collisions multicast rx_bytes rx_compressed rx_crc_errors rx_dropped rx_errors rx_fifo_errors \
    rx_frame_errors rx_length_errors rx_missed_errors rx_nohandler rx_over_errors rx_packets tx_aborted_errors tx_bytes \
    tx_carrier_errors tx_compressed tx_dropped tx_errors tx_fifo_errors tx_heartbeat_errors tx_packets tx_window_errors";
/// How long is measured, and how long the agent may take to begin.
const TIME: Duration = Duration::from_secs(5);
const START: Duration = Duration::from_secs(30);
/// The share of the thread's time that the agent gives readings; its own limit.
const SHARE: f64 = 4.0;

/// What was measured.
pub(super) struct Figures {
    readings: f64,
    seconds: f64,
    cpu_seconds: f64,
    elapsed: f64,
}

/// Runs the agent on a tree of its own, and measures.
///
/// # Errors
///
/// If the agent does not run or does not sample.
pub(super) fn measure() -> Result<Figures> {
    let folder = tempfile::tempdir().context("make a folder for the tree")?;
    write_tree(folder.path())?;
    let address = free_address()?;
    let config = folder.path().join("agent.toml");
    let text = format!(
        "metrics.listen = '{address}'\nrpc.enabled = false\nhost.path.sysfs = '{}'\nverbs.enabled = false\n\
         cm.enabled = false\ndevice.enabled = false\nhealth.enabled = false\n[bursts]\nnetdevs = ['!*']\nfiles = false\n\
         [counters]\nfast = ['traffic']\nfast_interval = '1ms'\n",
        folder.path().display()
    );
    fs::write(&config, text).context("write the agent's configuration")?;
    let mut command = Command::new(agent()?);
    command.args(["agent", "--config"]).arg(&config).stdout(Stdio::null());
    let running = Running::start(&mut command)?;
    let began = Instant::now();
    while !scrape(address).is_ok_and(|page| value(&page, "readings_total").is_some_and(|readings| readings > 100.0)) {
        ensure!(began.elapsed() < START, "the agent does not sample within {} s", START.as_secs());
        std::thread::sleep(Duration::from_millis(50));
    }
    let look = || -> Result<(f64, f64, f64)> {
        let page = scrape(address)?;
        let of = |name: &str| value(&page, name).with_context(|| format!("no {name} on the page"));
        Ok((of("readings_total")?, of("read_seconds_total")?, cpu_seconds(running.0.id())?))
    };
    let (before, since) = (look()?, Instant::now());
    std::thread::sleep(TIME);
    let after = look()?;
    let elapsed = since.elapsed().as_secs_f64();
    Ok(Figures { readings: after.0 - before.0, seconds: after.1 - before.1, cpu_seconds: after.2 - before.2, elapsed })
}

fn write_tree(root: &Path) -> Result<()> {
    let netdev = root.join("class/net/eth0");
    fs::create_dir_all(netdev.join("statistics"))?;
    fs::create_dir_all(netdev.join("device"))?;
    for (value, name) in STATISTICS.split_whitespace().enumerate() {
        fs::write(netdev.join("statistics").join(name), format!("{}\n", value * 1_000_003))?;
    }
    Ok(())
}

/// A value of the page, by the end of its name.
fn value(page: &str, name: &str) -> Option<f64> {
    let start = format!("fabricscope_nic_sample_{name}{{");
    page.lines().find(|line| line.starts_with(&start)).and_then(|line| line.rsplit(' ').next()?.parse().ok())
}

/// CPU time of the thread that samples.
fn cpu_seconds(process: u32) -> Result<f64> {
    for entry in fs::read_dir(format!("/proc/{process}/task")).context("list the agent's threads")? {
        let thread = entry?.path();
        if fs::read_to_string(thread.join("comm")).is_ok_and(|name| name.trim() == "fabricscope-ctr") {
            let text = fs::read_to_string(thread.join("schedstat")).context("read a thread's CPU time")?;
            let nanoseconds: u64 = text.split(' ').next().unwrap_or_default().parse().context("a thread's CPU time")?;
            return Ok(Duration::from_nanos(nanoseconds).as_secs_f64());
        }
    }
    anyhow::bail!("the agent has no thread that samples")
}

impl Figures {
    /// As JSON.
    pub(super) fn json(&self) -> Value {
        json!({
            "readings": self.readings,
            "seconds_a_reading": self.seconds / self.readings,
            "cpu_seconds_a_reading": self.cpu_seconds / self.readings,
            "readings_a_second": self.readings / self.elapsed,
        })
    }

    /// As text.
    pub(super) fn report(&self) -> String {
        let micros = |seconds: f64| format!("{:.1} us", seconds * 1e6);
        let (reading, cpu) = (self.seconds / self.readings, self.cpu_seconds / self.readings);
        format!(
            "\nfast samples at 1 ms, the files of one network device: {:.0} readings a second, {} each, {} of CPU each \
             with all that is done with it\n  a CPU's share at 1 ms: {:.2} %, at 10 ms: {:.2} %; the fastest pace that \
             is kept: one in {}\n",
            self.readings / self.elapsed,
            micros(reading),
            micros(cpu),
            cpu * 1e5,
            cpu * 1e4,
            micros(reading * SHARE)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_the_end_of_their_names() {
        let page = "fabricscope_nic_sample_readings_total{device=\"eth0\",source=\"netdev\"} 512\n";
        assert_eq!(value(page, "readings_total"), Some(512.0));
        assert_eq!(value(page, "pace_seconds"), None);
    }

    #[test]
    fn shares_are_of_a_pace() {
        let text = Figures { readings: 1000.0, seconds: 0.03, cpu_seconds: 0.04, elapsed: 1.0 }.report();
        assert!(text.contains("30.0 us each, 40.0 us of CPU") && text.contains("4.00 %, at 10 ms: 0.40 %"), "{text}");
        assert!(text.contains("one in 120.0 us"), "{text}");
    }
}

//! `cargo xtask bench counters`, second part: the same tree by the agent, read once a second and scraped once a second,
//! beside node_exporter scraped as often.
//!
//! All CPU of both programs counts: of the agent also its findings, and what it does besides while nothing happens.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::counters::{AIM_SHARE, Running, answers, free_address, scrape, start_exporter, values};
use crate::runner::agent;

/// How often, and how many times.
const EVERY: Duration = Duration::from_secs(1);
const TIMES: u32 = 20;

/// What one program took for each second.
struct Figures {
    cpu_seconds: f64,
    values: usize,
}

/// What was measured.
pub(super) struct Served {
    ours: Figures,
    theirs: Figures,
}

/// Runs both at once, and measures.
///
/// # Errors
///
/// If one of them does not run or does not answer.
pub(super) fn measure(tree: &Path, exporter: &Path) -> Result<Served> {
    let folder = tempfile::tempdir().context("make a folder for the agent's configuration")?;
    let address = free_address()?;
    let config = folder.path().join("agent.toml");
    let text = format!(
        "metrics.listen = '{address}'\nrpc.enabled = false\nhost.path.sysfs = '{}'\nverbs.enabled = false\n\
         cm.enabled = false\ndevice.enabled = false\nhealth.enabled = false\nbursts.enabled = false\n\
         counters.every = '1s'\n",
        tree.display()
    );
    fs::write(&config, text).context("write the agent's configuration")?;
    let mut command = Command::new(agent()?);
    command.args(["agent", "--config"]).arg(&config).stdout(Stdio::null());
    let ours = Running::start(&mut command)?;
    answers(address, "fabricscope_rdma_received_bytes_total").context("start fabricscope's agent")?;
    let (theirs, their_address) = start_exporter(tree, exporter)?;
    let before = (ours.cpu_seconds()?, theirs.cpu_seconds()?);
    let mut pages = (String::new(), String::new());
    let began = Instant::now();
    for round in 1..=TIMES {
        pages = (scrape(address)?, scrape(their_address)?);
        std::thread::sleep((EVERY * round).saturating_sub(began.elapsed()));
    }
    let figures = |cpu_seconds: f64, page: &str, start: &str| Figures {
        cpu_seconds: cpu_seconds / f64::from(TIMES),
        values: values(page, start),
    };
    Ok(Served {
        ours: figures(ours.cpu_seconds()? - before.0, &pages.0, "fabricscope_"),
        theirs: figures(theirs.cpu_seconds()? - before.1, &pages.1, "node_"),
    })
}

impl Served {
    fn share(&self) -> f64 {
        self.ours.cpu_seconds / self.theirs.cpu_seconds
    }

    /// As JSON.
    pub(super) fn json(&self) -> Value {
        let of = |figures: &Figures| json!({ "cpu_seconds": figures.cpu_seconds, "series": figures.values });
        json!({ "fabricscope": of(&self.ours), "node_exporter": of(&self.theirs) })
    }

    /// As text.
    pub(super) fn report(&self) -> String {
        let line = |name: &str, figures: &Figures| {
            format!("  {name:<14} {:>6.0} us of CPU, {} series\n", figures.cpu_seconds * 1e6, figures.values)
        };
        let verdict = if self.share() <= AIM_SHARE { "reached" } else { "not reached" };
        format!(
            "\nserved over HTTP, read and scraped once a second, all that the program does:\n{}{}  ours over theirs: \
             {:.3} (aim: {AIM_SHARE}: {verdict})\n",
            line("fabricscope", &self.ours),
            line("node_exporter", &self.theirs),
            self.share()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_held_against_the_aim() {
        let of = |cpu_seconds| Figures { cpu_seconds, values: 3 };
        let text = |ours| Served { ours: of(ours), theirs: of(1e-2) }.report();
        assert!(text(1e-3).contains("0.100 (aim: 0.1: reached)"), "{}", text(1e-3));
        assert!(text(2e-3).contains("0.200 (aim: 0.1: not reached)"), "{}", text(2e-3));
    }
}

//! Counters that a run samples beside the traffic.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use analysis::counter_samples::CounterSamples;
use analysis::series::Series;
use anyhow::Context as _;

use super::RecordArgs;
use crate::bursts::clock::HostClocks;
use crate::bursts::device::Origin;
use crate::bursts::file;
use crate::config::limits;
use crate::counters::fast::service::Service;
use crate::counters::fast::{Choice, Sampler, Wish};
use crate::counters::filter::{Filter, Patterns};
use crate::counters::kernel::Kernel;
use crate::host::rdma::netdevs_of;
use crate::host::read;

/// Counters that are being sampled.
pub(super) struct Run {
    service: Service,
    pieces: Arc<Mutex<Vec<CounterSamples>>>,
}

impl Run {
    /// Starts to sample the counters of the device, and of the RDMA port on it.
    ///
    /// # Errors
    ///
    /// If there can be no thread, or nothing that is wanted can be read.
    pub(super) fn start(args: &RecordArgs, choice: &Choice, origin: &Origin) -> anyhow::Result<Self> {
        let filter = Filter { devices: devices(args)?, ..Filter::default() };
        let wish = Wish {
            roots: args.roots.clone(),
            filter,
            choice: choice.clone(),
            interval: args.counters_interval,
            origin: origin.clone(),
        };
        let statistics = Kernel::new().context("opening a socket to ask network devices by")?;
        let sampler = Sampler::new(wish, Box::new(statistics), HostClocks);
        anyhow::ensure!(
            !sampler.status().is_empty(),
            "{} shows none of these counters; `fabricscope counters --all --device {}` shows what it has",
            args.netdev,
            args.netdev
        );
        let pieces = Arc::new(Mutex::new(Vec::new()));
        let to = Arc::clone(&pieces);
        let service = Service::start(sampler, move |piece| {
            add(&mut to.lock().unwrap_or_else(PoisonError::into_inner), piece);
        });
        Ok(Self { service: service.context("starting to sample counters")?, pieces })
    }

    /// Ends it: what was sampled.
    pub(super) fn end(self) -> Vec<CounterSamples> {
        for status in self.service.status() {
            if let Some(why) = status.degraded() {
                eprintln!("fabricscope: {why}");
            }
        }
        drop(self.service);
        std::mem::take(&mut self.pieces.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Adds a piece to the one it follows on, as long as a file holds both.
fn add(pieces: &mut Vec<CounterSamples>, piece: CounterSamples) {
    let room = |known: &CounterSamples| known.when.len() + piece.when.len() <= limits::SAMPLES_PER_FILE;
    if !pieces.iter_mut().any(|known| room(known) && known.continue_with(&piece)) && pieces.len() < limits::FAST_SOURCES
    {
        pieces.push(piece);
    }
}

/// The device, and the RDMA devices whose port it is.
fn devices(args: &RecordArgs) -> anyhow::Result<Patterns> {
    let class = args.roots.sysfs.join("class/infiniband");
    let is_on = |name: &String| {
        let path = class.join(name);
        read::numbers(&path.join("ports")).into_iter().any(|port| netdevs_of(&path, port).contains(&args.netdev))
    };
    let mut names: Vec<String> = read::names(&class).into_iter().filter(is_on).collect();
    names.push(args.netdev.clone());
    names.join(" ").parse().map_err(|error: String| anyhow::anyhow!(error))
}

/// Writes a file for each source, of the time in which the traffic was sampled.
pub(super) fn write(
    counters: &[CounterSamples],
    series: &Series,
    beside: &Path,
    print: bool,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let Some(window) = series.window() else { return Ok(()) };
    let mut written: Vec<PathBuf> = Vec::new();
    for samples in counters.iter().filter(|samples| samples.netdev == series.netdev) {
        let part = samples.clipped(window);
        let path = (0..).map(|number| path(beside, samples, number)).find(|path| !written.contains(path));
        let Some(path) = path.filter(|_| !part.covered.is_empty()) else { continue };
        file::write_counters(&path, &part)?;
        if print {
            writeln!(out, "{}", path.display())?;
        }
        written.push(path);
    }
    Ok(())
}

/// `eth0-TIME.parquet` and `eth0-TIME.ethtool.parquet`.
fn path(beside: &Path, samples: &CounterSamples, number: usize) -> PathBuf {
    let number = if number == 0 { String::new() } else { format!("-{number}") };
    beside.with_extension(format!("{}{number}.parquet", samples.source))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_stand_beside_that_of_the_traffic() {
        let samples = CounterSamples { source: "ethtool".to_owned(), ..CounterSamples::default() };
        let rows = [("a/eth0-1.5.parquet", 0, "a/eth0-1.5.ethtool.parquet"), ("x", 1, "x.ethtool-1.parquet")];
        for (beside, number, expected) in rows {
            assert_eq!(path(Path::new(beside), &samples, number), Path::new(expected));
        }
    }
}

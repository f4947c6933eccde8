//! The section `[bursts]`: what is sampled, and what is kept of it.

use std::path::PathBuf;
use std::time::Duration;

use analysis::burst::Share;
use analysis::series::{BitsPerSecond, DurationNs};

use super::checked::{DAY, Reader, SECOND};
use super::limits;
use super::rate::rate;
use super::raw::Value;
use super::units::{CLOCK_NAMES, INTERVAL_NAMES, bytes, clock_fits, prefix, share};
use crate::bursts::follow::Glob;
use crate::bursts::sessions::Wish;
use crate::kernel::sampler::{Clock, Marks};

/// The burst sampler's settings.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bursts {
    /// What is sampled.
    pub(crate) wish: Wish,
    /// From which share of line rate on a sample belongs to a burst.
    pub(crate) threshold: Share,
    /// Bytes of memory for the last minutes.
    pub(crate) memory: u64,
    /// Where files go; `None` if none are written.
    pub(crate) directory: Option<PathBuf>,
    /// How old files get.
    pub(crate) keep_for: Duration,
    /// Bytes of all files together.
    pub(crate) keep_bytes: u64,
}

/// Reads the section; `None` if the sampler is off.
pub(super) fn check(reader: &mut Reader) -> Option<Bursts> {
    let enabled = reader.switch("bursts.enabled", true);
    let interval = reader.choice("bursts.interval", &INTERVAL_NAMES);
    let wish = Wish {
        netdevs: reader.list("bursts.netdevs", limits::GLOBS, "write [\"eth*\", \"!eth9\"]", |text| text.parse().ok()),
        interval,
        clock: reader.take("bursts.clock", Clock::Read, |value| clock(value, interval)),
        line_rates: reader.list("bursts.line_rates", limits::GLOBS, "write [\"eth*=100Gbit\"]", line_rate),
        regions: reader.list("bursts.regions", limits::REGIONS, "write [\"10.0.0.0/8\", \"2001:db8::/32\"]", prefix),
        suspected: reader.switch("bursts.suspected", false),
        marks: if reader.switch("bursts.mark_retransmits", false) { Marks::Set } else { Marks::Ignored },
    };
    let memory = "write a size from \"1MiB\" to \"1GiB\"";
    let keep_bytes = "write a size from \"16MiB\" to \"1TiB\"";
    let files = reader.switch("bursts.files", true);
    let directory = reader.path("bursts.directory", "/var/lib/fabricscope/bursts");
    let bursts = Bursts {
        wish,
        threshold: reader.text(
            "bursts.threshold",
            Share::DEFAULT,
            "write a share of line rate, such as \"50%\"",
            share,
        ),
        memory: reader.text("bursts.memory", 24 << 20, memory, |text| within(text, 1 << 20, 1 << 30)),
        directory: files.then_some(directory),
        keep_for: reader.duration("bursts.keep_for", DAY, SECOND * 60..=DAY * 90),
        keep_bytes: reader
            .text("bursts.keep_bytes", limits::RECORDER_BYTES, keep_bytes, |text| within(text, 16 << 20, 1 << 40)),
    };
    enabled.then_some(bursts)
}

/// `tick`, where buckets are long enough for it.
fn clock(value: &Value, interval: DurationNs) -> Result<Clock, String> {
    let found = CLOCK_NAMES.iter().find(|(name, _)| matches!(value, Value::Text(text) if text == name));
    let clock = found.map(|(_, clock)| *clock).ok_or_else(|| "write \"read\" or \"tick\"".to_owned())?;
    clock_fits(clock, interval).map_err(str::to_owned).map(|()| clock)
}

/// `eth*=100Gbit`
fn line_rate(text: &str) -> Option<(Glob, BitsPerSecond)> {
    let (glob, speed) = text.split_once('=')?;
    // A device that is left out has no line rate.
    let glob = glob.trim().parse().ok().filter(|_| !glob.contains('!'))?;
    Some((glob, rate(speed.trim()).ok()?))
}

fn within(text: &str, least: u64, most: u64) -> Option<u64> {
    bytes(text).filter(|bytes| (least..=most).contains(bytes))
}

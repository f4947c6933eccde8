//! The series that a command looks at: read from files, pieces of one device joined, completed by hand.

use std::path::PathBuf;
use std::time::Duration;

use analysis::burst::Share;
use analysis::counter_samples::CounterSamples;
use analysis::series::{BitsPerSecond, DurationNs, Series, Span, UtcNs};
use jiff::Timestamp;

use crate::bursts::file;
use crate::bursts::kept::Kept;
use crate::cli::client::{Agent, SocketArgs};
use crate::config::rate::rate;
use crate::config::{limits, time};
use crate::terminal::clean;

/// What bursts are measured against.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct DeviceArgs {
    /// The line rate in each direction, such as 100Gbit [default: what the device states]
    #[arg(long, value_name = "RATE", value_parser = rate)]
    line_rate: Option<BitsPerSecond>,

    /// A burst is above this share of the line rate
    #[arg(long, value_name = "SHARE", default_value_t = Share::DEFAULT.value(), value_parser = threshold)]
    threshold: f64,
}

impl DeviceArgs {
    /// The share of the line rate.
    pub(crate) fn threshold(&self) -> Share {
        Share::new(self.threshold).unwrap_or_default()
    }

    /// Gives a series the line rate that was given by hand.
    pub(crate) fn complete(&self, series: &mut Series) {
        series.line_rate = self.line_rate.or(series.line_rate);
    }
}

/// Which part of the time is looked at.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct TimeArgs {
    /// Only from this time on, in UTC, such as "2026-11-29 21:05:12.5"
    #[arg(long, value_name = "TIME", value_parser = utc)]
    from: Option<UtcNs>,

    /// Only up to this time, in UTC
    #[arg(long, value_name = "TIME", value_parser = utc)]
    to: Option<UtcNs>,
}

impl TimeArgs {
    /// What of a series is looked at.
    pub(crate) fn part(&self, series: Series) -> Series {
        match self.span() {
            Some(span) => series.clipped(span),
            None => series,
        }
    }

    /// What of counters is looked at.
    pub(crate) fn part_of_counters(&self, counters: Vec<CounterSamples>) -> Vec<CounterSamples> {
        match self.span() {
            Some(span) => counters.iter().map(|samples| samples.clipped(span)).collect(),
            None => counters,
        }
    }

    fn span(&self) -> Option<Span> {
        let (start, end) = (self.from.unwrap_or(UtcNs(i64::MIN)), self.to.unwrap_or(UtcNs(i64::MAX)));
        (self.from.is_some() || self.to.is_some()).then_some(Span { start, end })
    }
}

/// A point in time, in UTC unless it names an offset.
fn utc(text: &str) -> Result<UtcNs, String> {
    let time = text.parse::<Timestamp>().or_else(|_| format!("{text}Z").parse::<Timestamp>());
    let ns = time.ok().and_then(|time| i64::try_from(time.as_nanosecond()).ok());
    ns.map(UtcNs).ok_or_else(|| "write a day and a time, such as \"2026-11-29 21:05:12.5\"".to_owned())
}

/// A length of time with its unit.
pub(crate) fn length(text: &str) -> Result<DurationNs, String> {
    let ns = u64::try_from(time::parse(text)?.as_nanos()).ok().filter(|ns| *ns > 0);
    ns.map(DurationNs).ok_or_else(|| "write a time that is more than nothing, such as 10ms".to_owned())
}

fn threshold(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().and_then(Share::new).map(Share::value);
    share.ok_or_else(|| "write a share of the line rate: more than 0, at most 1, such as 0.5".to_owned())
}

/// What there is of one device.
#[derive(Clone, Debug)]
pub(crate) struct Loaded {
    /// Its traffic; without any time measured where there are counters alone.
    pub(crate) series: Series,
    /// Its counters, and those of its RDMA port.
    pub(crate) counters: Vec<CounterSamples>,
}

impl From<Series> for Loaded {
    fn from(series: Series) -> Self {
        Self { series, counters: Vec::new() }
    }
}

/// Reads files of traffic; those of one device become one series. In the order in which devices come first.
///
/// # Errors
///
/// If a file cannot be read, or they have too many samples.
pub(crate) fn files(paths: &[PathBuf]) -> anyhow::Result<Vec<Series>> {
    let read = |path: &PathBuf| Ok(Kept::Traffic(file::read(path)?));
    Ok(grouped(bounded(paths, read)?).into_iter().map(|loaded| loaded.series).collect())
}

/// The same of files of traffic and of counters.
///
/// # Errors
///
/// As [`files`].
pub(crate) fn all_files(paths: &[PathBuf]) -> anyhow::Result<Vec<Loaded>> {
    Ok(grouped(bounded(paths, |path| Ok(file::read_any(path)?))?))
}

fn bounded(paths: &[PathBuf], read: impl Fn(&PathBuf) -> anyhow::Result<Kept>) -> anyhow::Result<Vec<Kept>> {
    let (mut all, mut samples) = (Vec::new(), 0);
    for path in paths {
        let kept = read(path)?;
        samples += kept.weight();
        anyhow::ensure!(
            samples <= limits::SHOWN_SAMPLES,
            "{}: more than {} samples with this file: give fewer files",
            path.display(),
            limits::SHOWN_SAMPLES
        );
        all.push(kept);
    }
    Ok(all)
}

/// Puts together what is of one device.
fn grouped(all: Vec<Kept>) -> Vec<Loaded> {
    let mut groups: Vec<(Vec<Series>, Vec<CounterSamples>)> = Vec::new();
    for kept in all {
        let same = |(series, counters): &(Vec<Series>, Vec<CounterSamples>)| match &kept {
            Kept::Traffic(new) => match series.first() {
                Some(first) => is_same(first, new),
                None => counters.first().is_some_and(|first| is_of(first, new)),
            },
            Kept::Counters(new) => match series.first() {
                Some(first) => is_of(new, first),
                None => counters.first().is_some_and(|first| is_of(new, &bare(first))),
            },
        };
        let group = match groups.iter().position(same) {
            Some(at) => at,
            None => {
                groups.push((Vec::new(), Vec::new()));
                groups.len() - 1
            }
        };
        if let Some((series, counters)) = groups.get_mut(group) {
            match kept {
                Kept::Traffic(new) => series.push(new),
                Kept::Counters(new) => counters.push(new),
            }
        }
    }
    let loaded = |(series, counters): (Vec<Series>, Vec<CounterSamples>)| {
        let bare = counters.first().map(bare);
        let series = if series.is_empty() { bare.unwrap_or_default() } else { Series::join(series) };
        Loaded { series, counters: joined(counters) }
    };
    groups.into_iter().map(loaded).collect()
}

/// Pieces of the same counters put together, in order of time.
fn joined(mut pieces: Vec<CounterSamples>) -> Vec<CounterSamples> {
    pieces.sort_by_key(CounterSamples::start);
    let mut all: Vec<CounterSamples> = Vec::new();
    for piece in pieces {
        if !all.iter_mut().any(|known| known.continue_with(&piece)) {
            all.push(piece);
        }
    }
    all
}

/// The device that counters are of, without traffic.
fn bare(counters: &CounterSamples) -> Series {
    let netdev = if counters.netdev.is_empty() { counters.name() } else { counters.netdev.clone() };
    Series {
        host: counters.host.clone(),
        boot_id: counters.boot_id.clone(),
        netdev,
        interval: counters.interval,
        line_rate: counters.line_rate,
        clock_error: counters.clock_error,
        ..Series::default()
    }
}

/// Whether counters are those of a device.
fn is_of(counters: &CounterSamples, series: &Series) -> bool {
    let bare = bare(counters);
    (&bare.host, &bare.boot_id, &bare.netdev) == (&series.host, &series.boot_id, &series.netdev)
}

/// What the agent of this host has in memory of one device, or of all that have samples.
///
/// # Errors
///
/// If no agent runs, or it has nothing.
pub(crate) fn last(socket: &SocketArgs, netdev: Option<&str>, last: Duration) -> anyhow::Result<Vec<Loaded>> {
    let last = DurationNs(u64::try_from(last.as_nanos()).unwrap_or(u64::MAX));
    let mut found = Agent::connect(socket.path())?.samples(netdev, last, true)?;
    found.retain(|kept| match kept {
        Kept::Traffic(series) => !series.covered.is_empty(),
        Kept::Counters(samples) => !samples.covered.is_empty(),
    });
    anyhow::ensure!(
        !found.is_empty(),
        "the agent has no samples yet: `fabricscope status` says which devices are sampled"
    );
    Ok(grouped(found))
}

/// Whether two series are of the same device in the same boot, and can be one.
fn is_same(one: &Series, other: &Series) -> bool {
    let key = |series: &Series| (series.host.clone(), series.boot_id.clone(), series.netdev.clone(), series.interval);
    key(one) == key(other)
}

/// A device with its host, where both are known.
pub(crate) fn name(series: &Series) -> String {
    let name = match (series.netdev.as_str(), series.host.as_str()) {
        ("", "") => "unnamed device".to_owned(),
        ("", host) => host.to_owned(),
        (netdev, "") => netdev.to_owned(),
        (netdev, host) => format!("{netdev} on {host}"),
    };
    clean(&name)
}

/// All names.
pub(crate) fn names(all: &[Series]) -> String {
    all.iter().map(name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_in_utc_unless_they_say_otherwise() {
        let rows = [
            ("2023-11-14 22:13:20", Some(1_700_000_000_000_000_000)),
            ("2023-11-14T22:13:20.002Z", Some(1_700_000_000_002_000_000)),
            ("2023-11-14 23:13:20+01:00", Some(1_700_000_000_000_000_000)),
            ("22:13:20", None),
            ("yesterday", None),
            ("9999-01-01 00:00:00", None),
            ("", None),
        ];
        for (text, expected) in rows {
            assert_eq!(utc(text).ok(), expected.map(UtcNs), "{text}");
        }
    }

    #[test]
    fn thresholds_are_shares() {
        for (text, good) in [("0.5", true), ("1", true), ("0", false), ("1.1", false), ("NaN", false), ("half", false)]
        {
            assert_eq!(threshold(text).is_ok(), good, "{text}");
        }
    }
}

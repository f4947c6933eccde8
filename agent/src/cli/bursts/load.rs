//! The series that a command looks at: read from files, pieces of one device joined, completed by hand.

use std::path::PathBuf;
use std::time::Duration;

use analysis::burst::Share;
use analysis::series::{BitsPerSecond, DurationNs, Series, Span, UtcNs};
use jiff::Timestamp;

use crate::bursts::file;
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
        if self.from.is_none() && self.to.is_none() {
            return series;
        }
        let (start, end) = (self.from.unwrap_or(UtcNs(i64::MIN)), self.to.unwrap_or(UtcNs(i64::MAX)));
        series.clipped(Span { start, end })
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

/// Reads files; those of one device become one series. In the order in which devices come first.
///
/// # Errors
///
/// If a file cannot be read, or they have too many samples.
pub(crate) fn files(paths: &[PathBuf]) -> anyhow::Result<Vec<Series>> {
    let mut groups: Vec<Vec<Series>> = Vec::new();
    let mut samples = 0;
    for path in paths {
        let series = file::read(path)?;
        samples += series.samples.len();
        anyhow::ensure!(
            samples <= limits::SHOWN_SAMPLES,
            "{}: more than {} samples with this file: give fewer files",
            path.display(),
            limits::SHOWN_SAMPLES
        );
        match groups.iter_mut().find(|group| group.first().is_some_and(|first| is_same(first, &series))) {
            Some(group) => group.push(series),
            None => groups.push(vec![series]),
        }
    }
    Ok(groups.into_iter().map(Series::join).collect())
}

/// What the agent of this host has in memory of one device, or of all that have samples.
///
/// # Errors
///
/// If no agent runs, or it has nothing.
pub(crate) fn last(socket: &SocketArgs, netdev: Option<&str>, last: Duration) -> anyhow::Result<Vec<Series>> {
    let last = DurationNs(u64::try_from(last.as_nanos()).unwrap_or(u64::MAX));
    let mut found = Agent::connect(socket.path())?.samples(netdev, last)?;
    found.retain(|series| !series.covered.is_empty());
    anyhow::ensure!(
        !found.is_empty(),
        "the agent has no samples yet: `fabricscope status` says which devices are sampled"
    );
    Ok(found)
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

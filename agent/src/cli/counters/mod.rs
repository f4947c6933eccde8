//! `fabricscope counters`: what the NIC and RDMA counters of this host do now, by meaning.

mod findings;
pub(crate) mod further;
mod json;
mod raw;
mod text;

use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context as _;
use clap::ValueEnum;
use jiff::fmt::friendly::SpanParser;

use crate::counters::collector::Collector;
use crate::counters::filter::{Filter, Patterns};
use crate::counters::findings::Windows;
use crate::counters::kernel::Kernel;
use crate::counters::rates::between;
use crate::host::kernel::KernelFacts;
use crate::host::roots::Roots;
use crate::terminal::Paper;

/// How to show the counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// What stands out, then the counters in groups
    #[default]
    Text,
    /// One JSON object for each interval
    Json,
}

/// What the NIC and RDMA counters do, by meaning and not by driver
///
/// Reads all counters twice and shows what moved in between, what stands out first. Works without an agent, and without
/// root as far as the kernel lets everybody read.
///
/// Findings follow: pause storms, congestion, loss, a link that flaps. Most take two intervals:
/// --watch looks back on a minute. --all also says what cannot be told, and why.
///
/// rx pause: the network cannot take what this host sends.
/// tx pause: this host cannot take what the network sends.
///
/// `fabricscope explain counter NAME` tells what one of them means and what to look at next.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct CountersArgs {
    /// Devices, RDMA's and network's, such as "mlx5_* !mlx5_9"; others are not opened
    #[arg(long, value_name = "NAMES", default_value = "", hide_default_value = true)]
    device: Patterns,

    /// Drivers, such as "mlx5_ib bnxt_re"
    #[arg(long, value_name = "NAMES", default_value = "", hide_default_value = true)]
    driver: Patterns,

    /// Ports of RDMA devices
    #[arg(long, value_name = "NUMBER")]
    port: Vec<u32>,

    /// Time between the two readings, such as 500ms or 10s
    ///
    /// From 10ms to 1h. Nobody can follow a screen that changes faster: `bursts record --counters` samples chosen
    /// counters down to 1ms and keeps every sample.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    interval: Duration,

    /// Show what does not move too, and which findings cannot be told
    #[arg(long)]
    all: bool,

    /// Go on until it is ended, one interval after the other
    #[arg(long)]
    watch: bool,

    /// Show the drivers' own names and numbers, unknown ones too, and no rates
    #[arg(long, conflicts_with_all = ["all", "watch"])]
    raw: bool,

    /// How to show them
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,

    #[command(flatten)]
    roots: Roots,
}

fn interval(text: &str) -> Result<Duration, String> {
    let duration = SpanParser::new().parse_unsigned_duration(text).map_err(|error| error.to_string())?;
    let range = Duration::from_millis(10)..=Duration::from_secs(3600);
    if range.contains(&duration) {
        Ok(duration)
    } else {
        Err("write a time from 10ms to 1h; `bursts record --counters` samples down to 1ms".to_owned())
    }
}

/// Reads and shows.
///
/// # Errors
///
/// If the output cannot be written.
pub(crate) fn run(args: &CountersArgs, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let filter = Filter { devices: args.device.clone(), drivers: args.driver.clone(), ports: args.port.clone() };
    let statistics = Box::new(Kernel::new().context("opening a socket to ask network devices by")?);
    let mut collector = Collector::new(args.roots.clone(), filter, args.raw, statistics).with_queue_pairs();
    let facts = KernelFacts::read(&args.roots);
    let paper = Paper::of_stdout();
    let mut earlier = collector.read(Instant::now());
    if args.raw {
        match args.output {
            Output::Text => raw::write(&earlier, paper, out)?,
            Output::Json => raw::write_json(&earlier, out)?,
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut windows = Windows::new(&args.roots, args.interval);
    windows.take(&earlier, earlier.utc());
    loop {
        std::thread::sleep(args.interval);
        let later = collector.read(Instant::now());
        let interval = between(&earlier, &later);
        windows.take(&later, later.utc());
        match args.output {
            Output::Text => {
                text::write(&later, &interval, args.all, paper, out)?;
                further::write(&earlier, &later, args.all, paper, out)?;
                findings::write(&windows, args.all, paper, out)?;
            }
            Output::Json => {
                let origin = json::Origin { host: facts.hostname.as_deref(), boot_id: facts.boot_id.as_deref() };
                let shown = json::Shown { earlier: &earlier, later: &later, interval: &interval, windows: &windows };
                json::write(shown, args.all, origin, SystemTime::now(), out)?;
            }
        }
        out.flush()?;
        if !args.watch {
            return Ok(ExitCode::SUCCESS);
        }
        earlier = later;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_have_units_and_bounds() {
        let rows = [
            ("10ms", Some(10)),
            ("1s", Some(1000)),
            ("1h", Some(3_600_000)),
            ("9ms", None),
            ("61m", None),
            ("5", None),
        ];
        for (text, millis) in rows {
            assert_eq!(interval(text).ok().map(|time| time.as_millis()), millis, "{text}");
        }
    }
}

//! `fabricscope bursts watch`: what the agent of this host samples, as it happens.

use std::io::{self, IsTerminal as _, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use analysis::series::{BitsPerSecond, Direction, DurationNs, Series};
use anyhow::Context as _;
use jiff::Timestamp;

use super::format;
use super::load::{DeviceArgs, name};
use super::report::Report;
use crate::bursts::kept::Kept;
use crate::cli::client::{Agent, SocketArgs};
use crate::config::time;
use crate::terminal::{Paper, clean};

/// From one look to the next: what is shown is what passed in between.
const EVERY: DurationNs = DurationNs(1_000_000_000);

/// How soon the end is noticed.
const PAUSE: Duration = Duration::from_millis(50);

/// Marks of a line of utilisation, by eighths of line rate.
const MARKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Columns of such a line where the terminal does not say.
const COLUMNS: usize = 60;

/// What network devices send and receive, each second anew
///
/// The agent of this host samples; each line is a second of one direction of a device: the average, the fullest sample,
/// bursts, and the fullest sample of each part of the second. On a terminal the lines are rewritten in place.
#[derive(Debug, clap::Args)]
pub(crate) struct WatchArgs {
    /// Only this network device
    #[arg(long, value_name = "NAME")]
    netdev: Option<String>,

    /// End after this time, such as 30s
    #[arg(long, value_name = "TIME", value_parser = time::parse_positive)]
    duration: Option<Duration>,

    #[command(flatten)]
    device: DeviceArgs,

    #[command(flatten)]
    socket: SocketArgs,
}

/// Shows until the time is over or the user ends it.
///
/// # Errors
///
/// If no agent runs, it keeps no samples of the device, or `out` cannot be written.
pub(super) fn run(args: &WatchArgs, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).context("installing a signal handler")?;
    }
    let mut agent = Agent::connect(args.socket.path())?;
    let end = args.duration.map(|duration| Instant::now() + duration);
    let mut shown = 0;
    loop {
        let found = agent.samples(args.netdev.as_deref(), EVERY, false)?;
        let paper = Paper::of_stdout();
        let lines: Vec<String> = found.into_iter().flat_map(|kept| lines(kept, args, paper)).collect();
        if shown > 0 && io::stdout().is_terminal() {
            // Up to the first line of what stands there, and clear to the end of the screen.
            write!(out, "\x1b[{shown}F\x1b[0J")?;
        }
        lines.iter().try_for_each(|line| writeln!(out, "{line}"))?;
        out.flush()?;
        shown = lines.len();
        let next = Instant::now() + Duration::from_nanos(EVERY.0);
        while Instant::now() < next {
            if stop.load(Ordering::Relaxed) || end.is_some_and(|end| Instant::now() >= end) {
                return Ok(ExitCode::SUCCESS);
            }
            std::thread::sleep(PAUSE);
        }
    }
}

/// A line for each direction of a device.
fn lines(kept: Kept, args: &WatchArgs, paper: Paper) -> Vec<String> {
    let Kept::Traffic(mut series) = kept else { return Vec::new() };
    args.device.complete(&mut series);
    let Some(span) = series.window() else { return Vec::new() };
    let time = Timestamp::from_nanosecond(span.end.0.into()).unwrap_or_default().strftime("%H:%M:%S").to_string();
    let name = clean(&name(&series));
    let rate = series.line_rate;
    let report = Report::of(series, args.device.threshold());
    let line = |direction: Direction| {
        let Some(average) = report.total(direction).mean else {
            return format!("{time} {name} {:2} not measured", direction.name());
        };
        let (peak, parts) = parts(&report.series, direction, columns(paper));
        let bursts = match report.found(direction) {
            Ok(found) => format!("{} bursts", found.len()),
            Err(why) => why.to_string(),
        };
        let marks: String = parts.iter().map(|part| mark(*part, rate)).collect();
        let (average, peak) = (format::rate(average), format::rate(peak));
        let text = format!("{time} {name} {:2} {average:>14} peak {peak:>14} {bursts:>12} {marks}", direction.name());
        text.trim_end().to_owned()
    };
    Direction::ALL.map(line).into()
}

fn columns(paper: Paper) -> usize {
    // What stands before the marks takes about 80.
    paper.width.map_or(COLUMNS, |width| width.saturating_sub(80).clamp(10, 200))
}

/// The rate of the fullest sample, and of the fullest of each part of the time.
fn parts(series: &Series, direction: Direction, count: usize) -> (BitsPerSecond, Vec<BitsPerSecond>) {
    let mut parts = vec![BitsPerSecond(0); count];
    let Some(span) = series.window() else { return (BitsPerSecond(0), parts) };
    let length = u128::from(span.end.since(span.start).0.max(1));
    for sample in &series.samples {
        let at = u128::from(sample.start.since(span.start).0) * count as u128 / length;
        let rate = BitsPerSecond(per_second(direction.of(sample).bytes, sample.length));
        if let Some(part) = usize::try_from(at).ok().and_then(|at| parts.get_mut(at)) {
            *part = (*part).max(rate);
        }
    }
    (parts.iter().copied().max().unwrap_or(BitsPerSecond(0)), parts)
}

/// Bits a second of bytes in a time.
fn per_second(bytes: u64, length: DurationNs) -> u64 {
    u64::try_from(u128::from(bytes) * 8_000_000_000 / u128::from(length.0.max(1))).unwrap_or(u64::MAX)
}

/// A mark by eighths of line rate; without one, whether anything passed.
fn mark(rate: BitsPerSecond, line_rate: Option<BitsPerSecond>) -> char {
    let eighths = match line_rate {
        _ if rate.0 == 0 => 0,
        // What passed at all is seen.
        Some(line) => (u128::from(rate.0) * 8).div_ceil(u128::from(line.0.max(1))).min(8),
        None => 1,
    };
    usize::try_from(eighths).ok().and_then(|at| MARKS.get(at)).copied().unwrap_or(' ')
}

#[cfg(test)]
mod tests {
    use analysis::series::{Sample, Span, Traffic, UtcNs};

    use super::*;

    #[test]
    fn marks_are_eighths_of_line_rate_and_what_passes_is_seen() {
        let line = Some(BitsPerSecond(800));
        for (rate, expected) in [(0, ' '), (1, '▁'), (100, '▁'), (101, '▂'), (400, '▄'), (800, '█'), (9_000, '█')]
        {
            assert_eq!(mark(BitsPerSecond(rate), line), expected, "{rate}");
        }
        assert_eq!(mark(BitsPerSecond(7), None), '▁');
    }

    #[test]
    fn the_fullest_sample_of_each_part_is_shown() {
        let sample = |ms: i64, bytes| {
            let rx = Traffic { bytes, ..Traffic::default() };
            let length = DurationNs(1_000_000);
            Sample { start: UtcNs(ms * 1_000_000), length, rx, ..Sample::default() }
        };
        let series = Series {
            interval: DurationNs(1_000_000),
            samples: vec![sample(0, 125), sample(1, 250), sample(99, 500)],
            covered: vec![Span { start: UtcNs(0), end: UtcNs(100_000_000) }],
            ..Series::default()
        };
        let (peak, parts) = parts(&series, Direction::Rx, 4);
        assert_eq!(peak, BitsPerSecond(4_000_000));
        assert_eq!(parts, [2_000_000, 0, 0, 4_000_000].map(BitsPerSecond));
    }
}

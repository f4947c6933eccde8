//! `fabricscope bursts show`: the bursts of a device, as a table, a plot, a picture or JSON.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use analysis::burst::{Burst, Share, Unknown, gaps};
use analysis::counter_samples::CounterSamples;
use analysis::distribution::Distribution;
use analysis::series::{Direction, DurationNs, Measured, Series};

use super::load::{self, DeviceArgs, Loaded, TimeArgs};
use super::report::{QUANTILES, Report};
use super::table::{FIELDS, Row};
use super::{Output, field, format, json, pause, plot, svg};
use crate::bursts::file;
use crate::cli::Usage;
use crate::cli::client::SocketArgs;
use crate::config::time;
use crate::terminal::{Paper, clean};

/// Arguments of `fabricscope bursts show`.
#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    /// Sample files; those of one device, such as of consecutive minutes, are joined
    #[arg(required_unless_present = "last", value_name = "FILE")]
    files: Vec<PathBuf>,

    /// The last so many seconds that the agent of this host has in memory, such as 60s, in place of files
    #[arg(long, value_name = "TIME", value_parser = time::parse_positive, conflicts_with = "files")]
    last: Option<Duration>,

    #[command(flatten)]
    socket: SocketArgs,

    /// Only this network device
    #[arg(long, value_name = "DEVICE")]
    netdev: Option<String>,

    #[command(flatten)]
    time: TimeArgs,

    #[command(flatten)]
    device: DeviceArgs,

    /// Plot utilisation over time below the table: refused with -o json
    #[arg(long)]
    plot: bool,

    /// Write a picture for a report, whatever is printed
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    /// How to print
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

/// Reads, looks for bursts, prints and draws.
///
/// # Errors
///
/// If a plot is asked for in JSON, if a file cannot be read or the agent cannot be asked, if there is nothing to show, or if the picture or `out` cannot
/// be written.
pub(crate) fn run(args: &ShowArgs, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    if args.plot && args.output == Output::Json {
        return Err(
            Usage("--plot draws for people, below the table: leave it out with -o json, or write --svg FILE").into()
        );
    }
    let mut all = match args.last {
        Some(last) => load::last(&args.socket, args.netdev.as_deref(), last)?,
        None => load::all_files(&args.files)?,
    };
    if let Some(netdev) = &args.netdev {
        let seen = names(&all);
        all.retain(|loaded| loaded.series.netdev == *netdev);
        anyhow::ensure!(!all.is_empty(), "no samples of {netdev} there, only of {seen}");
    }
    show_all(all, args, Paper::of_stdout(), out)
}

/// One device after the other.
fn show_all(all: Vec<Loaded>, args: &ShowArgs, paper: Paper, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(
        args.svg.is_none() || all.len() == 1,
        "a picture is of one device, these are {}: choose one with --netdev",
        names(&all)
    );
    for (number, loaded) in all.into_iter().enumerate() {
        if number > 0 && args.output == Output::Table {
            writeln!(out)?;
        }
        show(loaded, args, paper, out)?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn names(all: &[Loaded]) -> String {
    load::names(&all.iter().map(|loaded| loaded.series.clone()).collect::<Vec<_>>())
}

fn show(loaded: Loaded, args: &ShowArgs, paper: Paper, out: &mut impl Write) -> anyhow::Result<()> {
    let mut series = args.time.part(loaded.series);
    args.device.complete(&mut series);
    let report = Report::of(series, args.device.threshold());
    let report = report.with_counters(args.time.part_of_counters(loaded.counters));
    if let Some(path) = &args.svg {
        file::put(path, svg::show::picture(&report)?.as_bytes())?;
    }
    match args.output {
        Output::Json => json::show(&report, out),
        Output::Table => Ok(out.write_all(screen(&report, paper, args.plot).as_bytes())?),
    }
}

/// What `show --plot` prints of a series.
pub(crate) fn with_plot(series: Series, threshold: Share, paper: Paper) -> String {
    screen(&Report::of(series, threshold), paper, true)
}

/// What is printed for people.
fn screen(report: &Report, paper: Paper, plot: bool) -> String {
    let mut text = text(report, paper);
    if plot {
        text.push('\n');
        text.push_str(&plot::plot(report, paper));
    }
    text
}

/// What was measured, what it sums up to, and the table of bursts.
fn text(report: &Report, paper: Paper) -> String {
    let mut lines = vec![title(report), format!("measured   {}", measured(report))];
    if report.has_traffic() {
        lines.extend(traffic(report));
    }
    lines.extend(report.pause.iter().flat_map(pause::Pause::lines));
    lines.extend(pause::counter_lines(&report.counters));
    let found = report.all_bursts();
    if let Some(line_rate) = report.series.line_rate.filter(|_| !found.is_empty()) {
        let row = |burst: &Burst| Row { burst: *burst, line_rate, interval: report.series.interval };
        lines.push(String::new());
        lines.extend(field::lines(FIELDS, found.iter().map(row), paper));
    }
    lines.push(String::new());
    lines.join("\n")
}

/// The line rate, what was carried, and what bursts there were.
fn traffic(report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    lines.push(match report.limit() {
        Some(limit) => {
            let rate = report.series.line_rate.map(format::rate).unwrap_or_default();
            format!("line rate  {rate}; a burst is above {}", format::rate(limit))
        }
        None => "line rate  not known".to_owned(),
    });
    for direction in Direction::ALL {
        lines.push(format!("{:<10} {}", direction.name(), carried(report, direction)));
    }
    lines.extend(summary(report));
    lines
}

/// Which device, and when.
pub(super) fn title(report: &Report) -> String {
    let series = &report.series;
    let name = load::name(series);
    let Some(window) = report.window() else { return format!("{name}: no time was measured") };
    let (day, start) = format::day_and_time(window.start, series.interval);
    let (_, end) = format::day_and_time(window.end, series.interval);
    clean(&format!(
        "{name}, {day} {start} to {end} UTC, {} in samples of {}",
        format::duration(window.length()),
        format::duration(series.interval)
    ))
}

/// How much of the time was measured, and how well it is dated.
pub(super) fn measured(report: &Report) -> String {
    let series = &report.series;
    let all = report.window().map_or(DurationNs(0), |window| window.length());
    let counters = || report.counters.iter().map(CounterSamples::measured).max().unwrap_or_default();
    let measured = if report.has_traffic() { series.measured() } else { counters() };
    let share = if all.0 == 0 { 0.0 } else { measured.0 as f64 / all.0 as f64 };
    // What is missing must not round away.
    let share = if share < 1.0 { share.min(0.9999) } else { share };
    let lost = match series.lost {
        0 => "no bucket lost".to_owned(),
        1 => "1 bucket lost".to_owned(),
        lost => format!("{lost} buckets lost"),
    };
    let clock = match series.clock_error {
        Some(error) => format!("clock within {} of UTC", format::duration(error)),
        None => "clock error not known".to_owned(),
    };
    format!("{} ({}), {lost}, {clock}", format::duration(measured), format::percent(share))
}

/// What one direction carried.
fn carried(report: &Report, direction: Direction) -> String {
    let (total, measured) = (report.total(direction), report.series.fields.of(direction));
    if *measured == Measured::NOTHING {
        return "not measured".to_owned();
    }
    let mut parts = vec![total.bytes.map_or_else(|| "bytes not measured".to_owned(), format::bytes)];
    if let Some(mean) = total.mean {
        parts.push(format!("mean {}", format::rate(mean)));
    }
    if let Some(peak) = total.peak {
        let share = report.series.line_rate.map(|rate| peak.0 as f64 / rate.0 as f64);
        let share = share.map(|share| format!(" ({})", format::percent(share))).unwrap_or_default();
        parts.push(format!("peak {}{share}", format::rate(peak)));
    }
    let of_all = |bytes: u64| match total.bytes {
        Some(all) => format::percent(bytes as f64 / all.max(1) as f64),
        None => format::bytes(bytes),
    };
    if let Some(bytes) = total.ce_bytes {
        parts.push(format!("ECN {}", of_all(bytes)));
    }
    if let Some(bytes) = total.retransmit_bytes {
        let suspected = if direction == Direction::Rx { "suspected " } else { "" };
        parts.push(format!("{suspected}retransmits {}", of_all(bytes)));
    }
    if let Some(polls) = total.napi_exhausted.filter(|polls| *polls > 0) {
        parts.push(format!("{polls} polls out of budget"));
    }
    parts.join(", ")
}

/// How many bursts there were, and how they are distributed; or why there is no telling, and what to do.
fn summary(report: &Report) -> Vec<String> {
    let cannot_tell = |why: Unknown| match why {
        Unknown::NoLineRate => format!("cannot tell: {why}. Give it by hand: --line-rate 100Gbit"),
        _ => format!("cannot tell: {why}"),
    };
    let mut lines = Vec::new();
    match Direction::ALL.map(|direction| report.found(direction)) {
        [Ok([]), Ok([])] => return vec!["bursts     none".to_owned()],
        [Err(rx), Err(tx)] if rx == tx => return vec![format!("bursts     {}", cannot_tell(rx))],
        _ => {}
    }
    for direction in Direction::ALL {
        let bursts = match report.found(direction) {
            Ok(bursts) => bursts,
            Err(why) => {
                lines.push(format!("bursts {:<3} {}", direction.name(), cannot_tell(why)));
                continue;
            }
        };
        if bursts.is_empty() {
            lines.push(format!("bursts {:<3} none", direction.name()));
            continue;
        }
        let lengths = Distribution::of(bursts.iter().map(|burst| burst.length.0));
        let volumes = Distribution::of(bursts.iter().map(|burst| burst.bytes));
        let gaps = Distribution::of(gaps(&report.series, bursts).iter().map(|gap| gap.0));
        let burst_time = DurationNs(bursts.iter().map(|burst| burst.length.0).sum());
        let share = burst_time.0 as f64 / report.series.measured().0.max(1) as f64;
        lines.push(format!(
            "bursts {:<3} {} in {} ({} of the time)",
            direction.name(),
            bursts.len(),
            format::duration(burst_time),
            format::percent(share)
        ));
        let time: fn(u64) -> String = |ns| format::duration(DurationNs(ns));
        let rows = [("length", lengths, time), ("volume", volumes, format::bytes), ("gap", gaps, time)];
        for (name, distribution, shown) in rows {
            lines.extend(distribution.map(|distribution| quantiles(name, &distribution, shown)));
        }
    }
    lines
}

fn quantiles(name: &str, distribution: &Distribution, shown: fn(u64) -> String) -> String {
    let all: Vec<String> =
        QUANTILES.iter().map(|(quantile, q)| format!("{quantile} {}", shown(distribution.quantile(*q)))).collect();
    format!("  {name:<8} {}", all.join(", "))
}

#[cfg(test)]
mod tests;

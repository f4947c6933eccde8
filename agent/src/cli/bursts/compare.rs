//! `fabricscope bursts compare`: several hosts or devices on one clock.

pub(super) mod picture;
mod table;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use analysis::contention::{Comparison, Options, Unknown, compare};
use analysis::series::{Direction, DurationNs, Series};
use clap::ValueEnum;
use serde::Serialize;

use super::field::{self, Record};
use super::json::SeriesRecord;
use super::load::{self, DeviceArgs, TimeArgs};
use super::{Output, format, svg};
use crate::bursts::file;
use crate::config::limits;
use crate::terminal::Paper;
use table::{MEMBERS, MemberRow, PAIRS, PairRow};

/// Names the layout of the object. Keys are only ever added to it.
const SCHEMA: &str = "fabricscope.bursts-compare.v1";

/// Which way to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Way {
    /// Towards the hosts: what meets in the buffers of the switch before them
    Rx,
    /// Away from the hosts
    Tx,
}

/// Arguments of `fabricscope bursts compare`.
#[derive(Debug, clap::Args)]
pub(crate) struct CompareArgs {
    /// Files of two or more devices; those of one device, such as of consecutive minutes, are joined
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    #[command(flatten)]
    time: TimeArgs,

    #[command(flatten)]
    device: DeviceArgs,

    /// Which way to look
    #[arg(long, value_enum, default_value_t = Way::Rx)]
    direction: Way,

    /// Compare in bins of this length, such as 10ms [default: the longest interval of the files]
    #[arg(long, value_name = "TIME", value_parser = load::length)]
    bin: Option<DurationNs>,

    /// How far clocks may be off, for files that do not say
    #[arg(long, value_name = "TIME", value_parser = load::length)]
    clock_error: Option<DurationNs>,

    /// Write a picture for a report
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    /// How to print
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

/// Devices side by side.
pub(super) struct Compared {
    pub(super) series: Vec<Series>,
    pub(super) names: Vec<String>,
    pub(super) options: Options,
    pub(super) found: Comparison,
}

/// Reads, compares, prints and draws.
///
/// # Errors
///
/// If a file cannot be read, if the devices cannot be compared, or if the picture or `out` cannot be written.
pub(crate) fn run(args: &CompareArgs, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    show(load::files(&args.files)?, args, Paper::of_stdout(), out)
}

fn show(series: Vec<Series>, args: &CompareArgs, paper: Paper, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let mut series: Vec<Series> = series.into_iter().map(|series| args.time.part(series)).collect();
    for series in &mut series {
        args.device.complete(series);
        series.clock_error = series.clock_error.or(args.clock_error);
    }
    let direction = match args.direction {
        Way::Rx => Direction::Rx,
        Way::Tx => Direction::Tx,
    };
    let options = Options { direction, threshold: args.device.threshold(), bin: args.bin };
    let names: Vec<String> = series.iter().map(load::name).collect();
    let found = match compare(&series.iter().collect::<Vec<_>>(), options) {
        Ok(found) => found,
        Err(why) => anyhow::bail!("cannot tell who bursts together: {}", advice(why, &names)),
    };
    let compared = Compared { series, names, options, found };
    if let Some(path) = &args.svg {
        file::put(path, svg::compare::picture(&compared)?.as_bytes())?;
    }
    match args.output {
        Output::Json => json(&compared, out)?,
        Output::Table => out.write_all(text(&compared, paper).as_bytes())?,
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// What stands in the way, of whom, and what to do.
fn advice(why: Unknown, names: &[String]) -> String {
    let name = |place: usize| names.get(place).map_or("", String::as_str);
    match why {
        Unknown::TooFew => format!("{why}; there is only {}", name(0)),
        Unknown::Bursts(place, analysis::burst::Unknown::NoLineRate) => {
            format!("{}: {why}. Give it by hand: --line-rate 100Gbit", name(place))
        }
        Unknown::Bursts(place, analysis::burst::Unknown::NoBytes(direction)) => {
            let other = direction.other().name();
            format!("{}: {why}. Leave it out, or look the other way: --direction {other}", name(place))
        }
        Unknown::Bursts(place, _) => format!("{}: {why}", name(place)),
        Unknown::NoCommonTime | Unknown::TooManyBins(_) => why.to_string(),
        Unknown::TooFine(place, interval) => {
            let interval = format::duration(interval);
            format!("{} has samples of {interval}: give --bin {} or more", name(place), compact(&interval))
        }
        Unknown::NoClockError(place) => {
            format!("{}: {why}. Give it by hand if you know it: --clock-error 100us", name(place))
        }
        Unknown::ClocksApart(first, second, apart) => {
            let (one, other, apart) = (name(first), name(second), format::duration(apart));
            let bin = compact(&apart);
            format!("the clocks of {one} and {other} may be {apart} apart, more than a bin: give --bin {bin} or more")
        }
    }
}

/// A time as the command line takes it.
fn compact(time: &str) -> String {
    time.replace(' ', "")
}

fn members(compared: &Compared) -> impl Iterator<Item = MemberRow> {
    let bins = compared.found.contention.len();
    let all = compared.names.iter().zip(&compared.found.members);
    all.map(move |(name, member)| MemberRow::of(name, member, bins))
}

fn pairs(compared: &Compared) -> impl Iterator<Item = PairRow> {
    compared.found.pairs.iter().map(|pair| PairRow::of(*pair, &compared.names))
}

fn text(compared: &Compared, paper: Paper) -> String {
    let found = &compared.found;
    let (day, start) = format::day_and_time(found.window.start, found.bin);
    let (_, end) = format::day_and_time(found.window.end, found.bin);
    let clocks = match found.clocks_apart.0 {
        0 => "on one clock".to_owned(),
        _ => format!("clocks at most {} apart", format::duration(found.clocks_apart)),
    };
    let mut lines = vec![format!(
        "{} devices, {day} {start} to {end} UTC, {} bins of {}, {clocks}",
        compared.names.len(),
        found.contention.len(),
        format::duration(found.bin)
    )];
    lines.push(format!(
        "{} bursts above {} of the line rate",
        compared.options.direction.name(),
        compared.options.threshold.value()
    ));
    lines.push(contention(found));
    lines.push(String::new());
    lines.extend(field::lines(MEMBERS, members(compared), paper));
    lines.push(String::new());
    if found.pairs.is_empty() {
        lines.push("No two devices burst.".to_owned());
    } else {
        lines.extend(field::lines(PAIRS, pairs(compared).take(limits::SHOWN_PAIRS), paper));
    }
    if let Some(more) = found.pairs.len().checked_sub(limits::SHOWN_PAIRS).filter(|more| *more > 0) {
        lines.push(format!("{more} more pairs with less overlap: -o json has them all"));
    }
    lines.push(String::new());
    lines.push(picture::picture(compared, paper));
    lines.join("\n")
}

/// How many counts of devices are told apart in a line: the rest is one.
const COUNTS: usize = 6;

/// How many burst at once.
fn contention(found: &Comparison) -> String {
    let Some(mean) = found.contention_mean() else {
        return "contention cannot tell: in no bin all were measured".to_owned();
    };
    let share = |bins: u64| format::percent(bins as f64 / found.complete_bins() as f64);
    let (few, many) = found.distribution.split_at(COUNTS.min(found.distribution.len()));
    let mut shares: Vec<String> = Vec::new();
    for (devices, bins) in few.iter().enumerate().filter(|(_, bins)| **bins > 0) {
        let devices = if devices == 0 { "none".to_owned() } else { devices.to_string() };
        shares.push(format!("{devices} in {}", share(*bins)));
    }
    let many: u64 = many.iter().sum();
    if many > 0 {
        shares.push(format!("{COUNTS} or more in {}", share(many)));
    }
    let (shares, mean) = (shares.join(", "), format::digits(mean));
    format!("contention {shares} of bins; mean {mean}, max {}", found.contention_max())
}

#[serde_with::skip_serializing_none]
#[derive(Serialize)]
struct CompareRecord<'a> {
    schema: &'static str,
    start: Option<String>,
    start_ns: i64,
    end: Option<String>,
    end_ns: i64,
    bin_ns: u64,
    bins: usize,
    clocks_apart_ns: u64,
    direction: &'static str,
    threshold: f64,
    contention_mean: Option<f64>,
    contention_max: u32,
    /// In how many bins none burst, one did, and so on: where all were measured.
    contention_bins: &'a [u64],
    devices: Vec<DeviceRecord<'a>>,
    pairs: Vec<Record<PairRow>>,
}

#[derive(Serialize)]
struct DeviceRecord<'a> {
    #[serde(flatten)]
    series: SeriesRecord<'a>,
    #[serde(flatten)]
    member: Record<MemberRow>,
}

fn json(compared: &Compared, out: &mut impl Write) -> anyhow::Result<()> {
    let found = &compared.found;
    let device = |(series, row)| DeviceRecord { series: SeriesRecord::of(series), member: Record(MEMBERS, row) };
    let record = CompareRecord {
        schema: SCHEMA,
        start: format::rfc3339(found.window.start),
        start_ns: found.window.start.0,
        end: format::rfc3339(found.window.end),
        end_ns: found.window.end.0,
        bin_ns: found.bin.0,
        bins: found.contention.len(),
        clocks_apart_ns: found.clocks_apart.0,
        direction: compared.options.direction.name(),
        threshold: compared.options.threshold.value(),
        contention_mean: found.contention_mean(),
        contention_max: found.contention_max(),
        contention_bins: &found.distribution,
        devices: compared.series.iter().zip(members(compared)).map(device).collect(),
        pairs: pairs(compared).map(|row| Record(PAIRS, row)).collect(),
    };
    serde_json::to_writer(&mut *out, &record)?;
    writeln!(out)?;
    Ok(())
}

#[cfg(test)]
mod tests;

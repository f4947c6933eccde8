//! Utilisation over time in a terminal: bars of block characters, the mean solid and the peak shaded.

use std::fmt::Write as _;

use analysis::burst::Burst;
use analysis::series::{BitsPerSecond, Direction, DurationNs, Series, Span};
use analysis::utilisation::{Bin, bins};
use anstyle::{AnsiColor, Style};

use super::format;
use super::report::Report;
use crate::terminal::Paper;

/// Width where there is no terminal: a log, a file, a pipe.
const WIDTH_DEFAULT: usize = 100;

/// Least columns of bars; a narrower terminal wraps.
const COLUMNS_MIN: usize = 20;

/// Lines of bars in each direction.
const LINES: usize = 8;

/// Columns before the bars: a rate and the axis.
pub(super) const MARGIN: usize = 13;

/// Bars that fill a character by eighths, from none.
const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Columns of bars that fit on this paper.
pub(super) fn columns(paper: Paper, margin: usize) -> usize {
    paper.width.unwrap_or(WIDTH_DEFAULT).saturating_sub(margin).max(COLUMNS_MIN)
}

/// Bins for so many columns: where there are fewer samples, each has the same number of columns, so that none lies in two.
pub(super) fn count(series: &Series, window: Span, columns: usize) -> usize {
    let samples = window.length().0.checked_div(series.interval.0).and_then(|samples| usize::try_from(samples).ok());
    match samples.filter(|samples| (1..columns).contains(samples)) {
        Some(samples) => columns - columns % samples,
        None => columns,
    }
}

/// One direction of a series.
struct Chart {
    direction: Direction,
    bins: Vec<Bin>,
    /// The rate at the upper end, in bits a second.
    top: f64,
    /// The rate above which there are bursts.
    threshold: Option<BitsPerSecond>,
}

/// The upper end of an axis: the line rate where a good part of it was used, else a round number above the peak.
pub(super) fn top(line_rate: Option<BitsPerSecond>, peak: BitsPerSecond) -> f64 {
    let peak = peak.0 as f64;
    match line_rate.map(|rate| rate.0 as f64) {
        Some(rate) if peak == 0.0 || peak <= rate && peak >= 0.3 * rate => rate,
        _ => round_up(peak.max(1.0)),
    }
}

/// The next of 1, 1.5, 2, 3, 4, 5, 6, 8, 10, and so on.
fn round_up(value: f64) -> f64 {
    let decade = 10f64.powf(value.log10().floor());
    let steps = [1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0].map(|step| step * decade);
    steps.into_iter().find(|step| *step >= value).unwrap_or(value)
}

/// Both directions, one below the other, over the same time; pause below them.
pub(super) fn plot(report: &Report, paper: Paper) -> String {
    let Some(window) = report.window() else { return String::new() };
    let count = count(&report.series, window, columns(paper, MARGIN));
    let mut text = String::new();
    for direction in Direction::ALL.into_iter().filter(|_| report.has_traffic()) {
        if !report.series.fields.of(direction).bytes {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{}: bytes were not measured", direction.name());
            continue;
        }
        let bins = bins(&report.series, direction, window, count);
        let peak = bins.iter().filter_map(|bin| bin.peak).max().unwrap_or(BitsPerSecond(0));
        let top = top(report.series.line_rate, peak);
        let chart = Chart { direction, bins, top, threshold: report.limit() };
        text.push_str(&chart.text(report, paper));
    }
    if let Some(pause) = &report.pause {
        text.push_str(&pause.plot(window, count, paper));
    }
    text.push_str(&times(window, report.series.interval, count, MARGIN - 1));
    text
}

impl Chart {
    fn text(&self, report: &Report, paper: Paper) -> String {
        let (size, unit) = format::rate_unit(self.top);
        let style = Style::new().fg_color(Some(colour(self.direction).into()));
        let exhausted = self.exhausted();
        let also = if exhausted.is_empty() { "" } else { ", ! polls out of budget" };
        let name = self.direction.name();
        let mut text = format!("{name} in {unit}: █ mean, ░ peak, ^ burst, ? not measured{also}\n");
        for line in (0..LINES).rev() {
            let label = match line {
                _ if line + 1 == LINES => format::digits(self.top / size),
                0 => "0".to_owned(),
                _ if Some(line) == self.threshold_line() => {
                    let limit = self.threshold.map_or(0.0, |limit| limit.0 as f64);
                    format!("burst {}", format::digits(limit / size))
                }
                _ => String::new(),
            };
            let bars: String = self.bins.iter().map(|bin| self.cell(bin, line)).collect();
            let _ = writeln!(text, "{label:>11} │{}", paper.styled(style, bars.trim_end()));
        }
        for marks in [self.marks(report), exhausted].into_iter().filter(|marks| !marks.is_empty()) {
            let red = Style::new().fg_color(Some(AnsiColor::Red.into()));
            let _ = writeln!(text, "{:>11} │{}", "", paper.styled(red, &marks));
        }
        text
    }

    fn threshold_line(&self) -> Option<usize> {
        let limit = self.threshold?.0 as f64;
        (limit < self.top).then(|| (limit / self.top * LINES as f64) as usize)
    }

    /// The part of a bar in one line, counted from below.
    fn cell(&self, bin: &Bin, line: usize) -> char {
        let level = |rate: f64| rate / self.top * LINES as f64 - line as f64;
        let (Some(mean), Some(peak)) = (bin.mean(), bin.peak) else {
            return if line == 0 { '?' } else { ' ' };
        };
        let eighths = (level(mean) * 8.0).round().clamp(0.0, 8.0) as usize;
        // What is there shows, however little it is.
        let eighths = if line == 0 && mean > 0.0 { eighths.max(1) } else { eighths };
        match EIGHTHS.get(eighths) {
            Some(bar) if eighths > 0 => *bar,
            _ if level(peak.0 as f64) >= 0.5 => '░',
            _ if Some(line) == self.threshold_line() => '┄',
            _ => ' ',
        }
    }

    /// A mark below each column in which the host did not keep up.
    fn exhausted(&self) -> String {
        let mark = |bin: &Bin| if bin.napi_exhausted { '!' } else { ' ' };
        self.bins.iter().map(mark).collect::<String>().trim_end().to_owned()
    }

    /// A mark below each column that a burst lies in.
    fn marks(&self, report: &Report) -> String {
        let mut bursts = report.bursts(self.direction).iter().peekable();
        let mark = |bin: &Bin| {
            while bursts.next_if(|burst| burst.span().end <= bin.span.start).is_some() {}
            let inside = |burst: &&Burst| burst.span().overlap(bin.span).is_some();
            if bursts.peek().is_some_and(inside) { '^' } else { ' ' }
        };
        self.bins.iter().map(mark).collect::<String>().trim_end().to_owned()
    }
}

/// A share as a bar of one character; what is there shows, however little it is.
pub(super) fn eighth(share: Option<f64>) -> char {
    let Some(share) = share else { return '?' };
    let least = usize::from(share > 0.0);
    EIGHTHS.get(((share * 8.0).round() as usize).max(least)).copied().unwrap_or('█')
}

/// The colour of a direction.
pub(super) const fn colour(direction: Direction) -> AnsiColor {
    match direction {
        Direction::Rx => AnsiColor::Cyan,
        Direction::Tx => AnsiColor::Yellow,
    }
}

/// The axis of time below bars: its ends, and its middle where there is room.
pub(super) fn times(window: Span, interval: DurationNs, count: usize, margin: usize) -> String {
    let half = window.start.after(DurationNs(window.length().0 / 2));
    let [start, middle, end] = [window.start, half, window.end].map(|time| format::day_and_time(time, interval).1);
    let (left, width) = (count / 2, start.len());
    let margin = " ".repeat(margin);
    let axis = format!("{margin}└{}\n", "─".repeat(count));
    let room = count.saturating_sub(left);
    if count < 3 * width + 4 {
        // At the least a blank between them, even if the axis is shorter.
        let rest = count.saturating_sub(width).max(width + 1);
        return format!("{axis}{margin} {start}{end:>rest$}\n");
    }
    let middle = format!("{middle:<room$}");
    let rest: String = middle.chars().take(room.saturating_sub(end.len())).collect();
    format!("{axis}{margin} {start:<left$}{rest}{end}\n")
}

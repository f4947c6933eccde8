//! The picture of one device: utilisation each way, bursts, what was marked and sent again, and pause.

use analysis::series::{BitsPerSecond, Direction, Measured, Span};
use analysis::utilisation::{Bin, bins};
use plotters::prelude::{AreaSeries, Color as _, DashedLineSeries, LineSeries, ShapeStyle};

use super::super::pause::Pause;
use super::super::report::Report;
use super::super::{format, plot, show};
use super::pause::draw_pause;
use super::{
    ABOVE, Area, BELOW, BINS_MAX, BURST, Drawn, EXHAUSTED, FAINT, HEADING, Meaning, RX, TEXT, TX, TimeAxis, UNMEASURED,
    chart, colour, heading, mark, picture as draw, shade, steps, unmeasured, write,
};
use crate::config::limits;

/// Pixels of a chart of rates.
const TALL: u32 = 220;

/// Pixels to the left of the charts.
pub(super) const LEFT: u32 = 80;

/// Pixels of a band.
const LOW: u32 = 120;

/// Pixels below the chart of rx, where polls that used up their budget are marked.
const POLLS: u32 = ABOVE;

/// A band below the rates: its name, whether a direction has it, and its bytes.
struct Band {
    label: fn(&Report) -> &'static str,
    is_measured: fn(&Measured) -> bool,
    bytes: fn(&Bin) -> Option<f64>,
}

/// Each is left out where the source does not measure it.
const BANDS: [Band; 2] = [
    Band { label: |_| "marked ECN CE", is_measured: |measured| measured.ce, bytes: |bin| bin.ce_bytes },
    Band {
        label: |report| match report.series.fields.rx.retransmits {
            true => "retransmitted (rx: suspected)",
            false => "retransmitted",
        },
        is_measured: |measured| measured.retransmits,
        bytes: |bin| bin.retransmit_bytes,
    },
];

/// Draws a series.
///
/// # Errors
///
/// If no time was measured, or the picture cannot be drawn.
pub(in super::super) fn picture(report: &Report) -> anyhow::Result<String> {
    let Some(window) = report.window().filter(|window| window.length().0 > 0) else {
        anyhow::bail!("{}: no time was measured, there is nothing to draw", super::super::load::name(&report.series));
    };
    let axis = TimeAxis::new(window, report.series.interval, LEFT);
    let fields = &report.series.fields;
    let measured = |band: &&Band| Direction::ALL.iter().any(|direction| (band.is_measured)(fields.of(*direction)));
    let bands: Vec<&Band> = BANDS.iter().filter(measured).collect();
    let paused: Vec<(&Pause, Direction)> =
        report.pause.iter().flat_map(|pause| pause.directions().iter().map(move |of| (pause, *of))).collect();
    let parts = if report.has_traffic() { Direction::ALL.len() + bands.len() } else { 0 } + paused.len();
    anyhow::ensure!(parts > 0, "{}: neither traffic nor pause was sampled", super::super::load::name(&report.series));
    let rates: u32 = Direction::ALL.iter().map(|direction| height(report, *direction).iter().sum::<u32>()).sum();
    let rates = if report.has_traffic() { rates } else { 0 };
    let low =
        LOW * u32::try_from(if report.has_traffic() { bands.len() } else { 0 } + paused.len()).unwrap_or_default();
    draw(HEADING + rates + low + BELOW, |root| {
        let (top, mut rest) = root.split_vertically(HEADING);
        let what = if report.has_traffic() { "Utilisation" } else { "Pause" };
        heading(&top, &format!("{what} of {}", show::title(report)), &below(report), &legend(report))?;
        let count = plot::count(&report.series, window, BINS_MAX);
        let mut left = parts;
        // The last part has room for the axis of time.
        let mut part = |height: u32| {
            left -= 1;
            let (area, below) = rest.split_vertically(height + if left == 0 { BELOW } else { 0 });
            rest = below;
            (area, left == 0)
        };
        if report.has_traffic() {
            let all = Direction::ALL.map(|direction| (direction, bins(&report.series, direction, window, count)));
            for (direction, bins) in &all {
                let (area, last) = part(height(report, *direction).iter().sum());
                draw_rates(&area, &axis, report, *direction, bins, last)?;
            }
            for band in &bands {
                let (area, last) = part(LOW);
                draw_band(&area, &axis, report, band, &all, last)?;
            }
        }
        for (pause, direction) in &paused {
            let (area, last) = part(LOW);
            draw_pause(&area, &axis, pause, *direction, count, last)?;
        }
        Ok(())
    })
}

/// Polls that used up their budget: marked where there were any, as they are told.
fn exhausted(report: &Report, direction: Direction) -> u64 {
    report.total(direction).napi_exhausted.unwrap_or_default()
}

/// Pixels of one direction: of its rates, which are not drawn where they were not measured, and of the marks below.
fn height(report: &Report, direction: Direction) -> [u32; 2] {
    let rates = if report.series.fields.of(direction).bytes { TALL } else { LOW };
    [rates, if exhausted(report, direction) > 0 { POLLS } else { 0 }]
}

/// What was measured, and how many bursts there are.
fn below(report: &Report) -> String {
    if !report.has_traffic() {
        return format!("measured {}", show::measured(report));
    }
    let count = |direction: Direction| match report.found(direction) {
        Ok(bursts) => format!("{} {}", bursts.len(), direction.name()),
        Err(why) => why.to_string(),
    };
    let all: usize = Direction::ALL.iter().map(|direction| report.bursts(*direction).len()).sum();
    let bursts = match report.cannot_tell() {
        Some(why) => format!("bursts: cannot tell, {why}"),
        None if all > limits::PICTURE_MARKS => {
            format!("{all} bursts, of which the {} longest are marked", limits::PICTURE_MARKS)
        }
        None => format!("{all} bursts ({})", Direction::ALL.map(count).join(", ")),
    };
    format!("{bursts}; measured {}", show::measured(report))
}

fn legend(report: &Report) -> Vec<Meaning> {
    if !report.has_traffic() {
        return vec![Meaning::new("not measured", UNMEASURED, 1.0)];
    }
    let mut legend = vec![
        Meaning::new("rx mean", RX, 0.85),
        Meaning::new("rx peak", RX, 0.3),
        Meaning::new("tx mean", TX, 0.85),
        Meaning::new("tx peak", TX, 0.3),
    ];
    if let Some(limit) = report.limit() {
        legend.push(Meaning::new(format!("burst (above {}, dashed)", format::rate(limit)), BURST, 1.0));
    }
    if let Some(rate) = report.series.line_rate {
        legend.push(Meaning::new(format!("line rate {}", format::rate(rate)), FAINT, 1.0));
    }
    match exhausted(report, Direction::Rx) {
        0 => {}
        1 => legend.push(Meaning::new("1 poll out of budget", EXHAUSTED, 1.0)),
        polls => legend.push(Meaning::new(format!("{polls} polls out of budget"), EXHAUSTED, 1.0)),
    }
    legend.push(Meaning::new("not measured", UNMEASURED, 1.0));
    legend
}

/// The rates of one direction.
fn draw_rates(
    area: &Area<'_>,
    axis: &TimeAxis,
    report: &Report,
    direction: Direction,
    bins: &[Bin],
    last: bool,
) -> Drawn {
    let peak = bins.iter().filter_map(|bin| bin.peak).max().unwrap_or(BitsPerSecond(0));
    let top = plot::top(report.series.line_rate, peak);
    let (size, unit) = format::rate_unit(top);
    let [_, polls] = height(report, direction);
    let (area, below) = &area.split_vertically(area.dim_in_pixel().1 - polls);
    // A little room, so that a line at the upper end is not half cut off.
    let mut chart = chart(area, axis, &format!("{} [{unit}]", direction.name()), top / size * 1.04, last)?;
    if polls > 0 {
        let polls: Vec<Span> = bins.iter().filter(|bin| bin.napi_exhausted).map(|bin| bin.span).collect();
        mark(below, &chart, axis, &polls, EXHAUSTED)?;
    }
    let bursts = marked(report, direction);
    if !report.series.fields.of(direction).bytes {
        shade(&mut chart, axis, &[axis.window], UNMEASURED, 1.0)?;
        let what = format!("{} bytes were not measured", direction.name());
        return write(area, &what, (LEFT as i32 + 8, ABOVE as i32 + 2), 15.0, TEXT);
    }
    shade(&mut chart, axis, &unmeasured(axis.window, &report.series.covered), UNMEASURED, 1.0)?;
    shade(&mut chart, axis, &bursts, BURST, 0.13)?;
    let colour = colour(direction);
    let scaled = |rate: f64| rate / size;
    for piece in steps(axis, top / size, bins.iter().map(|bin| (bin.span, bin.peak.map(|peak| scaled(peak.0 as f64)))))
    {
        chart.draw_series(AreaSeries::new(piece, 0.0, colour.mix(0.3)))?;
    }
    for piece in steps(axis, top / size, bins.iter().map(|bin| (bin.span, bin.mean().map(scaled)))) {
        chart.draw_series(AreaSeries::new(piece, 0.0, colour.mix(0.85)))?;
    }
    let across = |rate: BitsPerSecond| [(0.0, scaled(rate.0 as f64)), (axis.end(), scaled(rate.0 as f64))];
    if let Some(limit) = report.limit().filter(|limit| limit.0 as f64 <= top) {
        chart.draw_series(DashedLineSeries::new(across(limit), 6, 5, ShapeStyle::from(BURST).stroke_width(1)))?;
    }
    if let Some(rate) = report.series.line_rate.filter(|rate| rate.0 as f64 <= top) {
        chart.draw_series(LineSeries::new(across(rate), ShapeStyle::from(FAINT).stroke_width(1)))?;
    }
    mark(area, &chart, axis, &bursts, BURST)
}

/// The bursts that are marked: the longest, as many as may be.
fn marked(report: &Report, direction: Direction) -> Vec<Span> {
    let mut bursts = report.all_bursts();
    bursts.sort_by_key(|burst| std::cmp::Reverse(burst.length));
    let longest = bursts.into_iter().take(limits::PICTURE_MARKS);
    longest.filter(|burst| burst.direction == direction).map(|burst| burst.span()).collect()
}

fn draw_band(
    area: &Area<'_>,
    axis: &TimeAxis,
    report: &Report,
    band: &Band,
    all: &[(Direction, Vec<Bin>)],
    last: bool,
) -> Drawn {
    let rate = |bin: &Bin| bin.rate((band.bytes)(bin));
    let measured = all.iter().filter(|(direction, _)| (band.is_measured)(report.series.fields.of(*direction)));
    let peak = measured.clone().flat_map(|(_, bins)| bins.iter().filter_map(rate)).fold(0.0, f64::max);
    let top = plot::top(None, BitsPerSecond(peak.ceil() as u64));
    let (size, unit) = format::rate_unit(top);
    // Room for its name above the lines.
    let mut chart = chart(area, axis, &format!("[{unit}]"), top / size * 1.35, last)?;
    shade(&mut chart, axis, &unmeasured(axis.window, &report.series.covered), UNMEASURED, 1.0)?;
    let name = (band.label)(report);
    let label = if peak > 0.0 { name.to_owned() } else { format!("{name}: none") };
    write(area, &label, (LEFT as i32 + 8, ABOVE as i32 + 2), 15.0, TEXT)?;
    for (direction, bins) in measured {
        let style = ShapeStyle::from(colour(*direction)).stroke_width(2);
        for piece in steps(axis, top / size, bins.iter().map(|bin| (bin.span, rate(bin).map(|rate| rate / size)))) {
            chart.draw_series(LineSeries::new(piece, style))?;
        }
    }
    Ok(())
}

//! Pictures for reports: what they have in common. Size, colours, heading, legend, and the axis of time.

pub(super) mod compare;
mod pause;
pub(super) mod show;

use std::io;

use analysis::series::{Direction, DurationNs, Span, UtcNs};
use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::{
    Cartesian2d, ChartBuilder, ChartContext, Color as _, DrawingArea, DrawingAreaErrorKind, IntoDrawingArea as _,
    IntoFont as _, RGBColor, Rectangle, SVGBackend, Text, WHITE,
};

use super::format;
use crate::terminal::clean;

/// In pixels.
const WIDTH: u32 = 1200;

/// Bins of time: more than one for each pixel would not show.
const BINS_MAX: usize = 1100;

/// Pixels of the heading: title, what was measured, legend.
const HEADING: u32 = 84;

/// Pixels to the left of everything.
const EDGE: u32 = 14;

/// Pixels to the right of a chart.
const RIGHT: u32 = 24;

/// Pixels above a chart, where bursts are marked.
const ABOVE: u32 = 16;

/// Pixels below the last chart, for the axis of time.
const BELOW: u32 = 48;

const TEXT: RGBColor = RGBColor(34, 34, 34);
const FAINT: RGBColor = RGBColor(120, 120, 120);
const GRID: RGBColor = RGBColor(225, 225, 225);
const LANE_GROUND: RGBColor = RGBColor(243, 243, 243);
const UNMEASURED: RGBColor = RGBColor(200, 200, 200);
const BURST: RGBColor = RGBColor(204, 51, 17);
const EXHAUSTED: RGBColor = RGBColor(170, 51, 119);
const RX: RGBColor = RGBColor(0, 119, 187);
const TX: RGBColor = RGBColor(0, 135, 110);

type Area<'s> = DrawingArea<SVGBackend<'s>, Shift>;
type Chart<'a, 's> = ChartContext<'a, SVGBackend<'s>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;
type Drawn<T = ()> = Result<T, DrawingAreaErrorKind<io::Error>>;

const fn colour(direction: Direction) -> RGBColor {
    match direction {
        Direction::Rx => RX,
        Direction::Tx => TX,
    }
}

/// A picture of this height, as text.
fn picture(height: u32, draw: impl FnOnce(&Area<'_>) -> Drawn) -> anyhow::Result<String> {
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, (WIDTH, height)).into_drawing_area();
        let drawn = root.fill(&WHITE).and_then(|()| draw(&root)).and_then(|()| root.present());
        drawn.map_err(|error| anyhow::anyhow!("cannot draw the picture: {error}"))?;
    }
    Ok(text)
}

fn write(area: &Area<'_>, text: &str, at: (i32, i32), size: f64, colour: RGBColor) -> Drawn {
    area.draw(&Text::new(clean(text), at, ("sans-serif", size).into_font().color(&colour)))
}

/// What a part of the picture means.
struct Meaning {
    text: String,
    colour: RGBColor,
    opacity: f64,
}

impl Meaning {
    fn new(text: impl Into<String>, colour: RGBColor, opacity: f64) -> Self {
        Self { text: text.into(), colour, opacity }
    }
}

/// The title, a line below it, and the legend.
fn heading(area: &Area<'_>, title: &str, below: &str, legend: &[Meaning]) -> Drawn {
    write(area, title, (EDGE as i32, 10), 22.0, TEXT)?;
    write(area, below, (EDGE as i32, 36), 16.0, FAINT)?;
    let mut x = EDGE as i32;
    for meaning in legend {
        area.draw(&Rectangle::new([(x, 62), (x + 16, 73)], meaning.colour.mix(meaning.opacity).filled()))?;
        write(area, &meaning.text, (x + 22, 61), 15.0, TEXT)?;
        // No font is at hand that could tell the width: 7 pixels a letter are enough at this size.
        x += 44 + 7 * i32::try_from(meaning.text.chars().count()).unwrap_or_default();
    }
    Ok(())
}

/// The horizontal axis: time since the start of a window.
struct TimeAxis {
    window: Span,
    /// Nanoseconds of its unit.
    size: f64,
    label: String,
    /// Pixels to the left of charts, for the numbers and the names of their axes.
    left: u32,
}

impl TimeAxis {
    fn new(window: Span, interval: DurationNs, left: u32) -> Self {
        let (size, unit) = if window.length().0 > 10_000_000_000 { (1e9, "s") } else { (1e6, "ms") };
        let (day, time) = format::day_and_time(window.start, interval);
        Self { window, size, label: format!("time since {day} {time} UTC [{unit}]"), left }
    }

    /// Where a time is, or the end that is nearer to it: the library counts pixels in 32 bits.
    fn at(&self, time: UtcNs) -> f64 {
        time.min(self.window.end).since(self.window.start).0 as f64 / self.size
    }

    fn end(&self) -> f64 {
        self.at(self.window.end)
    }
}

/// A chart over time with its axes; only the last one of a picture names the axis of time.
fn chart<'a, 's>(area: &'a Area<'s>, axis: &TimeAxis, label: &str, top: f64, last: bool) -> Drawn<Chart<'a, 's>> {
    let mut builder = ChartBuilder::on(area);
    builder.margin_top(ABOVE).margin_right(RIGHT).margin_left(EDGE).y_label_area_size(axis.left - EDGE);
    builder.x_label_area_size(if last { BELOW } else { 4 });
    let mut chart = builder.build_cartesian_2d(0.0..axis.end(), 0.0..top)?;
    let font = ("sans-serif", 15).into_font().color(&TEXT);
    let mut mesh = chart.configure_mesh();
    mesh.light_line_style(WHITE.mix(0.0)).bold_line_style(GRID).axis_style(FAINT);
    mesh.label_style(font.clone()).axis_desc_style(font).y_desc(label).y_labels(5).x_labels(11);
    let numbered = |value: &f64| if last { format::digits(*value) } else { String::new() };
    mesh.y_label_formatter(&|value| format::digits(*value)).x_label_formatter(&numbered);
    if last {
        mesh.x_desc(axis.label.as_str());
    }
    mesh.draw()?;
    drop(mesh);
    Ok(chart)
}

/// Marks spans of time above a chart, one by one, at least two pixels wide.
fn mark(area: &Area<'_>, chart: &Chart<'_, '_>, axis: &TimeAxis, spans: &[Span], colour: RGBColor) -> Drawn {
    let base = area.get_base_pixel();
    let pixel = |time: UtcNs| chart.backend_coord(&(axis.at(time), 0.0)).0 - base.0;
    for span in spans {
        let (from, to) = (pixel(span.start), pixel(span.end));
        let below = i32::try_from(ABOVE).unwrap_or_default() - 4;
        area.draw(&Rectangle::new([(from, 4), (to.max(from + 2), below)], colour.filled()))?;
    }
    Ok(())
}

/// Shades spans of time over the height of a chart.
fn shade(chart: &mut Chart<'_, '_>, axis: &TimeAxis, spans: &[Span], colour: RGBColor, opacity: f64) -> Drawn {
    let top = chart.y_range().end;
    let style = colour.mix(opacity).filled();
    let band = |span: &Span| Rectangle::new([(axis.at(span.start), 0.0), (axis.at(span.end), top)], style);
    chart.draw_series(spans.iter().map(band))?;
    Ok(())
}

/// The corners of steps, none above `top`, in pieces that are broken where there is no value.
fn steps(axis: &TimeAxis, top: f64, values: impl Iterator<Item = (Span, Option<f64>)>) -> Vec<Vec<(f64, f64)>> {
    let mut pieces: Vec<Vec<(f64, f64)>> = Vec::new();
    let mut broken = true;
    for (span, value) in values {
        let Some(value) = value.map(|value| value.min(top)) else {
            broken = true;
            continue;
        };
        if broken {
            pieces.push(Vec::new());
        }
        broken = false;
        if let Some(piece) = pieces.last_mut() {
            piece.extend([(axis.at(span.start), value), (axis.at(span.end), value)]);
        }
    }
    pieces
}

/// The times of a window that were not measured.
fn unmeasured(window: Span, covered: &[Span]) -> Vec<Span> {
    let mut gaps = Vec::new();
    let mut start = window.start;
    for span in covered.iter().filter_map(|span| span.overlap(window)) {
        gaps.extend((start < span.start).then_some(Span { start, end: span.start }));
        start = span.end;
    }
    gaps.extend((start < window.end).then_some(Span { start, end: window.end }));
    gaps
}

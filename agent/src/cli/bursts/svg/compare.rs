//! The picture of several devices: who bursts when, and how many at once.

use std::ops::Range;

use analysis::contention::{Comparison, Member};
use analysis::series::{DurationNs, Span};
use plotters::prelude::{AreaSeries, Color as _, Rectangle};

use super::super::compare::Compared;
use super::super::compare::picture::{bursting, columns, most};
use super::super::format;
use super::{
    Area, BELOW, BINS_MAX, BURST, Drawn, EDGE, HEADING, LANE_GROUND, Meaning, RIGHT, RX, TEXT, TimeAxis, UNMEASURED,
    WIDTH, chart, heading, picture as draw, steps, write,
};
use crate::terminal::cut;

/// Pixels from one device's lane to the next, and of the lane itself.
const LANE: (u32, i32) = (24, 18);

/// Pixels of the chart of contention.
const TALL: u32 = 180;

/// Pixels to the left, for the names of devices, and the letters that fit there.
const LEFT: (u32, usize) = (230, 28);

/// Draws the comparison.
///
/// # Errors
///
/// If the picture cannot be drawn.
pub(in super::super) fn picture(compared: &Compared) -> anyhow::Result<String> {
    let found = &compared.found;
    let axis = TimeAxis::new(found.window, found.bin, LEFT.0);
    let lanes = LANE.0 * u32::try_from(found.members.len()).unwrap_or_default();
    draw(HEADING + lanes + TALL + BELOW, |root| {
        let (top, rest) = root.split_vertically(HEADING);
        let (upper, lower) = rest.split_vertically(lanes);
        let bins = found.contention.len();
        heading(&top, &title(compared), &below(compared), &legend())?;
        for (number, (name, member)) in (0..).zip(compared.names.iter().zip(&found.members)) {
            lane(&upper, number * LANE.0 as i32, name, member, bins)?;
        }
        let most =
            columns(bins, bins.min(BINS_MAX)).map(|bins| (span(found, &bins), Some(f64::from(most(found, bins)))));
        let top = f64::from(found.contention_max().max(1)) * 1.1;
        let most = steps(&axis, top, most);
        let mut chart = chart(&lower, &axis, "devices at once", top, true)?;
        for piece in most {
            chart.draw_series(AreaSeries::new(piece, 0.0, RX.mix(0.8)))?;
        }
        Ok(())
    })
}

/// The time of these bins.
fn span(found: &Comparison, bins: &Range<usize>) -> Span {
    let at = |bin: usize| found.window.start.after(DurationNs(found.bin.0.saturating_mul(bin as u64)));
    Span { start: at(bins.start), end: at(bins.end) }
}

fn title(compared: &Compared) -> String {
    let direction = compared.options.direction.name();
    format!("{direction} bursts of {} devices on one clock", compared.found.members.len())
}

fn below(compared: &Compared) -> String {
    let found = &compared.found;
    let mean =
        found.contention_mean().map_or_else(String::new, |mean| format!(", {} on average", format::digits(mean)));
    format!(
        "at most {} at once{mean}; above {} of the line rate; {} bins of {}, clocks at most {} apart",
        found.contention_max(),
        compared.options.threshold.value(),
        found.contention.len(),
        format::duration(found.bin),
        format::duration(found.clocks_apart)
    )
}

fn legend() -> Vec<Meaning> {
    vec![
        Meaning::new("bursting", BURST, 1.0),
        Meaning::new("part of the time", BURST, 0.4),
        Meaning::new("devices that burst at once", RX, 0.8),
        Meaning::new("not measured", UNMEASURED, 1.0),
    ]
}

/// One device: its name, and when it bursts.
fn lane(area: &Area<'_>, y: i32, name: &str, member: &Member, bins: usize) -> Drawn {
    write(area, &cut(name, LEFT.1), (EDGE as i32, y + 2), 15.0, TEXT)?;
    let (left, width) = (LEFT.0 as i32, (WIDTH - LEFT.0 - RIGHT) as usize);
    let pixel = |bin: usize| left + i32::try_from(bin * width / bins.max(1)).unwrap_or_default();
    let block = |bins: Range<usize>, style| {
        let (from, to) = (pixel(bins.start), pixel(bins.end));
        area.draw(&Rectangle::new([(from, y), (to.max(from + 1), y + LANE.1)], style))
    };
    block(0..bins, LANE_GROUND.filled())?;
    let mut columns = columns(bins, bins.min(BINS_MAX)).map(|bins| (bursting(member, bins.clone()), bins)).peekable();
    while let Some((share, mut bins)) = columns.next() {
        // Columns that look the same are one block.
        while let Some((_, next)) = columns.next_if(|(next, _)| *next == share) {
            bins.end = next.end;
        }
        match share {
            None => block(bins, UNMEASURED.filled())?,
            Some(share) if share > 0.0 => block(bins, BURST.mix(0.25 + 0.75 * share).filled())?,
            Some(_) => {}
        }
    }
    Ok(())
}

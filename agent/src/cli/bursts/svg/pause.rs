//! The band of pause below the rates: for each priority the share of the time in which it was paused.

use analysis::counter_series::Lane;
use analysis::occupancy::Bin;
use analysis::pause::meaning;
use analysis::series::Direction;
use plotters::prelude::{AreaSeries, Color as _, LineSeries, RGBColor, ShapeStyle};

use super::super::format;
use super::super::pause::Pause;
use super::show::LEFT;
use super::{ABOVE, Area, Drawn, TEXT, TimeAxis, UNMEASURED, chart, shade, steps, unmeasured, write};

/// Of each priority, and of the port; told apart by who sees less red or green too.
const COLOURS: [RGBColor; 9] = [
    RGBColor(51, 34, 136),
    RGBColor(136, 204, 238),
    RGBColor(68, 170, 153),
    RGBColor(221, 119, 34),
    RGBColor(153, 153, 51),
    RGBColor(17, 119, 51),
    RGBColor(204, 102, 119),
    RGBColor(136, 34, 85),
    RGBColor(170, 68, 153),
];

/// Pixels of a letter at the size of labels, at most.
const LETTER: i32 = 7;

/// Room for the labels above what is all of the time.
const TOP: f64 = 135.0;

fn colour(lane: Lane) -> RGBColor {
    let index = match lane {
        Lane::Priority(priority) => usize::from(priority % 8),
        Lane::Port => 8,
    };
    COLOURS.get(index).copied().unwrap_or(TEXT)
}

/// Draws one direction.
pub(super) fn draw_pause(
    area: &Area<'_>,
    axis: &TimeAxis,
    pause: &Pause,
    direction: Direction,
    count: usize,
    last: bool,
) -> Drawn {
    let label = format!("{} pause [%]", direction.name());
    let mut chart = chart(area, axis, &label, TOP, last)?;
    shade(&mut chart, axis, &unmeasured(axis.window, pause.covered()), UNMEASURED, 1.0)?;
    let lanes: Vec<_> = pause.lanes(direction).collect();
    for (lane, _) in &lanes {
        let bins = pause.bins(*lane, direction, axis.window, count);
        let values = |of: fn(&Bin) -> Option<f64>| {
            steps(axis, 100.0, bins.iter().map(move |bin| (bin.span, of(bin).map(|share| share * 100.0))))
        };
        for piece in values(|bin| bin.peak) {
            chart.draw_series(AreaSeries::new(piece, 0.0, colour(*lane).mix(0.18)))?;
        }
        for piece in values(Bin::share) {
            chart.draw_series(AreaSeries::new(piece.iter().copied(), 0.0, colour(*lane).mix(0.5)))?;
            chart.draw_series(LineSeries::new(piece, ShapeStyle::from(colour(*lane)).stroke_width(1)))?;
        }
    }
    let words =
        if lanes.is_empty() { format!("{}: none", meaning(direction)) } else { format!("{}: ", meaning(direction)) };
    let (mut x, y) = (LEFT as i32 + 8, ABOVE as i32 + 2);
    let mut put = |text: &str, colour: RGBColor| {
        write(area, text, (x, y), 15.0, colour)?;
        x += LETTER * i32::try_from(text.chars().count()).unwrap_or_default() + LETTER;
        Drawn::Ok(())
    };
    put(&words, TEXT)?;
    for (lane, total) in lanes {
        let share = format::percent(total.share().unwrap_or_default());
        put(&format!("{lane} {share} of the time"), colour(lane))?;
    }
    Ok(())
}

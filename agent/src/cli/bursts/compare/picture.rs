//! Who bursts when, in a terminal: a line for each device, and how many burst at once below.

use std::fmt::Write as _;
use std::ops::Range;

use analysis::contention::{Comparison, Member};
use textwrap::core::display_width;

use super::super::plot::{self, MARGIN};
use super::Compared;
use crate::terminal::{Paper, cut};

/// How much of a column's time a device burst: up to a quarter, half, three quarters, all.
const SHADES: [char; 4] = ['░', '▒', '▓', '█'];

/// The longest name that is shown whole.
const NAME_MAX: usize = 28;

/// The bins of each of `count` columns. Where there are fewer bins than columns, each has the same number of columns.
pub(in super::super) fn columns(bins: usize, count: usize) -> impl ExactSizeIterator<Item = Range<usize>> {
    let count = if (1..count).contains(&bins) { count - count % bins } else { count };
    (0..if bins == 0 { 0 } else { count }).map(move |column| {
        let start = column * bins / count;
        start..((column + 1) * bins / count).max(start + 1)
    })
}

/// The share of the measured bins in which a device burst; `None` if none was measured.
pub(in super::super) fn bursting(member: &Member, bins: Range<usize>) -> Option<f64> {
    let measured: Vec<bool> = bins.filter_map(|bin| member.at(bin)).collect();
    let bursting = measured.iter().filter(|bursting| **bursting).count();
    (!measured.is_empty()).then(|| bursting as f64 / measured.len() as f64)
}

/// The most devices that burst at once.
pub(in super::super) fn most(found: &Comparison, bins: Range<usize>) -> u32 {
    found.contention.get(bins).unwrap_or_default().iter().copied().max().unwrap_or_default()
}

fn shade(share: Option<f64>) -> char {
    match share {
        None => '?',
        Some(0.0) => ' ',
        Some(share) => SHADES.get(((share * 4.0).ceil() as usize).saturating_sub(1)).copied().unwrap_or('█'),
    }
}

pub(super) fn picture(compared: &Compared, paper: Paper) -> String {
    let found = &compared.found;
    let widest = compared.names.iter().map(|name| display_width(name)).max().unwrap_or_default();
    let margin = widest.clamp(MARGIN - 2, NAME_MAX);
    // The axis of a plot, and its sides.
    let count = plot::columns(paper, margin + 3);
    let bins = found.contention.len();
    let mut text = "bursting: ░▒▓█ part of the time, ? not measured; together: most devices at once\n".to_owned();
    let mut line = |name: &str, cells: &str| {
        let name = cut(name, margin);
        let pad = " ".repeat(margin.saturating_sub(display_width(&name)));
        // Writing to a string does not fail.
        let _ = writeln!(text, "{name}{pad} │{}", cells.trim_end());
    };
    for (name, member) in compared.names.iter().zip(&found.members) {
        let cells: String = columns(bins, count).map(|bins| shade(bursting(member, bins))).collect();
        line(name, &cells);
    }
    let count = columns(bins, count).len();
    let together: String = columns(bins, count).map(|bins| digit(most(found, bins))).collect();
    line("together", &together);
    text.push_str(&plot::times(found.window, found.bin, count, margin + 1));
    text
}

/// A count in one character.
fn digit(count: u32) -> char {
    match count {
        0 => ' ',
        _ => char::from_digit(count, 10).unwrap_or('+'),
    }
}

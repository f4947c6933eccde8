//! Pause of a device over time, as its own counters tell it, beside its traffic: in text, in a plot and in JSON.

use std::fmt::Write as _;

use analysis::counter_samples::CounterSamples;
use analysis::counter_series::Lane;
use analysis::occupancy::{Bin, Total, bins, total};
use analysis::pause::meaning;
use analysis::series::{Direction, DurationNs, Span};
use anstyle::Style;
use serde::Serialize;

use super::{format, plot};
use crate::config::limits;
use crate::counters::recorded::{Recorded, in_unit};
use crate::terminal::{Paper, clean};

/// What is known of a device's pause.
#[derive(Debug)]
pub(super) struct Pause {
    recorded: Recorded,
    lanes: Vec<(Direction, Lane, Total)>,
}

impl Pause {
    /// Of the counters of one device; `None` if none of them are of pause.
    pub(super) fn of(counters: &[CounterSamples]) -> Option<Self> {
        let recorded = Recorded::of(counters)?;
        let mut lanes = Vec::new();
        for direction in Direction::ALL {
            let mut found: Vec<Lane> = recorded.pieces.iter().flat_map(|piece| piece.lanes(direction)).collect();
            found.sort_unstable();
            found.dedup();
            let add = |sum: Total, piece: &_, lane| {
                let more = total(piece, lane, direction);
                Total {
                    measured: DurationNs(sum.measured.0.saturating_add(more.measured.0)),
                    paused: sum.paused + more.paused,
                    peak: sum.peak.max(more.peak),
                    from_frames: more.from_frames,
                }
            };
            lanes.extend(found.into_iter().map(|lane| {
                let total = recorded.pieces.iter().fold(Total::default(), |sum, piece| add(sum, piece, lane));
                (direction, lane, total)
            }));
        }
        Some(Self { recorded, lanes })
    }

    /// Directions in which pause is measured.
    pub(super) fn directions(&self) -> &[Direction] {
        &self.recorded.directions
    }

    /// When pause was measured.
    pub(super) fn covered(&self) -> &[Span] {
        &self.recorded.covered
    }

    /// What was paused in one direction.
    pub(super) fn lanes(&self, direction: Direction) -> impl Iterator<Item = (Lane, &Total)> {
        self.lanes.iter().filter(move |(found, ..)| *found == direction).map(|(_, lane, total)| (*lane, total))
    }

    /// A lane over a window.
    pub(super) fn bins(&self, lane: Lane, direction: Direction, window: Span, count: usize) -> Vec<Bin> {
        let mut all: Option<Vec<Bin>> = None;
        for piece in &self.recorded.pieces {
            let more = bins(piece, lane, direction, window, count);
            match &mut all {
                None => all = Some(more),
                Some(all) => {
                    for (bin, more) in all.iter_mut().zip(more) {
                        bin.measured.0 += more.measured.0;
                        bin.paused += more.paused;
                        bin.peak = match (bin.peak, more.peak) {
                            (Some(one), Some(other)) => Some(one.max(other)),
                            (one, other) => one.or(other),
                        };
                    }
                }
            }
        }
        all.unwrap_or_default()
    }

    /// One line for each direction and lane.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for direction in self.directions() {
            let before = lines.len();
            for (lane, total) in self.lanes(*direction) {
                let share = format::percent(total.share().unwrap_or_default());
                let from = if total.from_frames { ", reckoned from frames" } else { "" };
                lines.push(format!(
                    "pause {:<4} {lane}: {share} of {}, at most {} in one sample{from}",
                    direction.name(),
                    format::duration(total.measured),
                    format::percent(total.peak)
                ));
            }
            match lines.len() > before {
                true => lines.push(format!("           {}", meaning(*direction))),
                false => lines.push(format!("pause {:<4} none", direction.name())),
            }
        }
        lines
    }

    /// A row of characters for each lane: the share of the time in which it was paused.
    pub(super) fn plot(&self, window: Span, count: usize, paper: Paper) -> String {
        let mut text = String::new();
        for direction in self.directions() {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{}: █ all of the time, ? not measured", meaning(*direction));
            let style = Style::new().fg_color(Some(plot::colour(*direction).into()));
            let mut lanes: Vec<Lane> = self.lanes(*direction).map(|(lane, _)| lane).collect();
            if lanes.is_empty() {
                lanes.push(Lane::Port);
            }
            for lane in lanes {
                let bins = self.bins(lane, *direction, window, count);
                let row: String = bins.iter().map(|bin| plot::eighth(bin.share())).collect();
                let label = if self.lanes(*direction).next().is_some() { lane.to_string() } else { "none".to_owned() };
                let _ = writeln!(text, "{label:>11} │{}", paper.styled(style, row.trim_end()));
            }
        }
        text
    }

    /// As it stands in JSON.
    pub(super) fn records(&self) -> Vec<PauseRecord> {
        let record = |(direction, lane, total): &(Direction, Lane, Total)| PauseRecord {
            direction: direction.name(),
            priority: match lane {
                Lane::Port => None,
                Lane::Priority(priority) => Some(*priority),
            },
            share: total.share(),
            peak_share: total.peak,
            measured_ns: total.measured.0,
            paused_ns: total.paused.round() as u64,
            from_frames: total.from_frames,
            meaning: meaning(*direction),
        };
        self.lanes.iter().map(record).collect()
    }
}

/// What was paused, for how much of the time.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize)]
pub(super) struct PauseRecord {
    direction: &'static str,
    priority: Option<u8>,
    share: Option<f64>,
    peak_share: f64,
    measured_ns: u64,
    paused_ns: u64,
    from_frames: bool,
    meaning: &'static str,
}

/// A counter of samples.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize)]
pub(super) struct CounterRecord<'a> {
    device: &'a str,
    port: Option<u32>,
    source: &'a str,
    counter: &'a str,
    priority: Option<u8>,
    increase: f64,
    unit: &'static str,
    /// In which it moved.
    samples: usize,
    interval_ns: u64,
    measured_ns: u64,
}

/// Every counter that is sampled, those that did not move too.
pub(super) fn counter_records(all: &[CounterSamples]) -> Vec<CounterRecord<'_>> {
    let mut records = Vec::new();
    for samples in all {
        records.extend(samples.columns.iter().map(|column| {
            let (increase, unit) = in_unit(&column.counter, column.total());
            CounterRecord {
                device: &samples.device,
                port: samples.port,
                source: &samples.source,
                counter: &column.counter,
                priority: column.priority,
                increase,
                unit,
                samples: (0..samples.when.len()).filter(|at| column.growth(*at).is_some_and(|more| more > 0)).count(),
                interval_ns: samples.interval.0,
                measured_ns: samples.measured().0,
            }
        }));
    }
    records
}

/// One line for each counter that moved, pause left out, which has lines of its own.
pub(super) fn counter_lines(all: &[CounterSamples]) -> Vec<String> {
    let of_pause = |counter: &str| counter.contains("_pause_");
    let moved = counter_records(all).into_iter().filter(|record| record.samples > 0 && !of_pause(record.counter));
    let mut lines: Vec<String> = moved
        .map(|record| {
            let priority = record.priority.map(|priority| format!(" priority {priority}")).unwrap_or_default();
            let times = if record.samples == 1 { "1 sample".to_owned() } else { format!("{} samples", record.samples) };
            clean(&format!("counter    {}{priority}: {} in {times}", record.counter, record.increase))
        })
        .collect();
    if lines.len() > limits::SHOWN_COUNTERS {
        let more = lines.len() - limits::SHOWN_COUNTERS;
        lines.truncate(limits::SHOWN_COUNTERS);
        lines.push(format!("           and {more} more counters that moved: -o json has all of them"));
    }
    lines
}

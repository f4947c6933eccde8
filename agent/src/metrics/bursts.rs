//! Series of the burst sampler: few for each network device, histograms for all of them together.

use std::collections::BTreeSet;

use analysis::series::{Direction, UtcNs};

use super::page::{Page, Value};
use super::table::Metric;
use crate::bursts::account::{Account, Histogram};
use crate::bursts::recorder::{self, Status};
use crate::bursts::sessions::State;
use crate::bursts::state::{Bursts, Retraced};
use crate::kernel::ProgramAccount;
use crate::kernel::sampler::{Marks, Means};

/// Adds all of them. `now` is the wall clock.
pub(super) fn add(page: &mut Page, bursts: &Bursts, now: UtcNs) {
    for device in &bursts.devices {
        let sampled = match &device.state {
            State::Sampled { layer, means: [rx, tx] } => {
                let labels = [&*device.netdev, layer, means(rx), means(tx)];
                page.add(Metric::NetdevInfo, &labels, Value::Whole(1));
                true
            }
            State::Failed(_) => false,
            State::Left(_) => continue,
        };
        page.add(Metric::NetdevSampled, &[&device.netdev], Value::Whole(sampled.into()));
        if let Some(rate) = device.line_rate {
            page.add(Metric::NetdevLineRate, &[&device.netdev], Value::Whole(rate.0 / 8));
        }
    }
    for (netdev, account) in &bursts.accounts {
        add_account(page, netdev, account, bursts.marks, now);
    }
    // Without a device that has a line rate there are no bursts to measure.
    if bursts.accounts.values().any(|account| account.line_rate.is_some()) {
        for (direction, sizes) in Direction::ALL.into_iter().zip(&bursts.sizes) {
            let labels = &[direction.name()];
            page.add(Metric::BurstLength, labels, histogram(&sizes.lengths, 1e-9));
            page.add(Metric::BurstVolume, labels, histogram(&sizes.volumes, 1.0));
        }
    }
    add_runs(page, "bursts", bursts.runs.programs);
    if bursts.runs.ticks > 0 {
        page.add(Metric::BurstTicks, &[], Value::Whole(bursts.runs.ticks));
        page.add(Metric::BurstTicksMissed, &[], Value::Whole(bursts.runs.missed));
    }
    if let Some(recorder) = &bursts.recorder {
        add_recorder(page, &recorder.status());
    }
    page.add(Metric::MarksRetransmits, &[], Value::Whole(u64::from(bursts.marks == Marks::Set)));
    if let Some(retransmissions) = &bursts.retransmissions {
        add_retransmissions(page, &**retransmissions);
    }
    page.add(Metric::BurstDrains, &[], Value::Whole(bursts.drains));
    page.add(Metric::BurstDrainTime, &[], Value::Real(bursts.drain_time.as_secs_f64()));
    page.add(Metric::ClockSteps, &[], Value::Whole(bursts.clock_steps));
}

#[expect(clippy::cast_precision_loss, reason = "seconds of run time need no more than 53 bits")]
fn add_runs(page: &mut Page, program: &str, runs: ProgramAccount) {
    if runs.run_count > 0 {
        page.add(Metric::RunCount, &[program], Value::Whole(runs.run_count));
        page.add(Metric::RunTime, &[program], Value::Real(runs.run_time_ns as f64 * 1e-9));
    }
}

fn add_retransmissions(page: &mut Page, retransmissions: &dyn Retraced) {
    add_runs(page, "retransmissions", retransmissions.account());
    let Ok(traces) = retransmissions.traces() else { return };
    page.add(Metric::TcpRetransmits, &[], Value::Whole(traces.host.events));
    if traces.sizes {
        page.add(Metric::TcpRetransmitSegments, &[], Value::Whole(traces.host.segments));
        page.add(Metric::TcpRetransmitBytes, &[], Value::Whole(traces.host.bytes));
    }
    if traces.failures {
        page.add(Metric::TcpRetransmitFailures, &[], Value::Whole(traces.host.failures));
    }
}

fn add_recorder(page: &mut Page, status: &Status) {
    page.add(Metric::RecorderBytes, &["memory"], Value::Whole(status.memory_bytes));
    if status.state != recorder::State::MemoryOnly {
        page.add(Metric::RecorderBytes, &["disk"], Value::Whole(status.file_bytes));
        page.add(Metric::RecorderFiles, &[], Value::Whole(status.files));
    }
    let state = match status.state {
        recorder::State::MemoryOnly => "memory_only",
        recorder::State::Recording => "recording",
        recorder::State::DiskFull(_) => "disk_full",
        recorder::State::DiskRefuses(_) => "disk_refuses",
    };
    page.add(Metric::RecorderState, &[state], Value::Whole(1));
}

#[expect(clippy::cast_precision_loss, reason = "seconds and shares need no more than 53 bits")]
fn add_account(page: &mut Page, netdev: &str, account: &Account, marks: Marks, now: UtcNs) {
    let peaks = account.peak(now);
    for ((direction, way), peak) in Direction::ALL.into_iter().zip(&account.ways).zip(peaks) {
        let labels = &[netdev, direction.name()];
        page.add(Metric::NetdevBytes, labels, Value::Whole(way.bytes));
        page.add(Metric::NetdevPackets, labels, Value::Whole(way.packets));
        page.add(Metric::NetdevCeBytes, labels, Value::Whole(way.ce_bytes));
        page.add(Metric::NetdevCePackets, labels, Value::Whole(way.ce_packets));
        if direction == Direction::Tx || account.suspects {
            page.add(Metric::NetdevRetransmits, labels, Value::Whole(way.retransmit_bytes));
            page.add(Metric::NetdevRetransmitSegments, labels, Value::Whole(way.retransmit_segments));
        }
        if marks == Marks::Set {
            page.add(Metric::NetdevMarked, labels, Value::Whole(way.marked_bytes));
            page.add(Metric::NetdevMarkedSegments, labels, Value::Whole(way.marked_segments));
        }
        if let Some(rate) = account.line_rate {
            page.add(Metric::Bursts, labels, Value::Whole(way.bursts));
            page.add(Metric::BurstTime, labels, Value::Real(way.burst_ns as f64 * 1e-9));
            page.add(Metric::NetdevPeak, labels, Value::Real(peak as f64 / rate.0.max(1) as f64));
        }
    }
    page.add(Metric::BucketsLost, &[netdev], Value::Whole(account.lost));
}

#[expect(clippy::cast_precision_loss, reason = "bounds and sums need no more than 53 bits")]
fn histogram(histogram: &Histogram, unit: f64) -> Value {
    let bound = |bound: Option<u64>| bound.map_or(f64::INFINITY, |bound| bound as f64 * unit);
    let buckets = histogram.buckets().map(|(at, count)| (bound(at), count)).collect();
    Value::Histogram { buckets, sum: histogram.sum as f64 * unit }
}

/// The means without the reason, which is no label.
fn means(means: &Means) -> &'static str {
    match means {
        Means::Tcx => "tcx",
        Means::Clsact(_) => "clsact",
    }
}

/// Network devices by how many there are series of, for the bound.
pub(super) fn devices(bursts: Option<&Bursts>) -> usize {
    let names = |bursts: &Bursts| {
        let wanted = bursts.devices.iter().map(|device| &device.netdev);
        wanted.chain(bursts.accounts.keys()).collect::<BTreeSet<_>>().len()
    };
    bursts.map_or(0, names)
}

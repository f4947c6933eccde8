//! A run: a fixed number of samples of one device from a start in wall-clock time, in a session of its own.

use std::time::{Duration, Instant};

use analysis::series::{BitsPerSecond, DurationNs, Series, UtcNs};
use anyhow::{Context as _, bail};

use super::clock::{Clocks, Placing};
use super::device::{Device, Origin};
use super::drain::Piece;
use super::placed::Regularity;
use super::sessions::Host;
use crate::config::limits;
use crate::kernel::sampler::Options;

/// How long before its start a run attaches.
const READY: DurationNs = DurationNs(5_000_000_000);

/// How long a run looks at nothing else, at most.
const PAUSE: Duration = Duration::from_millis(100);

/// How often it is looked whether the device is still there.
const LOOK: Duration = Duration::from_secs(1);

/// What is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The device and how it is sampled.
    pub(crate) options: Options,
    /// Its line rate.
    pub(crate) line_rate: Option<BitsPerSecond>,
    /// When the first sample begins, or soon after, since buckets begin with intervals since boot; `None` for now.
    pub(crate) start: Option<UtcNs>,
    /// How many samples.
    pub(crate) samples: u64,
}

/// What a run came to.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    /// The samples.
    pub(crate) series: Series,
    /// Why it ended.
    pub(crate) ended: Ended,
    /// By how much the wall clock was set meanwhile, in nanoseconds.
    pub(crate) step_ns: Option<i64>,
    /// How regular the ticks were; `None` where the clock told buckets apart.
    pub(crate) ticks: Option<Regularity>,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// All samples are there.
    Complete,
    /// It was told to.
    Stopped,
    /// The device has gone.
    Vanished,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// It begins in this time.
    Waits(DurationNs),
    /// So many samples are there.
    Has(u64),
}

/// Waits for the start, and samples until all is there or `go_on` says no. It is asked every now and then; all that passed
/// until it said no is among the samples.
///
/// # Errors
///
/// If the start is past, or the programs cannot be attached.
pub(crate) fn run(
    plan: &Plan,
    origin: &Origin,
    host: &dyn Host,
    clocks: &impl Clocks,
    go_on: &mut dyn FnMut(Progress) -> bool,
) -> anyhow::Result<Outcome> {
    let interval = plan.options.interval;
    let begins = wait(plan, clocks, go_on)?;
    let mut placing = Placing::new(clocks);
    let attached = host.attach(&plan.options).with_context(|| format!("cannot sample {}", plan.options.netdev))?;
    let mut device = Device::new(attached, &plan.options, origin, clocks.monotonic());
    device.set_line_rate(plan.line_rate);
    let first = match plan.start {
        None => device.next(),
        Some(start) => placing.offset().monotonic(start).div_ceil(interval.0),
    };
    if first < device.next() {
        bail!("the start has passed while the programs were attached; give a later one");
    }
    let wanted = first..first.saturating_add(plan.samples);
    let mut until = if begins { wanted.end } else { first };
    let mut all = Piece::default();
    let mut looked = Instant::now();
    let mut vanished = false;
    while device.next() < until && !vanished {
        std::thread::sleep(PAUSE.min(Duration::from_nanos(device.pace().0)));
        all.extend(device.read(|| clocks.monotonic()), &wanted);
        if !go_on(Progress::Has(all.range.end - all.range.start)) {
            // The bucket of this moment is the last; it is read when it is over for long enough.
            until = until.min(clocks.monotonic() / interval.0 + 1);
        }
        if looked.elapsed() >= LOOK {
            looked = Instant::now();
            vanished = !device.stands() || !is_there(host, &plan.options);
        }
    }
    let window = placing.window(clocks);
    let ended = match (device.next() < wanted.end, vanished) {
        (false, _) => Ended::Complete,
        (true, true) => Ended::Vanished,
        (true, false) => Ended::Stopped,
    };
    let ticks = all.placed.regularity(all.range.start, all.range.end);
    Ok(Outcome { series: device.series(&all, &window), ended, step_ns: window.step_ns, ticks })
}

/// Waits until shortly before the start; whether to go on.
fn wait(plan: &Plan, clocks: &impl Clocks, go_on: &mut dyn FnMut(Progress) -> bool) -> anyhow::Result<bool> {
    let Some(start) = plan.start else { return Ok(true) };
    if start.0 <= clocks.realtime() {
        bail!("the start is {:.3} s in the past", UtcNs(clocks.realtime()).since(start).seconds());
    }
    if UtcNs(clocks.realtime()).after(limits::RUN_AHEAD) < start {
        bail!("the start is more than {} hours ahead", limits::RUN_AHEAD.0 / 3_600_000_000_000);
    }
    loop {
        let left = start.since(UtcNs(clocks.realtime()));
        if !go_on(Progress::Waits(left)) {
            return Ok(false);
        }
        if left <= READY {
            return Ok(true);
        }
        std::thread::sleep(PAUSE.min(Duration::from_nanos(left.0 - READY.0)));
    }
}

/// Whether the device is still the one that was attached to. One that cannot be looked at counts as there.
fn is_there(host: &dyn Host, options: &Options) -> bool {
    host.links()
        .map_or(true, |links| links.iter().any(|link| link.ifindex == options.ifindex && link.name == options.netdev))
}

#[cfg(test)]
mod tests {
    use super::super::clock::HostClocks;
    use super::super::fake::{FakeHost, link};
    use super::*;
    use crate::kernel::sampler::{Clock, Marks};

    #[test]
    fn a_run_that_is_ended_has_all_until_then() {
        let host = FakeHost::default();
        host.with(|given| given.links.push(link(7, "eth0")));
        for interval in [DurationNs(100_000), DurationNs(10_000_000)] {
            let (netdev, regions, marks) = ("eth0".to_owned(), Vec::new(), Marks::Ignored);
            let (slots, clsact, sketch, suspected) = (agent_common::bucket::SLOTS, false, true, false);
            let options = Options {
                ifindex: 7,
                netdev,
                interval,
                clock: Clock::Read,
                slots,
                clsact,
                suspected,
                sketch,
                marks,
                regions,
            };
            let plan = Plan { options, line_rate: None, start: None, samples: 1_000_000 };
            let mut ended = None;
            let outcome = run(&plan, &Origin::default(), &host, &HostClocks, &mut |progress| {
                if progress != Progress::Has(0) {
                    ended.get_or_insert(HostClocks.realtime());
                }
                ended.is_none()
            });
            let outcome = outcome.unwrap();
            assert_eq!(outcome.ended, Ended::Stopped);
            let last = outcome.series.covered.last().unwrap().end;
            assert!(last.0 >= ended.unwrap(), "{:?} of {interval:?}", outcome.series.covered);
        }
    }
}

//! One sampled device: attached, read bucket by bucket, and told as a series.

use std::ops::Range;

use agent_common::bucket::Totals;
use agent_common::tick::Ticking;
use analysis::series::{BitsPerSecond, DurationNs, Fields, Measured, Sample, Series, Span};

use super::clock::Window;
use super::drain::{Buckets, Drain, Piece};
use crate::kernel::ProgramAccount;
use crate::kernel::sampler::{Means, Options, Rings, Sampler, Slot};

/// Programs on a device: the kernel side's, or in tests something that plays them. Dropping it detaches them.
pub(crate) trait Attached: Send {
    /// The rings.
    fn rings(&self) -> &dyn Buckets;

    /// What was received and sent since, in this order.
    fn totals(&self) -> [Totals; 2];

    /// How the programs for receiving and sending are attached.
    fn means(&self) -> [Means; 2];

    /// Whether polls that used up their budget are counted.
    fn napi(&self) -> bool;

    /// How often the programs ran and how long, while that was measured.
    fn account(&self) -> ProgramAccount;

    /// Whether they stand on the device still, and it is the one they were attached to.
    fn stands(&self) -> bool;
}

impl Buckets for Rings {
    fn count(&self) -> u32 {
        self.count()
    }

    fn slots(&self) -> u32 {
        self.slots()
    }

    fn interval(&self) -> DurationNs {
        self.interval()
    }

    fn read(&self, direction: u32, ring: u32, sequence: u64) -> Slot {
        self.read(direction, ring, sequence)
    }

    fn ticking(&self) -> Option<Ticking> {
        self.ticking()
    }

    fn tick(&self, sequence: u64) -> Option<u64> {
        self.tick(sequence)
    }
}

impl Attached for Sampler {
    fn rings(&self) -> &dyn Buckets {
        self.rings()
    }

    fn totals(&self) -> [Totals; 2] {
        self.totals()
    }

    fn means(&self) -> [Means; 2] {
        self.means()
    }

    fn napi(&self) -> bool {
        self.napi()
    }

    fn account(&self) -> ProgramAccount {
        self.account()
    }

    fn stands(&self) -> bool {
        self.stands()
    }
}

/// The host, as it stands in series.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Origin {
    /// Its name.
    pub(crate) host: String,
    /// Names its boot; empty if unknown.
    pub(crate) boot_id: String,
}

/// A device that is sampled.
pub(crate) struct Device {
    attached: Box<dyn Attached>,
    drain: Drain,
    /// A series without samples: what does not change with them.
    frame: Series,
}

impl Device {
    /// Takes programs that were just attached with `options`; `now_ns` is `CLOCK_MONOTONIC` after that.
    pub(crate) fn new(attached: Box<dyn Attached>, options: &Options, origin: &Origin, now_ns: u64) -> Self {
        let tx = Measured {
            bytes: true,
            packets: true,
            ce: true,
            retransmits: true,
            regions: !options.regions.is_empty(),
            flows: options.sketch,
            roce: true,
            napi: false,
        };
        let fields = Fields { rx: Measured { retransmits: options.suspected, napi: attached.napi(), ..tx }, tx };
        let frame = Series {
            host: origin.host.clone(),
            boot_id: origin.boot_id.clone(),
            netdev: options.netdev.clone(),
            interval: options.interval,
            fields,
            ..Series::default()
        };
        Self { attached, drain: Drain::new(options.interval, now_ns), frame }
    }

    /// The device's name.
    pub(crate) fn netdev(&self) -> &str {
        &self.frame.netdev
    }

    /// The line rate that series carry from now on.
    pub(crate) fn set_line_rate(&mut self, rate: Option<BitsPerSecond>) {
        self.frame.line_rate = rate;
    }

    /// The first bucket that was not looked at.
    pub(crate) fn next(&self) -> u64 {
        self.drain.next()
    }

    /// How the programs are attached.
    pub(crate) fn means(&self) -> [Means; 2] {
        self.attached.means()
    }

    /// What was received and sent since the programs were attached.
    pub(crate) fn totals(&self) -> [Totals; 2] {
        self.attached.totals()
    }

    /// How often its programs ran and how long, while that was measured.
    pub(crate) fn account(&self) -> ProgramAccount {
        self.attached.account()
    }

    /// Whether its programs stand on it still, and it was not made anew under the same number and name.
    pub(crate) fn stands(&self) -> bool {
        self.attached.stands()
    }

    /// What the tick says of itself, where one tells its buckets apart.
    pub(crate) fn ticking(&self) -> Option<Ticking> {
        self.attached.rings().ticking()
    }

    /// How long may pass between two looks: a quarter of the ring.
    pub(crate) fn pace(&self) -> DurationNs {
        let rings = self.attached.rings();
        DurationNs(rings.interval().0.saturating_mul(u64::from(rings.slots() / 4)))
    }

    /// Reads every bucket that may be read and was not yet. `now` is `CLOCK_MONOTONIC`.
    pub(crate) fn read(&mut self, now: impl Fn() -> u64) -> Piece {
        self.drain.read(self.attached.rings(), now)
    }

    /// A piece as a series, placed by how its window lies on UTC.
    pub(crate) fn series(&self, piece: &Piece, window: &Window) -> Series {
        let interval = self.frame.interval;
        let start = |sequence: u64| window.offset.utc(piece.placed.start_ns(sequence, interval));
        let span = |run: Range<u64>| Span { start: start(run.start), end: start(run.end) };
        let sample = |folded: &super::drain::Folded| Sample {
            start: start(folded.sequence),
            length: piece.placed.length(folded.sequence, interval),
            rx: folded.rx,
            tx: folded.tx,
        };
        Series {
            clock_error: window.error,
            samples: piece.samples.iter().map(sample).collect(),
            covered: piece.covered().into_iter().map(span).collect(),
            lost: piece.lost_count(),
            ..self.frame.clone()
        }
    }
}

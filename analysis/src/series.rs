//! Samples of one source over time, with what was measured and what was not.

use std::fmt;

/// A point in time: nanoseconds since 1970-01-01T00:00:00 UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UtcNs(pub i64);

/// A length of time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DurationNs(pub u64);

/// A rate in bits a second, as line rates are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BitsPerSecond(pub u64);

impl UtcNs {
    /// The time after `length`; the largest time there is if that is later.
    #[must_use]
    pub const fn after(self, length: DurationNs) -> Self {
        // At most 2^63 - 1: a longer time than that is out of range anyway.
        let length = if length.0 > i64::MAX as u64 { i64::MAX } else { length.0 as i64 };
        Self(self.0.saturating_add(length))
    }

    /// The time from `earlier` to this; nothing if it is not earlier.
    #[must_use]
    pub const fn since(self, earlier: Self) -> DurationNs {
        DurationNs(if self.0 > earlier.0 { self.0.abs_diff(earlier.0) } else { 0 })
    }
}

impl DurationNs {
    /// In seconds.
    #[must_use]
    pub const fn seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl BitsPerSecond {
    /// Bytes that pass in `length` at this rate.
    #[must_use]
    pub const fn bytes_in(self, length: DurationNs) -> f64 {
        self.0 as f64 / 8.0 * length.seconds()
    }

    /// The rate of so many bytes in `length`; `None` for no time at all.
    #[must_use]
    pub fn of(bytes: u64, length: DurationNs) -> Option<Self> {
        let rate = (u128::from(bytes) * 8_000_000_000).checked_div(u128::from(length.0))?;
        Some(Self(u64::try_from(rate).unwrap_or(u64::MAX)))
    }
}

impl fmt::Display for BitsPerSecond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, name) = match self.0 {
            1_000_000_000.. => (1e9, "Gbit/s"),
            1_000_000.. => (1e6, "Mbit/s"),
            1_000.. => (1e3, "kbit/s"),
            _ => (1.0, "bit/s"),
        };
        write!(f, "{} {name}", self.0 as f64 / unit)
    }
}

/// A half-open span of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Belongs to it.
    pub start: UtcNs,
    /// The first time that does not.
    pub end: UtcNs,
}

impl Span {
    /// How long it is.
    #[must_use]
    pub const fn length(self) -> DurationNs {
        self.end.since(self.start)
    }

    /// What belongs to both; `None` if nothing does.
    #[must_use]
    pub fn overlap(self, other: Self) -> Option<Self> {
        let both = Self { start: self.start.max(other.start), end: self.end.min(other.end) };
        (both.start < both.end).then_some(both)
    }
}

/// A linear-counting sketch of active flows: one bit for each hash value that was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sketch(pub u128);

/// What one direction carried in one sample. A field that the source does not measure is 0 here and absent from the
/// series' [`Fields`]: read it through them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes on the wire.
    pub bytes: u64,
    /// Packets on the wire.
    pub packets: u64,
    /// Of the bytes, those marked ECN `CE`.
    pub ce_bytes: u64,
    /// Payload bytes sent again (tx), or suspected of it (rx).
    pub retransmit_bytes: u64,
    /// Of the bytes, those whose peer is outside the region.
    pub cross_region_bytes: u64,
    /// Active flows.
    pub flows: Sketch,
    /// RoCEv2 that passed the kernel.
    pub roce: Roce,
    /// Polls of the device's queues after which more packets waited: the host does not keep up. Of rx alone.
    pub napi_exhausted: u32,
}

/// RoCEv2 packets in one direction of one sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Roce {
    /// Bytes on the wire.
    pub bytes: u64,
    /// Packets.
    pub packets: u32,
    /// Congestion notification packets.
    pub cnps: u32,
    /// Negative acknowledgements: packet sequence error.
    pub nak_sequence: u32,
    /// Negative acknowledgements: receiver not ready.
    pub nak_rnr: u32,
    /// Negative acknowledgements of other kinds.
    pub nak_other: u32,
    /// Requests sent again.
    pub retries: u32,
}

/// Which fields of [`Traffic`] a source measures in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// [`Traffic::bytes`].
    pub bytes: bool,
    /// [`Traffic::packets`].
    pub packets: bool,
    /// [`Traffic::ce_bytes`].
    pub ce: bool,
    /// [`Traffic::retransmit_bytes`], which are suspected only in rx.
    pub retransmits: bool,
    /// [`Traffic::cross_region_bytes`].
    pub regions: bool,
    /// [`Traffic::flows`].
    pub flows: bool,
    /// [`Traffic::roce`].
    pub roce: bool,
    /// [`Traffic::napi_exhausted`], of rx alone.
    pub napi: bool,
}

impl Measured {
    /// Nothing: the direction was not measured.
    pub const NOTHING: Self = Self {
        bytes: false,
        packets: false,
        ce: false,
        retransmits: false,
        regions: false,
        flows: false,
        roce: false,
        napi: false,
    };

    /// Bytes alone.
    pub const BYTES: Self = Self { bytes: true, ..Self::NOTHING };

    /// What both measure.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            bytes: self.bytes && other.bytes,
            packets: self.packets && other.packets,
            ce: self.ce && other.ce,
            retransmits: self.retransmits && other.retransmits,
            regions: self.regions && other.regions,
            flows: self.flows && other.flows,
            roce: self.roce && other.roce,
            napi: self.napi && other.napi,
        }
    }
}

/// What a source measures in each direction. By default nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    /// Towards the host.
    pub rx: Measured,
    /// Away from the host.
    pub tx: Measured,
}

impl Fields {
    /// The same in both directions.
    #[must_use]
    pub const fn both(measured: Measured) -> Self {
        Self { rx: measured, tx: measured }
    }

    /// What is measured in this direction.
    #[must_use]
    pub const fn of(&self, direction: Direction) -> &Measured {
        match direction {
            Direction::Rx => &self.rx,
            Direction::Tx => &self.tx,
        }
    }

    /// What is measured in this direction, to be changed.
    pub const fn of_mut(&mut self, direction: Direction) -> &mut Measured {
        match direction {
            Direction::Rx => &mut self.rx,
            Direction::Tx => &mut self.tx,
        }
    }

    /// What both measure.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self { rx: self.rx.and(other.rx), tx: self.tx.and(other.tx) }
    }
}

/// One sample: a span of time and what passed in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// When it began.
    pub start: UtcNs,
    /// How long it took, as measured: the interval for buckets, the time between two updates for counters.
    pub length: DurationNs,
    /// Towards the host.
    pub rx: Traffic,
    /// Away from the host.
    pub tx: Traffic,
}

impl Sample {
    /// When it ended.
    #[must_use]
    pub const fn end(&self) -> UtcNs {
        self.start.after(self.length)
    }

    /// From its start to its end.
    #[must_use]
    pub const fn span(&self) -> Span {
        Span { start: self.start, end: self.end() }
    }

    /// The rate in one direction, of one whose bytes are measured; `None` if it took no time.
    #[must_use]
    pub fn rate(&self, direction: Direction) -> Option<BitsPerSecond> {
        BitsPerSecond::of(direction.of(self).bytes, self.length)
    }
}

/// Which way, seen from the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// Towards it.
    Rx,
    /// Away from it.
    Tx,
}

impl Direction {
    /// Both, in the order in which they are shown.
    pub const ALL: [Self; 2] = [Self::Rx, Self::Tx];

    /// The name used in output, files and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rx => "rx",
            Self::Tx => "tx",
        }
    }

    /// The other way.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Rx => Self::Tx,
            Self::Tx => Self::Rx,
        }
    }

    /// This direction's part of a sample.
    #[must_use]
    pub const fn of(self, sample: &Sample) -> &Traffic {
        match self {
            Self::Rx => &sample.rx,
            Self::Tx => &sample.tx,
        }
    }
}

/// Samples of one source, in order of time.
///
/// Samples in which nothing passed may be left out: what tells an idle time from one that was not measured is
/// `covered`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// The host, as it names itself.
    pub host: String,
    /// The host's boot, by its id; empty if unknown.
    pub boot_id: String,
    /// The host's rack, as the file names it that the series was read from; empty if unknown.
    pub rack: String,
    /// The network device.
    pub netdev: String,
    /// The nominal length of a sample.
    pub interval: DurationNs,
    /// The device's line rate in each direction; `None` if it states none and none was given.
    pub line_rate: Option<BitsPerSecond>,
    /// How far the times may be off from UTC, by the kernel's own estimate; `None` if unknown.
    pub clock_error: Option<DurationNs>,
    /// What is measured in each direction. What is not is no 0: a source may measure one direction alone.
    pub fields: Fields,
    /// In order of time, none overlapping another.
    pub samples: Vec<Sample>,
    /// When it was measured: in order, none overlapping or touching another.
    pub covered: Vec<Span>,
    /// Buckets that were overwritten before they were read.
    pub lost: u64,
}

impl Series {
    /// Whether all of `span` was measured.
    #[must_use]
    pub fn covers(&self, span: Span) -> bool {
        let at = self.covered.partition_point(|covered| covered.end < span.end);
        self.covered.get(at).is_some_and(|covered| covered.start <= span.start)
    }

    /// From the first measured time to the last; `None` if nothing was measured.
    #[must_use]
    pub fn window(&self) -> Option<Span> {
        let (first, last) = (self.covered.first()?, self.covered.last()?);
        Some(Span { start: first.start, end: last.end })
    }

    /// How much time was measured.
    #[must_use]
    pub fn measured(&self) -> DurationNs {
        DurationNs(self.covered.iter().fold(0, |sum: u64, span| sum.saturating_add(span.length().0)))
    }
}

#[cfg(test)]
mod tests;

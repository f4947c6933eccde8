//! The columns of a sample file: one row each. Writing, reading and the documentation walk [`COLUMNS`].

use analysis::series::{DurationNs, Fields, Sample, Series, Sketch, UtcNs};

/// What a column holds, and how a sample is put into it and taken out of it.
#[derive(Clone, Copy)]
pub(super) enum Cells {
    /// The same text in each row; not read back, the file's metadata hold it.
    Text(fn(&Series) -> &str),
    /// Nanoseconds since 1970-01-01T00:00:00 UTC.
    Time(fn(&Sample) -> i64, fn(&mut Sample, i64)),
    /// A number; what is over the largest signed one is written as that.
    Number(fn(&Sample) -> u64, fn(&mut Sample, u64)),
    /// The 128 bits of a sketch, most significant first.
    Sketch(fn(&Sample) -> Sketch, fn(&mut Sample, Sketch)),
    /// The number of flows that a sketch stands for; not read back.
    Flows(fn(&Sample) -> Sketch),
}

/// One column.
#[derive(Clone, Copy)]
pub(super) struct Column {
    /// Its name.
    pub(super) name: &'static str,
    /// Its cells.
    pub(super) cells: Cells,
    /// Whether a series has it; where not, every cell is null.
    pub(super) measured: fn(&Fields) -> bool,
    /// One sentence for who reads the file.
    pub(super) help: &'static str,
}

impl Column {
    /// Whether a cell may be null: all but what every source tells.
    pub(super) fn optional(&self) -> bool {
        !(self.measured)(&Fields::default())
    }
}

const fn always(_: &Fields) -> bool {
    true
}

/// A number of one direction.
macro_rules! number {
    ($direction:ident, $name:literal, $($field:ident).+ as $type:ty, $measured:expr, $help:literal) => {
        Column {
            name: concat!(stringify!($direction), "_", $name),
            cells: Cells::Number(
                |sample| u64::from(sample.$direction.$($field).+),
                |sample, value| sample.$direction.$($field).+ = <$type>::try_from(value).unwrap_or(<$type>::MAX),
            ),
            measured: $measured,
            help: $help,
        }
    };
}

/// The columns of both directions, between those that stand in front and those of one direction alone.
macro_rules! columns {
    ([$($front:expr),*], $($direction:ident;)* [$($back:expr),*]) => {
        &[$($front,)* $(
            number!($direction, "bytes", bytes as u64, |fields| fields.$direction.bytes, "Bytes on the wire."),
            number!($direction, "packets", packets as u64, |fields| fields.$direction.packets, "Packets on the wire."),
            number!($direction, "ce_bytes", ce_bytes as u64, |fields| fields.$direction.ce, "Of the bytes, those marked ECN CE."),
            number!($direction, "retransmit_bytes", retransmit_bytes as u64, |fields| fields.$direction.retransmits,
                "Payload bytes sent again (tx), or suspected of it (rx)."),
            number!($direction, "cross_region_bytes", cross_region_bytes as u64, |fields| fields.$direction.regions,
                "Of the bytes, those whose peer is outside the region."),
            Column {
                name: concat!(stringify!($direction), "_flows"),
                cells: Cells::Flows(|sample| sample.$direction.flows),
                measured: |fields| fields.$direction.flows,
                help: "Active flows, estimated from the sketch; 500 means that or more.",
            },
            Column {
                name: concat!(stringify!($direction), "_flows_sketch"),
                cells: Cells::Sketch(|sample| sample.$direction.flows, |sample, flows| sample.$direction.flows = flows),
                measured: |fields| fields.$direction.flows,
                help: "The sketch itself: 128 bits, merged across samples and devices by OR.",
            },
            number!($direction, "roce_bytes", roce.bytes as u64, |fields| fields.$direction.roce, "Of the bytes, those of RoCEv2."),
            number!($direction, "roce_packets", roce.packets as u32, |fields| fields.$direction.roce, "RoCEv2 packets."),
            number!($direction, "roce_cnps", roce.cnps as u32, |fields| fields.$direction.roce,
                "RoCEv2 congestion notification packets."),
            number!($direction, "roce_nak_sequence", roce.nak_sequence as u32, |fields| fields.$direction.roce,
                "RoCEv2 negative acknowledgements: packet sequence error."),
            number!($direction, "roce_nak_rnr", roce.nak_rnr as u32, |fields| fields.$direction.roce,
                "RoCEv2 negative acknowledgements: receiver not ready."),
            number!($direction, "roce_nak_other", roce.nak_other as u32, |fields| fields.$direction.roce,
                "RoCEv2 negative acknowledgements of other kinds."),
            number!($direction, "roce_retries", roce.retries as u32, |fields| fields.$direction.roce, "RoCEv2 requests sent again."),
        )* $($back,)*]
    };
}

/// Every column, in the order of the file.
pub(super) const COLUMNS: &[Column] = columns!(
    [
        Column {
            name: "host",
            cells: Cells::Text(|series| &series.host),
            measured: always,
            help: "The host, as it names itself.",
        },
        Column {
            name: "netdev",
            cells: Cells::Text(|series| &series.netdev),
            measured: always,
            help: "The network device.",
        },
        Column {
            name: "time",
            cells: Cells::Time(|sample| sample.start.0, |sample, time| sample.start = UtcNs(time)),
            measured: always,
            help: "When the sample began, in UTC.",
        },
        Column {
            name: "length_ns",
            cells: Cells::Number(|sample| sample.length.0, |sample, length| sample.length = DurationNs(length)),
            measured: always,
            help: "How long it took, in nanoseconds.",
        }
    ],
    rx;
    tx;
    [number!(rx, "napi_exhausted", napi_exhausted as u32, |fields| fields.rx.napi,
        "Polls of the device's queues after which more packets waited.")]
);

//! What counters count, by meaning and not by what a driver calls it.

use std::fmt;

use crate::series::Direction;

/// What a pause stops: the whole port, or one priority of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// The whole port (IEEE 802.3x pause).
    Port,
    /// One priority, 0 to 7 (IEEE 802.1Qbb priority flow control).
    Priority(u8),
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Port => f.write_str("the port"),
            Self::Priority(priority) => write!(f, "priority {priority}"),
        }
    }
}

/// A counter, by its meaning. Counts of the interval, if nothing else is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Counter {
    /// Bytes on the wire.
    Bytes(Lane, Direction),
    /// Packets on the wire.
    Packets(Lane, Direction),
    /// Pause frames: rx are the network's, tx this host's own.
    PauseFrames(Lane, Direction),
    /// Nanoseconds in which a pause held. Only from a source whose unit is known.
    PauseTime(Lane, Direction),
    /// Times that a pause began or ended.
    PauseTransitions(Lane, Direction),
    /// The device warns that it has been sending pause for long.
    StormWarnings,
    /// The device stopped sending pause because it had been doing so for too long.
    StormErrors,
    /// Packets that the device dropped with its receive buffer full.
    BufferDiscards(Lane),
    /// Packets dropped at the port for lack of room.
    Discards(Direction),
    /// Packets for which no receive work request was posted.
    OutOfBuffer,
    /// Seconds in which the device waited for the host's bus.
    BusStalls,
    /// Packets dropped because the host's bus did not take them.
    BusDiscards,
    /// Congestion notification packets sent to those who send to this host.
    CnpSent,
    /// Congestion notification packets acted upon.
    CnpHandled,
    /// Packets that came marked as having met congestion.
    EcnMarked,
    /// Packets that came out of order: one before them was lost, or overtaken.
    OutOfSequence,
    /// Negative acknowledgements that came back for a gap in the sequence.
    SequenceErrors,
    /// Acknowledgements that implied a gap in the sequence.
    ImpliedNaks,
    /// Requests for which no acknowledgement came in time.
    Timeouts,
    /// Requests that the peer was not ready for.
    ReceiverNotReady,
    /// Times that the link went down.
    LinkDowns,
}

impl Counter {
    /// What it counts, as one word for output and files.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Bytes(..) => "bytes",
            Self::Packets(..) => "packets",
            Self::PauseFrames(..) => "pause_frames",
            Self::PauseTime(..) => "pause_time",
            Self::PauseTransitions(..) => "pause_transitions",
            Self::StormWarnings => "storm_warnings",
            Self::StormErrors => "storm_errors",
            Self::BufferDiscards(_) => "buffer_discards",
            Self::Discards(_) => "discards",
            Self::OutOfBuffer => "out_of_buffer",
            Self::BusStalls => "bus_stalls",
            Self::BusDiscards => "bus_discards",
            Self::CnpSent => "cnps_sent",
            Self::CnpHandled => "cnps_handled",
            Self::EcnMarked => "ecn_marked",
            Self::OutOfSequence => "out_of_sequence",
            Self::SequenceErrors => "sequence_errors",
            Self::ImpliedNaks => "implied_naks",
            Self::Timeouts => "timeouts",
            Self::ReceiverNotReady => "receiver_not_ready",
            Self::LinkDowns => "link_downs",
        }
    }

    /// The unit of what it counts.
    #[must_use]
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Bytes(..) => "bytes",
            Self::PauseFrames(..) => "frames",
            Self::PauseTime(..) => "nanoseconds",
            Self::BusStalls => "seconds",
            Self::PauseTransitions(..)
            | Self::StormWarnings
            | Self::StormErrors
            | Self::ImpliedNaks
            | Self::Timeouts
            | Self::ReceiverNotReady
            | Self::LinkDowns => "events",
            Self::Packets(..)
            | Self::BufferDiscards(_)
            | Self::Discards(_)
            | Self::OutOfBuffer
            | Self::BusDiscards
            | Self::CnpSent
            | Self::CnpHandled
            | Self::EcnMarked
            | Self::OutOfSequence
            | Self::SequenceErrors => "packets",
        }
    }
}

impl fmt::Display for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = match self {
            Self::Bytes(lane, direction) => return write!(f, "{} bytes of {lane}", direction.name()),
            Self::Packets(lane, direction) => return write!(f, "{} packets of {lane}", direction.name()),
            Self::PauseFrames(lane, direction) => return write!(f, "{} pause frames of {lane}", direction.name()),
            Self::PauseTime(lane, direction) => return write!(f, "{} pause time of {lane}", direction.name()),
            Self::PauseTransitions(lane, direction) => {
                return write!(f, "{} pause transitions of {lane}", direction.name());
            }
            Self::BufferDiscards(lane) => return write!(f, "buffer discards of {lane}"),
            Self::Discards(direction) => return write!(f, "{} discards", direction.name()),
            Self::StormWarnings => "pause storm warnings",
            Self::StormErrors => "pause storm errors",
            Self::OutOfBuffer => "packets out of buffer",
            Self::BusStalls => "seconds of bus stall",
            Self::BusDiscards => "bus discards",
            Self::CnpSent => "CNPs sent",
            Self::CnpHandled => "CNPs handled",
            Self::EcnMarked => "ECN-marked packets",
            Self::OutOfSequence => "packets out of sequence",
            Self::SequenceErrors => "packet sequence errors",
            Self::ImpliedNaks => "implied sequence errors",
            Self::Timeouts => "acknowledgement timeouts",
            Self::ReceiverNotReady => "receiver not ready",
            Self::LinkDowns => "link downs",
        };
        f.write_str(plain)
    }
}

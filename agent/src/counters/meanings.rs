//! Which rows of the catalogue the detectors understand, and as what.

use std::collections::HashMap;
use std::sync::LazyLock;

use analysis::counter_series::{Counter, Lane};
use analysis::series::Direction::{Rx, Tx};

/// What a row of the catalogue is to the detectors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Meaning {
    /// The row's name.
    pub(super) row: &'static str,
    /// The counter, of the priority that the row counts for or of the port.
    pub(super) counter: fn(Lane) -> Counter,
    /// Of rows that mean the same the lowest rank is taken that the port has; rows of one rank are parts of a sum.
    pub(super) rank: u8,
    /// So many of the row are one of the counter.
    each: u64,
}

const fn row(row: &'static str, counter: fn(Lane) -> Counter) -> Meaning {
    Meaning { row, counter, rank: 0, each: 1 }
}

impl Meaning {
    const fn rank(mut self, rank: u8) -> Self {
        self.rank = rank;
        self
    }

    const fn each(mut self, each: u64) -> Self {
        self.each = each;
        self
    }

    /// What the row's count is as the counter's, before its unit.
    pub(super) const fn count(&self, value: u64) -> u64 {
        value / self.each
    }

    /// What so much growth of the row is in the counter's unit; seconds are kept as microseconds.
    pub(super) const fn in_unit(counter: Counter, growth: u64) -> u64 {
        match counter {
            Counter::PauseTime(..) => growth.saturating_mul(1_000),
            Counter::BusStalls => growth / 1_000_000,
            _ => growth,
        }
    }
}

/// What the row of this name is to the detectors, if anything.
pub(super) fn meaning(row: &str) -> Option<&'static Meaning> {
    static BY_ROW: LazyLock<HashMap<&str, &Meaning>> =
        LazyLock::new(|| MEANINGS.iter().map(|meaning| (meaning.row, meaning)).collect());
    BY_ROW.get(row).copied()
}

/// Every row that a detector looks at.
///
/// Packets come from the wire's own counter. Where a driver has none, they are RDMA's and the kernel's together, since a
/// port has only been idle if both were; what both count, as software RDMA does, counts twice then.
pub(super) const MEANINGS: &[Meaning] = &[
    row("nic_wire_received_packets", |lane| Counter::Packets(lane, Rx)),
    row("nic_wire_sent_packets", |lane| Counter::Packets(lane, Tx)),
    row("rdma_received_packets", |lane| Counter::Packets(lane, Rx)).rank(1),
    row("rdma_sent_packets", |lane| Counter::Packets(lane, Tx)).rank(1),
    row("nic_received_packets", |lane| Counter::Packets(lane, Rx)).rank(1),
    row("nic_sent_packets", |lane| Counter::Packets(lane, Tx)).rank(1),
    row("nic_priority_received_packets", |lane| Counter::Packets(lane, Rx)),
    row("nic_priority_sent_packets", |lane| Counter::Packets(lane, Tx)),
    row("nic_priority_received_bytes", |lane| Counter::Bytes(lane, Rx)),
    row("nic_priority_sent_bytes", |lane| Counter::Bytes(lane, Tx)),
    row("pfc_received_pause_frames", |lane| Counter::PauseFrames(lane, Rx)),
    row("pfc_sent_pause_frames", |lane| Counter::PauseFrames(lane, Tx)),
    row("pfc_received_pause_seconds", |lane| Counter::PauseTime(lane, Rx)),
    row("pfc_sent_pause_seconds", |lane| Counter::PauseTime(lane, Tx)),
    row("nic_received_pause_frames", |lane| Counter::PauseFrames(lane, Rx)),
    row("nic_sent_pause_frames", |lane| Counter::PauseFrames(lane, Tx)),
    row("nic_received_pause_seconds", |lane| Counter::PauseTime(lane, Rx)),
    row("nic_sent_pause_seconds", |lane| Counter::PauseTime(lane, Tx)),
    row("nic_pause_storm_warning_events", |_| Counter::StormWarnings),
    row("nic_pause_storm_error_events", |_| Counter::StormErrors),
    row("nic_priority_discarded_packets", Counter::BufferDiscards),
    row("nic_priority_buffer_discarded_packets", Counter::BufferDiscards).rank(1),
    row("nic_priority_congestion_discarded_packets", Counter::BufferDiscards).rank(1),
    row("nic_receive_discarded_packets", |_| Counter::Discards(Rx)),
    row("rdma_out_of_buffer_packets", |_| Counter::OutOfBuffer),
    row("nic_out_of_buffer_packets", |_| Counter::OutOfBuffer),
    row("nic_pcie_stalled_read_seconds", |_| Counter::BusStalls),
    row("nic_pcie_stalled_write_seconds", |_| Counter::BusStalls),
    row("nic_pcie_overflow_packets", |_| Counter::BusDiscards),
    row("rdma_cnp_sent_packets", |_| Counter::CnpSent),
    row("rdma_cnp_handled_packets", |_| Counter::CnpHandled),
    row("rdma_ecn_marked_packets", |_| Counter::EcnMarked),
    row("rdma_out_of_sequence_packets", |_| Counter::OutOfSequence),
    row("rdma_sequence_error_packets", |_| Counter::SequenceErrors),
    row("rdma_implied_nak_events", |_| Counter::ImpliedNaks),
    row("rdma_timeout_events", |_| Counter::Timeouts),
    row("rdma_rnr_nak_received_packets", |_| Counter::ReceiverNotReady),
    row("nic_link_down_events", |_| Counter::LinkDowns),
    row("nic_carrier_down_events", |_| Counter::LinkDowns).rank(1),
    // RDMA's stays at 255.
    row("rdma_link_down_events", |_| Counter::LinkDowns).rank(2),
    // A link that goes comes again; which of the two an odd number ends with does not matter over time.
    row("nic_carrier_change_events", |_| Counter::LinkDowns).rank(3).each(2),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::catalogue::{self, Direction, Unit};

    #[test]
    fn every_name_is_a_row_of_the_same_direction_unit_and_lane() {
        for (at, meaning) in MEANINGS.iter().enumerate() {
            let name = meaning.row;
            let row = catalogue::row(name).expect(name);
            assert!(MEANINGS.iter().skip(at + 1).all(|other| other.row != name), "{name} twice");
            let (port, lane) = ((meaning.counter)(Lane::Port), (meaning.counter)(Lane::Priority(3)));
            assert!(port != lane || !row.is_by_priority(), "{name}: the priority is lost");
            let direction = match port {
                Counter::Bytes(_, of) | Counter::Packets(_, of) | Counter::Discards(of) => Some(of),
                Counter::PauseFrames(_, of) | Counter::PauseTime(_, of) => Some(of),
                _ => None,
            };
            if let Some(direction) = direction {
                let expected = if direction == Rx { Direction::Rx } else { Direction::Tx };
                assert_eq!(row.direction, expected, "{name}");
            }
            let seconds = matches!(port, Counter::PauseTime(..) | Counter::BusStalls);
            assert_eq!(row.unit == Unit::Seconds, seconds, "{name}");
        }
    }

    #[test]
    fn every_counter_that_a_detector_needs_has_a_row() {
        let (port, three) = (Lane::Port, Lane::Priority(3));
        let both = [Rx, Tx].into_iter().flat_map(|of| {
            let lanes = [port, three].into_iter();
            lanes.flat_map(move |lane| {
                [Counter::Packets(lane, of), Counter::PauseFrames(lane, of), Counter::PauseTime(lane, of)]
            })
        });
        let others = [
            Counter::Bytes(three, Rx),
            Counter::Bytes(three, Tx),
            Counter::StormWarnings,
            Counter::StormErrors,
            Counter::BufferDiscards(three),
            Counter::Discards(Rx),
            Counter::OutOfBuffer,
            Counter::BusStalls,
            Counter::BusDiscards,
            Counter::CnpSent,
            Counter::CnpHandled,
            Counter::EcnMarked,
            Counter::OutOfSequence,
            Counter::SequenceErrors,
            Counter::ImpliedNaks,
            Counter::Timeouts,
            Counter::ReceiverNotReady,
            Counter::LinkDowns,
        ];
        for counter in both.chain(others) {
            let found = MEANINGS.iter().any(|meaning| {
                let by_priority = catalogue::row(meaning.row).is_some_and(catalogue::Row::is_by_priority);
                (meaning.counter)(if by_priority { three } else { port }) == counter
            });
            assert!(found, "{counter}");
        }
    }
}

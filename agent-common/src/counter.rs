//! The kernel side's own counters: every way in which something can be lost, by number.

/// One way to lose something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// The slot in the kernel side's array of counters.
    pub slot: u32,
    /// The program family that counts it.
    pub program: &'static str,
    /// Where in the path from kernel to user it happened.
    pub stage: &'static str,
    /// Why.
    pub reason: &'static str,
}

/// A failure event that found no room in the ring buffer.
pub const RING_VERBS: u32 = 0;
/// A connection manager event that found no room in the ring buffer.
pub const RING_CM: u32 = 1;
/// A device event that found no room in the ring buffer.
pub const RING_DEVICE: u32 = 2;
/// A call that returned without a record of its entry: it was under way when the hooks were attached, or
/// [`INFLIGHT_FULL`] happened to it.
pub const NO_ENTRY: u32 = 3;
/// A call whose entry found the table of calls in flight full.
pub const INFLIGHT_FULL: u32 = 4;
/// A call of a device and verb for which the table of counters had no room.
pub const VERBS_FULL: u32 = 5;
/// A failure whose device, verb, layer and error had no room in their table.
pub const ERRORS_FULL: u32 = 6;
/// A duration whose verb had no room in the table of histograms.
pub const HISTOGRAM_FULL: u32 = 7;
/// A failing layer that found a call's chain full.
pub const CHAIN_FULL: u32 = 8;

/// A health event that found no room in the ring buffer.
pub const RING_HEALTH: u32 = 9;
/// A health event whose device and part had no room in the table of counters.
pub const HEALTH_FULL: u32 = 10;
/// A poll that used up its budget, of a network device that had no room in the table of counters.
pub const NAPI_FULL: u32 = 11;
/// A dropped packet whose network device and reason had no room in the table of counters.
pub const DROPS_FULL: u32 = 12;

/// A completion queue whose device and vector had no room in the table of counters.
pub const CQS_FULL: u32 = 13;

/// Every counter of the kernel side.
pub const TABLE: [Counter; 14] = [
    Counter { slot: RING_VERBS, program: "verbs", stage: "ring", reason: "no_space" },
    Counter { slot: RING_CM, program: "cm", stage: "ring", reason: "no_space" },
    Counter { slot: RING_DEVICE, program: "device", stage: "ring", reason: "no_space" },
    Counter { slot: NO_ENTRY, program: "verbs", stage: "entry", reason: "no_entry" },
    Counter { slot: INFLIGHT_FULL, program: "verbs", stage: "inflight", reason: "table_full" },
    Counter { slot: VERBS_FULL, program: "verbs", stage: "counters", reason: "table_full" },
    Counter { slot: ERRORS_FULL, program: "verbs", stage: "errors", reason: "table_full" },
    Counter { slot: HISTOGRAM_FULL, program: "verbs", stage: "histogram", reason: "table_full" },
    Counter { slot: CHAIN_FULL, program: "verbs", stage: "chain", reason: "table_full" },
    Counter { slot: RING_HEALTH, program: "health", stage: "ring", reason: "no_space" },
    Counter { slot: HEALTH_FULL, program: "health", stage: "counters", reason: "table_full" },
    Counter { slot: NAPI_FULL, program: "napi", stage: "counters", reason: "table_full" },
    Counter { slot: DROPS_FULL, program: "drops", stage: "counters", reason: "table_full" },
    Counter { slot: CQS_FULL, program: "verbs", stage: "cqs", reason: "table_full" },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_the_rows_numbers_and_every_loss_has_a_name_of_its_own() {
        for (row, counter) in TABLE.iter().enumerate() {
            assert_eq!(counter.slot as usize, row);
            let same = TABLE
                .iter()
                .filter(|c| (c.program, c.stage, c.reason) == (counter.program, counter.stage, counter.reason));
            assert_eq!(same.count(), 1);
        }
    }
}

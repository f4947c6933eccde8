//! Every health event: whom it is about, the numbers that come with it, what it means. One row for each hook.

use agent_common::health::VALUES;

/// What the name that comes with an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum About {
    /// An address on a bus.
    Bus,
    /// A network device.
    Netdev,
    /// An RDMA device.
    Rdma,
}

/// A number that comes with an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Number {
    /// What it is.
    pub(crate) name: &'static str,
    /// Bits of it that mean something: what a register holds above an argument's width is anything.
    bits: u32,
    signed: bool,
}

impl Number {
    const fn unsigned(name: &'static str, bits: u32) -> Self {
        Self { name, bits, signed: false }
    }

    /// The value in a register or field of 64 bits.
    pub(crate) fn read(self, raw: u64) -> i64 {
        let unused = 64 - self.bits;
        if self.signed { (raw << unused).cast_signed() >> unused } else { ((raw << unused) >> unused).cast_signed() }
    }
}

/// One event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// The hook's name in the probe table, which is the event's name too.
    pub(crate) hook: &'static str,
    /// What the name that comes with it is.
    pub(crate) about: About,
    /// The numbers that come with it, in order.
    pub(crate) numbers: &'static [Number],
    /// What it means and what to look at next.
    pub(crate) meaning: &'static str,
}

impl Row {
    /// The row of a hook.
    pub(crate) fn find(hook: &str) -> Option<&'static Self> {
        TABLE.iter().find(|row| row.hook == hook)
    }
}

const fn row(hook: &'static str, about: About, numbers: &'static [Number], meaning: &'static str) -> Row {
    assert!(numbers.len() <= VALUES);
    Row { hook, about, numbers, meaning }
}

const ERRNO: Number = Number { name: "error", bits: 32, signed: true };
const QUEUE: Number = Number::unsigned("queue", 32);

/// Every event.
pub(crate) const TABLE: &[Row] = &[
    row(
        "devlink_health",
        About::Bus,
        &[],
        "the driver reports an error; `devlink health show` and `devlink health diagnose` tell more",
    ),
    row("devlink_hwerr", About::Bus, &[ERRNO], "the hardware refused a command of the driver; see the kernel's log"),
    row(
        "tx_timeout",
        About::Netdev,
        &[QUEUE],
        "the transmit queue stood still for seconds: the NIC completes nothing, or pause from the network holds it",
    ),
    row("mlx5_health", About::Bus, &[], "the firmware is not well: its state is in the kernel's log, `dmesg`"),
    row("mlx5_health_work", About::Bus, &[], "the driver begins to recover the device: all its users are cut off"),
    row("mlx5_fw_error", About::Bus, &[], "the firmware reports an error or its counter stands still"),
    row("mlx5_fw_fatal", About::Bus, &[], "the firmware is dead: the driver resets the device"),
    row("mlx5_cq_error", About::Bus, &[], "a completion queue overflowed or broke: its application stops"),
    row("mlx5_tx_timeout", About::Netdev, &[], "the driver lets a transmit queue recover that stood still"),
    row("mlx5_tx_error", About::Netdev, &[], "the hardware ended a transmit queue's work with an error"),
    row("mlx5_rx_error", About::Netdev, &[], "the hardware ended a receive queue's work with an error"),
    row(
        "irdma_cqp_error",
        About::Bus,
        &[Number::unsigned("command", 8), Number::unsigned("major", 16), Number::unsigned("minor", 16)],
        "the hardware refused a command; major and minor are Intel's codes for why",
    ),
    row(
        "bnxt_async_event",
        About::Bus,
        &[],
        "the firmware reports an error of a queue or of the device; `fabricscope trace device` tells of which",
    ),
    row("mana_async_event", About::Rdma, &[], "the device reports an error of a queue pair"),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::probes::{Hook, Subject};

    #[test]
    fn each_health_hook_has_a_row_and_the_other_way_round() {
        let rows: BTreeSet<_> = TABLE.iter().map(|row| row.hook).collect();
        let hooks = Hook::all().map(|(_, hook)| hook).filter(|hook| hook.subject == Subject::Health);
        assert_eq!(rows, hooks.map(|hook| hook.name).collect());
        assert_eq!(rows.len(), TABLE.len());
    }

    #[test]
    fn numbers_are_as_wide_as_the_argument() {
        let rows = [
            (Number::unsigned("x", 8), 0xffff_ff07, 7),
            (Number::unsigned("x", 16), 0xdead_8001, 0x8001),
            (QUEUE, 0xffff_ffff_0000_0003, 3),
            (ERRNO, 0xffff_fff4, -12),
            (ERRNO, -5i64 as u64, -5),
        ];
        for (number, raw, expected) in rows {
            assert_eq!(number.read(raw), expected, "{raw:#x}");
        }
    }
}

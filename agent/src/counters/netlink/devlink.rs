//! Health reporters of devlink devices (include/uapi/linux/devlink.h): how often a part of an adapter reported an
//! error, how often it recovered, and whether it has. Reading them asks no firmware.

use std::io;

use super::generic::Family;
use super::{find, long, text, word};

const HEALTH_REPORTER_GET: u8 = 52;
const BUS_NAME: u16 = 1;
const DEV_NAME: u16 = 2;
const PORT_INDEX: u16 = 3;
const REPORTER: u16 = 114;
const NAME: u16 = 115;
const STATE: u16 = 116;
const ERRORS: u16 = 117;
const RECOVERIES: u16 = 118;
const DUMP_TIME: u16 = 137;

/// A part of an adapter that reports on its health.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reporter {
    /// The device's bus: `pci`, `auxiliary`, `platform`.
    pub(crate) bus: String,
    /// Its name there, such as `0000:3b:00.0`.
    pub(crate) device: String,
    /// The devlink port, of those that belong to one.
    pub(crate) port: Option<u32>,
    /// What the driver calls it: `fw`, `fw_fatal`, `tx`, `rx`, …
    pub(crate) name: String,
    /// It is well, or has recovered; absent where the kernel does not say.
    pub(crate) healthy: Option<bool>,
    /// Errors that it has reported.
    pub(crate) errors: u64,
    /// How often it has recovered.
    pub(crate) recoveries: u64,
    /// When the dump that is kept was taken, on the wall clock, in nanoseconds; absent where there is none.
    pub(crate) dumped_ns: Option<u64>,
}

/// A way to ask devlink.
#[derive(Debug)]
pub(crate) struct Devlink(Family);

impl Devlink {
    /// Opens one.
    ///
    /// # Errors
    ///
    /// Where the kernel has no devlink.
    pub(crate) fn open() -> io::Result<Self> {
        Family::open("devlink").map(Self)
    }

    /// Every reporter of this network namespace.
    ///
    /// # Errors
    ///
    /// The kernel's.
    pub(crate) fn reporters(&self) -> io::Result<Vec<Reporter>> {
        Ok(self.0.list(HEALTH_REPORTER_GET)?.iter().filter_map(|answer| parse(answer)).collect())
    }
}

/// A reporter; `None` without its names and counts.
fn parse(answer: &[u8]) -> Option<Reporter> {
    let reporter = find(answer, REPORTER)?;
    Some(Reporter {
        bus: text(find(answer, BUS_NAME)?),
        device: text(find(answer, DEV_NAME)?),
        port: find(answer, PORT_INDEX).and_then(word),
        name: text(find(reporter, NAME)?),
        // `DEVLINK_HEALTH_REPORTER_STATE_HEALTHY` is 0.
        healthy: find(reporter, STATE).and_then(|state| state.first()).map(|state| *state == 0),
        errors: long(find(reporter, ERRORS)?)?,
        recoveries: long(find(reporter, RECOVERIES)?)?,
        dumped_ns: find(reporter, DUMP_TIME).and_then(long),
    })
}

/// For tests with bytes of any kind.
#[cfg(test)]
pub(super) fn parse_any(bytes: &[u8]) {
    parse(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::netlink::{NESTED, attribute};

    fn answer(state: u8, dumped: Option<u64>) -> Vec<u8> {
        let mut reporter = Vec::new();
        attribute(&mut reporter, NAME, b"fw_fatal\0");
        attribute(&mut reporter, STATE, &[state]);
        attribute(&mut reporter, ERRORS, &5u64.to_ne_bytes());
        attribute(&mut reporter, RECOVERIES, &4u64.to_ne_bytes());
        attribute(&mut reporter, 120, &[0; 8]);
        if let Some(dumped) = dumped {
            attribute(&mut reporter, DUMP_TIME, &dumped.to_ne_bytes());
        }
        let mut answer = Vec::new();
        attribute(&mut answer, BUS_NAME, b"pci\0");
        attribute(&mut answer, DEV_NAME, b"0000:3b:00.0\0");
        attribute(&mut answer, REPORTER | NESTED, &reporter);
        answer
    }

    #[test]
    fn a_reporter_is_read_with_its_counts_and_its_state() {
        let expected = Reporter {
            bus: "pci".into(),
            device: "0000:3b:00.0".into(),
            port: None,
            name: "fw_fatal".into(),
            healthy: Some(true),
            errors: 5,
            recoveries: 4,
            dumped_ns: None,
        };
        assert_eq!(parse(&answer(0, None)), Some(expected.clone()));
        let ill = Reporter { healthy: Some(false), dumped_ns: Some(7), ..expected };
        assert_eq!(parse(&answer(1, Some(7))), Some(ill));
    }

    #[test]
    fn what_is_cut_off_is_no_reporter() {
        let whole = answer(1, Some(7));
        for length in 0..whole.len() {
            assert_eq!(parse(&whole[..length]), None, "{length}");
        }
    }

    #[test]
    fn this_kernel_lists_its_reporters_or_has_no_devlink() {
        if let Ok(devlink) = Devlink::open() {
            let reporters = devlink.reporters().expect("a list");
            assert!(reporters.iter().all(|reporter| !reporter.name.is_empty()), "{reporters:?}");
        }
    }
}

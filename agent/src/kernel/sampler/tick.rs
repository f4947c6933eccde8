//! The tick that tells buckets apart: set going, and mapped for reading.

use std::io;
use std::os::fd::AsFd as _;
use std::sync::atomic::{Ordering, fence};

use agent_common::tick::{Tick, Ticking};
use anyhow::Context as _;

use super::super::clock::monotonic_ns;
use super::super::test_run::test_run;
use super::mapping::{Mapping, copy};
use super::object::{Object, short};

/// The program that sets the timer for the first time.
const PROGRAM: &str = "fs_sampler_tick";

/// What the program is run on, which it does not look at: the shortest packet that the kernel takes.
const PACKET: [u8; 64] = [0; 64];

/// A tick that does not come for so long comes no more: 5 s.
const STILL_NS: u64 = 5_000_000_000;

/// When buckets began. The timer itself ends with the object.
#[derive(Debug)]
pub(super) struct Ticks {
    ticks: Mapping<{ size_of::<Tick>() / size_of::<u64>() }>,
    state: Mapping<{ size_of::<Ticking>() / size_of::<u64>() }>,
    slots: u32,
}

impl Ticks {
    /// Sets the timer, so that a bucket is written from now on.
    ///
    /// # Errors
    ///
    /// If the kernel refuses the program or the timer: it needs timers for programs, which came with 5.15.
    pub(super) fn start(object: &mut Object, slots: u32) -> anyhow::Result<Self> {
        let refused = "this kernel does not take a timer as clock (timers for programs came with 5.15): sample by the \
                       clock that is read";
        let program = object.program(PROGRAM)?;
        program.load().map_err(short).context(refused)?;
        let answer = test_run(program.fd()?.as_fd(), &PACKET, &[]).context("setting the timer")?;
        if answer != 0 {
            return Err(io::Error::from_raw_os_error(answer.cast_signed().saturating_neg())).context(refused);
        }
        let ticks = Mapping::new(object.map("TICKS")?, slots as usize).context("mapping the ticks")?;
        let state = Mapping::new(object.map("TICKING")?, 1).context("mapping the tick's state")?;
        Ok(Self { ticks, state, slots })
    }

    /// What the tick says of itself.
    pub(super) fn state(&self) -> Ticking {
        let [current, ticks, missed, start_ns, reserved @ ..] = self.state.entry(0).map(copy).unwrap_or_default();
        Ticking { current, ticks, missed, start_ns, reserved }
    }

    /// Whether it goes on. One that stood still for so long has ended, and with it all buckets.
    pub(super) fn goes_on(&self) -> bool {
        monotonic_ns().saturating_sub(self.state().start_ns) < STILL_NS
    }

    /// When a bucket began; `None` if it had no tick, or that is forgotten.
    pub(super) fn start_ns(&self, sequence: u64) -> Option<u64> {
        let entry = self.ticks.entry(sequence as u32 & self.slots.saturating_sub(1))?;
        let [number, start_ns] = entry;
        // As of a bucket: what is read between two sights of one number is of that number.
        let is = |ordering| number.load(ordering) == sequence;
        if !is(Ordering::Acquire) {
            return None;
        }
        let found = start_ns.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        is(Ordering::Relaxed).then_some(found)
    }
}

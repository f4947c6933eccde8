//! What the kernel side says of itself: the state of each hook, and one reading of all counters.

use std::collections::BTreeMap;
use std::fmt;

use agent_common::histogram::BUCKETS;
use agent_common::record::VerbCounters;
use agent_common::verb::VerbKey;

/// How a hook is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// A tracepoint, by its trace event.
    Tracepoint,
    /// Programs in the function's own trampoline.
    Fexit,
    /// Kprobe events with a pool of return instances.
    Kprobe,
}

impl How {
    /// The name used in output and metrics.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Tracepoint => "tracepoint",
            Self::Fexit => "fexit",
            Self::Kprobe => "kprobe",
        }
    }
}

/// Where a hook has got to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It runs.
    Attached {
        /// By which means.
        how: How,
        /// The function that was taken, or the tracepoint.
        function: String,
        /// The module that holds it; empty for the kernel itself.
        module: String,
        /// Why not by a better means, if one was tried.
        instead: Option<String>,
    },
    /// This kernel has no such function.
    Unsupported(String),
    /// Its module is not loaded; it is tried again when that changes.
    Waiting(String),
    /// The kernel has refused it.
    Failed(String),
    /// Not wanted.
    Disabled(String),
    /// It came and went too often; it is left alone for a while.
    Quarantined(String),
}

impl State {
    /// The name used in output.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Attached { .. } => "attached",
            Self::Unsupported(_) => "unsupported",
            Self::Waiting(_) => "waiting",
            Self::Failed(_) => "failed",
            Self::Disabled(_) => "disabled",
            Self::Quarantined(_) => "quarantined",
        }
    }

    /// True if it runs.
    pub(crate) const fn is_attached(&self) -> bool {
        matches!(self, Self::Attached { .. })
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Attached { how, function, module, instead } => {
                let colon = if module.is_empty() { "" } else { ":" };
                write!(f, "{} {module}{colon}{function}", how.name())?;
                instead.as_ref().map_or(Ok(()), |why| write!(f, " ({why})"))
            }
            Self::Unsupported(why)
            | Self::Waiting(why)
            | Self::Failed(why)
            | Self::Disabled(why)
            | Self::Quarantined(why) => f.write_str(why),
        }
    }
}

/// One hook's state and accounts.
#[derive(Clone, Debug)]
pub(crate) struct HookState {
    /// The row in the probe table.
    pub(crate) number: u16,
    /// Where it has got to.
    pub(crate) state: State,
    /// How often it was attached or detached.
    pub(crate) transitions: u64,
    /// How often its programs ran, while statistics were on.
    pub(crate) run_count: u64,
    /// Nanoseconds they ran, while statistics were on.
    pub(crate) run_time_ns: u64,
    /// Calls it did not see: no return instance free, or the program was running already on that CPU.
    pub(crate) missed: u64,
}

/// A call under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InFlight {
    /// The process.
    pub(crate) pid: u32,
    /// The thread.
    pub(crate) tid: u32,
    /// What was asked for.
    pub(crate) key: VerbKey,
    /// The device file's number (kernel encoding); 0 if unknown.
    pub(crate) rdev: u32,
    /// When it entered (`CLOCK_MONOTONIC`, nanoseconds); 0 where time stamps are off.
    pub(crate) start_ns: u64,
}

/// Failures counted: device number, verb, positive errno, the answering hook's row, and how many.
pub(crate) type ErrorRow = (u32, VerbKey, u16, u16, u64);

/// Health events counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HealthCount {
    /// The row of the probe table.
    pub(crate) hook: u16,
    /// The device's name as the kernel gives it; empty if unknown.
    pub(crate) device: String,
    /// The part of it that reports; mostly empty.
    pub(crate) part: String,
    /// How many.
    pub(crate) count: u64,
}

/// Completion queues that applications made since the programs were loaded; those that are gone count too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CqCounts {
    /// By device number and completion vector.
    pub(crate) made: Vec<(u32, u32, u64)>,
    /// How many vectors a device has, by its number.
    pub(crate) vectors: BTreeMap<u32, u64>,
}

/// One reading of the kernel side's counters. All count from when the programs were loaded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshot {
    /// Calls by device number and verb.
    pub(crate) calls: Vec<(u32, VerbKey, VerbCounters)>,
    /// Completion queues that were made.
    pub(crate) cqs: CqCounts,
    /// Failures by device number, verb, positive errno and the answering hook's row.
    pub(crate) errors: Vec<ErrorRow>,
    /// Durations of successful calls by verb; see `agent_common::histogram`.
    pub(crate) durations: Vec<(VerbKey, [u64; BUCKETS])>,
    /// Losses by slot of `agent_common::counter::TABLE`.
    pub(crate) lost: Vec<u64>,
    /// Connection manager events by type.
    pub(crate) cm_events: Vec<u64>,
    /// Device events by device, port and type.
    pub(crate) device_events: Vec<(String, u32, u32, u64)>,
    /// Health events by hook, device and part.
    pub(crate) health: Vec<HealthCount>,
    /// Polls that used up their budget, by network device; empty for the CPUs' own backlogs.
    pub(crate) napi: Vec<(String, u64)>,
    /// Packets thrown away by network device (empty if on none) and reason, as the kernel spells it in lower case.
    pub(crate) drops: Vec<(String, String, u64)>,
    /// Calls under way.
    pub(crate) in_flight: Vec<InFlight>,
}

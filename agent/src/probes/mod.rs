//! The probe table: every hook, one row each.
//!
//! A row says where in the stack a hook stands, which kernel functions to try (the first that exists and can be
//! attached is taken), how the function says that it failed, and which driver it belongs to. Its number is its place
//! here. Rows marked `default` are always on; the others attach only for a session. [`discover`] is how the default set
//! was found, as code.
//!
//! # Adding a row
//!
//! 1. Look the function up with its type: `fabricscope hooks --discover -o functions`, on a kernel whose modules are
//!    loaded, lists every function of the RDMA modules with what it returns.
//! 2. Write one line into the layer's or driver's file in `table/`: a stable name, the functions to try, and how they
//!    fail (`.long()` for `long`, `ssize_t` and pointers; nothing for `int`). A function that returns something else
//!    must not stand here: its result would be misread. `.session()` unless discovery ends in it, `.unverified()` unless
//!    it was seen to attach.
//! 3. Run the tests: names are unique, each row fails as the recorded kernel's types say, and a row is in the default
//!    set exactly if discovery ends in it or `discover::exceptions` gives the reason why not. The lab tests attach it.

pub(crate) mod discover;
pub(crate) mod memory;
pub(crate) mod path;
mod table;

pub(crate) use table::{ROWS, TABLE};

/// Where in the stack a hook stands. Ordered from the outside in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Layer {
    /// The system call boundary.
    Syscall,
    /// `ib_uverbs` handlers and `ib_core`.
    Core,
    /// One driver's functions.
    Driver,
    /// Commands to the device's firmware.
    Firmware,
}

impl Layer {
    /// All of them, in order.
    pub(crate) const ALL: [Self; 4] = [Self::Syscall, Self::Core, Self::Driver, Self::Firmware];

    /// The name used in output and metrics.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Syscall => "syscall",
            Self::Core => "core",
            Self::Driver => "driver",
            Self::Firmware => "firmware",
        }
    }

    /// The number the kernel side uses; `None` for one that it does not.
    pub(crate) fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// The number the kernel side uses.
    pub(crate) const fn number(self) -> u8 {
        match self {
            Self::Syscall => agent_common::hook::layer::SYSCALL,
            Self::Core => agent_common::hook::layer::CORE,
            Self::Driver => agent_common::hook::layer::DRIVER,
            Self::Firmware => agent_common::hook::layer::FIRMWARE,
        }
    }
}

/// What a hook is for: features that are switched together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Subject {
    /// Failed verbs calls.
    Verbs,
    /// Connection manager events.
    Cm,
    /// Device, port and resource events.
    Device,
    /// What drivers and the kernel say about a NIC that is not well.
    Health,
    /// Polls of network devices that used up their budget. Only counted.
    Napi,
    /// Packets that the kernel throws away. Only counted.
    Drops,
}

impl Subject {
    /// All of them.
    pub(crate) const ALL: [Self; 6] = [Self::Verbs, Self::Cm, Self::Device, Self::Health, Self::Napi, Self::Drops];

    /// The name used in output.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Verbs => "verbs",
            Self::Cm => "cm",
            Self::Device => "device",
            Self::Health => "health",
            Self::Napi => "napi",
            Self::Drops => "drops",
        }
    }
}

/// Which programs a hook runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    /// Entry and return at the system call boundary, with one of `agent_common::hook::role`.
    Syscall(u8),
    /// Return of a function further in.
    Inner,
    /// The same for a function that only hands a call on.
    Framework,
    /// Entry of a function whose first argument is a `struct ib_event`.
    DeviceEvent,
    /// The same for changes of GIDs alone.
    GidEvent,
    /// The tracepoint `mlx5:mlx5_cmd`.
    Mlx5Command,
    /// The tracepoint `rdma_cma:cm_event_handler`.
    CmEvent,
    /// The tracepoint `devlink:devlink_health_report`.
    HealthReport,
    /// The tracepoint `devlink:devlink_hwerr`.
    HealthHwerr,
    /// The tracepoint `net:net_dev_xmit_timeout`.
    HealthTimeout,
    /// The tracepoint `napi:napi_poll`.
    NapiPoll,
    /// The tracepoint `skb:kfree_skb`.
    PacketDrop,
    /// Entry of a driver's function that runs when something is wrong.
    DriverHealth(&'static path::DevicePath),
}

impl Program {
    /// The name used in metrics.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Syscall(_) => "boundary",
            Self::Inner => "inner",
            Self::Framework => "framework",
            Self::DeviceEvent => "device_event",
            Self::GidEvent => "gid_event",
            Self::Mlx5Command => "mlx5_command",
            Self::CmEvent => "cm_event",
            Self::HealthReport => "health_report",
            Self::HealthHwerr => "health_hwerr",
            Self::HealthTimeout => "health_timeout",
            Self::NapiPoll => "health_napi",
            Self::PacketDrop => "health_drop",
            Self::DriverHealth(_) => "driver_health",
        }
    }
}

/// How a function says that it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fails {
    /// A negative errno as `int`.
    Int,
    /// A negative errno as `long`, or a pointer made by `ERR_PTR`.
    Long,
}

/// One row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hook {
    /// The stable name, used in output, metrics and configuration.
    pub(crate) name: &'static str,
    /// Where it stands.
    pub(crate) layer: Layer,
    /// What it is for.
    pub(crate) subject: Subject,
    /// What it runs.
    pub(crate) program: Program,
    /// Kernel functions to try in order; for a tracepoint its name as `group/event`.
    pub(crate) functions: &'static [&'static str],
    /// How the function fails.
    pub(crate) fails: Fails,
    /// Modules that may hold the function, in order; looked at before any other place.
    pub(crate) modules: &'static [&'static str],
    /// Always on.
    pub(crate) default: bool,
    /// Seen to attach on a kernel; else taken from the driver's source only.
    pub(crate) verified: bool,
    /// The row that this one stands in for: it attaches only while that one is not attached.
    pub(crate) unless: Option<&'static str>,
}

impl Hook {
    /// The rows' numbers and the rows.
    pub(crate) fn all() -> impl Iterator<Item = (u16, &'static Self)> {
        (0u16..).zip(TABLE)
    }

    /// A row by its number.
    pub(crate) fn by_number(number: u16) -> Option<&'static Self> {
        TABLE.get(usize::from(number))
    }

    /// The kernel side's program, for a row that is a tracepoint.
    pub(crate) const fn tracepoint(&self) -> Option<&'static str> {
        match self.program {
            Program::Syscall(_)
            | Program::Inner
            | Program::Framework
            | Program::DeviceEvent
            | Program::GidEvent
            | Program::DriverHealth(_) => None,
            program => Some(program.name()),
        }
    }

    /// True where the driver's own module is reloaded by operators. A fentry or fexit program holds the module it is
    /// attached to, so that it could not be unloaded; a kprobe does not.
    pub(crate) const fn may_not_hold_module(&self) -> bool {
        matches!(self.layer, Layer::Driver | Layer::Firmware)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_rows_have_something_to_try() {
        for (number, hook) in Hook::all() {
            assert!(!hook.functions.is_empty(), "{}", hook.name);
            assert_eq!(TABLE.iter().filter(|other| other.name == hook.name).count(), 1, "{}", hook.name);
            assert!(hook.name.len() <= 50 && hook.name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'));
            assert!(std::ptr::eq(Hook::by_number(number).expect("its own number"), hook));
        }
    }

    #[test]
    fn layers_have_the_kernel_side_s_numbers() {
        for layer in Layer::ALL {
            assert_eq!(Layer::from_number(layer.number()), Some(layer));
        }
        assert_eq!(Layer::from_number(4), None);
    }

    #[test]
    fn a_row_that_stands_in_for_another_comes_after_it() {
        for (number, hook) in Hook::all() {
            let Some(other) = hook.unless else { continue };
            let first = Hook::all().find(|(_, row)| row.name == other).map(|(number, _)| number);
            assert!(first.is_some_and(|first| first < number), "{}", hook.name);
        }
    }

    #[test]
    fn drivers_rows_name_their_module() {
        for (_, hook) in Hook::all().filter(|(_, hook)| hook.layer == Layer::Driver) {
            assert!(!hook.modules.is_empty(), "{}", hook.name);
        }
    }
}

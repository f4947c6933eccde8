//! What happened: the domain's events, made from the kernel's records and from what the host knows.
//!
//! These types carry no wire format; `verbs::json`, `rpc::convert` and the log each have their own conversion.

use std::borrow::Cow;
use std::net::IpAddr;
use std::time::SystemTime;

use agent_common::verb::VerbKey;

use crate::health::HealthEvent;
use crate::host::process::Process;
use crate::probes::Layer;
use crate::verbs::request::types::Request;

/// Something that happened at an instant.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// A verbs call was refused.
    Verbs(Box<Failure>),
    /// The connection manager reported something.
    Cm(CmEvent),
    /// A device, port or resource reported something.
    Device(DeviceEvent),
    /// A driver or the kernel said something about a NIC.
    Health(Box<HealthEvent>),
}

/// A layer that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    /// Where it stands.
    pub(crate) layer: Layer,
    /// The kernel function the hook is attached to, or a tracepoint's name.
    pub(crate) function: String,
    /// A positive errno.
    pub(crate) errno: i32,
}

/// What a firmware command said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Firmware {
    /// The command.
    pub(crate) opcode: u32,
    /// The command's modifier.
    pub(crate) op_mod: u32,
    /// The firmware's status.
    pub(crate) status: u32,
    /// The vendor's number for the exact reason.
    pub(crate) syndrome: u32,
}

/// A QP as its own earlier calls have shown it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KnownQp {
    /// Its number.
    pub(crate) number: u32,
    /// `enum ib_uverbs_qp_type`.
    pub(crate) kind: u32,
    /// `enum ib_qp_state`, before the call.
    pub(crate) state: u32,
}

/// A failed verbs call.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    /// When it returned, on the wall clock.
    pub(crate) time: SystemTime,
    /// The same on `CLOCK_MONOTONIC`, in nanoseconds.
    pub(crate) monotonic_ns: u64,
    /// How long it took in nanoseconds, if that was measured.
    pub(crate) duration_ns: Option<u64>,
    /// What was asked for, by number.
    pub(crate) key: VerbKey,
    /// What was asked for, by name.
    pub(crate) verb: Cow<'static, str>,
    /// The RDMA device, if it is known.
    pub(crate) device: Option<String>,
    /// A positive errno: what the call returned.
    pub(crate) errno: i32,
    /// The deepest layer whose error is the call's.
    pub(crate) answer: Link,
    /// Every layer that failed, innermost first, the system call last.
    pub(crate) chain: Vec<Link>,
    /// More layers failed than are listed.
    pub(crate) chain_cut: bool,
    /// The last failing firmware command.
    pub(crate) firmware: Option<Firmware>,
    /// The process, in the initial namespace.
    pub(crate) pid: u32,
    /// The thread, in the initial namespace.
    pub(crate) tid: u32,
    /// The user, in the initial namespace.
    pub(crate) uid: u32,
    /// The thread's name.
    pub(crate) comm: String,
    /// The cgroup v2 id.
    pub(crate) cgroup_id: u64,
    /// What else is known of the process; all absent if it had ended before it was looked at.
    pub(crate) process: Process,
    /// Probing, not failure.
    pub(crate) probe: bool,
    /// The device cannot do what was asked for.
    pub(crate) unsupported: bool,
    /// The QP the call named, if its creation was seen.
    pub(crate) qp: Option<KnownQp>,
    /// What was being built.
    pub(crate) request: Request,
    /// What most likely lies behind it, in one sentence.
    pub(crate) cause: Option<String>,
}

/// An event of the connection manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CmEvent {
    /// When, on the wall clock.
    pub(crate) time: SystemTime,
    /// `enum rdma_cm_event_type`.
    pub(crate) event: u32,
    /// Its name, as librdmacm spells it without the prefix: `unreachable`, `rejected`.
    pub(crate) name: Cow<'static, str>,
    /// A negative errno, or the reason of a rejection.
    pub(crate) status: i32,
    /// What the status means.
    pub(crate) reason: Option<String>,
    /// The connection manager's number for the id.
    pub(crate) cm_id: u32,
    /// The local address and port.
    pub(crate) source: Option<(IpAddr, u16)>,
    /// The remote one.
    pub(crate) destination: Option<(IpAddr, u16)>,
}

/// An asynchronous event of a device, port or resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeviceEvent {
    /// When, on the wall clock.
    pub(crate) time: SystemTime,
    /// `enum ib_event_type`.
    pub(crate) event: u32,
    /// Its name: `port_err`, `qp_fatal`.
    pub(crate) name: Cow<'static, str>,
    /// The RDMA device, if it is known.
    pub(crate) device: Option<String>,
    /// The port, for events of a port.
    pub(crate) port: Option<u32>,
    /// The QP's number, for events of a QP.
    pub(crate) qp: Option<u32>,
}

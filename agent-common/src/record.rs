//! Ring-buffer records and map values: fixed layout, no padding, sizes asserted here against literal numbers.
//!
//! The kernel side writes them; user space decodes them from bytes. All times are `CLOCK_MONOTONIC` nanoseconds. All
//! numbers are in the machine's own byte order.

/// How many failing layers of one call are kept. The innermost are recorded first, so those are what a full chain has.
pub const CHAIN: usize = 8;
/// How many attributes of a request are kept.
pub const ATTRS: usize = 16;
/// Bytes of one `struct ib_uverbs_attr` (include/uapi/rdma/rdma_user_ioctl_cmds.h).
pub const ATTR_BYTES: usize = 16;
/// Bytes of a legacy or rdma_cm command's request that are kept. The longest that is read is `struct rdma_ucm_accept`
/// (include/uapi/rdma/rdma_user_cm.h), whose last field used ends at 284.
pub const REQUEST: usize = 288;
/// Bytes kept of the one attribute of a native method that is a pointer worth following.
pub const PAYLOAD: usize = 24;
/// Bytes of a kernel task name (`TASK_COMM_LEN`).
pub const COMM: usize = 16;
/// Bytes of an RDMA device's name (`IB_DEVICE_NAME_MAX`).
pub const DEVICE_NAME: usize = 64;

/// Kinds of record in the ring buffer: the first four bytes of each.
pub mod kind {
    /// [`super::FailureRecord`].
    pub const FAILURE: u32 = 1;
    /// [`super::CmRecord`].
    pub const CM: u32 = 2;
    /// [`super::DeviceRecord`].
    pub const DEVICE: u32 = 3;
    /// [`crate::health::HealthRecord`].
    pub const HEALTH: u32 = 4;
}

/// What a returning call is.
pub mod outcome {
    /// It did what it was asked.
    pub const SUCCESS: u32 = 0;
    /// It was refused: an event.
    pub const FAILURE: u32 = 1;
    /// The caller only asked what there is: counted apart.
    pub const PROBE: u32 = 2;
    /// It will be started again by the kernel: nothing has happened yet.
    pub const RESTART: u32 = 3;
}

/// Bits of [`FailureRecord::flags`].
pub mod flag {
    /// Probing, not failure.
    pub const PROBE: u32 = 1;
    /// The device cannot do what a create, modify or register verb asked for.
    pub const UNSUPPORTED: u32 = 1 << 1;
    /// More layers failed than the chain holds.
    pub const CHAIN_FULL: u32 = 1 << 2;
    /// The request's header could not be read.
    pub const NO_HEADER: u32 = 1 << 3;
    /// `duration_ns` was measured.
    pub const TIMED: u32 = 1 << 4;
    /// `firmware` was seen.
    pub const FIRMWARE: u32 = 1 << 5;
    /// `qp_number`, `qp_type` and `qp_state` are known from the QP's own earlier calls.
    pub const QP: u32 = 1 << 6;
}

/// A layer that failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Link {
    /// The row in the probe table.
    pub hook: u16,
    /// One of [`crate::hook::layer`].
    pub layer: u8,
    /// One of [`crate::hook::role`].
    pub role: u8,
    /// A negative errno.
    pub error: i32,
}

/// What a firmware command said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Firmware {
    /// The command.
    pub opcode: u32,
    /// The command's modifier.
    pub op_mod: u32,
    /// The firmware's status.
    pub status: u32,
    /// The firmware's syndrome: the vendor's number for the exact reason.
    pub syndrome: u32,
}

/// A call in flight, at one of its thread's [`crate::place`]s.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Call {
    /// When it entered; 0 where time stamps are off.
    pub start_ns: u64,
    /// A [`crate::verb::VerbKey`].
    pub key: u64,
    /// The kernel's `struct file *`: with a handle, the identity of a resource.
    pub file: u64,
    /// The user's pointer to the request.
    pub request: u64,
    /// Bytes of the request that `write()` was given; 0 for an ioctl.
    pub request_len: u64,
    /// Stack addresses of the failing layers, for telling which is further in.
    pub frames: [u64; CHAIN],
    /// The failing layers.
    pub chain: [Link; CHAIN],
    /// The last failing firmware command.
    pub firmware: Firmware,
    /// The device file's number (kernel encoding: major << 20 | minor); 0 if unknown.
    pub rdev: u32,
    /// How many of `chain` are used.
    pub chain_len: u32,
    /// [`flag`] bits found on the way.
    pub flags: u32,
    /// The row in the probe table of the hook that opened this.
    pub hook: u32,
}

/// A failed verbs call.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct FailureRecord {
    /// [`kind::FAILURE`].
    pub kind: u32,
    /// [`flag`] bits.
    pub flags: u32,
    /// When the call returned.
    pub time_ns: u64,
    /// How long it took; meaningful with [`flag::TIMED`].
    pub duration_ns: u64,
    /// A [`crate::verb::VerbKey`].
    pub key: u64,
    /// The cgroup v2 id of the caller.
    pub cgroup_id: u64,
    /// The process (thread group) id, in the initial namespace.
    pub pid: u32,
    /// The thread id, in the initial namespace.
    pub tid: u32,
    /// The user id, in the initial namespace.
    pub uid: u32,
    /// The device file's number (kernel encoding); 0 if unknown.
    pub rdev: u32,
    /// What the call returned: a negative errno.
    pub error: i32,
    /// Index in `chain` of the answer: the deepest layer whose error is the call's.
    pub answer: u32,
    /// How many of `chain` are used.
    pub chain_len: u32,
    /// How many of `attrs` are used.
    pub attrs_len: u32,
    /// Bytes of `request` that are used.
    pub request_len: u32,
    /// Bytes of `payload` that are used.
    pub payload_len: u32,
    /// Zero.
    pub reserved: u32,
    /// The QP's number, with [`flag::QP`].
    pub qp_number: u32,
    /// The QP's type (`enum ib_uverbs_qp_type`), with [`flag::QP`].
    pub qp_type: u32,
    /// The QP's state before the call (`enum ib_qp_state`), with [`flag::QP`].
    pub qp_state: u32,
    /// The last failing firmware command, with [`flag::FIRMWARE`].
    pub firmware: Firmware,
    /// The failing layers, innermost first.
    pub chain: [Link; CHAIN],
    /// The thread's name.
    pub comm: [u8; COMM],
    /// The request's attributes as the caller passed them.
    pub attrs: [u8; ATTRS * ATTR_BYTES],
    /// What the attribute named by [`crate::verb::payload_of`] points to.
    pub payload: [u8; PAYLOAD],
    /// The legacy command's request, without its header.
    pub request: [u8; REQUEST],
}

/// A connection manager event, as `rdma_cma:cm_event_handler` reports it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CmRecord {
    /// [`kind::CM`].
    pub kind: u32,
    /// `enum rdma_cm_event_type`.
    pub event: u32,
    /// When.
    pub time_ns: u64,
    /// A negative errno, or a reject reason for a rejected connection.
    pub status: i32,
    /// The connection manager's number for the id.
    pub cm_id: u32,
    /// The local `struct sockaddr` (28 bytes) and four bytes of nothing.
    pub source: [u8; 32],
    /// The remote one.
    pub destination: [u8; 32],
}

/// An asynchronous event of a device, port or resource.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct DeviceRecord {
    /// [`kind::DEVICE`].
    pub kind: u32,
    /// `enum ib_event_type`.
    pub event: u32,
    /// When.
    pub time_ns: u64,
    /// The port number, or the QP's number for events of a QP; 0 if neither is known.
    pub element: u32,
    /// The row in the probe table of the hook that saw it.
    pub hook: u32,
    /// The device's name, filled up with zeros; empty if unknown.
    pub device: [u8; DEVICE_NAME],
}

/// Key of the table of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct VerbCounterKey {
    /// A [`crate::verb::VerbKey`].
    pub key: u64,
    /// The device file's number (kernel encoding); 0 if unknown.
    pub rdev: u32,
    /// Zero.
    pub reserved: u32,
}

/// Value of the table of calls: one per CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct VerbCounters {
    /// Calls that returned, whatever they returned (those that will be started again excepted).
    pub calls: u64,
    /// Of these, failures.
    pub failures: u64,
    /// Of these, refused probes.
    pub probes: u64,
    /// Sum of durations in nanoseconds of the calls that succeeded; 0 where time stamps are off.
    pub duration_ns: u64,
}

/// Key of the table of errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct ErrorKey {
    /// A [`crate::verb::VerbKey`].
    pub key: u64,
    /// The device file's number (kernel encoding); 0 if unknown.
    pub rdev: u32,
    /// The errno of the answer, positive.
    pub errno: u16,
    /// The row in the probe table of the answer.
    pub hook: u16,
}

/// Key of the table of device events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct DeviceEventKey {
    /// The device's name, filled up with zeros; empty if unknown.
    pub device: [u8; DEVICE_NAME],
    /// The port number; 0 for events of no port.
    pub port: u32,
    /// `enum ib_event_type`.
    pub event: u32,
}

/// Key of the table of completion queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct CqKey {
    /// The device file's number.
    pub rdev: u32,
    /// The completion vector, or [`Self::VECTORS`].
    pub vector: u32,
}

impl CqKey {
    /// Stands for no vector: the value is not a count, but how many vectors the device has, on the CPUs that know it.
    pub const VECTORS: u32 = u32::MAX;
}

/// Key of the table of QPs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct QpKey {
    /// The kernel's `struct file *` of the opened device.
    pub file: u64,
    /// The handle within it.
    pub handle: u32,
    /// Zero.
    pub reserved: u32,
}

/// What is known of a QP from its own calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Qp {
    /// Its number.
    pub number: u32,
    /// `enum ib_uverbs_qp_type`.
    pub kind: u32,
    /// `enum ib_qp_state`, as last set.
    pub state: u32,
    /// Zero.
    pub reserved: u32,
}

const _: () = {
    assert!(size_of::<Link>() == 8);
    assert!(size_of::<Firmware>() == 16);
    assert!(size_of::<Call>() == 200);
    assert!(size_of::<FailureRecord>() == 760);
    assert!(
        PAYLOAD == crate::verb::PAYLOAD_MAX && ATTRS == crate::verb::ATTRS_MAX && ATTR_BYTES == crate::verb::ATTR_LEN
    );
    assert!(size_of::<CmRecord>() == 88);
    assert!(size_of::<DeviceRecord>() == 88);
    assert!(size_of::<VerbCounterKey>() == 16);
    assert!(size_of::<VerbCounters>() == 32);
    assert!(size_of::<ErrorKey>() == 16);
    assert!(size_of::<DeviceEventKey>() == 72);
    assert!(size_of::<QpKey>() == 16);
    assert!(size_of::<Qp>() == 16);
};

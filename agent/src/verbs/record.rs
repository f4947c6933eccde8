//! From the bytes of a ring-buffer record to an event. Every field is read with checks; a record that is too short, of
//! an unknown kind or with impossible lengths is an error, and never a wrong event.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant, SystemTime};

use agent_common::record::{ATTR_BYTES, ATTRS, CHAIN, COMM, DEVICE_NAME, PAYLOAD, REQUEST, flag, kind};
use agent_common::verb::VerbKey;
use bytes::Buf;

use super::{asynchronous, cause, names, request};
use crate::event::{CmEvent, DeviceEvent, Event, Failure, Firmware, KnownQp, Link};
use crate::health;
use crate::host::process::Process;
use crate::host::rdma::RdmaFacts;
use crate::host::roots::Roots;
use crate::probes::{Hook, Layer};

/// Why a record is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DecodeError {
    /// It ends before its kind does.
    #[error("a record that is cut short")]
    Short,
    /// Its kind is not known.
    #[error("a record of the unknown kind {0}")]
    Kind(u32),
    /// A field has a value it cannot have.
    #[error("a record whose {0} is impossible")]
    Field(&'static str),
}

impl From<bytes::TryGetError> for DecodeError {
    fn from(_: bytes::TryGetError) -> Self {
        Self::Short
    }
}

/// How often the devices are looked at again because one is not known.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// What decoding needs to know of this host.
#[derive(Debug)]
pub(crate) struct Decoder {
    roots: Roots,
    devices: RdmaFacts,
    /// Every device file's number that was ever seen: a program keeps the file of a device that is gone. The kernel
    /// gives out again what was freed, so this stays small.
    names: HashMap<u32, String>,
    looked: Instant,
    /// The function each row of the probe table is attached to.
    functions: Vec<Option<String>>,
    /// What `CLOCK_MONOTONIC` has to be added to.
    epoch: SystemTime,
    processes: RefCell<Processes>,
}

/// The processes last looked at: one that fails in a storm is looked at once a second.
#[derive(Debug, Default)]
struct Processes(HashMap<(u32, u64), (Instant, Process)>);

impl Processes {
    /// The most processes that are remembered.
    const MOST: usize = 1024;
    /// How long what was seen holds.
    const FRESH: Duration = Duration::from_secs(1);

    fn get(&mut self, roots: &Roots, pid: u32, cgroup_id: u64) -> Process {
        if self.0.len() >= Self::MOST {
            self.0.clear();
        }
        let now = Instant::now();
        let read = || (now, Process::read(roots, pid, cgroup_id));
        let entry = self.0.entry((pid, cgroup_id)).or_insert_with(read);
        if now.duration_since(entry.0) > Self::FRESH {
            *entry = read();
        }
        entry.1.clone()
    }
}

impl Decoder {
    /// Looks at the host's RDMA devices.
    pub(crate) fn new(roots: &Roots) -> Self {
        let mut decoder = Self {
            roots: roots.clone(),
            devices: RdmaFacts::default(),
            names: HashMap::new(),
            looked: Instant::now(),
            functions: Vec::new(),
            epoch: epoch(),
            processes: RefCell::default(),
        };
        decoder.look();
        decoder
    }

    fn look(&mut self) {
        self.looked = Instant::now();
        self.devices = RdmaFacts::read(&self.roots);
        for node in &self.devices.uverbs {
            self.names.insert(node.number.to_kernel(), node.device.clone());
        }
    }

    /// Looks again at devices and the clocks.
    pub(crate) fn refresh(&mut self) {
        self.look();
        self.epoch = epoch();
    }

    /// Takes over which function each hook is attached to.
    pub(crate) fn set_functions(&mut self, functions: Vec<Option<String>>) {
        self.functions = functions;
    }

    /// The devices as last looked at.
    pub(crate) fn devices(&self) -> &RdmaFacts {
        &self.devices
    }

    /// The RDMA device behind a device file's number (kernel encoding), or that was behind it.
    pub(crate) fn device_of(&self, rdev: u32) -> Option<&str> {
        self.names.get(&rdev).map(String::as_str)
    }

    /// Reads a record.
    ///
    /// # Errors
    ///
    /// If the bytes are no record.
    pub(crate) fn decode(&mut self, mut bytes: &[u8]) -> Result<Event, DecodeError> {
        match bytes.try_get_u32_ne()? {
            kind::FAILURE => Ok(Event::Verbs(Box::new(self.failure(bytes)?))),
            kind::CM => Ok(Event::Cm(self.cm(bytes)?)),
            kind::DEVICE => Ok(Event::Device(self.device(bytes)?)),
            kind::HEALTH => {
                let event = health::record::decode(bytes, &self.devices, |ns| self.time(ns))?;
                Ok(Event::Health(Box::new(event)))
            }
            other => Err(DecodeError::Kind(other)),
        }
    }

    fn time(&self, monotonic_ns: u64) -> SystemTime {
        self.epoch + Duration::from_nanos(monotonic_ns)
    }

    fn failure(&mut self, mut b: &[u8]) -> Result<Failure, DecodeError> {
        let flags = b.try_get_u32_ne()?;
        let [monotonic_ns, duration_ns, key, cgroup_id] = longs(&mut b)?;
        let [pid, tid, uid, rdev] = words(&mut b)?;
        if rdev != 0 && !self.names.contains_key(&rdev) && self.looked.elapsed() >= LOOK_AGAIN {
            // A device that has come since.
            self.look();
        }
        let error = b.try_get_i32_ne()?;
        let [answer, chain_len, attrs_len, request_len, payload_len, _reserved] = words(&mut b)?;
        let [number, kind, state] = words(&mut b)?;
        let [opcode, op_mod, status, syndrome] = words(&mut b)?;
        let chain = self.chain(take(&mut b, CHAIN * 8)?, chain_len)?;
        let comm = text(take(&mut b, COMM)?);
        let attrs = used(take(&mut b, ATTRS * ATTR_BYTES)?, attrs_len, ATTR_BYTES, "number of attributes")?;
        let payload = used(take(&mut b, PAYLOAD)?, payload_len, 1, "payload's length")?;
        let core_in = used(take(&mut b, REQUEST)?, request_len, 1, "request's length")?;
        let answer = usize::try_from(answer).ok().and_then(|index| chain.get(index)).cloned();
        let key = VerbKey(key);
        let device = self.device_of(rdev);
        let has = |bit| flags & bit != 0;
        let mut failure = Failure {
            time: self.time(monotonic_ns),
            monotonic_ns,
            duration_ns: has(flag::TIMED).then_some(duration_ns),
            key,
            verb: names::verb_name(key),
            device: device.map(str::to_owned),
            errno: errno(error).ok_or(DecodeError::Field("error"))?,
            answer: answer.ok_or(DecodeError::Field("answer"))?,
            chain,
            chain_cut: has(flag::CHAIN_FULL),
            firmware: has(flag::FIRMWARE).then_some(Firmware { opcode, op_mod, status, syndrome }),
            pid,
            tid,
            uid,
            comm,
            cgroup_id,
            process: self.processes.borrow_mut().get(&self.roots, pid, cgroup_id),
            probe: has(flag::PROBE),
            unsupported: has(flag::UNSUPPORTED),
            qp: has(flag::QP).then_some(KnownQp { number, kind, state }),
            request: request::decode(&request::RawRequest { key, attrs, core_in, payload }),
            cause: None,
        };
        failure.cause = cause::cause(&failure, device.and_then(|name| self.devices.device(name)));
        Ok(failure)
    }

    fn chain(&self, mut bytes: &[u8], length: u32) -> Result<Vec<Link>, DecodeError> {
        if length as usize > CHAIN {
            return Err(DecodeError::Field("chain"));
        }
        let mut chain = Vec::with_capacity(length as usize);
        for _ in 0..length {
            let (hook, layer, _role) = (bytes.try_get_u16_ne()?, bytes.try_get_u8()?, bytes.try_get_u8()?);
            let error = bytes.try_get_i32_ne()?;
            chain.push(Link {
                layer: Layer::from_number(layer).ok_or(DecodeError::Field("layer"))?,
                function: self.function(hook)?,
                errno: errno(error).ok_or(DecodeError::Field("chain"))?,
            });
        }
        Ok(chain)
    }

    fn function(&self, hook: u16) -> Result<String, DecodeError> {
        let row = Hook::by_number(hook).ok_or(DecodeError::Field("hook"))?;
        let attached = self.functions.get(usize::from(hook)).and_then(Option::as_deref);
        Ok(attached.unwrap_or(row.name).to_owned())
    }

    fn cm(&self, mut b: &[u8]) -> Result<CmEvent, DecodeError> {
        let event = b.try_get_u32_ne()?;
        let time = self.time(b.try_get_u64_ne()?);
        let status = b.try_get_i32_ne()?;
        let cm_id = b.try_get_u32_ne()?;
        let source = address(take(&mut b, 32)?);
        let destination = address(take(&mut b, 32)?);
        let (name, reason) = (asynchronous::cm_name(event), asynchronous::cm_reason(event, status));
        Ok(CmEvent { time, event, name, status, reason, cm_id, source, destination })
    }

    fn device(&self, mut b: &[u8]) -> Result<DeviceEvent, DecodeError> {
        /// `IB_EVENT_PORT_ACTIVE` and the other types whose element is a port.
        const OF_PORTS: [u32; 8] = [9, 10, 11, 12, 13, 17, 18, 20];
        let event = b.try_get_u32_ne()?;
        let time = self.time(b.try_get_u64_ne()?);
        let [element, _hook] = words(&mut b)?;
        let device = text(take(&mut b, DEVICE_NAME)?);
        let of_port = OF_PORTS.contains(&event);
        Ok(DeviceEvent {
            time,
            event,
            name: asynchronous::device_name(event),
            device: (!device.is_empty()).then_some(device),
            port: (of_port && element != 0).then_some(element),
            qp: (!of_port && element != 0).then_some(element),
        })
    }
}

/// The positive errno that user space sees for a function's result. `ENOIOCTLCMD` stays inside the kernel: the system
/// call makes it `ENOTTY` (fs/ioctl.c).
fn errno(result: i32) -> Option<i32> {
    const ENOIOCTLCMD: i32 = 515;
    const ENOTTY: i32 = 25;
    match result.checked_neg().filter(|errno| (1..4096).contains(errno)) {
        Some(ENOIOCTLCMD) => Some(ENOTTY),
        other => other,
    }
}

/// The wall clock at the instant at which `CLOCK_MONOTONIC` was zero.
fn epoch() -> SystemTime {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let since = Duration::new(seconds, u32::try_from(now.tv_nsec).unwrap_or(0));
    SystemTime::now().checked_sub(since).unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Numbers of 64 bits, one after the other.
pub(crate) fn longs<const N: usize>(b: &mut &[u8]) -> Result<[u64; N], DecodeError> {
    let mut found = [0; N];
    for value in &mut found {
        *value = b.try_get_u64_ne()?;
    }
    Ok(found)
}

/// Numbers of 32 bits, one after the other.
pub(crate) fn words<const N: usize>(b: &mut &[u8]) -> Result<[u32; N], DecodeError> {
    let mut found = [0; N];
    for value in &mut found {
        *value = b.try_get_u32_ne()?;
    }
    Ok(found)
}

/// The next so many bytes.
pub(crate) fn take<'a>(b: &mut &'a [u8], length: usize) -> Result<&'a [u8], DecodeError> {
    let (taken, rest) = b.split_at_checked(length).ok_or(DecodeError::Short)?;
    *b = rest;
    Ok(taken)
}

/// The used part of a fixed field.
fn used<'a>(field: &'a [u8], count: u32, size: usize, name: &'static str) -> Result<&'a [u8], DecodeError> {
    let length = usize::try_from(count).ok().and_then(|count| count.checked_mul(size));
    length.and_then(|length| field.get(..length)).ok_or(DecodeError::Field(name))
}

/// Text up to its first zero; what is not UTF-8 or would steer a terminal is replaced.
pub(crate) fn text(bytes: &[u8]) -> String {
    let bytes = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(bytes).chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// A `struct sockaddr_in` or `sockaddr_in6`: family in the machine's byte order, port and address in the network's.
fn address(mut bytes: &[u8]) -> Option<(IpAddr, u16)> {
    const AF_INET: u16 = 2;
    const AF_INET6: u16 = 10;
    let family = bytes.try_get_u16_ne().ok()?;
    let port = bytes.try_get_u16().ok()?;
    match family {
        AF_INET => Some((IpAddr::V4(Ipv4Addr::from(bytes.try_get_u32().ok()?)), port)),
        AF_INET6 => {
            let _flow = bytes.try_get_u32().ok()?;
            Some((IpAddr::V6(Ipv6Addr::from(bytes.try_get_u128().ok()?)), port))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;

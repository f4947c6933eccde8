//! Filters of the clsact queueing discipline, for kernels without TCX, and those that dead processes left behind.
//!
//! A filter outlives its maker when that is killed. So its name and handle say who made it, and only one whose maker is
//! dead, that has all three of name, handle and priority, is removed.

use std::io;

use super::netlink::{Filter, Netlink, Place};
use crate::host::process::identity;

/// Priorities to try: the first stands before nearly everybody. Filters of one priority must be of one kind.
const PRIORITIES: std::ops::RangeInclusive<u16> = 1..=4;

/// The upper bits of a handle of ours; the lower ones are the number of the process.
const MARK: u32 = 0x2a7;

/// Bits of a process's number: `PID_MAX_LIMIT` of the kernel is 2^22.
const PID_BITS: u32 = 22;

/// What every name of a filter of ours begins with.
const PREFIX: &str = "fabricscope_";

/// What it ends with if the queueing discipline is ours too.
const OWNER: &str = "_qdisc";

/// The filters of one sampler on one device. They go when this is dropped.
#[derive(Debug)]
pub(super) struct Clsact {
    netlink: Netlink,
    ifindex: u32,
    /// Whether the queueing discipline is our own.
    created: bool,
    places: Vec<Place>,
}

impl Clsact {
    /// Prepares a device.
    ///
    /// # Errors
    ///
    /// The kernel's error.
    pub(super) fn new(netlink: Netlink, ifindex: u32) -> io::Result<Self> {
        let created = netlink.add_clsact(ifindex)?;
        Ok(Self { netlink, ifindex, created, places: Vec::new() })
    }

    /// Adds a program by its descriptor.
    ///
    /// # Errors
    ///
    /// The kernel's error: `EEXIST` if this process has one there already.
    pub(super) fn add(&mut self, egress: bool, program: u32) -> io::Result<()> {
        let maker = identity(std::process::id()).ok_or_else(|| io::Error::other("no /proc/self/stat"))?;
        let (direction, owner) = (if egress { "tx" } else { "rx" }, if self.created { OWNER } else { "" });
        let name = format!("{PREFIX}{direction}_{maker}{owner}");
        let mut outcome = Err(io::Error::from_raw_os_error(libc::EINVAL));
        for priority in PRIORITIES {
            let place = Place { ifindex: self.ifindex, egress, priority, handle: handle(std::process::id()) };
            outcome = self.netlink.add_filter(place, &name, program);
            match &outcome {
                Ok(()) => {
                    self.places.push(place);
                    break;
                }
                // Filters of another kind have this priority.
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {}
                Err(_) => break,
            }
        }
        outcome
    }
}

impl Drop for Clsact {
    fn drop(&mut self) {
        // The device may be gone, or in another namespace, and with it all that could be removed.
        for place in &self.places {
            let _ = self.netlink.remove_filter(*place);
        }
        if self.created {
            let _ = remove_if_unused(&self.netlink, self.ifindex);
        }
    }
}

/// Removes a queueing discipline that is ours, unless others have put filters there meanwhile. Between the look and the
/// removal there is no lock to take.
fn remove_if_unused(netlink: &Netlink, ifindex: u32) -> io::Result<()> {
    if netlink.filters(ifindex)?.is_empty() { netlink.remove_clsact(ifindex) } else { Ok(()) }
}

fn handle(pid: u32) -> u32 {
    MARK << PID_BITS | pid & ((1 << PID_BITS) - 1)
}

/// Removes filters of dead processes from a device, or from all; says how many.
///
/// # Errors
///
/// The kernel's error, also if only some could be removed.
pub(super) fn remove_leftovers(netlink: &Netlink, ifindex: Option<u32>) -> io::Result<usize> {
    let devices = match ifindex {
        Some(ifindex) => vec![ifindex],
        None => netlink.devices()?.into_iter().map(|device| device.ifindex).collect(),
    };
    let mut removed = 0;
    for device in devices {
        let mut created = false;
        for filter in netlink.filters(device)?.iter().filter(|filter| is_leftover(filter, identity)) {
            netlink.remove_filter(filter.place)?;
            created |= filter.name.as_deref().is_some_and(|name| name.ends_with(OWNER));
            removed += 1;
        }
        if created {
            remove_if_unused(netlink, device)?;
        }
    }
    Ok(removed)
}

/// Whether a filter is of our making and its maker dead. `identity` tells who a process is.
fn is_leftover(filter: &Filter, identity: impl Fn(u32) -> Option<String>) -> bool {
    let maker = || {
        let direction = if filter.place.egress { "tx_" } else { "rx_" };
        let maker = filter.name.as_deref()?.strip_prefix(PREFIX)?.strip_prefix(direction)?;
        let maker = maker.strip_suffix(OWNER).unwrap_or(maker);
        let pid: u32 = maker.split('_').next()?.parse().ok()?;
        Some((pid, maker))
    };
    maker().is_some_and(|(pid, maker)| {
        PRIORITIES.contains(&filter.place.priority)
            && filter.place.handle == handle(pid)
            && identity(pid).as_deref() != Some(maker)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_filters_of_our_dead_are_leftovers() {
        // Process 7 that lives started at 99.
        let living = |pid| (pid == 7).then(|| "7_99".to_owned());
        let ours = handle(7);
        let rows = [
            ("fabricscope_rx_7_98", 1, ours, true),
            ("fabricscope_rx_8_98", 1, handle(8), true),
            ("fabricscope_rx_8_98_qdisc", 1, handle(8), true),
            ("fabricscope_rx_7_99_qdisc", 1, ours, false),
            ("fabricscope_rx_7_99", 1, ours, false),
            ("fabricscope_rx_7_98", 5, ours, false),
            ("fabricscope_rx_7_98", 1, 1, false),
            ("fabricscope_rx_8_98", 1, ours, false),
            ("fabricscope_tx_7_98", 1, ours, false),
            ("fabricscope_rx_", 1, ours, false),
            ("cil_from_netdev", 1, 1, false),
        ];
        for (name, priority, handle, expected) in rows {
            let place = Place { ifindex: 3, egress: false, priority, handle };
            let filter = Filter { place, name: Some(name.to_owned()) };
            assert_eq!(is_leftover(&filter, living), expected, "{name} {priority} {handle:#x}");
        }
        let place = Place { ifindex: 3, egress: false, priority: 1, handle: ours };
        assert!(!is_leftover(&Filter { place, name: None }, living));
    }

    #[test]
    fn handles_of_processes_differ() {
        assert_ne!(handle(1), handle(2));
        assert_eq!(handle((1 << PID_BITS) - 1) >> PID_BITS, MARK);
    }
}

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
    /// Prepares a device. A queueing discipline that another sampler has made is this one's too: the last to go takes
    /// it away.
    ///
    /// # Errors
    ///
    /// The kernel's error.
    pub(super) fn new(netlink: Netlink, ifindex: u32) -> io::Result<Self> {
        let owner =
            |filter: &Filter| is_ours(filter) && filter.name.as_deref().is_some_and(|name| name.ends_with(OWNER));
        let created = netlink.add_clsact(ifindex)? || netlink.filters(ifindex)?.iter().any(owner);
        Ok(Self { netlink, ifindex, created, places: Vec::new() })
    }

    /// Whether all filters stand on the device still: one that was made anew under the same number has none. Where the
    /// kernel does not tell they count as standing.
    pub(super) fn stands(&self) -> bool {
        let found = self.netlink.filters(self.ifindex);
        let found = found.map(|filters| filters.iter().map(|filter| filter.place).collect::<Vec<_>>());
        found.map_or(true, |found| self.places.iter().all(|place| found.contains(place)))
    }

    /// Adds a program by its descriptor.
    ///
    /// # Errors
    ///
    /// The kernel's error, and if others have taken every priority.
    pub(super) fn add(&mut self, egress: bool, program: u32) -> io::Result<()> {
        let maker = identity(std::process::id()).ok_or_else(|| io::Error::other("no /proc/self/stat"))?;
        let (direction, owner) = (if egress { "tx" } else { "rx" }, if self.created { OWNER } else { "" });
        let name = format!("{PREFIX}{direction}_{maker}{owner}");
        for priority in PRIORITIES {
            let place = Place { ifindex: self.ifindex, egress, priority, handle: handle(std::process::id()) };
            match self.netlink.add_filter(place, &name, program) {
                Ok(()) => {
                    self.places.push(place);
                    return Ok(());
                }
                // Filters of another kind have this priority, or another sampler of this process has it.
                Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EEXIST)) => {}
                Err(error) => return Err(error),
            }
        }
        let [first, last] = [PRIORITIES.start(), PRIORITIES.end()];
        let full = format!(
            "other filters, or this process's own, have all priorities from {first} to {last} that the sampler takes; \
             `tc filter show` names them, and to give up one of them makes room"
        );
        Err(io::Error::new(io::ErrorKind::AddrInUse, full))
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

/// Number and identity of the process that made a filter, if it was a sampler.
fn maker(filter: &Filter) -> Option<(u32, &str)> {
    let direction = if filter.place.egress { "tx_" } else { "rx_" };
    let maker = filter.name.as_deref()?.strip_prefix(PREFIX)?.strip_prefix(direction)?;
    let maker = maker.strip_suffix(OWNER).unwrap_or(maker);
    let pid: u32 = maker.split('_').next()?.parse().ok()?;
    Some((pid, maker))
}

/// Whether a filter is a sampler's that may live.
fn is_ours(filter: &Filter) -> bool {
    PRIORITIES.contains(&filter.place.priority)
        && maker(filter).is_some_and(|(pid, _)| filter.place.handle == handle(pid))
}

/// Whether a filter is of our making and its maker dead. `identity` tells who a process is.
fn is_leftover(filter: &Filter, identity: impl Fn(u32) -> Option<String>) -> bool {
    is_ours(filter) && maker(filter).is_some_and(|(pid, maker)| identity(pid).as_deref() != Some(maker))
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

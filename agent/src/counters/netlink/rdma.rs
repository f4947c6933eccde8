//! RDMA netlink (include/uapi/rdma/rdma_netlink.h): which devices there are, and what their hardware counters say at
//! this moment. It asks the driver each time, where sysfs serves what it has kept for some milliseconds, and it knows
//! counters that have no files: optional ones, once they are on, and those of single queue pairs.

use std::io;

use super::{Channel, all, attribute, find, long, text, word};

/// `RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, …)`.
const GET: u16 = (5 << 10) + 1;
const SYS_GET: u16 = (5 << 10) + 6;
const GET_CHARDEV: u16 = (5 << 10) + 15;
const STAT_GET: u16 = (5 << 10) + 17;

const DEV_INDEX: u16 = 1;
const DEV_NAME: u16 = 2;
const PORT_INDEX: u16 = 3;
const NODE_GUID: u16 = 6;
const RES_QP: u16 = 19;
const RES_QP_ENTRY: u16 = 20;
const RES_LQPN: u16 = 21;
const RES_PID: u16 = 28;
const NETNS_MODE: u16 = 66;
const CHARDEV_TYPE: u16 = 69;
const DRIVER_ID: u16 = 73;
const STAT_RES: u16 = 75;
const STAT_COUNTER: u16 = 77;
const STAT_COUNTER_ENTRY: u16 = 78;
const STAT_COUNTER_ID: u16 = 79;
const COUNTERS: u16 = 80;
const COUNTER: u16 = 81;
const COUNTER_NAME: u16 = 82;
const COUNTER_VALUE: u16 = 83;

/// An RDMA device as the kernel numbers it in this process's namespaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RdmaDevice {
    /// By which it is asked for.
    pub(crate) index: u32,
    /// Such as `mlx5_0`.
    pub(crate) name: String,
    /// The number that sysfs writes as `b8ce:f603:00ab:cdef`.
    pub(crate) node_guid: u64,
    /// Its ports are numbered up to this.
    pub(crate) ports: u32,
}

/// Counters that somebody has bound to some queue pairs of a port (`rdma statistic qp`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bound {
    /// The port of the device.
    pub(crate) port: u32,
    /// The kernel's number for the set.
    pub(crate) id: u32,
    /// The process that all of them are of, where they were bound by process.
    pub(crate) pid: Option<u32>,
    /// The queue pairs.
    pub(crate) queue_pairs: Vec<u32>,
    /// By the driver's names.
    pub(crate) values: Vec<(String, u64)>,
}

/// A way to ask RDMA devices.
#[derive(Debug)]
pub(crate) struct Rdma(Channel);

impl Rdma {
    /// Opens a socket to ask by.
    ///
    /// # Errors
    ///
    /// Where the kernel has no RDMA.
    pub(crate) fn new() -> io::Result<Self> {
        Channel::open(Some(rustix::net::netlink::RDMA)).map(Self)
    }

    /// Every device.
    ///
    /// # Errors
    ///
    /// The kernel's.
    pub(crate) fn devices(&self) -> io::Result<Vec<RdmaDevice>> {
        Ok(self.list(GET)?.iter().filter_map(|body| device_in(body)).collect())
    }

    /// The attributes of everything that is listed in answer to a command (a message's type).
    ///
    /// # Errors
    ///
    /// The kernel's.
    pub(crate) fn list(&self, command: u16) -> io::Result<Vec<Vec<u8>>> {
        self.0.list(command, &[])
    }

    /// The hardware counters of a port, by the driver's names, read from the driver now. What is bound to queue pairs
    /// is counted in them too.
    ///
    /// # Errors
    ///
    /// The kernel's: `EINVAL` for a device that has none.
    pub(crate) fn statistics(&self, index: u32, port: u32) -> io::Result<Vec<(String, u64)>> {
        let mut body = Vec::new();
        attribute(&mut body, DEV_INDEX, &index.to_ne_bytes());
        attribute(&mut body, PORT_INDEX, &port.to_ne_bytes());
        Ok(counters_in(&self.0.ask(STAT_GET, &body)?))
    }

    /// The counters that are bound to queue pairs of a device; none for a driver that cannot.
    ///
    /// # Errors
    ///
    /// The kernel's.
    pub(crate) fn bound(&self, index: u32) -> io::Result<Vec<Bound>> {
        let mut body = Vec::new();
        attribute(&mut body, DEV_INDEX, &index.to_ne_bytes());
        attribute(&mut body, STAT_RES, &u32::from(RES_QP).to_ne_bytes());
        Ok(self.0.list(STAT_GET, &body)?.iter().flat_map(|answer| bound_in(answer)).collect())
    }

    /// The number of the driver that programs find a device's library by; `None` if no program can use it.
    pub(crate) fn driver_number(&self, index: u32) -> Option<u32> {
        let mut body = Vec::new();
        attribute(&mut body, DEV_INDEX, &index.to_ne_bytes());
        attribute(&mut body, CHARDEV_TYPE, b"uverbs\0");
        let answer = self.0.ask(GET_CHARDEV, &body).ok()?;
        find(&answer, DRIVER_ID).and_then(word)
    }

    /// Whether each device belongs to one network namespace, and is not seen from the others.
    ///
    /// # Errors
    ///
    /// The kernel's.
    pub(crate) fn is_exclusive(&self) -> io::Result<bool> {
        let answer = self.0.ask(SYS_GET, &[])?;
        Ok(find(&answer, NETNS_MODE).and_then(|mode| mode.first()) == Some(&0))
    }
}

fn device_in(attributes: &[u8]) -> Option<RdmaDevice> {
    let index = find(attributes, DEV_INDEX).and_then(word)?;
    let node_guid = find(attributes, NODE_GUID).and_then(long)?;
    // In a list of devices this is the number of the last port.
    let ports = find(attributes, PORT_INDEX).and_then(word).unwrap_or(0);
    Some(RdmaDevice { index, name: text(find(attributes, DEV_NAME)?), node_guid, ports })
}

fn counters_in(bytes: &[u8]) -> Vec<(String, u64)> {
    let table = find(bytes, COUNTERS).unwrap_or_default();
    let counter = |entry: &[u8]| Some((text(find(entry, COUNTER_NAME)?), find(entry, COUNTER_VALUE).and_then(long)?));
    all(table, COUNTER).filter_map(counter).collect()
}

fn bound_in(answer: &[u8]) -> Vec<Bound> {
    let bound = |entry: &[u8]| {
        let queue_pairs = find(entry, RES_QP).unwrap_or_default();
        let number = |pair: &[u8]| find(pair, RES_LQPN).and_then(word);
        Some(Bound {
            port: find(entry, PORT_INDEX).and_then(word)?,
            id: find(entry, STAT_COUNTER_ID).and_then(word)?,
            pid: find(entry, RES_PID).and_then(word),
            queue_pairs: all(queue_pairs, RES_QP_ENTRY).filter_map(number).collect(),
            values: counters_in(entry),
        })
    };
    all(find(answer, STAT_COUNTER).unwrap_or_default(), STAT_COUNTER_ENTRY).filter_map(bound).collect()
}

/// For tests with bytes of any kind.
#[cfg(test)]
pub(super) fn parse_any(bytes: &[u8]) {
    device_in(bytes);
    counters_in(bytes);
    bound_in(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::netlink::NESTED;

    fn nest(kind: u16, inner: &[Vec<u8>]) -> Vec<u8> {
        let mut nest = Vec::new();
        attribute(&mut nest, kind | NESTED, &inner.concat());
        nest
    }

    fn one(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut one = Vec::new();
        attribute(&mut one, kind, value);
        one
    }

    fn counter(name: &[u8], value: u64) -> Vec<u8> {
        nest(COUNTER, &[one(COUNTER_NAME, name), one(COUNTER_VALUE, &value.to_ne_bytes())])
    }

    #[test]
    fn devices_and_counters_are_found_in_their_messages() {
        let mut body = Vec::new();
        attribute(&mut body, DEV_INDEX, &7u32.to_ne_bytes());
        attribute(&mut body, DEV_NAME, b"mlx5_0\0");
        attribute(&mut body, PORT_INDEX, &2u32.to_ne_bytes());
        attribute(&mut body, NODE_GUID, &0xb8ce_f603_00ab_cdef_u64.to_ne_bytes());
        let expected = RdmaDevice { index: 7, name: "mlx5_0".to_owned(), node_guid: 0xb8ce_f603_00ab_cdef, ports: 2 };
        assert_eq!(device_in(&body), Some(expected));
        let odd = nest(COUNTER, &[one(COUNTER_NAME, b"odd\0"), one(COUNTER_VALUE, &[1; 4])]);
        let table = [counter(b"np_cnp_sent\0", 5), odd, counter(b"out_of_sequence\0", u64::MAX)];
        let all = nest(COUNTERS, &table);
        let expected = [("np_cnp_sent".to_owned(), 5), ("out_of_sequence".to_owned(), u64::MAX)];
        assert_eq!(counters_in(&all), expected);
        for length in 0..all.len() {
            assert!(counters_in(&all[..length]).len() <= 2 && device_in(&all[..length]).is_none());
        }
    }

    #[test]
    fn counters_of_queue_pairs_are_told_with_their_queue_pairs() {
        let pair = |number: u32| nest(RES_QP_ENTRY, &[one(RES_LQPN, &number.to_ne_bytes())]);
        let entry = |id: u32, pairs: &[Vec<u8>]| {
            let parts = [
                one(PORT_INDEX, &1u32.to_ne_bytes()),
                one(STAT_COUNTER_ID, &id.to_ne_bytes()),
                nest(RES_QP, pairs),
                nest(COUNTERS, &[counter(b"out_of_buffer\0", 3)]),
            ];
            nest(STAT_COUNTER_ENTRY, &parts)
        };
        let answer = [one(DEV_INDEX, &[0; 4]), nest(STAT_COUNTER, &[entry(4, &[pair(17), pair(18)]), entry(5, &[])])];
        let answer = answer.concat();
        let values = vec![("out_of_buffer".to_owned(), 3)];
        let first = Bound { port: 1, id: 4, pid: None, queue_pairs: vec![17, 18], values: values.clone() };
        let second = Bound { port: 1, id: 5, pid: None, queue_pairs: vec![], values };
        assert_eq!(bound_in(&answer), [first, second]);
        for length in 0..answer.len() {
            assert!(bound_in(&answer[..length]).is_empty(), "{length}");
        }
    }

    #[test]
    fn the_kernel_lists_its_devices_or_has_no_rdma() {
        if let Ok(rdma) = Rdma::new() {
            match rdma.devices() {
                Ok(devices) => assert!(devices.iter().all(|device| !device.name.is_empty()), "{devices:?}"),
                // Without the RDMA stack nobody listens.
                Err(error) => assert!(error.raw_os_error().is_some(), "{error}"),
            }
            assert!(rdma.statistics(u32::MAX, 1).is_err() && rdma.bound(u32::MAX).is_err());
        }
    }
}

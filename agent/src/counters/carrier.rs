//! Whether network devices have a link, how often it came and went, and when: from rtnetlink.
//!
//! The kernel counts each change itself, so that none is missed however many come at once; its messages say when. One
//! that found no room in the socket costs the times of the changes in it, which are then those of the next look.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{self, PipeReader, PipeWriter};
use std::sync::{Arc, Mutex, PoisonError};

use analysis::series::UtcNs;
use rustix::event::{PollFd, PollFlags, poll};

use super::netlink::{Channel, find, text, word};
use crate::config::limits;
use crate::host::rtnetlink::{
    IFINFO, IFINFO_INDEX, IFLA_CARRIER, IFLA_CARRIER_DOWN_COUNT, IFLA_CARRIER_UP_COUNT, IFLA_IFNAME, RTM_DELLINK,
    RTM_GETLINK, RTM_NEWLINK, RTNLGRP_LINK,
};
use crate::kernel::clock::realtime_ns;

/// The link of a network device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Carrier {
    /// There is one.
    pub(crate) up: bool,
    /// How often it came since the device was made; wraps at 32 bits.
    pub(crate) ups: u32,
    /// How often it went, likewise.
    pub(crate) downs: u32,
}

/// A change of a link, or several that came too fast to be told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// When it was heard of, on the wall clock.
    pub(crate) at: UtcNs,
    /// There was a link afterwards.
    pub(crate) up: bool,
    /// How often it came since the change before.
    pub(crate) ups: u32,
    /// How often it went since then.
    pub(crate) downs: u32,
}

/// A network device.
#[derive(Clone, Debug)]
struct Device {
    name: String,
    now: Carrier,
    /// Of the last ten minutes, as many as there is room for.
    changes: VecDeque<Change>,
}

/// All of this network namespace, by index.
#[derive(Debug, Default)]
struct Devices(BTreeMap<u32, Device>);

/// What a message says of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Heard {
    ifindex: u32,
    name: String,
    carrier: Carrier,
}

/// Listens from a thread of its own, which ends with it.
#[derive(Debug)]
pub(crate) struct Links {
    devices: Arc<Mutex<Devices>>,
    channel: Channel,
    /// Closed, it ends the thread.
    _alive: PipeWriter,
}

impl Links {
    /// Listens from now on.
    ///
    /// # Errors
    ///
    /// If the kernel refuses the socket, or there can be no further thread.
    pub(crate) fn listen() -> io::Result<Self> {
        let (ended, alive) = io::pipe()?;
        let events = Channel::listening(1 << (RTNLGRP_LINK - 1))?;
        let channel = Channel::open(None)?;
        let devices = Arc::new(Mutex::new(Devices::default()));
        look(&channel, &devices)?;
        let to = Arc::clone(&devices);
        let asks = Channel::open(None)?;
        std::thread::Builder::new()
            .name("fabricscope-lnk".to_owned())
            .spawn(move || hear(&events, &asks, &to, &ended))?;
        Ok(Self { devices, channel, _alive: alive })
    }

    /// The link of the device of this index at this moment.
    ///
    /// # Errors
    ///
    /// The kernel's; `EOPNOTSUPP` for one that does not count.
    pub(crate) fn read(&self, ifindex: u32) -> io::Result<Carrier> {
        let answer = self.channel.ask(RTM_GETLINK, &request(ifindex))?;
        let heard = heard(&answer).ok_or_else(|| io::Error::from_raw_os_error(libc::EOPNOTSUPP))?;
        let carrier = heard.carrier;
        lock(&self.devices).take(heard, UtcNs(realtime_ns()));
        Ok(carrier)
    }

    /// The changes of a device's link in the last ten minutes, the oldest first; `None` for one that is not known.
    pub(crate) fn changes(&self, ifindex: u32) -> Option<Vec<Change>> {
        let mut devices = lock(&self.devices);
        let device = devices.0.get_mut(&ifindex)?;
        device.forget(UtcNs(realtime_ns()));
        Some(device.changes.iter().copied().collect())
    }
}

fn lock(devices: &Mutex<Devices>) -> std::sync::MutexGuard<'_, Devices> {
    devices.lock().unwrap_or_else(PoisonError::into_inner)
}

fn request(ifindex: u32) -> Vec<u8> {
    let mut fixed = vec![0; IFINFO];
    fixed.splice(IFINFO_INDEX..IFINFO_INDEX + 4, ifindex.to_ne_bytes());
    fixed
}

/// Looks at all devices; what has changed since the last time counts as changed now.
fn look(channel: &Channel, devices: &Mutex<Devices>) -> io::Result<()> {
    let answers = channel.list(RTM_GETLINK, &request(0))?;
    let now = UtcNs(realtime_ns());
    let mut devices = lock(devices);
    let listed: BTreeSet<u32> = answers.iter().filter_map(|answer| heard(answer)).map(|heard| heard.ifindex).collect();
    devices.0.retain(|ifindex, _| listed.contains(ifindex));
    for heard in answers.iter().filter_map(|answer| heard(answer)) {
        devices.take(heard, now);
    }
    Ok(())
}

/// Takes what the kernel tells until the other end is gone.
fn hear(events: &Channel, asks: &Channel, devices: &Mutex<Devices>, ended: &PipeReader) {
    loop {
        let mut fds = [PollFd::new(events, PollFlags::IN), PollFd::new(ended, PollFlags::IN)];
        match poll(&mut fds, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return tracing::warn!("links of network devices are not listened to any more: {error}"),
        }
        if !fds[1].revents().is_empty() {
            return;
        }
        let messages = match events.heard() {
            Ok(messages) => messages,
            Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                tracing::info!("changes of links came too fast: their times are not exact, their number is");
                if let Err(error) = look(asks, devices) {
                    tracing::warn!("network devices cannot be listed: {error}");
                }
                continue;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Err(error) => return tracing::warn!("links of network devices are not listened to any more: {error}"),
        };
        let now = UtcNs(realtime_ns());
        let mut devices = lock(devices);
        for (kind, body) in &messages {
            devices.hear(*kind, body, now);
        }
    }
}

/// What a message says; `None` without a name and counts, as of a bridge about its ports.
fn heard(body: &[u8]) -> Option<Heard> {
    let ifindex = word(body.get(IFINFO_INDEX..)?)?;
    let attributes = body.get(IFINFO..)?;
    let number = |kind| find(attributes, kind).and_then(word);
    Some(Heard {
        ifindex,
        name: text(find(attributes, IFLA_IFNAME)?),
        carrier: Carrier {
            up: *find(attributes, IFLA_CARRIER)?.first()? != 0,
            ups: number(IFLA_CARRIER_UP_COUNT)?,
            downs: number(IFLA_CARRIER_DOWN_COUNT)?,
        },
    })
}

impl Devices {
    fn hear(&mut self, kind: u16, body: &[u8], now: UtcNs) {
        match (kind, heard(body)) {
            (RTM_NEWLINK, Some(heard)) => self.take(heard, now),
            (RTM_DELLINK, Some(heard)) => drop(self.0.remove(&heard.ifindex)),
            _ => {}
        }
    }

    fn take(&mut self, heard: Heard, now: UtcNs) {
        let Heard { ifindex, name, carrier } = heard;
        if let Some(device) = self.0.get_mut(&ifindex) {
            device.take(name, carrier, now);
        } else if self.0.len() < limits::CARRIER_DEVICES {
            self.0.insert(ifindex, Device { name, now: carrier, changes: VecDeque::new() });
        }
    }
}

impl Device {
    fn take(&mut self, name: String, carrier: Carrier, at: UtcNs) {
        let grown = |now: u32, before: u32| Some(now.wrapping_sub(before)).filter(|grown| *grown < u32::MAX / 2);
        let ups = grown(carrier.ups, self.now.ups);
        let (Some(ups), Some(downs)) = (ups, grown(carrier.downs, self.now.downs)) else {
            // A message that waited while the device was asked: what it tells is known.
            return;
        };
        self.now = carrier;
        self.name = name;
        if (ups, downs) != (0, 0) {
            self.changes.push_back(Change { at, up: carrier.up, ups, downs });
            if self.changes.len() > limits::CARRIER_CHANGES {
                self.changes.pop_front();
            }
        }
        self.forget(at);
    }

    fn forget(&mut self, now: UtcNs) {
        let window = i64::try_from(limits::CARRIER_WINDOW.as_nanos()).unwrap_or(i64::MAX);
        while self.changes.front().is_some_and(|change| now.0.saturating_sub(change.at.0) > window) {
            self.changes.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::netlink::attribute;

    const MINUTE: i64 = 60_000_000_000;

    fn message(ifindex: u32, name: &[u8], carrier: Option<Counts>) -> Vec<u8> {
        let mut body = request(ifindex);
        attribute(&mut body, IFLA_IFNAME, name);
        if let Some((up, ups, downs)) = carrier {
            attribute(&mut body, IFLA_CARRIER, &[up]);
            attribute(&mut body, IFLA_CARRIER_UP_COUNT, &ups.to_ne_bytes());
            attribute(&mut body, IFLA_CARRIER_DOWN_COUNT, &downs.to_ne_bytes());
        }
        body
    }

    /// Whether there is a link, how often it came, how often it went.
    type Counts = (u8, u32, u32);

    /// The changes of device 3 after these messages, one each minute.
    fn changes(messages: &[(u16, Option<Counts>)]) -> Vec<(i64, bool, u32, u32)> {
        let mut devices = Devices::default();
        for (minute, (kind, carrier)) in (0i64..).zip(messages) {
            devices.hear(*kind, &message(3, b"eth0\0", *carrier), UtcNs(minute * MINUTE));
        }
        let device = devices.0.get(&3).map(|device| device.changes.clone()).unwrap_or_default();
        device.iter().map(|change| (change.at.0 / MINUTE, change.up, change.ups, change.downs)).collect()
    }

    #[test]
    fn each_change_is_told_with_its_time_and_none_is_made_up() {
        let new = |up, ups, downs| (RTM_NEWLINK, Some((up, ups, downs)));
        assert_eq!(changes(&[new(1, 5, 4)]), []);
        assert_eq!(
            changes(&[new(1, 5, 4), new(1, 5, 4), new(0, 5, 5), new(1, 6, 5)]),
            [(2, false, 0, 1), (3, true, 1, 0)]
        );
        // Several at once: their number is the kernel's.
        assert_eq!(changes(&[new(1, 5, 4), new(1, 8, 7)]), [(1, true, 3, 3)]);
        assert_eq!(changes(&[new(1, u32::MAX, 4), new(1, 0, 5)]), [(1, true, 1, 1)]);
        assert_eq!(changes(&[new(1, 5, 4), (RTM_NEWLINK, None), (99, Some((0, 9, 9)))]), []);
        // Another device under the same index.
        assert_eq!(changes(&[new(1, 5, 4), (RTM_DELLINK, Some((0, 5, 5))), new(1, 1, 0)]), []);
        // The device was asked before the messages of its changes were taken.
        let late = [new(1, 5, 4), new(1, 7, 6), new(0, 5, 5), new(1, 6, 5), new(0, 6, 6), new(1, 7, 6), new(0, 7, 7)];
        assert_eq!(changes(&late), [(1, true, 2, 2), (6, false, 0, 1)]);
    }

    #[test]
    fn what_is_old_or_too_much_is_forgotten() {
        let mut messages = vec![(RTM_NEWLINK, Some((1, 0, 0)))];
        messages.extend((1..=30).map(|count| (RTM_NEWLINK, Some((1, count, count)))));
        let kept = changes(&messages);
        assert_eq!((kept.first().unwrap().0, kept.last().unwrap().0), (20, 30));
        let mut device =
            Device { name: String::new(), now: Carrier { up: true, ups: 0, downs: 0 }, changes: [].into() };
        for count in 1..2000 {
            device.take(String::new(), Carrier { up: true, ups: count, downs: count }, UtcNs(0));
        }
        assert_eq!(device.changes.len(), limits::CARRIER_CHANGES);
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_are_too_odd(bytes: Vec<u8>) {
            Devices::default().hear(RTM_NEWLINK, &bytes, UtcNs(0));
            let _ = heard(&[&request(1)[..], &bytes].concat());
        }
    }

    #[test]
    fn what_is_cut_off_says_nothing() {
        let whole = message(3, b"eth0\0", Some((1, 5, 4)));
        assert!(heard(&whole).is_some());
        for length in 0..whole.len() {
            assert_eq!(heard(&whole[..length]), None, "{length}");
        }
    }

    #[test]
    fn the_loopback_device_of_this_host_never_changed() {
        let links = Links::listen().unwrap();
        assert_eq!(links.read(1).unwrap().downs, 0);
        assert_eq!(links.changes(1), Some(vec![]));
        assert_eq!(links.read(u32::MAX / 2).unwrap_err().raw_os_error(), Some(libc::ENODEV));
        assert_eq!(links.changes(u32::MAX / 2), None);
    }
}

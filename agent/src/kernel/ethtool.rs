//! The driver's own statistics of a network device: names and values by `SIOCETHTOOL` (include/uapi/linux/ethtool.h).

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};

/// `ETHTOOL_GDRVINFO`, `ETHTOOL_GSSET_INFO`, `ETHTOOL_GSTRINGS`, `ETHTOOL_GSTATS`.
const GDRVINFO: u32 = 0x03;
const GSSET_INFO: u32 = 0x37;
const GSTRINGS: u32 = 0x1b;
const GSTATS: u32 = 0x1d;
/// The set of statistics' names.
const SS_STATS: u32 = 1;
const SIOCETHTOOL: libc::c_ulong = 0x8946;
/// Bytes of one name.
const NAME_BYTES: usize = 32;
/// Statistics of one device that are taken: an adapter with hundreds of queues has some 10,000.
const COUNT_MAX: usize = 32_768;
/// Room for statistics that come up between asking for their number and asking for them: the kernel writes as many as
/// there are then. A device whose queues were doubled at that very moment still fits.
const SLACK: usize = 8_192;

/// Words of a buffer that takes the statistics of any device.
const BUFFER: usize = 1 + COUNT_MAX + SLACK;

/// A way to ask network devices of this process's network namespace.
#[derive(Debug)]
pub(crate) struct Ethtool {
    socket: OwnedFd,
}

impl Ethtool {
    /// Opens a socket to ask by.
    ///
    /// # Errors
    ///
    /// If there are no more file descriptors.
    pub(crate) fn new() -> io::Result<Self> {
        let flags = rustix::net::SocketFlags::CLOEXEC;
        let socket =
            rustix::net::socket_with(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, flags, None)?;
        Ok(Self { socket })
    }

    fn ask(&self, netdev: &str, data: &mut [u64]) -> io::Result<()> {
        let mut request = libc::ifreq {
            ifr_name: [0; libc::IFNAMSIZ],
            ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_data: data.as_mut_ptr().cast() },
        };
        if netdev.is_empty() || netdev.len() >= libc::IFNAMSIZ || netdev.contains('\0') {
            return Err(io::Error::from_raw_os_error(libc::ENODEV));
        }
        for (to, from) in request.ifr_name.iter_mut().zip(netdev.bytes()) {
            *to = from.cast_signed();
        }
        // SAFETY: the request names a buffer that lives until the call is over, and that is larger than what the
        // command in its first word makes the kernel write; see the callers.
        let result = unsafe { libc::ioctl(self.socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// How many statistics the device has.
    fn count(&self, netdev: &str) -> io::Result<usize> {
        // struct ethtool_sset_info: cmd, reserved, sset_mask (u64), data[]: one u32 for each bit of the mask.
        let mut data = [pair(GSSET_INFO, 0), 1 << SS_STATS, 0];
        self.ask(netdev, &mut data)?;
        let [_, mask, answer] = data;
        if mask == 0 {
            return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
        }
        let (count, _) = halves(answer);
        usize::try_from(count).ok().filter(|count| *count <= COUNT_MAX).ok_or_else(too_many)
    }
}

impl Ethtool {
    /// The device's index in this process's network namespace.
    pub(crate) fn index(&self, netdev: &str) -> Option<u32> {
        rustix::net::netdevice::name_to_index(&self.socket, netdev).ok()
    }

    /// The driver's name.
    pub(crate) fn driver(&self, netdev: &str) -> Option<String> {
        // struct ethtool_drvinfo, 196 bytes: cmd, then the driver's name in 32 bytes.
        let mut data = [0u64; 25];
        set(&mut data, 0, pair(GDRVINFO, 0));
        self.ask(netdev, &mut data).ok()?;
        let bytes: Vec<u8> = data.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let name = text(bytes.get(4..4 + NAME_BYTES)?);
        (!name.is_empty()).then_some(name)
    }

    /// The names of the driver's own statistics.
    ///
    /// # Errors
    ///
    /// The kernel's; `EOPNOTSUPP` for a device that has none.
    pub(crate) fn names(&self, netdev: &str) -> io::Result<Vec<String>> {
        let count = self.count(netdev)?;
        // struct ethtool_gstrings: cmd, string_set, len, then the names.
        let words = (12 + (count + SLACK) * NAME_BYTES).div_ceil(8);
        let mut data = vec![0u64; words];
        set(&mut data, 0, pair(GSTRINGS, SS_STATS));
        set(&mut data, 1, pair(u32::try_from(count).map_err(|_| too_many())?, 0));
        self.ask(netdev, &mut data)?;
        let bytes: Vec<u8> = data.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let (len, _) = halves(data.get(1).copied().unwrap_or_default());
        let len = usize::try_from(len).unwrap_or_default().min(count + SLACK);
        let names = bytes.get(12..).unwrap_or_default().chunks_exact(NAME_BYTES).take(len);
        Ok(names.map(text).collect())
    }

    /// Their values.
    ///
    /// # Errors
    ///
    /// As for the names.
    pub(crate) fn values(&self, netdev: &str) -> io::Result<Vec<u64>> {
        let count = self.count(netdev)?;
        // struct ethtool_stats: cmd, n_stats, then the values.
        let mut data = vec![0u64; 1 + count + SLACK];
        set(&mut data, 0, pair(GSTATS, u32::try_from(count).map_err(|_| too_many())?));
        self.ask(netdev, &mut data)?;
        let (_, found) = halves(data.first().copied().unwrap_or_default());
        data.remove(0);
        data.truncate(usize::try_from(found).unwrap_or_default());
        Ok(data)
    }
}

impl Ethtool {
    /// The values of the driver's own statistics, in a buffer that is kept: it grows to its full size once, of which
    /// only what is used takes memory.
    ///
    /// # Errors
    ///
    /// As for the names.
    pub(crate) fn latest<'a>(&self, netdev: &str, buffer: &'a mut Vec<u64>) -> io::Result<&'a [u64]> {
        let count = self.count(netdev)?;
        if buffer.len() != BUFFER {
            *buffer = vec![0; BUFFER];
        }
        set(buffer, 0, pair(GSTATS, u32::try_from(count).map_err(|_| too_many())?));
        self.ask(netdev, buffer)?;
        let (_, found) = halves(buffer.first().copied().unwrap_or_default());
        let found = usize::try_from(found).unwrap_or_default();
        buffer.get(1..=found).ok_or_else(too_many)
    }
}

/// A name up to its first zero byte.
fn text(name: &[u8]) -> String {
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}

fn too_many() -> io::Error {
    io::Error::other(format!("more than {COUNT_MAX} statistics"))
}

fn set(data: &mut [u64], index: usize, word: u64) {
    if let Some(place) = data.get_mut(index) {
        *place = word;
    }
}

/// Two `u32` that follow each other in memory, as one word.
fn pair(first: u32, second: u32) -> u64 {
    let [a, b, c, d] = first.to_ne_bytes();
    let [e, f, g, h] = second.to_ne_bytes();
    u64::from_ne_bytes([a, b, c, d, e, f, g, h])
}

/// The two `u32` of a word, as they follow each other in memory.
fn halves(word: u64) -> (u32, u32) {
    let [a, b, c, d, e, f, g, h] = word.to_ne_bytes();
    (u32::from_ne_bytes([a, b, c, d]), u32::from_ne_bytes([e, f, g, h]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_what_a_pair_was_made_of() {
        assert_eq!(halves(pair(GSTATS, 7)), (GSTATS, 7));
    }

    #[test]
    fn a_device_that_is_not_there_is_an_error_and_the_loopback_is_known() {
        let ethtool = Ethtool::new().unwrap();
        for name in ["", "no-such-device", "a-name-that-is-far-too-long", "a\0b"] {
            assert!(ethtool.names(name).is_err() && ethtool.values(name).is_err(), "{name}");
            assert_eq!(ethtool.index(name), None);
        }
        assert_eq!(ethtool.index("lo"), Some(1));
    }

    #[test]
    fn names_and_values_of_the_devices_of_this_host_agree() {
        let ethtool = Ethtool::new().unwrap();
        for entry in std::fs::read_dir("/sys/class/net").unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            match (ethtool.names(&name), ethtool.values(&name)) {
                (Ok(names), Ok(values)) => {
                    assert_eq!(names.len(), values.len(), "{name}");
                    let mut buffer = Vec::new();
                    for _ in 0..2 {
                        assert_eq!(ethtool.latest(&name, &mut buffer).unwrap().len(), names.len(), "{name}");
                    }
                }
                (Err(_), Err(_)) => {}
                (names, values) => panic!("{name}: {names:?} {values:?}"),
            }
        }
    }
}

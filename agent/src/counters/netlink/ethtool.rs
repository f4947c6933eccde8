//! Statistics that the kernel defines for all drivers, by ethtool netlink (include/uapi/linux/ethtool_netlink.h,
//! Documentation/networking/statistics.rst). They have the names that ethtool prints. Pause frames are those of the
//! whole link: the standard has none by priority.

use std::io;

use super::generic::Family;
use super::{NESTED, all, attribute, attributes, find, long, word};

const LINKSTATE_GET: u8 = 6;
const PAUSE_GET: u8 = 21;
const FEC_GET: u8 = 29;
const STATS_GET: u8 = 32;

/// In the header of a request, which is the first attribute of each command but the last.
const HEADER: u16 = 1;
const STATS_HEADER: u16 = 2;
const HEADER_NAME: u16 = 2;
const HEADER_FLAGS: u16 = 3;
/// `ETHTOOL_FLAG_STATS`.
const FLAG_STATS: u32 = 1 << 2;

const LINK_DOWN_EVENTS: u16 = 7;
const PAUSE_STATS: u16 = 5;
const FEC_STATS: u16 = 5;
const STATS_GROUPS: u16 = 3;
const STATS_GROUP: u16 = 4;
const GROUP_ID: u16 = 2;
const GROUP_STAT: u16 = 4;
const BITSET_NOMASK: u16 = 1;
const BITSET_SIZE: u16 = 2;
const BITSET_VALUE: u16 = 4;

/// By attribute.
const PAUSE: &[(u16, &str)] = &[(2, "tx_pause_frames"), (3, "rx_pause_frames"), (4, "tx_pause_storm_events")];
/// By attribute. Each holds the sum first, then what its lanes have.
const FEC: &[(u16, &str)] = &[(2, "corrected_blocks"), (3, "uncorrectable_blocks"), (4, "corrected_bits")];

/// The groups of one question, by number, each with its statistics by attribute.
const GROUPS: &[&[&str]] = &[
    &["eth-phy-SymbolErrorDuringCarrier"],
    &[
        "eth-mac-FramesTransmittedOK",
        "eth-mac-SingleCollisionFrames",
        "eth-mac-MultipleCollisionFrames",
        "eth-mac-FramesReceivedOK",
        "eth-mac-FrameCheckSequenceErrors",
        "eth-mac-AlignmentErrors",
        "eth-mac-OctetsTransmittedOK",
        "eth-mac-FramesWithDeferredXmissions",
        "eth-mac-LateCollisions",
        "eth-mac-FramesAbortedDueToXSColls",
        "eth-mac-FramesLostDueToIntMACXmitError",
        "eth-mac-CarrierSenseErrors",
        "eth-mac-OctetsReceivedOK",
        "eth-mac-FramesLostDueToIntMACRcvError",
        "eth-mac-MulticastFramesXmittedOK",
        "eth-mac-BroadcastFramesXmittedOK",
        "eth-mac-FramesWithExcessiveDeferral",
        "eth-mac-MulticastFramesReceivedOK",
        "eth-mac-BroadcastFramesReceivedOK",
        "eth-mac-InRangeLengthErrors",
        "eth-mac-OutOfRangeLengthField",
        "eth-mac-FrameTooLongErrors",
    ],
    &[
        "eth-ctrl-MACControlFramesTransmitted",
        "eth-ctrl-MACControlFramesReceived",
        "eth-ctrl-UnsupportedOpcodesReceived",
    ],
    &[
        "rmon-etherStatsUndersizePkts",
        "rmon-etherStatsOversizePkts",
        "rmon-etherStatsFragments",
        "rmon-etherStatsJabbers",
    ],
];

/// Statistics that are asked for together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    /// Pause frames of the link.
    Pause,
    /// Forward error correction.
    Fec,
    /// The standard's groups for PHY, MAC and MAC control, and RMON.
    Ethernet,
    /// How often the link went down.
    Link,
}

impl Group {
    /// Every group.
    pub(crate) const ALL: [Self; 4] = [Self::Pause, Self::Fec, Self::Ethernet, Self::Link];

    /// One word.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Fec => "fec",
            Self::Ethernet => "ethernet",
            Self::Link => "link",
        }
    }
}

/// A way to ask for them.
#[derive(Debug)]
pub(crate) struct Standard(Family);

impl Standard {
    /// Opens one.
    ///
    /// # Errors
    ///
    /// Where the kernel has no ethtool netlink.
    pub(crate) fn open() -> io::Result<Self> {
        Family::open("ethtool").map(Self)
    }

    /// What a network device of this process's namespace says; nothing of what its driver does not keep.
    ///
    /// # Errors
    ///
    /// The kernel's: `EOPNOTSUPP` for a driver that has nothing of the group.
    pub(crate) fn read(&self, netdev: &str, group: Group) -> io::Result<Vec<(&'static str, u64)>> {
        let (command, request) = request(netdev, group);
        let answer = self.0.ask(command, &request).map_err(|error| unknown_as_unsupported(group, error))?;
        Ok(parse(group, &answer))
    }
}

/// A kernel that has no statistics of the link (before 6.3) refuses to be asked for them.
fn unknown_as_unsupported(group: Group, error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(libc::EINVAL) if group == Group::Link => io::Error::from_raw_os_error(libc::EOPNOTSUPP),
        _ => error,
    }
}

fn request(netdev: &str, group: Group) -> (u8, Vec<u8>) {
    let mut header = Vec::new();
    attribute(&mut header, HEADER_NAME, &[netdev.as_bytes(), &[0]].concat());
    let mut body = Vec::new();
    let command = match group {
        Group::Pause => PAUSE_GET,
        Group::Fec => FEC_GET,
        Group::Link => LINKSTATE_GET,
        Group::Ethernet => {
            attribute(&mut body, STATS_HEADER | NESTED, &header);
            let mut groups = Vec::new();
            attribute(&mut groups, BITSET_NOMASK, &[]);
            attribute(&mut groups, BITSET_SIZE, &4u32.to_ne_bytes());
            attribute(&mut groups, BITSET_VALUE, &0b1111u32.to_ne_bytes());
            attribute(&mut body, STATS_GROUPS | NESTED, &groups);
            return (STATS_GET, body);
        }
    };
    attribute(&mut header, HEADER_FLAGS, &FLAG_STATS.to_ne_bytes());
    attribute(&mut body, HEADER | NESTED, &header);
    (command, body)
}

fn parse(group: Group, answer: &[u8]) -> Vec<(&'static str, u64)> {
    let named = |nest, names: &[(u16, &'static str)]| {
        let nest = find(answer, nest).unwrap_or_default();
        let value = |(kind, name): &(u16, &'static str)| Some((*name, long(find(nest, *kind)?)?));
        names.iter().filter_map(value).collect()
    };
    match group {
        Group::Pause => named(PAUSE_STATS, PAUSE),
        Group::Fec => named(FEC_STATS, FEC),
        Group::Link => {
            let count = find(answer, LINK_DOWN_EVENTS).and_then(word);
            count.map(|count| ("link_down_events", u64::from(count))).into_iter().collect()
        }
        Group::Ethernet => all(answer, STATS_GROUP).flat_map(statistics).collect(),
    }
}

/// One group's: each value stands in a nest of its own.
fn statistics(group: &[u8]) -> impl Iterator<Item = (&'static str, u64)> {
    let number = find(group, GROUP_ID).and_then(word).and_then(|number| usize::try_from(number).ok());
    let names = number.and_then(|number| GROUPS.get(number)).copied().unwrap_or_default();
    let value = |(kind, value): (u16, &[u8])| Some((*names.get(usize::from(kind))?, long(value)?));
    all(group, GROUP_STAT).filter_map(move |nest| attributes(nest).next().and_then(value))
}

/// For tests with bytes of any kind.
#[cfg(test)]
pub(super) fn parse_any(bytes: &[u8]) {
    for group in Group::ALL {
        parse(group, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nest(kind: u16, inner: &[(u16, &[u8])]) -> Vec<u8> {
        let mut body = Vec::new();
        for (kind, value) in inner {
            attribute(&mut body, *kind, value);
        }
        let mut nest = Vec::new();
        attribute(&mut nest, kind | NESTED, &body);
        nest
    }

    /// Whole, then cut off anywhere: never a value that is not there.
    #[track_caller]
    fn check(group: Group, answer: &[u8], expected: &[(&'static str, u64)]) {
        assert_eq!(parse(group, answer), expected);
        for length in 0..answer.len() {
            let part = parse(group, &answer[..length]);
            assert!(part.iter().all(|value| expected.contains(value)), "{length}: {part:?}");
        }
    }

    #[test]
    fn pause_of_the_link_is_read_by_direction() {
        let [tx, rx, unknown] = [21u64, 22, 23].map(u64::to_ne_bytes);
        let answer = [nest(HEADER, &[(1, &[3, 0, 0, 0])]), nest(PAUSE_STATS, &[(2, &tx), (3, &rx), (99, &unknown)])];
        check(Group::Pause, &answer.concat(), &[("tx_pause_frames", 21), ("rx_pause_frames", 22)]);
        check(Group::Pause, &nest(HEADER, &[]), &[]);
    }

    #[test]
    fn the_first_of_each_fec_statistic_is_the_sum_of_its_lanes() {
        let lanes = [31u64, 30, 1].map(u64::to_ne_bytes).concat();
        let one = 32u64.to_ne_bytes();
        let answer = nest(FEC_STATS, &[(2, &lanes), (3, &one), (4, &[])]);
        check(Group::Fec, &answer, &[("corrected_blocks", 31), ("uncorrectable_blocks", 32)]);
    }

    #[test]
    fn a_group_names_its_own_statistics() {
        let group = |number: u32, kind: u16, value: u64| {
            let stat = nest(GROUP_STAT, &[(kind, &value.to_ne_bytes())]);
            let mut body = Vec::new();
            attribute(&mut body, GROUP_ID, &number.to_ne_bytes());
            let mut nest = Vec::new();
            attribute(&mut nest, STATS_GROUP | NESTED, &[body, stat].concat());
            nest
        };
        let answer = [group(0, 0, 41), group(1, 4, 5), group(3, 3, 6), group(3, 77, 1), group(99, 0, 1)].concat();
        let expected = [
            ("eth-phy-SymbolErrorDuringCarrier", 41),
            ("eth-mac-FrameCheckSequenceErrors", 5),
            ("rmon-etherStatsJabbers", 6),
        ];
        check(Group::Ethernet, &answer, &expected);
    }

    #[test]
    fn how_often_the_link_went_down_is_a_number_of_its_own() {
        let mut answer = Vec::new();
        attribute(&mut answer, 2, &[1]);
        attribute(&mut answer, LINK_DOWN_EVENTS, &5u32.to_ne_bytes());
        check(Group::Link, &answer, &[("link_down_events", 5)]);
    }

    #[test]
    fn a_kernel_that_does_not_know_of_a_group_has_none() {
        let of = |group, number| unknown_as_unsupported(group, io::Error::from_raw_os_error(number)).raw_os_error();
        assert_eq!(of(Group::Link, libc::EINVAL), Some(libc::EOPNOTSUPP));
        assert_eq!(of(Group::Link, libc::EIO), Some(libc::EIO));
        assert_eq!(of(Group::Fec, libc::EINVAL), Some(libc::EINVAL));
    }

    #[test]
    fn this_kernel_understands_every_question() {
        // A kernel without the family says so once, for all of them.
        let Ok(standard) = Standard::open() else { return };
        for group in Group::ALL {
            match standard.read("lo", group) {
                Ok(values) => assert!(values.is_empty(), "{values:?}"),
                Err(error) => assert_eq!(error.raw_os_error(), Some(libc::EOPNOTSUPP), "{group:?}"),
            }
            let gone = standard.read("no-such-device", group).unwrap_err();
            assert_eq!(gone.raw_os_error(), Some(libc::ENODEV), "{group:?}");
        }
    }
}

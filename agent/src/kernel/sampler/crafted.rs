//! The programs on packets that no device of a test machine has: the kernel runs them on bytes made up here.

use std::os::fd::AsFd as _;

use agent_common::bucket::{ETHERNET_HEADER, IPOIB_HEADER, Totals, direction};
use analysis::series::DurationNs;

use super::super::test_run::test_run;
use super::object::{Cpus, Object, programs};
use super::rings::Rings;
use super::totals::TotalsMap;
use super::{Clock, Marks, Options, Prefix, Slot};
use crate::host::roots::Roots;

/// `struct __sk_buff`: its size in words, and the words that a test run takes over.
const CONTEXT: usize = 48;
const GSO_SEGS: usize = 41;
const GSO_SIZE: usize = 44;

/// Let the next program have its say.
const NEXT: u32 = u32::MAX;

const SLOTS: u32 = 64;

/// A packet, and what must be counted of it. Sizes are bytes.
struct Case {
    name: &'static str,
    link_header: u32,
    /// What follows the link header.
    ethertype: u16,
    /// TCP in IPv4, or nothing that is known.
    payload: usize,
    /// Bytes of payload of each segment, and how many there are as the kernel knows it: 0 if it does not.
    segments_of: (u32, u32),
    /// Segments on the wire, and their bytes, received.
    expected: (u64, u64),
    is_flow: bool,
}

const IPV4: u16 = 0x0800;
const ARP: u16 = 0x0806;
/// Headers of IPv4 and TCP.
const HEADERS: u64 = 40;

const CASES: &[Case] = &[
    Case {
        name: "one that is not cut",
        link_header: ETHERNET_HEADER,
        ethertype: IPV4,
        payload: 1000,
        segments_of: (0, 0),
        expected: (1, 14 + HEADERS + 1000),
        is_flow: true,
    },
    Case {
        name: "joined by a driver that says of how many",
        link_header: ETHERNET_HEADER,
        ethertype: IPV4,
        payload: 3000,
        segments_of: (1000, 3),
        expected: (3, 3 * (14 + HEADERS) + 3000),
        is_flow: true,
    },
    Case {
        name: "joined by a driver that does not say of how many, the last not full",
        link_header: ETHERNET_HEADER,
        ethertype: IPV4,
        payload: 3001,
        segments_of: (1000, 0),
        expected: (4, 4 * (14 + HEADERS) + 3001),
        is_flow: true,
    },
    Case {
        name: "the same, of full segments",
        link_header: ETHERNET_HEADER,
        ethertype: IPV4,
        payload: 3000,
        segments_of: (1000, 0),
        expected: (3, 3 * (14 + HEADERS) + 3000),
        is_flow: true,
    },
    Case {
        // Tunnels and `tun` devices: the version tells what it is.
        name: "without a link header",
        link_header: 0,
        ethertype: IPV4,
        payload: 1000,
        segments_of: (0, 0),
        expected: (1, HEADERS + 1000),
        is_flow: true,
    },
    Case {
        // The pseudo header of 20 bytes before it is the kernel's alone.
        name: "IPoIB",
        link_header: IPOIB_HEADER,
        ethertype: IPV4,
        payload: 1000,
        segments_of: (0, 0),
        expected: (1, 4 + HEADERS + 1000),
        is_flow: true,
    },
    Case {
        name: "IPoIB in segments, their number not told",
        link_header: IPOIB_HEADER,
        ethertype: IPV4,
        payload: 3001,
        segments_of: (1000, 0),
        expected: (4, 4 * (4 + HEADERS) + 3001),
        is_flow: true,
    },
    Case {
        name: "ARP over IPoIB",
        link_header: IPOIB_HEADER,
        ethertype: ARP,
        payload: 56,
        segments_of: (0, 0),
        expected: (1, 4 + HEADERS + 56),
        is_flow: false,
    },
];

impl Case {
    /// Its bytes, after `pull`: of the link header, IPv4 and TCP.
    fn packet(&self) -> Vec<u8> {
        let link = self.link_header as usize;
        let mut packet = vec![0; link + HEADERS as usize + self.payload];
        let at = match self.link_header {
            0 => None,
            ETHERNET_HEADER => Some(12),
            _ => Some(20),
        };
        if let Some(at) = at {
            packet[at..at + 2].copy_from_slice(&self.ethertype.to_be_bytes());
        }
        let ip = &mut packet[link..];
        let length = u16::try_from(HEADERS as usize + self.payload).unwrap();
        ip[0] = 0x45;
        ip[2..4].copy_from_slice(&length.to_be_bytes());
        (ip[8], ip[9]) = (64, 6);
        ip[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        ip[20..24].copy_from_slice(&[0x13, 0x88, 0x13, 0x89]);
        ip[32..34].copy_from_slice(&[0x50, 0x10]);
        packet
    }
}

fn options() -> Options {
    Options {
        ifindex: 1,
        netdev: "lo".to_owned(),
        interval: DurationNs(10_000_000),
        clock: Clock::Read,
        slots: SLOTS,
        clsact: false,
        suspected: false,
        marks: Marks::Ignored,
        sketch: true,
        regions: Vec::new(),
    }
}

/// Runs the program of a direction on a packet: the totals, and whether a flow was noted.
#[track_caller]
fn run(case: &Case, way: u32) -> (Totals, bool) {
    let options = options();
    let roots = Roots::default();
    let cpus = Cpus::read(&roots).unwrap();
    let mut object = Object::load(&options, &roots, cpus, case.link_header).unwrap();
    let rings = Rings::map(object.map("RINGS").unwrap(), cpus.rings, SLOTS, options.interval).unwrap();
    let totals = TotalsMap::map(object.map("TOTALS").unwrap(), cpus.totals).unwrap();
    let packet = case.packet();
    let mut context = [0_u32; CONTEXT];
    (context[GSO_SIZE], context[GSO_SEGS]) = case.segments_of;
    let program = object.program(programs(Marks::Ignored)[way as usize]).unwrap().fd().unwrap();
    let first = rings.now();
    let answer = test_run(program.as_fd(), &packet, &context);
    assert_eq!(answer.unwrap_or_else(|error| panic!("{}: {error}", case.name)), NEXT, "{}", case.name);
    let last = rings.now();
    let buckets = (first..=last).flat_map(|sequence| (0..rings.count()).map(move |ring| (sequence, ring)));
    let is_flow = buckets.into_iter().any(
        |(sequence, ring)| matches!(rings.read(way, ring, sequence), Slot::Read(bucket) if bucket.sketch != [0, 0]),
    );
    (totals.read()[way as usize], is_flow)
}

/// What is off is taken out, so that each of these is a program of its own to the verifier.
#[test]
fn the_kernel_takes_the_programs_for_every_kind_of_device_with_every_option() {
    if !rustix::process::geteuid().is_root() {
        println!("this test loads programs into the kernel, for which it must run as root");
        return;
    }
    let near = Prefix { address: [10, 0, 0, 0].into(), length: 8 };
    let (roots, cpus) = (Roots::default(), Cpus::read(&Roots::default()).unwrap());
    for link_header in [0, ETHERNET_HEADER, IPOIB_HEADER] {
        for suspected in [false, true] {
            for regions in [Vec::new(), vec![near]] {
                for (sketch, clock) in [(false, Clock::Read), (true, Clock::Read), (true, Clock::Tick)] {
                    let options = Options { suspected, sketch, clock, regions: regions.clone(), ..options() };
                    let loaded = Object::load(&options, &roots, cpus, link_header);
                    assert!(loaded.is_ok(), "{link_header} {options:?}: {:?}", loaded.err());
                }
            }
        }
    }
}

#[test]
fn what_no_device_here_has_is_counted_as_the_wire_carries_it() {
    if !rustix::process::geteuid().is_root() {
        println!("this test loads programs into the kernel, for which it must run as root");
        return;
    }
    for case in CASES {
        for way in [direction::RX, direction::TX] {
            let (totals, is_flow) = run(case, way);
            let name = format!("{} ({})", case.name, programs(Marks::Ignored)[way as usize]);
            assert_eq!((totals.segments, totals.wire_bytes), case.expected, "{name}");
            let whole = (1, case.packet().len() as u64, 0, 0);
            assert_eq!((totals.skbs, totals.skb_bytes, totals.unparsed, totals.no_ring), whole, "{name}");
            assert_eq!(is_flow, case.is_flow, "{name}");
        }
    }
}

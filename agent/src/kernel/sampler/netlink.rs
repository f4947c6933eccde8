//! What the sampler asks the kernel by rtnetlink: devices, and filters of traffic control.
//!
//! A socket belongs to the network namespace it was opened in, and so does everything that is done by it later.

use std::io;

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkMessage};
use netlink_packet_route::tc::{
    TcAttribute, TcBpfFlags, TcFilterBpf, TcFilterBpfOption, TcHandle, TcMessage, TcOption,
};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

/// The kind of the queueing discipline that only holds filters of both directions.
const CLSACT: &str = "clsact";

/// Every kind of packet, as filters name it.
const ALL_PROTOCOLS: u16 = libc::ETH_P_ALL as u16;

/// A connection to the kernel.
#[derive(Debug)]
pub(super) struct Netlink {
    socket: Socket,
}

/// A network device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Device {
    /// Its number.
    pub(super) ifindex: u32,
    /// Its name.
    pub(super) name: String,
    /// Its type: one of `ARPHRD_` in include/uapi/linux/if_arp.h.
    pub(super) kind: u16,
    /// What it has counted: received, sent.
    pub(super) counters: [Counters; 2],
}

/// What a network device has counted of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    /// Packets.
    pub(crate) packets: u64,
    /// Bytes.
    pub(crate) bytes: u64,
}

/// Where a filter stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The device's number.
    pub(super) ifindex: u32,
    /// Whether it is for what is sent.
    pub(super) egress: bool,
    /// The lower, the earlier.
    pub(super) priority: u16,
    /// Its number among those of one priority.
    pub(super) handle: u32,
}

/// A filter of traffic control.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Filter {
    pub(super) place: Place,
    /// The name its maker gave it: BPF programs have one.
    pub(super) name: Option<String>,
}

impl Netlink {
    /// Opens one in the network namespace of the calling thread.
    ///
    /// # Errors
    ///
    /// The kernel's error.
    pub(super) fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self { socket })
    }

    /// All devices.
    ///
    /// # Errors
    ///
    /// The kernel's error.
    pub(super) fn devices(&self) -> io::Result<Vec<Device>> {
        let answers = self.ask(RouteNetlinkMessage::GetLink(LinkMessage::default()), NLM_F_DUMP)?;
        Ok(answers.into_iter().filter_map(device).collect())
    }

    /// A device by its number.
    ///
    /// # Errors
    ///
    /// The kernel's error: `ENODEV` if there is none.
    pub(super) fn device(&self, ifindex: u32) -> io::Result<Device> {
        let mut message = LinkMessage::default();
        message.header.index = ifindex;
        let answers = self.ask(RouteNetlinkMessage::GetLink(message), NLM_F_ACK)?;
        let found = answers.into_iter().find_map(device);
        found.ok_or_else(|| io::Error::from_raw_os_error(libc::ENODEV))
    }

    /// Gives a device the queueing discipline that holds filters; says whether it had none.
    ///
    /// # Errors
    ///
    /// The kernel's error.
    pub(super) fn add_clsact(&self, ifindex: u32) -> io::Result<bool> {
        let message = RouteNetlinkMessage::NewQueueDiscipline(clsact(ifindex));
        match self.ask(message, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL) {
            Ok(_) => Ok(true),
            Err(error) if error.raw_os_error() == Some(libc::EEXIST) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Takes it away again, with all filters that are in it.
    ///
    /// # Errors
    ///
    /// The kernel's error.
    pub(super) fn remove_clsact(&self, ifindex: u32) -> io::Result<()> {
        self.ask(RouteNetlinkMessage::DelQueueDiscipline(clsact(ifindex)), NLM_F_ACK).map(drop)
    }

    /// The filters of both directions of a device.
    ///
    /// # Errors
    ///
    /// The kernel's error. A device without filters, or that holds none, is none.
    pub(super) fn filters(&self, ifindex: u32) -> io::Result<Vec<Filter>> {
        let mut filters = Vec::new();
        for egress in [false, true] {
            let mut message = TcMessage::with_index(index(ifindex));
            message.header.parent = parent(egress);
            for answer in self.ask(RouteNetlinkMessage::GetTrafficFilter(message), NLM_F_DUMP)? {
                filters.extend(filter(answer, egress));
            }
        }
        Ok(filters)
    }

    /// Adds a program as a filter that answers for itself. `program` is its descriptor.
    ///
    /// # Errors
    ///
    /// The kernel's error: `EEXIST` if the place is taken, `EINVAL` if filters of another kind have the priority.
    pub(super) fn add_filter(&self, place: Place, name: &str, program: u32) -> io::Result<()> {
        let mut message = at(place);
        let options = [
            TcFilterBpfOption::ProgFd(program),
            TcFilterBpfOption::ProgName(name.to_owned()),
            TcFilterBpfOption::Flags(TcBpfFlags::DirectAction),
        ];
        message.attributes.push(TcAttribute::Kind(TcFilterBpf::KIND.to_owned()));
        message.attributes.push(TcAttribute::Options(options.map(TcOption::Bpf).into()));
        let flags = NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL;
        self.ask(RouteNetlinkMessage::NewTrafficFilter(message), flags).map(drop)
    }

    /// Removes the filter of a place.
    ///
    /// # Errors
    ///
    /// The kernel's error: `ENOENT` or `ENODEV` if there is none.
    pub(super) fn remove_filter(&self, place: Place) -> io::Result<()> {
        let mut message = at(place);
        message.attributes.push(TcAttribute::Kind(TcFilterBpf::KIND.to_owned()));
        self.ask(RouteNetlinkMessage::DelTrafficFilter(message), NLM_F_ACK).map(drop)
    }

    /// Sends a request and collects what comes until its end.
    fn ask(&self, request: RouteNetlinkMessage, flags: u16) -> io::Result<Vec<RouteNetlinkMessage>> {
        let mut message = NetlinkMessage::from(request);
        message.header.flags = NLM_F_REQUEST | flags;
        message.header.sequence_number = 1;
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        let mut answers = Vec::new();
        loop {
            let (received, _) = self.socket.recv_from_full()?;
            if take(&received, &mut answers)? {
                return Ok(answers);
            }
        }
    }
}

/// Takes the messages of one reading; says whether they end the answer.
fn take(mut received: &[u8], answers: &mut Vec<RouteNetlinkMessage>) -> io::Result<bool> {
    while !received.is_empty() {
        let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(received);
        let message = message.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?;
        let length = usize::try_from(message.header.length).unwrap_or(usize::MAX).next_multiple_of(4);
        match message.payload {
            NetlinkPayload::Done(_) => return Ok(true),
            NetlinkPayload::Error(error) if error.code.is_none() => return Ok(true),
            NetlinkPayload::Error(error) => return Err(error.to_io()),
            NetlinkPayload::InnerMessage(inner) => answers.push(inner),
            _ => {}
        }
        received = received.get(length..).unwrap_or_default();
    }
    Ok(false)
}

fn device(answer: RouteNetlinkMessage) -> Option<Device> {
    let RouteNetlinkMessage::NewLink(link) = answer else { return None };
    let (mut name, mut counters) = (None, [Counters::default(); 2]);
    for attribute in link.attributes {
        match attribute {
            LinkAttribute::IfName(found) => name = Some(found),
            LinkAttribute::Stats64(found) => {
                counters = [(found.rx_packets, found.rx_bytes), (found.tx_packets, found.tx_bytes)]
                    .map(|(packets, bytes)| Counters { packets, bytes });
            }
            _ => {}
        }
    }
    Some(Device { ifindex: link.header.index, name: name?, kind: link.header.link_layer_type.into(), counters })
}

fn filter(answer: RouteNetlinkMessage, egress: bool) -> Option<Filter> {
    let RouteNetlinkMessage::NewTrafficFilter(message) = answer else { return None };
    let handle = u32::from(message.header.handle);
    // Besides each filter the kernel tells of the list it is in, under no handle.
    if handle == 0 {
        return None;
    }
    let options = message.attributes.iter().filter_map(|attribute| match attribute {
        TcAttribute::Options(options) => Some(options),
        _ => None,
    });
    let name = options.flatten().find_map(|option| match option {
        TcOption::Bpf(TcFilterBpfOption::ProgName(name)) => Some(name.clone()),
        _ => None,
    });
    let priority = u16::try_from(message.header.info >> 16).ok()?;
    let ifindex = u32::try_from(message.header.index).ok()?;
    Some(Filter { place: Place { ifindex, egress, priority, handle }, name })
}

fn index(ifindex: u32) -> i32 {
    // The kernel's numbers of devices are positive.
    i32::try_from(ifindex).unwrap_or(i32::MAX)
}

fn parent(egress: bool) -> TcHandle {
    TcHandle { major: TcHandle::CLSACT.major, minor: if egress { TcHandle::MIN_EGRESS } else { TcHandle::MIN_INGRESS } }
}

fn clsact(ifindex: u32) -> TcMessage {
    let mut message = TcMessage::with_index(index(ifindex));
    message.header.parent = TcHandle::CLSACT;
    message.header.handle = TcHandle { major: TcHandle::CLSACT.major, minor: 0 };
    message.attributes.push(TcAttribute::Kind(CLSACT.to_owned()));
    message
}

fn at(place: Place) -> TcMessage {
    let mut message = TcMessage::with_index(index(place.ifindex));
    message.header.parent = parent(place.egress);
    message.header.handle = place.handle.into();
    message.header.info = u32::from(place.priority) << 16 | u32::from(ALL_PROTOCOLS.to_be());
    message
}

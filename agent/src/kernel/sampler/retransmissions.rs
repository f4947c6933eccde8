//! The kernel's own tracepoint of TCP segments that are sent again: one program for the whole host, to hold the
//! sampler's counts against.

use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use agent_common::retransmission::{OTHERS, OWN, Traced, constant};
use agent_common::settings::UNKNOWN;
use anyhow::Context as _;
use aya::maps::PerCpuArray;
use aya::programs::RawTracePoint;
use aya::{Ebpf, EbpfLoader};

use super::super::btf::Btf;
use super::super::sys::{self, ProgramAccount};
use super::object::{object, short};
use crate::host::roots::Roots;

/// The program.
const PROGRAM: &str = "fs_retransmit";

/// Queue pairs that the object's map has room for here, where nothing follows any.
const QUEUE_PAIRS: u32 = 64;

/// What was counted since the attach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traces {
    /// In the network namespace of the thread that attached; `None` if the kernel does not tell which is which.
    pub(crate) own: Option<Traced>,
    /// In all network namespaces.
    pub(crate) host: Traced,
    /// Whether segments and bytes are counted, besides events.
    pub(crate) sizes: bool,
    /// Whether attempts that failed are counted.
    pub(crate) failures: bool,
}

/// The attached program. It goes when this is dropped.
#[derive(Debug)]
pub(crate) struct Retransmissions {
    ebpf: Ebpf,
    places: Places,
}

impl Retransmissions {
    /// Attaches to the tracepoint.
    ///
    /// # Errors
    ///
    /// If the kernel has no such tracepoint, or refuses.
    pub(crate) fn attach(roots: &Roots) -> anyhow::Result<Self> {
        let places = Places::find(roots);
        let mut ebpf = EbpfLoader::new()
            .map_max_entries("QUEUE_PAIRS", QUEUE_PAIRS)
            .override_global(constant::LENGTH, &places.length, true)
            .override_global(constant::SEGMENTS, &places.segments, true)
            .override_global(constant::NAMESPACE, &places.namespace, true)
            .override_global(constant::NUMBER, &places.number, true)
            .override_global(constant::OWN, &places.own, true)
            .override_global(constant::FAILURES, &places.failures, true)
            .load(object()?)
            .context("making the BPF maps (this needs root, or CAP_BPF and CAP_PERFMON)")?;
        let program = ebpf.program_mut(PROGRAM).with_context(|| format!("the kernel side has no program {PROGRAM}"))?;
        let program: &mut RawTracePoint = program.try_into()?;
        program.load().map_err(short).with_context(|| format!("loading the program {PROGRAM}"))?;
        program.attach("tcp_retransmit_skb").context("attaching to the tracepoint tcp_retransmit_skb")?;
        Ok(Self { ebpf, places })
    }

    /// What was counted since.
    ///
    /// # Errors
    ///
    /// If the map cannot be read.
    pub(crate) fn read(&self) -> anyhow::Result<Traces> {
        let map = self.ebpf.map("TRACED").context("the kernel side has no map TRACED")?;
        let map: PerCpuArray<_, [u64; Traced::WORDS]> = map.try_into()?;
        let entry = |index| {
            let values = map.get(&index, 0)?;
            let sum = |at: usize| values.iter().filter_map(|value| value.get(at)).sum();
            let [events, segments, data_segments, bytes, failures] = [0, 1, 2, 3, 4].map(sum);
            anyhow::Ok(Traced { events, segments, data_segments, bytes, failures })
        };
        let (own, others) = (entry(OWN)?, entry(OTHERS)?);
        let host = Traced {
            events: own.events + others.events,
            segments: own.segments + others.segments,
            data_segments: own.data_segments + others.data_segments,
            bytes: own.bytes + others.bytes,
            failures: own.failures + others.failures,
        };
        let Places { length, segments, namespace, number, own: inode, failures } = self.places;
        Ok(Traces {
            own: (namespace != UNKNOWN && number != UNKNOWN && inode != 0).then_some(own),
            host,
            sizes: length != UNKNOWN && segments != UNKNOWN,
            failures: failures != 0,
        })
    }

    /// What the kernel has counted of the program.
    pub(crate) fn account(&self) -> ProgramAccount {
        let program = self.ebpf.program(PROGRAM).and_then(|program| program.fd().ok());
        program.and_then(|program| sys::program_account(program.as_fd()).ok()).unwrap_or_default()
    }
}

/// The kernel side's constants.
#[derive(Clone, Copy, Debug)]
struct Places {
    length: u32,
    segments: u32,
    namespace: u32,
    number: u32,
    own: u32,
    failures: u32,
}

impl Places {
    /// From the running kernel's BTF. What it does not tell is not counted.
    fn find(roots: &Roots) -> Self {
        let vmlinux = Btf::vmlinux(&roots.sysfs).ok();
        let sum = |members: &[(&str, &str)]| {
            let place = |(structure, member): &(&str, &str)| vmlinux.as_ref()?.offset(None, structure, member);
            members.iter().try_fold(0u32, |sum, member| sum.checked_add(place(member)?)).unwrap_or(UNKNOWN)
        };
        Self {
            length: sum(&[("sk_buff", "len")]),
            // `tcp_skb_pcount` of include/net/tcp.h.
            segments: sum(&[("sk_buff", "cb"), ("tcp_skb_cb", "tcp_gso_segs")]),
            namespace: sum(&[("sock", "__sk_common"), ("sock_common", "skc_net")]),
            number: sum(&[("net", "ns"), ("ns_common", "inum")]),
            own: own_namespace(&roots.procfs).unwrap_or_default(),
            failures: u32::from(vmlinux.as_ref().and_then(arguments) == Some(3)),
        }
    }
}

/// Arguments of the tracepoint: the socket and the segment, in newer kernels the error too. The function that calls
/// its programs has one more, before them.
fn arguments(vmlinux: &Btf) -> Option<u16> {
    let (_, arguments) = vmlinux.signature(None, vmlinux.function("__traceiter_tcp_retransmit_skb")?)?;
    arguments.checked_sub(1)
}

/// The number of the network namespace of the calling thread, which the kernel takes for the number of its file too.
fn own_namespace(procfs: &Path) -> Option<u32> {
    let file = std::fs::metadata(procfs.join("thread-self/ns/net")).ok()?;
    u32::try_from(file.ino()).ok()
}

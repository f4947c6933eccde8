//! One instance of the sampler's object: maps of the size that a host needs, programs with what is off taken out.

use std::os::fd::{AsFd as _, BorrowedFd};

use agent_common::bucket::{ETHERNET_HEADER, IPOIB_HEADER, constant, direction};
use agent_common::settings::UNKNOWN;
use anyhow::{Context as _, bail};
use aya::maps::Map;
use aya::maps::lpm_trie::{Key, LpmTrie};
use aya::programs::{ProgramError, SchedClassifier};
use aya::{Ebpf, EbpfLoader};

use super::super::btf::Btf;
use super::super::sys::{self, ProgramAccount};
use super::napi::{self, Own};
use super::{Clock, Marks, Options, Prefix};
use crate::host::kernel::cpu_numbers;
use crate::host::roots::Roots;

/// The sampler's kernel side as it was built with this program; empty if it was built without.
static OBJECT: &[u8] = aya::include_bytes_aligned!(env!("FABRICSCOPE_BURSTS"));

/// The program that marks what TCP sends again, in place of the one that only counts.
pub(super) const MARKING: &str = "fs_sampler_mark";

/// The programs, by direction.
pub(super) fn programs(marks: Marks) -> [&'static str; direction::COUNT as usize] {
    ["fs_sampler_rx", if marks == Marks::Set { MARKING } else { "fs_sampler_tx" }]
}

/// The object's bytes.
///
/// # Errors
///
/// If this program was built without the kernel side.
pub(super) fn object() -> anyhow::Result<&'static [u8]> {
    if OBJECT.is_empty() {
        bail!("this fabricscope was built without its kernel side; run `cargo xtask setup` and build it again");
    }
    Ok(OBJECT)
}

/// How many CPUs have what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cpus {
    /// Rings: for those that run now.
    pub(super) rings: u32,
    /// Totals: for all that can ever run.
    pub(super) totals: u32,
}

impl Cpus {
    /// Of this host.
    ///
    /// # Errors
    ///
    /// If sysfs does not tell.
    pub(super) fn read(roots: &Roots) -> anyhow::Result<Self> {
        let numbers = |list: &str| {
            cpu_numbers(roots, list).with_context(|| format!("no list of {list} CPUs in {}", roots.sysfs.display()))
        };
        Ok(Self { rings: numbers("online")?, totals: numbers("possible")? })
    }
}

/// The loaded object.
#[derive(Debug)]
pub(super) struct Object {
    ebpf: Ebpf,
    /// Why polls that use up their budget cannot be told, if they cannot.
    napi: anyhow::Result<()>,
}

impl Object {
    /// Makes the maps and loads the programs.
    ///
    /// # Errors
    ///
    /// If this program was built without the kernel side, or the kernel refuses a map or a program.
    pub(super) fn load(options: &Options, roots: &Roots, cpus: Cpus, link_header: u32) -> anyhow::Result<Self> {
        let suspected = u32::from(options.suspected);
        let out_of_order = if options.suspected { out_of_order(roots) } else { UNKNOWN };
        let (own, napi) = match Own::find(roots) {
            Ok(own) => (own, Ok(())),
            Err(why) => (Own::UNKNOWN, Err(why)),
        };
        let sketched = u32::from(options.sketch);
        let marked = u32::from(options.marks != Marks::Ignored);
        let regional = u32::from(!options.regions.is_empty());
        let prefixes = u32::try_from(options.regions.len()).context("too many prefixes")?.max(1);
        let ticked = u32::from(options.clock == Clock::Tick);
        let ticks = if options.clock == Clock::Tick { options.slots } else { 1 };
        let mut ebpf = EbpfLoader::new()
            .map_max_entries("REGIONS", prefixes)
            .map_max_entries("TICKS", ticks)
            .override_global(constant::TICKED, &ticked, true)
            .override_global(constant::REGIONAL, &regional, true)
            .override_global(constant::SUSPECTED, &suspected, true)
            .override_global(constant::SKETCHED, &sketched, true)
            .override_global(constant::OUT_OF_ORDER, &out_of_order, true)
            .override_global(constant::MARKED, &marked, true)
            .map_max_entries("RINGS", direction::COUNT * cpus.rings * options.slots)
            .map_max_entries("TOTALS", direction::COUNT * cpus.totals)
            .override_global(constant::INTERVAL, &options.interval.0, true)
            .override_global(constant::SLOTS, &options.slots, true)
            .override_global(constant::RINGS, &cpus.rings, true)
            .override_global(constant::CPUS, &cpus.totals, true)
            .override_global(constant::LINK_HEADER, &link_header, true)
            .override_global(constant::IFINDEX, &options.ifindex, true)
            .override_global(constant::NETNS, &own.netns, true)
            .override_global(constant::NAPI_DEVICE, &own.napi_device, true)
            .override_global(constant::DEVICE_INDEX, &own.device_index, true)
            .override_global(constant::DEVICE_NETNS, &own.device_netns, true)
            .override_global(constant::NETNS_NUMBER, &own.netns_number, true)
            .load(object()?)
            .context("making the BPF maps (this needs root, or CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN)")?;
        for name in programs(options.marks) {
            let loaded = program(&mut ebpf, name)?.load();
            loaded.map_err(short).with_context(|| format!("loading the program {name}"))?;
        }
        let mut object = Self { ebpf, napi };
        object.set_regions(&options.regions).context("telling the kernel the prefixes of the region")?;
        Ok(object)
    }

    /// Attaches the program that counts polls which used up their budget; says whether that could be done.
    pub(super) fn attach_napi(&mut self, netdev: &str) -> bool {
        let attached = std::mem::replace(&mut self.napi, Ok(())).and_then(|()| napi::attach(&mut self.ebpf));
        if let Err(why) = &attached {
            tracing::info!("polls of {netdev} that use up their budget are not counted: {why:#}");
        }
        attached.is_ok()
    }

    fn set_regions(&mut self, regions: &[Prefix]) -> anyhow::Result<()> {
        let map = self.ebpf.map_mut("REGIONS").context("the kernel side has no map REGIONS")?;
        let mut map: LpmTrie<_, [u8; 16], u8> = map.try_into()?;
        for region in regions {
            let (bits, address) = region.of_version_6();
            map.insert(&Key::new(bits, address), 1, 0)?;
        }
        Ok(())
    }

    /// The program of a direction.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub(super) fn program(&mut self, name: &str) -> anyhow::Result<&mut SchedClassifier> {
        program(&mut self.ebpf, name)
    }

    /// The descriptor of a map.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub(super) fn map(&self, name: &str) -> anyhow::Result<BorrowedFd<'_>> {
        match self.ebpf.map(name) {
            Some(Map::Array(data)) => Ok(data.fd().as_fd()),
            _ => bail!("the kernel side has no array {name}"),
        }
    }

    /// What the kernel has counted of both programs.
    pub(super) fn account(&self) -> ProgramAccount {
        let programs = self.ebpf.programs().filter_map(|(_, program)| program.fd().ok());
        let accounts = programs.filter_map(|fd| sys::program_account(fd.as_fd()).ok());
        accounts.fold(ProgramAccount::default(), |sum, one| ProgramAccount {
            run_time_ns: sum.run_time_ns + one.run_time_ns,
            run_count: sum.run_count + one.run_count,
            recursion_misses: sum.recursion_misses + one.recursion_misses,
        })
    }
}

fn program<'a>(ebpf: &'a mut Ebpf, name: &str) -> anyhow::Result<&'a mut SchedClassifier> {
    let program = ebpf.program_mut(name).with_context(|| format!("the kernel side has no program {name}"))?;
    program.try_into().with_context(|| format!("the program {name}"))
}

/// Where a `struct tcp_sock` has its queue of segments that came out of order. Without it those that fill a hole are not
/// suspected, only those that came before.
fn out_of_order(roots: &Roots) -> u32 {
    let vmlinux = Btf::vmlinux(&roots.sysfs).ok();
    vmlinux.and_then(|vmlinux| vmlinux.offset(None, "tcp_sock", "out_of_order_queue")).unwrap_or(UNKNOWN)
}

/// The kernel's error with what its verifier says at the end, instead of all that it says.
pub(super) fn short(error: ProgramError) -> anyhow::Error {
    match error {
        ProgramError::LoadError { io_error, verifier_log } => {
            sys::with_log(io_error, verifier_log.to_string().as_bytes()).into()
        }
        other => other.into(),
    }
}

/// Bytes before the network header, by the type of a device (`ARPHRD_` in include/uapi/linux/if_arp.h).
///
/// # Errors
///
/// If packets of such a device cannot be read.
pub(super) fn link_header(kind: u16) -> Result<u32, String> {
    Ok(match kind {
        // Ethernet and what looks like it; the loopback device.
        1 | 772 => ETHERNET_HEADER,
        // InfiniBand: IPoIB.
        32 => IPOIB_HEADER,
        // Raw IP, none, PPP; tunnels: IPv4, IPv6, SIT, GRE, GRE over IPv6.
        519 | 0xfffe | 512 | 768 | 769 | 776 | 778 | 823 => 0,
        other => return Err(format!("it is of type {other}, whose packets the sampler cannot read")),
    })
}

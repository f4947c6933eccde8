//! Attaching to one network device, and detaching.

use agent_common::bucket::{Totals, direction};
use anyhow::{Context as _, bail};
use aya::programs::TcAttachType;
use aya::programs::links::LinkOrder;
use aya::programs::tc::TcAttachOptions;

use super::super::sys::ProgramAccount;
use super::netlink::Netlink;
use super::object::{Cpus, Object, PROGRAMS, link_header};
use super::rings::TotalsMap;
use super::{INTERVALS, Means, Options, Rings};
use crate::host::roots::Roots;

/// Both programs on one device. Everything goes when this is dropped.
#[derive(Debug)]
pub(crate) struct Sampler {
    rings: Rings,
    totals: TotalsMap,
    means: [Means; 2],
    object: Object,
}

impl Sampler {
    /// Attaches to a device of the network namespace of the calling thread.
    ///
    /// # Errors
    ///
    /// If there is no such device, it is of a kind whose packets cannot be read, an option is out of range, or the
    /// kernel refuses.
    pub(crate) fn attach(options: &Options) -> anyhow::Result<Self> {
        check(options)?;
        let netlink = Netlink::open().context("opening a netlink socket")?;
        let kind = device_type(&netlink, options)?;
        let header = link_header(kind).map_err(|why| anyhow::anyhow!("{}: {why}", options.netdev))?;
        let cpus = Cpus::read(&Roots::default())?;
        let mut object = Object::load(options, cpus, header)?;
        let rings = Rings::map(object.map("RINGS")?, cpus.rings, options.slots, options.interval)
            .context("mapping the rings")?;
        let totals = TotalsMap::map(object.map("TOTALS")?, cpus.totals).context("mapping the totals")?;
        let means = [attach(&mut object, options, direction::RX)?, attach(&mut object, options, direction::TX)?];
        Ok(Self { rings, totals, means, object })
    }

    /// How the programs are attached: received, sent.
    pub(crate) fn means(&self) -> [Means; 2] {
        self.means.clone()
    }

    /// The rings.
    pub(crate) fn rings(&self) -> &Rings {
        &self.rings
    }

    /// What was received and sent since the programs were attached, in this order.
    pub(crate) fn totals(&self) -> [Totals; 2] {
        self.totals.read()
    }

    /// What the kernel has counted of both programs.
    pub(crate) fn account(&self) -> ProgramAccount {
        self.object.account()
    }
}

fn check(options: &Options) -> anyhow::Result<()> {
    if !INTERVALS.contains(&options.interval) {
        bail!("an interval of {} ns: the sampler has 100 us, 1 ms and 10 ms", options.interval.0);
    }
    if !options.slots.is_power_of_two() {
        bail!("a ring of {} buckets: their number must be a power of two", options.slots);
    }
    Ok(())
}

/// The type of the device, whose name and number must belong together still.
fn device_type(netlink: &Netlink, options: &Options) -> anyhow::Result<u16> {
    let device = netlink.device(options.ifindex);
    let device =
        device.with_context(|| format!("no network device of number {} ({})", options.ifindex, options.netdev))?;
    if device.name != options.netdev {
        bail!("network device {} is {} by now, not {}", options.ifindex, device.name, options.netdev);
    }
    Ok(device.kind)
}

fn attach(object: &mut Object, options: &Options, direction: u32) -> anyhow::Result<Means> {
    let (name, at) = match direction {
        direction::RX => (PROGRAMS[0], TcAttachType::Ingress),
        _ => (PROGRAMS[1], TcAttachType::Egress),
    };
    let program = object.program(name)?;
    program
        .attach_with_options(&options.netdev, at, TcAttachOptions::TcxOrder(LinkOrder::first()))
        .with_context(|| format!("attaching {name} to {}", options.netdev))?;
    Ok(Means::Tcx)
}

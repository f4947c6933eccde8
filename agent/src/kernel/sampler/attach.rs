//! Attaching to one network device, and detaching.

use std::os::fd::{AsFd as _, AsRawFd as _};

use agent_common::bucket::Totals;
use anyhow::{Context as _, bail};
use aya::programs::links::LinkOrder;
use aya::programs::tc::TcAttachOptions;
use aya::programs::{ProgramError, TcAttachType};

use super::super::sys::ProgramAccount;
use super::clsact::{self, Clsact};
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
    napi: bool,
    /// Dropped before the programs: filters hold them.
    #[expect(dead_code, reason = "held for its end: it removes the filters")]
    clsact: Option<Clsact>,
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
        let roots = Roots::default();
        let cpus = Cpus::read(&roots)?;
        let mut object = Object::load(options, &roots, cpus, header)?;
        let rings = Rings::map(object.map("RINGS")?, cpus.rings, options.slots, options.interval)
            .context("mapping the rings")?;
        let totals = TotalsMap::map(object.map("TOTALS")?, cpus.totals).context("mapping the totals")?;
        clsact::remove_leftovers(&netlink, Some(options.ifindex)).context("removing filters of dead samplers")?;
        let (means, clsact) = attach(&mut object, options, netlink)?;
        let napi = object.attach_napi(&options.netdev);
        Ok(Self { rings, totals, means, napi, clsact, object })
    }

    /// How the programs are attached: received, sent.
    pub(crate) fn means(&self) -> [Means; 2] {
        self.means.clone()
    }

    /// Whether polls that used up their budget are counted.
    pub(crate) fn napi(&self) -> bool {
        self.napi
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

/// Attaches both programs: by TCX where the kernel has it, since that goes with the process, else by clsact.
fn attach(object: &mut Object, options: &Options, netlink: Netlink) -> anyhow::Result<([Means; 2], Option<Clsact>)> {
    let why = if options.clsact { Some("as was asked for".to_owned()) } else { tcx(object, options)? };
    let Some(why) = why else { return Ok(([Means::Tcx, Means::Tcx], None)) };
    let context = |step: &str| format!("{step} {} by clsact (not by TCX: {why})", options.netdev);
    let mut clsact = Clsact::new(netlink, options.ifindex).with_context(|| context("preparing"))?;
    for (name, egress) in PROGRAMS.into_iter().zip([false, true]) {
        let program = object.program(name)?.fd().with_context(|| format!("the program {name}"))?;
        let program = u32::try_from(program.as_fd().as_raw_fd()).context("a descriptor")?;
        clsact.add(egress, program).with_context(|| context(&format!("attaching {name} to")))?;
    }
    Ok(([Means::Clsact(why.clone()), Means::Clsact(why)], Some(clsact)))
}

/// Attaches both programs by TCX, or none: says why not.
fn tcx(object: &mut Object, options: &Options) -> anyhow::Result<Option<String>> {
    let mut links = Vec::new();
    for (name, at) in PROGRAMS.into_iter().zip([TcAttachType::Ingress, TcAttachType::Egress]) {
        let order = TcAttachOptions::TcxOrder(LinkOrder::first());
        match object.program(name)?.attach_with_options(&options.netdev, at, order) {
            Ok(link) => links.push((name, link)),
            Err(error) => {
                for (name, link) in links {
                    object.program(name)?.detach(link).with_context(|| format!("detaching {name}"))?;
                }
                return Ok(Some(reason(&error)));
            }
        }
    }
    Ok(None)
}

/// Why TCX does not do, in few words.
fn reason(error: &ProgramError) -> String {
    match error {
        // A kernel before 6.6 does not know the kind of link.
        ProgramError::SyscallError(call) if call.io_error.raw_os_error() == Some(libc::EINVAL) => {
            "this kernel has none".to_owned()
        }
        ProgramError::SyscallError(call) => call.io_error.to_string(),
        other => other.to_string(),
    }
}

//! Attaching to one network device, and detaching.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _};

use agent_common::bucket::Totals;
use anyhow::{Context as _, bail};

use super::super::sys::ProgramAccount;
use super::clsact::{self, Clsact};
use super::netlink::Netlink;
use super::object::{Cpus, Object, link_header, programs};
use super::tcx::TcxLink;
use super::tick::Ticks;
use super::totals::TotalsMap;
use super::{Clock, INTERVALS, Means, Options, Rings};
use crate::host::roots::Roots;

/// Both programs on one device. Everything goes when this is dropped.
#[derive(Debug)]
pub(crate) struct Sampler {
    rings: Rings,
    totals: TotalsMap,
    means: [Means; 2],
    napi: bool,
    /// Dropped before the programs.
    hold: Hold,
    object: Object,
}

/// What holds the programs on the device: they come off when it is dropped.
#[derive(Debug)]
enum Hold {
    Tcx([TcxLink; 2]),
    Clsact(Clsact),
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
        let rings = match options.clock {
            Clock::Read => rings,
            // Before the programs are attached: no packet is to find that no bucket is written.
            Clock::Tick => rings.with_ticks(Ticks::start(&mut object, options.slots)?),
        };
        let totals = TotalsMap::map(object.map("TOTALS")?, cpus.totals).context("mapping the totals")?;
        clsact::remove_leftovers(&netlink, Some(options.ifindex)).context("removing filters of dead samplers")?;
        let (means, hold) = attach(&mut object, options, netlink)?;
        let napi = object.attach_napi(&options.netdev);
        Ok(Self { rings, totals, means, napi, hold, object })
    }

    /// Whether the programs stand on the device still: one that was made anew under the same number and name has them
    /// not. Where the kernel does not tell they count as standing. Nor do they stand if their tick has ended.
    pub(crate) fn stands(&self) -> bool {
        self.rings.go_on()
            && match &self.hold {
                Hold::Tcx(links) => links.iter().all(TcxLink::stands),
                Hold::Clsact(clsact) => clsact.stands(),
            }
    }

    /// The kernel's number of the program that set the tick, which lives as long as the timer.
    #[cfg(test)]
    pub(super) fn tick_program(&mut self) -> anyhow::Result<u32> {
        Ok(self.object.program("fs_sampler_tick")?.info()?.id())
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
    if options.interval < options.clock.shortest() {
        bail!("an interval of {} ns is too short for a tick: it takes 1 ms or 10 ms", options.interval.0);
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
fn attach(object: &mut Object, options: &Options, netlink: Netlink) -> anyhow::Result<([Means; 2], Hold)> {
    let tcx = if options.clsact { Err("as was asked for".to_owned()) } else { tcx(object, options)? };
    let why = match tcx {
        Ok(links) => return Ok(([Means::Tcx, Means::Tcx], Hold::Tcx(links))),
        Err(why) => why,
    };
    let context = |step: &str| format!("{step} {} by clsact (not by TCX: {why})", options.netdev);
    let mut clsact = Clsact::new(netlink, options.ifindex).with_context(|| context("preparing"))?;
    for (name, egress) in programs(options.marks).into_iter().zip([false, true]) {
        let program = object.program(name)?.fd().with_context(|| format!("the program {name}"))?;
        let program = u32::try_from(program.as_fd().as_raw_fd()).context("a descriptor")?;
        clsact.add(egress, program).with_context(|| context(&format!("attaching {name} to")))?;
    }
    Ok(([Means::Clsact(why.clone()), Means::Clsact(why)], Hold::Clsact(clsact)))
}

/// Attaches both programs by TCX, or none: says why not.
fn tcx(object: &mut Object, options: &Options) -> anyhow::Result<Result<[TcxLink; 2], String>> {
    let [rx, tx] = programs(options.marks);
    let mut link = |name: &str, egress: bool| {
        let program = object.program(name)?.fd().with_context(|| format!("the program {name}"))?;
        anyhow::Ok(TcxLink::new(program.as_fd(), options.ifindex, egress))
    };
    let links = (link(rx, false)?, link(tx, true)?);
    Ok(match links {
        (Ok(rx), Ok(tx)) => Ok([rx, tx]),
        (Err(error), _) | (_, Err(error)) => Err(reason(&error)),
    })
}

/// Why TCX does not do, in few words.
fn reason(error: &io::Error) -> String {
    match error.raw_os_error() {
        // A kernel before 6.6 does not know the kind of link.
        Some(libc::EINVAL) => "this kernel has none".to_owned(),
        _ => error.to_string(),
    }
}

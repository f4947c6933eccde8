//! What the burst sampler would take of this host.

use agent_common::bucket::{SLOTS, SLOTS_MANY, Totals, direction, ring_bytes};

use super::checks::Outcome::{self, Missing, Ok as Good, Unknown};
use super::checks::listed;
use crate::bursts::follow::{Verdict, choose};
use crate::config::limits;
use crate::host::facts::HostFacts;

/// By which means the programs attached to a device of their own.
pub(super) fn tcx(facts: &HostFacts) -> Outcome {
    match (&facts.tcx, &facts.clsact) {
        (Some(Ok(())), _) => Good("a trial sampler attached by TCX links".to_owned()),
        (Some(Err(why)), Some(Ok(()))) => Missing(format!("{why}; a trial sampler attached by clsact filters")),
        (Some(Err(why)), _) => Missing(why.clone()),
        (None, Some(Err(why))) => Unknown(why.clone()),
        (None, _) => Unknown("not tried".to_owned()),
    }
}

/// Whether a timer of the kernel can tell buckets apart.
pub(super) fn tick(facts: &HostFacts) -> Outcome {
    match &facts.tick {
        Some(Ok(())) => Good("a trial sampler's timer ticked".to_owned()),
        Some(Err(why)) => Missing(why.clone()),
        None => Unknown("not tried".to_owned()),
    }
}

/// Memory of the kernel for the devices that are sampled by default: a ring for each direction and CPU, and totals.
pub(super) fn memory(facts: &HostFacts) -> Outcome {
    let (Some(links), Some(online), Some(possible)) =
        (&facts.netdevs, facts.kernel.cpus_online, facts.kernel.cpus_possible)
    else {
        return Unknown("the network devices or the CPUs cannot be listed".to_owned());
    };
    let chosen = choose(links, &[], limits::BURST_DEVICES);
    let sampled = chosen.iter().filter(|chosen| matches!(chosen.verdict, Verdict::Sample(_)));
    let names: Vec<&str> = sampled.map(|chosen| &*chosen.link.name).collect();
    if names.is_empty() {
        return Missing("no network device has hardware behind it".to_owned());
    }
    let slots = if names.len() >= limits::BURST_DEVICES_MANY { SLOTS_MANY } else { SLOTS };
    let totals = u64::from(direction::COUNT) * u64::from(possible) * size_of::<Totals>() as u64;
    let device = ring_bytes(online, slots) + totals;
    let all = device * names.len() as u64;
    Good(format!(
        "{} KiB for {}: {} KiB each, {online} CPUs with {slots} buckets each way",
        all.div_ceil(1024),
        listed(names.iter()),
        device.div_ceil(1024)
    ))
}

/// Whether anything on this host marks what TCP sends again: the one thing by which packets are changed.
pub(super) fn marking(facts: &HostFacts) -> Outcome {
    match &facts.marking {
        None => Unknown("not looked for".to_owned()),
        Some(Err(why)) => Unknown(why.clone()),
        Some(Ok(0)) => Good("nothing marks packets".to_owned()),
        Some(Ok(1)) => Missing("on: 1 program marks what TCP sends again".to_owned()),
        Some(Ok(count)) => Missing(format!("on: {count} programs mark what TCP sends again")),
    }
}

/// Whether the sampler's count of what is sent again can be held against the kernel's own.
pub(super) fn retransmissions(facts: &HostFacts) -> Outcome {
    match &facts.retransmissions {
        None => Unknown("not tried".to_owned()),
        Some(Err(why)) => Missing(why.clone()),
        Some(Ok(true)) => Good("tcp_retransmit_skb, which tells of failures too".to_owned()),
        Some(Ok(false)) => Good("tcp_retransmit_skb, which does not tell of failures".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bursts::fake::link;
    use crate::host::kernel::KernelFacts;

    #[track_caller]
    fn check(devices: u32, cpus: u32, expected: Outcome) {
        let kernel = KernelFacts { cpus_online: Some(cpus), cpus_possible: Some(cpus), ..KernelFacts::default() };
        let netdevs = Some((0..devices).map(|index| link(index + 2, &format!("eth{index}"))).collect());
        assert_eq!(memory(&HostFacts { kernel, netdevs, ..HostFacts::default() }), expected);
    }

    #[test]
    fn whoever_marks_packets_is_told() {
        let of = |marking| super::marking(&HostFacts { marking, ..HostFacts::default() });
        assert_eq!(of(Some(Ok(0))), Good("nothing marks packets".to_owned()));
        assert_eq!(of(Some(Ok(2))), Missing("on: 2 programs mark what TCP sends again".to_owned()));
        assert_eq!(of(Some(Err("EPERM".to_owned()))), Unknown("EPERM".to_owned()));
    }

    #[test]
    fn memory_grows_with_processors_and_is_bounded_for_many_devices() {
        let said = |text: &str| Good(text.to_owned());
        check(1, 2, said("129 KiB for eth0: 129 KiB each, 2 CPUs with 512 buckets each way"));
        // 16 MiB and the totals.
        check(1, 256, said("16448 KiB for eth0: 16448 KiB each, 256 CPUs with 512 buckets each way"));
        let eight = "eth0, eth1, eth2, eth3, eth4, eth5, eth6, eth7";
        let text = format!("66048 KiB for {eight}: 8256 KiB each, 256 CPUs with 256 buckets each way");
        check(8, 256, said(&text));
        check(0, 2, Missing("no network device has hardware behind it".to_owned()));
        assert!(matches!(memory(&HostFacts::default()), Unknown(_)));
    }
}

//! Which network devices are sampled: chosen by name, and each packet counted once, on the lowest device.

use std::fmt;
use std::str::FromStr;

use analysis::series::BitsPerSecond;
use wildmatch::WildMatch;

use crate::host::links::Link;

/// Kinds of device whose `link` is the device below; that of others, such as `veth`, is a peer.
const ON_A_LINK: [&str; 8] = ["vlan", "macvlan", "macvtap", "ipvlan", "ipvtap", "vxlan", "macsec", "hsr"];

/// A name of devices with `*` and `?`, or with `!` before it one of devices that are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Glob {
    pattern: String,
    out: bool,
}

/// A name that no device can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write names of network devices, such as \"eth0\", \"eth*\" or \"!veth*\"")]
pub(crate) struct NoGlob;

impl FromStr for Glob {
    type Err = NoGlob;

    fn from_str(text: &str) -> Result<Self, NoGlob> {
        let (out, name) = text.strip_prefix('!').map_or((false, text), |name| (true, name));
        // IFNAMSIZ less the end; a device's name has neither slashes nor blanks (dev_valid_name).
        let odd = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '/' | '!');
        if name.is_empty() || name.len() > 15 || name.contains(odd) {
            return Err(NoGlob);
        }
        Ok(Self { pattern: name.to_owned(), out })
    }
}

impl Glob {
    /// Whether it names the device.
    pub(crate) fn matches(&self, name: &str) -> bool {
        WildMatch::new(&self.pattern).matches(name)
    }
}

/// Line rates given by hand, which go before what devices state: the first that names the device.
pub(crate) fn line_rate(link: &Link, given: &[(Glob, BitsPerSecond)]) -> Option<BitsPerSecond> {
    given.iter().find(|(glob, _)| glob.matches(&link.name)).map(|(_, rate)| *rate).or(link.speed)
}

/// A device that is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chosen {
    /// The device.
    pub(crate) link: Link,
    /// What becomes of it.
    pub(crate) verdict: Verdict,
}

/// What becomes of a device that is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is sampled, at this layer.
    Sample(Layer),
    /// Its packets are counted on the device below, which is wanted too.
    CountedOn(String),
    /// More devices are wanted than are sampled.
    TooMany,
}

/// Where in the host's stack of devices packets are counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layer(Option<String>);

impl fmt::Display for Layer {
    /// `device`, or the kind of the software that makes the device.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_deref().unwrap_or("device"))
    }
}

/// The devices that are wanted, by rising index.
///
/// Without a name to take in, all physical ones; `lo` never, where every packet would be counted twice.
pub(crate) fn choose(links: &[Link], globs: &[Glob], most: usize) -> Vec<Chosen> {
    let named = globs.iter().any(|glob| !glob.out);
    let is_wanted = |link: &&Link| {
        let taken = if named { globs.iter().any(|glob| !glob.out && glob.matches(&link.name)) } else { link.physical };
        taken && !link.loopback && !globs.iter().any(|glob| glob.out && glob.matches(&link.name))
    };
    let wanted: Vec<&Link> = links.iter().filter(is_wanted).collect();
    let mut sampled = 0;
    let verdict = |link: &Link| match wanted.iter().find(|below| is_below(links, below, link)) {
        Some(below) => Verdict::CountedOn(below.name.clone()),
        None if sampled >= most => Verdict::TooMany,
        None => {
            sampled += 1;
            Verdict::Sample(Layer(link.kind.clone()))
        }
    };
    let verdicts: Vec<_> = wanted.iter().copied().map(verdict).collect();
    wanted.iter().zip(verdicts).map(|(link, verdict)| Chosen { link: (*link).clone(), verdict }).collect()
}

/// How high devices may stand on each other: vxlan on vlan on bond is three. Also ends circles.
const DEPTH: usize = 8;

/// Whether packets of `above` also pass `below`.
fn is_below(links: &[Link], below: &Link, above: &Link) -> bool {
    let mut level = vec![above.ifindex];
    for _ in 0..DEPTH {
        let next: Vec<u32> = links
            .iter()
            .filter(|link| level.iter().any(|index| stands_on(links, *index, link)))
            .map(|link| link.ifindex)
            .filter(|index| *index != above.ifindex)
            .collect();
        if next.contains(&below.ifindex) {
            return true;
        }
        if next.is_empty() {
            return false;
        }
        level = next;
    }
    false
}

/// Whether the device `above` was made on `below`, or has it as a port.
fn stands_on(links: &[Link], above: u32, below: &Link) -> bool {
    let made_on = |link: &Link| {
        link.link == Some(below.ifindex) && link.kind.as_deref().is_some_and(|kind| ON_A_LINK.contains(&kind))
    };
    below.master == Some(above) || links.iter().any(|link| link.ifindex == above && made_on(link))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(ifindex: u32, name: &str) -> Link {
        Link { ifindex, name: name.into(), physical: name.starts_with("eth"), ..Link::default() }
    }

    fn made(ifindex: u32, name: &str, kind: &str, on: Option<u32>) -> Link {
        Link { kind: Some(kind.into()), physical: false, link: on, ..link(ifindex, name) }
    }

    fn port(link: Link, master: u32) -> Link {
        Link { master: Some(master), ..link }
    }

    /// Two NICs in a bond, a VLAN on it, a bridge over that with a container's end of a veth pair; one more NIC.
    fn host() -> Vec<Link> {
        vec![
            Link { loopback: true, ..link(1, "lo") },
            port(link(2, "eth0"), 4),
            port(link(3, "eth1"), 4),
            made(4, "bond0", "bond", None),
            port(made(5, "bond0.7", "vlan", Some(4)), 6),
            made(6, "br0", "bridge", None),
            port(made(7, "veth0", "veth", Some(2)), 6),
            link(8, "eth2"),
        ]
    }

    #[track_caller]
    fn check(globs: &[&str], expected: &[&str]) {
        let globs: Vec<Glob> = globs.iter().map(|glob| glob.parse().unwrap()).collect();
        let shown = |chosen: Chosen| match chosen.verdict {
            Verdict::Sample(layer) => format!("{}: {layer}", chosen.link.name),
            Verdict::CountedOn(below) => format!("{} on {below}", chosen.link.name),
            Verdict::TooMany => format!("{}: too many", chosen.link.name),
        };
        let found: Vec<_> = choose(&host(), &globs, 3).into_iter().map(shown).collect();
        assert_eq!(found, expected, "{globs:?}");
    }

    #[test]
    fn physical_devices_are_the_default() {
        check(&[], &["eth0: device", "eth1: device", "eth2: device"]);
        check(&["!eth1"], &["eth0: device", "eth2: device"]);
        check(&["lo"], &[]);
        check(&["none*"], &[]);
    }

    #[test]
    fn a_packet_is_counted_once_on_the_lowest_device() {
        check(&["eth0", "bond0"], &["eth0: device", "bond0 on eth0"]);
        check(&["bond0*"], &["bond0: bond", "bond0.7 on bond0"]);
        check(&["br0", "eth1"], &["eth1: device", "br0 on eth1"]);
        check(&["br0", "veth*"], &["br0 on veth0", "veth0: veth"]);
        check(&["br0"], &["br0: bridge"]);
        // The other end of a veth pair is not below it.
        check(&["veth0", "eth0"], &["eth0: device", "veth0: veth"]);
        check(&["*", "!eth*", "!bond0*"], &["br0 on veth0", "veth0: veth"]);
    }

    #[test]
    fn no_more_devices_are_sampled_than_allowed() {
        check(
            &["eth*", "veth?", "bond0"],
            &["eth0: device", "eth1: device", "bond0 on eth0", "veth0: veth", "eth2: too many"],
        );
    }

    #[test]
    fn devices_that_claim_to_stand_on_each_other_end_nothing() {
        let links = [made(1, "a", "vlan", Some(2)), made(2, "b", "vlan", Some(1)), link(3, "eth0")];
        let globs = ["*".parse().unwrap()];
        assert_eq!(choose(&links, &globs, 9).len(), 3);
    }

    #[test]
    fn names_that_no_device_has_are_refused() {
        for (text, good) in [
            ("eth0", true),
            ("!veth*", true),
            ("en?", true),
            ("", false),
            ("!", false),
            ("!!a", false),
            ("a b", false),
            ("a/b", false),
            ("a234567890123456", false),
        ] {
            assert_eq!(text.parse::<Glob>().is_ok(), good, "{text}");
        }
    }

    #[test]
    fn a_line_rate_by_hand_goes_before_the_device_s() {
        let given = [("eth*".parse().unwrap(), BitsPerSecond(5)), ("*".parse().unwrap(), BitsPerSecond(6))];
        let link = Link { speed: Some(BitsPerSecond(9)), ..link(2, "eth0") };
        assert_eq!(line_rate(&link, &given), Some(BitsPerSecond(5)));
        assert_eq!(line_rate(&Link { name: "ib0".into(), ..link.clone() }, &given), Some(BitsPerSecond(6)));
        assert_eq!(line_rate(&link, &[]), Some(BitsPerSecond(9)));
    }
}

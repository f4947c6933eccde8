//! NICs that are not well, as drivers and the kernel tell it: events, what they mean, whom they are about.

pub(crate) mod names;
pub(crate) mod record;
pub(crate) mod resources;

use std::time::SystemTime;

use crate::host::rdma::RdmaFacts;
use names::{About, Row};

/// Something a driver or the kernel said about a NIC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HealthEvent {
    /// When, on the wall clock.
    pub(crate) time: SystemTime,
    /// What happened: the name of the hook that saw it.
    pub(crate) event: String,
    /// Whom it is about.
    pub(crate) place: Place,
    /// The part that reports: a devlink health reporter, such as `fw_fatal` or `tx`.
    pub(crate) part: Option<String>,
    /// What the driver says in words.
    pub(crate) message: Option<String>,
    /// The numbers that came with it, by name.
    pub(crate) values: Vec<(String, i64)>,
}

/// A NIC by those of its names that are known.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// The RDMA device.
    pub(crate) device: Option<String>,
    /// The network device.
    pub(crate) netdev: Option<String>,
    /// The address on its bus, such as `0000:3b:00.0`.
    pub(crate) pci: Option<String>,
}

impl Place {
    /// The names that belong to the one which the kernel has given; that one alone where the host knows no more.
    pub(crate) fn find(about: About, name: &str, host: &RdmaFacts) -> Self {
        if name.is_empty() {
            return Self::default();
        }
        let known = match about {
            About::Bus => host.devices.iter().find(|device| device.pci.as_deref() == Some(name)),
            About::Rdma => host.device(name),
            About::Netdev => host
                .devices
                .iter()
                .find(|device| device.ports.iter().any(|port| port.netdevs.iter().any(|n| n == name))),
        };
        let mut place = known.map_or_else(Self::default, |device| {
            // Which port of several it is about is told by a network device's own name only.
            let netdev = device.ports.first().filter(|_| device.ports.len() == 1).and_then(|port| port.netdevs.first());
            Self { device: Some(device.name.clone()), netdev: netdev.cloned(), pci: device.pci.clone() }
        });
        let own = match about {
            About::Bus => &mut place.pci,
            About::Rdma => &mut place.device,
            About::Netdev => &mut place.netdev,
        };
        *own = Some(name.to_owned());
        place
    }

    /// The name that says most.
    pub(crate) fn name(&self) -> Option<&str> {
        [&self.device, &self.netdev, &self.pci].into_iter().find_map(Option::as_deref)
    }
}

impl HealthEvent {
    /// What it means and what to look at next.
    pub(crate) fn meaning(&self) -> Option<&'static str> {
        Row::find(&self.event).map(|row| row.meaning)
    }

    /// Whether it is about this RDMA or network device.
    pub(crate) fn is_about(&self, name: &str) -> bool {
        [&self.place.device, &self.place.netdev].into_iter().any(|own| own.as_deref() == Some(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::rdma::{RdmaDevice, RdmaPort};

    fn text(name: &str) -> Option<String> {
        Some(name.to_owned())
    }

    #[track_caller]
    fn check(about: About, name: &str, expected: [Option<&str>; 3]) {
        let port = |netdev: &str| RdmaPort { netdevs: vec![netdev.to_owned()], ..RdmaPort::default() };
        let device = |name: &str, pci: &str, ports: &[&str]| RdmaDevice {
            name: name.to_owned(),
            pci: text(pci),
            ports: ports.iter().map(|netdev| port(netdev)).collect(),
            ..RdmaDevice::default()
        };
        let devices =
            vec![device("mlx5_0", "0000:3b:00.0", &["eth0"]), device("mlx4_0", "0000:5e:00.0", &["eth1", "eth2"])];
        let host = RdmaFacts { devices, ..RdmaFacts::default() };
        let place = Place::find(about, name, &host);
        assert_eq!([place.device, place.netdev, place.pci], expected.map(|name| name.and_then(text)), "{name}");
    }

    #[test]
    fn one_name_leads_to_the_others() {
        check(About::Bus, "0000:3b:00.0", [Some("mlx5_0"), Some("eth0"), Some("0000:3b:00.0")]);
        check(About::Rdma, "mlx5_0", [Some("mlx5_0"), Some("eth0"), Some("0000:3b:00.0")]);
        check(About::Netdev, "eth0", [Some("mlx5_0"), Some("eth0"), Some("0000:3b:00.0")]);
    }

    #[test]
    fn of_two_ports_only_a_network_device_tells_which() {
        check(About::Bus, "0000:5e:00.0", [Some("mlx4_0"), None, Some("0000:5e:00.0")]);
        check(About::Netdev, "eth2", [Some("mlx4_0"), Some("eth2"), Some("0000:5e:00.0")]);
    }

    #[test]
    fn a_nic_without_rdma_has_the_name_it_was_given() {
        check(About::Bus, "0000:01:00.0", [None, None, Some("0000:01:00.0")]);
        check(About::Netdev, "lo", [None, Some("lo"), None]);
        check(About::Rdma, "gone", [Some("gone"), None, None]);
        check(About::Bus, "", [None; 3]);
    }
}

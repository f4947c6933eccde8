//! A network device as the command line knows it: by its name.

use anyhow::{Context as _, bail};

use super::netlink::{Counters, Netlink};

/// A network device and what it has counted itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Interface {
    /// Its number.
    pub(crate) ifindex: u32,
    /// What it has counted: received, sent.
    pub(crate) counters: [Counters; 2],
}

impl Interface {
    /// Looks a device up in the network namespace of the calling thread.
    ///
    /// # Errors
    ///
    /// If there is none of this name: the message names those there are.
    pub(crate) fn find(name: &str) -> anyhow::Result<Self> {
        let devices = Netlink::open().and_then(|netlink| netlink.devices()).context("asking for network devices")?;
        match devices.iter().find(|device| device.name == name) {
            Some(device) => Ok(Self { ifindex: device.ifindex, counters: device.counters }),
            None => {
                let names: Vec<&str> = devices.iter().map(|device| device.name.as_str()).collect();
                bail!("there is no network device {name}; this host has {}", names.join(", "))
            }
        }
    }
}

//! Data centre bridging (include/uapi/linux/dcbnl.h): for which priorities flow control is on.

use super::{ATTRIBUTE, Channel, attribute, find};

const RTM_GETDCB: u16 = 78;
const DCB_CMD_IEEE_GET: u8 = 21;
const DCB_ATTR_IFNAME: u16 = 1;
const DCB_ATTR_IEEE: u16 = 13;
const DCB_ATTR_IEEE_PFC: u16 = 2;

/// Priorities with flow control, one bit each; `None` if the device does not say.
pub(crate) fn priorities(netdev: &str) -> Option<u8> {
    let mut body = vec![0, DCB_CMD_IEEE_GET, 0, 0];
    attribute(&mut body, DCB_ATTR_IFNAME, &[netdev.as_bytes(), &[0]].concat());
    let answer = Channel::open(None).ok()?.ask(RTM_GETDCB, &body).ok()?;
    enabled(answer.get(ATTRIBUTE..)?)
}

/// The bit mask in the attributes of an answer. `struct ieee_pfc` begins with what can be, then what is enabled.
fn enabled(attributes: &[u8]) -> Option<u8> {
    let ieee = find(attributes, DCB_ATTR_IEEE)?;
    find(ieee, DCB_ATTR_IEEE_PFC)?.get(1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::netlink::NESTED;

    #[test]
    fn enabled_priorities_are_found_in_the_nested_attributes() {
        let mut pfc = Vec::new();
        attribute(&mut pfc, 1, &[9; 5]);
        attribute(&mut pfc, DCB_ATTR_IEEE_PFC, &[8, 0b1000, 0, 0]);
        let mut all = Vec::new();
        attribute(&mut all, DCB_ATTR_IFNAME, b"eth0\0");
        attribute(&mut all, DCB_ATTR_IEEE | NESTED, &pfc);
        assert_eq!(enabled(&all), Some(0b1000));
        for length in 0..all.len() {
            // Cut off anywhere: no panic, and never a mask that is not there.
            assert!(matches!(enabled(&all[..length]), None | Some(0b1000)), "{length}");
        }
    }

    #[test]
    fn a_device_without_data_centre_bridging_does_not_say() {
        assert_eq!(priorities("lo"), None);
        assert_eq!(priorities("no-such-device"), None);
    }
}

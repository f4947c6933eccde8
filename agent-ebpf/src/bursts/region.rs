//! Whether a packet's peer is of the host's own region.

use agent_common::bucket::direction;
use aya_ebpf::bindings::__sk_buff;

use super::load::load;
use super::maps;
use super::parse::Headers;

/// The peer is outside of the configured prefixes. Without a network header there is no peer.
#[inline(always)]
pub(crate) fn is_far(skb: *mut __sk_buff, direction: u32, headers: &Headers) -> bool {
    if !maps::regional() {
        return false;
    }
    let received = direction == direction::RX;
    let address = match headers.version {
        4 => {
            let address = load(skb, headers.network + if received { 12 } else { 16 });
            address.map(|[address]: [u32; 1]| [0, 0, 0xffff_u32.to_be(), address])
        }
        6 => load(skb, headers.network + if received { 8 } else { 24 }),
        _ => None,
    };
    address.is_some_and(|address| !maps::is_near(address))
}

//! How many objects of each type an RDMA device holds, and the most that it can hold, as RDMA netlink tells it.

use std::io;

use crate::counters::netlink::{self, Rdma, long, text};

/// RDMA netlink (include/uapi/rdma/rdma_netlink.h): the client in the upper bits of a message's type, the command below.
const RES_GET: u16 = 5 << 10 | 9;
const DEVICE_NAME: u16 = 2;
const SUMMARY: u16 = 15;
const NAME: u16 = 17;
const CURRENT: u16 = 18;
/// Newer than 6.12, there in 7.3: the device's own limit, left out where there is none.
const MOST: u16 = 118;

/// Objects of one type on one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Used {
    /// The RDMA device.
    pub(crate) device: String,
    /// The type, as the kernel names it: `qp`, `cq`, `mr`, `pd`, `srq`, `cm_id`, `ctx`.
    pub(crate) kind: String,
    /// How many there are.
    pub(crate) count: u64,
    /// The most there can be; absent where the kernel does not tell, or there is no such number.
    pub(crate) limit: Option<u64>,
}

/// The objects of all devices.
///
/// # Errors
///
/// The kernel's.
pub(crate) fn read(rdma: &Rdma) -> io::Result<Vec<Used>> {
    let answers = rdma.list(RES_GET)?;
    Ok(answers.iter().flat_map(|answer| parse(answer)).collect())
}

/// One device's answer.
fn parse(answer: &[u8]) -> Vec<Used> {
    let Some(device) = netlink::find(answer, DEVICE_NAME).map(text) else { return Vec::new() };
    let summary = netlink::find(answer, SUMMARY).unwrap_or_default();
    let entry = |(_, entry): (u16, &[u8])| {
        let number = |kind| long(netlink::find(entry, kind)?);
        Some(Used {
            device: device.clone(),
            kind: text(netlink::find(entry, NAME)?),
            count: number(CURRENT)?,
            limit: number(MOST).filter(|limit| *limit > 0),
        })
    };
    netlink::attributes(summary).filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::netlink::attribute;

    fn entry(name: &str, count: u64, limit: Option<u64>) -> Vec<u8> {
        let mut inner = Vec::new();
        attribute(&mut inner, NAME, &[name.as_bytes(), &[0]].concat());
        attribute(&mut inner, CURRENT, &count.to_ne_bytes());
        if let Some(limit) = limit {
            attribute(&mut inner, MOST, &limit.to_ne_bytes());
        }
        inner
    }

    fn answer() -> Vec<u8> {
        const ENTRY: u16 = 16;
        let mut summary = Vec::new();
        for entry in [entry("qp", 3, Some(128)), entry("cm_id", 7, None), entry("mr", 0, Some(0))] {
            attribute(&mut summary, ENTRY | 0x8000, &entry);
        }
        let mut answer = Vec::new();
        attribute(&mut answer, 1, &5u32.to_ne_bytes());
        attribute(&mut answer, DEVICE_NAME, b"mlx5_0\0");
        attribute(&mut answer, SUMMARY | 0x8000, &summary);
        answer
    }

    #[test]
    fn each_type_is_read_with_its_limit_if_there_is_one() {
        let used = |kind: &str, count, limit| Used { device: "mlx5_0".into(), kind: kind.into(), count, limit };
        assert_eq!(parse(&answer()), [used("qp", 3, Some(128)), used("cm_id", 7, None), used("mr", 0, None)]);
    }

    #[test]
    fn what_is_cut_off_makes_nothing_up() {
        let (whole, all) = (answer(), parse(&answer()));
        for length in 0..whole.len() {
            assert!(parse(&whole[..length]).iter().all(|used| all.contains(used)), "{length}");
        }
    }
}

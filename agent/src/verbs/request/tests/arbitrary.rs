//! Any bytes under any key: decoding ends, and what it says holds together.

use agent_common::verb::{VerbKey, interface};
use proptest::collection::vec;
use proptest::prelude::*;

use super::super::types::Request;
use super::super::{RawRequest, decode};
use super::attr;
use crate::verbs::names::{is_named, verb_name};

/// Keys that decode to something, and any others.
fn keys() -> impl Strategy<Value = VerbKey> {
    prop_oneof![
        (0..8_u16, prop_oneof![Just(0), Just(1_u16)], 0..20_u16, 0..60_u16)
            .prop_map(|(via, driver, object, method)| VerbKey::new(via, driver, object, method)),
        (0..4_u16, 0..5_u16).prop_map(|(object, method)| VerbKey::ioctl(0x1000 + object, 0x1000 + method, 1)),
        any::<u64>().prop_map(VerbKey),
    ]
}

/// Attributes of plausible ids and lengths, with a torn one at the end at times.
fn attributes() -> impl Strategy<Value = Vec<u8>> {
    let ids = prop_oneof![0..12_u16, 0x1000..0x1008_u16];
    let lens = prop_oneof![0..10_u16, any::<u16>()];
    let whole = vec((ids, lens, any::<u64>()).prop_map(|(id, len, data)| attr(id, len, data)), 0..16);
    (whole, vec(any::<u8>(), 0..16)).prop_map(|(whole, torn)| [whole.concat(), torn].concat())
}

/// Everything that a write command can say, as numbers.
fn values(request: &Request) -> Vec<Option<u128>> {
    let (qp, mr) = (request.qp.clone().unwrap_or_default(), request.mr.clone().unwrap_or_default());
    let (cq, srq) = (request.cq.clone().unwrap_or_default(), request.srq.clone().unwrap_or_default());
    let (ah, caps) = (request.ah.clone().unwrap_or_default(), qp.caps.unwrap_or_default());
    let words = [
        request.pd_handle,
        request.handle,
        qp.handle,
        qp.attr_mask.map(|mask| mask.0),
        qp.sq_psn,
        qp.rq_psn,
        qp.dest_qpn,
        qp.send_cq_handle,
        qp.recv_cq_handle,
        qp.srq_handle,
        qp.qpn,
        qp.caps.map(|_| caps.max_inline),
        mr.handle,
        cq.handle,
        cq.cqe,
        cq.comp_vector,
        srq.handle,
        srq.max_wr,
        srq.max_sge,
    ];
    let bytes = [
        request.port,
        qp.state_from.map(|state| state.0),
        qp.state_to.map(|state| state.0),
        qp.path_mtu.map(|mtu| mtu.0),
        qp.gid_index,
        qp.port,
        qp.timeout,
        ah.gid_index,
        ah.port,
    ];
    let longs = [mr.address, mr.length, mr.iova, mr.access.map(|access| access.0), qp.qp_type.map(|kind| kind.0)];
    let gids = [qp.remote_gid, ah.remote_gid].map(|gid| gid.map(|gid| gid.to_bits()));
    let lids = [qp.remote_lid, ah.remote_lid, qp.pkey_index].map(|lid| lid.map(u128::from));
    let words = words.into_iter().map(|word| word.map(u128::from));
    let bytes = bytes.into_iter().map(|byte| byte.map(u128::from));
    let longs = longs.into_iter().map(|long| long.map(u128::from));
    words.chain(bytes).chain(longs).chain(gids).chain(lids).collect()
}

proptest! {
    #[test]
    fn no_input_panics_and_names_are_bounded(
        key in keys(),
        attrs in attributes(),
        core_in in vec(any::<u8>(), 0..300),
        payload in vec(any::<u8>(), 0..32),
    ) {
        let request = decode(&RawRequest { key, attrs: &attrs, core_in: &core_in, payload: &payload });
        if let Some(qp) = &request.qp {
            prop_assert!(qp.attr_mask.is_none_or(|mask| mask.names().len() <= 32));
            prop_assert_ne!(qp, &Default::default());
        }
        if let Some(mr) = &request.mr {
            prop_assert!(mr.access.is_none_or(|access| access.names().len() <= 64));
        }
        prop_assert!(verb_name(key).len() <= 40);
    }

    #[test]
    fn only_verbs_with_a_name_say_anything(key in keys(), attrs in attributes(), bytes in vec(any::<u8>(), 300)) {
        let request = decode(&RawRequest { key, attrs: &attrs, core_in: &bytes, payload: &bytes });
        prop_assert!(is_named(key) || request == Request::default());
    }

    /// What is there stays the same, however much of the rest was copied: a cut takes away, it never
    /// changes. (A modify_qp without its mask says nothing; all else is field by field.)
    #[test]
    fn a_cut_takes_away_but_changes_nothing(extended in 0..2_u16, method in 0..60_u16, bytes in vec(any::<u8>(), 192), cut in 0..192_usize) {
        let key = VerbKey::new(interface::LEGACY_WRITE, 0, extended, method);
        let of = |core_in| decode(&RawRequest { key, core_in, ..RawRequest::default() });
        let (whole, part) = (of(&bytes), of(&bytes[..cut]));
        for (index, (part, whole)) in values(&part).into_iter().zip(values(&whole)).enumerate() {
            prop_assert!(part.is_none() || part == whole, "value {}: {:?} of {:?}", index, part, whole);
        }
    }
}

//! Records built byte by byte, whole, cut short and spoilt.

use proptest::prelude::*;

use super::*;

fn decoder() -> Decoder {
    let nowhere = std::path::Path::new("/nonexistent");
    Decoder::new(&Roots::at(nowhere, nowhere))
}

/// A failed `reg_mr`: umem pinning refused it with EFAULT, after another function had failed with ENODATA.
fn failure() -> Vec<u8> {
    let hook = |name: &str| Hook::all().find(|(_, hook)| hook.name == name).expect("a row").0;
    let mut b = Vec::new();
    let word = |b: &mut Vec<u8>, value: u32| b.extend(value.to_ne_bytes());
    word(&mut b, kind::FAILURE);
    word(&mut b, flag::TIMED);
    for value in [7_000u64, 1_500, VerbKey::legacy(agent_common::verb::interface::LEGACY_IOCTL, 9).0, 42] {
        b.extend(value.to_ne_bytes());
    }
    for value in [10, 11, 1000, 0, -14i32 as u32, 1, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0] {
        word(&mut b, value);
    }
    let links = [("get_gid_attr", 1u8, -61i32), ("umem_get", 1, -14), ("uverbs_ioctl", 0, -14)];
    for (name, layer, error) in links {
        b.extend(hook(name).to_ne_bytes());
        b.extend([layer, 0]);
        b.extend(error.to_ne_bytes());
    }
    b.resize(b.len() + (CHAIN - links.len()) * 8, 0);
    b.extend(*b"train\0\0\0\0\0\0\0\0\0\0\0");
    b.resize(b.len() + ATTRS * ATTR_BYTES + PAYLOAD + REQUEST, 0);
    b
}

#[test]
fn a_failure_keeps_its_answer_and_its_chain() {
    let bytes = failure();
    assert_eq!(bytes.len(), size_of::<agent_common::record::FailureRecord>());
    let Ok(Event::Verbs(found)) = decoder().decode(&bytes) else { panic!("no failure") };
    assert_eq!(found.verb, "reg_mr");
    assert_eq!((found.errno, found.duration_ns), (14, Some(1_500)));
    assert_eq!((found.answer.function.as_str(), found.answer.layer), ("umem_get", Layer::Core));
    assert_eq!(found.chain.iter().map(|link| link.errno).collect::<Vec<_>>(), [61, 14, 14]);
    assert_eq!((found.pid, found.tid, found.uid, found.comm.as_str()), (10, 11, 1000, "train"));
    assert!(!found.probe && !found.unsupported && found.qp.is_none() && found.device.is_none());
}

#[test]
fn a_device_that_is_gone_keeps_its_name() {
    let root = tempfile::tempdir().expect("a folder");
    let node = root.path().join("class/infiniband_verbs/uverbs0");
    std::fs::create_dir_all(&node).expect("a folder");
    std::fs::write(node.join("ibdev"), "rxe0\n").expect("a file");
    std::fs::write(node.join("dev"), "231:192\n").expect("a file");
    let mut decoder = Decoder::new(&Roots::at(root.path(), root.path()));
    let number = (231 << 20) | 192;
    assert_eq!(decoder.device_of(number), Some("rxe0"));
    std::fs::remove_dir_all(&node).expect("it is gone");
    decoder.refresh();
    assert_eq!((decoder.device_of(number), decoder.device_of(number + 1)), (Some("rxe0"), None));
    assert!(decoder.devices().uverbs.is_empty());
}

#[test]
fn no_prefix_of_a_record_is_one() {
    let bytes = failure();
    for end in 0..bytes.len() {
        assert!(decoder().decode(&bytes[..end]).is_err(), "{end}");
    }
}

#[test]
fn spoilt_records_are_refused_by_name() {
    // Byte offsets of fields in the record.
    let rows: [(usize, u32, DecodeError); 7] = [
        (0, 9, DecodeError::Kind(9)),
        (56, 5, DecodeError::Field("error")),
        (60, 3, DecodeError::Field("answer")),
        (64, 9, DecodeError::Field("chain")),
        (68, 17, DecodeError::Field("number of attributes")),
        (72, REQUEST as u32 + 1, DecodeError::Field("request's length")),
        (76, 25, DecodeError::Field("payload's length")),
    ];
    for (at, value, expected) in rows {
        let mut bytes = failure();
        bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        assert_eq!(decoder().decode(&bytes).expect_err("spoilt"), expected);
    }
}

#[test]
fn names_cannot_steer_a_terminal() {
    assert_eq!(text(b"a\x1b[2Jb\nc\0hidden"), "a\u{fffd}[2Jb\u{fffd}c");
}

#[test]
fn addresses_of_both_families_are_read() {
    let mut v4 = 2u16.to_ne_bytes().to_vec();
    v4.extend([0x4a, 0xbc, 10, 0, 0, 7]);
    v4.resize(32, 0);
    assert_eq!(address(&v4), Some((IpAddr::from([10, 0, 0, 7]), 19132)));
    let mut v6 = 10u16.to_ne_bytes().to_vec();
    v6.extend([0, 80, 0, 0, 0, 0]);
    v6.extend(Ipv6Addr::LOCALHOST.octets());
    v6.resize(32, 0);
    assert_eq!(address(&v6), Some((IpAddr::from(Ipv6Addr::LOCALHOST), 80)));
    assert_eq!(address(&[0; 32]), None);
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(kind in 0u32..5, rest in proptest::collection::vec(any::<u8>(), 0..700)) {
        let mut bytes = kind.to_ne_bytes().to_vec();
        bytes.extend(rest);
        let _ = decoder().decode(&bytes);
    }
}

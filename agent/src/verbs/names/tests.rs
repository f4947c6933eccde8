//! The tables of names against the key's own rules and against each other.

use std::collections::{BTreeMap, BTreeSet};

use agent_common::verb::{COMMAND_EXTENDED, VerbKey, interface};

use super::*;

#[track_caller]
fn check(key: VerbKey, expected: &str) {
    assert_eq!(verb_name(key), expected);
}

fn all() -> impl Iterator<Item = (VerbKey, &'static Row)> {
    NAMESPACES
        .iter()
        .flat_map(|space| space.rows.iter().map(|row| (VerbKey::new(space.interface, space.driver, row.0, row.1), row)))
}

#[test]
fn one_verb_has_one_name_by_every_interface() {
    const EX: u32 = COMMAND_EXTENDED;
    let same: &[(&str, &[VerbKey])] = &[
        (
            "create_qp",
            &[
                VerbKey::ioctl(4, 0, 1),
                VerbKey::legacy(interface::LEGACY_WRITE, 24),
                VerbKey::legacy(interface::LEGACY_IOCTL, EX | 24),
            ],
        ),
        ("open_device", &[VerbKey::ioctl(0, 3, 14), VerbKey::legacy(interface::LEGACY_IOCTL, 0)]),
        ("reg_mr", &[VerbKey::ioctl(7, 5, 14), VerbKey::legacy(interface::LEGACY_IOCTL, 9)]),
        ("dereg_mr", &[VerbKey::ioctl(7, 1, 14), VerbKey::legacy(interface::LEGACY_WRITE, 13)]),
        ("create_srq", &[VerbKey::ioctl(5, 0, 0), VerbKey::legacy(interface::LEGACY_WRITE, 39)]),
        ("rdma_resolve_addr", &[VerbKey::ucma(3), VerbKey::ucma(21)]),
    ];
    for (name, keys) in same {
        keys.iter().for_each(|key| check(*key, name));
    }
}

#[test]
fn vendor_methods_carry_the_driver() {
    check(VerbKey::ioctl(0x1001, 0x1000, 1), "mlx5.devx_obj_create");
    check(VerbKey::ioctl(1, 0x1000, 1), "mlx5.query_pd");
    check(VerbKey::ioctl(0x1000, 0x1000, 6), "bnxt_re.alloc_page");
    check(VerbKey::ioctl(7, 0x1000, 17), "efa.query_mr");
}

#[test]
fn what_has_no_row_goes_by_number() {
    check(VerbKey::ioctl(0x1007, 3, 0), "object_0x1007.method_0x3");
    check(VerbKey::ioctl(0x1007, 0x1009, 1), "mlx5.object_0x1007.method_0x1009");
    check(VerbKey::ioctl(0x1007, 0x1009, 77), "driver_77.object_0x1007.method_0x1009");
    check(VerbKey::ioctl(0x7ff, 0, 14), "object_0x7ff.method_0x0");
    check(VerbKey::legacy(interface::LEGACY_WRITE, 99), "command_99");
    check(VerbKey::legacy(interface::LEGACY_IOCTL, COMMAND_EXTENDED | 9), "ex_command_9");
    check(VerbKey::ucma(40), "rdma_command_40");
    check(VerbKey::MMAP, "mmap");
    check(VerbKey::OPEN, "open");
    check(VerbKey(u64::MAX), "unknown");
    assert!(!is_named(VerbKey::ioctl(0x1007, 3, 0)) && is_named(VerbKey::ioctl(4, 0, 0)));
}

#[test]
fn the_longest_number_is_bounded() {
    let widest = VerbKey::new(interface::IOCTL, u16::MAX, u16::MAX, u16::MAX);
    let longest_driver = VerbKey::new(interface::IOCTL, 10, u16::MAX, u16::MAX);
    assert!(verb_name(widest).len() <= 40 && verb_name(longest_driver).len() <= 40);
}

#[test]
fn no_key_stands_twice_and_rows_are_sorted() {
    for space in NAMESPACES {
        assert!(space.rows.is_sorted_by(|a, b| (a.0, a.1) < (b.0, b.1)), "driver {}", space.driver);
    }
    let spaces: BTreeSet<_> = NAMESPACES.iter().map(|space| (space.interface, space.driver)).collect();
    assert_eq!(spaces.len(), NAMESPACES.len());
}

#[test]
fn a_name_has_one_class() {
    let mut classes = BTreeMap::new();
    for (_, row) in all() {
        assert_eq!(*classes.entry(row.2).or_insert(row.3), row.3, "{}", row.2);
    }
}

#[test]
fn names_fit_a_metric_label() {
    for (_, row) in all() {
        let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'.');
        assert!(row.2.len() <= 40 && row.2.bytes().all(allowed), "{}", row.2);
    }
}

#[test]
fn the_kernel_side_agrees_on_what_a_query_is() {
    // Every id that has a row, and the numbers around them in every namespace.
    for (key, row) in all() {
        assert_eq!(key.is_query(), row.3 == VerbClass::Query, "{}", row.2);
    }
    let drivers = || 0..=22;
    let ids = || (0..80).chain(0x0ff0..0x1050);
    for interface in 0..=7 {
        for (driver, object) in drivers().flat_map(|driver| ids().map(move |object| (driver, object))) {
            for key in ids().map(|method| VerbKey::new(interface, driver, object, method)) {
                assert_eq!(key.is_query(), verb_class(key) == VerbClass::Query, "{key:?}");
            }
        }
    }
}

#[test]
fn lifecycle_names_are_the_calls_that_end_jobs() {
    let names: Vec<_> = lifecycle_names().collect();
    let unique: BTreeSet<_> = names.iter().copied().collect();
    assert_eq!(names.len(), unique.len());
    for name in
        ["create_qp", "modify_qp", "reg_mr", "reg_dmabuf_mr", "dealloc_pd", "open_device", "rdma_connect", "mmap"]
    {
        assert!(unique.contains(name), "{name}");
    }
    for name in ["query_port", "query_device", "poll_cq", "post_send", "invoke_write", "advise_mr"] {
        assert!(!unique.contains(name), "{name}");
    }
}

#[test]
fn classes_tell_the_steps_apart() {
    use VerbClass::Lifecycle;
    let rows = [
        (VerbKey::ioctl(4, 0, 0), Lifecycle(Step::Create)),
        (VerbKey::legacy(interface::LEGACY_IOCTL, 26), Lifecycle(Step::Modify)),
        (VerbKey::ioctl(7, 4, 0), Lifecycle(Step::Register)),
        (VerbKey::ioctl(7, 1, 0), Lifecycle(Step::Destroy)),
        (VerbKey::ioctl(0, 5, 0), VerbClass::Query),
        (VerbKey::legacy(interface::LEGACY_WRITE, 28), VerbClass::DataPath),
        (VerbKey::ioctl(99, 0, 0), VerbClass::Other),
    ];
    for (key, class) in rows {
        assert_eq!(verb_class(key), class, "{key:?}");
    }
}

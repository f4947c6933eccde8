//! Where verbs calls enter and leave the kernel.

use agent_common::hook::role;

use super::super::{Hook, Layer, Program};
use super::row;

const UVERBS: &[&str] = &["ib_uverbs", "ib_core"];
const UCM: &[&str] = &["rdma_ucm"];

const fn entry(
    role: u8,
    modules: &'static [&'static str],
    name: &'static str,
    functions: &'static [&'static str],
) -> Hook {
    row(Layer::Syscall, modules, name, functions).runs(Program::Syscall(role))
}

pub(super) const ROWS: &[Hook] = &[
    entry(role::IOCTL, UVERBS, "uverbs_ioctl", &["ib_uverbs_ioctl"]).long(),
    entry(role::WRITE, UVERBS, "uverbs_write", &["ib_uverbs_write"]).long(),
    entry(role::MMAP, UVERBS, "uverbs_mmap", &["ib_uverbs_mmap"]),
    entry(role::OPEN, UVERBS, "uverbs_open", &["ib_uverbs_open"]),
    entry(role::UCMA, UCM, "ucma_write", &["ucma_write"]).long(),
    row(Layer::Syscall, UVERBS, "uverbs_cmd_verbs", &["ib_uverbs_cmd_verbs"]).runs(Program::Framework),
];

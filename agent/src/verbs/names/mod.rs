//! What a verb is called and what kind of call it is: one table for each namespace.

mod cm;
mod legacy;
mod native;
#[cfg(test)]
mod tests;
mod vendor;

use std::borrow::Cow;
use std::collections::BTreeSet;

use agent_common::verb::{DRIVER_BNXT_RE, DRIVER_EFA, DRIVER_MLX5, VerbKey, interface};

/// What a call does to the application's resources; decides how its errors and times are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum VerbClass {
    /// Makes, changes or ends a resource: its failures are shown from 0 on and it has a histogram.
    Lifecycle(Step),
    /// Only asks: EOPNOTSUPP from it is probing, from all other classes a failure.
    Query,
    /// Posting and polling through the kernel, as soft devices do.
    DataPath,
    /// Anything else, unknown methods too.
    Other,
}

/// The step of a resource's life that a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    /// A resource is made.
    Create,
    /// A resource changes.
    Modify,
    /// A resource ends.
    Destroy,
    /// Memory is registered.
    Register,
}

const fn create() -> VerbClass {
    VerbClass::Lifecycle(Step::Create)
}

const fn modify() -> VerbClass {
    VerbClass::Lifecycle(Step::Modify)
}

const fn destroy() -> VerbClass {
    VerbClass::Lifecycle(Step::Destroy)
}

const fn register() -> VerbClass {
    VerbClass::Lifecycle(Step::Register)
}

/// One verb: object, method (as they stand in the key), name, class.
struct Row(u16, u16, &'static str, VerbClass);

/// The verbs of one interface and driver; `driver` is 0 for what all drivers share.
struct Namespace {
    interface: u16,
    driver: u16,
    rows: &'static [Row],
}

const NAMESPACES: &[Namespace] = &[
    Namespace { interface: interface::IOCTL, driver: 0, rows: native::ROWS },
    Namespace { interface: interface::IOCTL, driver: DRIVER_MLX5, rows: vendor::MLX5 },
    Namespace { interface: interface::IOCTL, driver: DRIVER_BNXT_RE, rows: vendor::BNXT_RE },
    Namespace { interface: interface::IOCTL, driver: DRIVER_EFA, rows: vendor::EFA },
    Namespace { interface: interface::LEGACY_IOCTL, driver: 0, rows: legacy::ROWS },
    Namespace { interface: interface::LEGACY_WRITE, driver: 0, rows: legacy::ROWS },
    Namespace { interface: interface::UCMA, driver: 0, rows: cm::ROWS },
    Namespace { interface: interface::MMAP, driver: 0, rows: &[Row(0, 0, "mmap", create())] },
    Namespace { interface: interface::OPEN, driver: 0, rows: &[Row(0, 0, "open", create())] },
];

fn row(key: VerbKey) -> Option<&'static Row> {
    NAMESPACES
        .iter()
        .find(|space| space.interface == key.interface() && space.driver == key.driver())?
        .rows
        .iter()
        .find(|row| row.0 == key.object() && row.1 == key.method())
}

/// The verb's name in the terms of libibverbs and librdmacm (`create_qp`, `rdma_connect`), with the
/// driver before it for what only one driver has (`mlx5.devx_obj_create`).
///
/// What has no row is named by number (`object_0x1007.method_0x3`, `command_99`, `rdma_command_40`),
/// at most 40 bytes. The same verb has the same name by whichever interface it comes.
#[must_use]
pub(crate) fn verb_name(key: VerbKey) -> Cow<'static, str> {
    match row(key) {
        Some(row) => Cow::Borrowed(row.2),
        None => numbered(key),
    }
}

/// Whether the verb has a name of its own. Numbers come from user space, so what keeps state for each
/// name has to bound the others.
#[must_use]
pub(crate) fn is_named(key: VerbKey) -> bool {
    row(key).is_some()
}

/// The verb's class; [`VerbClass::Other`] for what has no row.
#[must_use]
pub(crate) fn verb_class(key: VerbKey) -> VerbClass {
    row(key).map_or(VerbClass::Other, |row| row.3)
}

/// The names of all verbs that have one; some more than once.
pub(crate) fn all_names() -> impl Iterator<Item = &'static str> {
    NAMESPACES.iter().flat_map(|space| space.rows).map(|row| row.2)
}

/// The names of all life-cycle verbs, each once, in alphabetical order.
pub(crate) fn lifecycle_names() -> impl Iterator<Item = &'static str> {
    let names: BTreeSet<_> = NAMESPACES
        .iter()
        .flat_map(|space| space.rows)
        .filter(|row| matches!(row.3, VerbClass::Lifecycle(_)))
        .map(|row| row.2)
        .collect();
    names.into_iter()
}

fn numbered(key: VerbKey) -> Cow<'static, str> {
    let (object, method) = (key.object(), key.method());
    match key.interface() {
        interface::IOCTL => {
            let named = vendor::DRIVERS.iter().find(|driver| driver.0 == key.driver());
            match (named, key.driver()) {
                (Some((_, driver)), _) => format!("{driver}.object_{object:#x}.method_{method:#x}").into(),
                (None, 0) => format!("object_{object:#x}.method_{method:#x}").into(),
                (None, driver) => format!("driver_{driver}.object_{object:#x}.method_{method:#x}").into(),
            }
        }
        // Stands for a command that could not be read.
        interface::LEGACY_IOCTL | interface::LEGACY_WRITE | interface::UCMA if method == u16::MAX => "unknown".into(),
        interface::LEGACY_IOCTL | interface::LEGACY_WRITE if object == 0 => format!("command_{method}").into(),
        interface::LEGACY_IOCTL | interface::LEGACY_WRITE => format!("ex_command_{method}").into(),
        interface::UCMA => format!("rdma_command_{method}").into(),
        _ => Cow::Borrowed("unknown"),
    }
}

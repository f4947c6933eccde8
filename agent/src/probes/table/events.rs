//! Device events and connection manager events.

use super::super::{Hook, Layer, Program, Subject};
use super::row;

const fn event(modules: &'static [&'static str], name: &'static str, functions: &'static [&'static str]) -> Hook {
    row(Layer::Core, modules, name, functions).runs(Program::DeviceEvent).about(Subject::Device)
}

pub(super) const ROWS: &[Hook] = &[
    event(&["ib_core", "ib_uverbs"], "device_event", &["ib_dispatch_event"]),
    // The core tells each change of a GID past the function above (drivers/infiniband/core/cache.c).
    row(Layer::Core, &["ib_core", "ib_uverbs"], "gid_event", &["ib_dispatch_event_clients"])
        .runs(Program::GidEvent)
        .about(Subject::Device),
    event(&["ib_uverbs", "ib_core"], "qp_event", &["ib_uverbs_qp_event_handler"]),
    event(&["ib_uverbs", "ib_core"], "cq_event", &["ib_uverbs_cq_event_handler"]),
    row(Layer::Core, &["rdma_cm"], "cm_event", &["rdma_cma/cm_event_handler"])
        .runs(Program::CmEvent)
        .about(Subject::Cm),
];

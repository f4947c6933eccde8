//! Events for people, one line each, in columns.

use std::borrow::Cow;
use std::net::SocketAddr;

use super::json::{also, cm_error, port, qp_known, time_text};
use super::request::types::{Mr, Qp};
use crate::event::{CmEvent, DeviceEvent, Event, Failure};
use crate::health::HealthEvent;
use crate::host::errno::{errno_meaning, errno_name};
use crate::terminal::Column;

/// What stands where nothing is known.
const NONE: &str = "-";

/// The columns of every list of events.
pub(crate) const COLUMNS: [Column<Event>; 8] = [
    Column { title: "TIME", min: 8, wanted: 12, rank: 0, value: time },
    Column { title: "DEVICE", min: 7, wanted: 10, rank: 2, value: device },
    Column { title: "VERB", min: 10, wanted: 16, rank: 1, value: verb },
    Column { title: "ERROR", min: 9, wanted: 12, rank: 0, value: error },
    Column { title: "LAYER", min: 8, wanted: 8, rank: 7, value: layer },
    Column { title: "FUNCTION", min: 12, wanted: 24, rank: 3, value: function },
    Column { title: "PROCESS", min: 8, wanted: 20, rank: 4, value: process },
    Column { title: "DETAIL", min: 12, wanted: 12, rank: 6, value: detail },
];

/// The time of day in UTC, in milliseconds.
fn time(event: &Event) -> String {
    let time = match event {
        Event::Verbs(failure) => failure.time,
        Event::Cm(event) => event.time,
        Event::Device(event) => event.time,
        Event::Health(event) => event.time,
    };
    let text = time_text(time);
    text.as_deref().and_then(|text| text.get(11..23)).unwrap_or(NONE).to_owned()
}

fn device(event: &Event) -> String {
    let device = match event {
        Event::Verbs(failure) => failure.device.as_deref(),
        Event::Cm(_) => None,
        Event::Device(event) => event.device.as_deref(),
        Event::Health(event) => event.place.name(),
    };
    device.unwrap_or(NONE).to_owned()
}

fn verb(event: &Event) -> String {
    let name: &str = match event {
        Event::Verbs(failure) => &failure.verb,
        Event::Cm(event) => &event.name,
        Event::Device(event) => &event.name,
        Event::Health(event) => &event.event,
    };
    name.to_owned()
}

fn error(event: &Event) -> String {
    let error = match event {
        Event::Verbs(failure) => Some(failure.errno),
        Event::Cm(event) => cm_error(event),
        Event::Device(_) | Event::Health(_) => None,
    };
    error.map_or(Cow::Borrowed(NONE), errno_name).into_owned()
}

fn layer(event: &Event) -> String {
    let layer = match event {
        Event::Verbs(failure) => failure.answer.layer.name(),
        Event::Cm(_) => "cm",
        Event::Device(_) => "device",
        Event::Health(_) => "health",
    };
    layer.to_owned()
}

fn function(event: &Event) -> String {
    match event {
        Event::Verbs(failure) => failure.answer.function.clone(),
        _ => NONE.to_owned(),
    }
}

fn process(event: &Event) -> String {
    match event {
        Event::Verbs(failure) => format!("{}/{}", failure.comm, failure.pid),
        _ => NONE.to_owned(),
    }
}

fn detail(event: &Event) -> String {
    match event {
        Event::Verbs(failure) => failure_detail(failure),
        Event::Cm(event) => cm_detail(event),
        Event::Device(event) => device_detail(event),
        Event::Health(event) => health_detail(event),
    }
}

/// Parts of a line, as far as they are known.
#[derive(Default)]
struct Parts(Vec<String>);

impl Parts {
    fn add(&mut self, part: impl Into<String>) {
        self.0.push(part.into());
    }

    fn add_known<T>(&mut self, value: Option<T>, text: impl FnOnce(T) -> String) {
        self.0.extend(value.map(text));
    }
}

fn failure_detail(failure: &Failure) -> String {
    let mut parts = Parts::default();
    if failure.probe {
        parts.add("probe");
    }
    if failure.unsupported {
        parts.add("unsupported");
    }
    parts.add_known(failure.cause.as_ref(), Clone::clone);
    let request = &failure.request;
    qp_detail(failure, &mut parts);
    if let Some(mr) = &request.mr {
        mr_detail(mr, &mut parts);
    }
    if let Some(cq) = &request.cq {
        parts.add_known(cq.cqe, |cqe| format!("cqe {cqe}"));
        parts.add_known(cq.comp_vector, |vector| format!("vector {vector}"));
    }
    if let Some(srq) = &request.srq {
        parts.add_known(srq.max_wr, |wr| format!("max_wr {wr}"));
        parts.add_known(srq.max_sge, |sge| format!("max_sge {sge}"));
    }
    if let Some(ah) = &request.ah {
        parts.add_known(ah.gid_index, |index| format!("gid_index {index}"));
        parts.add_known(ah.remote_gid, |gid| format!("to {gid}"));
    }
    if let Some(cm) = &request.cm {
        parts.add_known(cm.source, |address| format!("from {address}"));
        parts.add_known(cm.destination, |address| format!("to {address}"));
    }
    parts.add_known(request.gid_index, |index| format!("gid_index {index}"));
    parts.add_known(port(failure), |port| format!("port {port}"));
    if let Some(firmware) = failure.firmware {
        parts.add(format!("firmware status {:#x} syndrome {:#x}", firmware.status, firmware.syndrome));
    }
    for link in also(failure) {
        parts.add(format!("also {} {}", link.function, errno_name(link.errno)));
    }
    parts.add_known(errno_meaning(failure.errno), |meaning| format!("({meaning})"));
    parts.0.join(" ")
}

/// The state a QP is in is told only where the call asks for another: that is where it explains something.
fn qp_detail(failure: &Failure, parts: &mut Parts) {
    let qp = failure.request.qp.as_ref();
    let (number, kind, from) = qp_known(qp, failure.qp.as_ref());
    parts.add_known(number, |number| format!("qp {number}"));
    parts.add_known(kind, |kind| kind.to_string());
    let Some(Qp { state_to, dest_qpn, gid_index, remote_gid, caps, .. }) = qp else { return };
    match (from, state_to) {
        (Some(from), Some(to)) => parts.add(format!("{from}->{to}")),
        (None, Some(to)) => parts.add(format!("->{to}")),
        (_, None) => {}
    }
    parts.add_known(*gid_index, |index| format!("gid_index {index}"));
    parts.add_known(*remote_gid, |gid| format!("to {gid}"));
    parts.add_known(*dest_qpn, |qpn| format!("remote qp {qpn}"));
    parts.add_known(*caps, |caps| {
        let sizes = (caps.max_send_wr, caps.max_recv_wr, caps.max_send_sge, caps.max_recv_sge, caps.max_inline);
        format!("wr {}/{} sge {}/{} inline {}", sizes.0, sizes.1, sizes.2, sizes.3, sizes.4)
    });
}

fn mr_detail(mr: &Mr, parts: &mut Parts) {
    parts.add_known(mr.kind, |kind| kind.name().to_owned());
    parts.add_known(mr.length, |length| format!("{length} bytes"));
    parts.add_known(mr.address, |address| format!("at {address:#x}"));
    parts.add_known(mr.fd, |fd| format!("fd {fd}"));
    parts.add_known(mr.access, |access| access.names().join("|"));
}

fn cm_detail(event: &CmEvent) -> String {
    let mut parts = Parts::default();
    parts.add_known(event.source, |address| format!("from {}", SocketAddr::from(address)));
    parts.add_known(event.destination, |address| format!("to {}", SocketAddr::from(address)));
    if event.status != 0 {
        parts.add(format!("status {}", event.status));
    }
    parts.add_known(event.reason.as_ref(), |reason| format!("({reason})"));
    parts.0.join(" ")
}

fn device_detail(event: &DeviceEvent) -> String {
    let mut parts = Parts::default();
    parts.add_known(event.port, |port| format!("port {port}"));
    parts.add_known(event.qp, |qp| format!("qp {qp}"));
    parts.0.join(" ")
}

fn health_detail(event: &HealthEvent) -> String {
    let mut parts = Parts::default();
    parts.add_known(event.place.netdev.as_ref(), Clone::clone);
    parts.add_known(event.place.pci.as_ref(), Clone::clone);
    parts.add_known(event.part.as_ref(), |part| format!("reporter {part}"));
    event.values.iter().for_each(|(name, value)| parts.add(format!("{name} {value}")));
    parts.add_known(event.message.as_ref(), |message| format!("\"{message}\""));
    parts.add_known(event.meaning(), |meaning| format!("({meaning})"));
    parts.0.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::{Paper, Table};
    use crate::verbs::samples;

    #[track_caller]
    fn check(event: &Event, expected: [&str; 8]) {
        let values = COLUMNS.each_ref().map(|column| (column.value)(event));
        assert_eq!(values, expected.map(str::to_owned));
    }

    #[test]
    fn a_failed_modify_qp_says_what_was_asked_for() {
        check(
            &samples::modify_qp(),
            [
                "12:34:56.789",
                "mlx5_0",
                "modify_qp",
                "ETIMEDOUT",
                "core",
                "ib_resolve_eth_dmac",
                "trainer/4711",
                "qp 291 RC INIT->RTR gid_index 3 to ::ffff:10.0.0.2 remote qp 17 port 1 \
                 also rdma_addr_find_l2_eth_by_grh ENODATA (timed out)",
            ],
        );
    }

    #[test]
    fn a_failed_registration_says_which_memory_and_what_the_firmware_said() {
        check(
            &samples::reg_mr(),
            [
                "12:34:56.789",
                "-",
                "reg_mr",
                "ENOMEM",
                "firmware",
                "mlx5_cmd_exec",
                "trainer/4711",
                "probe unsupported host 4096 bytes at 0x7f0000001000 LOCAL_WRITE|REMOTE_READ \
                 firmware status 0x5 syndrome 0x1c4f3a (out of memory, or over the locked-memory limit)",
            ],
        );
    }

    #[test]
    fn events_of_the_connection_manager_and_of_devices_say_between_whom_and_where() {
        check(
            &samples::cm_unreachable(),
            [
                "12:34:56.789",
                "-",
                "unreachable",
                "ETIMEDOUT",
                "cm",
                "-",
                "-",
                "from 10.0.0.1:4000 to [fd00::2]:18515 status -110 (timed out)",
            ],
        );
        check(&samples::port_error(), ["12:34:56.789", "mlx5_0", "port_err", "-", "device", "-", "-", "port 1"]);
    }

    #[test]
    fn a_nic_that_is_not_well_is_told_with_what_it_means() {
        check(
            &samples::firmware_fatal(),
            [
                "12:34:56.789",
                "mlx5_0",
                "devlink_health",
                "-",
                "health",
                "-",
                "-",
                "eth0 0000:3b:00.0 reporter fw_fatal \"FW fatal error reported\" (the driver reports an error; `devlink \
                 health show` and `devlink health diagnose` tell more)",
            ],
        );
        let values = COLUMNS.each_ref().map(|column| (column.value)(&samples::transmit_timeout()));
        assert_eq!((&*values[1], &*values[2]), ("eth1", "tx_timeout"));
        assert!(values[7].starts_with("eth1 queue 3 (the transmit queue stood still"), "{}", values[7]);
    }

    #[test]
    fn a_narrow_terminal_leaves_out_what_matters_least() {
        for (width, expected) in [
            (50, "TIME          DEVICE      VERB           ERROR"),
            (80, "TIME        DEVICE   VERB        ERROR      FUNCTION      PROCESS   DETAIL"),
        ] {
            let table = Table::new(&COLUMNS, Paper { width: Some(width), colour: false });
            assert_eq!(table.heading(), expected);
            assert!(table.row(&samples::modify_qp()).chars().count() <= width);
        }
    }
}

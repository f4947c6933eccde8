//! What an agent tells of itself, to the wire and back.

use std::time::Duration;

use analysis::series::UtcNs;
use proto::v1;

use super::event::{event_to_wire, layer_to_wire, time_from_wire, time_to_wire};
use super::filter::kind_to_wire;
use super::{Result, WireError, required};
use crate::daemon::findings::Firing;
use crate::daemon::handle::{Info, Loss, Status};
use crate::host::gid::GidTable;
use crate::host::rdma::{RdmaDevice, RdmaPort};
use crate::kernel::state::{HookState, How, State};
use crate::probes::Hook;
use crate::rpc::seen::{AgentInfo, AgentLoss, AgentStatus};

/// The ways to attach on both sides.
const ATTACHMENTS: [(How, v1::Attachment); 3] = [
    (How::Tracepoint, v1::Attachment::Tracepoint),
    (How::Fexit, v1::Attachment::Fexit),
    (How::Kprobe, v1::Attachment::Kprobe),
];

/// Who the agent is.
pub(crate) fn info_to_wire(info: &Info) -> v1::Info {
    v1::Info {
        version: info.version.to_owned(),
        host: info.host.clone(),
        boot_id: info.boot_id.clone(),
        kernel: info.kernel.clone(),
        started_ns: time_to_wire(info.started),
        metrics_address: info.metrics.map(|address| address.to_string()),
    }
}

impl TryFrom<v1::Info> for AgentInfo {
    type Error = WireError;

    fn try_from(wire: v1::Info) -> Result<Self> {
        Ok(Self {
            version: wire.version,
            started: time_from_wire("started_ns", wire.started_ns)?,
            host: wire.host,
            kernel: wire.kernel,
            boot_id: wire.boot_id,
            metrics: wire.metrics_address,
        })
    }
}

/// How the agent is doing.
pub(crate) fn status_to_wire(status: &Status) -> v1::GetStatusResponse {
    v1::GetStatusResponse {
        info: Some(info_to_wire(&status.info)),
        uptime_ns: u64::try_from(status.uptime.as_nanos()).unwrap_or(u64::MAX),
        hooks_attached: u32::try_from(status.hooks_attached).unwrap_or(u32::MAX),
        hooks_wanted: u32::try_from(status.hooks_wanted).unwrap_or(u32::MAX),
        degraded: status.degraded.clone(),
        calls: status.calls,
        failures: status.failures,
        probe_rejections: status.probes,
        last_failures: status.last_failures.iter().map(|event| event_to_wire(event, &status.info)).collect(),
        losses: status.lost.iter().map(Into::into).collect(),
        devices: status.devices.iter().map(Into::into).collect(),
        idle: status.idle.clone(),
        notes: status.notes.clone(),
        findings: status.findings.iter().cloned().map(Into::into).collect(),
    }
}

impl TryFrom<v1::GetStatusResponse> for AgentStatus {
    type Error = WireError;

    fn try_from(wire: v1::GetStatusResponse) -> Result<Self> {
        Ok(Self {
            info: required("info", wire.info)?.try_into()?,
            uptime: Duration::from_nanos(wire.uptime_ns),
            hooks_attached: wire.hooks_attached,
            hooks_wanted: wire.hooks_wanted,
            degraded: wire.degraded,
            idle: wire.idle,
            notes: wire.notes,
            calls: wire.calls,
            failures: wire.failures,
            probes: wire.probe_rejections,
            losses: wire.losses.into_iter().map(Into::into).collect(),
            last_failures: wire.last_failures.into_iter().map(TryInto::try_into).collect::<Result<_>>()?,
            devices: wire.devices.into_iter().map(Into::into).collect(),
            findings: wire.findings.into_iter().map(Into::into).collect(),
        })
    }
}

impl From<Firing> for v1::Finding {
    fn from(firing: Firing) -> Self {
        let Firing { finding, device, port, netdev, priority, object, since, evidence } = firing;
        Self { name: finding, device, port, netdev, priority, object, since_ns: since.0, evidence }
    }
}

impl From<v1::Finding> for Firing {
    fn from(wire: v1::Finding) -> Self {
        let v1::Finding { name, device, port, netdev, priority, object, since_ns, evidence } = wire;
        Self { finding: name, device, port, netdev, priority, object, since: UtcNs(since_ns), evidence }
    }
}

impl From<&Loss> for v1::Loss {
    fn from(loss: &Loss) -> Self {
        Self {
            program: loss.program.to_owned(),
            stage: loss.stage.to_owned(),
            reason: loss.reason.to_owned(),
            count: loss.count,
        }
    }
}

impl From<v1::Loss> for AgentLoss {
    fn from(wire: v1::Loss) -> Self {
        Self { program: wire.program, stage: wire.stage, reason: wire.reason, count: wire.count }
    }
}

impl From<&RdmaDevice> for v1::Device {
    fn from(device: &RdmaDevice) -> Self {
        Self {
            name: device.name.clone(),
            driver: device.driver.clone(),
            software: device.software,
            pci: device.pci.clone(),
            firmware: device.firmware.clone(),
            node_guid: device.node_guid.clone(),
            node_type: device.node_type.clone(),
            ports: device.ports.iter().map(Into::into).collect(),
        }
    }
}

impl From<v1::Device> for RdmaDevice {
    fn from(wire: v1::Device) -> Self {
        Self {
            name: wire.name,
            driver: wire.driver,
            software: wire.software,
            pci: wire.pci,
            // Only metrics tell.
            function: None,
            firmware: wire.firmware,
            node_guid: wire.node_guid,
            node_type: wire.node_type,
            ports: wire.ports.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<&RdmaPort> for v1::Port {
    fn from(port: &RdmaPort) -> Self {
        Self {
            number: port.number,
            state: port.state.clone(),
            phys_state: port.phys_state.clone(),
            rate: port.rate.clone(),
            link_layer: port.link_layer.clone(),
            netdevs: port.netdevs.clone(),
        }
    }
}

impl From<v1::Port> for RdmaPort {
    fn from(wire: v1::Port) -> Self {
        Self {
            number: wire.number,
            state: wire.state,
            phys_state: wire.phys_state,
            rate: wire.rate,
            link_layer: wire.link_layer,
            netdevs: wire.netdevs,
            gids: GidTable::default(),
        }
    }
}

/// A hook with its row of the table; `None` for a number that has no row.
pub(crate) fn hook_to_wire(hook: &HookState) -> Option<v1::Hook> {
    let row = Hook::by_number(hook.number)?;
    let mut wire = v1::Hook {
        number: hook.number.into(),
        name: row.name.to_owned(),
        layer: layer_to_wire(row.layer).into(),
        subject: kind_to_wire(row.subject).into(),
        transitions: hook.transitions,
        run_count: hook.run_count,
        run_time_ns: hook.run_time_ns,
        missed: hook.missed,
        ..v1::Hook::default()
    };
    let (kind, reason) = match &hook.state {
        State::Attached { how, function, module, instead } => {
            let attachment = ATTACHMENTS.iter().find(|(domain, _)| domain == how);
            wire.attachment = attachment.map_or(v1::Attachment::Unspecified, |(_, wire)| *wire).into();
            wire.function = Some(function.clone());
            wire.module = Some(module.clone()).filter(|module| !module.is_empty());
            wire.instead = instead.clone();
            (v1::HookStateKind::Attached, None)
        }
        State::Unsupported(why) => (v1::HookStateKind::Unsupported, Some(why)),
        State::Waiting(why) => (v1::HookStateKind::Waiting, Some(why)),
        State::Failed(why) => (v1::HookStateKind::Failed, Some(why)),
        State::Disabled(why) => (v1::HookStateKind::Disabled, Some(why)),
        State::Quarantined(why) => (v1::HookStateKind::Quarantined, Some(why)),
    };
    wire.state = kind.into();
    wire.reason = reason.cloned();
    Some(wire)
}

impl TryFrom<v1::Hook> for HookState {
    type Error = WireError;

    /// Finds the row by name, since numbers differ between versions.
    fn try_from(wire: v1::Hook) -> Result<Self> {
        let row = Hook::all().find(|(_, row)| row.name == wire.name);
        let Some((number, _)) = row else { return Err(WireError::UnknownName("name", wire.name)) };
        let why = wire.reason.clone().unwrap_or_default();
        let state = match wire.state() {
            v1::HookStateKind::Attached => State::Attached {
                how: ATTACHMENTS
                    .iter()
                    .find(|(_, known)| *known == wire.attachment())
                    .map(|(how, _)| *how)
                    .ok_or(WireError::Unknown("attachment", wire.attachment))?,
                function: required("function", wire.function)?,
                module: wire.module.unwrap_or_default(),
                instead: wire.instead,
            },
            v1::HookStateKind::Unsupported => State::Unsupported(why),
            v1::HookStateKind::Waiting => State::Waiting(why),
            v1::HookStateKind::Failed => State::Failed(why),
            v1::HookStateKind::Disabled => State::Disabled(why),
            v1::HookStateKind::Quarantined => State::Quarantined(why),
            v1::HookStateKind::Unspecified => return Err(WireError::Unknown("state", wire.state)),
        };
        Ok(Self {
            number,
            state,
            transitions: wire.transitions,
            run_count: wire.run_count,
            run_time_ns: wire.run_time_ns,
            missed: wire.missed,
        })
    }
}

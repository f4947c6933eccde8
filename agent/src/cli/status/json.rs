//! The report as one JSON object. What is not known is absent.

use std::io::Write;

use serde::Serialize;

use super::Report;
use crate::cli::counters::further::ReporterRecord;
use crate::counters::netlink::devlink::Reporter;
use crate::host::rdma::{RdmaDevice, RdmaPort};
use crate::rpc::seen::{AgentInfo, AgentLoss, AgentStatus};
use crate::verbs::json::{Origin, Record, time_text};

/// Names the layout of the object. Keys are only ever added to it.
const SCHEMA: &str = "fabricscope.status.v1";

#[serde_with::skip_serializing_none]
#[derive(Serialize)]
struct StatusRecord<'a> {
    schema: &'static str,
    host: Option<&'a str>,
    boot_id: Option<&'a str>,
    kernel: Option<&'a str>,
    running: bool,
    agent: Option<AgentRecord<'a>>,
    offers: Option<Vec<OfferRecord<'a>>>,
    devices: Vec<DeviceRecord<'a>>,
    health_reporters: Option<Vec<ReporterRecord<'a>>>,
}

#[serde_with::skip_serializing_none]
#[derive(Serialize)]
struct AgentRecord<'a> {
    version: &'a str,
    started: Option<String>,
    uptime_seconds: f64,
    metrics: Option<&'a str>,
    hooks_attached: u32,
    hooks_wanted: u32,
    degraded: &'a [String],
    idle: &'a [String],
    notes: &'a [String],
    calls: u64,
    failures: u64,
    probe_rejections: u64,
    lost: Vec<LossRecord<'a>>,
    last_failures: Vec<Record<'a>>,
}

#[derive(Serialize)]
struct LossRecord<'a> {
    program: &'a str,
    stage: &'a str,
    reason: &'a str,
    count: u64,
}

#[derive(Serialize)]
struct OfferRecord<'a> {
    feature: &'a str,
    state: &'a str,
    detail: &'a str,
}

#[serde_with::skip_serializing_none]
#[derive(Serialize)]
struct DeviceRecord<'a> {
    device: &'a str,
    driver: Option<&'a str>,
    software: bool,
    pci: Option<&'a str>,
    fw: Option<&'a str>,
    node_guid: Option<&'a str>,
    ports: Vec<PortRecord<'a>>,
}

#[serde_with::skip_serializing_none]
#[derive(Serialize)]
struct PortRecord<'a> {
    port: u32,
    state: Option<&'a str>,
    phys_state: Option<&'a str>,
    rate: Option<&'a str>,
    link_layer: Option<&'a str>,
    netdevs: &'a [String],
}

impl<'a> AgentRecord<'a> {
    fn of(status: &'a AgentStatus, info: &'a AgentInfo) -> Self {
        let origin = Origin { host: info.host.as_deref(), boot_id: info.boot_id.as_deref() };
        let loss = |AgentLoss { program, stage, reason, count }: &'a AgentLoss| LossRecord {
            program,
            stage,
            reason,
            count: *count,
        };
        Self {
            version: &info.version,
            started: time_text(info.started),
            uptime_seconds: status.uptime.as_secs_f64(),
            metrics: info.metrics.as_deref(),
            hooks_attached: status.hooks_attached,
            hooks_wanted: status.hooks_wanted,
            degraded: &status.degraded,
            idle: &status.idle,
            notes: &status.notes,
            calls: status.calls,
            failures: status.failures,
            probe_rejections: status.probes,
            lost: status.losses.iter().map(loss).collect(),
            last_failures: status.last_failures.iter().map(|event| Record::of(event, origin)).collect(),
        }
    }
}

impl<'a> DeviceRecord<'a> {
    fn of(device: &'a RdmaDevice) -> Self {
        Self {
            device: &device.name,
            driver: device.driver.as_deref(),
            software: device.software,
            pci: device.pci.as_deref(),
            fw: device.firmware.as_deref(),
            node_guid: device.node_guid.as_deref(),
            ports: device.ports.iter().map(PortRecord::of).collect(),
        }
    }
}

impl<'a> PortRecord<'a> {
    fn of(port: &'a RdmaPort) -> Self {
        Self {
            port: port.number,
            state: port.state.as_deref(),
            phys_state: port.phys_state.as_deref(),
            rate: port.rate.as_deref(),
            link_layer: port.link_layer.as_deref(),
            netdevs: &port.netdevs,
        }
    }
}

impl<'a> StatusRecord<'a> {
    fn of(report: &'a Report) -> Self {
        match report {
            Report::Agent(status) => {
                let info = &status.info;
                Self {
                    schema: SCHEMA,
                    host: info.host.as_deref(),
                    boot_id: info.boot_id.as_deref(),
                    kernel: info.kernel.as_deref(),
                    running: true,
                    agent: Some(AgentRecord::of(status, info)),
                    offers: None,
                    devices: status.devices.iter().map(DeviceRecord::of).collect(),
                    health_reporters: None,
                }
            }
            Report::Alone(facts, offers) => {
                let offers = offers.iter();
                let offer = offers.map(|offer| OfferRecord {
                    feature: offer.feature,
                    state: offer.state,
                    detail: &offer.detail,
                });
                Self {
                    schema: SCHEMA,
                    host: facts.kernel.hostname.as_deref(),
                    boot_id: facts.kernel.boot_id.as_deref(),
                    kernel: facts.kernel.release.as_deref(),
                    running: false,
                    agent: None,
                    offers: Some(offer.collect()),
                    devices: facts.rdma.devices.iter().map(DeviceRecord::of).collect(),
                    health_reporters: None,
                }
            }
        }
    }
}

/// Prints the report on one line.
pub(super) fn object(report: &Report, reporters: &[Reporter], out: &mut impl Write) -> anyhow::Result<()> {
    let health_reporters = Some(reporters.iter().map(Into::into).collect()).filter(|_| !reporters.is_empty());
    serde_json::to_writer(&mut *out, &StatusRecord { health_reporters, ..StatusRecord::of(report) })?;
    writeln!(out)?;
    Ok(())
}

//! The report as one JSON object. What is not known is absent.

use std::io::Write;

use serde::Serialize;

use super::Report;
use crate::cli::counters::further::ReporterRecord;
use crate::cli::rdma_record::DeviceRecord;
use crate::counters::findings::record::utc_text;
use crate::counters::netlink::devlink::Reporter;
use crate::daemon::findings::Firing;
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
    findings: Vec<FindingRecord<'a>>,
}

#[serde_with::skip_serializing_none]
#[derive(Serialize)]
struct FindingRecord<'a> {
    finding: &'a str,
    device: Option<&'a str>,
    port: Option<u32>,
    netdev: Option<&'a str>,
    priority: Option<u32>,
    object: Option<&'a str>,
    since: Option<String>,
    evidence: &'a [String],
}

impl<'a> FindingRecord<'a> {
    fn of(firing: &'a Firing) -> Self {
        Self {
            finding: &firing.finding,
            device: firing.device.as_deref(),
            port: firing.port,
            netdev: firing.netdev.as_deref(),
            priority: firing.priority,
            object: firing.object.as_deref(),
            since: utc_text(firing.since),
            evidence: &firing.evidence,
        }
    }
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
            findings: status.findings.iter().map(FindingRecord::of).collect(),
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

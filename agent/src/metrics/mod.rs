//! Prometheus: from one reading of everything to the text of `/metrics`. The only place that names prometheus-client.
//!
//! What was not measured is absent, never zero.

mod bursts;
mod counters;
mod findings;
mod health;
pub(crate) mod page;
mod seats;
pub(crate) mod table;
#[cfg(test)]
mod tests;
mod verbs;

use analysis::series::UtcNs;

use crate::bursts::state::Bursts;
use crate::config::limits;
use crate::counters::fast;
use crate::counters::service::Latest;
use crate::daemon::findings::Findings;
use crate::daemon::handle::{Info, Loss};
use crate::host::rdma::{RdmaDevice, RdmaFacts};
use crate::host::sriov::VirtualFunction;
use crate::kernel::clock::realtime_ns;
use crate::kernel::state::{HookState, Snapshot, State};
use crate::probes::{Hook, Layer, Subject};
use crate::verbs::asynchronous::{cm_name, device_name};
use page::{Page, Value};
use seats::{OTHER, Seats, UNKNOWN};
use std::collections::BTreeMap;
use table::Metric;
use verbs::DeviceNames;

/// The type of a page's text.
pub(crate) const CONTENT_TYPE: &str = prometheus_client::encoding::prometheus_text::CONTENT_TYPE;

/// All that a page is made from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading<'a> {
    /// Who the agent is.
    pub(crate) info: &'a Info,
    /// The kernel side's counters; `None` if they could never be read.
    pub(crate) snapshot: Option<&'a Snapshot>,
    /// When they were read (`CLOCK_MONOTONIC`).
    pub(crate) monotonic_ns: u64,
    /// All hooks.
    pub(crate) hooks: &'a [HookState],
    /// RDMA devices.
    pub(crate) devices: &'a RdmaFacts,
    /// The burst sampler; `None` if it is off.
    pub(crate) bursts: Option<&'a Bursts>,
    /// NIC and RDMA counters; `None` while there is no reading, or none that is recent.
    pub(crate) counters: Option<&'a Latest>,
    /// What the detectors say.
    pub(crate) findings: &'a Findings,
    /// Sources of counters that are sampled fast.
    pub(crate) fast: &'a [fast::Status],
    /// What was lost.
    pub(crate) losses: &'a [Loss],
    /// Signatures that had to make room in the log.
    pub(crate) signatures_evicted: u64,
}

/// What has to be remembered from page to page.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    seats: Seats,
    names: DeviceNames,
    /// Verbs hooks ran at some time: what they count is measured.
    verbs_measured: bool,
}

impl Metrics {
    /// The text of a page.
    ///
    /// # Errors
    ///
    /// If the library cannot write it.
    pub(crate) fn page(&mut self, reading: &Reading<'_>) -> Result<String, String> {
        let mut page = Page::default();
        self.names.learn(reading.devices);
        add_info(&mut page, reading);
        add_hooks(&mut page, reading.hooks);
        self.add_devices(&mut page, reading.devices);
        health::add_gids(&mut page, &mut self.seats, reading.devices);
        if let Some(latest) = reading.counters {
            counters::add(&mut page, &mut self.seats, latest);
            health::add_resources(&mut page, &mut self.seats, &latest.readout.resources);
            health::add_reporters(&mut page, &mut self.seats, reading.devices, &latest.readout.further.reporters);
        }
        findings::add(&mut page, &mut self.seats, reading.findings);
        counters::add_fast(&mut page, reading.fast);
        self.verbs_measured |= is_measured(reading.hooks, Subject::Verbs);
        if self.verbs_measured {
            verbs::add_from_zero(&mut page, &mut self.seats, reading.devices);
        }
        if let Some(snapshot) = reading.snapshot {
            verbs::add_calls(&mut page, &mut self.seats, &self.names, snapshot);
            verbs::add_errors(&mut page, &mut self.seats, &self.names, snapshot);
            verbs::add_durations(&mut page, &mut self.seats, snapshot);
            findings::add_vectors(&mut page, &mut self.seats, &snapshot.cqs, reading.devices);
            self.add_events(&mut page, snapshot);
            health::add_events(&mut page, &mut self.seats, reading.devices, snapshot);
            health::add_napi(&mut page, &mut self.seats, snapshot);
            health::add_drops(&mut page, &mut self.seats, snapshot);
            if self.verbs_measured {
                let oldest = oldest_seconds(snapshot, reading.monotonic_ns);
                page.add(Metric::InflightOldest, &[], Value::Real(oldest));
            }
        }
        if let Some(bursts) = reading.bursts {
            bursts::add(&mut page, bursts, UtcNs(realtime_ns()));
        }
        let devices = (reading.devices.devices.len() + elsewhere(reading)) * limits::SERIES_PER_DEVICE;
        let netdevs = (self.seats.netdevs() + bursts::devices(reading.bursts)) * limits::SERIES_PER_NETDEV;
        let most = limits::SERIES.min(limits::SERIES_SHARED + devices + netdevs);
        // One is kept for saying how many are left out.
        let dropped = page.bound(most - 1);
        page.add(Metric::SeriesDropped, &[], Value::Whole(dropped as u64));
        page.text()
    }

    fn add_devices(&mut self, page: &mut Page, devices: &RdmaFacts) {
        for device in &devices.devices {
            // Devices without series of their own have no ports either.
            if self.seats.device(&device.name) == OTHER {
                continue;
            }
            for port in &device.ports {
                let number = port.number.to_string();
                if self.seats.take(&device.name, Metric::RdmaPortInfo, &number) {
                    let netdev = port.netdevs.first().map_or("", String::as_str);
                    let link_layer = port.link_layer.as_deref().unwrap_or_default();
                    let [pci, driver, firmware] = of_device(device);
                    let protocol = device.protocol(port).unwrap_or_default();
                    let (pf, vf) = function_labels(device.function.as_ref());
                    let labels =
                        [device.name.as_str(), &number, netdev, pci, driver, firmware, link_layer, protocol, pf, &vf];
                    page.add(Metric::RdmaPortInfo, &labels, Value::Whole(1));
                }
            }
        }
    }

    fn add_events(&mut self, page: &mut Page, snapshot: &Snapshot) {
        for (event, count) in (0u32..).zip(&snapshot.cm_events).filter(|(_, count)| **count > 0) {
            page.add(Metric::CmEvents, &[&cm_name(event)], Value::Whole(*count));
        }
        for (device, port, event, count) in &snapshot.device_events {
            let device = if device.is_empty() { UNKNOWN } else { device };
            let device = self.seats.device(device);
            let port = if *port == 0 { String::new() } else { port.to_string() };
            let event = device_name(*event);
            let event = if self.seats.take(device, Metric::DeviceEvents, &format!("{port} {event}")) {
                [device, &port, &event].map(str::to_owned)
            } else {
                [device, "", OTHER].map(str::to_owned)
            };
            page.add(Metric::DeviceEvents, &event.each_ref().map(String::as_str), Value::Whole(*count));
        }
    }
}

/// RDMA devices of other network namespaces, which are not among the host's.
fn elsewhere(reading: &Reading<'_>) -> usize {
    let subjects = reading.counters.map(|latest| &*latest.readout.subjects).unwrap_or_default();
    subjects.iter().filter(|subject| subject.relations.namespace.is_some()).count()
}

/// The labels `pf` and `vf`; empty for what is no virtual function.
fn function_labels(function: Option<&VirtualFunction>) -> (&str, String) {
    function.map_or_else(Default::default, |function| (&*function.physical, function.number.to_string()))
}

fn of_device(device: &RdmaDevice) -> [&str; 3] {
    [&device.pci, &device.driver, &device.firmware].map(|text| text.as_deref().unwrap_or_default())
}

fn is_measured(hooks: &[HookState], subject: Subject) -> bool {
    hooks
        .iter()
        .any(|hook| hook.state.is_attached() && Hook::by_number(hook.number).is_some_and(|row| row.subject == subject))
}

fn add_info(page: &mut Page, reading: &Reading<'_>) {
    let info = reading.info;
    page.add(Metric::BuildInfo, &[info.version], Value::Whole(1));
    let text = |text: &'_ Option<String>| text.clone().unwrap_or_default();
    page.add(Metric::HostInfo, &[&text(&info.kernel), &text(&info.boot_id)], Value::Whole(1));
    page.add(Metric::LogEvicted, &[], Value::Whole(reading.signatures_evicted));
    for loss in reading.losses {
        page.add(Metric::EventsLost, &[loss.program, loss.stage, loss.reason], Value::Whole(loss.count));
    }
}

/// Hooks that are not wanted have no series, nor have those of drivers that are not on this host.
#[expect(clippy::cast_precision_loss, reason = "seconds of run time need no more than 53 bits")]
fn add_hooks(page: &mut Page, hooks: &[HookState]) {
    let mut programs: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for state in hooks {
        let Some(hook) = Hook::by_number(state.number) else { continue };
        match &state.state {
            State::Disabled(_) => continue,
            State::Waiting(_) if hook.layer >= Layer::Driver && state.transitions == 0 => continue,
            State::Attached { how, function, .. } => {
                page.add(Metric::HookInfo, &[hook.name, hook.layer.name(), function, how.name()], Value::Whole(1));
            }
            _ => {}
        }
        page.add(Metric::HookAttached, &[hook.name], Value::Whole(u64::from(state.state.is_attached())));
        if state.transitions > 1 {
            page.add(Metric::HookTransitions, &[hook.name], Value::Whole(state.transitions));
            let quarantined = matches!(state.state, State::Quarantined(_));
            page.add(Metric::HookQuarantined, &[hook.name], Value::Whole(u64::from(quarantined)));
        }
        let sum = programs.entry(hook.program.name()).or_default();
        sum.0 = sum.0.saturating_add(state.run_count);
        sum.1 = sum.1.saturating_add(state.run_time_ns);
    }
    for (program, (count, time_ns)) in programs.into_iter().filter(|(_, (count, _))| *count > 0) {
        page.add(Metric::RunCount, &[program], Value::Whole(count));
        page.add(Metric::RunTime, &[program], Value::Real(time_ns as f64 * 1e-9));
    }
}

/// How long the oldest call is under way; those without a time stamp do not count.
#[expect(clippy::cast_precision_loss, reason = "seconds of waiting need no more than 53 bits")]
fn oldest_seconds(snapshot: &Snapshot, now_ns: u64) -> f64 {
    let starts = snapshot.in_flight.iter().map(|call| call.start_ns).filter(|start| *start != 0);
    starts.min().map_or(0.0, |start| now_ns.saturating_sub(start) as f64 * 1e-9)
}

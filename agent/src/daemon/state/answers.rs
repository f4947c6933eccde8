//! What the loop answers to those who ask it: pages, states, samples, summaries.

use std::sync::atomic::Ordering;
use std::time::Instant;

use analysis::series::UtcNs;

use super::super::Scrape;
use super::super::handle::{Command, Loss, Refused, Samples, Status};
use super::super::health::{Health, attached_of, degraded, health, idle};
use super::super::losses::losses;
use super::super::source::Source;
use super::{State, Taken};
use crate::bursts::kept::Kept;
use crate::bursts::state::Bursts;
use crate::config::limits;
use crate::counters::fast;
use crate::counters::service::Service;
use crate::kernel::clock::{monotonic_ns, realtime_ns};
use crate::metrics::Reading;
use crate::verbs::vectors;

impl<S: Source> State<S> {
    pub(super) fn scrape(&mut self, scrape: Scrape) {
        // Whoever asked may be gone: then the answer is for nobody.
        match scrape {
            Scrape::Metrics(answer) => drop(answer.send(self.page())),
            Scrape::Health(answer) => drop(answer.send(self.health())),
        }
    }

    fn health(&self) -> Health {
        let mut health = health(&self.source.hooks());
        health.reasons.extend(self.bursts.iter().flat_map(Bursts::degraded));
        health.reasons.extend(self.fast().iter().filter_map(fast::Status::degraded));
        health.notes.extend(self.bursts.iter().flat_map(Bursts::notes));
        health.notes.extend(self.fast().iter().filter_map(fast::Status::stepped_down));
        health
    }

    /// How the sources fare that are sampled fast.
    fn fast(&self) -> Vec<fast::Status> {
        self.fast.as_ref().map(fast::service::Service::status).unwrap_or_default()
    }

    pub(super) fn command(&mut self, command: Command) {
        match command {
            Command::GetInfo(answer) => drop(answer.send(self.info.clone())),
            Command::GetStatus(answer) => {
                self.judge();
                // Who asks has seen, or is about to be sent, all that happened before.
                self.take_events(limits::STATUS_DRAINS);
                drop(answer.send(self.status()));
            }
            Command::ListHooks(answer) => drop(answer.send(self.source.hooks())),
            Command::Samples(samples) => self.samples(samples),
            Command::Watch(watch) => self.watchers.add(watch),
        }
    }

    /// Unpacking takes its time: it is done elsewhere.
    fn samples(&self, asked: Samples) {
        let Some(recorder) = self.bursts.as_ref().and_then(|bursts| bursts.recorder.clone()) else {
            drop(asked.answer.send(Err(Refused::NotKept)));
            return;
        };
        tokio::task::spawn_blocking(move || {
            let names = asked.netdev.clone().map_or_else(|| recorder.netdevs(), |name| vec![name]);
            let traffic = names.iter().filter_map(|name| recorder.last(name, asked.last)).map(Kept::Traffic);
            let mut found: Vec<Kept> = traffic.collect();
            if asked.counters {
                found.extend(recorder.counters(asked.netdev.as_deref(), asked.last).into_iter().map(Kept::Counters));
            }
            let missing = asked.netdev.filter(|_| found.is_empty());
            drop(asked.answer.send(missing.map_or(Ok(found), |name| Err(Refused::NoSamples(name)))));
        });
    }

    fn page(&mut self) -> Result<String, String> {
        self.judge();
        self.read_counters(Instant::now());
        let hooks = self.source.hooks();
        let losses = self.losses(&hooks);
        let counters = self.counters.as_ref().and_then(Service::latest);
        self.metrics.page(&Reading {
            info: &self.info,
            snapshot: self.taken.as_ref().map(|taken| &taken.snapshot),
            monotonic_ns: self.taken.as_ref().map_or(0, |taken| taken.monotonic_ns),
            hooks: &hooks,
            devices: self.source.devices(),
            bursts: self.bursts.as_ref(),
            counters: counters.as_deref(),
            findings: &self.findings,
            fast: &self.fast(),
            losses: &losses,
            signatures_evicted: self.log.evicted(),
        })
    }

    /// Reads the counters, unless the last reading is young enough. One that fails leaves the last in place.
    pub(super) fn read_counters(&mut self, now: Instant) {
        if self.taken.as_ref().is_some_and(|taken| now - taken.at < limits::SNAPSHOT_AGE) {
            return;
        }
        match self.source.snapshot() {
            Ok(snapshot) => {
                let vectors = vectors::judged(&snapshot.cqs, self.source.devices());
                let changes = self.findings.take_vectors(vectors, UtcNs(realtime_ns()));
                self.log_findings(&changes);
                self.taken = Some(Taken { at: now, monotonic_ns: monotonic_ns(), snapshot });
            }
            Err(error) => tracing::warn!("cannot read the counters: {error:#}"),
        }
    }

    fn losses(&mut self, hooks: &[crate::kernel::state::HookState]) -> Vec<Loss> {
        self.user.log = self.log.lost();
        self.user.commands = self.commands_refused.load(Ordering::Relaxed);
        self.user.bursts = self.bursts.as_ref().map_or(0, |bursts| bursts.updates_lost);
        let recorder = self.bursts.as_ref().and_then(|bursts| bursts.recorder.as_ref());
        let recorder = recorder.map(|recorder| recorder.status().losses);
        self.user.scrapes = self.scrapes_refused.load(Ordering::Relaxed);
        losses(self.taken.as_ref().map(|taken| &taken.snapshot), hooks, &self.user, recorder)
    }

    fn status(&mut self) -> Status {
        self.read_counters(Instant::now());
        let hooks = self.source.hooks();
        let (hooks_attached, hooks_wanted) = attached_of(&hooks);
        let calls = self.taken.as_ref().map(|taken| taken.snapshot.calls.as_slice()).unwrap_or_default();
        let sum = |of: fn(&agent_common::record::VerbCounters) -> u64| {
            calls.iter().map(|(_, _, counters)| of(counters)).sum()
        };
        let (calls, failures, probes) = (sum(|c| c.calls), sum(|c| c.failures), sum(|c| c.probes));
        let mut lost = self.losses(&hooks);
        lost.retain(|loss| loss.count > 0);
        Status {
            info: self.info.clone(),
            uptime: self.started.elapsed(),
            hooks_attached,
            hooks_wanted,
            degraded: degraded(&hooks)
                .into_iter()
                .chain(self.bursts.iter().flat_map(Bursts::degraded))
                .chain(self.fast().iter().filter_map(fast::Status::degraded))
                .collect(),
            netdevs: self.bursts.as_ref().map(|bursts| bursts.live(UtcNs(realtime_ns()))).unwrap_or_default(),
            idle: idle(&hooks),
            notes: self
                .bursts
                .iter()
                .flat_map(Bursts::notes)
                .chain(self.fast().iter().filter_map(fast::Status::stepped_down))
                .collect(),
            calls,
            failures,
            probes,
            lost,
            last_failures: self.last_failures.iter().cloned().collect(),
            devices: self.source.devices().devices.clone(),
            findings: self.findings.firing().take(limits::FINDINGS_TOLD).map(Into::into).collect(),
        }
    }

    pub(super) fn show_summary(&mut self, last: bool) {
        let Some(mut summary) = self.summary.take() else { return };
        let status = self.status();
        // A reader that is gone does not end the agent: it still serves its metrics.
        match summary.show(&status, last) {
            Ok(()) => self.summary = Some(summary),
            Err(error) => tracing::warn!("no more summary: {error}"),
        }
    }
}

//! The figures as a table for people and as JSON.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::middle;

/// Aims: above an empty program, and of a processor for one device.
const AIM_NS: f64 = 60.0;
const AIM_SHARE: f64 = 0.005;

/// What was measured in one kind of run, one value a round.
#[derive(Debug, Default)]
pub(super) struct Figures {
    name: &'static str,
    /// The sender's CPU time for a datagram, of the quickest batch.
    send_ns: Vec<f64>,
    /// A run of the program by the kernel's account.
    account_ns: Vec<f64>,
    /// By test run.
    test_ns: Vec<f64>,
    /// CPU time of the tool's own process for a packet.
    pub(super) own_ns: Vec<f64>,
    /// Why there is no figure.
    failure: Option<String>,
}

impl Figures {
    pub(super) fn new(name: &'static str) -> Self {
        Self { name, ..Self::default() }
    }

    pub(super) fn failed(&mut self, error: &anyhow::Error) {
        self.failure = Some(format!("{error:#}"));
    }

    /// Adds what the tool told after it sent so many datagrams.
    ///
    /// # Errors
    /// When it told of no batch.
    pub(super) fn add(&mut self, records: &[Value], datagrams: u64) -> Result<()> {
        let batches = records.iter().filter_map(|record| record["batch_ns"].as_f64());
        self.send_ns.push(batches.reduce(f64::min).context("the tool timed no batch")?);
        // Others' programs may run too, but not for every datagram; of two that do, as two tools on one device are not,
        // the first would be meant.
        let ours = records.iter().find(|record| record["runs"].as_u64() >= Some(datagrams));
        let Some(ours) = ours else { return Ok(()) };
        let (ns, runs) = (ours["ns"].as_f64(), ours["runs"].as_f64());
        self.account_ns.extend(ns.zip(runs).map(|(ns, runs)| ns / runs));
        let same = |record: &&Value| {
            record["id"] == ours["id"] && record["test_run"].is_string() && record["protocol"] == "udp"
        };
        self.test_ns.extend(records.iter().find(same).and_then(|record| record["ns"].as_f64()));
        Ok(())
    }
}

/// A run of the receiving program while TCP is received, without and with a look-up of the socket.
#[derive(Debug, Default)]
pub(super) struct Tcp {
    pub(super) without: Vec<f64>,
    pub(super) with: Vec<f64>,
}

/// All that was measured.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) rounds: u32,
    pub(super) figures: Vec<Figures>,
    pub(super) tcp: Tcp,
    pub(super) bytes_per_sample: f64,
    /// Devices, and the share of one processor.
    pub(super) drains: Vec<(usize, f64)>,
}

impl Report {
    fn of(&self, name: &str, which: fn(&Figures) -> &Vec<f64>) -> Option<f64> {
        self.figures.iter().find(|figures| figures.name == name).and_then(|figures| middle(which(figures)))
    }

    /// The tables.
    ///
    /// # Errors
    /// Never in practice: writing to a string does not fail.
    pub(super) fn text(&self) -> Result<String> {
        let mut text = format!(
            "ns for a datagram of 1,200 bytes on a pair of virtual devices; of each run's batches the quickest, of {} rounds the median\n\n",
            self.rounds
        );
        writeln!(
            text,
            "{:<26} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
            "", "send", "+nothing", "account", "+empty", "test run", "+empty", "process"
        )?;
        let nothing = self.of("nothing", |figures| &figures.send_ns);
        let empty = self.of("empty program", |figures| &figures.account_ns);
        let empty_test = self.of("empty program", |figures| &figures.test_ns);
        let shown = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.0}"));
        for figures in &self.figures {
            let above =
                |value: Option<f64>, base: Option<f64>| shown(value.zip(base).map(|(value, base)| value - base));
            let (send, account, test) =
                (middle(&figures.send_ns), middle(&figures.account_ns), middle(&figures.test_ns));
            writeln!(
                text,
                "{:<26} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
                figures.name,
                shown(send),
                above(send, nothing),
                shown(account),
                above(account, empty),
                shown(test),
                above(test, empty_test),
                shown(middle(&figures.own_ns)),
            )?;
            if let Some(failure) = &figures.failure {
                writeln!(text, "  not measured in every round: {failure}")?;
            }
        }
        let (without, with) = (middle(&self.tcp.without), middle(&self.tcp.with));
        writeln!(
            text,
            "\nreceiving TCP, account: {} without the socket's look-up, {} with it",
            shown(without),
            shown(with)
        )?;
        writeln!(text, "on disk: {:.1} bytes for a sample", self.bytes_per_sample)?;
        for (devices, share) in &self.drains {
            writeln!(text, "the agent with {devices} devices at 1 ms: {:.2} % of a processor", share * 100.0)?;
        }
        self.aims(&mut text, empty_test)?;
        text += "not measured: all fields without the sketch, which no switch leaves out\n";
        Ok(text)
    }

    fn aims(&self, text: &mut String, empty: Option<f64>) -> Result<()> {
        let verdict = |reached: bool| if reached { "reached" } else { "not reached" };
        let ours = self.of("all fields, 1 ms", |figures| &figures.test_ns);
        if let Some((ours, empty)) = ours.zip(empty) {
            let above = ours - empty;
            writeln!(
                text,
                "\nall fields above empty by test run: {above:.0} ns (aim: {AIM_NS:.0}: {})",
                verdict(above <= AIM_NS)
            )?;
        }
        let share = |wanted: usize| self.drains.iter().find(|(devices, _)| *devices == wanted).map(|(_, share)| *share);
        if let Some((none, one)) = share(0).zip(share(1)) {
            let above = one - none;
            writeln!(
                text,
                "draining one device: {:.2} % of a processor (aim: {:.1} %: {})",
                above * 100.0,
                AIM_SHARE * 100.0,
                verdict(above <= AIM_SHARE)
            )?;
        }
        Ok(())
    }

    /// Everything, one value a round.
    pub(super) fn json(&self) -> Value {
        let runs = self.figures.iter().map(|figures| {
            json!({
                "name": figures.name, "send_ns": figures.send_ns, "account_ns": figures.account_ns,
                "test_run_ns": figures.test_ns, "process_ns": figures.own_ns, "failure": figures.failure,
            })
        });
        json!({
            "runs": runs.collect::<Vec<_>>(),
            "receiving_tcp_ns": { "without_look_up": self.tcp.without, "with_look_up": self.tcp.with },
            "bytes_per_sample": self.bytes_per_sample,
            "drain_share": self.drains.iter().map(|(devices, share)| json!({ "devices": devices, "share": share })).collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_that_ran_for_every_datagram_is_meant() {
        let records = [
            json!({ "batch_ns": 900.0 }),
            json!({ "batch_ns": 700.5 }),
            json!({ "account": "other", "id": 1, "ns": 50, "runs": 5 }),
            json!({ "account": "fs_sampler_tx", "id": 2, "ns": 9000, "runs": 100 }),
            json!({ "test_run": "other", "id": 1, "protocol": "udp", "ns": 4 }),
            json!({ "test_run": "fs_sampler_tx", "id": 2, "protocol": "tcp", "ns": 70 }),
            json!({ "test_run": "fs_sampler_tx", "id": 2, "protocol": "udp", "ns": 60 }),
        ];
        let mut figures = Figures::new("x");
        figures.add(&records, 100).unwrap();
        assert_eq!((&figures.send_ns, &figures.account_ns, &figures.test_ns), (&vec![700.5], &vec![90.0], &vec![60.0]));
        assert!(figures.add(&records[2..], 100).is_err());
    }

    #[test]
    fn what_was_not_measured_is_a_dash_and_aims_are_judged() {
        let mut empty = Figures::new("empty program");
        empty.test_ns = vec![5.0];
        let mut ours = Figures::new("all fields, 1 ms");
        ours.test_ns = vec![75.0];
        let report = Report {
            rounds: 1,
            figures: vec![empty, ours],
            tcp: Tcp::default(),
            bytes_per_sample: 8.0,
            drains: vec![(0, 0.001), (1, 0.002)],
        };
        let text = report.text().unwrap();
        assert!(text.contains("70 ns (aim: 60: not reached)"), "{text}");
        assert!(text.contains("0.10 % of a processor (aim: 0.5 %: reached)"), "{text}");
        assert!(text.contains("- without the socket's look-up"), "{text}");
    }
}

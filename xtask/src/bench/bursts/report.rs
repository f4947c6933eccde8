//! The figures as a table for people and as JSON.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::drain::{Drain, Drained};
use super::{ALL, EMPTY, middle};

/// Aims: above an empty program, and of a processor for one device.
const AIM_NS: f64 = 60.0;
const AIM_SHARE: f64 = 0.005;

/// Packets that test runs are made on, the one of the aim first, as the tool names them.
const SHAPES: [&str; 5] = ["udp", "tcp", "vlan", "roce", "vxlan"];

/// What was measured in one kind of run, one value a round.
#[derive(Debug, Default)]
pub(super) struct Figures {
    name: &'static str,
    /// The sender's CPU time for a datagram, of the quickest batch.
    send_ns: Vec<f64>,
    /// A run of the program by the kernel's account.
    account_ns: Vec<f64>,
    /// By test run, on packets of each shape in [`SHAPES`].
    test_ns: [Vec<f64>; SHAPES.len()],
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
        for (shape, test_ns) in SHAPES.iter().zip(&mut self.test_ns) {
            let same = |record: &&Value| {
                record["id"] == ours["id"] && record["test_run"].is_string() && record["protocol"] == *shape
            };
            test_ns.extend(records.iter().find(same).and_then(|record| record["ns"].as_f64()));
        }
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
    pub(super) drains: Vec<Drained>,
}

impl Report {
    fn of(&self, name: &str, which: fn(&Figures) -> &Vec<f64>) -> Option<f64> {
        self.figures.iter().find(|figures| figures.name == name).and_then(|figures| middle(which(figures)))
    }

    /// A test run of all fields above an empty program's, on packets of this shape.
    fn above(&self, shape: usize) -> Option<f64> {
        let of = |name: &str| {
            let figures = self.figures.iter().find(|figures| figures.name == name)?;
            middle(figures.test_ns.get(shape)?)
        };
        Some(of(ALL)? - of(EMPTY)?)
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
        let empty = self.of(EMPTY, |figures| &figures.account_ns);
        let empty_test = self.of(EMPTY, |figures| first(&figures.test_ns));
        let shown = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.0}"));
        for figures in &self.figures {
            let above =
                |value: Option<f64>, base: Option<f64>| shown(value.zip(base).map(|(value, base)| value - base));
            let (send, account, test) =
                (middle(&figures.send_ns), middle(&figures.account_ns), middle(first(&figures.test_ns)));
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
        for drained in &self.drains {
            writeln!(text, "{}", drained.line())?;
        }
        self.aims(&mut text)?;
        Ok(text)
    }

    fn aims(&self, text: &mut String) -> Result<()> {
        let verdict = |reached: bool| if reached { "reached" } else { "not reached" };
        writeln!(text)?;
        for (index, shape) in SHAPES.iter().enumerate() {
            let Some(above) = self.above(index) else { continue };
            let verdict = verdict(above <= AIM_NS);
            writeln!(text, "all fields above empty by test run, {shape}: {above:.0} ns (aim: {AIM_NS:.0}: {verdict})")?;
        }
        let none = self.drains.iter().find(|drained| drained.drain.devices == 0).map(|drained| drained.share);
        let Some(none) = none else { return Ok(()) };
        for drained in self.drains.iter().filter(|drained| drained.drain.devices > 0) {
            let Drain { devices, interval: (interval, _), busy } = drained.drain;
            let each = (drained.share - none) / devices as f64;
            let traffic = if busy { "with traffic" } else { "idle" };
            let aim = match interval {
                "1ms" => format!(" (aim: {:.1} %: {})", AIM_SHARE * 100.0, verdict(each <= AIM_SHARE)),
                _ => String::new(),
            };
            writeln!(text, "draining, each of {devices} devices at {interval}, {traffic}: {:.3} %{aim}", each * 100.0)?;
        }
        Ok(())
    }

    /// Everything, one value a round.
    pub(super) fn json(&self) -> Value {
        let runs = self.figures.iter().map(|figures| {
            json!({
                "name": figures.name, "send_ns": figures.send_ns, "account_ns": figures.account_ns,
                "test_run_ns": test_runs(figures), "process_ns": figures.own_ns, "failure": figures.failure,
            })
        });
        json!({
            "runs": runs.collect::<Vec<_>>(),
            "receiving_tcp_ns": { "without_look_up": self.tcp.without, "with_look_up": self.tcp.with },
            "bytes_per_sample": self.bytes_per_sample,
            "drains": self.drains.iter().map(Drained::json).collect::<Vec<_>>(),
        })
    }
}

fn first([first, ..]: &[Vec<f64>; SHAPES.len()]) -> &Vec<f64> {
    first
}

/// By the shape of the packet.
fn test_runs(figures: &Figures) -> Value {
    SHAPES.iter().zip(&figures.test_ns).map(|(shape, ns)| ((*shape).to_owned(), json!(ns))).collect()
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
        let [udp, tcp, vlan, ..] = &figures.test_ns;
        assert_eq!((&figures.send_ns, &figures.account_ns), (&vec![700.5], &vec![90.0]));
        assert_eq!((&udp[..], &tcp[..], &vlan[..]), (&[60.0][..], &[70.0][..], &[][..]));
        assert!(figures.add(&records[2..], 100).is_err());
    }

    #[test]
    fn what_was_not_measured_is_a_dash_and_aims_are_judged() {
        let mut empty = Figures::new("empty program");
        empty.test_ns[0] = vec![5.0];
        let mut ours = Figures::new("all fields, 1 ms");
        ours.test_ns[0] = vec![75.0];
        let drained = |(devices, share, filled): (usize, f64, Option<f64>)| Drained {
            drain: Drain { devices, interval: ("1ms", 1000), busy: filled.is_some() },
            share,
            filled,
        };
        let report = Report {
            rounds: 1,
            figures: vec![empty, ours],
            tcp: Tcp::default(),
            bytes_per_sample: 8.0,
            drains: [(0, 0.001, None), (8, 0.041, Some(0.5))].map(drained).into(),
        };
        let text = report.text().unwrap();
        assert!(text.contains("70 ns (aim: 60: not reached)"), "{text}");
        assert!(text.contains("each of 8 devices at 1ms, with traffic: 0.500 % (aim: 0.5 %: reached)"), "{text}");
        assert!(text.contains("with 8 devices at 1ms, traffic in 50 % of the buckets: 4.10 % of a"), "{text}");
        assert!(text.contains("- without the socket's look-up"), "{text}");
    }
}

//! The figures as tables for people and as JSON.

use serde_json::{Value, json};

use super::runs::{BANDWIDTH, Bandwidth, CALLS, RIVALS, Run, Tracer};
use super::samples::{Program, Samples};

/// What is measured of each run, by the samples' numbers.
const TITLES: [&str; 2] = ["query_port", "reg_mr and dereg_mr of one page"];
/// At most this much of the other tool's added cost is aimed at.
const AIM: f64 = 0.5;
/// The absolute aim cannot be shown under emulation.
const METAL: &str = "cargo xtask bench verbs --here";

/// Everything there is to tell.
#[derive(Debug)]
pub(super) struct Report {
    /// The figures.
    pub(super) samples: Samples,
    /// The accounts of each run's programs.
    pub(super) programs: Vec<(&'static str, Vec<Program>)>,
    /// Whether the machine was emulated.
    pub(super) emulated: bool,
    /// How many rounds.
    pub(super) rounds: u64,
}

impl Report {
    /// Ours over the other tool's, of the added cost.
    fn ratio(&self, ours: &str, theirs: &str, measure: usize) -> Option<f64> {
        Some(self.samples.added(ours, measure)? / self.samples.added(theirs, measure)?)
    }

    /// The tables.
    pub(super) fn text(&self) -> String {
        let [release, preemption] = &self.samples.kernel;
        let mut lines = vec![format!(
            "kernel {release}, preemption {preemption}; of each run the quickest tenth of its batches, of {} rounds the median",
            self.rounds
        )];
        if self.emulated {
            lines.push("emulated: times are this emulator's; ratios hold. On metal:".to_owned());
            lines.push(format!("  {METAL}"));
        }
        if let Some(ratio) = self.samples.clock_ratio() {
            lines.push(format!("the machine's clock ran at {ratio:.2} times real time"));
        }
        self.calls(&mut lines);
        self.rivals(&mut lines);
        self.programs(&mut lines);
        self.transfers(&mut lines);
        lines.join("\n") + "\n"
    }

    fn calls(&self, lines: &mut Vec<String>) {
        lines
            .push(format!("\n{:<40} {:>12} {:>20}", "time added to a successful call", TITLES[0], "reg_mr + dereg_mr"));
        let row = |title: &str, cells: [Option<f64>; 2]| {
            let [first, second] = cells.map(|cell| cell.map_or("not measured".to_owned(), |ns| format!("{ns:.0} ns")));
            format!("{title:<40} {first:>12} {second:>20}")
        };
        lines.push(row("(the calls themselves)", [0, 1].map(|measure| self.samples.bare(measure))));
        for Run { name, title, .. } in CALLS.iter().filter(|run| run.tracer != Tracer::None) {
            lines.push(row(title, [0, 1].map(|measure| self.samples.added(name, measure))));
        }
    }

    fn rivals(&self, lines: &mut Vec<String>) {
        lines.push(format!("\nadded cost, ours over bpftrace's (aim: at most {AIM})"));
        for (ours, theirs) in RIVALS {
            let cells = [0, 1].map(|measure| {
                let ratio = self.ratio(ours, theirs, measure);
                ratio.map_or("not measured".to_owned(), |ratio| format!("{ratio:.2}"))
            });
            let title = format!("{ours} / {theirs}");
            lines.push(format!("{title:<40} {:>12} {:>20}", cells[0], cells[1]));
        }
    }

    fn programs(&self, lines: &mut Vec<String>) {
        lines.push("\nrun time per program, accounting included (mean; a busy host adds to it)".to_owned());
        for (run, programs) in &self.programs {
            for Program { name, runs, mean_ns } in programs {
                lines.push(format!("{run:<18} {name:<56} {runs:>8} runs {mean_ns:>8.0} ns"));
            }
        }
    }

    fn transfers(&self, lines: &mut Vec<String>) {
        lines.push(format!(
            "\n{:<34} {:>10} {:>12} {:>12} {:>14} {:>12}",
            "ib_write_bw, one transfer, the best", "MiB/s", "CPU ticks", "events", "events/s", "throughput"
        ));
        let bare = self.samples.carried("none");
        for Bandwidth { name, title, .. } in BANDWIDTH {
            let Some(carried) = self.samples.carried(name) else {
                lines.push(format!("{title:<34} not measured"));
                continue;
            };
            let events = self.samples.events(name);
            let cell = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.0}"));
            let share = bare.map(|bare| 100.0 * (carried.mib_per_s / bare.mib_per_s - 1.0));
            lines.push(format!(
                "{title:<34} {:>10.2} {:>12.0} {:>12} {:>14} {:>12}",
                carried.mib_per_s,
                carried.busy,
                cell(events),
                cell(events.map(|events| events / carried.seconds)),
                share.map_or("-".to_owned(), |share| format!("{share:+.1} %")),
            ));
        }
        if let Some(ratio) = self.events_ratio() {
            lines.push(format!("events, every function over ours: {ratio:.0}"));
        }
        match self.busy_ratio() {
            Some(ratio) => lines.push(format!("added CPU, ours over every function: {ratio:.3}")),
            None => lines.push("added CPU: ours is within what two runs differ by".to_owned()),
        }
    }

    fn events_ratio(&self) -> Option<f64> {
        Some(self.samples.events("every")? / self.samples.events("watch")?).filter(|ratio| ratio.is_finite())
    }

    /// Of the busy time added to the same transfer; `None` where ours added none that can be seen.
    fn busy_ratio(&self) -> Option<f64> {
        let busy = |run: &str| self.samples.carried(run).map(|carried| carried.busy);
        let (none, ours, every) = (busy("none")?, busy("watch")?, busy("every")?);
        (ours > none && every > none).then(|| (ours - none) / (every - none))
    }

    /// The same as JSON; what was not measured is absent or null.
    pub(super) fn json(&self) -> Value {
        let [release, preemption] = &self.samples.kernel;
        let pair = |of: &dyn Fn(usize) -> Option<f64>| json!({ "query_port_ns": of(0), "reg_dereg_ns": of(1) });
        let added: Vec<_> = CALLS
            .iter()
            .filter(|run| run.tracer != Tracer::None)
            .map(|run| json!({ "run": run.name, "added": pair(&|measure| self.samples.added(run.name, measure)) }))
            .collect();
        let ratios: Vec<_> = RIVALS
            .iter()
            .map(|(ours, theirs)| {
                let [query_port, reg_dereg] = [0, 1].map(|measure| self.ratio(ours, theirs, measure));
                json!({ "ours": ours, "theirs": theirs, "query_port": query_port, "reg_dereg": reg_dereg })
            })
            .collect();
        let program = |one: &Program| json!({ "name": one.name, "runs": one.runs, "mean_ns": one.mean_ns });
        let programs: Vec<_> = self
            .programs
            .iter()
            .map(|(run, all)| json!({ "run": run, "programs": all.iter().map(program).collect::<Vec<_>>() }))
            .collect();
        let transfers: Vec<_> = BANDWIDTH
            .iter()
            .filter_map(|one| {
                let carried = self.samples.carried(one.name)?;
                Some(json!({
                    "run": one.name, "mib_per_s": carried.mib_per_s, "busy_ticks": carried.busy,
                    "seconds": carried.seconds, "events": self.samples.events(one.name),
                }))
            })
            .collect();
        json!({
            "schema": "fabricscope.bench.verbs.v1",
            "kernel": release,
            "preemption": preemption,
            "emulated": self.emulated,
            "rounds": self.rounds,
            "clock_ratio": self.samples.clock_ratio(),
            "bare": pair(&|measure| self.samples.bare(measure)),
            "added": added,
            "ratios": ratios,
            "aim": AIM,
            "programs": programs,
            "transfers": transfers,
            "events_ratio": self.events_ratio(),
            "added_busy_ratio": self.busy_ratio(),
        })
    }
}

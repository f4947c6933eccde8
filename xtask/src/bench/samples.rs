//! What the script wrote, as numbers: the rows, the programs' accounts, and the figures made of them. Pure.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use serde_json::Value;

/// The two timed calls, by the names of their fields in a row.
pub(super) const MEASURES: [&str; 2] = ["query_port_ns", "reg_dereg_ns"];

/// Everything measured.
#[derive(Debug, Default)]
pub(super) struct Samples {
    /// Every batch of each run, round and measure.
    batches: BTreeMap<(String, u64), [Vec<f64>; 2]>,
    /// Transfers by run.
    transfers: BTreeMap<String, Vec<Transfer>>,
    /// Events by run.
    events: BTreeMap<String, Vec<f64>>,
    /// The kernel's release and way of preemption.
    pub(super) kernel: [String; 2],
    /// Real and own seconds at the start and the end.
    clock: Vec<[f64; 2]>,
}

/// One transfer.
#[derive(Clone, Copy, Debug)]
struct Transfer {
    mib_per_s: f64,
    busy: f64,
    seconds: f64,
}

/// What a transfer came to: of all there were the best, since a busy host only makes them worse.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Carried {
    /// Throughput.
    pub(super) mib_per_s: f64,
    /// Ticks of all processors that were not idle.
    pub(super) busy: f64,
    /// Its time, by the machine's own clock.
    pub(super) seconds: f64,
}

/// One program's account, as bpftool prints it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Program {
    /// Its name.
    pub(super) name: String,
    /// How often it ran.
    pub(super) runs: u64,
    /// The mean time of a run in nanoseconds, with what accounting itself takes.
    pub(super) mean_ns: f64,
}

/// Reads the script's rows.
///
/// # Errors
/// When a row is no JSON object: it is named.
pub(super) fn read(text: &str) -> Result<Samples> {
    let mut samples = Samples::default();
    for line in text.lines() {
        let row: Value = serde_json::from_str(line).with_context(|| format!("a broken row: {line}"))?;
        samples.add(&row);
    }
    Ok(samples)
}

/// Reads what bpftool printed of all programs; those that ran seldom tell nothing.
///
/// # Errors
/// When it is no JSON.
pub(super) fn programs(text: &str, seldom: u64) -> Result<Vec<Program>> {
    let all: Vec<Value> = serde_json::from_str(text).context("a broken list of programs")?;
    let program = |one: &Value| {
        let runs = one["run_cnt"].as_u64().filter(|runs| *runs > seldom)?;
        let mean_ns = one["run_time_ns"].as_f64()? / runs as f64;
        Some(Program { name: one["name"].as_str().unwrap_or("?").to_owned(), runs, mean_ns })
    };
    Ok(all.iter().filter_map(program).collect())
}

impl Samples {
    fn add(&mut self, row: &Value) {
        let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
        let number = |key: &str| row[key].as_f64().unwrap_or(f64::NAN);
        if row["calls"].is_string() {
            let key = (text("calls"), row["round"].as_u64().unwrap_or(0));
            for (batches, measure) in self.batches.entry(key).or_default().iter_mut().zip(MEASURES) {
                batches.push(number(measure));
            }
        } else if row["bandwidth"].is_string() {
            let (mib_per_s, busy, seconds) = (number("mib_per_s"), number("busy"), number("seconds"));
            self.transfers.entry(text("bandwidth")).or_default().push(Transfer { mib_per_s, busy, seconds });
        } else if row["events"].is_string() {
            self.events.entry(text("events")).or_default().push(number("count"));
        } else if row["clock"].is_string() {
            self.clock.push([number("real_s"), number("own_s")]);
        } else if row["kernel"].is_string() {
            self.kernel = [text("kernel"), text("preemption")];
        }
    }

    /// How many rounds there were.
    pub(super) fn rounds(&self) -> u64 {
        self.batches.keys().map(|(_, round)| round + 1).max().unwrap_or(0)
    }

    /// What a run adds to a call, in nanoseconds: the median over its rounds, less that of all runs without tracing.
    /// `None` where the run is missing.
    pub(super) fn added(&self, run: &str, measure: usize) -> Option<f64> {
        Some(self.median(|name| name == run, measure)? - self.bare(measure)?)
    }

    /// A call without tracing, in nanoseconds: the median over all runs.
    pub(super) fn bare(&self, measure: usize) -> Option<f64> {
        self.median(|name| name.starts_with("none-"), measure)
    }

    fn median(&self, wanted: impl Fn(&str) -> bool, measure: usize) -> Option<f64> {
        let runs = self.batches.iter().filter(|((name, _), _)| wanted(name));
        median(runs.filter_map(|(_, batches)| quick(batches.get(measure)?)).collect())
    }

    /// What the transfers of a run came to.
    pub(super) fn carried(&self, run: &str) -> Option<Carried> {
        let all = self.transfers.get(run)?;
        let least =
            |field: fn(&Transfer) -> f64| all.iter().map(field).filter(|value| value.is_finite()).reduce(f64::min);
        Some(Carried {
            mib_per_s: -least(|transfer| -transfer.mib_per_s)?,
            busy: least(|transfer| transfer.busy)?,
            seconds: least(|transfer| transfer.seconds)?,
        })
    }

    /// The events of one transfer: the mean.
    pub(super) fn events(&self, run: &str) -> Option<f64> {
        let all: f64 = self.events.get(run)?.iter().sum();
        Some(all / self.transfers.get(run)?.len() as f64).filter(|mean| mean.is_finite())
    }

    /// How many of the machine's own seconds passed in a real one; `None` where it has no clock to hold it against.
    ///
    /// An emulated machine that boots on a busy host may measure its time stamp counter wrongly, and then keeps that
    /// for good: a factor of 8.6 was seen.
    pub(super) fn clock_ratio(&self) -> Option<f64> {
        let [[real_start, own_start], .., [real_end, own_end]] = self.clock.as_slice() else { return None };
        let ratio = (own_end - own_start) / (real_end - real_start);
        ratio.is_finite().then_some(ratio)
    }
}

/// The slowest of the quickest tenth: what a busy host left alone. The quickest itself is now and then far off the rest.
fn quick(batches: &[f64]) -> Option<f64> {
    let mut sorted: Vec<f64> = batches.iter().copied().filter(|batch| batch.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len().div_ceil(10).checked_sub(1)?).copied()
}

/// The middle of the numbers that are numbers; the mean of the middle two.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.retain(|value| value.is_finite());
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = values.get(middle)?;
    if values.len() % 2 == 1 { Some(*upper) } else { Some((values.get(middle - 1)? + upper) / 2.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: &str = r#"{"kernel":"6.12.1","preemption":"voluntary"}
{"clock":"start","real_s":100,"own_s":10.0}
{"calls":"none-ours","round":0,"rounds":20,"query_port_ns":1100.0,"reg_dereg_ns":9000.0}
{"calls":"none-ours","round":0,"rounds":20,"query_port_ns":1000.0,"reg_dereg_ns":9500.0}
{"calls":"ours","round":0,"rounds":20,"query_port_ns":1300.0,"reg_dereg_ns":9900.0}
{"calls":"none-ours","round":1,"rounds":20,"query_port_ns":2000.0,"reg_dereg_ns":9000.0}
{"calls":"ours","round":1,"rounds":20,"query_port_ns":2500.0,"reg_dereg_ns":9100.0}
{"bandwidth":"none","round":0,"mib_per_s":40.0,"busy":100,"seconds":2.0}
{"bandwidth":"none","round":1,"mib_per_s":50.0,"busy":200,"seconds":4.0}
{"events":"none","count":500}
{"clock":"end","real_s":200,"own_s":210.0}
"#;

    #[test]
    fn of_a_run_the_quickest_tenth_counts() {
        let ascending: Vec<f64> = (1..=40).map(f64::from).collect();
        let descending: Vec<f64> = ascending.iter().rev().copied().collect();
        let rows: [(&[f64], Option<f64>); 5] = [
            (&[], None),
            (&[f64::NAN], None),
            (&[3.0, 2.0], Some(2.0)),
            (&ascending, Some(4.0)),
            (&descending, Some(4.0)),
        ];
        for (batches, expected) in rows {
            assert_eq!(quick(batches), expected, "{batches:?}");
        }
    }

    #[test]
    fn of_the_rounds_the_median_counts() {
        let samples = read(ROWS).unwrap();
        // 1,300 and 2,500 less 1,000 and 2,000; 9,900 and 9,100 less twice 9,000.
        assert_eq!([samples.added("ours", 0), samples.added("ours", 1)], [Some(400.0), Some(500.0)]);
        assert_eq!(samples.bare(0), Some(1500.0));
        assert_eq!(samples.added("nobody", 0), None);
        assert_eq!(samples.carried("none"), Some(Carried { mib_per_s: 50.0, busy: 100.0, seconds: 2.0 }));
        assert_eq!((samples.carried("every"), samples.events("none")), (None, Some(250.0)));
        assert_eq!(samples.clock_ratio(), Some(2.0));
        assert_eq!(
            (samples.kernel.as_slice(), samples.rounds()),
            (["6.12.1", "voluntary"].map(str::to_owned).as_slice(), 2)
        );
    }

    #[test]
    fn a_broken_row_is_named() {
        let error = read("{}\n{\"calls\":").unwrap_err();
        assert!(error.to_string().contains("{\"calls\":"), "{error}");
    }

    #[test]
    fn programs_that_ran_seldom_are_left_out() {
        let text = r#"[{"id":1,"name":"a","run_time_ns":5000,"run_cnt":10},{"id":2,"name":"b"},
            {"id":3,"name":"c","run_time_ns":5,"run_cnt":1}]"#;
        let expected = vec![Program { name: "a".into(), runs: 10, mean_ns: 500.0 }];
        assert_eq!(programs(text, 5).unwrap(), expected);
    }

    #[test]
    fn medians() {
        let rows: [(&[f64], Option<f64>); 4] =
            [(&[], None), (&[3.0], Some(3.0)), (&[9.0, 1.0, 2.0], Some(2.0)), (&[f64::NAN, 1.0, 2.0], Some(1.5))];
        for (values, expected) in rows {
            assert_eq!(median(values.to_vec()), expected, "{values:?}");
        }
    }
}

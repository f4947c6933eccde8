//! `fabricscope hooks --discover`: how the default set comes out of all functions of the RDMA modules.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use serde::Serialize;

use crate::host::kernel::KernelFacts;
use crate::host::roots::Roots;
use crate::host::symbols::Symbols;
use crate::kernel::Btf;
use crate::probes::Hook;
use crate::probes::discover::{
    Function, HEURISTICS, Outcome, Signature, Verdict, compare, narrow, why_each, write_list,
};

/// How to show it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Output {
    /// For reading.
    #[default]
    Table,
    /// One JSON object a line: the steps, then each row of the probe table.
    Json,
    /// All functions with their types, as the tests read them.
    Functions,
}

/// One line of JSON: how many functions of a module each heuristic left.
#[derive(Debug, Serialize)]
struct StepRow<'a> {
    module: &'a str,
    all: usize,
    /// Functions whose types are not in the kernel's type information.
    untyped: usize,
    /// By heuristic, in the order in which they are asked.
    left: BTreeMap<&'a str, usize>,
}

/// One line of JSON: a row of the probe table.
#[derive(Debug, Serialize)]
struct HookRow<'a> {
    hook: &'a str,
    default: bool,
    #[serde(flatten)]
    verdict: &'a Verdict,
}

/// One line of JSON: what discovery ends in without a row.
#[derive(Debug, Serialize)]
struct LeftOut<'a> {
    function: &'a str,
    module: &'a str,
    left_out: &'a str,
}

/// Counts by heuristic: all, then what each one left.
type Counts = [usize; HEURISTICS.len() + 1];

/// Narrows this kernel's functions and shows the steps and the outcome.
///
/// # Errors
///
/// If the list of functions cannot be read, or the output cannot be written.
pub(crate) fn run(roots: &Roots, output: Output, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let functions = functions(roots)?;
    if output == Output::Functions {
        out.write_all(write_list(&functions).as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    let outcomes = narrow(&functions);
    match output {
        Output::Json => json(&outcomes, out)?,
        _ => table(&outcomes, out)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The RDMA functions of the running kernel, with types where it has them.
fn functions(roots: &Roots) -> anyhow::Result<Vec<Function>> {
    let facts = KernelFacts::read(roots);
    let symbols = Symbols::read(roots, facts.tracefs.as_deref())
        .with_context(|| format!("reading {}", roots.procfs.join("kallsyms").display()))?;
    let vmlinux = Btf::vmlinux(&roots.sysfs).ok();
    let mut types: BTreeMap<String, Option<Btf>> = BTreeMap::new();
    let mut functions = Vec::new();
    for symbol in symbols.all() {
        let module = symbol.module.unwrap_or_default();
        let name = symbol.name.split('.').next().unwrap_or_default();
        let known = types.entry(module.to_owned()).or_insert_with(|| of_module(&roots.sysfs, module, vmlinux.as_ref()));
        let signature = signature(known.as_ref(), module, vmlinux.as_ref(), name);
        functions.push(Function { module: module.to_owned(), name: name.to_owned(), signature });
    }
    functions.sort_unstable();
    functions.dedup_by(|a, b| a.module == b.module && a.name == b.name);
    Ok(functions)
}

fn of_module(sysfs: &Path, module: &str, vmlinux: Option<&Btf>) -> Option<Btf> {
    if module.is_empty() {
        return None;
    }
    Btf::module(sysfs, module, vmlinux?).ok()
}

fn signature(own: Option<&Btf>, module: &str, vmlinux: Option<&Btf>, name: &str) -> Option<Signature> {
    let (btf, base) = if module.is_empty() { (vmlinux?, None) } else { (own?, vmlinux) };
    let prototype = btf.prototype(base, btf.function(name)?)?;
    Some(Signature::new(&prototype.returns, &prototype.arguments))
}

/// How many of each module's functions each heuristic left, and how many have no type.
fn counts<'a>(outcomes: &'a [Outcome<'_>]) -> BTreeMap<&'a str, (Counts, usize)> {
    let mut modules: BTreeMap<&str, (Counts, usize)> = BTreeMap::new();
    for outcome in outcomes {
        let (counts, untyped) = modules.entry(&outcome.function.module).or_default();
        for count in counts.iter_mut().take(outcome.passed + 1) {
            *count += 1;
        }
        *untyped += usize::from(outcome.assumed);
    }
    modules
}

fn json(outcomes: &[Outcome<'_>], out: &mut impl Write) -> anyhow::Result<()> {
    for (module, ([all, left @ ..], untyped)) in counts(outcomes) {
        let left = HEURISTICS.iter().map(|heuristic| heuristic.name).zip(left).collect();
        line(&StepRow { module, all, untyped, left }, out)?;
    }
    let (verdicts, left_out) = compare(outcomes);
    for ((_, hook), verdict) in Hook::all().zip(&verdicts) {
        line(&HookRow { hook: hook.name, default: hook.default, verdict }, out)?;
    }
    for (outcome, left_out) in left_out {
        line(&LeftOut { function: &outcome.function.name, module: &outcome.function.module, left_out }, out)?;
    }
    Ok(())
}

fn line(row: &impl Serialize, out: &mut impl Write) -> anyhow::Result<()> {
    serde_json::to_writer(&mut *out, row)?;
    writeln!(out)?;
    Ok(())
}

fn table(outcomes: &[Outcome<'_>], out: &mut impl Write) -> anyhow::Result<()> {
    for (number, heuristic) in (1..).zip(HEURISTICS) {
        writeln!(out, "{number}. {:<9} {}", heuristic.name, heuristic.question)?;
    }
    write!(out, "\n{:<20} {:>9}", "module", "functions")?;
    HEURISTICS.iter().try_for_each(|heuristic| write!(out, " {:>9}", heuristic.name))?;
    writeln!(out)?;
    let modules = counts(outcomes);
    let mut total = Counts::default();
    for (module, (counts, untyped)) in &modules {
        show(if module.is_empty() { "(built in)" } else { module }, *counts, out)?;
        if *untyped == counts[0] {
            write!(out, "  no types: names and the probe table only")?;
        }
        writeln!(out)?;
        total.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    show("all", total, out)?;
    writeln!(out, "\n")?;
    let (verdicts, left_out) = compare(outcomes);
    outcome(&verdicts, out)?;
    for (outcome, reason) in left_out {
        writeln!(out, "{:<26} left out   {reason}", outcome.function.name)?;
    }
    Ok(())
}

fn show(module: &str, counts: Counts, out: &mut impl Write) -> anyhow::Result<()> {
    write!(out, "{module:<20}")?;
    counts.iter().try_for_each(|count| write!(out, " {count:>9}"))?;
    Ok(())
}

/// The rows of the default set, how many others there are, and where the two do not agree.
fn outcome(verdicts: &[Verdict], out: &mut impl Write) -> anyhow::Result<()> {
    let (mut absent, mut sessions) = (0, 0);
    for ((_, hook), verdict) in Hook::all().zip(verdicts) {
        match verdict {
            Verdict::Found { function, reason } => {
                writeln!(out, "{:<26} found      {function}: {reason}", hook.name)?;
            }
            Verdict::ByHand { reason } => writeln!(out, "{:<26} by hand    {reason}", hook.name)?,
            Verdict::Disagrees { reason } => writeln!(out, "{:<26} DISAGREES  {reason}", hook.name)?,
            Verdict::Absent => absent += 1,
            Verdict::SessionOnly { .. } => sessions += 1,
        }
    }
    // The table alone tells what the heuristics say of the rows whose modules this host has not loaded.
    let elsewhere = why_each().iter().filter(|verdict| matches!(verdict, Verdict::Found { .. })).count();
    let here = verdicts.iter().filter(|verdict| matches!(verdict, Verdict::Found { .. })).count();
    writeln!(
        out,
        "\n{here} rows of the default set found here ({elsewhere} with all modules loaded), {absent} not on \
                   this kernel or not loaded; {sessions} more rows attach for sessions only."
    )?;
    Ok(())
}

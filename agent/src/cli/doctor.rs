//! `fabricscope doctor`: what this host offers, what is missing, what that costs and how to mend it.

mod checks;
mod features;
mod kernel_checks;
mod rdma_checks;
mod render;
mod sampler_checks;

use std::io::Write;
use std::process::ExitCode;

use crate::host::facts::HostFacts;
use crate::host::roots::Roots;
use crate::kernel::sampler::{Means, marking_programs, trial, trial_tick, try_retransmissions};
use checks::{CHECKS, Check, Outcome};
use features::Feature;

/// What this host offers to the agent, what is missing, and how to mend it
///
/// Exit status: 0 if verbs tracing can run on this host, 1 if not.
#[derive(Debug, clap::Args)]
pub(crate) struct DoctorArgs {
    /// How to print
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    pub(crate) output: Output,

    #[command(flatten)]
    pub(crate) roots: Roots,
}

/// How to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Output {
    /// For people
    Table,
    /// One JSON object
    Json,
}

/// All answers, ready to print.
struct Report<'a> {
    facts: &'a HostFacts,
    checks: Vec<(&'static Check, Outcome)>,
    features: Vec<Feature>,
}

impl<'a> Report<'a> {
    fn of(facts: &'a HostFacts) -> Self {
        Self {
            facts,
            checks: CHECKS.iter().map(|check| (check, (check.run)(facts))).collect(),
            features: features::features(facts),
        }
    }
}

/// Attaches the burst sampler for a moment, where nobody is disturbed, and notes how that went.
pub(crate) fn try_sampler(facts: &mut HostFacts, roots: &Roots) {
    (facts.tcx, facts.clsact) = match trial() {
        Ok(Means::Tcx) => (Some(Ok(())), None),
        Ok(Means::Clsact(why)) => (Some(Err(why)), Some(Ok(()))),
        Err(error) => (None, Some(Err(format!("{error:#}")))),
    };
    let text = |error: anyhow::Error| format!("{error:#}");
    facts.tick = Some(trial_tick().map_err(text));
    facts.marking = Some(marking_programs().map_err(text));
    facts.retransmissions = Some(try_retransmissions(roots).map_err(text));
}

/// Prints what the checks say of `facts`.
///
/// # Errors
///
/// Only if `out` cannot be written.
pub(crate) fn run(args: &DoctorArgs, facts: &HostFacts, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let report = Report::of(facts);
    match args.output {
        Output::Table => render::table(&report, render::Paper::of_stdout(), out)?,
        Output::Json => render::json(&report, out)?,
    }
    out.flush()?;
    let runs = features::verbs_tracing(facts).is_ok();
    Ok(if runs { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A feature, whether it can run (`yes`, `no`, `unknown`), and by which means or why not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    /// The feature.
    pub(crate) feature: &'static str,
    /// Whether it can run.
    pub(crate) state: &'static str,
    /// By which means, or why not.
    pub(crate) detail: String,
}

/// What this host offers, for others to show.
pub(crate) fn offers(facts: &HostFacts) -> Vec<Offer> {
    let offer = |feature: Feature| Offer {
        feature: feature.name,
        state: match feature.state {
            features::State::Yes => "yes",
            features::State::No => "no",
            features::State::Unknown => "unknown",
        },
        detail: feature.detail,
    };
    features::features(facts).into_iter().map(offer).collect()
}

#[cfg(test)]
mod tests;

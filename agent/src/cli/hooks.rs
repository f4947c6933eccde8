//! `fabricscope hooks`: every hook, what it is attached to, how, and what it has seen.

use std::io::{self, Write};
use std::process::ExitCode;

use serde::Serialize;

use super::client::SocketArgs;
use crate::host::kernel::KernelFacts;
use crate::host::roots::Roots;
use crate::kernel::state::{HookState, State};
use crate::kernel::{Options, Tracer};
use crate::probes::{Hook, Subject, memory};

/// Arguments of `fabricscope hooks`.
#[derive(Debug, clap::Args)]
pub(crate) struct HooksArgs {
    /// One JSON object a line.
    #[arg(long)]
    json: bool,
    /// Attach all rows of the probe table, not only those that are always on.
    #[arg(long)]
    all: bool,
    /// Never use fexit.
    #[arg(long)]
    no_fexit: bool,
    /// Only show the table: attach nothing.
    #[arg(long, conflicts_with_all = ["all", "no_fexit"])]
    table: bool,
    /// Show how the default set comes out of all functions of the RDMA modules: attach nothing.
    #[arg(long, conflicts_with_all = ["all", "no_fexit", "table", "json"])]
    discover: bool,
    /// How to show what `--discover` finds.
    #[arg(short, long, value_enum, default_value_t, requires = "discover")]
    output: super::discover::Output,
    #[command(flatten)]
    socket: SocketArgs,
    #[command(flatten)]
    roots: Roots,
}

/// One line of JSON.
#[derive(Debug, Serialize)]
struct Row<'a> {
    hook: &'a str,
    subject: &'a str,
    layer: &'a str,
    functions: &'a [&'a str],
    modules: &'a [&'a str],
    default: bool,
    verified: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    unless: Option<&'a str>,
    programs: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attach: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    module: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_time_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    missed: Option<u64>,
}

/// Shows the hooks of the agent that runs; without one, attaches what this kernel takes, shows it, and detaches again.
///
/// # Errors
///
/// If the kernel side cannot be loaded or the output cannot be written.
pub(crate) fn run(args: &HooksArgs) -> anyhow::Result<ExitCode> {
    let out = &mut io::stdout().lock();
    if args.discover {
        return super::discover::run(&args.roots, args.output, out);
    }
    if args.table {
        for (_, hook) in Hook::all() {
            print(out, args.json, hook, None)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let alone = args.all || args.no_fexit;
    if !alone && let Some(mut agent) = args.socket.agent()? {
        for state in &agent.hooks()? {
            if let Some(hook) = Hook::by_number(state.number) {
                print(out, args.json, hook, Some(state))?;
            }
        }
        return Ok(ExitCode::SUCCESS);
    }
    let tracer = Tracer::start(&Options {
        roots: args.roots.clone(),
        latency: true,
        subjects: Subject::ALL.to_vec(),
        all: args.all,
        fexit: !args.no_fexit,
    })?;
    for (state, (_, hook)) in tracer.hooks().iter().zip(Hook::all()) {
        print(out, args.json, hook, Some(state))?;
    }
    if !args.json {
        let mib = |cpus| memory::map_bytes(cpus).div_ceil(1 << 20);
        let cpus = KernelFacts::read(&args.roots).cpus_possible.and_then(|cpus| usize::try_from(cpus).ok());
        let here = cpus.map_or_else(String::new, |cpus| format!("{} MiB on this host's {cpus} CPUs, ", mib(cpus)));
        writeln!(out, "Kernel memory of the maps: {here}{} MiB on 256.", mib(256))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn print(out: &mut impl Write, json: bool, hook: &Hook, state: Option<&HookState>) -> anyhow::Result<()> {
    if json {
        serde_json::to_writer(&mut *out, &row(hook, state))?;
        writeln!(out)?;
        return Ok(());
    }
    let (name, text) = state.map_or(("", hook.functions.join(" ")), |s| (s.state.name(), s.state.to_string()));
    writeln!(out, "{:<22} {:<8} {:<12} {}", hook.name, hook.layer.name(), name, text)?;
    Ok(())
}

fn row<'a>(hook: &'a Hook, state: Option<&'a HookState>) -> Row<'a> {
    let (attach, function, module, reason) = match state.map(|state| &state.state) {
        Some(State::Attached { how, function, module, instead }) => {
            let module = (!module.is_empty()).then_some(module.as_str());
            (Some(how.name()), Some(function.as_str()), module, instead.clone())
        }
        Some(other) => (None, None, None, Some(other.to_string())),
        None => (None, None, None, None),
    };
    Row {
        hook: hook.name,
        subject: hook.subject.name(),
        layer: hook.layer.name(),
        functions: hook.functions,
        modules: hook.modules,
        default: hook.default,
        verified: hook.verified,
        unless: hook.unless,
        programs: crate::kernel::program_names(hook),
        state: state.map(|state| state.state.name()),
        attach,
        function,
        module,
        reason,
        run_count: state.map(|state| state.run_count),
        run_time_ns: state.map(|state| state.run_time_ns),
        missed: state.map(|state| state.missed),
    }
}

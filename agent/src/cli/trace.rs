//! `fabricscope trace`: failed verbs calls, connection manager events or device events, as they happen.

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Subcommand;

use crate::event::Event;
use crate::host::roots::Roots;
use crate::kernel::{Options, Tracer};
use crate::probes::{Hook, Subject};
use crate::verbs::record::Decoder;

/// What to trace.
#[derive(Debug, Subcommand)]
pub(crate) enum Trace {
    /// Failed verbs calls, each with the layer that refused it.
    Verbs(TraceArgs),
}

/// Arguments of `fabricscope trace`.
#[derive(Debug, clap::Args)]
pub(crate) struct TraceArgs {
    #[command(flatten)]
    roots: Roots,
    /// A command to run and trace, with its children.
    #[arg(last = true)]
    command: Vec<String>,
}

/// Traces until the command ends, or for ever.
pub(crate) fn run(args: &Trace) -> anyhow::Result<ExitCode> {
    let Trace::Verbs(args) = args;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).context("installing a signal handler")?;
    }
    let mut tracer = Tracer::start(&Options {
        roots: args.roots.clone(),
        latency: true,
        subjects: vec![Subject::Verbs],
        all: false,
        fexit: true,
    })?;
    let mut decoder = Decoder::new(&args.roots);
    decoder.refresh(Hook::all().map(|(number, _)| tracer.function(number).map(str::to_owned)).collect());
    let mut out = io::stdout().lock();
    let mut child = None;
    if let Some((program, rest)) = args.command.split_first() {
        child = Some(
            std::process::Command::new(program).args(rest).spawn().with_context(|| format!("starting {program}"))?,
        );
    }
    let end = Instant::now() + Duration::from_secs(60);
    let mut status = None;
    while !stop.load(Ordering::Relaxed) && Instant::now() < end {
        let mut events: Vec<Event> = Vec::new();
        tracer.drain(1024, &mut |bytes| match decoder.decode(bytes) {
            Ok(event) => events.push(event),
            Err(error) => eprintln!("{error}"),
        });
        for event in &events {
            writeln!(out, "{event:?}")?;
        }
        if status.is_some() && events.is_empty() {
            break;
        }
        if let Some(child) = &mut child {
            status = child.try_wait()?;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    eprintln!("{:#?}", tracer.snapshot()?);
    Ok(ExitCode::SUCCESS)
}

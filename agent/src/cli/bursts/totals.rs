//! `fabricscope bursts totals`: the sampler's self-test on one device, against the device's own counters.

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use agent_common::bucket::{SLOTS, Totals};
use analysis::series::{Direction, DurationNs};
use anyhow::Context as _;
use serde::Serialize;

use crate::cli::trace::args::{Output, duration};
use crate::kernel::sampler::{Counters, Interface, Options, Sampler};

/// How often it is looked at whether to end.
const POLL: Duration = Duration::from_millis(20);

/// Count all packets of a network device for a while, beside the device's own counters: do all arrive?
#[derive(Debug, clap::Args)]
pub(crate) struct TotalsArgs {
    /// The network device
    #[arg(long, value_name = "NAME")]
    netdev: String,
    /// How long
    #[arg(long = "for", value_name = "TIME", value_parser = duration, default_value = "2s")]
    time: Duration,
    /// Look received segments up in their sockets: which may have been sent again?
    #[arg(long)]
    suspected: bool,
    /// Attach by clsact filters even if the kernel has TCX
    #[arg(long)]
    clsact: bool,
    /// Print a table for people, or one JSON object a line
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

/// What a device counts as packets and bytes. Drivers differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Rule {
    /// Packets as the kernel handles them: virtual devices.
    Skbs,
    /// Packets on the wire: network cards that leave the frame check sequence out.
    Wire,
    /// Packets on the wire, each with its frame check sequence of four bytes.
    WireAndCheckSequence,
    /// Packets on the wire without their Ethernet header of 14 bytes: virtual devices that receive by NAPI.
    WireWithoutHeader,
}

impl Rule {
    const ALL: [Self; 4] = [Self::Skbs, Self::Wire, Self::WireAndCheckSequence, Self::WireWithoutHeader];

    fn of(self, totals: &Totals) -> Counters {
        let (packets, bytes) = match self {
            Self::Skbs => (totals.skbs, totals.skb_bytes),
            Self::Wire => (totals.segments, totals.wire_bytes),
            Self::WireAndCheckSequence => (totals.segments, totals.wire_bytes + 4 * totals.segments),
            Self::WireWithoutHeader => (totals.segments, totals.wire_bytes.saturating_sub(14 * totals.segments)),
        };
        Counters { packets, bytes }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Skbs => "packets as the kernel handles them",
            Self::Wire => "packets on the wire",
            Self::WireAndCheckSequence => "packets on the wire with their frame check sequence",
            Self::WireWithoutHeader => "packets on the wire without their Ethernet header",
        }
    }
}

/// What the device has counted: at least what it counted while both programs were attached for certain, at most what it
/// counted from before until after.
#[derive(Clone, Copy, Debug)]
struct Bracket {
    least: Counters,
    most: Counters,
}

impl Bracket {
    /// The rules by which what was sampled lies within.
    fn rule(&self, totals: &Totals) -> Option<Rule> {
        let within = |least: u64, found: u64, most: u64| (least..=most).contains(&found);
        Rule::ALL.into_iter().find(|rule| {
            let found = rule.of(totals);
            within(self.least.packets, found.packets, self.most.packets)
                && within(self.least.bytes, found.bytes, self.most.bytes)
        })
    }
}

/// One direction's line of JSON.
#[derive(Debug, Serialize)]
struct Row<'a> {
    netdev: &'a str,
    direction: &'static str,
    attach: String,
    skbs: u64,
    skb_bytes: u64,
    segments: u64,
    wire_bytes: u64,
    retransmit_bytes: u64,
    unparsed: u64,
    no_ring: u64,
    buckets: u64,
    device_packets: [u64; 2],
    device_bytes: [u64; 2],
    conserved: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<Rule>,
}

/// Attaches, waits, and compares.
///
/// # Errors
///
/// If there is no such device, the kernel refuses, or the output cannot be written.
pub(crate) fn run(args: &TotalsArgs, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let before = Interface::find(&args.netdev)?;
    let options = Options {
        ifindex: before.ifindex,
        netdev: args.netdev.clone(),
        interval: DurationNs(1_000_000),
        slots: SLOTS,
        clsact: args.clsact,
        suspected: args.suspected,
        regions: Vec::new(),
    };
    let sampler = Sampler::attach(&options)?;
    let attached = Interface::find(&args.netdev)?;
    wait(args.time)?;
    let ending = Interface::find(&args.netdev)?;
    let totals = sampler.totals();
    let after = Interface::find(&args.netdev)?;
    let mut conserved = true;
    let brackets = brackets([&before, &attached, &ending, &after].map(|interface| interface.counters));
    for (((direction, totals), means), bracket) in
        Direction::ALL.into_iter().zip(&totals).zip(sampler.means()).zip(brackets)
    {
        let rule = bracket.rule(totals);
        conserved &= rule.is_some();
        let row = row(&args.netdev, direction, means.to_string(), totals, bracket, rule);
        match args.output {
            Output::Json => writeln!(out, "{}", serde_json::to_string(&row)?)?,
            Output::Table => table(out, &row)?,
        }
    }
    Ok(if conserved { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What lies between the device's counters before the attach, after it, before the last look at the totals, after it.
fn brackets([before, attached, ending, after]: [[Counters; 2]; 4]) -> [Bracket; 2] {
    let since = |late: Counters, early: Counters| Counters {
        packets: late.packets.saturating_sub(early.packets),
        bytes: late.bytes.saturating_sub(early.bytes),
    };
    let one = |[before, attached, ending, after]: [Counters; 4]| Bracket {
        least: since(ending, attached),
        most: since(after, before),
    };
    let ([rx0, tx0], [rx1, tx1], [rx2, tx2], [rx3, tx3]) = (before, attached, ending, after);
    [one([rx0, rx1, rx2, rx3]), one([tx0, tx1, tx2, tx3])]
}

/// Waits, or until a signal ends it: the programs must be detached either way.
fn wait(time: Duration) -> anyhow::Result<()> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).context("installing a signal handler")?;
    }
    let end = Instant::now() + time;
    while !stop.load(Ordering::Relaxed) {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        thread::sleep(left.min(POLL));
    }
    Ok(())
}

fn row<'a>(
    netdev: &'a str,
    direction: Direction,
    attach: String,
    totals: &Totals,
    bracket: Bracket,
    rule: Option<Rule>,
) -> Row<'a> {
    let Bracket { least, most } = bracket;
    Row {
        netdev,
        direction: direction.name(),
        attach,
        skbs: totals.skbs,
        skb_bytes: totals.skb_bytes,
        segments: totals.segments,
        wire_bytes: totals.wire_bytes,
        retransmit_bytes: totals.retransmit_bytes,
        unparsed: totals.unparsed,
        no_ring: totals.no_ring,
        buckets: totals.rotations,
        device_packets: [least.packets, most.packets],
        device_bytes: [least.bytes, most.bytes],
        conserved: rule.is_some(),
        rule,
    }
}

fn table(out: &mut impl Write, row: &Row<'_>) -> std::io::Result<()> {
    let range = |[least, most]: [u64; 2]| if least == most { most.to_string() } else { format!("{least} to {most}") };
    let verdict = match row.rule {
        Some(rule) => format!("yes: it counts {}", rule.words()),
        None => "no".to_owned(),
    };
    writeln!(out, "{} {}, attached by {}", row.netdev, row.direction, row.attach)?;
    writeln!(out, "  handled by the kernel  {} packets, {} bytes", row.skbs, row.skb_bytes)?;
    writeln!(out, "  on the wire            {} packets, {} bytes", row.segments, row.wire_bytes)?;
    writeln!(out, "  by the device          {} packets, {} bytes", range(row.device_packets), range(row.device_bytes))?;
    writeln!(out, "  sent again             {} bytes", row.retransmit_bytes)?;
    writeln!(out, "  headers not read       {} packets", row.unparsed)?;
    writeln!(out, "  on CPUs without a ring {} packets", row.no_ring)?;
    writeln!(out, "  buckets written        {}", row.buckets)?;
    writeln!(out, "  conserved              {verdict}")
}

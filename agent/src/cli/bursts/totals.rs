//! `fabricscope bursts totals`: the sampler's self-test on one device, against the device's own counters.

use std::io::Write;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use agent_common::bucket::{SLOTS, Totals};
use analysis::series::{Direction, DurationNs};
use anyhow::Context as _;
use serde::Serialize;

use crate::cli::Usage;
use crate::cli::trace::args::Output;
use crate::config::time;
use crate::config::units::clock_fits;
use crate::host::roots::Roots;
use crate::kernel::sampler::{Clock, Counters, Interface, Marks, Options, Retransmissions, Sampler, Traces};

/// How often it is looked at whether to end.
const POLL: Duration = Duration::from_millis(20);

/// Count all packets of a network device for a while, beside the device's own counters: do all arrive?
#[derive(Debug, clap::Args)]
pub(crate) struct TotalsArgs {
    /// The network device
    #[arg(long, value_name = "NAME")]
    netdev: String,
    /// How long a bucket lasts: 100us, 1ms or 10ms
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = super::record::interval)]
    interval: DurationNs,
    /// What tells buckets apart: read, the clock at each packet, or tick, a timer of the kernel
    #[arg(long, value_name = "CLOCK", default_value = "read", value_parser = super::record::clock)]
    clock: Clock,
    /// How long
    #[arg(long = "for", value_name = "TIME", value_parser = time::parse_positive, default_value = "2s", conflicts_with = "command")]
    time: Duration,
    /// Look received segments up in their sockets: which may have been sent again?
    #[arg(long)]
    suspected: bool,
    /// Leave the sketch of flows out, to see what it costs
    #[arg(long)]
    no_sketch: bool,
    /// Count received segments that carry the mark of what was sent again (see bursts.mark_retransmits)
    #[arg(long)]
    marked: bool,
    /// Attach by clsact filters even if the kernel has TCX
    #[arg(long)]
    clsact: bool,
    /// Print a table for people, or one JSON object a line
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    output: Output,
    /// A command to run meanwhile, instead of a time; its exit status is passed on
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// What a device counts as packets and bytes. Drivers differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Rule {
    /// Packets as the kernel handles them: virtual devices.
    Skbs,
    /// The same, without their Ethernet header of 14 bytes: what VLANs and tunnels that carry Ethernet receive.
    SkbsWithoutHeader,
    /// Packets on the wire: network cards that leave the frame check sequence out.
    Wire,
    /// Packets on the wire, each with its frame check sequence of four bytes.
    WireAndCheckSequence,
    /// Packets on the wire without their Ethernet header of 14 bytes: virtual devices that receive by NAPI.
    WireWithoutHeader,
}

impl Rule {
    const ALL: [Self; 5] =
        [Self::Skbs, Self::SkbsWithoutHeader, Self::Wire, Self::WireAndCheckSequence, Self::WireWithoutHeader];

    fn of(self, totals: &Totals) -> Counters {
        let (packets, bytes) = match self {
            Self::Skbs => (totals.skbs, totals.skb_bytes),
            Self::SkbsWithoutHeader => (totals.skbs, totals.skb_bytes.saturating_sub(14 * totals.skbs)),
            Self::Wire => (totals.segments, totals.wire_bytes),
            Self::WireAndCheckSequence => (totals.segments, totals.wire_bytes + 4 * totals.segments),
            Self::WireWithoutHeader => (totals.segments, totals.wire_bytes.saturating_sub(14 * totals.segments)),
        };
        Counters { packets, bytes }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Skbs => "packets as the kernel handles them",
            Self::SkbsWithoutHeader => "packets as the kernel handles them, without their Ethernet header",
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
    retransmit_segments: u64,
    ce_packets: u64,
    ce_bytes: u64,
    /// Absent where the mark is not looked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    marked: Option<Marked>,
    /// What is sent only, of the whole network namespace; absent if the kernel does not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    traced: Option<Traced>,
    unparsed: u64,
    no_ring: u64,
    buckets: u64,
    device_packets: [u64; 2],
    device_bytes: [u64; 2],
    conserved: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<Rule>,
}

/// What carries the mark of what was sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct Marked {
    segments: u64,
    bytes: u64,
}

/// The kernel's own account of what TCP sent again, by its tracepoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct Traced {
    events: u64,
    segments: u64,
    /// Of the segments, those with payload.
    data_segments: u64,
    bytes: u64,
    /// Absent where the tracepoint does not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    failures: Option<u64>,
}

impl Traced {
    /// Of the own network namespace, if all of it is known.
    fn of(traces: &Traces) -> Option<Self> {
        let own = traces.own.filter(|_| traces.sizes)?;
        let failures = traces.failures.then_some(own.failures);
        let (events, segments) = (own.events, own.segments);
        Some(Self { events, segments, data_segments: own.data_segments, bytes: own.bytes, failures })
    }
}

/// Attaches, waits, and compares. The status is the command's, or says whether the device's counters were met.
///
/// # Errors
///
/// If there is no such device, the kernel refuses, or the output cannot be written.
pub(crate) fn run(args: &TotalsArgs, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    clock_fits(args.clock, args.interval).map_err(Usage)?;
    let before = Interface::find(&args.netdev)?;
    let options = Options {
        ifindex: before.ifindex,
        netdev: args.netdev.clone(),
        interval: args.interval,
        clock: args.clock,
        slots: SLOTS,
        clsact: args.clsact,
        suspected: args.suspected,
        sketch: !args.no_sketch,
        marks: if args.marked { Marks::Counted } else { Marks::Ignored },
        regions: Vec::new(),
    };
    let retransmissions = Retransmissions::attach(&Roots::default());
    let sampler = Sampler::attach(&options)?;
    let attached = Interface::find(&args.netdev)?;
    let [rx, tx] = sampler.means();
    eprintln!("fabricscope: {} is sampled (rx: {rx}, tx: {tx})", args.netdev);
    let status = wait(args)?;
    let ending = Interface::find(&args.netdev)?;
    let totals = sampler.totals();
    let traced = retransmissions.and_then(|retransmissions| retransmissions.read());
    let after = Interface::find(&args.netdev)?;
    if let Err(error) = &traced {
        eprintln!("fabricscope: retransmits are counted by the sampler alone: {error:#}");
    }
    let traced = traced.ok().and_then(|traces| Traced::of(&traces));
    let mut conserved = true;
    let brackets = brackets([&before, &attached, &ending, &after].map(|interface| interface.counters));
    for (((direction, totals), means), bracket) in
        Direction::ALL.into_iter().zip(&totals).zip(sampler.means()).zip(brackets)
    {
        let rule = bracket.rule(totals);
        conserved &= rule.is_some();
        let row = Row {
            marked: (args.marked && direction == Direction::Rx)
                .then_some(Marked { segments: totals.marked_segments, bytes: totals.marked_bytes }),
            traced: traced.filter(|_| direction == Direction::Tx),
            ..row(&args.netdev, direction, means.to_string(), totals, bracket, rule)
        };
        match args.output {
            Output::Json => writeln!(out, "{}", serde_json::to_string(&row)?)?,
            Output::Table => table(out, &row)?,
        }
    }
    Ok(status.unwrap_or(if conserved { ExitCode::SUCCESS } else { ExitCode::FAILURE }))
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

/// Waits for the time, the command, or a signal: the programs must be detached in each case. The command's exit status.
fn wait(args: &TotalsArgs) -> anyhow::Result<Option<ExitCode>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).context("installing a signal handler")?;
    }
    let mut child = match args.command.split_first() {
        Some((program, words)) => {
            let child = Command::new(program).args(words).spawn();
            Some(child.with_context(|| format!("starting {program}"))?)
        }
        None => None,
    };
    let end = Instant::now() + args.time;
    while !stop.load(Ordering::Relaxed) {
        match &mut child {
            Some(child) => {
                if let Some(status) = child.try_wait().context("waiting for the command")? {
                    let code = status.code().and_then(|code| u8::try_from(code).ok());
                    return Ok(Some(code.map_or(ExitCode::FAILURE, ExitCode::from)));
                }
            }
            None if Instant::now() >= end => break,
            None => {}
        }
        thread::sleep(POLL);
    }
    // A signal from a terminal reaches the command too.
    Ok(child.map(|_| ExitCode::FAILURE))
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
        retransmit_segments: totals.retransmit_segments,
        ce_packets: totals.ce_packets,
        ce_bytes: totals.ce_bytes,
        marked: None,
        traced: None,
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
    writeln!(out, "  congestion experienced {} packets, {} bytes", row.ce_packets, row.ce_bytes)?;
    writeln!(out, "  sent again             {} segments, {} bytes", row.retransmit_segments, row.retransmit_bytes)?;
    if let Some(Traced { events, segments, data_segments, bytes, failures }) = row.traced {
        let data = format!("{segments} segments at {events} times, with payload {data_segments}, {bytes} bytes");
        let failures = failures.map_or(String::new(), |failures| format!("; {failures} times it failed"));
        writeln!(out, "    by the kernel        {data}{failures} (all devices of this network namespace)")?;
    }
    if let Some(Marked { segments, bytes }) = row.marked {
        writeln!(out, "  marked as sent again   {segments} segments, {bytes} bytes")?;
    }
    writeln!(out, "  headers not read       {} packets", row.unparsed)?;
    writeln!(out, "  on CPUs without a ring {} packets", row.no_ring)?;
    writeln!(out, "  buckets written        {}", row.buckets)?;
    writeln!(out, "  conserved              {verdict}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(packets: u64, bytes: u64) -> Counters {
        Counters { packets, bytes }
    }

    #[test]
    fn a_bracket_is_what_was_counted_while_attached_up_to_what_was_counted_around_it() {
        let at = |rx: u64, tx: u64| [counters(rx, 100 * rx), counters(tx, 50 * tx)];
        let [rx, tx] = brackets([at(1, 1), at(3, 1), at(10, 4), at(11, 4)]);
        assert_eq!((rx.least, rx.most), (counters(7, 700), counters(10, 1000)));
        assert_eq!((tx.least, tx.most), (counters(3, 150), counters(3, 150)));
    }

    #[test]
    fn the_rule_is_the_one_that_the_device_counts_by() {
        // Two packets of the kernel, of 3,000 bytes, are five on the wire.
        let totals = Totals { skbs: 2, skb_bytes: 3000, segments: 5, wire_bytes: 3162, ..Totals::default() };
        let rows = [
            (counters(2, 3000), Some(Rule::Skbs)),
            (counters(2, 2972), Some(Rule::SkbsWithoutHeader)),
            (counters(5, 3162), Some(Rule::Wire)),
            (counters(5, 3182), Some(Rule::WireAndCheckSequence)),
            (counters(5, 3092), Some(Rule::WireWithoutHeader)),
            (counters(5, 3000), None),
            (counters(2, 3162), None),
        ];
        for (device, expected) in rows {
            let bracket = Bracket { least: device, most: device };
            assert_eq!(bracket.rule(&totals), expected, "{device:?}");
        }
        let wide = Bracket { least: counters(1, 2900), most: counters(2, 3100) };
        assert_eq!(wide.rule(&totals), Some(Rule::Skbs));
    }
}

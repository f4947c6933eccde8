//! What the detectors say, in sentences and as JSON.

use std::io::{self, Write};

use analysis::counter_series::Lane;
use analysis::verdict::Verdict;
use serde::Serialize;

use crate::counters::findings::{Judged, Windows};
use crate::counters::readout::Kind;
use crate::terminal::{Paper, clean};

/// Writes what fires; with `all` also what cannot be told.
pub(super) fn write(windows: &Windows, all: bool, paper: Paper, out: &mut impl Write) -> io::Result<()> {
    let found: Vec<String> = windows.findings().iter().flat_map(|judged| sentences(judged, all)).collect();
    let left_out = windows.left_out();
    if found.is_empty() && left_out == 0 {
        return Ok(());
    }
    let heading = format!("Findings in the last {:.1} s", windows.covers().seconds());
    writeln!(out, "\n{}", paper.styled(anstyle::Style::new().bold(), &heading))?;
    for line in &found {
        writeln!(out, "  {}", clean(line))?;
    }
    if left_out > 0 {
        writeln!(out, "  {left_out} further ports are not judged: name fewer with --device")?;
    }
    Ok(())
}

fn sentences(judged: &Judged, all: bool) -> Vec<String> {
    let mut port = judged.place.device.clone();
    if let Some(number) = judged.place.port {
        port.push_str(&format!(" port {number}"));
    }
    if let Some(netdev) = &judged.netdev {
        port.push_str(&format!(" ({netdev})"));
    }
    let detector = judged.finding.detector;
    match &judged.finding.verdict {
        Verdict::Quiet => Vec::new(),
        Verdict::Firing(found) => found.iter().map(|evidence| format!("{port}: {detector}: {evidence}")).collect(),
        Verdict::CannotTell(_) if !all => Vec::new(),
        Verdict::CannotTell(why) => {
            let lane = judged.finding.lane.map(|lane| format!(" of {lane}")).unwrap_or_default();
            vec![format!("{port}: {detector}{lane} cannot tell: {why}")]
        }
    }
}

/// What one detector says of one port.
#[derive(Debug, Serialize)]
pub(super) struct Record {
    detector: &'static str,
    kind: &'static str,
    device: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    port: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    netdev: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<u8>,
    verdict: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    evidence: Vec<Evidence>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

#[derive(Debug, Serialize)]
struct Evidence {
    text: String,
}

/// What fires; with `all` also what cannot be told.
pub(super) fn records(windows: &Windows, all: bool) -> Vec<Record> {
    let found = windows.findings().into_iter().filter(|judged| match judged.finding.verdict {
        Verdict::Quiet => false,
        Verdict::Firing(_) => true,
        Verdict::CannotTell(_) => all,
    });
    found.map(record).collect()
}

fn record(judged: Judged) -> Record {
    let Judged { place, netdev, finding } = judged;
    let verdict = finding.verdict.name();
    let (evidence, why) = match finding.verdict {
        Verdict::Quiet => (Vec::new(), None),
        Verdict::Firing(found) => {
            (found.iter().map(|evidence| Evidence { text: evidence.to_string() }).collect(), None)
        }
        Verdict::CannotTell(why) => (Vec::new(), Some(why.to_string())),
    };
    Record {
        detector: finding.detector,
        kind: match place.kind {
            Kind::Rdma => "rdma",
            Kind::Netdev => "netdev",
        },
        device: place.device,
        port: place.port,
        netdev,
        priority: match finding.lane {
            Some(Lane::Priority(priority)) => Some(priority),
            Some(Lane::Port) | None => None,
        },
        verdict,
        evidence,
        why,
    }
}

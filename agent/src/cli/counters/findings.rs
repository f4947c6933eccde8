//! What the detectors say, in sentences and as JSON.

use std::io::{self, Write};

use analysis::verdict::Verdict;

use crate::counters::findings::{Judged, Windows};
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
    let (about, detector) = (&judged.about, judged.finding.detector);
    match &judged.finding.verdict {
        Verdict::Quiet => Vec::new(),
        Verdict::Firing(found) => found.iter().map(|evidence| format!("{about}: {detector}: {evidence}")).collect(),
        Verdict::CannotTell(_) if !all => Vec::new(),
        Verdict::CannotTell(why) => {
            let lane = judged.finding.lane.map(|lane| format!(" of {lane}")).unwrap_or_default();
            vec![format!("{about}: {detector}{lane} cannot tell: {why}")]
        }
    }
}

/// What is told: what fires; with `all` also what cannot be told.
pub(super) fn told(windows: &Windows, all: bool) -> Vec<Judged> {
    let mut found = windows.findings();
    found.retain(|judged| match judged.finding.verdict {
        Verdict::Quiet => false,
        Verdict::Firing(_) => true,
        Verdict::CannotTell(_) => all,
    });
    found
}

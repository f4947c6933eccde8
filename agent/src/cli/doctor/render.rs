//! How the doctor's report looks: a table that follows the terminal's width, or one JSON object.

use std::io::{self, IsTerminal, Write};

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use super::Report;
use super::checks::Outcome;
use super::features::State;
use crate::cli::rdma_record::DeviceRecord;

/// Width where there is no terminal: a log, a file, a pipe.
const WIDTH_DEFAULT: usize = 100;

/// Below this the text column would be a word wide: let the terminal wrap instead.
const WIDTH_MIN: usize = 64;

/// What the table is printed on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Paper {
    /// In columns.
    pub(super) width: usize,
    pub(super) colour: bool,
}

impl Paper {
    /// The terminal's width if standard output is one; colour only there, and not if NO_COLOR is set.
    pub(super) fn of_stdout() -> Self {
        let stdout = io::stdout();
        let width = terminal_size::terminal_size_of(&stdout).map(|(width, _)| usize::from(width.0));
        Self {
            width: width.unwrap_or(WIDTH_DEFAULT).max(WIDTH_MIN),
            colour: stdout.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        }
    }
}

/// A word in the first column and its colour.
#[derive(Clone, Copy)]
struct Word(&'static str, AnsiColor);

impl Word {
    fn of_outcome(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Ok(_) => Self("ok", AnsiColor::Green),
            Outcome::Missing(_) => Self("missing", AnsiColor::Red),
            Outcome::Unknown(_) => Self("unknown", AnsiColor::Yellow),
        }
    }

    fn of_state(state: State) -> Self {
        match state {
            State::Yes => Self("yes", AnsiColor::Green),
            State::No => Self("no", AnsiColor::Red),
            State::Unknown => Self("unknown", AnsiColor::Yellow),
        }
    }
}

/// Columns before the text: the longest word, the longest name, and two spaces after each.
struct Columns {
    paper: Paper,
    word: usize,
    name: usize,
}

impl Columns {
    fn row(&self, out: &mut impl Write, word: Word, name: &str, text: &str) -> io::Result<()> {
        let Word(word, colour) = word;
        let style = Style::new().fg_color(Some(colour.into()));
        let pad = " ".repeat(self.word.saturating_sub(word.len()));
        if self.paper.colour {
            write!(out, "{style}{word}{style:#}{pad}  ")?;
        } else {
            write!(out, "{word}{pad}  ")?;
        }
        write!(out, "{name:<width$}  ", width = self.name)?;
        self.text(out, "", text)
    }

    /// A line below a row, in the text column: `label` and text.
    fn below(&self, out: &mut impl Write, label: &str, text: &str) -> io::Result<()> {
        write!(out, "{:indent$}", "", indent = self.indent())?;
        self.text(out, label, text)
    }

    fn indent(&self) -> usize {
        self.word + self.name + 4
    }

    /// The rest of a line, wrapped under itself. Text from sysfs may hold anything: control characters would reach
    /// the terminal as commands.
    fn text(&self, out: &mut impl Write, label: &str, text: &str) -> io::Result<()> {
        let text: String = text.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
        let width = self.paper.width.saturating_sub(self.indent() + label.len()).max(20);
        let indent = " ".repeat(self.indent() + label.len());
        for (number, line) in textwrap::wrap(&text, width).iter().enumerate() {
            let before = if number == 0 { label } else { &indent };
            writeln!(out, "{before}{line}")?;
        }
        Ok(())
    }
}

/// Prints the report for people.
pub(super) fn table(report: &Report<'_>, paper: Paper, out: &mut impl Write) -> io::Result<()> {
    let check_names = report.checks.iter().map(|(check, _)| check.name.len());
    let feature_names = report.features.iter().map(|feature| feature.name.len());
    let columns = Columns { paper, word: "missing".len(), name: check_names.chain(feature_names).max().unwrap_or(0) };
    for (check, outcome) in &report.checks {
        let (Outcome::Ok(detail) | Outcome::Missing(detail) | Outcome::Unknown(detail)) = outcome;
        columns.row(out, Word::of_outcome(outcome), check.name, detail)?;
        if !matches!(outcome, Outcome::Ok(_)) {
            columns.below(out, "for:   ", check.needed_for)?;
        }
        if matches!(outcome, Outcome::Missing(_)) {
            columns.below(out, "costs: ", check.costs)?;
            columns.below(out, "mend:  ", check.mend)?;
        }
    }
    writeln!(out, "\nfeatures")?;
    for feature in &report.features {
        columns.row(out, Word::of_state(feature.state), feature.name, &feature.detail)?;
    }
    Ok(())
}

/// Prints the report as one JSON object on one line.
pub(super) fn json(report: &Report<'_>, out: &mut impl Write) -> anyhow::Result<()> {
    serde_json::to_writer(&mut *out, &JsonReport::of(report))?;
    writeln!(out)?;
    Ok(())
}

#[derive(Serialize)]
struct JsonReport<'a> {
    schema: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    boot_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel: Option<&'a str>,
    checks: Vec<JsonCheck<'a>>,
    features: Vec<JsonFeature<'a>>,
    devices: Vec<DeviceRecord<'a>>,
}

#[derive(Serialize)]
struct JsonCheck<'a> {
    check: &'a str,
    status: &'static str,
    detail: &'a str,
    needed_for: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    costs: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mend: Option<&'a str>,
}

#[derive(Serialize)]
struct JsonFeature<'a> {
    feature: &'a str,
    state: &'static str,
    detail: &'a str,
}

impl<'a> JsonReport<'a> {
    fn of(report: &'a Report<'a>) -> Self {
        let kernel = &report.facts.kernel;
        let check = |(check, outcome): &'a (&'static super::Check, Outcome)| {
            let (Outcome::Ok(detail) | Outcome::Missing(detail) | Outcome::Unknown(detail)) = outcome;
            let missing = matches!(outcome, Outcome::Missing(_));
            JsonCheck {
                check: check.name,
                status: Word::of_outcome(outcome).0,
                detail,
                needed_for: check.needed_for,
                costs: missing.then_some(check.costs),
                mend: missing.then_some(check.mend),
            }
        };
        let feature = |feature: &'a super::Feature| JsonFeature {
            feature: feature.name,
            state: Word::of_state(feature.state).0,
            detail: &feature.detail,
        };
        Self {
            schema: "fabricscope.doctor.v1",
            host: kernel.hostname.as_deref(),
            boot_id: kernel.boot_id.as_deref(),
            kernel: kernel.release.as_deref(),
            checks: report.checks.iter().map(check).collect(),
            features: report.features.iter().map(feature).collect(),
            devices: report.facts.rdma.devices.iter().map(DeviceRecord::of).collect(),
        }
    }
}

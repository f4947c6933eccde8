//! The report for people.

use std::io::{self, Write};
use std::time::Duration;

use anstyle::{AnsiColor, Style};

use super::Report;
use crate::cli::counters::further::sentences;
use crate::cli::doctor::Offer;
use crate::counters::netlink::devlink::Reporter;
use crate::host::facts::HostFacts;
use crate::host::rdma::{RdmaDevice, RdmaPort};
use crate::rpc::seen::AgentStatus;
use crate::terminal::{Column, Paper, Table, clean};
use crate::verbs::text;

/// Width of the first column.
const LABEL_WIDTH: usize = 10;

/// Width to wrap at where there is no terminal.
const WRAP_DEFAULT: usize = 120;

/// The least that text is wrapped to.
const WRAP_MIN: usize = 30;

/// Failures that fit the screen along with the rest.
const FAILURES_SHOWN: usize = 8;

const GREEN: Style = Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Green)));
const YELLOW: Style = Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Yellow)));
const RED: Style = Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Red)));

/// A port with its device.
struct PortRow<'a>(&'a RdmaDevice, Option<&'a RdmaPort>);

const NONE: &str = "-";

fn text_or_none(text: Option<&String>) -> String {
    text.map_or(NONE, String::as_str).to_owned()
}

fn port_columns<'a>() -> [Column<PortRow<'a>>; 8] {
    [
        Column { title: "DEVICE", min: 8, wanted: 10, rank: 0, value: |row| row.0.name.clone() },
        Column { title: "PORT", min: 4, wanted: 4, rank: 0, value: port_number },
        Column { title: "STATE", min: 6, wanted: 8, rank: 0, value: |row| port_text(row, |port| &port.state) },
        Column { title: "RATE", min: 10, wanted: 20, rank: 4, value: |row| port_text(row, |port| &port.rate) },
        Column { title: "LINK", min: 8, wanted: 10, rank: 3, value: |row| port_text(row, |port| &port.link_layer) },
        Column { title: "NETDEV", min: 6, wanted: 10, rank: 1, value: port_netdevs },
        Column { title: "DRIVER", min: 8, wanted: 10, rank: 2, value: |row| text_or_none(row.0.driver.as_ref()) },
        Column { title: "FIRMWARE", min: 8, wanted: 12, rank: 5, value: |row| text_or_none(row.0.firmware.as_ref()) },
    ]
}

fn port_number(row: &PortRow<'_>) -> String {
    row.1.map_or(NONE.to_owned(), |port| port.number.to_string())
}

fn port_netdevs(row: &PortRow<'_>) -> String {
    match row.1 {
        Some(port) if !port.netdevs.is_empty() => port.netdevs.join(","),
        _ => NONE.to_owned(),
    }
}

fn port_text(row: &PortRow<'_>, text: fn(&RdmaPort) -> &Option<String>) -> String {
    text_or_none(row.1.and_then(|port| text(port).as_ref()))
}

/// Lines with a label before them.
struct Screen<'a, W> {
    paper: Paper,
    out: &'a mut W,
}

impl<W: Write> Screen<'_, W> {
    /// A label and text, wrapped under itself.
    fn line(&mut self, label: &str, style: Style, text: &str) -> io::Result<()> {
        let width = self.paper.width.unwrap_or(WRAP_DEFAULT).saturating_sub(LABEL_WIDTH).max(WRAP_MIN);
        let text = clean(text);
        let mut label = label;
        for line in textwrap::wrap(&text, width) {
            writeln!(self.out, "{label:<LABEL_WIDTH$}{}", self.paper.styled(style, &line))?;
            label = "";
        }
        Ok(())
    }

    /// A table under a heading of its own.
    fn table<T>(&mut self, title: &str, columns: &[Column<T>], rows: &[T]) -> io::Result<()> {
        writeln!(self.out, "\n{title}")?;
        let table = Table::new(columns, self.paper);
        writeln!(self.out, "{}", table.heading())?;
        rows.iter().try_for_each(|row| writeln!(self.out, "{}", table.row(row)))
    }

    fn devices(&mut self, devices: &[RdmaDevice]) -> io::Result<()> {
        if devices.is_empty() {
            return self.line("devices", YELLOW, "no RDMA device on this host");
        }
        let rows: Vec<_> = devices
            .iter()
            .flat_map(|device| {
                let none = device.ports.is_empty().then_some(PortRow(device, None));
                device.ports.iter().map(move |port| PortRow(device, Some(port))).chain(none)
            })
            .collect();
        self.table("devices and ports", &port_columns(), &rows)
    }

    fn agent(&mut self, status: &AgentStatus) -> io::Result<()> {
        let info = &status.info;
        let host = info.host.as_deref().unwrap_or("a host without name");
        let plain = Style::new();
        let up = uptime(status.uptime);
        self.line("agent", plain, &format!("version {} on {host}, up {up}", info.version))?;
        self.line("kernel", plain, info.kernel.as_deref().unwrap_or("unknown"))?;
        self.line(
            "metrics",
            plain,
            &info.metrics.as_ref().map_or("off".to_owned(), |at| format!("http://{at}/metrics")),
        )?;
        let hooks = format!("{} of {} attached", status.hooks_attached, status.hooks_wanted);
        self.line("hooks", if status.hooks_attached < status.hooks_wanted { YELLOW } else { GREEN }, &hooks)?;
        for (number, why) in status.idle.iter().enumerate() {
            self.line(if number == 0 { "idle" } else { "" }, plain, why)?;
        }
        let (calls, failures, probes) = (status.calls, status.failures, status.probes);
        let counts = format!("{calls}, of these {failures} failed and {probes} only probed");
        self.line("calls", if failures > 0 { RED } else { plain }, &counts)?;
        if status.degraded.is_empty() {
            self.line("degraded", GREEN, "nothing")?;
        }
        for (number, why) in status.degraded.iter().enumerate() {
            self.line(if number == 0 { "degraded" } else { "" }, YELLOW, why)?;
        }
        for (number, note) in status.notes.iter().enumerate() {
            self.line(if number == 0 { "note" } else { "" }, YELLOW, note)?;
        }
        if status.losses.is_empty() {
            self.line("lost", GREEN, "nothing")?;
        }
        for (number, loss) in status.losses.iter().enumerate() {
            let text = format!("{} at {}/{}: {}", loss.count, loss.program, loss.stage, loss.reason);
            self.line(if number == 0 { "lost" } else { "" }, YELLOW, &text)?;
        }
        self.failures(status)?;
        self.devices(&status.devices)
    }

    fn failures(&mut self, status: &AgentStatus) -> io::Result<()> {
        let all = &status.last_failures;
        let shown = all.get(..FAILURES_SHOWN).unwrap_or(all);
        if shown.is_empty() {
            return self.line("failures", GREEN, "none");
        }
        self.table("last failures (UTC, newest first)", &text::COLUMNS, shown)
    }

    fn alone(&mut self, facts: &HostFacts, offers: &[Offer]) -> io::Result<()> {
        let plain = Style::new();
        let kernel = facts.kernel.release.as_deref().unwrap_or("unknown");
        self.line("agent", YELLOW, "none runs on this host; start one with: fabricscope agent --config FILE")?;
        self.line("kernel", plain, kernel)?;
        self.line("offers", plain, "what an agent could do here (fabricscope doctor tells more):")?;
        for Offer { feature, state, detail } in offers {
            let style = match *state {
                "yes" => GREEN,
                "no" => RED,
                _ => YELLOW,
            };
            self.line("", style, &format!("{state}: {feature}: {detail}"))?;
        }
        self.devices(&facts.rdma.devices)
    }
}

/// How long, in the two largest units that are not zero.
fn uptime(time: Duration) -> String {
    let seconds = time.as_secs();
    let units = [("d", 86_400, u64::MAX), ("h", 3_600, 24), ("min", 60, 60), ("s", 1, 60)];
    let parts = units.map(|(unit, size, wrap)| (seconds / size % wrap, unit));
    let first = parts.iter().position(|(value, _)| *value > 0).unwrap_or(parts.len() - 1);
    let shown = parts.iter().skip(first).take(2).filter(|(value, _)| *value > 0 || seconds == 0);
    shown.map(|(value, unit)| format!("{value} {unit}")).collect::<Vec<_>>().join(" ")
}

/// Prints the report.
pub(super) fn table(report: &Report, reporters: &[Reporter], paper: Paper, out: &mut impl Write) -> io::Result<()> {
    let mut screen = Screen { paper, out };
    match report {
        Report::Agent(status) => screen.agent(status)?,
        Report::Alone(facts, offers) => screen.alone(facts, offers)?,
    }
    for (number, line) in sentences(reporters, false).iter().enumerate() {
        screen.line(if number == 0 { "reporters" } else { "" }, YELLOW, line)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uptime_is_told_in_its_largest_units() {
        for (seconds, expected) in
            [(0, "0 s"), (59, "59 s"), (60, "1 min"), (3_725, "1 h 2 min"), (90_000, "1 d 1 h"), (8_640_059, "100 d")]
        {
            assert_eq!(uptime(Duration::from_secs(seconds)), expected);
        }
    }
}

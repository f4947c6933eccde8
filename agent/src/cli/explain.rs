//! `fabricscope explain`: what a word of this program means, what raises it, and what to look at next.

use std::io::Write;
use std::process::ExitCode;

use clap::Subcommand;

use crate::counters::catalogue::{Name, Row, Scale, Source, Width, origin, rows};
use crate::terminal::Paper;

/// What to explain.
#[derive(Debug, Subcommand)]
pub(crate) enum Explain {
    /// A NIC or RDMA counter: what it means, what raises it, what to look at next
    ///
    /// NAME is that of `fabricscope counters`, of a metric, or a driver's own such as rx_prio3_pause. Without one all
    /// counters are listed.
    Counter {
        /// The counter
        #[arg(value_parser = named)]
        name: Option<Named>,
    },
}

/// The counters a name stands for.
#[derive(Clone, Debug)]
pub(crate) struct Named(Vec<&'static Row>);

/// Names like it that are shown when there is no such counter.
const LIKE_IT: usize = 5;

fn named(text: &str) -> Result<Named, String> {
    let own = |row: &&Row| row.name == text || row.metric_name() == text;
    let driver = |row: &&Row| row.names.iter().any(|name| name.name == text || name.matches(text).is_some());
    let mut found: Vec<&'static Row> = rows().filter(own).collect();
    if found.is_empty() {
        found = rows().filter(driver).collect();
    }
    if found.is_empty() {
        let like = |row: &&Row| row.name.contains(text) || row.names.iter().any(|name| name.name.contains(text));
        let names: Vec<&str> = rows().filter(like).take(LIKE_IT).map(|row| row.name).collect();
        return Err(match names.is_empty() || text.is_empty() {
            true => "no such counter; `fabricscope explain counter` lists all".to_owned(),
            false => format!("no such counter; there are {}", names.join(", ")),
        });
    }
    Ok(Named(found))
}

/// Explains.
///
/// # Errors
///
/// If the output cannot be written.
pub(crate) fn run(what: &Explain, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let Explain::Counter { name } = what;
    match name {
        Some(Named(rows)) => {
            for (index, row) in rows.iter().enumerate() {
                if index > 0 {
                    writeln!(out)?;
                }
                write(row, Paper::of_stdout(), out)?;
            }
        }
        None => {
            for row in rows() {
                writeln!(out, "{:<44} {}", row.name, row.meaning)?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn write(row: &Row, paper: Paper, out: &mut impl Write) -> anyhow::Result<()> {
    writeln!(out, "{}", paper.styled(anstyle::Style::new().bold(), row.name))?;
    writeln!(out, "  {}", row.meaning)?;
    let labels = match row.pause_metric() {
        Some((_, direction)) => format!("{{netdev, priority, direction=\"{direction}\"}}"),
        None if row.name.starts_with("rdma_") => "{device, port}".to_owned(),
        None => "{netdev}".to_owned(),
    };
    if row.metric {
        field(out, "metric", &format!("{}{labels}", row.metric_name()), paper)?;
    }
    let by = if row.is_by_priority() { ", by priority" } else { "" };
    field(out, "unit", &format!("{}{by}", row.unit.word()), paper)?;
    if row.is_trouble() {
        field(out, "raised by", row.raised, paper)?;
        field(out, "look at", row.next, paper)?;
    }
    for name in row.names {
        let kernel = origin(name.driver, name.source);
        let text = format!("{} {}: {}, {} ({kernel})", name.driver.name(), place(name.source), name.name, kept(name));
        field(out, "read from", &text, paper)?;
    }
    Ok(())
}

fn place(source: Source) -> &'static str {
    match source {
        Source::Counters => "in counters/",
        Source::HwCounters | Source::RdmaNetlink => "in hw_counters/",
        Source::Ethtool => "by ethtool -S",
        Source::Standard => "in the standard statistics of ethtool",
        Source::Rtnetlink => "by rtnetlink",
        Source::Netdev => "of the network device",
    }
}

/// How a driver keeps a counter.
fn kept(name: &Name) -> String {
    let unit = match name.scale {
        Scale::One => "",
        Scale::Words => " in words of 4 bytes",
        Scale::Micros => " in microseconds",
        Scale::Unknown => " in a unit its source does not name",
    };
    let width = match name.width {
        Width::Full => "64 bits".to_owned(),
        Width::Wraps(bits) => format!("{bits} bits that wrap"),
        Width::Saturates(bits) => format!("{bits} bits that stop at the end"),
        Width::Gauge => "goes up and down".to_owned(),
    };
    format!("{width}{unit}")
}

fn field(out: &mut impl Write, title: &str, text: &str, paper: Paper) -> anyhow::Result<()> {
    const INDENT: usize = 14;
    let width = paper.width.unwrap_or(120).saturating_sub(INDENT).max(20);
    for (index, line) in textwrap::wrap(text, width).iter().enumerate() {
        let title = if index == 0 { title } else { "" };
        writeln!(out, "  {title:<10}  {line}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let names: Vec<&str> = named(text).unwrap().0.iter().map(|row| row.name).collect();
        assert_eq!(names, expected);
    }

    #[test]
    fn names_of_all_kinds_are_understood() {
        check("pfc_sent_pause_frames", &["pfc_sent_pause_frames"]);
        check("rx_prio3_pause", &["pfc_received_pause_frames"]);
        check("rx_prio{p}_pause", &["pfc_received_pause_frames"]);
        check("port_rcv_data", &["rdma_received_bytes"]);
        check("fabricscope_pfc_pause_seconds_total", &["pfc_received_pause_seconds", "pfc_sent_pause_seconds"]);
        // Drivers mean different things by it.
        check("rx_bytes", &["rdma_received_bytes", "nic_wire_received_bytes", "nic_received_bytes"]);
        assert!(named("cnp").unwrap_err().contains("rdma_cnp_sent_packets"));
        assert!(named("nothing like it").unwrap_err().contains("lists all"));
        assert!(named("").unwrap_err().contains("lists all"));
    }

    #[test]
    fn every_counter_is_explained() {
        for row in rows() {
            let mut out = Vec::new();
            write(row, Paper::PLAIN, &mut out).unwrap();
            let text = String::from_utf8(out).unwrap();
            assert!(text.contains(row.meaning) && text.contains("read from"), "{text}");
            assert_eq!(text.contains("look at"), row.is_trouble(), "{text}");
        }
    }
}

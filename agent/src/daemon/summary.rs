//! The live summary: rewritten in place on a terminal, else one line each second.

use std::fmt::{self, Write as _};
use std::io::{self, Write};

use analysis::series::BitsPerSecond;

use super::findings::Firing;
use super::handle::Status;
use crate::bursts::state::Live;
use crate::event::Failure;
use crate::host::errno::errno_name;

/// Failures shown on a terminal.
const FAILURES_SHOWN: usize = 8;

/// Network devices shown on a terminal.
const NETDEVS_SHOWN: usize = 8;

/// Network devices shown where the summary is one line.
const NETDEVS_ON_A_LINE: usize = 2;

/// Where the summary goes and what stands there now.
pub(crate) struct Summary {
    out: Box<dyn Write + Send>,
    /// Columns of the terminal; `None` where it is none.
    width: Option<Box<dyn Fn() -> usize + Send>>,
    lines: usize,
}

impl fmt::Debug for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Summary")
            .field("terminal", &self.width.is_some())
            .field("lines", &self.lines)
            .finish_non_exhaustive()
    }
}

impl Summary {
    /// Rewritten in place; `width` is asked each time, since a window changes.
    pub(crate) fn on_terminal(out: Box<dyn Write + Send>, width: Box<dyn Fn() -> usize + Send>) -> Self {
        Self { out, width: Some(width), lines: 0 }
    }

    /// One line each time.
    pub(crate) fn as_lines(out: Box<dyn Write + Send>) -> Self {
        Self { out, width: None, lines: 0 }
    }

    /// Shows how the agent is doing; `last` for the last time.
    pub(super) fn show(&mut self, status: &Status, last: bool) -> io::Result<()> {
        let mut text = String::new();
        match &self.width {
            None => {
                text.push_str(&one_line(status));
                if last {
                    text.push_str(" (stopped)");
                }
                text.push('\n');
            }
            Some(width) => {
                let width = width();
                if self.lines > 0 {
                    // Up to the first line of what stands there, and clear to the end of the screen.
                    // Writing to a string does not fail.
                    let _ = write!(text, "\x1b[{}F\x1b[0J", self.lines);
                }
                let lines = many_lines(status);
                self.lines = lines.len();
                for line in lines {
                    text.extend(line.chars().map(printable).take(width.max(1)));
                    text.push('\n');
                }
            }
        }
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }
}

/// Names of processes are whatever the process says; none may steer the terminal.
fn printable(c: char) -> char {
    if c.is_control() { '?' } else { c }
}

fn one_line(status: &Status) -> String {
    let mut text = format!(
        "hooks {}/{}, calls {}, failures {}, lost {}",
        status.hooks_attached,
        status.hooks_wanted,
        status.calls,
        status.failures,
        status.lost_total()
    );
    for live in status.netdevs.iter().take(NETDEVS_ON_A_LINE) {
        let _ = write!(text, ", {}", one_netdev(live));
    }
    if let Some(failure) = status.last_failures().next() {
        let _ = write!(text, ", last {}", one_failure(failure));
    }
    if status.hooks_attached == 0
        && let Some(why) = status.idle.first()
    {
        let _ = write!(text, ", idle: {why}");
    }
    if let Some(url) = status.info.metrics_url() {
        let _ = write!(text, ", {url}");
    }
    text.chars().map(printable).collect()
}

fn many_lines(status: &Status) -> Vec<String> {
    let (attached, wanted) = (status.hooks_attached, status.hooks_wanted);
    let kernel = status.info.kernel.as_deref().unwrap_or("unknown");
    let mut lines = vec![
        format!("fabricscope {} on kernel {kernel}, up {} s", status.info.version, status.uptime.as_secs()),
        format!("hooks     {attached} of {wanted} attached"),
        format!("calls     {} ({} failed, {} refused probes)", status.calls, status.failures, status.probes),
        format!("lost      {}", status.lost_total()),
    ];
    lines.extend(status.info.metrics_url().map(|url| format!("metrics   {url}")));
    lines.extend(status.netdevs.iter().take(NETDEVS_SHOWN).map(|live| format!("netdev    {}", one_netdev(live))));
    let mut list = |title: &str, all: &mut dyn Iterator<Item = String>| {
        for (index, line) in all.take(FAILURES_SHOWN).enumerate() {
            lines.push(format!("{:<9} {line}", if index == 0 { title } else { "" }));
        }
    };
    list("findings", &mut status.findings.iter().flat_map(Firing::lines));
    list("idle", &mut status.idle.iter().cloned());
    list("degraded", &mut status.degraded.iter().cloned());
    list("failures", &mut status.last_failures().map(one_failure));
    lines
}

/// `eth0: rx 1.2 Gbit/s (peak 9.6 Gbit/s, 96 %), tx 0 bit/s (peak 0 bit/s, 0 %)`
fn one_netdev(live: &Live) -> String {
    let way = |name: &str, average: BitsPerSecond, peak: BitsPerSecond| {
        let share = live.line_rate.map_or(String::new(), |rate| format!(", {} %", percent(peak, rate)));
        format!("{name} {} (peak {}{share})", rounded(average), rounded(peak))
    };
    let ([rx, tx], [rx_peak, tx_peak]) = (live.average, live.peak);
    format!("{}: {}, {}", live.netdev, way("rx", rx, rx_peak), way("tx", tx, tx_peak))
}

fn percent(rate: BitsPerSecond, of: BitsPerSecond) -> u128 {
    u128::from(rate.0) * 100 / u128::from(of.0.max(1))
}

/// To three digits: more change from line to line than can be read.
fn rounded(rate: BitsPerSecond) -> BitsPerSecond {
    let step = 10u64.pow(rate.0.checked_ilog10().unwrap_or_default().saturating_sub(2));
    BitsPerSecond(rate.0 / step * step)
}

/// `reg_mr EFAULT on mlx5_0 by python[4711] in ib_umem_get`
fn one_failure(failure: &Failure) -> String {
    let device = failure.device.as_deref().map(|device| format!(" on {device}")).unwrap_or_default();
    format!(
        "{} {}{device} by {}[{}] in {}",
        failure.verb,
        errno_name(failure.errno),
        failure.comm,
        failure.pid,
        failure.answer.function
    )
}

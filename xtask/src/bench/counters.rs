//! `cargo xtask bench counters`: a full reading of the NIC counters of nine adapters, beside node_exporter's infiniband
//! collector on the same tree.
//!
//! The files are ordinary ones: the figures are those of reading and of making text, not of firmware. CPU is what the
//! kernel accounts to the processes' threads, in both cases for everything from the files to the text.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use clap::builder::RangedU64ValueParser;
use serde_json::{Value, json};

use crate::runner::{agent, on_path, target};
use crate::{apt, build};

/// Adapters, each with one port.
const DEVICES: usize = 9;
/// Readings before the clock runs: files are opened, caches are warm.
const WARM: u32 = 5;
/// Aims: a full reading, and its CPU as a share of the other's.
const AIM_SECONDS: f64 = 5e-3;
pub(super) const AIM_SHARE: f64 = 0.1;
/// How long a program may take to answer for the first time.
const START: Duration = Duration::from_secs(30);
/// Where node_exporter comes from when it is not installed.
const SUITE: &str = "trixie";
const PACKAGE: &str = "prometheus-node-exporter";

/// What an adapter shows in its port's `counters`, then in `hw_counters`: the names of mlx5.
const COUNTERS: &str = "VL15_dropped excessive_buffer_overrun_errors link_downed link_error_recovery \
    local_link_integrity_errors multicast_rcv_packets multicast_xmit_packets port_rcv_constraint_errors port_rcv_data \
    port_rcv_errors port_rcv_packets port_rcv_remote_physical_errors port_rcv_switch_relay_errors \
    port_xmit_constraint_errors port_xmit_data port_xmit_discards port_xmit_packets port_xmit_wait symbol_error \
    unicast_rcv_packets unicast_xmit_packets";
const HW_COUNTERS: &str = "duplicate_request implied_nak_seq_err lifespan local_ack_timeout_err np_cnp_sent \
    np_ecn_marked_roce_packets out_of_buffer out_of_sequence packet_seq_err req_cqe_error req_cqe_flush_error \
    req_remote_access_errors req_remote_invalid_request req_rnr_retries_exceeded req_transport_retries_exceeded \
    resp_cqe_error resp_cqe_flush_error resp_local_length_error resp_remote_access_errors rnr_nak_retry_err \
    roce_adp_retrans roce_adp_retrans_to roce_slow_restart roce_slow_restart_cnps roce_slow_restart_trans \
    rp_cnp_handled rp_cnp_ignored rx_atomic_requests rx_dct_connect rx_icrc_encapsulated rx_read_requests \
    rx_write_requests rx_prio_unknown";

/// Measures a full reading of NIC counters.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many readings are measured
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = RangedU64ValueParser::<u32>::new().range(10..=10_000))]
    readings: u32,
    /// Where the figures go as JSON [default: counters.json in the target folder's bench]
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// What one program took for a reading.
#[derive(Clone, Debug, PartialEq)]
struct Figures {
    /// Median of what it says itself.
    seconds: f64,
    /// CPU time, from the files to the text.
    cpu_seconds: f64,
    /// Values it showed.
    values: usize,
}

/// Runs the command line: measures, prints, writes the JSON.
///
/// # Errors
/// When something that is needed is not there, or a program does not answer.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    build::agent(true)?;
    let folder = target()?.join("bench");
    fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
    let tree = tempfile::tempdir().context("make a folder for the tree")?;
    let files = write_tree(tree.path())?;
    let exporter = exporter()?;
    let (ours, theirs) = alternately(tree.path(), &exporter, args.readings)?;
    print!("{}", report(files, &ours, &theirs));
    let served = super::served::measure(tree.path(), &exporter)?;
    print!("{}", served.report());
    let fast = super::fast::measure()?;
    print!("{}", fast.report());
    let path = args.json.clone().unwrap_or_else(|| folder.join("counters.json"));
    let of = |figures: &Figures| json!({ "seconds": figures.seconds, "cpu_seconds": figures.cpu_seconds, "values": figures.values });
    let figures = json!({ "files": files, "readings": args.readings, "fabricscope": of(&ours), "node_exporter": of(&theirs), "served": served.json(), "fast": fast.json() });
    fs::write(&path, format!("{figures:#}\n")).with_context(|| format!("write {}", path.display()))?;
    println!("\nwritten: {}", path.display());
    Ok(ExitCode::SUCCESS)
}

/// A tree that stands for `/sys`; says how many counters are in it.
fn write_tree(root: &Path) -> Result<usize> {
    let mut files = 0;
    for index in 0..DEVICES {
        let device = root.join(format!("class/infiniband/mlx5_{index}"));
        let port = device.join("ports/1");
        for (folder, names) in [("counters", COUNTERS), ("hw_counters", HW_COUNTERS)] {
            fs::create_dir_all(port.join(folder))?;
            for (value, name) in names.split_whitespace().enumerate() {
                fs::write(port.join(folder).join(name), format!("{}\n", (value + 1) * 1_000_003))?;
                files += 1;
            }
        }
        let driver = root.join("bus/drivers/mlx5_core");
        fs::create_dir_all(&driver)?;
        fs::create_dir_all(device.join("device"))?;
        std::os::unix::fs::symlink(&driver, device.join("device/driver"))?;
        // Without these node_exporter takes the whole tree for broken.
        for (name, text) in [("board_id", "MT_0000000838"), ("fw_ver", "28.39.1002"), ("hca_type", "MT4129")] {
            fs::write(device.join(name), text)?;
        }
        let states = [("state", "4: ACTIVE"), ("phys_state", "5: LinkUp"), ("rate", "400 Gb/sec (4X NDR)")];
        for (name, text) in states.into_iter().chain([("link_layer", "InfiniBand")]) {
            fs::write(port.join(name), text)?;
        }
    }
    Ok(files)
}

/// A program that is ended when it is no longer needed.
pub(super) struct Running(pub(super) Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    pub(super) fn start(command: &mut Command) -> Result<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        command.stdin(Stdio::null()).stderr(Stdio::null());
        Ok(Self(command.spawn().with_context(|| format!("start {name}"))?))
    }

    /// CPU time of all threads so far.
    pub(super) fn cpu_seconds(&self) -> Result<f64> {
        let folder = PathBuf::from(format!("/proc/{}/task", self.0.id()));
        let mut sum = 0u64;
        for entry in fs::read_dir(&folder).with_context(|| format!("list {}", folder.display()))? {
            // A thread may just have ended.
            let text = fs::read_to_string(entry?.path().join("schedstat")).unwrap_or_default();
            sum += text.split(' ').next().and_then(|nanoseconds| nanoseconds.parse::<u64>().ok()).unwrap_or_default();
        }
        Ok(Duration::from_nanos(sum).as_secs_f64())
    }
}

/// Both on the same tree, one after the other in each round, so that neither has the warmer caches or the quieter host.
fn alternately(tree: &Path, program: &Path, readings: u32) -> Result<(Figures, Figures)> {
    let (theirs, address) = start_exporter(tree, program)?;
    let mut command = Command::new(agent()?);
    command.args(["counters", "--watch", "--all", "--interval", "10ms", "--output", "json", "--path.sysfs"]).arg(tree);
    let mut ours = Running::start(command.stdout(Stdio::piped()))?;
    let mut lines = BufReader::new(ours.0.stdout.take().context("no standard output")?).lines();
    let mut round = || -> Result<(String, String)> {
        let line = lines.next().context("fabricscope ended early")??;
        Ok((line, scrape(address)?))
    };
    for _ in 0..WARM {
        round()?;
    }
    let before = (ours.cpu_seconds()?, theirs.cpu_seconds()?);
    let rounds = (0..readings).map(|_| round()).collect::<Result<Vec<_>>>()?;
    let after = (ours.cpu_seconds()?, theirs.cpu_seconds()?);
    let (records, pages): (Vec<String>, Vec<String>) = rounds.into_iter().unzip();
    let ours = our_figures(&records, (after.0 - before.0) / f64::from(readings))?;
    let theirs = their_figures(&pages, (after.1 - before.1) / f64::from(readings))?;
    Ok((ours, theirs))
}

fn our_figures(records: &[String], cpu_seconds: f64) -> Result<Figures> {
    let records: Vec<Value> = records
        .iter()
        .map(|record| serde_json::from_str(record).context("reading fabricscope's JSON"))
        .collect::<Result<_>>()?;
    let seconds = records.iter().filter_map(|record| record["read_seconds"].as_f64()).collect();
    let devices = records.last().and_then(|record| record["devices"].as_array()).context("no devices")?;
    let values = devices.iter().filter_map(|device| device["counters"].as_array()).map(Vec::len).sum();
    ensure!(values > 0, "fabricscope showed no counters");
    Ok(Figures { seconds: median(seconds)?, cpu_seconds, values })
}

fn their_figures(pages: &[String], cpu_seconds: f64) -> Result<Figures> {
    let took = "node_scrape_collector_duration_seconds{collector=\"infiniband\"} ";
    let seconds = |page: &String| page.lines().find_map(|line| line.strip_prefix(took)?.parse().ok());
    let seconds: Vec<f64> = pages.iter().filter_map(seconds).collect();
    let values = pages.last().map_or(0, |page| values(page, "node_infiniband_"));
    ensure!(values > 0, "node_exporter showed no counters of the tree");
    Ok(Figures { seconds: median(seconds)?, cpu_seconds, values })
}

/// Series of a page whose names begin so.
pub(super) fn values(page: &str, start: &str) -> usize {
    page.lines().filter(|line| line.starts_with(start)).count()
}

/// node_exporter of this host, else Debian's, kept with what else is fetched.
fn exporter() -> Result<PathBuf> {
    if on_path(PACKAGE) {
        return Ok(PathBuf::from(PACKAGE));
    }
    let folder = apt::cache_dir()?.join("node-exporter");
    let program = folder.join("usr/bin").join(PACKAGE);
    if !program.exists() {
        let files = apt::download(SUITE, &[PACKAGE], &folder.join("packages"))?;
        apt::unpack(&files, &folder)?;
    }
    Ok(program)
}

/// node_exporter with this collector alone and without metrics of its own, and where it answers.
pub(super) fn start_exporter(tree: &Path, program: &Path) -> Result<(Running, SocketAddr)> {
    let address = free_address()?;
    let mut command = Command::new(program);
    command.args(["--collector.disable-defaults", "--collector.infiniband", "--log.level=error"]);
    command.arg("--web.disable-exporter-metrics");
    command.arg(format!("--web.listen-address={address}")).arg(format!("--path.sysfs={}", tree.display()));
    let running = Running::start(command.stdout(Stdio::null()))?;
    answers(address, "node_infiniband_").with_context(|| format!("start {}", program.display()))?;
    Ok((running, address))
}

/// An address that was free a moment ago; nothing else asks for it within that time.
pub(super) fn free_address() -> Result<SocketAddr> {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).context("find a port")
}

/// Waits until this is on the page.
pub(super) fn answers(address: SocketAddr, part: &str) -> Result<()> {
    let began = Instant::now();
    while !scrape(address).is_ok_and(|page| page.contains(part)) {
        ensure!(began.elapsed() < START, "no {part} on {address} within {} s", START.as_secs());
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// The metrics that are served there.
pub(super) fn scrape(address: SocketAddr) -> Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(START))?;
    // The older version of the protocol sends the text in one piece.
    write!(stream, "GET /metrics HTTP/1.0\r\nHost: {address}\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}

pub(super) fn median(mut values: Vec<f64>) -> Result<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().context("nothing was measured")
}

fn report(files: usize, ours: &Figures, theirs: &Figures) -> String {
    let micros = |seconds: f64| format!("{:.0} us", seconds * 1e6);
    let row = |name: &str, figures: &Figures| {
        let per_value = figures.cpu_seconds / figures.values as f64;
        format!(
            "{name:<16} {:>12} {:>12} {:>8} {:>16}\n",
            micros(figures.seconds),
            micros(figures.cpu_seconds),
            figures.values,
            format!("{:.2} us", per_value * 1e6)
        )
    };
    let mut text =
        format!("{files} counters of {DEVICES} adapters, ordinary files; medians of what each says, mean CPU\n\n");
    text += &format!("{:<16} {:>12} {:>12} {:>8} {:>16}\n", "", "reading", "CPU", "values", "CPU per value");
    text += &row("fabricscope", ours);
    text += &row("node_exporter", theirs);
    let share = ours.cpu_seconds / theirs.cpu_seconds;
    let verdict = |reached: bool| if reached { "reached" } else { "not reached" };
    text += &format!(
        "\nCPU of a reading with its text, ours over theirs: {share:.3} (aim: {AIM_SHARE}: {})\n",
        verdict(share <= AIM_SHARE)
    );
    text += &format!(
        "a full reading: {} (aim: {}: {})\n",
        micros(ours.seconds),
        micros(AIM_SECONDS),
        verdict(ours.seconds <= AIM_SECONDS)
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_has_as_many_files_as_nine_adapters() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(write_tree(folder.path()).unwrap(), 486);
        assert!(folder.path().join("class/infiniband/mlx5_8/ports/1/hw_counters/np_cnp_sent").exists());
    }

    #[test]
    fn aims_are_judged() {
        let of = |seconds, cpu_seconds| Figures { seconds, cpu_seconds, values: 10 };
        let text = report(486, &of(1e-3, 1e-3), &of(1e-2, 1e-2));
        assert_eq!(text.matches("reached").count(), 2, "{text}");
        assert!(!text.contains("not reached"), "{text}");
        let text = report(486, &of(6e-3, 2e-3), &of(1e-2, 1e-2));
        assert_eq!(text.matches("not reached").count(), 2, "{text}");
    }

    #[test]
    fn the_middle_one_is_taken() {
        assert!((median(vec![3.0, 1.0, 2.0]).unwrap() - 2.0).abs() < 1e-9);
        assert!(median(vec![]).is_err());
    }
}

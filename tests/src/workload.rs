//! The workload: the program that makes the calls in the lab, how it is built, and the rows it prints.

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::{Context as _, Result, anyhow, ensure};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::command::{self, tail};
use crate::lab::Lab;

/// The program's name in the folder that [`build`] returns.
pub const PROGRAM: &str = "workload";
/// The kernel that its compiler runs on: any has the same programs.
const BUILD_KERNEL: &str = "6.12";
/// Warnings are errors: the compiler is always the lab's own.
const COMPILE: &str = "cd /mnt/share && gcc -std=gnu11 -O2 -Wall -Wextra -Werror -pthread \
                       -o /mnt/out/workload *.c -libverbs";

/// One call that the workload made.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Row {
    /// Which call, as the table of facts names it.
    pub recipe: String,
    /// The error's name as the program saw it, `ok` for success.
    pub errno: String,
    /// The process that made it.
    pub pid: u32,
    /// The thread that made it.
    pub tid: u32,
    /// CLOCK_MONOTONIC before the call, in nanoseconds.
    pub before_ns: u64,
    /// CLOCK_MONOTONIC after the call, in nanoseconds.
    pub after_ns: u64,
}

/// What threads that fail together saw (modes `storm` and `block`).
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Gang {
    /// How many threads.
    pub threads: u64,
    /// Calls of all threads.
    pub calls: u64,
    /// How many of them ended with `errno`.
    pub failed: u64,
    /// The error that every call should end with.
    pub errno: String,
    /// Calls that ended otherwise.
    pub other: u64,
    /// The shortest call in nanoseconds.
    pub shortest_ns: u64,
    /// The longest call in nanoseconds.
    pub longest_ns: u64,
}

/// Reads JSON lines; empty lines are left out.
///
/// # Errors
/// When a line is no JSON or lacks a field: the line is named.
pub fn lines<T: DeserializeOwned>(text: &str) -> Result<Vec<T>> {
    let full = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    full.map(|(index, line)| serde_json::from_str(line).with_context(|| format!("line {}: {line}", index + 1)))
        .collect()
}

/// Builds the workload once for each state of its source, and returns the folder it stands in.
///
/// It is compiled inside the lab, with the guest's own compiler, headers and libraries: what the host has does not
/// matter. Measured: 10 s on one emulated processor, beside the boot.
///
/// # Errors
/// When the machine fails or the compiler does: its messages are shown.
pub fn build() -> Result<PathBuf> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    BUILT.get_or_init(|| build_now().map_err(|error| format!("{error:#}"))).clone().map_err(|error| anyhow!(error))
}

fn build_now() -> Result<PathBuf> {
    let source = command::workspace().join("tests/workload");
    let folder = command::target().join("lab-tests/workload").join(state_of(&source, COMPILE)?);
    if folder.join(PROGRAM).is_file() {
        return Ok(folder);
    }
    let mut lab = Lab::new(BUILD_KERNEL, "build-workload");
    lab.rdma = false;
    lab.share = Some(source);
    let seen = lab.run(COMPILE)?;
    ensure!(seen.status == 0, "the workload does not compile:\n{}", tail(&seen.stderr, 60));
    fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
    // Under its own name only when whole, so that a killed test leaves no half program.
    let half = folder.join("half");
    fs::copy(seen.out.join(PROGRAM), &half).context("keep the workload")?;
    fs::rename(&half, folder.join(PROGRAM)).context("keep the workload")?;
    Ok(folder)
}

/// Names the state of a source, a file or a folder of them, and of what else a build depends on.
pub(crate) fn state_of(source: &Path, more: &str) -> Result<String> {
    let mut files = vec![source.to_owned()];
    if source.is_dir() {
        let entries = fs::read_dir(source).and_then(Iterator::collect::<std::io::Result<Vec<_>>>);
        let entries = entries.with_context(|| format!("list {}", source.display()))?;
        files = entries.into_iter().map(|entry| entry.path()).collect();
        files.sort();
    }
    let mut hasher = DefaultHasher::new();
    more.hash(&mut hasher);
    for file in &files {
        file.file_name().hash(&mut hasher);
        fs::read(file).with_context(|| format!("read {}", file.display()))?.hash(&mut hasher);
    }
    Ok(format!("{:016x}", hasher.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_read_and_a_broken_line_is_named() {
        let text = "{\"recipe\":\"a(b)\",\"errno\":\"ok\",\"pid\":1,\"tid\":2,\"before_ns\":3,\"after_ns\":4}\n\n";
        let row = Row { recipe: "a(b)".into(), errno: "ok".into(), pid: 1, tid: 2, before_ns: 3, after_ns: 4 };
        assert_eq!(lines::<Row>(text).unwrap(), [row]);
        let error = lines::<Row>(&format!("{text}{{\"recipe\":1}}\n")).unwrap_err();
        assert!(error.to_string().starts_with("line 3: "), "{error}");
    }
}

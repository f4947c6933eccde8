//! One machine, one script, its output and files: `cargo xtask lab` as a function.

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::command::{self, tail};
use crate::permits::Permits;

/// What the lab exits with when the machine itself failed.
const LAB_FAILED: i32 = 125;
/// What the lab may need beside the machine: building itself, fetching a kernel on its first run.
const PREPARATION: Duration = Duration::from_secs(900);
/// Where a script finds the folder for its results, and itself.
const OUT: &str = "/mnt/out";
/// The script's name in that folder.
const SCRIPT: &str = "script";
/// The file in that folder with the script's exit status, written inside the machine.
const VERDICT: &str = "verdict";
/// The file in that folder with the time that the machine took, in seconds.
const SECONDS: &str = "seconds";

/// Machines that run at once, for all tests of one process.
static MACHINES: LazyLock<Permits> = LazyLock::new(Permits::of_host);

/// One run of a script on a kernel.
#[derive(Clone, Debug)]
pub struct Lab {
    /// The kernel, as the lab names it.
    pub kernel: String,
    /// Names the run's folder: one name for each script.
    pub name: String,
    /// A folder that the script sees at `/mnt/share`, read-only.
    pub share: Option<PathBuf>,
    /// Files that are copied to `/mnt/out` before it starts.
    pub files: Vec<PathBuf>,
    /// Processors of the machine.
    pub processors: u8,
    /// When the machine is ended by force.
    pub limit: Duration,
    /// Whether soft-RoCE devices are made.
    pub rdma: bool,
    /// Whether systemd is the first process.
    pub systemd: bool,
}

/// What a run left.
#[derive(Debug)]
pub struct Output {
    /// The script's exit status.
    pub status: i32,
    /// The script's standard output.
    pub stdout: String,
    /// The script's standard error, and the lab's own.
    pub stderr: String,
    /// The folder that the script wrote to.
    pub out: PathBuf,
}

impl Lab {
    /// A machine with one processor and soft-RoCE, for at most five minutes.
    #[must_use]
    pub fn new(kernel: &str, name: &str) -> Self {
        Lab {
            kernel: kernel.to_owned(),
            name: name.to_owned(),
            share: None,
            files: Vec::new(),
            processors: 1,
            limit: Duration::from_secs(300),
            rdma: true,
            systemd: false,
        }
    }

    /// Boots the kernel and runs a bash script there; it may write to `/mnt/out`.
    ///
    /// The script runs without `-e`: it keeps what it wants to tell in its status, output and files.
    ///
    /// # Errors
    /// When the lab cannot be started or the machine fails (hang, panic, no verdict). A script's own failure is an
    /// [`Output`]. When the emulator itself failed, which says nothing of what ran in it, it is run once more.
    pub fn run(&self, script: &str) -> Result<Output> {
        let outcome = self.once(script);
        match &outcome {
            Err(error) if is_emulators_own(&format!("{error:#}")) => {
                eprintln!("{} on kernel {} is run again: {error:#}", self.name, self.kernel);
                self.once(script)
            }
            _ => outcome,
        }
    }

    fn once(&self, script: &str) -> Result<Output> {
        let out = command::target().join("lab-tests").join(&self.kernel).join(&self.name);
        if out.exists() {
            fs::remove_dir_all(&out).with_context(|| format!("remove {}", out.display()))?;
        }
        fs::create_dir_all(&out).with_context(|| format!("make {}", out.display()))?;
        fs::write(out.join(SCRIPT), script).context("write the script")?;
        for file in &self.files {
            let name = file.file_name().context("the name of a file for the machine")?;
            fs::copy(file, out.join(name)).with_context(|| format!("copy {}", file.display()))?;
        }
        let mut command = command::xtask();
        command.args(["lab", "--kernel", &self.kernel, "--smp", &self.processors.to_string()]);
        command.args(["--timeout", &self.limit.as_secs().to_string()]).arg("--out").arg(&out);
        if let Some(share) = &self.share {
            command.arg("--share").arg(share);
        }
        if !self.rdma {
            command.arg("--no-rdma");
        }
        if self.systemd {
            command.arg("--systemd");
        }
        let inside = format!("bash {OUT}/{SCRIPT}; status=$?; echo $status > {OUT}/{VERDICT}; exit $status");
        command.args(["--", "bash", "-c", &inside]);
        let machine = MACHINES.take(self.processors.into());
        let begun = Instant::now();
        let seen = command::run(&mut command, self.limit + PREPARATION)
            .with_context(|| format!("{} on kernel {}", self.name, self.kernel))?;
        drop(machine);
        fs::write(out.join(SECONDS), format!("{:.1}\n", begun.elapsed().as_secs_f64())).context("keep the time")?;
        // Kept beside the script's own files, for a look after a failed test.
        fs::write(out.join("stdout"), &seen.stdout).context("keep the output")?;
        fs::write(out.join("stderr"), &seen.stderr).context("keep the output")?;
        let status = seen.status.code().context("the lab was ended by a signal")?;
        ensure!(
            status != LAB_FAILED,
            "{} on kernel {}: the machine failed:\n{}",
            self.name,
            self.kernel,
            tail(&seen.stderr, 60)
        );
        let verdict = fs::read_to_string(out.join(VERDICT)).unwrap_or_default();
        ensure!(
            verdict.trim() == status.to_string(),
            "{} on kernel {}: the lab ended with {status}, the script with {verdict:?}",
            self.name,
            self.kernel
        );
        Ok(Output { status, stdout: seen.stdout, stderr: seen.stderr, out })
    }
}

/// Whether the emulator was ended by an assertion of its own. A panic of the kernel in it is an orderly end.
fn is_emulators_own(words: &str) -> bool {
    words.contains("the machine stopped (signal: 6 (SIGABRT))") && words.contains("Assertion `")
}

impl Output {
    /// A file that the script wrote.
    ///
    /// # Errors
    /// When it is not there or no text; the message ends with what the script wrote to its standard error.
    pub fn file(&self, name: &str) -> Result<String> {
        fs::read_to_string(self.out.join(name))
            .with_context(|| format!("read {name}, status {}, stderr:\n{}", self.status, tail(&self.stderr, 40)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_emulators_own_end_is_no_verdict() {
        let rows = [
            (
                "lab: kernel 6.1: no verdict: the machine stopped (signal: 6 (SIGABRT))\n--- the end of the console ---\n\n\
                 qemu-system-x86_64: system/physmem.c:2671: iotlb_to_section: Assertion `section_index < 9' failed.",
                true,
            ),
            ("lab: kernel 6.1: no verdict: the machine stopped (exit status: 0)\nKernel panic - not syncing", false),
            ("lab: kernel 6.12: the command did not end in 300 s: ended by force", false),
            ("a program said: Assertion `x' failed.", false),
        ];
        for (words, expected) in rows {
            assert_eq!(is_emulators_own(words), expected, "{words}");
        }
    }
}

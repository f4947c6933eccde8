//! Two network namespaces with a pair of devices between them, and the tests' tool that sends and measures.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread::JoinHandle;

use anyhow::{Context as _, Result, ensure};

use crate::bench::counters::Running;
use crate::runner::{output, run, target, workspace};

/// Lines that are kept of what a program says.
const SAID: usize = 16;

/// The right end's address.
pub(super) const RIGHT: &str = "10.77.0.2";

/// Builds the tool.
///
/// # Errors
/// When there is no C compiler, or it refuses.
pub(super) fn tool() -> Result<PathBuf> {
    let folder = workspace().join("tests/network");
    let entries = fs::read_dir(&folder).with_context(|| format!("read {}", folder.display()))?;
    let sources = entries.flatten().map(|entry| entry.path()).filter(|path| path.extension() == Some("c".as_ref()));
    let program = target()?.join("bench/network");
    run(Command::new("cc").args(["-std=gnu11", "-O2", "-o"]).arg(&program).args(sources))?;
    Ok(program)
}

/// A network namespace, which goes with all that is in it.
pub(super) struct Namespace(String);

impl Namespace {
    /// Makes one in which nothing is sent unless it is asked for.
    ///
    /// # Errors
    /// When `ip` fails.
    pub(super) fn new(name: &str) -> Result<Self> {
        let namespace = Self(format!("fs-bench-{}-{name}", std::process::id()));
        output(Command::new("ip").args(["netns", "add", &namespace.0]))?;
        for kind in ["all", "default"] {
            let setting = format!("net.ipv6.conf.{kind}.disable_ipv6=1");
            output(namespace.command(Path::new("sysctl")).args(["-qw", &setting]))?;
        }
        Ok(namespace)
    }

    /// A command inside. `ip` becomes it, so that the process is the program's.
    pub(super) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.0]).arg(program);
        command
    }

    /// Runs `ip` inside; the words are parted by blanks.
    ///
    /// # Errors
    /// When it fails.
    pub(super) fn ip(&self, words: &str) -> Result<()> {
        output(Command::new("ip").args(["-n", &self.0]).args(words.split_whitespace())).map(drop)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // What is left is named by its own name.
        let _ = output(Command::new("ip").args(["netns", "del", &self.0]));
    }
}

/// `va` in the left one connected to `vb` in the right one.
pub(super) struct Pair {
    pub(super) left: Namespace,
    pub(super) right: Namespace,
}

impl Pair {
    /// Makes one. Neighbours are told, so that nothing else is sent.
    ///
    /// # Errors
    /// When `ip` fails.
    pub(super) fn new() -> Result<Self> {
        let pair = Self { left: Namespace::new("left")?, right: Namespace::new("right")? };
        pair.left.ip(&format!("link add va type veth peer name vb netns {}", pair.right.0))?;
        let ends = [(&pair.left, "va", 1, 2), (&pair.right, "vb", 2, 1)];
        for (namespace, device, own, _) in ends {
            namespace.ip(&format!("link set {device} address 02:00:00:00:00:0{own}"))?;
            namespace.ip(&format!("addr add 10.77.0.{own}/24 dev {device}"))?;
            namespace.ip(&format!("link set {device} up"))?;
        }
        for (namespace, device, _, other) in ends {
            namespace.ip(&format!("neigh replace 10.77.0.{other} lladdr 02:00:00:00:00:0{other} dev {device}"))?;
        }
        Ok(pair)
    }
}

/// A program that runs until this is dropped.
pub(super) struct Beside {
    pub(super) running: Running,
    /// Its end is what the tool waits for.
    input: Option<ChildStdin>,
    /// What it says after it was ready.
    said: JoinHandle<Vec<String>>,
}

impl Beside {
    /// Starts it, and returns when it has said `word`, on standard error if `errors`, else on standard output.
    ///
    /// # Errors
    /// When it ends before.
    pub(super) fn start(command: &mut Command, word: &str, errors: bool) -> Result<Self> {
        let line = crate::runner::line(command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child: Child = command.spawn().with_context(|| format!("start {line}"))?;
        let (input, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let mut lines: Box<dyn Iterator<Item = std::io::Result<String>> + Send> = if errors {
            Box::new(BufReader::new(stderr.context("no standard error")?).lines())
        } else {
            Box::new(BufReader::new(stdout.context("no standard output")?).lines())
        };
        let running = Running(child);
        let ready = lines.by_ref().map_while(Result::ok).any(|line| line.contains(word));
        ensure!(ready, "{line} ended before it said {word:?}");
        // What else it says is taken, so that it is never held up: the last of it, which is what it ends with.
        let said = std::thread::spawn(move || {
            lines.map_while(Result::ok).fold(Vec::new(), |mut said: Vec<String>, line| {
                if said.len() >= SAID {
                    said.remove(0);
                }
                said.push(line);
                said
            })
        });
        Ok(Self { running, input, said })
    }

    /// Closes its input, which ends the tool. What it said last.
    ///
    /// # Errors
    /// When it cannot be waited for.
    pub(super) fn end(self) -> Result<Vec<String>> {
        let Self { mut running, input, said } = self;
        drop(input);
        running.0.wait().context("wait for the tool")?;
        Ok(said.join().unwrap_or_default())
    }
}

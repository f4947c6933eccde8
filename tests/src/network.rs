//! Two hosts on one machine: network namespaces with a pair of devices between them, and the tool that makes traffic.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash as _, Hasher as _};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, ensure};

use crate::command::{run, target, workspace};

/// Far longer than any of its steps takes on a busy host.
const LIMIT: Duration = Duration::from_secs(60);

/// Builds the tool once for each state of its source; says where it is.
///
/// # Errors
/// When there is no C compiler, or it refuses: its messages are shown.
pub fn tool() -> Result<PathBuf> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    BUILT.get_or_init(|| build().map_err(|error| format!("{error:#}"))).clone().map_err(|error| anyhow!(error))
}

fn build() -> Result<PathBuf> {
    let folder = workspace().join("tests/network");
    let mut sources = Vec::new();
    let mut state = DefaultHasher::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("read {}", folder.display()))? {
        let path = entry.context("read the tool's folder")?.path();
        fs::read(&path).with_context(|| format!("read {}", path.display()))?.hash(&mut state);
        sources.extend((path.extension() == Some("c".as_ref())).then_some(path));
    }
    let program = target().join(format!("tests-network-{:016x}", state.finish()));
    if program.exists() {
        return Ok(program);
    }
    fs::create_dir_all(target()).context("make the target folder")?;
    let neighbour = program.with_added_extension(std::process::id().to_string());
    let mut compiler = Command::new("cc");
    compiler.args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&neighbour).args(sources);
    say(&mut compiler)?;
    fs::rename(&neighbour, &program).context("keep the tool")?;
    Ok(program)
}

/// A network namespace, which goes with all that is in it.
#[derive(Debug)]
pub struct Namespace {
    name: String,
}

impl Namespace {
    /// Makes one without IPv6, in which nothing is sent unless it is asked for.
    ///
    /// # Errors
    /// When `ip` fails: its message is shown.
    pub fn new() -> Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("fs-test-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        say(Command::new("ip").args(["netns", "add", &name]))?;
        let namespace = Self { name };
        namespace.write("net/ipv6/conf/all/disable_ipv6", "1")?;
        namespace.write("net/ipv6/conf/default/disable_ipv6", "1")?;
        namespace.ip("link set lo up")?;
        Ok(namespace)
    }

    /// Its name, as `ip netns` has it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A command inside.
    #[must_use]
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name]).arg(program);
        command
    }

    /// Runs `ip` inside; the words are parted by blanks. What it printed.
    ///
    /// # Errors
    /// When it fails: its message is shown.
    pub fn ip(&self, words: &str) -> Result<String> {
        say(Command::new("ip").args(["-n", &self.name]).args(words.split_whitespace()))
    }

    /// Runs `tc` inside, likewise.
    ///
    /// # Errors
    /// When it fails: its message is shown.
    pub fn tc(&self, words: &str) -> Result<String> {
        say(Command::new("tc").args(["-n", &self.name]).args(words.split_whitespace()))
    }

    /// Writes a setting of the namespace, by its path below `/proc/sys`.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn write(&self, path: &str, value: &str) -> Result<()> {
        let script = format!("echo {value} > /proc/sys/{path}");
        say(self.command(Path::new("sh")).args(["-c", &script])).map(drop)
    }

    /// Runs the tool inside to its end. What it printed.
    ///
    /// # Errors
    /// When it fails: its message is shown.
    pub fn run(&self, words: &[&str]) -> Result<String> {
        say(self.command(&tool()?).args(words))
    }

    /// Starts the tool inside, and returns when it says that it is ready.
    ///
    /// # Errors
    /// When it ends before.
    pub fn start(&self, words: &[&str]) -> Result<Running> {
        let mut command = self.command(&tool()?);
        let mut child = command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let output = child.stdout.take().context("the tool's output")?;
        let mut running = Running { child, output: BufReader::new(output) };
        let mut line = String::new();
        running.output.read_line(&mut line)?;
        ensure!(line == "ready\n", "the tool {words:?} says {line:?}");
        Ok(running)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // What is left of a failed test is named by the failure itself.
        let _ = say(Command::new("ip").args(["netns", "del", &self.name]));
    }
}

/// The tool while it runs; it ends when this does.
#[derive(Debug)]
pub struct Running {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Running {
    /// Lets it end. What it printed since it was ready.
    ///
    /// # Errors
    /// When it fails.
    pub fn end(mut self) -> Result<String> {
        drop(self.child.stdin.take());
        let mut text = String::new();
        self.output.read_to_string(&mut text)?;
        let status = self.child.wait()?;
        ensure!(status.success(), "the tool ended with {status}");
        Ok(text)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Two namespaces, `va` in the left one connected to `vb` in the right one.
#[derive(Debug)]
pub struct Pair {
    /// Where `va` is, with addresses ending in 1.
    pub left: Namespace,
    /// Where `vb` is, with addresses ending in 2.
    pub right: Namespace,
    _turn: Turn,
}

/// Packets of one pair are handled by whichever processor they come from, also while another pair's are to be sent on
/// time.
static TRAFFIC: RwLock<()> = RwLock::new(());

/// What a pair holds for as long as it is there.
#[derive(Debug)]
enum Turn {
    WithOthers(#[expect(dead_code, reason = "it is held")] RwLockReadGuard<'static, ()>),
    Alone(#[expect(dead_code, reason = "it is held")] RwLockWriteGuard<'static, ()>),
}

/// The right one's address of IPv4.
pub const RIGHT: &str = "10.77.0.2";
/// The right one's address of IPv6.
pub const RIGHT_6: &str = "fd77::2";

impl Pair {
    /// Makes one that speaks IPv4, and IPv6 too if asked for. Neighbours are told, so that nothing else is sent.
    ///
    /// # Errors
    /// When `ip` fails: its message is shown.
    pub fn new(ipv6: bool) -> Result<Self> {
        Self::make(Turn::WithOthers(TRAFFIC.read().unwrap_or_else(PoisonError::into_inner)), ipv6)
    }

    /// The same for what is to be sent on time: there is no other pair in this process meanwhile. Speaks IPv4.
    ///
    /// # Errors
    /// When `ip` fails: its message is shown.
    pub fn alone() -> Result<Self> {
        Self::make(Turn::Alone(TRAFFIC.write().unwrap_or_else(PoisonError::into_inner)), false)
    }

    fn make(turn: Turn, ipv6: bool) -> Result<Self> {
        let pair = Self { left: Namespace::new()?, right: Namespace::new()?, _turn: turn };
        if ipv6 {
            for namespace in [&pair.left, &pair.right] {
                namespace.write("net/ipv6/conf/all/disable_ipv6", "0")?;
                namespace.write("net/ipv6/conf/default/disable_ipv6", "0")?;
                namespace.write("net/ipv6/conf/default/router_solicitations", "0")?;
                namespace.write("net/ipv6/conf/default/accept_dad", "0")?;
            }
        }
        pair.connect(ipv6)?;
        Ok(pair)
    }

    /// Makes the devices, anew if they were removed.
    ///
    /// # Errors
    /// When `ip` fails: its message is shown.
    pub fn connect(&self, ipv6: bool) -> Result<()> {
        self.left.ip(&format!("link add va type veth peer name vb netns {}", self.right.name))?;
        self.give_addresses(ipv6)
    }

    /// Removes the devices and makes them anew, `va` under the number it had, by one process without a pause.
    ///
    /// # Errors
    /// When `ip` fails: its message is shown.
    pub fn remake(&self) -> Result<()> {
        let told = self.left.ip("-o link show dev va")?;
        let number = told.split(':').next().context("the number of va")?;
        let make = format!("link add name va index {number} type veth peer name vb netns {}", self.right.name);
        let mut batch = tempfile::NamedTempFile::new().context("a file for the commands")?;
        writeln!(batch, "link del va\n{make}").context("write the commands")?;
        self.left.ip(&format!("-batch {}", batch.path().display()))?;
        self.give_addresses(false)
    }

    fn give_addresses(&self, ipv6: bool) -> Result<()> {
        let ends = [(&self.left, "va", "1", "2"), (&self.right, "vb", "2", "1")];
        for (namespace, device, own, _) in ends {
            // A hardware address that says which it is.
            namespace.ip(&format!("link set {device} address 02:00:00:00:00:0{own}"))?;
            namespace.ip(&format!("addr add 10.77.0.{own}/24 dev {device}"))?;
            namespace.ip(&format!("link set {device} up"))?;
        }
        for (namespace, device, own, other) in ends {
            namespace.ip(&format!("neigh replace 10.77.0.{other} lladdr 02:00:00:00:00:0{other} dev {device}"))?;
            if ipv6 {
                namespace.ip(&format!("addr add fd77::{own}/64 dev {device} nodad"))?;
                namespace.ip(&format!("neigh replace fd77::{other} lladdr 02:00:00:00:00:0{other} dev {device}"))?;
            }
        }
        Ok(())
    }
}

/// Runs a command that must succeed. What it printed.
fn say(command: &mut Command) -> Result<String> {
    let seen = run(command, LIMIT)?;
    ensure!(seen.status.success(), "{command:?} ended with {}:\n{}{}", seen.status, seen.stdout, seen.stderr);
    Ok(seen.stdout)
}

//! One virtual machine: its command line, its life, its end. It never outlives the run.

use std::fs;
use std::io::{Read, Write, sink, stderr, stdout};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::clock::{Clock, Pace};
use super::guest::{CLOCK, EXIT_PORT, GO, PORTS, READY, Share, VERDICT};
use super::kernels::Kernel;
use super::tools::Tools;
use super::verdict::{self, Verdict};

/// How often the machine's end is looked for.
const POLL: Duration = Duration::from_millis(10);
/// How much of the console an error shows.
const TAIL_LINES: usize = 40;

/// How the guest's processor runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Accel {
    /// In hardware.
    Kvm,
    /// In QEMU's translator.
    Tcg,
}

/// Everything that tells one machine from another.
pub(super) struct Machine<'a> {
    /// Where QEMU comes from.
    pub(super) tools: &'a Tools,
    /// What boots.
    pub(super) kernel: &'a Kernel,
    /// How it runs.
    pub(super) accel: Accel,
    /// Processors.
    pub(super) smp: u8,
    /// How long it may take to get ready for the command.
    pub(super) boot_limit: Duration,
    /// How long the command may take.
    pub(super) timeout: Duration,
    /// The folders it sees; the real root is one of them.
    pub(super) shares: &'a [Share],
    /// A folder of its own on the host, for its console, sockets and first root.
    pub(super) dir: &'a Path,
    /// The folder on the host where the guest says that it is ready, and writes its verdict.
    pub(super) said: &'a Path,
    /// Where the command's output and errors go.
    pub(super) sink: Sink,
}

/// Where the output of a command goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sink {
    /// To this process's own output and errors.
    Pass,
    /// Nowhere.
    Drop,
}

impl Sink {
    fn writers(self) -> [Box<dyn Write + Send>; 2] {
        match self {
            Sink::Pass => [Box::new(stdout()), Box::new(stderr())],
            Sink::Drop => [Box::new(sink()), Box::new(sink())],
        }
    }
}

/// How a run ended.
#[derive(Debug, PartialEq)]
pub(super) enum Outcome {
    /// The command's own status.
    Exit(u8),
    /// A signal to this process ended it.
    Signal(u8),
    /// It did not get ready in time: the command never started. With the end of its console.
    NotReady(String),
    /// Its clock runs so many times as fast as the host's: the command was not started.
    WrongClock(f64),
}

impl Machine<'_> {
    /// Boots, passes on what the command prints, and waits for the end.
    ///
    /// # Errors
    /// When the machine cannot start, does not end in time, or ends without a verdict: with the console's end.
    pub(super) fn run(&self) -> Result<Outcome> {
        let signal = Arc::new(AtomicUsize::new(0));
        for number in [SIGHUP, SIGINT, SIGTERM] {
            signal_hook::flag::register_usize(number, Arc::clone(&signal), usize::try_from(number)?)
                .context("listen for signals")?;
        }
        let closed = Arc::new(AtomicBool::new(false));
        let [out, err] = self.sink.writers();
        let copies = [self.copy(PORTS[0], out, &closed)?, self.copy(PORTS[1], err, &closed)?];
        let child = self.command()?.spawn().context("start the emulator: is setpriv (util-linux) installed?")?;
        let mut qemu = Running(child);
        let mut phase = Instant::now();
        let (mut ready, mut clock) = (false, Clock::default());
        let status = loop {
            if let Some(status) = qemu.0.try_wait()? {
                break status;
            }
            if let caught @ 1.. = signal.load(Ordering::Relaxed) {
                return Ok(Outcome::Signal(u8::try_from(caught)?));
            }
            if closed.load(Ordering::Relaxed) {
                bail!("nobody reads the output any more");
            }
            if !ready {
                match clock.look(phase.elapsed(), &read(&self.said.join(CLOCK))) {
                    Pace::Wrong(pace) => return Ok(Outcome::WrongClock(pace)),
                    Pace::Right if self.said.join(READY).exists() => {
                        fs::write(self.said.join(GO), "").context("tell the guest to go on")?;
                        (ready, phase) = (true, Instant::now());
                    }
                    Pace::Right | Pace::Unknown => {}
                }
            }
            if !ready && phase.elapsed() > self.boot_limit {
                return Ok(Outcome::NotReady(self.end_of_console()));
            }
            if ready && phase.elapsed() > self.timeout {
                let limit = self.timeout.as_secs();
                bail!("the command did not end in {limit} s: ended by force\n{}", self.end_of_console());
            }
            std::thread::sleep(POLL);
        };
        drop(qemu);
        for (port, copy) in PORTS.iter().zip(copies) {
            // A machine that never connected leaves the copy waiting for it.
            drop(UnixStream::connect(self.dir.join(port)));
            drop(copy.join());
        }
        match verdict::parse(&read(&self.said.join(VERDICT))) {
            Some(Verdict::Exit(status)) => Ok(Outcome::Exit(status)),
            Some(Verdict::SetUpFailed) => bail!("the guest could not be set up\n{}", self.end_of_console()),
            None => {
                let cause = verdict::cause(&read(&self.dir.join("console")));
                bail!("no verdict: {cause} ({status})\n{}", self.end_of_console())
            }
        }
    }

    /// What the guest's console and the emulator said last.
    fn end_of_console(&self) -> String {
        let [console, emulator] =
            ["console", "qemu"].map(|name| verdict::tail(&read(&self.dir.join(name)), TAIL_LINES));
        format!("--- the end of the console ---\n{console}\n{emulator}\n---")
    }

    /// Copies one port to one writer, in a thread that ends with the machine.
    fn copy(
        &self,
        port: &str,
        mut to: impl Write + Send + 'static,
        closed: &Arc<AtomicBool>,
    ) -> Result<JoinHandle<()>> {
        let path = self.dir.join(port);
        let listener = UnixListener::bind(&path).with_context(|| format!("listen on {}", path.display()))?;
        let closed = Arc::clone(closed);
        Ok(std::thread::spawn(move || {
            let Ok((mut from, _)) = listener.accept() else { return };
            let mut buffer = [0; 65536];
            while let Ok(length @ 1..) = from.read(&mut buffer) {
                if to.write_all(&buffer[..length]).and_then(|()| to.flush()).is_err() {
                    closed.store(true, Ordering::Relaxed);
                    return;
                }
            }
        }))
    }

    fn command(&self) -> Result<Command> {
        let log = fs::File::create(self.dir.join("qemu")).context("make the emulator's log")?;
        // The emulator dies with this process however that ends, and not by the terminal's own Ctrl-C.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).process_group(0);
        command.args(self.tools.words("usr/bin/qemu-system-x86_64")).args(self.tools.firmware()).args(self.arguments());
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        Ok(command)
    }

    fn arguments(&self) -> Vec<String> {
        let file = |name: &str| escape(&self.dir.join(name));
        let (accel, cpu) = match self.accel {
            Accel::Kvm => ("kvm", "host"),
            Accel::Tcg => ("tcg,thread=multi,tb-size=1024", "max"),
        };
        let smp = self.smp.to_string();
        let image = self.kernel.image().to_string_lossy().into_owned();
        let initrd = self.dir.join("initramfs").to_string_lossy().into_owned();
        let mut words: Vec<String> = [
            "-nodefaults",
            "-no-user-config",
            "-display",
            "none",
            "-monitor",
            "none",
            "-no-reboot",
            "-machine",
            "q35",
            "-cpu",
            cpu,
            "-m",
            "2G",
            "-accel",
            accel,
            "-smp",
            &smp,
            "-kernel",
            &image,
            "-initrd",
            &initrd,
            "-append",
            KERNEL_COMMAND_LINE,
        ]
        .map(str::to_owned)
        .into();
        let mut add = |flag: &str, value: String| words.extend([flag.to_owned(), value]);
        add("-serial", format!("file:{}", file("console")));
        add("-device", format!("isa-debug-exit,iobase={EXIT_PORT:#x},iosize=1"));
        add("-device", "virtio-serial-pci".to_owned());
        for port in PORTS {
            add("-chardev", format!("socket,id={port},path={}", file(port)));
            add("-device", format!("virtserialport,chardev={port},name={port}"));
        }
        for Share { tag, host, writable, .. } in self.shares {
            let mode = if *writable { "" } else { ",readonly=on" };
            let path = escape(host);
            add("-fsdev", format!("local,id={tag},path={path},security_model=none,multidevs=remap{mode}"));
            add("-device", format!("virtio-9p-pci,fsdev={tag},mount_tag={tag}"));
        }
        words
    }
}

/// A panic ends the machine (`panic=-1` with `-no-reboot`), an oops is a panic; what costs time under emulation and
/// guards nothing here is off. Each hook that goes waits for the kernel to be sure that nobody is in it, several times and
/// for longer than the rest of most tests takes: that wait is made short.
const KERNEL_COMMAND_LINE: &str = "console=ttyS0 quiet panic=-1 oops=panic mitigations=off nokaslr no_timer_check \
    tsc=reliable random.trust_cpu=on audit=0 selinux=0 apparmor=0 \
    rcupdate.rcu_expedited=1 rdinit=/init";

/// A text that may be missing or broken: what was there.
fn read(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}

/// A path as QEMU's options take it.
fn escape(path: &Path) -> String {
    path.to_string_lossy().replace(',', ",,")
}

/// The emulator, ended when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself: then there is nothing to end.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

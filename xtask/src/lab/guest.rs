//! What the guest does: the first scripts it runs and the table of everything it mounts.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::cpio::Archive;
use super::kernels::Kernel;
use super::tools::Tools;

/// Where the folder of one run (scripts in, verdict out) stands in the guest.
pub(super) const RUN_FOLDER: &str = "/mnt/lab";
/// The same before the real root is the root.
const RUN_FOLDER_FIRST: &str = "/root/mnt/lab";
/// Its name between the emulator and the guest; [`first_root`] mounts it, so it is not among the shares of the second
/// script.
pub(super) const RUN_TAG: &str = "lab";
/// The name of the share with the guest's real root.
pub(super) const ROOT_TAG: &str = "root";
/// The file in that folder that holds the second script.
pub(super) const START: &str = "start";
/// The file in that folder that says that the command can start.
pub(super) const READY: &str = "ready";
/// The file in that folder with the guest's clock, from before it is ready until it may go on.
pub(super) const CLOCK: &str = "clock";
/// The file in that folder by which the host lets the command start.
pub(super) const GO: &str = "go";
/// The verdict's file in that folder.
pub(super) const VERDICT: &str = "verdict";
/// The file in that folder that runs the command.
pub(super) const COMMAND: &str = "command";
/// The file in that folder that sets up soft-RoCE, if it is to be.
pub(super) const RDMA: &str = "rdma";
/// The file in that folder by which systemd is the first process, if it is to be.
pub(super) const SYSTEMD: &str = "systemd";
/// The names of the serial ports for the command's output and errors.
pub(super) const PORTS: [&str; 2] = ["stdout", "stderr"];
/// The I/O port of QEMU's isa-debug-exit: a byte written there ends the machine at once.
pub(super) const EXIT_PORT: u16 = 0xf4;

/// Mounts of the first root file system, before the real root: the last row is that root.
const FIRST_MOUNTS: &[Mount] = &[
    Mount("proc", "proc", "/proc", "nosuid"),
    Mount("sysfs", "sysfs", "/sys", "nosuid"),
    Mount("devtmpfs", "dev", "/dev", "nosuid"),
    Mount("9p", "root", "/lower", "ro,trans=virtio,version=9p2000.L,msize=512000,cache=loose"),
    Mount("tmpfs", "writes", "/writes", "mode=755"),
    // What tests write (/etc, /var, /usr/local) goes to memory and ends with the machine.
    Mount("overlay", "root", "/root", "lowerdir=/lower,upperdir=/writes/upper,workdir=/writes/work"),
];

/// Mounts of the real root, in this order; the shared folders follow.
const MOUNTS: &[Mount] = &[
    Mount("proc", "proc", "/proc", "nosuid"),
    Mount("sysfs", "sysfs", "/sys", "nosuid"),
    Mount("devtmpfs", "dev", "/dev", "nosuid"),
    Mount("devpts", "devpts", "/dev/pts", "mode=620,ptmxmode=666"),
    Mount("tmpfs", "shm", "/dev/shm", "mode=1777"),
    Mount("tmpfs", "run", "/run", "mode=755"),
    Mount("tmpfs", "tmp", "/tmp", "mode=1777"),
    Mount("cgroup2", "cgroup", "/sys/fs/cgroup", "nosuid"),
    Mount("bpf", "bpf", "/sys/fs/bpf", "mode=700"),
    Mount("debugfs", "debug", "/sys/kernel/debug", "mode=755"),
    Mount("tracefs", "trace", "/sys/kernel/tracing", "mode=755"),
    Mount("securityfs", "security", "/sys/kernel/security", "nosuid"),
];

/// Kind, source, target and options.
struct Mount(&'static str, &'static str, &'static str, &'static str);

impl Mount {
    fn line(&self, program: &str) -> String {
        let Mount(kind, source, target, options) = self;
        format!("{program}mkdir -p {target} && {program}mount -t {kind} -o {options} {source} {target}\n")
    }
}

/// A folder of the host that the guest sees.
#[derive(Clone)]
pub(super) struct Share {
    /// Its name between the emulator and the guest.
    pub(super) tag: &'static str,
    /// The folder on the host.
    pub(super) host: PathBuf,
    /// Where it stands in the guest.
    pub(super) guest: &'static str,
    /// Whether the guest may write there.
    pub(super) writable: bool,
}

impl Share {
    fn line(&self, program: &str) -> String {
        // Written data must be on the host when the machine ends, and nothing of it is worth caching. With `cache=mmap` a
        // file that was looked at while it grew had zeros in it at times: what is written late, over a size asked early.
        let mode = if self.writable { "rw,cache=none" } else { "ro,cache=loose" };
        let (tag, guest) = (self.tag, self.guest);
        let options = format!("{mode},trans=virtio,version=9p2000.L,msize=512000");
        format!("{program}mkdir -p {guest} && {program}mount -t 9p -o {options} {tag} {guest}\n")
    }
}

/// The first root file system: busybox, the modules that the real root needs, and the script that goes there.
pub(super) fn first_root(tools: &Tools, kernel: &Kernel) -> Result<Vec<u8>> {
    let read = |path: &Path| fs::read(path).with_context(|| format!("read {}", path.display()));
    let mut archive = Archive::default();
    for folder in ["bin", "dev", "modules"] {
        archive.folder(folder);
    }
    archive.device("dev/console", 5, 1);
    archive.file("bin/busybox", &read(&tools.file("usr/bin/busybox"))?);
    archive.link("bin/sh", "busybox");
    let mut loads = String::new();
    for (index, path) in kernel.boot_modules()?.iter().enumerate() {
        archive.file(&format!("modules/{index}.ko"), &read(path)?);
        loads += &format!("busybox insmod /modules/{index}.ko\n");
    }
    archive.file("init", first_script(&loads).as_bytes());
    Ok(archive.finish())
}

/// Any failure ends the script, and with it the machine: the kernel panics when its first process ends.
fn first_script(loads: &str) -> String {
    let mut script = format!("#!/bin/busybox sh\nset -e\nexport PATH=/bin\n{loads}");
    for mount in FIRST_MOUNTS {
        if mount.0 == "overlay" {
            script += "busybox mkdir /writes/upper /writes/work\n";
        }
        script += &mount.line("busybox ");
    }
    let run = Share { tag: RUN_TAG, host: PathBuf::new(), guest: RUN_FOLDER_FIRST, writable: true };
    script + &run.line("busybox ") + &format!("exec busybox switch_root /root /bin/sh {RUN_FOLDER}/{START}\n")
}

/// The script of the real root: mounts, shares, soft-RoCE, the command, the verdict, the end.
pub(super) fn second_script(shares: &[Share]) -> String {
    let mounts = MOUNTS.iter().map(|mount| mount.line(""));
    let shares = shares.iter().filter(|share| share.tag != ROOT_TAG).map(|share| share.line(""));
    let mounts: String = mounts.chain(shares).collect();
    let [stdout, stderr] = PORTS;
    format!(
        r#"export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8
finish() {{
    echo "$1" > {RUN_FOLDER}/{VERDICT}
    printf '\001' | dd of=/dev/port bs=1 seek={EXIT_PORT} conv=notrunc status=none
    echo o > /proc/sysrq-trigger
    sleep 1000
}}
prepare() {{
{mounts}cat /proc/uptime > {RUN_FOLDER}/{CLOCK}
ln -sfn /proc/self/fd /dev/fd && ln -sfn fd/0 /dev/stdin && ln -sfn fd/1 /dev/stdout && ln -sfn fd/2 /dev/stderr
ip link set lo up
ulimit -n 65536
mkdir /sys/fs/cgroup/lab
if [ -e {RUN_FOLDER}/{RDMA} ]; then sh -e {RUN_FOLDER}/{RDMA}; fi
}}
set -e
trap 'finish "setup failed"' EXIT
prepare
trap - EXIT
set +e
port() {{
    for name in /sys/class/virtio-ports/*/name; do
        if [ "$(cat "$name")" = "$1" ]; then basename "$(dirname "$name")"; fi
    done
}}
work() {{
# A port takes one opener only, and programs open /dev/stdout again: they get a pipe, one cat the port.
mkfifo /run/{stdout} /run/{stderr}
cat /run/{stdout} > "/dev/$(port {stdout})" & out=$!
cat /run/{stderr} > "/dev/$(port {stderr})" & err=$!
if [ -e {RUN_FOLDER}/{SYSTEMD} ]; then until systemctl -q is-active basic.target 2>/dev/null; do sleep 0.1; done; fi
: > {RUN_FOLDER}/{READY}
until [ -e {RUN_FOLDER}/{GO} ]; do cat /proc/uptime > {RUN_FOLDER}/{CLOCK}; sleep 0.05; done
sh -c 'echo $$ > /sys/fs/cgroup/lab/cgroup.procs; exec sh {RUN_FOLDER}/{COMMAND}' </dev/null >/run/{stdout} 2>/run/{stderr}
status=$?
# What the command left running would keep the pipes open.
echo 1 > /sys/fs/cgroup/lab/cgroup.kill
tries=0
while [ $tries -lt 100 ] && {{ kill -0 $out || kill -0 $err; }} 2>/dev/null; do sleep 0.05; tries=$((tries + 1)); done
finish "exit $status"
}}
"#
    ) + &first_process()
}

/// What the first process does when all is prepared: the work, or systemd beside it. Of what systemd starts by itself the
/// journal is left: the rest takes 20 s under emulation, and may undo some of what was prepared.
fn first_process() -> String {
    format!(
        r#"if [ ! -e {RUN_FOLDER}/{SYSTEMD} ]; then work; fi
cd /usr/lib/systemd/system
find sysinit.target.wants sockets.target.wants timers.target.wants -type l ! -name '*journald*' -delete
rm -f ../system-generators/* /etc/systemd/system/timers.target.wants/*
tr -d - < /proc/sys/kernel/random/uuid > /etc/machine-id
work &
exec /usr/lib/systemd/systemd --unit=basic.target
"#
    )
}

/// The script that runs the command in the guest.
pub(super) fn command_script(words: &[String], folder: &str, kernel: &str) -> String {
    let words: Vec<_> = words.iter().map(|word| quote(word)).collect();
    format!(
        "export PATH=/mnt/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n\
         export HOME=/root LANG=C.UTF-8 FABRICSCOPE_LAB={kernel}\n\
         if [ -e /run/lab-rdma ]; then . /run/lab-rdma; fi\ncd {folder}\nexec {}\n",
        words.join(" ")
    )
}

/// A word as the shell reads it back unchanged.
fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn words_reach_the_command_unchanged() {
        let words = ["printf", "%s|", "a b", "it's", "$HOME `x` \\ \"", "", "*"].map(str::to_owned);
        let script = command_script(&words, "/", "6.1");
        let output = Command::new("sh").arg("-c").arg(script).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "a b|it's|$HOME `x` \\ \"||*|");
    }

    #[test]
    fn scripts_are_valid_shell() {
        let share = Share { tag: "out", host: "/x".into(), guest: "/mnt/out", writable: true };
        for script in [first_script("busybox insmod /modules/0.ko\n"), second_script(&[share])] {
            let status = Command::new("sh").args(["-n", "-c", &script]).status().unwrap();
            assert!(status.success(), "{script}");
        }
    }
}

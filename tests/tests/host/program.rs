//! The program under test: how it is started, and what a refusal must look like.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tests::command::{Finished, fabricscope, run};

/// Far longer than any of these takes on a busy host.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);

/// A usage error: the words on the command line are wrong.
pub(crate) const USAGE: i32 = 2;
/// Something failed.
pub(crate) const FAILED: i32 = 1;
/// A command was to be traced, and could not be.
pub(crate) const NOT_TRACED: i32 = 125;

/// The binary, ready to be given words.
pub(crate) fn program() -> Command {
    let path = fabricscope();
    assert!(path.is_file(), "{} is not there: build it, or name one by FABRICSCOPE_BIN", path.display());
    Command::new(path)
}

/// Runs it to its end.
#[track_caller]
pub(crate) fn start(words: &[&str]) -> Finished {
    end(program().args(words))
}

/// Runs a command to its end; a panic is no end.
#[track_caller]
pub(crate) fn end(command: &mut Command) -> Finished {
    let seen = run(command, LIMIT).unwrap();
    assert!(!seen.stderr.contains("panicked"), "{command:?}:\n{}", seen.stderr);
    seen
}

/// Refused with this status, with every one of `says` in the message, and nothing on standard output.
#[track_caller]
pub(crate) fn refused(words: &[&str], status: i32, says: &[&str]) {
    let seen = start(words);
    assert_eq!(seen.stdout, "", "{words:?}");
    says_why(&seen, status, says);
}

/// Ended with this status, and with every one of `says` in the message.
#[track_caller]
pub(crate) fn says_why(seen: &Finished, status: i32, says: &[&str]) {
    assert_eq!(seen.status.code(), Some(status), "{}{}", seen.stdout, seen.stderr);
    for part in says {
        assert!(seen.stderr.contains(part), "it does not say {part}:\n{}", seen.stderr);
    }
}

/// Whether the kernel lets these tests load programs; says so if not.
pub(crate) fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        println!("this test loads programs into the kernel, for which it must run as root");
    }
    root
}

/// Asks until it answers.
#[track_caller]
pub(crate) fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + LIMIT;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < deadline, "{what}: not within {} s", LIMIT.as_secs());
        // Between two looks the machine has other work; nothing waits for this time to pass.
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

/// A folder of its own for one test, readable by every user, gone when dropped.
pub(crate) struct Scratch(TempDir);

impl Scratch {
    pub(crate) fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("fabricscope-host-").tempdir().unwrap();
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
        Self(folder)
    }

    /// One whose files are written to memory, so that a busy disk holds nobody up.
    pub(crate) fn in_memory() -> Self {
        let folder = tempfile::Builder::new().prefix("fabricscope-host-").tempdir_in("/dev/shm").unwrap();
        Self(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// A file inside with this text.
    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        let path = self.inside(name);
        std::fs::write(&path, text).unwrap();
        text_of(&path)
    }

    /// Where something inside would be.
    pub(crate) fn inside(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }
}

pub(crate) fn text_of(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

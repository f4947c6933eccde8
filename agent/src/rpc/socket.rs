//! The agent's Unix socket: taken over from a dead agent, never from a live one, and gone when the agent ends.

use std::fs::{self, File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Owner and group may talk to the agent.
const MODE: u32 = 0o660;

/// What the name has until it is ready.
const SUFFIX_NEW: &str = ".new";

/// Why there is no socket.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SocketError {
    /// Another agent runs.
    #[error(
        "another agent answers on {}; stop it first, or give this one another socket (rpc.socket)",
        .0.display()
    )]
    Live(PathBuf),
    /// Another agent is taking it at this moment.
    #[error("another agent is just starting on {}", .0.display())]
    Starting(PathBuf),
    /// Something else has the name.
    #[error("{} is there and is no socket; move it away, or set rpc.socket to another path", .0.display())]
    NoSocket(PathBuf),
    /// The name is no path of a file.
    #[error("{} does not name a file; set rpc.socket to a path such as /run/fabricscope/agent.sock", .0.display())]
    NoFile(PathBuf),
    /// The system refuses.
    #[error("cannot {what} {}", path.display())]
    Io {
        /// What was to be done with it.
        what: &'static str,
        /// The socket's path.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// A listening socket. Its file goes when this does.
#[derive(Debug)]
pub(crate) struct Socket {
    listener: UnixListener,
    file: SocketFile,
}

/// The file, by what it is and not only by name: another agent may have put its own there.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    identity: (u64, u64),
    /// The directory, if it was made for the socket.
    made: Option<PathBuf>,
}

impl Socket {
    /// Listens at `path`. Its directory is made if only that is missing, and then goes with the socket.
    ///
    /// # Errors
    ///
    /// If another agent answers there, if the name is taken by something else, or if the system refuses.
    pub(crate) fn bind(path: &Path) -> Result<Self, SocketError> {
        let io = |what, source| SocketError::Io { what, path: path.to_owned(), source };
        let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(SocketError::NoFile(path.to_owned()));
        };
        let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
        let made = match fs::create_dir(directory) {
            Ok(()) => Some(directory.to_owned()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => None,
            Err(error) => return Err(io("make the directory of", error)),
        };
        // Between looking and taking, another agent could do the same. The lock goes with the file, at the end.
        let lock = File::open(directory).map_err(|error| io("open the directory of", error))?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => SocketError::Starting(path.to_owned()),
            TryLockError::Error(error) => io("lock the directory of", error),
        })?;
        may_take(path)?;
        let mut new = name.to_owned();
        new.push(SUFFIX_NEW);
        let new = directory.join(new);
        remove_if_there(&new).map_err(|error| io("remove what is left of", error))?;
        let listener = UnixListener::bind(&new).map_err(|error| io("listen on", error))?;
        // Under its own name it is seen with its mode only. The rename replaces a dead agent's socket.
        let ready = fs::set_permissions(&new, Permissions::from_mode(MODE)).and_then(|()| fs::rename(&new, path));
        if let Err(error) = ready {
            // The first error is the one to tell.
            let _ = remove_if_there(&new);
            return Err(io("make", error));
        }
        let identity = identity(path).map_err(|error| io("look at", error))?;
        Ok(Self { listener, file: SocketFile { path: path.to_owned(), identity, made } })
    }

    /// The listener for the runtime, and the file to be kept as long.
    pub(super) fn into_parts(self) -> io::Result<(tokio::net::UnixListener, SocketFile)> {
        self.listener.set_nonblocking(true)?;
        Ok((tokio::net::UnixListener::from_std(self.listener)?, self.file))
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|found| found == self.identity) {
            // Nobody is left to be told.
            let _ = fs::remove_file(&self.path);
            if let Some(directory) = &self.made {
                // It stays if others have put something there.
                let _ = fs::remove_dir(directory);
            }
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|metadata| (metadata.dev(), metadata.ino()))
}

/// Whether nothing is there, or a socket on which nobody listens.
fn may_take(path: &Path) -> Result<(), SocketError> {
    let io = |what, source| SocketError::Io { what, path: path.to_owned(), source };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(io("look at", error)),
        Ok(metadata) if !metadata.file_type().is_socket() => return Err(SocketError::NoSocket(path.to_owned())),
        Ok(_) => {}
    }
    match UnixStream::connect(path) {
        Ok(_) => Err(SocketError::Live(path.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
        Err(error) => Err(io("find out who listens on", error)),
    }
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_socket_has_its_mode_and_goes_with_the_agent() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("agent.sock");
        let socket = Socket::bind(&path).unwrap();
        let metadata = fs::symlink_metadata(&path).unwrap();
        assert!(metadata.file_type().is_socket());
        assert_eq!(metadata.mode() & 0o777, MODE);
        UnixStream::connect(&path).unwrap();
        drop(socket);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_directory_made_for_it_goes_too_unless_it_is_used() {
        let directory = tempfile::tempdir().unwrap();
        let (path, other) = (directory.path().join("run/agent.sock"), directory.path().join("run/other"));
        drop(Socket::bind(&path).unwrap());
        assert!(!directory.path().join("run").exists());
        let socket = Socket::bind(&path).unwrap();
        fs::write(&other, "").unwrap();
        drop(socket);
        assert!(other.exists() && !path.exists());
    }

    #[test]
    fn a_live_agent_keeps_its_socket() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("agent.sock");
        let _first = Socket::bind(&path).unwrap();
        let error = Socket::bind(&path).unwrap_err();
        assert!(matches!(error, SocketError::Live(_)), "{error}");
        assert!(error.to_string().contains("agent.sock"));
        UnixStream::connect(&path).unwrap();
    }

    #[test]
    fn a_dead_agent_s_socket_is_replaced_and_what_it_had_begun_too() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("agent.sock");
        drop(UnixListener::bind(&path).unwrap());
        drop(UnixListener::bind(directory.path().join("agent.sock.new")).unwrap());
        let _socket = Socket::bind(&path).unwrap();
        UnixStream::connect(&path).unwrap();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn another_agent_s_socket_is_not_removed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("agent.sock");
        let first = Socket::bind(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let _second = Socket::bind(&path).unwrap();
        drop(first);
        UnixStream::connect(&path).unwrap();
    }

    #[test]
    fn a_file_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("agent.sock");
        fs::write(&path, "precious").unwrap();
        assert!(matches!(Socket::bind(&path), Err(SocketError::NoSocket(_))));
        assert_eq!(fs::read(&path).unwrap(), b"precious");
    }

    #[test]
    fn a_path_that_cannot_be_is_named() {
        let directory = tempfile::tempdir().unwrap();
        for (path, expected) in [
            (directory.path().join("none/none/agent.sock"), "cannot make the directory of"),
            (directory.path().join("x".repeat(120)), "cannot listen on"),
            (PathBuf::from("/"), "does not name a file"),
        ] {
            let error = Socket::bind(&path).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}

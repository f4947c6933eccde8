//! Where events and counters come from: the kernel side, or in tests something that plays it.

use std::io;
use std::os::fd::OwnedFd;

use crate::event::Event;
use crate::host::rdma::RdmaFacts;
use crate::kernel::state::{HookState, Snapshot};

/// What the loop needs of the kernel side. No call may block.
pub(crate) trait Source {
    /// Every row of the probe table with its state and accounts.
    fn hooks(&self) -> Vec<HookState>;

    /// Reads all counters.
    ///
    /// # Errors
    ///
    /// If a map cannot be read.
    fn snapshot(&self) -> anyhow::Result<Snapshot>;

    /// Readable when events wait.
    ///
    /// # Errors
    ///
    /// If there are no more file descriptors.
    fn events_fd(&self) -> io::Result<OwnedFd>;

    /// Hands over at most `most` events that wait, or why a record is none, and says how many there were.
    fn drain(&mut self, most: usize, sink: &mut dyn FnMut(anyhow::Result<Event>)) -> usize;

    /// Looks which modules have come and gone, and says whether anything changed: then there is something to attach.
    ///
    /// # Errors
    ///
    /// If the host cannot be looked at.
    fn refresh(&mut self) -> anyhow::Result<bool>;

    /// Attaches and detaches what was found, for about [`crate::config::limits::ATTACH_TURN`]. Says whether there is
    /// more.
    fn attach(&mut self) -> bool;

    /// Looks at the RDMA devices again.
    fn refresh_devices(&mut self);

    /// The RDMA devices as last looked at.
    fn devices(&self) -> &RdmaFacts;

    /// Turns the measuring of the programs' run time on or off.
    ///
    /// # Errors
    ///
    /// If the kernel refuses.
    fn measure(&mut self, on: bool) -> anyhow::Result<()>;
}

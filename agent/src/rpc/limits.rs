//! Every bound of the rpc modules.

use std::time::Duration;

/// Clients connected at a time; more wait in the socket's backlog.
pub(crate) const CONNECTIONS: usize = 32;

/// Calls under way on one connection; more wait.
pub(crate) const STREAMS_PER_CONNECTION: u32 = 32;

/// Bytes of a message that the server takes: the largest request is a filter.
pub(crate) const REQUEST_BYTES: usize = 16 * 1024;

/// Bytes of a message that the client takes: a status with a thousand devices is below 1 MiB.
pub(crate) const ANSWER_BYTES: usize = 4 * 1024 * 1024;

/// Samples of one message: at 100 bytes each, which is more than they mostly have, 1.6 MiB.
pub(crate) const SAMPLES_PER_MESSAGE: usize = 16 * 1024;

/// Values of counters of one message: at 10 bytes each at most, with two times beside them.
pub(crate) const COUNTER_VALUES_PER_MESSAGE: usize = 64 * 1024;

/// Bytes of a network device's name: `IFNAMSIZ` less the end.
pub(crate) const NETDEV: usize = 15;

/// Bytes of a call's headers.
pub(crate) const HEADER_BYTES: u32 = 8 * 1024;

/// How long the client waits for a connection, and for an answer that is not a stream.
pub(crate) const ANSWER_WAIT: Duration = Duration::from_secs(5);

/// How long open streams may last after the agent is told to stop.
pub(crate) const STOP_WAIT: Duration = Duration::from_secs(2);

/// Kinds that a filter may list.
pub(crate) const FILTER_KINDS: usize = 16;

/// Bytes of a thread's name in a filter: `TASK_COMM_LEN` less the end.
pub(crate) const FILTER_COMM: usize = 15;

/// Bytes of a device's name in a filter: `IB_DEVICE_NAME_MAX` less the end.
pub(crate) const FILTER_DEVICE: usize = 63;

/// Bytes of a verb's name in a filter; the longest that has one is far below.
pub(crate) const FILTER_VERB: usize = 64;

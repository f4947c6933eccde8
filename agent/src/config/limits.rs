//! Every bound of the agent's user side, one sentence each.

use std::time::Duration;

use analysis::series::DurationNs;

/// Bytes of a configuration file that are read: a larger file is refused.
pub(crate) const CONFIG_BYTES: u64 = 1 << 20;

/// Commands from clients that wait for the loop; one more is refused and counted.
pub(crate) const COMMANDS: usize = 64;

/// Clients that watch events at one time; one more is refused.
pub(crate) const WATCHERS: usize = 32;

/// Events that wait for one client; one more is lost to that client, and counted.
pub(crate) const WATCH_QUEUE: usize = 1024;

/// Names of network devices in one list of the configuration.
pub(crate) const GLOBS: usize = 64;

/// Prefixes of the host's own region.
pub(crate) const REGIONS: usize = 64;

/// Network devices that are sampled at one time; further ones are named and left out.
pub(crate) const BURST_DEVICES: usize = 64;

/// Sampled devices from which on their rings have half the length, so that eight devices of 256 CPUs take 64 MiB.
pub(crate) const BURST_DEVICES_MANY: usize = 8;

/// Readings of the sampled devices that wait for the loop; one more is lost, and its buckets are counted as such.
pub(crate) const BURST_UPDATES: usize = 64;

/// The longest time between two readings of the sampled devices, however long their rings last.
pub(crate) const DRAIN_PAUSE: Duration = Duration::from_millis(500);

/// The least time between two looks at the network devices, however often they change.
pub(crate) const LINKS_PAUSE: Duration = Duration::from_millis(200);

/// The longest time between two looks at the network devices, and between two tries to attach to one that refused.
pub(crate) const LINKS_EVERY: Duration = Duration::from_secs(10);

/// Network devices that are accounted for apart, those that are gone too; further ones share one account.
pub(crate) const NETDEV_ACCOUNTS: usize = 32;

/// How much of the last time is told when a run with a summary ends.
pub(crate) const TOLD: DurationNs = DurationNs(60_000_000_000);

/// Network devices that are told of then.
pub(crate) const DEVICES_TOLD: usize = 4;

/// How far ahead the start of a run may lie.
pub(crate) const RUN_AHEAD: DurationNs = DurationNs(24 * 3_600_000_000_000);

/// Failures that are kept to be shown as the last ones.
pub(crate) const LAST_FAILURES: usize = 32;

/// Events taken from the ring buffer before the loop looks at its other inputs again; the rest waits in the ring,
/// which counts what finds no room.
pub(crate) const DECODE_AT_ONCE: usize = 64;

/// For how long hooks are attached before the loop looks at its other inputs again; one hook takes some milliseconds.
pub(crate) const ATTACH_TURN: Duration = Duration::from_millis(50);

/// How often that many events are taken once more at the end, so that no storm keeps the agent alive.
pub(crate) const LAST_DRAINS: usize = 1024;

/// How often that many events are taken before a status is told: a full ring of them.
pub(crate) const STATUS_DRAINS: usize = 32;

/// Scrapes that wait for the loop; one more is answered with "too many requests".
pub(crate) const SCRAPES: usize = 8;

/// How old a reading of the counters may be when it is served, so that scrapes cannot load the host.
pub(crate) const SNAPSHOT_AGE: Duration = Duration::from_millis(100);

/// How old a reading of the counters may get when nobody asks, so that hanging calls are seen.
pub(crate) const SNAPSHOT_IDLE: Duration = Duration::from_secs(10);

/// The pace of everything that is looked at in turn: modules, devices, folded log lines, the summary.
pub(crate) const TICK: Duration = Duration::from_secs(1);

/// Ticks between two looks at the RDMA devices, and at once when modules or devices have changed.
pub(crate) const DEVICES_EVERY_TICKS: u64 = 10;

/// How long an HTTP request waits for the loop before it is answered that the loop hangs.
pub(crate) const LOOP_SILENCE: Duration = Duration::from_secs(5);

/// How long ending waits for clients of the socket.
pub(crate) const SHUTDOWN: Duration = Duration::from_secs(4);

/// HTTP connections at one time; further ones wait in the kernel's queue.
pub(crate) const HTTP_CONNECTIONS: usize = 16;

/// Bytes of an HTTP request's line and headers; a larger one is refused.
pub(crate) const HTTP_HEADER_BYTES: usize = 16 * 1024;

/// Headers of an HTTP request; one more is refused.
pub(crate) const HTTP_HEADERS: usize = 64;

/// How long an HTTP client may take to send its request's headers.
pub(crate) const HTTP_HEADER_TIME: Duration = Duration::from_secs(5);

/// How long an HTTP connection may last: it carries one request.
pub(crate) const HTTP_CONNECTION_TIME: Duration = Duration::from_secs(30);

/// Signatures of failures that the log folds by at one time; one more evicts the oldest, and is counted.
pub(crate) const LOG_SIGNATURES: usize = 512;

/// Lines that wait for whoever reads the log; one more is lost and counted.
pub(crate) const LOG_QUEUE: usize = 1024;

/// How long ending waits for whoever reads the log.
pub(crate) const LOG_END: Duration = Duration::from_secs(2);

/// Calls named as hanging at one time; those over it are only counted.
pub(crate) const STUCK_CALLS: usize = 64;

/// Devices whose counters are read, RDMA's and network's together; further ones are not looked at.
pub(crate) const COUNTER_DEVICES: usize = 1024;

/// Counters of one folder that are looked at; further ones are not.
pub(crate) const COUNTERS_PER_FOLDER: usize = 1024;

/// Counters' files that are kept open; further ones are opened for each reading, so that descriptors do not run out.
pub(crate) const COUNTER_FILES_KEPT: usize = 768;

/// The time between two looks for devices where nothing seems to have changed.
pub(crate) const COUNTER_LOOK: Duration = Duration::from_secs(60);

/// Network devices whose links are listened to; further ones are not.
pub(crate) const CARRIER_DEVICES: usize = 4096;

/// How long changes of a link are remembered, and how many of one device: the oldest go first.
pub(crate) const CARRIER_WINDOW: Duration = Duration::from_secs(600);
pub(crate) const CARRIER_CHANGES: usize = 256;

/// Other network namespaces that are looked into for RDMA devices; further ones are not.
pub(crate) const NAMESPACES: usize = 256;

/// Ports of an RDMA device there; hardware has 1 or 2.
pub(crate) const NAMESPACE_PORTS: u32 = 16;

/// Health reporters of all adapters; further ones are not looked at. An adapter has five or so.
pub(crate) const REPORTERS: usize = 1024;

/// Sets of counters bound to queue pairs that are shown; further ones are not.
pub(crate) const BOUND_COUNTERS: usize = 1024;

/// The shortest time that is one sample of a link's changes.
pub(crate) const LINK_SAMPLE: Duration = Duration::from_secs(1);

/// What the detectors look back on; those of rare events for longer.
pub(crate) const FINDING_WINDOW: Duration = Duration::from_secs(60);

/// Samples of a port that they look at: shorter intervals look back on less.
pub(crate) const FINDING_SAMPLES: usize = 600;

/// Ports that are held against them; further ones are not, and are counted.
pub(crate) const FINDING_PORTS: usize = 1024;

/// Kinds of objects, of all devices, that are held against their limits; further ones are not.
pub(crate) const FINDING_RESOURCES: usize = 4096;

/// Readings whose findings wait for the loop; one more takes the place of the oldest, since the newest say how things
/// stand.
pub(crate) const FINDING_READINGS: usize = 8;

/// Of how many times its own duration a reading's pace is at least, so that slow firmware is not asked all the time.
pub(crate) const COUNTER_SHARE: u32 = 10;

/// Paces after which a reading is so old that it is not served any more.
pub(crate) const COUNTER_PACES_UNTIL_OLD: u32 = 3;

/// How often the rest of a counter that cannot be read is doubled, from one reading to 63.
pub(crate) const COUNTER_REST_DOUBLINGS: u32 = 6;

/// Errors in one reading, and nothing else, for which a device is left alone.
pub(crate) const QUARANTINE_ERRORS: usize = 3;

/// For how long it is left alone the first time.
pub(crate) const QUARANTINE_FIRST: Duration = Duration::from_secs(60);

/// How often that time is doubled: to a little more than an hour.
pub(crate) const QUARANTINE_DOUBLINGS: u32 = 6;

/// RDMA devices that have series of their own; further ones share those of `device="other"`.
pub(crate) const SERIES_DEVICES: usize = 20;

/// Cgroups that are looked at for those that killed sessions left; a host has hundreds.
pub(crate) const CGROUPS: usize = 50_000;

/// Series of one RDMA device.
pub(crate) const SERIES_PER_DEVICE: usize = 60;

/// Of these, counters of its ports; further ones are left out and counted as such.
pub(crate) const SERIES_COUNTERS: usize = 20;

/// Besides, reasons why counters of the device could not be read; further ones are in the log alone.
pub(crate) const SERIES_UNREADABLE: usize = 5;

/// Series of one network device that belongs to an adapter.
pub(crate) const SERIES_PER_NETDEV: usize = 32;

/// Series that belong to no device.
pub(crate) const SERIES_SHARED: usize = 300;

/// Series altogether, whatever happens.
pub(crate) const SERIES: usize = 1500;

/// Series of errors by device, verb, layer and errno; those over it are counted under `errno="other"`.
pub(crate) const SERIES_ERRORS: usize = 128;

/// GIDs of one RDMA device that are told, those of RoCE v2 with an IPv4 address first; `ibv_devinfo -v` lists all.
pub(crate) const GIDS_PER_DEVICE: usize = 4;

/// Series of GIDs, all devices together; those over it are left out and counted as such.
pub(crate) const SERIES_GIDS: usize = 40;

/// Series of the objects that devices hold, and as many of their limits; those over it are left out and counted as such.
pub(crate) const SERIES_RESOURCES: usize = 60;

/// Sources of fast samples with series of their own; further ones are left out and counted as such.
pub(crate) const SERIES_FAST: usize = 20;

/// Series of health events; those over it are counted under `event="other"`.
pub(crate) const SERIES_HEALTH: usize = 64;

/// Health reporters of adapters that have series, up to four each; those over it are left out and counted as such.
pub(crate) const SERIES_REPORTERS: usize = 40;

/// Network devices with a series of their own for polls that used up their budget; further ones share one.
pub(crate) const SERIES_NAPI: usize = 32;

/// Series of dropped packets by network device and reason; those over it are counted under `reason="other"`.
pub(crate) const SERIES_DROPS: usize = 48;

/// Series of findings; those over it are left out and counted as such, and still in the numbers of what fires.
pub(crate) const SERIES_FINDINGS: usize = 128;

/// Of these, places that are kept for what fires.
pub(crate) const SERIES_FIRING: usize = 32;

/// Findings that a status tells.
pub(crate) const FINDINGS_TOLD: usize = 64;

/// Verbs that have a histogram of their own; further ones share that of `verb="other"`.
pub(crate) const HISTOGRAM_VERBS: usize = 8;

/// Bytes of a label's value; the rest is cut.
pub(crate) const LABEL_BYTES: usize = 128;

const _: () = assert!(SERIES_DEVICES * SERIES_PER_DEVICE + SERIES_SHARED <= SERIES);

/// Bytes of a sample file, packed or not: a larger one is neither written nor read.
pub(crate) const SAMPLE_FILE_BYTES: usize = 128 << 20;

/// Samples of one file: at 208 bytes each, 208 MiB once read.
pub(crate) const SAMPLES_PER_FILE: usize = 1 << 20;

/// Bytes of a page of a Parquet file once unpacked: those written here stay below 2 MiB.
pub(crate) const SAMPLE_PAGE_BYTES: i64 = 32 << 20;

/// Samples of a piece, the recorder's unit in memory and of what may be pushed at once: 3.3 MiB before it is packed.
pub(crate) const PIECE_SAMPLES: usize = 1 << 14;

/// How long samples collect in a piece before it is packed.
pub(crate) const PIECE_TIME: Duration = Duration::from_secs(10);

/// Samples that the recorder puts into one file: 26 MiB while it is written.
pub(crate) const FILE_SAMPLES: usize = 1 << 17;

/// How long a piece waits for further ones before it is written: with its own time, what a crash can lose.
pub(crate) const FILE_TIME: Duration = Duration::from_secs(60);

/// Bytes of files that the recorder keeps unless `bursts.keep_bytes` says otherwise.
pub(crate) const RECORDER_BYTES: u64 = 1 << 30;

/// Files that the recorder keeps, whatever their size; the oldest go first.
pub(crate) const RECORDER_FILES: usize = 100_000;

/// How long a disk that refused a file is left alone at first; twice as long each time …
pub(crate) const DISK_PAUSE: Duration = Duration::from_secs(1);

/// … up to this.
pub(crate) const DISK_PAUSE_MAX: Duration = Duration::from_secs(60);

/// How long ending waits for the recorder's last files.
pub(crate) const RECORDER_END: Duration = Duration::from_secs(3);

const _: () = assert!(PIECE_SAMPLES <= FILE_SAMPLES && FILE_SAMPLES <= SAMPLES_PER_FILE);

/// Counters of one source that are sampled fast; further ones are left out and named.
pub(crate) const COUNTER_COLUMNS: usize = 256;

/// Sources of fast samples; further ones are left out and named.
pub(crate) const FAST_SOURCES: usize = 64;

/// Groups and names of counters in one list of the configuration.
pub(crate) const FAST_WORDS: usize = 64;

/// Fast readings of all sources together take at most one in so many parts of their thread's time.
pub(crate) const FAST_SHARE: u32 = 4;

/// Readings one after the other that take too long, until their source is read more seldom.
pub(crate) const FAST_SLOW_READINGS: u32 = 3;

/// The slowest pace of a source that was to be read fast.
pub(crate) const FAST_SLOWEST: Duration = Duration::from_secs(8);

/// How long a source has to be quick again until it is read faster; twice as long each time …
pub(crate) const FAST_CALM: Duration = Duration::from_secs(5);

/// … up to this.
pub(crate) const FAST_CALM_MAX: Duration = Duration::from_secs(160);

/// How often fast samples go to the recorder, and how often it is looked whether devices have changed.
pub(crate) const FAST_FLUSH: Duration = Duration::from_millis(200);

/// How long a source that fails is left alone at first; twice as long each time …
pub(crate) const FAST_REST: Duration = Duration::from_secs(1);

/// … up to this.
pub(crate) const FAST_REST_MAX: Duration = Duration::from_secs(64);

/// How long ending waits for the reading that is under way.
pub(crate) const FAST_END: Duration = Duration::from_secs(2);

/// Values of counters in one file: 256 MiB once read.
pub(crate) const COUNTER_CELLS: u64 = 1 << 25;

/// Samples that one command reads from all its files: more than an hour of 1 ms, 832 MiB.
pub(crate) const SHOWN_SAMPLES: usize = 1 << 22;

/// Counters in the text of `bursts show`; JSON has them all.
pub(crate) const SHOWN_COUNTERS: usize = 12;

/// Pairs of devices in a table; JSON has them all.
pub(crate) const SHOWN_PAIRS: usize = 20;

/// Bursts that are marked in a picture: more would be a bar.
pub(crate) const PICTURE_MARKS: usize = 2000;

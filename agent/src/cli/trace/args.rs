//! Arguments of `fabricscope trace`, and what they ask for.

use std::convert::Infallible;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use crate::cli::client::SocketArgs;
use crate::config::time;
use crate::daemon::handle::Filter;
use crate::host::errno::errno_number;
use crate::host::roots::Roots;
use crate::probes::Subject;
use crate::verbs::names::all_names;

/// What to trace.
#[derive(Debug, Subcommand)]
pub(crate) enum Trace {
    /// Failed verbs calls, each with the layer that refused it
    Verbs(VerbsArgs),
    /// Events of the RDMA connection manager: unreachable, rejected, disconnected
    Cm(CmArgs),
    /// Events of devices, ports and resources: port down, GID change, QP fatal
    Device(DeviceArgs),
    /// NICs that are not well: what drivers and firmware report, transmit queues that stand still
    Health(HealthArgs),
}

/// How to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// Columns for people
    Table,
    /// One JSON object a line
    Json,
}

/// What every session can be told.
#[derive(Debug, Args)]
pub(crate) struct SessionArgs {
    /// Print a table for people, or one JSON object a line
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    pub(crate) output: Output,
    /// End after this time, such as 30s or 500ms
    #[arg(long, value_name = "TIME", value_parser = time::parse_positive)]
    pub(crate) duration: Option<Duration>,
    /// End after so many events
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
    /// Never use fexit, only kprobes
    #[arg(long)]
    pub(crate) no_fexit: bool,
    #[command(flatten)]
    pub(crate) socket: SocketArgs,
    #[command(flatten)]
    pub(crate) roots: Roots,
    /// A command to run and trace, with its children; its exit status is passed on
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// Arguments of `trace verbs`.
#[derive(Debug, Args)]
pub(crate) struct VerbsArgs {
    /// Only this process
    #[arg(long)]
    pid: Option<u32>,
    /// Only threads of this name
    #[arg(long, value_name = "NAME")]
    comm: Option<String>,
    /// Only this RDMA device, such as mlx5_0
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    /// Only this verb, such as reg_mr
    #[arg(long, value_name = "NAME", value_parser = verb)]
    verb: Option<String>,
    /// Only this error, such as ENOMEM or 12
    #[arg(long, value_name = "ERROR", value_parser = errno, conflicts_with = "stuck")]
    errno: Option<i32>,
    /// Only this cgroup, by its id
    #[arg(long, value_name = "ID")]
    cgroup: Option<u64>,
    /// Attach every hook there is, not only those that are always on: more layers are seen, at more cost
    #[arg(long)]
    all: bool,
    /// Show refused probes too: user space asking what a device can do
    #[arg(long)]
    probes: bool,
    /// Show calls that have not returned for more than a second, in place of failures
    #[arg(long)]
    stuck: bool,
    /// Take no time stamps: less cost, no durations
    #[arg(long, conflicts_with = "stuck")]
    no_latency: bool,
    #[command(flatten)]
    session: SessionArgs,
}

/// Arguments of `trace cm`.
#[derive(Debug, Args)]
pub(crate) struct CmArgs {
    /// Taken as a flag only to say why it is none.
    #[arg(long, hide = true, value_parser = no_device)]
    device: Option<Infallible>,
    #[command(flatten)]
    session: SessionArgs,
}

/// Arguments of `trace device`.
#[derive(Debug, Args)]
pub(crate) struct DeviceArgs {
    /// Only this RDMA device, such as mlx5_0
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    #[command(flatten)]
    session: SessionArgs,
}

/// Arguments of `trace health`.
#[derive(Debug, Args)]
pub(crate) struct HealthArgs {
    /// Only this RDMA or network device, such as mlx5_0 or eth0
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    #[command(flatten)]
    session: SessionArgs,
}

/// What a session is asked for.
#[derive(Debug)]
pub(crate) struct Wish<'a> {
    /// Which events.
    pub(crate) filter: Filter,
    /// Attach all rows of the probe table.
    pub(crate) all: bool,
    /// Show calls that hang, in place of events.
    pub(crate) stuck: bool,
    /// Take time stamps.
    pub(crate) latency: bool,
    /// The rest.
    pub(crate) session: &'a SessionArgs,
}

impl Trace {
    /// What this asks for.
    pub(crate) fn wish(&self) -> Wish<'_> {
        match self {
            Self::Verbs(args) => Wish {
                filter: Filter {
                    kinds: vec![Subject::Verbs],
                    pid: args.pid,
                    comm: args.comm.clone(),
                    device: args.device.clone(),
                    verb: args.verb.clone(),
                    errno: args.errno,
                    cgroup_id: args.cgroup,
                    include_probes: args.probes,
                },
                all: args.all,
                stuck: args.stuck,
                latency: !args.no_latency,
                session: &args.session,
            },
            Self::Cm(args) => {
                let device = args.device.map(|none| match none {});
                events(Subject::Cm, device, &args.session)
            }
            Self::Device(args) => events(Subject::Device, args.device.clone(), &args.session),
            Self::Health(args) => events(Subject::Health, args.device.clone(), &args.session),
        }
    }
}

fn events(subject: Subject, device: Option<String>, session: &SessionArgs) -> Wish<'_> {
    let filter = Filter { kinds: vec![subject], device, ..Filter::default() };
    Wish { filter, all: false, stuck: false, latency: false, session }
}

/// The kernel's record of such an event holds addresses, and no device.
fn no_device(_: &str) -> Result<Infallible, String> {
    Err("events of the connection manager name no device; without it those of all devices are shown".to_owned())
}

/// An error by its name or its number.
fn errno(text: &str) -> Result<i32, String> {
    let number = text.parse().ok().filter(|number| (1..4096).contains(number));
    number.or_else(|| errno_number(&text.to_ascii_uppercase())).ok_or_else(|| "no such error; try ENOMEM or 12".into())
}

/// A verb by its name, or by its number as those without a name are shown. What is not known would show nothing for
/// ever.
fn verb(text: &str) -> Result<String, String> {
    let numbered = ["object_0x", "command_", "unknown"].iter().any(|part| text.contains(part));
    if numbered || all_names().any(|name| name == text) {
        return Ok(text.to_owned());
    }
    let alike = |name: &str| name.bytes().zip(text.bytes()).take_while(|(a, b)| a == b).count();
    let mut near: Vec<&str> = all_names().filter(|name| alike(name) >= 3).collect();
    near.sort_by_key(|name| (std::cmp::Reverse(alike(name)), *name));
    near.dedup();
    near.truncate(5);
    if near.is_empty() {
        near = vec!["reg_mr", "create_qp", "modify_qp", "rdma_connect"]
    }
    Err(format!("no such verb; try {}", near.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs_go_by_their_names_and_what_is_near_is_told() {
        for known in ["reg_mr", "rdma_connect", "mmap", "mlx5.object_0x1007.method_0x3", "command_99", "unknown"] {
            assert_eq!(verb(known).as_deref(), Ok(known));
        }
        for (wrong, near) in [("reg_mrr", "try reg_mr,"), ("modify", "modify_qp"), ("zzz", "reg_mr"), ("", "reg_mr")] {
            let says = verb(wrong).unwrap_err();
            assert!(says.contains(near), "{wrong}: {says}");
        }
    }

    #[test]
    fn errors_go_by_name_and_number() {
        let rows =
            [("ENOMEM", Some(12)), ("enomem", Some(12)), ("12", Some(12)), ("0", None), ("E", None), ("-1", None)];
        for (text, expected) in rows {
            assert_eq!(errno(text).ok(), expected, "{text}");
        }
    }
}

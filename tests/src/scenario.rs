//! A scenario: one script that several tests read one run of, once for each kernel.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::{Result, anyhow, ensure};
use serde::de::DeserializeOwned;

use crate::command::tail;
use crate::event::{Event, Summary, summary};
use crate::lab::{Lab, Output};
use crate::modules;
use crate::nic;
use crate::workload::{self, lines};

/// What every script begins with, after the [`nic`]'s functions: the workload, the first device with its GID index, and a traced command.
///
/// `trace NAME [FLAG]... -- COMMAND` leaves the events, the agent's own words and its exit status in `/mnt/out`;
/// `trace_of KIND` does the same for other events than those of verbs. All of it is there in a `bash -c` too.
const PRELUDE: &str = r#"out=/mnt/out workload=/mnt/share/workload
set -- $FABRICSCOPE_LAB_RDMA
device=${1%%:*} gid=${1##*:} peer=${2%%:*} peer_gid=${2##*:}
netdev=${1#*:} netdev=${netdev%%:*} peer_netdev=${2#*:} peer_netdev=${peer_netdev%%:*}
address=${1#*:*:} address=${address%:*} peer_address=${2#*:*:} peer_address=${peer_address%:*}
trace_of() {
    kind=$1 name=$2; shift 2
    fabricscope trace $kind -o json "$@" > $out/$name.events 2> $out/$name.words
    echo $? > $out/$name.status
}
trace() { trace_of verbs "$@"; }
# Polls for something to come true, so many seconds or 20 at most.
until_true() {
    tries=0
    until eval "$1"; do tries=$((tries + 1)); [ $tries -lt ${2:-20}0 ] || return 1; sleep 0.1; done
}
# In a shell of its own: a refused connection ends it.
scrape() ( exec 2> /dev/null 3<>/dev/tcp/127.0.0.1/17317 && printf "GET $1 HTTP/1.0\r\n\r\n" >&3 && cat <&3 )
# Whether a series whose name begins with $1 has a value for which the condition $2 holds.
holds() { scrape /metrics > /run/page; awk -v name="$1" "index(\$0, name) == 1 && \$NF $2 { found = 1 } END { exit !found }" /run/page; }
# Keeps the page of the last look: the next one may be of another reading.
that_page() { cp /run/page $out/$1; }
# Each argument is a line of its configuration.
start_agent() {
    printf '%s\n' "$@" > /run/agent.toml
    fabricscope agent --config /run/agent.toml > $out/agent.stdout 2> $out/agent.words & agent=$!
    until_true 'scrape /healthz | grep -q "200 OK"'
}
end_agent() { kill -TERM $agent; wait $agent; echo $? > $out/agent.status; }
# The soft-RoCE devices, and when they have their addresses.
remove_links() { rdma link delete $device; rdma link delete $peer; }
add_links() {
    rdma link add $device type rxe netdev $netdev
    rdma link add $peer type rxe netdev $peer_netdev
    for end in $device:$gid $peer:$peer_gid; do
        until_true "grep -qs :ffff: /sys/class/infiniband/${end%:*}/ports/1/gids/${end#*:}" || echo "no address: $end" >&2
    done
    chmod 666 /dev/infiniband/*
}
export out workload device gid peer peer_gid netdev peer_netdev address peer_address
# A traced command is started by a shell that keeps no functions in its environment.
declare -f > /run/functions; export BASH_ENV=/run/functions
"#;

/// One script and the machine that it needs.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// Its name: one word.
    pub name: &'static str,
    /// A bash script; see [`Traced`] for what `trace` leaves. What grows while it is read lies in `/run` and is copied to
    /// `$out` later: 7.3 has been seen to give back a page of such a file on a share as zeros, and to leave it so.
    pub script: &'static str,
    /// Whether it finds the lab's own kernel modules in `/mnt/out`: the stand-ins for mlx5, and the [`nic`].
    pub modules: bool,
    /// Processors of the machine.
    pub processors: u8,
    /// When the machine is ended by force.
    pub limit: Duration,
}

/// A scenario on a kernel: runs when it is first asked for.
#[derive(Debug)]
pub struct Run {
    kernel: &'static str,
    scenario: &'static Scenario,
    /// What it finds in `/mnt/out` besides, on that kernel.
    files: fn(&str) -> Result<Vec<PathBuf>>,
    systemd: bool,
    output: OnceLock<Result<Output, String>>,
}

/// What one `trace` of a script left.
#[derive(Debug)]
pub struct Traced {
    /// The exit status.
    pub status: i32,
    /// The events.
    pub events: Vec<Event>,
    /// What stood on standard error.
    pub words: String,
}

impl Run {
    /// The scenario on this kernel, not yet run.
    #[must_use]
    pub const fn new(kernel: &'static str, scenario: &'static Scenario) -> Self {
        Run::with(kernel, scenario, |_| Ok(Vec::new()))
    }

    /// The same with further files in `/mnt/out`; `files` is told the kernel.
    #[must_use]
    pub const fn with(
        kernel: &'static str,
        scenario: &'static Scenario,
        files: fn(&str) -> Result<Vec<PathBuf>>,
    ) -> Self {
        Run { kernel, scenario, files, systemd: false, output: OnceLock::new() }
    }

    /// The same on a machine whose first process is systemd.
    #[must_use]
    pub const fn under_systemd(mut self) -> Self {
        self.systemd = true;
        self
    }

    /// The kernel, as the lab names it.
    #[must_use]
    pub fn kernel(&self) -> &'static str {
        self.kernel
    }

    /// What the script left; the first call runs it.
    ///
    /// # Errors
    /// When the workload cannot be built, the machine failed, or the script ended with another status than 0.
    pub fn output(&self) -> Result<&Output> {
        let run = || workload::build().and_then(|folder| self.start(&folder)).map_err(|error| format!("{error:#}"));
        self.output.get_or_init(run).as_ref().map_err(|error| anyhow!("{error}"))
    }

    fn start(&self, workload: &Path) -> Result<Output> {
        let Scenario { name, script, modules, processors, limit } = *self.scenario;
        let mut lab = Lab::new(self.kernel, name);
        if modules {
            lab.files = modules::build(self.kernel)?;
        }
        lab.files.extend((self.files)(self.kernel)?);
        (lab.share, lab.processors, lab.limit) = (Some(workload.to_owned()), processors, limit);
        lab.systemd = self.systemd;
        let output = lab.run(&format!("{}{PRELUDE}{script}", nic::FUNCTIONS))?;
        let words = tail(&output.stderr, 40);
        ensure!(output.status == 0, "{name} on kernel {} ended with {}:\n{words}", self.kernel, output.status);
        Ok(output)
    }

    /// What the script's `trace NAME` left.
    ///
    /// # Errors
    /// As [`Run::output`], and when the events are no JSON lines.
    pub fn traced(&self, name: &str) -> Result<Traced> {
        let output = self.output()?;
        let words = output.file(&format!("{name}.words"))?;
        let status = output.file(&format!("{name}.status"))?.trim().parse()?;
        let events = lines(&output.file(&format!("{name}.events"))?)?;
        Ok(Traced { status, events, words })
    }

    /// A file of JSON lines that the script wrote.
    ///
    /// # Errors
    /// As [`Run::output`], and when the file is not there or holds anything else.
    pub fn lines<T: DeserializeOwned>(&self, file: &str) -> Result<Vec<T>> {
        lines(&self.output()?.file(file)?)
    }
}

impl Traced {
    /// The numbers of the summary.
    ///
    /// # Errors
    /// When there is none.
    pub fn summary(&self) -> Result<Summary> {
        summary(&self.words)
    }

    /// Everything that was printed about the session, for a failed test.
    #[must_use]
    pub fn show(&self) -> String {
        let mut text = format!("status {}\n{}", self.status, tail(&self.words, 40));
        for event in self.events.iter().take(8) {
            text.push_str(&format!("\n{event:?}"));
        }
        text
    }
}

//! TCP through a switch that marks and loses: what the sampler counts against the switch, the kernel and a witness.

use std::collections::HashMap;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use tests::lab::{Lab, Output};
use tests::metrics::sum;
use tests::network;
use tests::workload::lines;

/// Hosts `a` and `b`, and `m` between them: a bridge, whose queue towards `b` does what a switch's does. Each `run` is one
/// TCP connection from `a` to `b`, sampled at both ends, with a witness at `b`. The receiver joins no packets but in the
/// runs named so, where it may.
const SCRIPT: &str = r#"out=/mnt/out tool=$out/NETWORK
for n in a m b; do
    ip netns add $n
    ip netns exec $n sh -c 'for c in all default; do echo 1 > /proc/sys/net/ipv6/conf/$c/disable_ipv6; done'
    ip -n $n link set lo up
done
ip -n a link add va type veth peer name sa netns m
ip -n b link add vb type veth peer name sb netns m
ip -n m link add name switch type bridge mcast_snooping 0
for port in sa sb; do ip -n m link set $port master switch; ip -n m link set $port up; done
ip -n m link set switch up
for end in "a va 1 2" "b vb 2 1"; do
    set -- $end
    ip -n $1 link set $2 address 02:00:00:00:00:0$3; ip -n $1 addr add 10.77.0.$3/24 dev $2; ip -n $1 link set $2 up
    ip -n $1 neigh replace 10.77.0.$4 lladdr 02:00:00:00:00:0$4 dev $2
    ip netns exec $1 sh -c 'cd /proc/sys/net/ipv4; echo 1 > tcp_ecn; echo 0 > tcp_ecn_fallback'
done
# One packet of the switch is one on the wire.
ip netns exec a $tool offload va tso off; ip netns exec a $tool offload va gso off
until_true() { tries=0; until eval "$1"; do tries=$((tries + 1)); [ $tries -lt 200 ] || return 1; sleep 0.1; done; }
totals() { device=$1 host=$2; shift 2; ip netns exec $host fabricscope bursts totals --netdev $device -o json -- "$@"; }
counters() { for n in a b; do ip netns exec $n cat /proc/net/snmp /proc/net/netstat /proc/net/snmp6 > $out/$1.$n.$2; done; }
run() {
    name=$1 to=$2; shift 2
    tc -n m qdisc replace dev sb root handle 1: "$@" || { echo "no queue for $name" >&2; return; }
    if [ $1 = tbf ]; then
        tc -n m qdisc replace dev sb parent 1:1 handle 2: red limit 400000 min 4500 max 13500 avpkt 1000 burst 10 \
            probability 0.5 ecn
    fi
    ip netns exec b $tool check-tcp $to 5001 > $out/$name.received & server=$!
    mkfifo /run/$name; sleep 1000 > /run/$name & held=$!
    ip netns exec b $tool sniff vb 8 < /run/$name > $out/$name.witness & witness=$!
    until_true "grep -q ready $out/$name.witness && grep -q ready $out/$name.received" || return
    counters $name before
    totals va a ip netns exec b fabricscope bursts totals --netdev vb --marked -o json -- \
        ip netns exec a timeout 40 $tool send-tcp $to 5001 3000000 > $out/$name.mixed 2>> $out/words
    counters $name after
    grep '"netdev"' $out/$name.mixed > $out/$name.rows; grep bytes_retrans $out/$name.mixed > $out/$name.sent
    kill $server $held 2> /dev/null; wait $server $witness
    tc -n m -s -j qdisc show dev sb > $out/$name.qdisc
    tc -n m qdisc del dev sb root
}
run red 10.77.0.2 tbf rate 40mbit burst 20kb limit 1mb
run netem 10.77.0.2 netem loss 4% ecn limit 100000
ip netns exec b $tool offload vb gro on
run red_gro 10.77.0.2 tbf rate 40mbit burst 20kb limit 1mb
ip netns exec b $tool offload vb gro off
run loss 10.77.0.2 netem loss 4% limit 100000
ip netns exec a $tool offload va gso on; ip netns exec a $tool offload va tso on
run loss_pieces 10.77.0.2 netem loss 4% limit 100000
ip netns exec a $tool offload va tso off; ip netns exec a $tool offload va gso off
# Checksums are complete where the device computes none.
ip netns exec a $tool offload va tx off
printf '%s\n' 'verbs.enabled = false' 'rpc.enabled = false' '[bursts]' 'netdevs = ["va"]' 'files = false' \
    'mark_retransmits = true' > /run/agent.toml
ip netns exec a fabricscope agent --config /run/agent.toml > /dev/null 2> $out/agent & agent=$!
scrape() {
    ip netns exec a bash -c 'exec 3<>/dev/tcp/127.0.0.1/17317 && printf "GET /metrics HTTP/1.0\r\n\r\n" >&3 && cat <&3' \
        2> /dev/null > $out/metrics
    grep "^$1.*\"tx\"" $out/metrics | awk "{ found = \$NF >= $2 } END { exit !found }"
}
until_true 'scrape fabricscope_netdev_bytes_total 0'
run marked 10.77.0.2 netem loss 4% limit 100000
until_true "scrape fabricscope_netdev_marked_bytes_total $(grep -o 's_retrans":[0-9]*' $out/marked.sent | cut -d: -f2)"
kill $agent; wait $agent
for end in "a va 1 2" "b vb 2 1"; do
    set -- $end
    ip netns exec $1 sh -c "echo 0 > /proc/sys/net/ipv6/conf/$2/disable_ipv6"
    ip -n $1 addr add fd77::$3/64 dev $2 nodad; ip -n $1 neigh replace fd77::$4 lladdr 02:00:00:00:00:0$4 dev $2
done
run red_6 fd77::2 tbf rate 40mbit burst 20kb limit 1mb
exit 0
"#;

/// One machine for each kernel.
pub(crate) struct Run {
    kernel: &'static str,
    output: OnceLock<Result<Output, String>>,
}

#[derive(Clone, Debug, Deserialize)]
struct Row {
    netdev: String,
    direction: String,
    segments: u64,
    retransmit_bytes: u64,
    retransmit_segments: u64,
    ce_packets: u64,
    ce_bytes: u64,
    marked: Option<Marked>,
    traced: Option<Traced>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
struct Marked {
    segments: u64,
    bytes: u64,
}

#[derive(Clone, Copy, Debug, Deserialize)]
struct Traced {
    events: u64,
    segments: u64,
    data_segments: u64,
    bytes: u64,
    failures: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct Sent {
    bytes_retrans: u64,
}

#[derive(Debug, Deserialize)]
struct Witness {
    marked: u64,
    marked_bytes: u64,
    reserved: u64,
    wrong: u64,
    ce: u64,
    ce_bytes: u64,
    lost: u64,
}

/// What the switch says of a queue.
#[derive(Debug, Deserialize)]
struct Queue {
    kind: String,
    drops: u64,
    #[serde(default)]
    marked: u64,
}

impl Run {
    pub(crate) const fn new(kernel: &'static str) -> Self {
        Self { kernel, output: OnceLock::new() }
    }

    fn output(&self) -> &Output {
        let output = self.output.get_or_init(|| {
            let tool = network::tool().unwrap();
            let name = Path::new(&tool).file_name().and_then(|name| name.to_str()).unwrap().to_owned();
            let mut lab = Lab::new(self.kernel, "bursts_tcp");
            (lab.files, lab.rdma, lab.limit) = (vec![tool], false, Duration::from_secs(300));
            lab.run(&SCRIPT.replace("NETWORK", &name)).map_err(|error| format!("{error:#}"))
        });
        output.as_ref().unwrap_or_else(|error| panic!("{error}"))
    }

    /// The lines of a file that are JSON.
    #[track_caller]
    fn lines<T: DeserializeOwned>(&self, file: &str) -> Vec<T> {
        let text = self.output().file(file).unwrap();
        let json: String = text.lines().filter(|line| line.starts_with('{')).flat_map(|line| [line, "\n"]).collect();
        lines(&json).unwrap_or_else(|error| panic!("{file}: {error:#}\n{text}{}", self.output().stderr))
    }

    /// A device's row in one direction while `name` ran.
    #[track_caller]
    fn row(&self, name: &str, netdev: &str, direction: &str) -> Row {
        let rows: Vec<Row> = self.lines(&format!("{name}.rows"));
        let found = rows.into_iter().find(|row| row.netdev == netdev && row.direction == direction);
        found.unwrap_or_else(|| panic!("{name}: no {netdev} {direction}:\n{}", self.output().stderr))
    }

    #[track_caller]
    fn one<T: DeserializeOwned>(&self, file: &str) -> T {
        self.lines(file).pop().unwrap_or_else(|| panic!("{file} is empty:\n{}", self.output().stderr))
    }

    #[track_caller]
    fn queue(&self, name: &str, kind: &str) -> Queue {
        let queues: Vec<Queue> = serde_json::from_str(&self.output().file(&format!("{name}.qdisc")).unwrap()).unwrap();
        queues.into_iter().find(|queue| queue.kind == kind).unwrap()
    }

    /// By how much a counter of the kernel of a host grew.
    #[track_caller]
    fn grown(&self, name: &str, host: &str, counter: &str) -> u64 {
        let [before, after] = ["before", "after"].map(|end| {
            let text = self.output().file(&format!("{name}.{host}.{end}")).unwrap();
            counters(&text).get(counter).copied().unwrap_or_else(|| panic!("no {counter}"))
        });
        after - before
    }
}

/// Lines in pairs: `Tcp: NAME...`, `Tcp: VALUE...`; and lines of a name and a value.
fn counters(text: &str) -> HashMap<String, u64> {
    let mut found = HashMap::new();
    let mut names: Vec<&str> = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.first() == names.first() {
            for (name, value) in names.iter().zip(&words).skip(1) {
                found.insert((*name).to_owned(), value.parse().unwrap_or_default());
            }
        } else if let [name, value] = words[..]
            && !name.ends_with(':')
        {
            found.insert(name.to_owned(), value.parse().unwrap());
        }
        names = words;
    }
    found
}

/// The receiver counts each mark that the kernel and the witness count. How many.
#[track_caller]
fn same_marks(run: &Run, name: &str, counter: &str) -> u64 {
    let (sent, received) = (run.row(name, "va", "tx"), run.row(name, "vb", "rx"));
    let witness: Witness = run.one(&format!("{name}.witness"));
    assert_eq!(sent.ce_packets, 0, "it is sent before the switch: {sent:?}");
    assert!(received.ce_packets > 5, "nothing was marked: {received:?}");
    assert_eq!(received.ce_packets, run.grown(name, "b", counter), "{name} {received:?}");
    if !name.contains("gro") {
        assert_eq!((received.ce_packets, received.ce_bytes), (witness.ce, witness.ce_bytes), "{name} {witness:?}");
        assert_eq!(witness.lost, 0, "{witness:?}");
    }
    println!("{name}: {} packets, {} bytes marked", received.ce_packets, received.ce_bytes);
    received.ce_packets
}

#[track_caller]
pub(crate) fn marked(run: &Run) {
    for (name, counter) in [("red", "InCEPkts"), ("red_gro", "InCEPkts"), ("red_6", "Ip6InCEPkts")] {
        let queue = run.queue(name, "red");
        assert_eq!(same_marks(run, name, counter), queue.marked, "{name} {queue:?}");
    }
}

#[track_caller]
pub(crate) fn marked_and_lost(run: &Run) {
    let marks = same_marks(run, "netem", "InCEPkts");
    let (sent, received) = (run.row("netem", "va", "tx"), run.row("netem", "vb", "rx"));
    let lost = sent.segments - received.segments;
    // Up to 6.12 it counts what it marks among what it drops; 7.3 does not count it.
    let counted = if run.kernel == "7.3" { lost } else { marks + lost };
    assert_eq!(counted, run.queue("netem", "netem").drops, "{lost} lost, {sent:?} {received:?}");
}

#[track_caller]
pub(crate) fn sent_again(run: &Run) {
    for name in ["loss", "loss_pieces", "marked", "netem", "red"] {
        let row = run.row(name, "va", "tx");
        let Some(traced) = row.traced else { panic!("{name}: not traced:\n{}", run.output().stderr) };
        let sent: Sent = run.one(&format!("{name}.sent"));
        assert_eq!(
            (row.retransmit_segments, row.retransmit_bytes),
            (traced.data_segments, traced.bytes),
            "{name} {row:?}"
        );
        assert_eq!(row.retransmit_bytes, sent.bytes_retrans, "{name} {row:?}");
        // The kernel counts what it could not send too, and SYN and FIN alone.
        let failed = run.grown(name, "a", "TCPRetransFail");
        assert_eq!(run.grown(name, "a", "RetransSegs"), traced.segments + failed, "{name} {row:?}");
        assert!(traced.events > 0 || !name.starts_with("loss"), "{name}: nothing was lost: {row:?}");
        println!(
            "{name}: {} segments, {} bytes at {} times, failures {:?}",
            traced.segments, traced.bytes, traced.events, traced.failures
        );
    }
}

#[track_caller]
pub(crate) fn marked_again(run: &Run) {
    let (sent, received) = (run.row("marked", "va", "tx"), run.row("marked", "vb", "rx"));
    let witness: Witness = run.one("marked.witness");
    let arrived = received.marked.unwrap();
    assert_eq!((arrived.segments, arrived.bytes), (witness.marked, witness.marked_bytes), "{witness:?}");
    assert_eq!((witness.reserved, witness.wrong, witness.lost), (witness.marked, 0, 0), "{witness:?}");
    // Some of what was sent again was lost again.
    assert!((1..=sent.retransmit_segments).contains(&arrived.segments), "{sent:?} {received:?}");
    let page = run.output().file("metrics").unwrap();
    for (metric, expected) in [("bytes", sent.retransmit_bytes), ("segments", sent.retransmit_segments)] {
        let name = format!("fabricscope_netdev_marked_{metric}_total");
        let told = sum(&page, &name, &[("netdev", "va"), ("direction", "tx")]);
        assert_eq!(told, Some(expected as f64), "{metric}:\n{}", run.output().file("agent").unwrap());
    }
    // Nothing is marked where nobody asked for it.
    for name in ["loss", "loss_pieces"] {
        let witness: Witness = run.one(&format!("{name}.witness"));
        assert_eq!((witness.reserved, run.row(name, "vb", "rx").marked.unwrap().segments), (0, 0), "{name}");
    }
    println!("marked: {} sent, {} arrived", sent.retransmit_segments, arrived.segments);
}

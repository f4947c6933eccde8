//! The sampler on real kernels: what this host's kernel lacks, VLANs, tunnels, a lossy queue, soft-RoCE.

use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use tests::lab::{Lab, Output};
use tests::network;
use tests::workload::lines;

/// Two hosts in namespaces `a` and `b`; for each way of packing, one TCP connection through it, sampled at both ends of
/// the pair below (`va`, `vb`) and of what packs (`ta`, `tb`). Joining on receipt is off where the device could count
/// before it and the sampler after it.
const SCRIPT: &str = r#"out=/mnt/out tool=$out/NETWORK
for n in a b; do
    ip netns add $n
    ip netns exec $n sh -c 'for c in all default; do echo 1 > /proc/sys/net/ipv6/conf/$c/disable_ipv6; done'
    ip -n $n link set lo up
done
ip -n a link add va type veth peer name vb netns b
# Host, network, number of the host, device.
end() {
    ip -n $1 addr add $2.$3/24 dev $4; ip -n $1 link set $4 up
}
# Both ends of devices $1 and $2 know each other, so that nobody asks. A tunnel without Ethernet has nobody to know.
meet() {
    for end in "a $1 b $2 2" "b $2 a $1 1"; do
        set -- $end
        ip -n $1 neigh replace $net.$5 lladdr $(ip netns exec $3 cat /sys/class/net/$4/address) dev $2 2> /dev/null
    done
}
totals() { device=$1 host=$2; shift 2; ip netns exec $host fabricscope bursts totals --netdev $device -o json -- "$@"; }
# Waits until a server listens.
listens() { tries=0; until ip netns exec b ss -Hltn | grep -q :5001; do tries=$((tries + 1)); [ $tries -lt 100 ] || return 1; sleep 0.1; done; }
net=10.77.0
end a 10.77.0 1 va; end b 10.77.0 2 vb; meet va vb
# When the sender ends, its last acknowledgement is on its way: it has arrived when the other end has no socket any more.
cat > /run/send << END
ip netns exec a $tool send-tcp \$1 5001 3000000
tries=0
until [ -z "\$(ip netns exec b ss -Htn sport = :5001)" ]; do tries=\$((tries + 1)); [ \$tries -lt 300 ] || break; sleep 0.1; done
END
pack() {
    name=$1 to=$2
    ip netns exec b $tool serve-tcp $to 5001 1 > /dev/null & server=$!
    listens || { echo "no server for $name" >&2; return; }
    if [ $to = 10.77.0.2 ]; then
        totals va a ip netns exec b fabricscope bursts totals --netdev vb -o json -- bash /run/send $to
    else
        totals va a ip netns exec b fabricscope bursts totals --netdev vb -o json -- \
            ip netns exec a fabricscope bursts totals --netdev ta -o json -- \
            ip netns exec b fabricscope bursts totals --netdev tb -o json -- \
            bash /run/send $to
    fi > $out/$name.mixed 2>> $out/words
    grep '"netdev"' $out/$name.mixed > $out/$name.rows
    grep bytes_retrans $out/$name.mixed > $out/$name.sent
    wait $server
    # What closes the connection may be lost and come again, and is not of the next.
    tries=0; until [ -z "$(ip netns exec b ss -Htn state last-ack)" ]; do tries=$((tries + 1)); [ $tries -lt 300 ] || break; sleep 0.1; done
}
pack plain 10.77.0.2
vlan() { ip -n a link add link va name ta type vlan "$@"; ip -n b link add link vb name tb type vlan "$@"; }
tunnel() {
    kind=$1; shift
    ip -n a link add ta type $kind remote 10.77.0.2 "$@" $(local_of $kind 10.77.0.1)
    ip -n b link add tb type $kind remote 10.77.0.1 "$@" $(local_of $kind 10.77.0.2)
}
local_of() { case $1 in geneve) ;; *) echo local $2;; esac; }
through() {
    # What packs is told to leave room, or the first packets would be sent in two parts.
    ip -n a link set ta mtu 1400; ip -n b link set tb mtu 1400
    net=10.78.0; end a $net 1 ta; end b $net 2 tb; meet ta tb
    ip netns exec a $tool offload ta gro off; ip netns exec b $tool offload tb gro off
    pack $1 10.78.0.2
    ip -n a link del ta; ip -n b link del tb
}
vlan id 5; through vlan
tunnel ipip; through ipip
tunnel vxlan id 5 dstport 4789; through vxlan
tunnel geneve id 5; through geneve
tunnel gretap; through gretap
ip netns exec a tc qdisc add dev va root netem loss 10%; pack loss 10.77.0.2
ip netns exec a tc qdisc replace dev va root netem delay 2ms; pack delay 10.77.0.2
ip netns exec a tc qdisc del dev va root
ip netns exec a tc filter show dev va ingress > $out/left; ip netns exec a tc qdisc show dev va >> $out/left
fabricscope doctor --output json > $out/doctor
exit 0
"#;

/// One machine for each kernel.
pub(crate) struct Run {
    kernel: &'static str,
    output: OnceLock<Output>,
}

#[derive(Clone, Debug, Deserialize)]
struct Row {
    netdev: String,
    direction: String,
    attach: String,
    skbs: u64,
    skb_bytes: u64,
    segments: u64,
    wire_bytes: u64,
    retransmit_bytes: u64,
    unparsed: u64,
    no_ring: u64,
    device_packets: [u64; 2],
    device_bytes: [u64; 2],
}

#[derive(Debug, Deserialize)]
struct Sent {
    bytes_retrans: u64,
}

impl Run {
    pub(crate) const fn new(kernel: &'static str) -> Self {
        Self { kernel, output: OnceLock::new() }
    }

    fn output(&self) -> &Output {
        self.output.get_or_init(|| {
            let tool = network::tool().unwrap();
            let name = Path::new(&tool).file_name().and_then(|name| name.to_str()).unwrap().to_owned();
            let mut lab = Lab::new(self.kernel, "bursts");
            (lab.files, lab.rdma, lab.limit) = (vec![tool], false, Duration::from_secs(300));
            let output = lab.run(&SCRIPT.replace("NETWORK", &name)).unwrap();
            assert_eq!(output.status, 0, "{}", output.stderr);
            output
        })
    }

    fn lines<T: DeserializeOwned>(&self, name: &str) -> Vec<T> {
        lines(&self.output().file(name).unwrap()).unwrap()
    }

    /// A device's rows in one direction while `name` ran.
    #[track_caller]
    fn row(&self, name: &str, netdev: &str, direction: &str) -> Row {
        let rows: Vec<Row> = self.lines(&format!("{name}.rows"));
        let found = rows.iter().find(|row| row.netdev == netdev && row.direction == direction);
        assert!(found.is_some(), "{name}: no {netdev} {direction}:\n{}", self.output().stderr);
        found.unwrap().clone()
    }
}

/// Every way of packing, and the bytes that it adds to each packet on the wire of the devices below.
const WAYS: &[(&str, u64)] = &[
    // The tag.
    ("vlan", 4),
    // The device itself has no Ethernet header; below it are one and the outer IPv4 header.
    ("ipip", 34),
    // Ethernet, IPv4, UDP and the tunnel's own header, for VXLAN and Geneve alike.
    ("vxlan", 50),
    ("geneve", 50),
    // Ethernet, IPv4, GRE.
    ("gretap", 38),
];

#[track_caller]
pub(crate) fn conserved(run: &Run) {
    for name in ["plain", "delay"].into_iter().chain(WAYS.iter().map(|(name, _)| *name)) {
        for (device, direction) in [("va", "rx"), ("va", "tx"), ("vb", "rx"), ("vb", "tx")] {
            let row = run.row(name, device, direction);
            assert_eq!((row.unparsed, row.no_ring), (0, 0), "{name} {row:?}");
            let [least, most] = row.device_packets;
            assert!((least..=most).contains(&row.skbs), "{name} {row:?}");
            let [least, most] = row.device_bytes;
            assert!((least..=most).contains(&row.skb_bytes), "{name} {row:?}");
        }
        let ends = |from: (&str, &str), to: (&str, &str)| {
            let (from, to) = (run.row(name, from.0, from.1), run.row(name, to.0, to.1));
            assert_eq!((from.segments, from.wire_bytes), (to.segments, to.wire_bytes), "{name} {from:?} {to:?}");
        };
        ends(("va", "tx"), ("vb", "rx"));
        ends(("vb", "tx"), ("va", "rx"));
    }
}

#[track_caller]
pub(crate) fn packed(run: &Run) {
    for (name, added) in WAYS {
        for (above, below, direction) in
            [("ta", "va", "tx"), ("tb", "vb", "rx"), ("tb", "vb", "tx"), ("ta", "va", "rx")]
        {
            let (inner, outer) = (run.row(name, above, direction), run.row(name, below, direction));
            assert_eq!(inner.segments, outer.segments, "{name} {inner:?} {outer:?}");
            assert_eq!(inner.wire_bytes + added * inner.segments, outer.wire_bytes, "{name} {inner:?} {outer:?}");
            assert!(inner.segments > 10, "{name} {inner:?}");
        }
    }
}

#[track_caller]
pub(crate) fn sent_again(run: &Run) {
    let sent: Vec<Sent> = run.lines("loss.sent");
    let row = run.row("loss", "va", "tx");
    assert_eq!(row.retransmit_bytes, sent[0].bytes_retrans, "{row:?}");
    assert!(row.retransmit_bytes > 0, "nothing was lost: {row:?}");
}

#[track_caller]
pub(crate) fn means(run: &Run) {
    let row = run.row("plain", "va", "tx");
    // TCX came with 6.6.
    let expected = if run.kernel == "6.1" { "clsact" } else { "tcx" };
    assert!(row.attach.starts_with(expected), "{row:?}");
    let left = run.output().file("left").unwrap();
    assert!(!left.contains("fs_sampler") && !left.contains("clsact"), "{left}");
    // The doctor has tried it, on a device of its own.
    let doctor: serde_json::Value = serde_json::from_str(&run.output().file("doctor").unwrap()).unwrap();
    let features = doctor["features"].as_array().unwrap();
    let sampling = features.iter().find(|feature| feature["feature"] == "burst sampling").unwrap();
    let by = if expected == "tcx" { "by TCX links" } else { "by clsact filters (no TCX: this kernel has none)" };
    assert_eq!(sampling["state"], "yes", "{sampling}");
    assert!(sampling["detail"].as_str().unwrap().starts_with(by), "{sampling}");
}

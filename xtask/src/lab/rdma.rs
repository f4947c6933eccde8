//! Soft-RoCE that crosses a real wire: several network ends in one name space, each with its own device.
//!
//! Two ends of one soft-RoCE device, or two local addresses, would be short-cut inside the kernel. Policy routing that
//! puts the local table last for traffic between the ends sends it through the veth pairs instead: this works on every
//! kernel, while one name space per host does not.

use super::guest::RUN_FOLDER;

/// Bridges carry more, but rules grow with the square.
pub(super) const HOSTS_MAX: u8 = 16;
/// The file in the run's folder with the commands for `ip`.
pub(super) const IP_BATCH: &str = "ip";
/// All ends stand in this network; end i has the address .i (counted from 1).
const NETWORK: &str = "10.77.0";

/// One soft-RoCE device.
struct End {
    device: String,
    netdev: String,
    address: String,
    /// Its routing table and its place among the rules.
    number: u8,
}

/// The ends: `rxe0` and `rxe1` on one veth pair, or `rx1` to `rxN` behind a bridge.
fn ends(hosts: Option<u8>) -> Vec<End> {
    let end = |number: u8, device: String, netdev: String| End {
        device,
        netdev,
        address: format!("{NETWORK}.{number}"),
        number,
    };
    match hosts {
        None => (0..2).map(|i| end(i + 1, format!("rxe{i}"), format!("e{i}"))).collect(),
        Some(hosts) => (1..=hosts).map(|i| end(i, format!("rx{i}"), format!("e{i}"))).collect(),
    }
}

/// The commands for `ip -batch`: links, addresses, and the rules that keep traffic off the short cut.
pub(super) fn ip_batch(hosts: Option<u8>) -> String {
    let ends = ends(hosts);
    let mut lines = Vec::new();
    if hosts.is_some() {
        lines.push("link add br0 type bridge".to_owned());
        lines.push("link set br0 up".to_owned());
        for End { netdev, number, .. } in &ends {
            lines.push(format!("link add {netdev} type veth peer name p{number}"));
            lines.push(format!("link set p{number} master br0"));
            lines.push(format!("link set p{number} up"));
        }
    } else {
        lines.push("link add e0 type veth peer name e1".to_owned());
    }
    for End { netdev, address, number, .. } in &ends {
        lines.push(format!("addr add {address}/24 dev {netdev}"));
        lines.push(format!("link set {netdev} up"));
        lines.push(format!("route add {NETWORK}.0/24 dev {netdev} table {}", 100 + u16::from(*number)));
        lines.push(format!("rule add pref {} iif {netdev} lookup local", 10 + number));
    }
    for from in &ends {
        for to in ends.iter().filter(|to| to.number != from.number) {
            let table = 100 + u16::from(from.number);
            lines.push(format!("rule add pref 100 from {} to {} lookup {table}", from.address, to.address));
        }
    }
    lines.push("rule add pref 1000 lookup local".to_owned());
    lines.push("rule del pref 0".to_owned());
    lines.join("\n") + "\n"
}

/// The script that makes the devices and waits until each has its address as a RoCE v2 GID. All ends know each other:
/// when a queue pair is set up, the kernel asks for the other end's address for a second and refuses it then, whether
/// the question was lost or the machine stood still.
///
/// It leaves `FABRICSCOPE_LAB_RDMA` in the command's environment: `device:netdev:address:gid-index` for each device,
/// with blanks between.
pub(super) fn script(hosts: Option<u8>) -> String {
    let ends = ends(hosts);
    let links: String =
        ends.iter().map(|end| format!("rdma link add {} type rxe netdev {}\n", end.device, end.netdev)).collect();
    let list: Vec<_> = ends.iter().map(|end| format!("{}:{}:{}", end.device, end.netdev, end.address)).collect();
    format!(
        r#"modprobe rdma_rxe
modprobe rdma_ucm
# Asked for by name at run time on kernels that have it apart.
modprobe -q crc32_generic || true
cd /proc/sys/net/ipv4/conf
for which in all default; do
    echo 1 > $which/accept_local
    echo 0 > $which/rp_filter
    echo 1 > $which/arp_ignore
    echo 2 > $which/arp_announce
    echo 0 > /proc/sys/net/ipv6/conf/$which/accept_dad
done
ip -batch {RUN_FOLDER}/{IP_BATCH}
netdev() {{ netdev=${{1#*:}}; echo "${{netdev%:*}}"; }}
for from in {list}; do
    for to in {list}; do
        [ $from = $to ] ||
            echo "neigh replace ${{to##*:}} lladdr $(cat /sys/class/net/$(netdev $to)/address) dev $(netdev $from)"
    done
done | ip -batch -
{links}gid_index() {{
    for kind in /sys/class/infiniband/$1/ports/1/gid_attrs/types/*; do
        index=${{kind##*/}}
        [ "$index" -lt 16 ] || continue
        read -r gid < /sys/class/infiniband/$1/ports/1/gids/$index || continue
        case $gid in 0000:0000:0000:0000:0000:ffff:*) ;; *) continue ;; esac
        read -r name < $kind 2>/dev/null || continue
        if [ "$name" = "RoCE v2" ]; then echo $index; return; fi
    done
}}
all=
for end in {list}; do
    device=${{end%%:*}}
    tries=0
    until index=$(gid_index $device) && [ -n "$index" ] && grep -q ACTIVE /sys/class/infiniband/$device/ports/1/state
    do
        tries=$((tries + 1))
        if [ $tries -gt 200 ]; then echo "lab: $device does not become active" > /dev/console; exit 1; fi
        sleep 0.05
    done
    all="$all $end:$index"
done
echo "export FABRICSCOPE_LAB_RDMA='${{all# }}'" > /run/lab-rdma
chmod 666 /dev/infiniband/*
"#,
        list = list.join(" ")
    )
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn each_ordered_pair_has_its_rule() {
        for (hosts, ends, pairs) in [(None, 2, 2), (Some(4), 4, 12)] {
            let batch = ip_batch(hosts);
            assert_eq!(batch.lines().filter(|line| line.contains(" from ")).count(), pairs);
            assert_eq!(batch.lines().filter(|line| line.starts_with("addr add")).count(), ends);
            assert!(batch.ends_with("rule add pref 1000 lookup local\nrule del pref 0\n"));
        }
    }

    #[test]
    fn devices_have_the_promised_names() {
        let names = |hosts| ends(hosts).into_iter().map(|end| end.device).collect::<Vec<_>>();
        assert_eq!(names(None), ["rxe0", "rxe1"]);
        assert_eq!(names(Some(3)), ["rx1", "rx2", "rx3"]);
    }

    #[test]
    fn the_script_is_valid_shell() {
        assert!(Command::new("sh").args(["-n", "-c", &script(Some(3))]).status().unwrap().success());
    }
}

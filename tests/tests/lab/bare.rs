//! Modules without type information, as vendors ship them: verb, error, device and GIDs are right all the same.

use std::time::Duration;

use serde::Deserialize;
use tests::scenario::{Run, Scenario};

use crate::{calls, notices, requests};

/// The modules are loaded from copies whose `.BTF` is gone. `modinfo` finds them, packed or not.
pub(crate) const SCENARIO: Scenario = Scenario {
    name: "bare",
    script: r#"strip_types() {
    python3 -c 'import lzma,sys; d=open(sys.argv[1],"rb").read(); d=lzma.decompress(d) if sys.argv[1].endswith(".xz") else d
open(sys.argv[2],"wb").write(d)' "$1" /run/$2.ko
    objcopy --remove-section=.BTF --remove-section=.BTF.base /run/$2.ko
}
# With everything that stands on it.
unload() { for holder in $(ls /sys/module/$1/holders 2> /dev/null); do unload $holder; done; [ ! -d /sys/module/$1 ] || rmmod $1; }
echo $gid > $out/gid
fabricscope hooks --json > $out/typed.hooks
# Newer kernels have part of it in further modules.
without="$(modinfo -F depends ib_uverbs | tr , ' ') ib_uverbs"
echo $without mlx5_core mlx5_ib > $out/without
for module in $without; do strip_types $(modinfo -n $module) $module; done
for module in mlx5_core mlx5_ib; do strip_types $out/$module.ko $module; done
remove_links
unload ib_core
for module in $without; do
    for needed in $(modinfo -F depends $module | tr , ' '); do
        [ -d /sys/module/$needed ] || [ -e /run/$needed.ko ] || modprobe $needed
    done
    insmod /run/$module.ko || exit 1
done
modprobe rdma_rxe && modprobe rdma_ucm || exit 1
add_links
insmod /run/mlx5_core.ko && insmod /run/mlx5_ib.ko || exit 1
ls /sys/kernel/btf > $out/btf
fabricscope hooks --json > $out/bare.hooks
trace truth -- bash -c '$workload truth $device $gid > $out/truth.rows'
trace probes --probes -- bash -c '$workload probe $device > $out/probes.rows'
for key in opcode=0x200 status=0x05 syndrome=0x1c4f3a; do echo ${key#*=} > /sys/module/mlx5_core/parameters/${key%=*}; done
trace mkey -- bash -c '$workload few mlx5_0 > $out/mkey.rows'
exit 0
"#,
    modules: true,
    processors: 1,
    limit: Duration::from_secs(300),
};

#[derive(Debug, Deserialize)]
struct Hook {
    hook: String,
    state: String,
    attach: Option<String>,
    module: Option<String>,
    reason: Option<String>,
}

#[track_caller]
pub(crate) fn means(run: &Run) {
    let [btf, without] = ["btf", "without"].map(|name| run.output().unwrap().file(name).unwrap());
    let without: Vec<_> = without.split_whitespace().collect();
    assert!(["ib_core", "ib_uverbs", "mlx5_ib"].iter().all(|name| without.contains(name)), "{without:?}");
    assert!(btf.lines().all(|name| !without.contains(&name)), "{btf}");
    let [typed, bare] = ["typed.hooks", "bare.hooks"].map(|name| run.lines::<Hook>(name).unwrap());
    let mut by_kprobe = 0;
    for hook in bare.iter().filter(|hook| hook.module.as_deref().is_some_and(|name| without.contains(&name))) {
        assert_eq!((&*hook.state, hook.attach.as_deref()), ("attached", Some("kprobe")), "{hook:?}");
        let before = typed.iter().find(|other| other.hook == hook.hook).unwrap();
        // What had another reason before has it still.
        if before.attach.as_deref() == Some("fexit") {
            assert!(hook.reason.as_deref().is_some_and(|why| why.contains("no BTF")), "{hook:?}");
        }
        by_kprobe += 1;
    }
    assert!(by_kprobe > 10, "{bare:?}");
    // Nothing is lost by it but the means.
    let attached =
        |hooks: &[Hook]| hooks.iter().filter(|h| h.state == "attached").map(|h| h.hook.clone()).collect::<Vec<_>>();
    let missing: Vec<_> = attached(&typed).into_iter().filter(|name| !attached(&bare).contains(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[track_caller]
pub(crate) fn failures(run: &Run) {
    calls::agree(run, "truth", false);
    requests::memory(run, "truth");
    requests::queue_pairs(run, "truth");
    requests::completion_queues(run, "truth");
    notices::refusal(run, "mkey", "reg_mr", "EINVAL", ["0x0200", "0x05", "0x001c4f3a"]);
}

#[track_caller]
pub(crate) fn probes(run: &Run) {
    let traced = run.traced("probes").unwrap();
    // One by opening the device, three by the workload.
    assert_eq!(traced.events.len(), 4, "{}", traced.show());
    assert!(traced.events.iter().all(|event| event.probe && event.device.as_deref() == Some("rxe0")));
}

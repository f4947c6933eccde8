//! The script of the comparison, run by bash inside the lab or on this host; what it finds goes into files.

use std::fmt::Write as _;

use super::runs::{BANDWIDTH, Bandwidth, CALLS, PROGRAMS, Tracer};

/// Set-up and the helpers; `$out` is the folder for results, `$sources` that of the workload's source.
///
/// Rows go to `results`, one JSON object a line; what tracers print goes to files of their names.
const PRELUDE: &str = r#"set -u
die() { echo "bench: $*" >&2; exit 1; }
for program in bpftrace bpftool fabricscope gcc taskset ib_write_bw jq; do
    command -v $program > /dev/null || die "$program is not installed"
done
bpftool prog show | grep -q ' name fs_' && die "fabricscope's programs are loaded: stop the agent, it is in every run"
: > $out/results
row() { echo "$1" >> $out/results; }
# Compiled once for each state of its source.
if [ ! -x $out/workload ] || [ -n "$(find $sources -newer $out/workload -name '*.[ch]')" ]; then
    gcc -std=gnu11 -O2 -pthread -o $out/workload $sources/*.c -libverbs || die "the workload cannot be compiled"
fi
work=$(mktemp -d)
trap 'rm -rf $work' EXIT
cp $out/workload $work/workload
export BPFTRACE_MAX_BPF_PROGS=8192 BPFTRACE_MAX_PROBES=8192
cpu=$(($(nproc) - 1))

# What our own table attaches to, as LAYER:HOOK MODULE:FUNCTION, is what the other tool gets too.
fabricscope hooks --json > $out/hooks || die "fabricscope attaches nothing here"
jq -r 'select(.subject == "verbs" and .module != null) | "\(.layer):\(.hook) \(.module):\(.function)"' \
    $out/hooks > $work/hooks
[ -s $work/hooks ] || die "no hook is attached: is ib_uverbs loaded?"
boundary=$(grep '^syscall:' $work/hooks | grep -v ':uverbs_cmd_verbs ' | sed 's/.* //')
inner=$(grep -E '^(core|driver):|:uverbs_cmd_verbs ' $work/hooks | sed 's/.* //')
body='{ @calls[@verb[tid], (int32)retval] = count(); @ns[@verb[tid]] = hist(nsecs - @start[tid]);
    delete(@start[tid]); delete(@verb[tid]); }'
{
    for f in $boundary; do echo "kprobe:$f { @start[tid] = nsecs; }"; done
    echo 'kprobe:ib_uverbs:ib_uverbs_cmd_verbs { @verb[tid] = *(uint32 *)(arg1 + 2); }'
    for f in $inner; do echo "kretprobe:$f /(int32)retval < 0/ { @failed[probe, (int32)retval] = count(); }"; done
    for f in $boundary; do echo "kretprobe:$f /@start[tid]/ $body"; done
} > $out/kprobe.bt
# It cannot hold a pointer that fexit gives it against a number, nor take functions with more than six parameters: it
# does without what it refuses.
sed -e 's/^kprobe:/fentry:/; s/^kretprobe:/fexit:/' \
    -e 's/\*(uint32 \*)(arg1 + 2)/args.hdr->object_id | (args.hdr->method_id << 16)/' $out/kprobe.bt > $out/fexit.bt
refused=
for try in {1..20}; do
    { cat $out/fexit.bt; echo 'BEGIN { exit(); }'; } > $work/try.bt
    said=$(bpftrace $work/try.bt 2>&1) && break
    for f in $inner; do
        case $said in *"fexit_${f/:/_}_"* | *":${f#*:}: functions with more than"*) ;; *) continue ;; esac
        sed -i "/^fexit:$f /d" $out/fexit.bt; refused="$refused ${f#*:}"
    done
done
echo "bench: bpftrace's fexit is refused by:$refused" >&2
# What the kernel takes for calling a program at all.
sed -n 's/^\(f[a-z]*:[^ ]*\) .*/\1 { }/p' $out/fexit.bt > $out/empty.bt
echo 'kprobe:ib_uverbs:*, kprobe:ib_core:*, kprobe:rdma_rxe:* { @ = count(); }' > $out/every.bt

# calls RUN ROUND: timed calls, in batches short enough that a busy host leaves some of them alone.
cat > $work/calls << END
#!/bin/bash
taskset -c $cpu $work/workload mix $device $per_batch $batches |
    sed 's/^{"mode":"mix"/{"calls":"'\$1'","round":'\$2'/' >> $out/results
END
# programs RUN CALLS...: the kernel's account of each program, taken while it is still attached.
cat > $work/programs << END
#!/bin/bash
name=\$1; shift
"\$@"
bpftool prog show -j > $out/programs.\$name
END
# bandwidth RUN ROUND: transfers between two devices, and the processors' busy ticks meanwhile.
cat > $work/bandwidth << END
#!/bin/bash
busy() { awk '/^cpu / { print \$2 + \$3 + \$4 + \$7 + \$8 }' /proc/stat; }
for again in 1 2 3; do
    ib_write_bw -d $peer -x $peer_gid -s 65536 -n $transfers -u 22 -F > $work/server 2>&1 & server=\$!
    for try in {1..400}; do ss -Htln 'sport = :18515' | grep -q . && break; sleep 0.05; done
    before=\$(busy) start=\$(cut -d' ' -f1 /proc/uptime)
    ib_write_bw -d $device -x $gid -s 65536 -n $transfers -u 22 -F 127.0.0.1 > $out/client.\$1 2>&1 ||
        { kill \$server; echo "bench: ib_write_bw failed under \$1" >&2; }
    after=\$(busy) end=\$(cut -d' ' -f1 /proc/uptime)
    wait \$server
    awk -v run=\$1 -v round=\$2 -v busy=\$((after - before)) -v start=\$start -v end=\$end \
        '\$1 == 65536 { printf "{\"bandwidth\":\"%s\",\"round\":%d,\"mib_per_s\":%s,\"busy\":%d,\"seconds\":%.2f}\n",
        run, round, \$4, busy, end - start }' $out/client.\$1 >> $out/results
done
END
chmod +x $work/*
clock() { row "{\"clock\":\"$1\",\"real_s\":$(cat /sys/class/rtc/rtc0/since_epoch || echo null),\"own_s\":$(cut -d' ' -f1 /proc/uptime)}"; }
row "{\"kernel\":\"$(uname -r)\",\"preemption\":\"$(sed 's/.*(\(.*\)).*/\1/' /sys/kernel/debug/sched/preempt)\"}"
clock start
"#;

/// The whole script: every run once a round, each beside one without tracing.
pub(super) fn script(settings: &str, rounds: u32, bandwidth_rounds: u32) -> String {
    let mut text = format!("{settings}\n{PRELUDE}");
    let transfers = BANDWIDTH.iter().filter(|transfer| CALLS.iter().all(|run| run.name != transfer.name));
    for (name, tracer) in
        CALLS.iter().map(|run| (run.name, run.tracer)).chain(transfers.map(|one| (one.name, one.tracer)))
    {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{}", function(name, tracer));
    }
    for round in 0..rounds {
        for run in CALLS.iter().filter(|run| run.tracer != Tracer::None) {
            let _ = writeln!(text, "echo 'bench: round {round}, {}' >&2", run.name);
            let _ = writeln!(text, "run_none $work/calls none-{0} {round}\nrun_{0} $work/calls {0} {round}", run.name);
        }
    }
    text.push_str("sysctl -qw kernel.bpf_stats_enabled=1\n");
    for name in PROGRAMS {
        let _ = writeln!(text, "run_{name} $work/programs {name} $work/calls programs-{name} 0");
    }
    text.push_str("sysctl -qw kernel.bpf_stats_enabled=0\n");
    for round in 0..bandwidth_rounds {
        for Bandwidth { name, count, .. } in BANDWIDTH {
            let _ = writeln!(text, "echo 'bench: transfer {round}, {name}' >&2");
            let _ = writeln!(text, "run_{name} $work/bandwidth {name} {round}\n{}", events(name, count));
        }
    }
    text.push_str("clock end\n");
    text
}

/// The shell function that runs its arguments under a tracer.
fn function(name: &str, tracer: Tracer) -> String {
    let body = match tracer {
        Tracer::None => r#""$@""#.to_owned(),
        Tracer::Ours(flags) => {
            format!(r#"fabricscope trace verbs -o json {flags} -- "$@" > $out/events.{name} 2> $out/words.{name}"#)
        }
        Tracer::Bpftrace(file) => {
            format!(r#"bpftrace -o $out/events.{name} -c "/bin/bash $*" $out/{file} 2> $out/words.{name}"#)
        }
    };
    format!("run_{name}() {{ {body} || die \"{name} failed: $(tail -n 3 $out/words.{name} 2> /dev/null)\"; }}")
}

/// How many events reached user space, or were counted.
fn events(name: &str, count: &str) -> String {
    if count.is_empty() {
        return String::new();
    }
    format!(r#"row "{{\"events\":\"{name}\",\"count\":$({count} $out/events.{name})}}""#)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn the_script_is_valid_shell() {
        let text = script("out=/o", 2, 1);
        assert!(Command::new("bash").args(["-n", "-c", &text]).status().unwrap().success());
    }

    #[test]
    fn every_run_stands_beside_one_without_tracing_in_every_round() {
        let text = script("", 3, 0);
        for run in CALLS.iter().filter(|run| run.tracer != Tracer::None) {
            for start in ["run_none $work/calls none-", &format!("run_{0} $work/calls ", run.name)] {
                let wanted = |line: &&str| line.starts_with(start) && line.contains(run.name);
                assert!(text.lines().filter(wanted).count() >= 3, "{}", run.name);
            }
        }
    }
}

//! What is left in the kernel when the agent is gone: nothing after its end, nothing that runs after a kill.

use std::time::Duration;

use tests::scenario::{Run, Scenario};

/// The programs are named, not numbered: bpftool brings one of its own each time.
pub(crate) const SCENARIO: Scenario = Scenario {
    name: "leftovers",
    script: r#"programs() { bpftool -j prog list | jq -r '.[] | .type + " " + (.name // "")' | sort; }
probes() { sort /sys/kernel/tracing/kprobe_events /sys/kernel/tracing/uprobe_events; }
pins() { find /sys/fs/bpf | sort; }
cgroups() { find /sys/fs/cgroup -type d | sort; }
note() { for kind in programs probes pins cgroups; do $kind > $out/$1.$kind; done; }
# Other people's, one of them with a name that begins as ours do.
echo 'p:kprobes/fabricscope_return vfs_read' >> /sys/kernel/tracing/kprobe_events
echo 'p:fabricscope_tests/theirs vfs_write' >> /sys/kernel/tracing/kprobe_events
mkdir /sys/fs/cgroup/fabricscope-trace-tests
note before
trace ended -- sh -c "$workload storm $device 1 10 > /dev/null; bpftool -j prog list | jq length > $out/meanwhile"
note ended
few=$(programs | wc -l)
kill_one() {
    fabricscope trace verbs -o json -- sleep 60 > /dev/null 2> $out/killed.words & agent=$!
    until_true '[ $(programs | wc -l) -gt $few ] && pgrep -P $agent -x sleep > /dev/null' || exit 1
    sleeper=$(pgrep -P $agent -x sleep)
    kill -9 $agent
    wait $agent
    kill $sleeper
    # The kernel takes programs down after a grace period.
    until_true '[ $(programs | wc -l) -eq $few ]'
}
kill_one
note killed
cat /sys/kernel/tracing/events/fabricscope_[0-9]*/*/enable > $out/killed.enabled 2> /dev/null
trace next -- true
note next
kill_one
probes > $out/again.probes
cgroups > $out/again.cgroups
fabricscope halt > $out/halt.words 2>&1
echo $? > $out/halt.status
note halted
exit 0
"#,
    modules: false,
    processors: 1,
    limit: Duration::from_secs(300),
};

#[track_caller]
fn same(run: &Run, when: &str, kinds: &[&str]) {
    let output = run.output().unwrap();
    for kind in kinds {
        let [before, after] = ["before", when].map(|when| output.file(&format!("{when}.{kind}")).unwrap());
        assert_eq!(before, after, "{kind}, {when}");
    }
}

#[track_caller]
pub(crate) fn ended(run: &Run) {
    let output = run.output().unwrap();
    let [before, meanwhile] = ["before.programs", "meanwhile"].map(|name| output.file(name).unwrap());
    assert!(meanwhile.trim().parse::<usize>().unwrap() > before.lines().count(), "no program ran");
    same(run, "ended", &["programs", "probes", "pins", "cgroups"]);
}

#[track_caller]
pub(crate) fn killed(run: &Run) {
    same(run, "killed", &["programs"]);
    let [probes, enabled] = ["killed.probes", "killed.enabled"].map(|name| run.output().unwrap().file(name).unwrap());
    // What there is to be removed, so that the test is one of something.
    assert!(probes.lines().any(|line| line.contains(":fabricscope_") && !line.contains("theirs")), "{probes}");
    assert!(enabled.lines().count() > 0, "no event is left");
    assert!(enabled.lines().all(|state| state == "0"), "events left enabled: {enabled}");
    same(run, "next", &["programs", "probes", "pins", "cgroups"]);
}

/// Without an agent, and without starting one.
#[track_caller]
pub(crate) fn halted(run: &Run) {
    let output = run.output().unwrap();
    let [before, killed, words] =
        ["before.probes", "again.probes", "halt.words"].map(|name| output.file(name).unwrap());
    let cgroups = output.file("again.cgroups").unwrap();
    let left = |line: &&str| line.contains("/fabricscope-trace-") && !line.ends_with("-tests");
    assert_eq!(cgroups.lines().filter(left).count(), 1, "{cgroups}");
    assert!(words.contains("1 cgroups of dead sessions removed"), "{words}");
    let left = killed.lines().count() - before.lines().count();
    assert!(left > 0, "{killed}");
    assert!(words.starts_with(&format!("{left} kprobe events")), "{left}: {words}");
    assert_eq!(output.file("halt.status").unwrap().trim(), "0", "{words}");
    same(run, "halted", &["programs", "probes", "pins", "cgroups"]);
}

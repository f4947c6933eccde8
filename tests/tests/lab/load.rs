//! Many failing calls at once, and many that sleep: every one is counted, each that is shown names its function, and
//! what the ring drops is counted too.

use std::time::Duration;

use tests::event::summary;
use tests::facts::{FAILURES, LAYERS, expected};
use tests::scenario::{Run, Scenario};
use tests::workload::Gang;

/// At least 200,000 calls from 16 threads on two processors. The events are only counted, by verb, error, layer and
/// function: as text they are 100 MB.
pub(crate) const SCENARIO: Scenario = Scenario {
    name: "load",
    script: r#"fabricscope trace verbs -o json -- sh -c "$workload storm $device 16 13000 > $out/storm.gang" \
    2> $out/storm.words |
    sed -n 's/.*"verb":"\([^"]*\)".*"errno":"\([^"]*\)".*"layer":"\([^"]*\)","function":"\([^"]*\)","chain".*/\1 \2 \3 \4/p' |
    sort | uniq -c > $out/storm.answers
trace block -- sh -c "$workload block $device $gid 32 2 > $out/block.gang"
"#,
    modules: false,
    processors: 2,
    limit: Duration::from_secs(420),
};

/// A modify_qp to a dead neighbour takes a second; the least that counts as having slept.
const SLEPT_NS: u64 = 800_000_000;

#[track_caller]
fn gang(run: &Run, name: &str, calls: u64, errno: &str) -> Gang {
    let mut gangs: Vec<Gang> = run.lines(&format!("{name}.gang")).unwrap();
    let gang = gangs.pop().unwrap();
    assert_eq!((gang.calls, gang.failed, gang.other, &*gang.errno), (calls, calls, 0, errno));
    assert!(gangs.is_empty());
    gang
}

/// The workload alone, small.
#[track_caller]
pub(crate) fn facts(run: &Run) {
    gang(run, "storm", 1_600, "EINVAL");
    let block = gang(run, "block", 32, "ETIMEDOUT");
    assert!(block.shortest_ns > SLEPT_NS, "{block:?}");
}

/// A call's verb, error, layers and function, as the table of facts has them.
fn known(run: &Run, recipe: &str) -> (String, String, Vec<String>, String) {
    let table = expected(FAILURES, LAYERS, run.kernel()).unwrap();
    let call = table.into_iter().find(|call| call.recipe == recipe).unwrap();
    let place = call.innermost.unwrap();
    (call.verb, call.errno, place.layers, place.function)
}

/// Each event of the storm has the answer of the call that made it; says how many there were.
#[track_caller]
fn shown_alike(run: &Run) -> u64 {
    let text = run.output().unwrap().file("storm.answers").unwrap();
    let known = known(run, "reg_mr(len=0)");
    let mut received = 0;
    for line in text.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        let [count, verb, errno, layer, function] = <[&str; 5]>::try_from(words).unwrap();
        let seen = (verb.to_owned(), errno.to_owned(), vec![layer.to_owned()], function.to_owned());
        assert_eq!(seen, known, "{text}");
        received += count.parse::<u64>().unwrap();
    }
    received
}

#[track_caller]
pub(crate) fn storm(run: &Run) {
    let gang = gang(run, "storm", 208_000, "EINVAL");
    let output = run.output().unwrap();
    let words = output.file("storm.words").unwrap();
    let numbers = summary(&words).unwrap();
    let received = shown_alike(run);
    assert_eq!(numbers.failures, gang.failed, "missed at the system call:\n{words}");
    assert_eq!(received + numbers.lost, gang.failed, "received and lost:\n{words}");
}

#[track_caller]
pub(crate) fn block(run: &Run) {
    let gang = gang(run, "block", 64, "ETIMEDOUT");
    let traced = run.traced("block").unwrap();
    let slept = traced.events.iter().filter(|event| {
        (&*event.verb, event.errno.as_deref()) == ("modify_qp", Some("ETIMEDOUT"))
            && event.duration_ns.is_some_and(|took| (SLEPT_NS..=gang.longest_ns).contains(&took))
    });
    assert_eq!(slept.count(), 64, "{}", traced.show());
    let (_, _, layers, function) = known(run, "modify_qp(RTR dead neighbour)");
    for event in &traced.events {
        let answer = (event.layer.as_ref().is_some_and(|layer| layers.contains(layer)), event.function.as_deref());
        assert_eq!(answer, (true, Some(&*function)), "{event:?}");
    }
    let numbers = traced.summary().unwrap();
    assert_eq!((numbers.failures, numbers.lost), (64, 0), "{}", traced.show());
}

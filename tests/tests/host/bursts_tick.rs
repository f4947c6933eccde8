//! The agent's burst sampler with a timer of the kernel that tells buckets apart, in place of the clock.

use tests::metrics::sum;
use tests::network::Pair;

use crate::program::{is_root, until};
use crate::sampling::{Agent, send, sent};

const TICKS: &str = "fabricscope_burst_ticks_total";
const MISSED: &str = "fabricscope_burst_ticks_missed_total";

#[test]
fn what_a_device_sends_is_counted_and_kept_by_a_tick_which_tells_how_it_fares() {
    if !is_root() {
        return;
    }
    let pair = Pair::new(false).unwrap();
    let before = sent(&pair);
    let agent = Agent::start(&pair, "clock = 'tick'");
    (0..5).for_each(|_| send(&pair, 200));
    let after = sent(&pair);
    let bytes = after.0 - before.0;
    until("all is counted", || (agent.value("fabricscope_netdev_bytes_total", "tx") >= bytes).then_some(()));
    assert_eq!(agent.value("fabricscope_netdev_bytes_total", "tx"), bytes, "the device's own counter");
    let kept = || agent.try_last().ok().and_then(|shown| Some((shown["tx"]["bytes"].as_f64()?, shown)));
    let (volume, shown) = until("all is kept", || kept().filter(|(volume, _)| agent.lost() > 0.0 || *volume >= bytes));
    // A bucket of more than 80 ms, if this host is so busy, is lost.
    assert!(volume == bytes || agent.lost() > 0.0 && volume < bytes, "{volume} of {bytes}: {shown}");
    let ticks = || sum(&agent.metrics(), TICKS, &[]).unwrap_or_default();
    let first = ticks();
    until("more ticks are told", || (ticks() > first).then_some(()));
    assert!(sum(&agent.metrics(), MISSED, &[]).is_some());
    agent.end();
    // By default there is none.
    let agent = Agent::start(&pair, "");
    until("programs have run", || {
        sum(&agent.metrics(), "fabricscope_burst_drains_total", &[]).filter(|drains| *drains > 20.0)
    });
    assert_eq!((sum(&agent.metrics(), TICKS, &[]), sum(&agent.metrics(), MISSED, &[])), (None, None));
    agent.end();
}

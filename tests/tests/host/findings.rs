//! What the running agent says of its counters, from a tree that stands for a host and changes under it.

use std::fs;
use std::os::unix::fs::FileExt as _;

use serde_json::Value;
use tests::fixture::Fixture;
use tests::metrics::sum;

use crate::daemon::{Agent, promtool_takes};
use crate::program::{Scratch, until};

const TREE: &str = "driver mlx5_0 mlx5_core
counters mlx5_0/1 link_downed=0 port_xmit_packets=8 port_rcv_packets=7
hw mlx5_0/1 packet_seq_err=0 local_ack_timeout_err=0
driver mlx5_1 mlx5_core
counters mlx5_1/1 link_downed=0
";

/// The changes of a finding of a device in the event log, as state before and after.
fn changes(agent: &Agent, finding: &str, device: &str) -> Vec<(Option<String>, String)> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let lines = agent.events().into_iter();
    lines
        .filter(|line| line["kind"] == "finding" && line["finding"] == finding && line["device"] == device)
        .map(|line| (text(&line["was"]), text(&line["state"]).unwrap()))
        .collect()
}

#[test]
fn a_link_that_flaps_fires_and_another_one_does_not() {
    let tree = Scratch::new();
    Fixture::parse("flap", TREE).unwrap().write(tree.path()).unwrap();
    let sysfs = tree.path().display();
    let Some(agent) = Agent::start_with(&format!("host.path.sysfs = '{sysfs}'\ncounters.every = '1s'\n")) else {
        return;
    };
    let finding =
        |page: &str, device| sum(page, "fabricscope_finding", &[("device", device), ("finding", "link_flap")]);
    let downs = |page: &str| sum(page, "fabricscope_rdma_link_down_events_total", &[("device", "mlx5_0")]);
    let page =
        |what, ready: &dyn Fn(&str) -> bool| until(what, || Some(agent.get("/metrics").1).filter(|page| ready(page)));
    let quiet = page("the links are looked at", &|page| finding(page, "mlx5_0").is_some());
    assert_eq!((finding(&quiet, "mlx5_0"), finding(&quiet, "mlx5_1")), (Some(0.0), Some(0.0)), "{quiet}");
    // What has no counters here is not looked at.
    assert_eq!(sum(&quiet, "fabricscope_finding", &[("finding", "storm")]), None, "{quiet}");
    let counter = tree.path().join("class/infiniband/mlx5_0/ports/1/counters/link_downed");
    for count in 1..=3u32 {
        // Never empty in between: the agent keeps it open.
        let file = fs::File::options().write(true).open(&counter).unwrap();
        file.write_all_at(format!("{count}\n").as_bytes(), 0).unwrap();
        let seen = page("the change is read", &|page| downs(page) == Some(f64::from(count)));
        assert!(count == 3 || finding(&seen, "mlx5_0") == Some(0.0), "after {count}: {seen}");
    }
    let fires = page("it fires", &|page| finding(page, "mlx5_0") == Some(1.0));
    assert_eq!(finding(&fires, "mlx5_1"), Some(0.0), "{fires}");
    assert_eq!(sum(&fires, "fabricscope_findings_firing", &[("finding", "link_flap")]), Some(1.0), "{fires}");
    promtool_takes(&fires, &agent.scratch);
    until("it is logged", || (!changes(&agent, "link_flap", "mlx5_0").is_empty()).then_some(()));
    assert_eq!(changes(&agent, "link_flap", "mlx5_0"), [(Some("quiet".to_owned()), "firing".to_owned())]);
    assert_eq!(changes(&agent, "link_flap", "mlx5_1"), []);
    let line = agent.events().into_iter().find(|line| line["kind"] == "finding").unwrap();
    assert_eq!(
        line["evidence"][0]["measures"],
        serde_json::json!([{"name": "link_downs", "value": 3, "unit": "events", "counters": ["rdma_link_down_events"]}])
    );
    let status = agent.status().unwrap();
    assert_eq!(status["agent"]["findings"][0]["finding"], "link_flap", "{status:#}");
    assert_eq!(status["agent"]["findings"][0]["device"], "mlx5_0", "{status:#}");
    let screen = agent.screen();
    assert!(screen.contains("mlx5_0 port 1: link_flap: the link went down 3 times, and is not well yet"), "{screen}");
    // A device that goes takes its findings with it.
    fs::remove_dir_all(tree.path().join("class/infiniband/mlx5_0")).unwrap();
    page("it is gone", &|page| finding(page, "mlx5_0").is_none() && finding(page, "mlx5_1") == Some(0.0));
    until("its end is logged", || (changes(&agent, "link_flap", "mlx5_0").len() > 1).then_some(()));
    assert_eq!(changes(&agent, "link_flap", "mlx5_0")[1], (Some("firing".to_owned()), "gone".to_owned()));
}

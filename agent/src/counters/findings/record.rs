//! A finding as JSON, for the log and for `fabricscope counters`. What is not known is absent.

use std::time::SystemTime;

use analysis::counter_series::Lane;
use analysis::evidence::{Evidence, Measure, Number};
use analysis::port::State;
use analysis::series::UtcNs;
use analysis::verdict::Verdict;
use serde::Serialize;

use super::board::Change;
use super::{Judged, Rows};
use crate::counters::readout::Kind;
use crate::verbs::json::{Origin, time_text};

/// What one detector says of one port or device.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize)]
pub(crate) struct Record<'a> {
    detector: &'static str,
    #[serde(flatten)]
    about: About<'a>,
    verdict: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    evidence: Vec<EvidenceRecord>,
    why: Option<String>,
}

#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize)]
struct About<'a> {
    kind: &'static str,
    device: &'a str,
    port: Option<u32>,
    netdev: Option<&'a str>,
    priority: Option<u8>,
    object: Option<&'a str>,
}

#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize)]
struct EvidenceRecord {
    text: String,
    start: Option<String>,
    end: Option<String>,
    seconds: Option<f64>,
    /// It had not ended with the last reading.
    ongoing: bool,
    measures: Vec<MeasureRecord>,
}

#[derive(Debug, Serialize)]
struct MeasureRecord {
    name: &'static str,
    value: Value,
    unit: &'static str,
    /// By their names in the catalogue.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    counters: Vec<&'static str>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Value {
    Whole(u64),
    Real(f64),
}

impl<'a> About<'a> {
    fn of(judged: &'a Judged) -> Self {
        Self {
            kind: match judged.about.place.kind {
                Kind::Rdma => "rdma",
                Kind::Netdev => "netdev",
            },
            device: &judged.about.place.device,
            port: judged.about.place.port,
            netdev: judged.about.netdev.as_deref(),
            priority: priority(judged.finding.lane),
            object: judged.about.object.as_deref(),
        }
    }
}

/// The priority of a lane that is one.
pub(crate) const fn priority(lane: Option<Lane>) -> Option<u8> {
    match lane {
        Some(Lane::Priority(priority)) => Some(priority),
        Some(Lane::Port) | None => None,
    }
}

impl EvidenceRecord {
    fn of(evidence: &Evidence, rows: &Rows) -> Self {
        let span = evidence.episode().map(|episode| episode.span);
        Self {
            text: evidence.to_string(),
            start: span.and_then(|span| utc_text(span.start)),
            end: span.and_then(|span| utc_text(span.end)),
            seconds: evidence.episode().map(|episode| episode.length().seconds()),
            ongoing: evidence.is_ongoing(),
            measures: evidence.measures().iter().map(|measure| MeasureRecord::of(measure, rows)).collect(),
        }
    }
}

impl MeasureRecord {
    fn of(measure: &Measure, rows: &Rows) -> Self {
        let named = measure.counters.iter().filter_map(|counter| rows.get(counter));
        Self {
            name: measure.name,
            value: match measure.value {
                Number::Whole(value) => Value::Whole(value),
                Number::Real(value) => Value::Real(value),
            },
            unit: measure.unit,
            counters: named.flatten().copied().collect(),
        }
    }
}

impl<'a> Record<'a> {
    /// The answer, whatever it is.
    pub(crate) fn of(judged: &'a Judged) -> Self {
        let (evidence, why) = match &judged.finding.verdict {
            Verdict::Quiet => (Vec::new(), None),
            Verdict::Firing(found) => (records(found.iter(), judged), None),
            Verdict::CannotTell(why) => (Vec::new(), Some(why.to_string())),
        };
        let (detector, verdict) = (judged.finding.detector, judged.finding.verdict.name());
        Self { detector, about: About::of(judged), verdict, evidence, why }
    }
}

/// A line of the log: a finding that stands differently now.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
struct ChangeLine<'a> {
    kind: &'static str,
    time: Option<String>,
    host: Option<&'a str>,
    boot_id: Option<&'a str>,
    finding: &'static str,
    #[serde(flatten)]
    about: NoKind<'a>,
    /// `firing`, `quiet`, `cannot_tell`, or `gone` for what is no longer looked at.
    state: &'static str,
    was: Option<&'static str>,
    why: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    evidence: Vec<EvidenceRecord>,
}

/// As every line of the log names it: `device` is an RDMA device, `netdev` a network device.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
struct NoKind<'a> {
    device: Option<&'a str>,
    port: Option<u32>,
    netdev: Option<&'a str>,
    priority: Option<u8>,
    object: Option<&'a str>,
}

/// The line of a change: what goes on, or what has ended.
pub(crate) fn change_line(origin: Origin<'_>, change: &Change) -> serde_json::Result<String> {
    let judged = &change.now.judged;
    let About { port, priority, object, .. } = About::of(judged);
    let [device, netdev] = judged.about.names();
    let found = match &judged.finding.verdict {
        Verdict::Firing(found) if !change.gone => found.as_slice(),
        _ => &[],
    };
    let (evidence, why) = match change.now.state {
        State::Firing => (records(found.iter().filter(|evidence| evidence.is_ongoing()), judged), None),
        State::Quiet => (records(found.iter().rev().take(1), judged), None),
        State::CannotTell(why) => (Vec::new(), Some(why.to_string())),
    };
    serde_json::to_string(&ChangeLine {
        kind: "finding",
        time: time_text(SystemTime::now()),
        host: origin.host,
        boot_id: origin.boot_id,
        finding: judged.finding.detector,
        about: NoKind { device, port, netdev, priority, object },
        state: if change.gone { "gone" } else { change.now.state.name() },
        was: change.before.map(|state| state.name()),
        why: why.filter(|_| !change.gone),
        evidence,
    })
}

fn records<'a>(found: impl Iterator<Item = &'a Evidence>, judged: &Judged) -> Vec<EvidenceRecord> {
    found.map(|evidence| EvidenceRecord::of(evidence, &judged.rows)).collect()
}

/// As RFC 3339; `None` for a time that no clock shows.
pub(crate) fn utc_text(time: UtcNs) -> Option<String> {
    jiff::Timestamp::from_nanosecond(time.0.into()).ok().map(|time| format!("{time:.9}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use analysis::counter_series::Counter;
    use analysis::pause::Basis;
    use analysis::port::Finding;
    use analysis::series::{Direction, Span};
    use analysis::storm::Storm;
    use analysis::verdict::{Episode, Why};
    use serde_json::json;

    use super::*;
    use crate::counters::findings::board::Standing;
    use crate::counters::readout::Place;

    fn judged(verdict: Verdict<Vec<Evidence>>) -> Judged {
        let lane = Lane::Priority(3);
        let about = super::super::About {
            place: Place { kind: Kind::Rdma, device: "mlx5_0".to_owned(), port: Some(1) },
            netdev: Some("eth0".to_owned()),
            object: None,
        };
        let rows = [
            (Counter::PauseTime(lane, Direction::Tx), vec!["pfc_sent_pause_seconds"]),
            (Counter::Packets(lane, Direction::Rx), vec!["nic_priority_received_packets"]),
        ];
        let rows = Arc::new(BTreeMap::from(rows));
        Judged { about, finding: Finding { detector: "storm", lane: Some(lane), verdict }, rows }
    }

    fn storm(ongoing: bool) -> Evidence {
        let span = Span { start: UtcNs(0), end: UtcNs(2_000_000_000) };
        let episode = Episode { span, samples: 0..2, ongoing, unseen: None };
        let (direction, lane) = (Direction::Tx, Lane::Priority(3));
        Evidence::Storm(Storm { direction, lane, episode, share_min: 0.99, basis: Basis::Time })
    }

    fn line(verdict: Verdict<Vec<Evidence>>, before: Option<State>, gone: bool) -> serde_json::Value {
        let judged = judged(verdict);
        let state = judged.finding.state().expect("a state");
        let origin = Origin { host: Some("gpu-17"), boot_id: None };
        let change = Change { now: Standing { judged, state, since: UtcNs(0) }, before, gone };
        serde_json::from_str(&change_line(origin, &change).expect("JSON")).expect("JSON")
    }

    #[test]
    fn a_change_is_told_with_numbers_units_and_counters() {
        let mut found = line(Verdict::Firing(vec![storm(false), storm(true)]), None, false);
        assert!(found["time"].take().is_string());
        let evidence = found["evidence"].take();
        assert_eq!(
            found,
            json!({"kind": "finding", "time": null, "host": "gpu-17", "finding": "storm", "device": "mlx5_0", "port": 1,
                "netdev": "eth0", "priority": 3, "state": "firing", "evidence": null})
        );
        assert_eq!(evidence.as_array().map(Vec::len), Some(1), "what has ended is not told with what goes on");
        assert_eq!(
            evidence[0]["measures"],
            json!([
                {"name": "share_min", "value": 0.99, "unit": "ratio", "counters": ["pfc_sent_pause_seconds"]},
                {"name": "carried", "value": 0, "unit": "packets", "counters": ["nic_priority_received_packets"]},
            ])
        );
        assert_eq!(
            (&evidence[0]["start"], &evidence[0]["seconds"]),
            (&json!("1970-01-01T00:00:00.000000000Z"), &json!(2.0))
        );
    }

    #[test]
    fn the_end_tells_what_has_ended() {
        let found = line(Verdict::Firing(vec![storm(false)]), Some(State::Firing), false);
        assert_eq!((&found["state"], &found["was"]), (&json!("quiet"), &json!("firing")));
        assert_eq!((&found["evidence"][0]["ongoing"], &found["why"]), (&json!(false), &json!(null)));
        let found = line(Verdict::CannotTell(Why::NoLineRate), Some(State::Firing), false);
        assert_eq!((&found["state"], &found["evidence"]), (&json!("cannot_tell"), &json!(null)));
        assert_eq!(found["why"], "pause frames tell a time only at a known line rate");
        let found = line(Verdict::Firing(vec![storm(true)]), Some(State::Firing), true);
        assert_eq!((&found["state"], &found["evidence"]), (&json!("gone"), &json!(null)));
    }
}

//! The series of what the detectors say.

use analysis::port::{DETECTORS, State};
use analysis::skew::max_over_mean;

use super::page::{Page, Value};
use super::seats::Seats;
use super::table::Metric;
use crate::config::limits;
use crate::counters::findings::EXHAUSTION;
use crate::counters::findings::board::Standing;
use crate::counters::findings::record::priority;
use crate::daemon::findings::Findings;
use crate::host::rdma::RdmaFacts;
use crate::kernel::state::CqCounts;
use crate::verbs::vectors::{VECTOR_SKEW, queues};

/// Adds how many of each fire, and each that is looked at.
pub(super) fn add(page: &mut Page, seats: &mut Seats, findings: &Findings) {
    if !findings.is_judged() {
        return;
    }
    for name in DETECTORS.iter().map(|detector| detector.name).chain([EXHAUSTION, VECTOR_SKEW]) {
        let count = findings.firing().filter(|standing| standing.judged.finding.detector == name).count();
        page.add(Metric::FindingsFiring, &[name], Value::Whole(count as u64));
    }
    page.left_out += findings.ports_left_out();
    // What fires is given a place first, and some are kept for it.
    for standing in findings.firing() {
        add_one(page, seats, standing, limits::SERIES_FINDINGS);
    }
    for standing in findings.standings().filter(|standing| standing.state != State::Firing) {
        add_one(page, seats, standing, limits::SERIES_FINDINGS - limits::SERIES_FIRING);
    }
}

/// Adds how evenly completion queues are spread over each device's completion vectors.
pub(super) fn add_vectors(page: &mut Page, seats: &mut Seats, counts: &CqCounts, host: &RdmaFacts) {
    for (device, queues) in queues(counts, host) {
        if seats.take_shared(Metric::VectorSkew, &device, limits::SERIES_DEVICES) {
            page.add(Metric::VectorSkew, &[&device], Value::Real(max_over_mean(&queues)));
        } else {
            page.left_out += 1;
        }
    }
}

fn add_one(page: &mut Page, seats: &mut Seats, standing: &Standing, most: usize) {
    let (about, finding) = (&standing.judged.about, &standing.judged.finding);
    let [device, netdev] = about.names().map(Option::unwrap_or_default);
    let port = about.place.port.map(|port| port.to_string()).unwrap_or_default();
    let priority = priority(finding.lane).map(|priority| priority.to_string()).unwrap_or_default();
    let object = about.object.as_deref().unwrap_or_default();
    let labels = [device, &port, netdev, &priority, object, finding.detector];
    if !seats.take_shared(Metric::Finding, &labels.join(" "), most) {
        page.left_out += 1;
        return;
    }
    match standing.state {
        State::CannotTell(why) => {
            let [device, port, netdev, priority, object, finding] = labels;
            let labels = [device, port, netdev, priority, object, finding, why.name()];
            page.add(Metric::FindingUnknown, &labels, Value::Whole(1));
        }
        state => page.add(Metric::Finding, &labels, Value::Whole(u64::from(state == State::Firing))),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use analysis::counter_series::Lane;
    use analysis::evidence::Evidence;
    use analysis::port::Finding;
    use analysis::resource::Exhaustion;
    use analysis::series::UtcNs;
    use analysis::verdict::{Verdict, Why};

    use super::*;
    use crate::counters::findings::{About, Judged};
    use crate::counters::readout::{Kind, Place};
    use crate::counters::service::Verdicts;
    use crate::daemon::fake;

    fn judged(port: u32, verdict: Verdict<Vec<Evidence>>) -> Judged {
        let place = Place { kind: Kind::Rdma, device: "mlx5_0".to_owned(), port: Some(port) };
        let about = About { place, netdev: Some("eth0".to_owned()), object: None };
        let finding = Finding { detector: "storm", lane: Some(Lane::Priority(3)), verdict };
        Judged { about, finding, rows: Arc::default() }
    }

    fn firing() -> Verdict<Vec<Evidence>> {
        Verdict::Firing(vec![Evidence::Exhaustion(Exhaustion { used: 9, limit: 10 })])
    }

    fn page(findings: &Findings, seats: &mut Seats) -> String {
        let mut page = Page::default();
        add(&mut page, seats, findings);
        page.text().expect("it is written")
    }

    fn take(findings: &mut Findings, judged: Vec<Judged>) {
        findings.take(Verdicts { at: UtcNs(0), judged, ports_left_out: 0 });
    }

    /// A page with a finding of each state.
    pub(in crate::metrics) fn every_state() -> String {
        let mut findings = Findings::default();
        let unknown = Verdict::CannotTell(Why::NoLineRate);
        take(&mut findings, vec![judged(1, Verdict::Quiet), judged(2, firing()), judged(3, unknown)]);
        let mut page = Page::default();
        add(&mut page, &mut Seats::default(), &findings);
        let (rdev, host) = (fake::rdev(0), fake::devices(1));
        let counts = CqCounts { made: vec![(rdev, 0, 8)], vectors: BTreeMap::from([(rdev, 8)]) };
        add_vectors(&mut page, &mut Seats::default(), &counts, &host);
        let page = page.text().expect("it is written");
        assert!(page.contains("fabricscope_cq_vector_skew_ratio{device=\"mlx5_0\"} 8.0\n"), "{page}");
        page
    }

    #[test]
    fn a_finding_fires_is_quiet_or_cannot_be_told() {
        let (mut findings, mut seats) = (Findings::default(), Seats::default());
        assert_eq!(page(&findings, &mut seats), "", "nothing was read yet");
        let labels = "device=\"mlx5_0\",port=\"1\",netdev=\"eth0\",priority=\"3\",finding=\"storm\"";
        let rows = [
            (Verdict::Quiet, format!("fabricscope_finding{{{labels}}} 0\n"), 0),
            (firing(), format!("fabricscope_finding{{{labels}}} 1\n"), 1),
            (
                Verdict::CannotTell(Why::NoLineRate),
                format!("fabricscope_finding_unknown{{{labels},why=\"no_line_rate\"}} 1\n"),
                0,
            ),
        ];
        for (verdict, line, count) in rows {
            take(&mut findings, vec![judged(1, verdict)]);
            let page = page(&findings, &mut seats);
            assert!(page.contains(&line) && page.matches(labels).count() == 1, "{line}{page}");
            assert!(page.contains(&format!("fabricscope_findings_firing{{finding=\"storm\"}} {count}\n")), "{page}");
        }
        take(&mut findings, vec![judged(1, Verdict::CannotTell(Why::NoLimit))]);
        let page = page(&findings, &mut seats);
        assert!(!page.contains(labels) && page.contains("findings_firing{finding=\"storm\"} 0\n"), "{page}");
    }

    #[test]
    fn what_fires_has_a_place_where_there_are_too_many() {
        let (mut findings, mut seats) = (Findings::default(), Seats::default());
        let lines = |page: &str, end: &str| {
            page.lines().filter(|line| line.starts_with("fabricscope_finding{") && line.ends_with(end)).count()
        };
        take(&mut findings, (0..200).map(|port| judged(port, Verdict::Quiet)).collect());
        assert_eq!(lines(&page(&findings, &mut seats), ""), limits::SERIES_FINDINGS - limits::SERIES_FIRING);
        let some = |port| judged(port, if port >= 180 { firing() } else { Verdict::Quiet });
        take(&mut findings, (0..200).map(some).collect());
        let all = page(&findings, &mut seats);
        assert_eq!(lines(&all, " 1"), 20);
        assert!(all.contains("fabricscope_findings_firing{finding=\"storm\"} 20\n"), "{all}");
        take(&mut findings, (0..200).map(|port| judged(port, firing())).collect());
        assert_eq!(lines(&page(&findings, &mut seats), ""), limits::SERIES_FINDINGS);
    }
}

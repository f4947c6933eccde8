//! How every finding stands and since when, and each change of it.

use std::collections::BTreeMap;

use analysis::counter_series::Lane;
use analysis::port::State;
use analysis::series::UtcNs;

use super::{About, Judged};

/// One detector of one port or device, of one lane.
type Key = (About, &'static str, Option<Lane>);

/// How a finding stands.
#[derive(Clone, Debug)]
pub(crate) struct Standing {
    /// What the detector said the last time.
    pub(crate) judged: Judged,
    /// How it stands.
    pub(crate) state: State,
    /// The reading with which it came to stand so.
    pub(crate) since: UtcNs,
}

/// A finding that stands differently now.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// How it stands now; for one that is no longer looked at, as it stood before.
    pub(crate) now: Standing,
    /// The state before; `None` if nobody had looked at it.
    pub(crate) before: Option<State>,
    /// It is no longer looked at: its device or its counters are gone.
    pub(crate) gone: bool,
}

/// All findings of one source: what is not among the last answers is no longer looked at.
#[derive(Debug, Default)]
pub(crate) struct Board {
    standings: BTreeMap<Key, Standing>,
}

impl Board {
    /// Takes all answers of one reading and tells what has changed. That something is quiet which nobody had looked at
    /// before is no change.
    pub(crate) fn take(&mut self, judged: Vec<Judged>, at: UtcNs) -> Vec<Change> {
        let mut before = std::mem::take(&mut self.standings);
        let mut changes = Vec::new();
        for judged in judged {
            let Some(state) = judged.finding.state() else { continue };
            let key = (judged.about.clone(), judged.finding.detector, judged.finding.lane);
            let last = before.remove(&key);
            let same = last.as_ref().filter(|last| last.state.name() == state.name());
            let now = Standing { judged, state, since: same.map_or(at, |last| last.since) };
            if same.is_none() && (last.is_some() || state != State::Quiet) {
                changes.push(Change { now: now.clone(), before: last.map(|last| last.state), gone: false });
            }
            self.standings.insert(key, now);
        }
        let gone = before.into_values().filter(|last| last.state != State::Quiet);
        changes.extend(gone.map(|last| Change { before: Some(last.state), now: last, gone: true }));
        changes
    }

    /// All that is looked at, in order.
    pub(crate) fn standings(&self) -> impl Iterator<Item = &Standing> {
        self.standings.values()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use analysis::evidence::Evidence;
    use analysis::port::Finding;
    use analysis::resource::Exhaustion;
    use analysis::verdict::{Verdict, Why};

    use super::*;
    use crate::counters::readout::{Kind, Place};

    fn judged(verdict: Verdict<Vec<Evidence>>) -> Judged {
        let place = Place { kind: Kind::Rdma, device: "mlx5_0".to_owned(), port: Some(1) };
        let about = About { place, netdev: None, object: None };
        Judged { about, finding: Finding { detector: "storm", lane: None, verdict }, rows: Arc::default() }
    }

    fn firing() -> Judged {
        judged(Verdict::Firing(vec![Evidence::Exhaustion(Exhaustion { used: 9, limit: 10 })]))
    }

    fn quiet() -> Judged {
        judged(Verdict::Quiet)
    }

    fn unknown() -> Judged {
        judged(Verdict::CannotTell(Why::NoLineRate))
    }

    fn nothing() -> Judged {
        judged(Verdict::CannotTell(Why::NoLimit))
    }

    /// Before and after of the changes that these answers make, one after the other.
    #[track_caller]
    fn check(answers: &[fn() -> Judged], expected: &[(usize, Option<&str>, &str)]) {
        let mut board = Board::default();
        let mut found = Vec::new();
        for (at, answer) in answers.iter().enumerate() {
            for change in board.take(vec![answer()], UtcNs(at as i64)) {
                let now = if change.gone { "gone" } else { change.now.state.name() };
                found.push((at, change.before.map(|state| state.name()), now));
            }
        }
        assert_eq!(found, expected);
    }

    #[test]
    fn each_change_is_told_once() {
        check(&[quiet, quiet], &[]);
        check(&[firing, firing, quiet], &[(0, None, "firing"), (2, Some("firing"), "quiet")]);
        check(
            &[nothing, quiet, unknown, unknown, quiet],
            &[(2, Some("quiet"), "cannot_tell"), (4, Some("cannot_tell"), "quiet")],
        );
        check(&[firing, nothing, firing], &[(0, None, "firing"), (1, Some("firing"), "gone"), (2, None, "firing")]);
        check(&[quiet, nothing], &[]);
    }

    #[test]
    fn it_stands_since_the_change() {
        let mut board = Board::default();
        for (at, answer) in [quiet(), firing(), firing()].into_iter().enumerate() {
            board.take(vec![answer], UtcNs(at as i64));
        }
        assert_eq!(board.standings().map(|standing| standing.since).collect::<Vec<_>>(), [UtcNs(1)]);
        board.take(vec![nothing()], UtcNs(3));
        assert_eq!(board.standings().count(), 0);
    }
}

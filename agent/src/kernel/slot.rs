//! One row of the probe table at work: attached or not, through the loading and unloading of its module.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::attach::{Attached, Context};
use super::object::Object;
use super::state::{HookState, State};
use super::sys::ProgramAccount;
use super::tracefs::Profile;
use crate::probes::Hook;

/// A hook that comes or goes more often than this within this time is left alone, unless something else is set.
const FLAPPING: (usize, Duration) = (10, Duration::from_secs(60));
/// How long a flapping hook is left alone at first; twice as long each further time.
const QUARANTINE: Duration = Duration::from_secs(30);
/// The longest it is left alone.
const QUARANTINE_LONGEST: Duration = Duration::from_secs(3600);

/// One row of the probe table at work.
#[derive(Debug)]
pub(super) struct Slot {
    number: u16,
    pub(super) hook: &'static Hook,
    pub(super) wanted: bool,
    pub(super) attached: Option<Attached>,
    /// The state while nothing is attached.
    state: State,
    transitions: u64,
    changes: VecDeque<Instant>,
    /// More changes than these within this time are too many.
    pub(super) flapping: (usize, Duration),
    quarantine: Option<(Instant, Duration)>,
    /// What programs that are gone had counted.
    past: ProgramAccount,
    past_missed: u64,
}

impl Slot {
    pub(super) fn new(number: u16, hook: &'static Hook, wanted: bool) -> Self {
        let why = if hook.default { "not wanted" } else { "attached for sessions only" };
        Self {
            number,
            hook,
            wanted,
            attached: None,
            state: State::Disabled(why.to_owned()),
            transitions: 0,
            changes: VecDeque::new(),
            flapping: FLAPPING,
            quarantine: None,
            past: ProgramAccount::default(),
            past_missed: 0,
        }
    }

    /// Attaches, unless it is attached, not wanted, or in quarantine.
    pub(super) fn attach(&mut self, now: Instant, context: &mut Context, object: &Object) {
        if !self.wanted || self.attached.is_some() || self.quarantine.is_some_and(|(until, _)| now < until) {
            return;
        }
        match context.attach(object, self.number, self.hook) {
            Ok(attached) => {
                self.attached = Some(attached);
                self.changed(now);
            }
            Err(state) => self.state = state,
        }
    }

    /// Detaches if the function was in one of these modules; what is left is to be dropped.
    pub(super) fn detach_from(&mut self, modules: &[String], now: Instant, profile: &Profile) -> Option<Attached> {
        let in_one = match &self.attached.as_ref()?.state {
            State::Attached { module, .. } if !module.is_empty() => modules.contains(module),
            _ => self.hook.modules.iter().any(|module| modules.iter().any(|gone| gone == module)),
        };
        if in_one { self.detach(State::Waiting("its module was unloaded".to_owned()), now, profile) } else { None }
    }

    /// Leaves the place to the row that it would stand in for.
    pub(super) fn stand_back(&mut self, other: &str, now: Instant, context: &Context) {
        if self.wanted {
            let profile = if self.attached.is_some() { context.profile() } else { Profile::new() };
            drop(self.detach(State::Disabled(format!("{other} is attached")), now, &profile));
        }
    }

    /// Keeps what was counted, detaches, and says why. Without an attachment only the reason changes.
    fn detach(&mut self, state: State, now: Instant, profile: &Profile) -> Option<Attached> {
        self.state = state;
        let attached = self.attached.take()?;
        self.past_missed += attached.missed(profile);
        let account = attached.account();
        self.past.run_time_ns += account.run_time_ns;
        self.past.run_count += account.run_count;
        self.past.recursion_misses += account.recursion_misses;
        self.changed(now);
        Some(attached)
    }

    /// Counts a change, and puts the hook into quarantine if there were too many.
    fn changed(&mut self, now: Instant) {
        let (most, window) = self.flapping;
        self.transitions += 1;
        self.changes.push_back(now);
        while self.changes.front().is_some_and(|first| now.duration_since(*first) > window) {
            self.changes.pop_front();
        }
        if self.changes.len() > most && self.attached.is_none() {
            let wait = self.quarantine.map_or(QUARANTINE, |(_, last)| (last * 2).min(QUARANTINE_LONGEST));
            self.quarantine = Some((now + wait, wait));
            self.changes.clear();
            self.state = State::Quarantined(format!(
                "came and went more than {most} times in {} s; tried again in {} s",
                window.as_secs(),
                wait.as_secs()
            ));
        }
    }

    /// True once, when a quarantine has passed.
    pub(super) fn release(&mut self, now: Instant) -> bool {
        let over = self.attached.is_none()
            && matches!(self.state, State::Quarantined(_))
            && self.quarantine.is_some_and(|(until, _)| now >= until);
        if over {
            self.state = State::Waiting("its quarantine is over".to_owned());
        }
        over
    }

    pub(super) fn state(&self, profile: &Profile) -> HookState {
        let account = self.attached.as_ref().map(Attached::account).unwrap_or_default();
        let missed = self.attached.as_ref().map_or(0, |attached| attached.missed(profile));
        HookState {
            number: self.number,
            state: self.attached.as_ref().map_or_else(|| self.state.clone(), |attached| attached.state.clone()),
            transitions: self.transitions,
            run_count: self.past.run_count + account.run_count,
            run_time_ns: self.past.run_time_ns + account.run_time_ns,
            missed: self.past_missed + missed + self.past.recursion_misses + account.recursion_misses,
        }
    }
}

//! A sum of counters of which some may be unknown: what is known is no more than the truth.

use std::ops::Range;

use crate::counter_series::{Counter, CounterSeries};
use crate::delta::Gap;
use crate::verdict::{Level, Why};

/// What is known of a sum, and why it may be more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sum {
    pub(crate) known: u64,
    pub(crate) doubt: Option<Why>,
}

impl Sum {
    /// Over `samples`, of those `counters` that the source offers at all; of none, nothing is known.
    pub(crate) fn of(
        series: &CounterSeries,
        counters: impl IntoIterator<Item = Counter>,
        samples: Range<usize>,
    ) -> Self {
        let (mut known, mut doubt, mut not_offered, mut offered) = (0u64, None, None, false);
        for counter in counters {
            if !series.offers(counter) {
                not_offered = not_offered.or(Some(Why::absent(counter, Gap::NotOffered)));
                continue;
            }
            offered = true;
            for at in samples.clone() {
                match series.delta(counter, at) {
                    Ok(count) => known = known.saturating_add(count),
                    Err(gap) => doubt = doubt.or(Some(Why::absent(counter, gap))),
                }
            }
        }
        Self { known, doubt: if offered { doubt } else { not_offered } }
    }

    /// What the sum says, where more of it never says less.
    pub(crate) fn level(self, of: impl Fn(u64) -> Level) -> Level {
        match (of(self.known), self.doubt) {
            (Level::High, _) | (_, None) => of(self.known),
            (_, Some(why)) => Level::Unknown(why),
        }
    }
}

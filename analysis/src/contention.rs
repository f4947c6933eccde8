//! Contention: who of a group bursts at the same time.
//!
//! Time is divided into equal bins. Buckets of different hosts begin at different times, and a burst of one bucket
//! would reach into two bins: it counts in the bins that hold half of it, or that it fills by half.

use std::fmt;

use crate::answer::Answer;
use crate::burst::{self, Burst, Share, bursts};
use crate::series::{Direction, DurationNs, Series, Span};

/// Most bins of all members together: 32 MiB for one bit each.
const CELLS_MAX: u64 = 1 << 28;

/// What is compared, and how.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Which way.
    pub direction: Direction,
    /// What a burst is.
    pub threshold: Share,
    /// The length of a bin; `None` for the longest interval of the members.
    pub bin: Option<DurationNs>,
}

/// Why members cannot be compared. Members are named by their place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// One alone has nobody to be compared with.
    TooFew,
    /// The bursts of this one are not known.
    Bursts(usize, burst::Unknown),
    /// No bin lies in a time that all were measured in.
    NoCommonTime,
    /// A bin is shorter than this one's interval.
    TooFine(usize, DurationNs),
    /// How far this one's clock may be off is not known.
    NoClockError(usize),
    /// The clocks of these two may be this far apart, which is more than a bin.
    ClocksApart(usize, usize, DurationNs),
    /// The common time has this many bins.
    TooManyBins(u64),
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFew => f.write_str("a comparison takes two or more series"),
            Self::Bursts(_, why) => why.fmt(f),
            Self::NoCommonTime => f.write_str("there is no time in which all were measured"),
            Self::TooFine(_, interval) => write!(f, "a bin is shorter than the interval of {} ns", interval.0),
            Self::NoClockError(_) => f.write_str("how far the clock may be off is not known"),
            Self::ClocksApart(_, _, apart) => write!(f, "the clocks may be {} ns apart: more than a bin", apart.0),
            Self::TooManyBins(bins) => write!(f, "{bins} bins are too many to compare"),
        }
    }
}

/// A bit for each bin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Bits(Vec<u64>);

impl Bits {
    fn new(bins: usize) -> Self {
        Self(vec![0; bins.div_ceil(64)])
    }

    fn get(&self, bin: usize) -> bool {
        self.0.get(bin / 64).is_some_and(|word| word >> (bin % 64) & 1 == 1)
    }

    fn set(&mut self, bin: usize) {
        if let Some(word) = self.0.get_mut(bin / 64) {
            *word |= 1 << (bin % 64);
        }
    }

    fn count(&self) -> u64 {
        self.0.iter().map(|word| u64::from(word.count_ones())).sum()
    }
}

/// One of those that are compared.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its bursts, in all of its series.
    pub bursts: Vec<Burst>,
    /// Bins of the common time in which it was measured.
    pub measured_bins: u64,
    /// Of those, the ones in which it burst.
    pub bursting_bins: u64,
    /// Of those, the ones in which at least one other burst too.
    pub contended_bins: u64,
    bursting: Bits,
    measured: Bits,
}

impl Member {
    /// Whether it burst in a bin; `None` if it was not measured in all of it.
    #[must_use]
    pub fn at(&self, bin: usize) -> Option<bool> {
        self.measured.get(bin).then(|| self.bursting.get(bin))
    }
}

/// Two members side by side, in the bins in which both were measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The place of one.
    pub first: usize,
    /// The place of the other, which is later.
    pub second: usize,
    /// Bins.
    pub measured: u64,
    /// Of those, the ones in which the first burst.
    pub by_first: u64,
    /// Of those, the ones in which the second burst.
    pub by_second: u64,
    /// Of those, the ones in which both burst.
    pub both: u64,
}

impl Pair {
    /// Bins in which both burst, as a share of those in which one did; `None` if none did.
    #[must_use]
    pub fn overlap(&self) -> Option<f64> {
        let either = (self.by_first + self.by_second).saturating_sub(self.both);
        (either > 0).then(|| self.both as f64 / either as f64)
    }

    /// How many times as often they burst together as two would that know nothing of each other; `None` if one of them
    /// did not burst.
    #[must_use]
    pub fn lift(&self) -> Option<f64> {
        let chance = self.by_first as f64 * self.by_second as f64;
        (chance > 0.0).then(|| self.both as f64 * self.measured as f64 / chance)
    }
}

/// Members on one clock.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// When the first bin starts, and the last one ends.
    pub window: Span,
    /// The length of a bin.
    pub bin: DurationNs,
    /// How far the clocks of two members may be apart at most.
    pub clocks_apart: DurationNs,
    /// In the order in which they were given.
    pub members: Vec<Member>,
    /// All pairs of members that both burst, those with the most overlap first.
    pub pairs: Vec<Pair>,
    /// How many members burst in each bin.
    pub contention: Vec<u32>,
    /// In how many bins no member burst, one did, two did, and so on: where all were measured.
    pub distribution: Vec<u64>,
}

impl Comparison {
    /// Bins in which all members were measured.
    #[must_use]
    pub fn complete_bins(&self) -> u64 {
        self.distribution.iter().sum()
    }

    /// The most members that burst in one bin.
    #[must_use]
    pub fn contention_max(&self) -> u32 {
        self.contention.iter().copied().max().unwrap_or_default()
    }

    /// Members that burst on average in a bin in which all were measured; `None` if there is no such bin.
    #[must_use]
    pub fn contention_mean(&self) -> Option<f64> {
        let members: u64 = (0..).zip(&self.distribution).map(|(members, bins): (u64, _)| members * bins).sum();
        let bins = self.complete_bins();
        (bins > 0).then(|| members as f64 / bins as f64)
    }
}

/// Compares series of several hosts or devices.
///
/// # Errors
///
/// [`Unknown`] if bursts, clocks or times do not allow it.
pub fn compare(series: &[&Series], options: Options) -> Result<Comparison, Unknown> {
    if series.len() < 2 {
        return Err(Unknown::TooFew);
    }
    let mut all = Vec::new();
    for (place, series) in series.iter().enumerate() {
        match bursts(series, options.direction, options.threshold) {
            Answer::Found(found) => all.push(found),
            Answer::Quiet => all.push(Vec::new()),
            Answer::CannotTell(why) => return Err(Unknown::Bursts(place, why)),
        }
    }
    let bin = bin(series, options.bin)?;
    let clocks_apart = clocks_apart(series, bin)?;
    let grid = Grid::new(series, bin)?;
    let mut members: Vec<Member> = series.iter().zip(all).map(|(series, bursts)| grid.member(series, bursts)).collect();
    let contention: Vec<u32> = (0..grid.bins).map(|bin| count(&members, |member| member.bursting.get(bin))).collect();
    let mut distribution = vec![0; members.len() + 1];
    for (bin, bursting) in contention.iter().enumerate() {
        let complete = members.iter().all(|member| member.measured.get(bin));
        if let Some(bins) = distribution.get_mut(*bursting as usize).filter(|_| complete) {
            *bins += 1;
        }
    }
    for member in &mut members {
        let contended = |(bin, bursting): &(usize, &u32)| **bursting > 1 && member.bursting.get(*bin);
        member.contended_bins = contention.iter().enumerate().filter(contended).count() as u64;
    }
    let pairs = pairs(&members);
    Ok(Comparison { window: grid.window, bin, clocks_apart, members, pairs, contention, distribution })
}

fn count(members: &[Member], is: impl Fn(&Member) -> bool) -> u32 {
    members.iter().map(|member| u32::from(is(member))).sum()
}

/// The length of a bin: no interval is longer.
fn bin(series: &[&Series], wanted: Option<DurationNs>) -> Result<DurationNs, Unknown> {
    let intervals = series.iter().map(|series| series.interval).enumerate();
    let (place, longest) = intervals.max_by_key(|(_, interval)| *interval).ok_or(Unknown::TooFew)?;
    match wanted {
        Some(bin) if bin < longest => Err(Unknown::TooFine(place, longest)),
        Some(bin) => Ok(bin),
        None => Ok(longest),
    }
}

/// How far two clocks may be apart at most. Devices of one boot have one clock.
fn clocks_apart(series: &[&Series], bin: DurationNs) -> Result<DurationNs, Unknown> {
    let mut worst = (DurationNs(0), 0, 0);
    for (first, one) in series.iter().enumerate() {
        for (second, other) in series.iter().enumerate().skip(first + 1) {
            if one.boot_id == other.boot_id && !one.boot_id.is_empty() {
                continue;
            }
            let error = one.clock_error.ok_or(Unknown::NoClockError(first))?;
            let other_error = other.clock_error.ok_or(Unknown::NoClockError(second))?;
            worst = worst.max((DurationNs(error.0.saturating_add(other_error.0)), first, second));
        }
    }
    let (apart, first, second) = worst;
    if apart > bin { Err(Unknown::ClocksApart(first, second, apart)) } else { Ok(apart) }
}

/// The bins of the time that all have in common.
struct Grid {
    window: Span,
    bin: DurationNs,
    bins: usize,
}

impl Grid {
    fn new(series: &[&Series], bin: DurationNs) -> Result<Self, Unknown> {
        let windows = series.iter().map(|series| series.window());
        let common = windows.reduce(|all, window| all?.overlap(window?)).flatten().ok_or(Unknown::NoCommonTime)?;
        let bins = common.length().0.checked_div(bin.0).unwrap_or_default();
        if bins == 0 {
            return Err(Unknown::NoCommonTime);
        }
        let count = usize::try_from(bins).map_err(|_| Unknown::TooManyBins(bins))?;
        if bins.saturating_mul(series.len() as u64) > CELLS_MAX {
            return Err(Unknown::TooManyBins(bins));
        }
        let end = common.start.after(DurationNs(bins * bin.0));
        Ok(Self { window: Span { start: common.start, end }, bin, bins: count })
    }

    fn span(&self, bin: usize) -> Span {
        let start = self.window.start.after(DurationNs(self.bin.0 * bin as u64));
        Span { start, end: start.after(self.bin) }
    }

    /// The bins that a span touches, each with what both have.
    fn touched(&self, span: Span) -> impl Iterator<Item = (usize, Span)> {
        let first = span.start.since(self.window.start).0 / self.bin.0.max(1);
        let first = usize::try_from(first).unwrap_or(self.bins);
        (first..self.bins).map_while(move |bin| self.span(bin).overlap(span).map(|both| (bin, both)))
    }

    fn member(&self, series: &Series, bursts: Vec<Burst>) -> Member {
        let (mut bursting, mut measured) = (Bits::new(self.bins), Bits::new(self.bins));
        for (bin, both) in series.covered.iter().flat_map(|covered| self.touched(*covered)) {
            if both.length() == self.bin {
                measured.set(bin);
            }
        }
        for burst in &bursts {
            for (bin, both) in self.touched(burst.span()) {
                if both.length().0 >= burst.length.min(self.bin).0 / 2 {
                    bursting.set(bin);
                    // Whatever else was in that bin: there was a burst.
                    measured.set(bin);
                }
            }
        }
        let (measured_bins, bursting_bins) = (measured.count(), bursting.count());
        Member { bursts, measured_bins, bursting_bins, contended_bins: 0, bursting, measured }
    }
}

/// All pairs that both burst, those with the most overlap first.
fn pairs(members: &[Member]) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for (first, one) in members.iter().enumerate().filter(|(_, member)| member.bursting_bins > 0) {
        for (second, other) in members.iter().enumerate().skip(first + 1).filter(|(_, other)| other.bursting_bins > 0) {
            let mut pair = Pair { first, second, measured: 0, by_first: 0, by_second: 0, both: 0 };
            let bursting = one.bursting.0.iter().zip(&other.bursting.0);
            let measured = one.measured.0.iter().zip(&other.measured.0);
            for ((a, b), (in_a, in_b)) in bursting.zip(measured) {
                let measured = in_a & in_b;
                let ones = |word: u64| u64::from((word & measured).count_ones());
                pair.measured += u64::from(measured.count_ones());
                pair.by_first += ones(*a);
                pair.by_second += ones(*b);
                pair.both += ones(a & b);
            }
            pairs.push(pair);
        }
    }
    let overlap = |pair: &Pair| pair.overlap().unwrap_or_default();
    pairs.sort_by(|a, b| overlap(b).total_cmp(&overlap(a)).then(b.both.cmp(&a.both)));
    pairs
}

#[cfg(test)]
mod tests;

//! The last minutes in memory: pieces of series, packed as sample files are, within a budget of bytes.
//!
//! What is pushed collects in an open piece of each device. A piece that has lasted [`limits::PIECE_TIME`] or holds
//! [`limits::PIECE_SAMPLES`] is closed, and the recorder's thread packs it to about a tenth. Consecutive closed pieces
//! make a file. Where the budget ends the oldest piece goes, written or not: what was not is counted.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use analysis::series::{DurationNs, Span, UtcNs};
use bytes::Bytes;

use super::loss::{Cause, Losses};
use crate::bursts::kept::Kept;
use crate::config::limits;

/// What a piece takes beside its samples.
const OVERHEAD: usize = 512;

/// A piece's samples.
#[derive(Clone, Debug)]
pub(super) enum Form {
    /// As they came.
    Plain(Arc<Kept>),
    /// As the bytes of a sample file.
    Packed(Bytes),
}

/// A closed piece.
#[derive(Clone, Debug)]
struct Piece {
    /// Its own.
    number: u64,
    /// When its first samples were pushed.
    since: Instant,
    /// From its first time to its last.
    span: Span,
    /// How many samples it holds.
    samples: usize,
    /// The same as bounds count it.
    weight: usize,
    form: Form,
    /// It follows on the piece before.
    continues: bool,
    /// It is on the disk, or need not get there.
    done: bool,
}

/// The piece that samples are added to.
#[derive(Debug)]
struct Open {
    since: Instant,
    kept: Kept,
    continues: bool,
}

/// The pieces of one source, oldest first.
#[derive(Debug, Default)]
struct Track {
    closed: VecDeque<Piece>,
    /// The piece that was closed last, without its samples.
    tail: Option<Kept>,
    open: Option<Open>,
}

/// All pieces of all sources.
#[derive(Debug)]
pub(super) struct Memory {
    budget: usize,
    /// Pieces are to be written before they are let go.
    to_disk: bool,
    /// By what the names of their files begin with.
    tracks: BTreeMap<String, Track>,
    /// Of all closed pieces: kept up with them, since it is looked at with each push.
    closed_bytes: usize,
    next: u64,
    /// What was lost.
    pub(super) losses: Losses,
    /// Why a piece that has to go has not been written.
    pub(super) cause: Cause,
}

/// Pieces that make one file, oldest first.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) stem: String,
    pub(super) pieces: Vec<(u64, Form)>,
}

fn plain_bytes(kept: &Kept) -> usize {
    OVERHEAD + kept.bytes()
}

impl Piece {
    fn bytes(&self) -> usize {
        match &self.form {
            Form::Plain(kept) => plain_bytes(kept),
            Form::Packed(bytes) => OVERHEAD + bytes.len(),
        }
    }
}

impl Memory {
    pub(super) fn new(budget: usize, to_disk: bool) -> Self {
        Self {
            budget,
            to_disk,
            tracks: BTreeMap::new(),
            closed_bytes: 0,
            next: 0,
            losses: Losses::default(),
            cause: Cause::DiskSlow,
        }
    }

    /// Adds what was measured since the last time. Says whether a piece was closed.
    pub(super) fn push(&mut self, more: Kept, now: Instant) -> bool {
        if more.weight() > limits::PIECE_SAMPLES {
            self.losses.add(Cause::TooLarge, more.samples());
            return false;
        }
        let (closed, stem) = (self.next, more.stem());
        let track = self.tracks.entry(stem.clone()).or_default();
        let has_room = |open: &mut Open| {
            open.kept.weight() + more.weight() <= limits::PIECE_SAMPLES
                && now.duration_since(open.since) < limits::PIECE_TIME
        };
        let appended = match track.open.as_mut() {
            Some(open) => has_room(open) && open.kept.continue_with(&more),
            None => false,
        };
        if !appended {
            self.close(&stem);
            let track = self.tracks.entry(stem).or_default();
            let continues = track.tail.as_ref().is_some_and(|tail| tail.continues_in(&more));
            track.open = Some(Open { since: now, kept: more, continues });
        }
        self.keep_the_budget();
        self.next > closed
    }

    /// Closes the open piece of a source.
    fn close(&mut self, stem: &str) {
        let Some(track) = self.tracks.get_mut(stem) else { return };
        let Some(mut open) = track.open.take() else { return };
        let Some(span) = open.kept.span() else { return };
        open.kept.shrink();
        track.tail = Some(open.kept.tail(span));
        let piece = Piece {
            number: self.next,
            since: open.since,
            span,
            samples: open.kept.samples(),
            weight: open.kept.weight(),
            form: Form::Plain(Arc::new(open.kept)),
            continues: open.continues,
            done: !self.to_disk,
        };
        self.closed_bytes += piece.bytes();
        track.closed.push_back(piece);
        self.next += 1;
    }

    /// Closes what has been open long enough, of devices that are gone too; everything if `all`. When the next will
    /// have been, if there is one.
    pub(super) fn close_old(&mut self, now: Instant, all: bool) -> Option<Instant> {
        let opened = |track: &Track| track.open.as_ref().map(|open| open.since + limits::PIECE_TIME);
        let old = |track: &Track| all || opened(track).is_some_and(|until| until <= now);
        let old: Vec<String> =
            self.tracks.iter().filter(|(_, track)| old(track)).map(|(stem, _)| stem.clone()).collect();
        for stem in old {
            self.close(&stem);
        }
        self.tracks.values().filter_map(opened).min()
    }

    /// Bytes in use.
    pub(super) fn bytes(&self) -> usize {
        self.closed_bytes + self.open_bytes()
    }

    fn open_bytes(&self) -> usize {
        self.tracks.values().filter_map(|track| track.open.as_ref()).map(|open| plain_bytes(&open.kept)).sum()
    }

    fn keep_the_budget(&mut self) {
        // Open pieces cannot be packed: many sources close theirs earlier.
        while self.open_bytes() > self.budget / 4 {
            let size = |track: &Track| track.open.as_ref().map(|open| plain_bytes(&open.kept));
            let largest = self.tracks.iter().max_by_key(|(_, track)| size(track)).map(|(stem, _)| stem.clone());
            let Some(stem) = largest else { break };
            self.close(&stem);
        }
        while self.bytes() > self.budget {
            let oldest = |track: &Track| track.closed.front().map(|piece| piece.number);
            let oldest = self.tracks.iter().filter_map(|(stem, track)| Some((oldest(track)?, stem))).min();
            let Some(stem) = oldest.map(|(_, stem)| stem.clone()) else { break };
            let Some(track) = self.tracks.get_mut(&stem) else { break };
            if let Some(piece) = track.closed.pop_front() {
                self.closed_bytes -= piece.bytes();
                self.losses.add(self.cause, if piece.done { 0 } else { piece.samples });
            }
            if track.closed.is_empty() && track.open.is_none() {
                self.tracks.remove(&stem);
            }
        }
    }

    /// A closed piece that is not packed, the oldest of its source.
    pub(super) fn to_pack(&self) -> Option<(u64, Arc<Kept>)> {
        self.tracks.values().flat_map(|track| &track.closed).find_map(|piece| match &piece.form {
            Form::Plain(kept) => Some((piece.number, kept.clone())),
            Form::Packed(_) => None,
        })
    }

    /// Puts the packed form in the place of the plain one, if the piece is still there.
    pub(super) fn packed(&mut self, number: u64, bytes: Bytes) {
        let pieces = self.tracks.values_mut().flat_map(|track| &mut track.closed);
        if let Some(piece) = pieces.into_iter().find(|piece| piece.number == number) {
            self.closed_bytes -= piece.bytes();
            piece.form = Form::Packed(bytes);
            self.closed_bytes += piece.bytes();
        }
    }

    /// The pieces of a file that is to be written now: whatever there is if `all`. Else when the next one will be.
    pub(super) fn due(&self, now: Instant, all: bool) -> Result<Run, Option<Instant>> {
        let mut next: Option<Instant> = None;
        for (stem, track) in &self.tracks {
            let mut waiting = track.closed.iter().filter(|piece| !piece.done).peekable();
            let Some(first) = waiting.peek().copied() else { continue };
            let (mut pieces, mut weight, mut is_full) = (Vec::new(), 0, false);
            for piece in waiting {
                is_full = !pieces.is_empty() && (!piece.continues || weight + piece.weight > limits::FILE_SAMPLES);
                if is_full {
                    break;
                }
                weight += piece.weight;
                pieces.push((piece.number, piece.form.clone()));
            }
            let until = first.since + limits::FILE_TIME;
            if all || is_full || until <= now {
                return Ok(Run { stem: stem.clone(), pieces });
            }
            next = Some(next.map_or(until, |next| next.min(until)));
        }
        Err(next)
    }

    /// Lets a piece go that no file can hold.
    pub(super) fn forget(&mut self, number: u64) {
        for track in self.tracks.values_mut() {
            for piece in track.closed.iter().filter(|piece| piece.number == number) {
                self.closed_bytes -= piece.bytes();
                self.losses.add(Cause::Unfit, piece.samples);
            }
            track.closed.retain(|piece| piece.number != number);
        }
    }

    /// These pieces need not be written any more.
    pub(super) fn done(&mut self, pieces: &[u64]) {
        for piece in self.tracks.values_mut().flat_map(|track| &mut track.closed) {
            piece.done |= pieces.contains(&piece.number);
        }
    }

    /// The pieces in which the last `span` of a source lies, oldest first, and what of it to take. Where it begins in
    /// a gap the piece before is among them: without that nobody could tell that it is one.
    pub(super) fn last(&self, stem: &str, span: DurationNs) -> Option<(Vec<Form>, Span)> {
        let track = self.tracks.get(stem)?;
        let open = track.open.as_ref().map(|open| &open.kept);
        let end = open.and_then(Kept::end).or(track.closed.back().map(|piece| piece.span.end))?;
        let start = UtcNs(end.0.saturating_sub_unsigned(span.0));
        let first = track.closed.iter().position(|piece| piece.span.end > start).unwrap_or(track.closed.len());
        let begin = track.closed.get(first).map(|piece| piece.span.start).or(open.and_then(Kept::start))?;
        let first = if begin > start { first.saturating_sub(1) } else { first };
        let closed = track.closed.iter().skip(first).map(|piece| piece.form.clone());
        let forms = closed.chain(open.map(|open| Form::Plain(Arc::new(open.clone())))).collect();
        Some((forms, Span { start, end }))
    }

    /// The sources of which there is anything.
    pub(super) fn stems(&self) -> Vec<String> {
        self.tracks.keys().cloned().collect()
    }

    /// Samples that wait to be written.
    pub(super) fn waiting(&self) -> usize {
        let closed = self.tracks.values().flat_map(|track| &track.closed).filter(|piece| !piece.done);
        closed.map(|piece| piece.samples).sum()
    }
}

//! A computation and its parts: those between waits so short that they do not interrupt it.
//!
//! A part that took much longer than all others is a turn of its own, and so is what was before and after it.
//! For that the longest part is kept while the computation goes on, with the sums of what was around it.

use std::ops::Range;

use super::stands_out;

/// A computation, over waits so short that they do not interrupt it.
pub(super) struct Busy {
    /// The part since the last of these waits.
    last: Piece,
    /// The longest part, if it is not the last.
    longest: Option<Longest>,
    /// The length of the longest but one, ns.
    second: u64,
    /// All but the last part.
    before: Option<Piece>,
    /// The waits in between, ns.
    pub(super) paused: u64,
}

/// A part of a computation.
#[derive(Clone)]
pub(super) struct Piece {
    /// When, ns since the trace's start.
    pub(super) window: Range<u64>,
    /// The time in it that is no wait, ns.
    pub(super) busy: u64,
    /// Of that, the time without a CPU.
    pub(super) starved: u64,
}

/// The longest part of a computation, and what was before and after it.
struct Longest {
    before: Option<Piece>,
    piece: Piece,
    after: Option<Piece>,
}

impl Piece {
    /// Takes in what follows.
    fn append(&mut self, next: &Piece) {
        self.window.end = next.window.end;
        self.busy += next.busy;
        self.starved = self.starved.saturating_add(next.starved);
    }

    /// With what follows, if this is there.
    fn joined(this: Option<Piece>, next: Piece) -> Piece {
        match this {
            Some(mut this) => {
                this.append(&next);
                this
            }
            None => next,
        }
    }
}

impl Busy {
    pub(super) fn new(first: Piece) -> Busy {
        Busy {
            last: first,
            longest: None,
            second: 0,
            before: None,
            paused: 0,
        }
    }

    /// How long it took but for waits, ns.
    pub(super) fn busy(&self) -> u64 {
        self.last.busy + self.before.as_ref().map_or(0, |before| before.busy)
    }

    /// Of that, the time without a CPU.
    pub(super) fn starved(&self) -> u64 {
        let before = self.before.as_ref().map_or(0, |before| before.starved);
        self.last.starved.saturating_add(before)
    }

    /// Takes in what follows, at once or after a wait.
    pub(super) fn append(&mut self, next: Piece) {
        match self.last.window.end == next.window.start {
            true => self.last.append(&next),
            false => self.go_on(next),
        }
    }

    fn go_on(&mut self, next: Piece) {
        let last = std::mem::replace(&mut self.last, next);
        match &mut self.longest {
            Some(longest) if longest.piece.busy >= last.busy => {
                self.second = self.second.max(last.busy);
                longest.after = Some(Piece::joined(longest.after.take(), last.clone()));
            }
            longest => {
                let shorter = longest.as_ref().map_or(0, |longest| longest.piece.busy);
                self.second = self.second.max(shorter);
                *longest = Some(Longest {
                    before: self.before.clone(),
                    piece: last.clone(),
                    after: None,
                });
            }
        }
        self.before = Some(Piece::joined(self.before.take(), last));
    }

    /// The parts that are computations of their own: all together, unless one stands out.
    pub(super) fn parts(mut self) -> impl Iterator<Item = Piece> {
        let whole = Piece::joined(self.before.clone(), self.last.clone());
        // Behind the last part comes none: it is counted like the others.
        self.go_on(Piece {
            window: whole.window.end..whole.window.end,
            busy: 0,
            starved: 0,
        });
        let parts = match self.longest {
            Some(longest) if stands_out(longest.piece.busy, self.second, whole.busy) => {
                [longest.before, Some(longest.piece), longest.after]
            }
            _ => [Some(whole), None, None],
        };
        parts.into_iter().flatten()
    }
}

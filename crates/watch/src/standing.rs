//! Something that should move now and then, and for how long it has stood still.
//!
//! It is looked at from time to time. The time that it stood is that from the first look which saw
//! it still to the last, so that all of it surely belongs to the hang: what lies between two looks
//! is left out at both ends. A look takes time, if its thread has to wait for a CPU: what begins is
//! dated by its end, what goes on by its start. It is reported once: when it moves again, or when it has stood so long
//! that waiting for its end would lose its beginning.

use std::ops::Range;

/// From when on standing is a hang.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// This long is a hang, ns.
    pub limit_ns: u64,
    /// After this long its end is not waited for, ns; a hang it must be all the same.
    pub most_ns: u64,
}

/// A hang's time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// When it stood for sure, in the clock of the looks, ns.
    pub window: Range<u64>,
    /// Whether it stands still.
    pub goes_on: bool,
}

/// One thing that should move.
#[derive(Clone, Debug)]
pub struct Standing {
    since: u64,
    last: u64,
    told: bool,
}

impl Standing {
    /// It is seen to stand for the first time, at `now`.
    pub fn new(now: u64) -> Standing {
        Standing {
            since: now,
            last: now,
            told: false,
        }
    }

    /// It stands still at `now`.
    pub fn stands(&mut self, now: u64) {
        self.last = now;
    }

    /// The hang's time, once, when its end is not waited for any more.
    pub fn overdue(&mut self, limits: Limits) -> Option<Stretch> {
        let due = !self.told && self.length() >= limits.most_ns.max(limits.limit_ns);
        self.told |= due;
        due.then_some(Stretch {
            window: self.since..self.last,
            goes_on: true,
        })
    }

    /// It has moved since the last look, or is gone. Gives the time that it had stood, if that was
    /// a hang of which nothing was told yet. From `now` on it may stand anew.
    pub fn moved(&mut self, now: u64, limits: Limits) -> Option<Stretch> {
        let was = std::mem::replace(self, Standing::new(now));
        (was.is_hang(limits) && !was.told).then_some(Stretch {
            window: was.since..was.last,
            goes_on: false,
        })
    }

    /// Whether it has stood for so long that it is a hang.
    pub fn is_hang(&self, limits: Limits) -> bool {
        self.length() >= limits.limit_ns
    }

    fn length(&self) -> u64 {
        self.last.saturating_sub(self.since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        limit_ns: 20,
        most_ns: 100,
    };

    fn stands(standing: &mut Standing, now: u64) -> Option<Stretch> {
        standing.stands(now);
        standing.overdue(LIMITS)
    }

    /// Below the limit nothing is reported; above it, the time that was seen, when it moves.
    #[test]
    fn told_when_it_moves() {
        let mut standing = Standing::new(0);
        for now in [10, 15] {
            assert_eq!(stands(&mut standing, now), None);
        }
        assert!(!standing.is_hang(LIMITS));
        assert_eq!(standing.moved(30, LIMITS), None);
        for now in [40, 50] {
            assert_eq!(stands(&mut standing, now), None);
        }
        assert!(standing.is_hang(LIMITS));
        let stretch = Stretch {
            window: 30..50,
            goes_on: false,
        };
        assert_eq!(standing.moved(60, LIMITS), Some(stretch));
        assert_eq!(standing.moved(61, LIMITS), None);
    }

    /// One that does not end is reported once, and neither again nor when it ends.
    #[test]
    fn told_once() {
        let mut standing = Standing::new(0);
        assert_eq!(stands(&mut standing, 99), None);
        let stretch = Stretch {
            window: 0..100,
            goes_on: true,
        };
        assert_eq!(stands(&mut standing, 100), Some(stretch));
        for now in [110, 250, 1000] {
            assert_eq!(stands(&mut standing, now), None);
        }
        assert_eq!(standing.moved(1010, LIMITS), None);
        assert!(!standing.is_hang(LIMITS));
    }
}

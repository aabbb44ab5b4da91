//! What a track consists of: intervals in order, each in one of a few states.

use hangdog_timeline::{Intervals, Occupancy, State};

/// Number of states that a track can have.
pub const STATES: usize = State::COUNT;

/// Intervals without gap or overlap, ascending: each ends where the next begins.
pub trait Source: Copy {
    /// How many there are.
    fn len(&self) -> usize;
    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// When the interval at `i` begins, ns since the trace's start.
    ///
    /// # Panics
    /// If there are not that many.
    fn start(&self, i: usize) -> u64;
    /// When the last one ends.
    fn end(&self) -> u64;
    /// The state of the interval at `i`, as `State as usize`. Of a CPU: running, or blocked where
    /// it was idle.
    ///
    /// # Panics
    /// If there are not that many.
    fn state(&self, i: usize) -> usize;

    /// When the interval at `i` ends.
    fn end_of(&self, i: usize) -> u64 {
        if i + 1 < self.len() {
            self.start(i + 1)
        } else {
            self.end()
        }
    }

    /// The index of the first interval from `low` on that begins after `t`. Those between are
    /// looked for with steps that double, since neighbouring questions have near answers.
    fn first_after(&self, low: usize, t: u64) -> usize {
        let len = self.len();
        let mut step = 1;
        let mut below = low;
        let mut at = low;
        while at < len && self.start(at) <= t {
            below = at + 1;
            at = (at + step).min(len);
            step *= 2;
        }
        let mut above = at;
        while below < above {
            let middle = below + (above - below) / 2;
            if self.start(middle) <= t {
                below = middle + 1;
            } else {
                above = middle;
            }
        }
        below
    }
}

/// The state that counts as doing nothing.
pub const IDLE_STATE: usize = State::Blocked as usize;

/// One thread's states.
#[derive(Clone, Copy, Debug)]
pub struct Thread<'a>(pub Intervals<'a>);

impl Source for Thread<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn start(&self, i: usize) -> u64 {
        self.0.start(i)
    }

    fn end(&self) -> u64 {
        self.0.end()
    }

    fn state(&self, i: usize) -> usize {
        self.0.state(i) as usize
    }
}

/// What one CPU ran.
#[derive(Clone, Copy, Debug)]
pub struct Cpu<'a>(pub Occupancy<'a>);

impl Source for Cpu<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn start(&self, i: usize) -> u64 {
        self.0.get(i).map_or(0, |occupant| occupant.start)
    }

    fn end(&self) -> u64 {
        let last = self.0.len().checked_sub(1);
        last.and_then(|last| self.0.get(last))
            .map_or(0, |occupant| occupant.end)
    }

    fn state(&self, i: usize) -> usize {
        match self.0.get(i) {
            Some(occupant) if occupant.thread != hangdog_trace::ids::IDLE => {
                State::Running as usize
            }
            _ => IDLE_STATE,
        }
    }
}

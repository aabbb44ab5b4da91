//! Prefix sums over a track's intervals, and bins made of them.

use crate::source::{IDLE_STATE, STATES, Source};

/// So many intervals share one sum: a question adds up at most that many.
pub const BLOCK: usize = 64;

/// What a track did within a bin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bin {
    /// Time in each state, ns; less than the bin in all where the thread did not live.
    pub time: [u64; STATES],
    /// How many intervals begin in it.
    pub count: u32,
    /// The longest interval of any state but blocked, as far as it lies in the bin, ns.
    pub longest: u64,
    /// Which interval that is; of no meaning where `longest` is 0.
    pub longest_at: usize,
}

impl Bin {
    /// Whether the track does not exist here, or does nothing.
    pub fn is_idle(&self) -> bool {
        self.longest == 0
    }

    /// Time in all states, ns.
    pub fn total(&self) -> u64 {
        self.time.iter().sum()
    }
}

/// What lies before each block of a track's intervals.
#[derive(Clone, Debug, Default)]
pub struct Sums {
    /// Time in each state before the block, ns.
    before: Vec<[u64; STATES]>,
    /// The longest interval of the block that is not blocked: its length, ns, and its index.
    longest: Vec<(u64, usize)>,
}

/// A moment of a track.
#[derive(Clone, Copy)]
struct Edge {
    t: u64,
    /// The first interval that begins after it.
    next: usize,
    before: [u64; STATES],
}

impl Sums {
    /// Adds a track up.
    pub fn new(source: impl Source) -> Sums {
        let blocks = source.len().div_ceil(BLOCK);
        let mut sums = Sums {
            before: Vec::with_capacity(blocks),
            longest: Vec::with_capacity(blocks),
        };
        let mut time = [0; STATES];
        for block in 0..blocks {
            sums.before.push(time);
            let mut longest = (0, 0);
            for i in block * BLOCK..source.len().min((block + 1) * BLOCK) {
                let ns = source.end_of(i) - source.start(i);
                let state = source.state(i);
                time[state] += ns;
                if state != IDLE_STATE && ns > longest.0 {
                    longest = (ns, i);
                }
            }
            sums.longest.push(longest);
        }
        sums
    }

    /// The time in each state before `t`; `low` is an index of which it is known that all before
    /// it begins before `t`.
    fn edge(&self, source: impl Source, low: usize, t: u64) -> Edge {
        let next = source.first_after(low, t);
        let Some(at) = next.checked_sub(1) else {
            let before = [0; STATES];
            return Edge { t, next, before };
        };
        let mut before = self.before[at / BLOCK];
        for i in at / BLOCK * BLOCK..at {
            before[source.state(i)] += source.end_of(i) - source.start(i);
        }
        before[source.state(at)] += t.min(source.end_of(at)) - source.start(at);
        Edge { t, next, before }
    }

    /// The longest interval between two moments that is not blocked, as far as it lies between.
    fn longest(&self, source: impl Source, from: &Edge, to: &Edge) -> (u64, usize) {
        let mut longest = (0, 0);
        let first = from.next.saturating_sub(1);
        let mut look = |i: usize| {
            let start = source.start(i).max(from.t);
            let ns = source.end_of(i).min(to.t).saturating_sub(start);
            if source.state(i) != IDLE_STATE && ns > longest.0 {
                longest = (ns, i);
            }
        };
        // The last may reach out of the bin, as the first may: both are cut, and no whole block
        // that holds one of them may stand for it.
        let mut i = first;
        while i < to.next {
            let is_whole = i.is_multiple_of(BLOCK) && i > first && i + BLOCK < to.next;
            if is_whole {
                let (ns, at) = self.longest[i / BLOCK];
                if ns > 0 {
                    look(at);
                }
                i += BLOCK;
            } else {
                look(i);
                i += 1;
            }
        }
        longest
    }

    /// `count` bins of 2^`shift` ns each from `from` on.
    pub fn bins(&self, source: impl Source, from: u64, shift: u32, count: usize) -> Vec<Bin> {
        let width = 1u64.checked_shl(shift).unwrap_or(u64::MAX);
        let mut bins = Vec::with_capacity(count);
        let mut left = self.edge(source, 0, from);
        for _ in 0..count {
            let right = self.edge(source, left.next, left.t.saturating_add(width));
            let mut bin = Bin {
                count: (right.next - left.next) as u32,
                ..Bin::default()
            };
            for (state, time) in bin.time.iter_mut().enumerate() {
                *time = right.before[state] - left.before[state];
            }
            let busy = bin.total() - bin.time[IDLE_STATE];
            if busy > 0 {
                (bin.longest, bin.longest_at) = self.longest(source, &left, &right);
            }
            bins.push(bin);
            left = right;
        }
        bins
    }

    /// Time in each state within `[from, to)`, ns.
    pub fn time(&self, source: impl Source, from: u64, to: u64) -> [u64; STATES] {
        let left = self.edge(source, 0, from);
        let right = self.edge(source, left.next, to.max(from));
        std::array::from_fn(|state| right.before[state] - left.before[state])
    }
}

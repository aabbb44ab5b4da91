//! Small waits of one kind, close upon each other, of which only the sum took long.
//!
//! A server that pages or reads has such waits in each of its turns, and hardly waits for the next request. A turn
//! that took much longer than all others is a series of its own, and so is what was before and after it.

use hangdog_graph::{Wait, WaitKind};
use std::ops::Range;

use super::stands_out;
use crate::stretch::Waiting;

/// Waits of one kind.
#[derive(Clone)]
pub(super) struct Run {
    pub(super) kind: WaitKind,
    pub(super) window: Range<u64>,
    pub(super) longest: Wait,
    waited: u64,
    count: usize,
    /// What the thread did otherwise up to the last wait, ns; the want of a CPU is not its doing and does not
    /// count.
    other: u64,
    /// The same, since that.
    gap: u64,
}

impl Run {
    /// A loop that sleeps longer each time keeps a rhythm; one that sleeps for less polls.
    const MOMENT_NS: u64 = 2_000_000;
    /// What is computed between two of them is shorter than this.
    const GAP_NS: u64 = 8_000_000;
    /// One that is stopped in turns runs in between, as much as whoever stops it allows.
    const STOPPED_GAP_NS: u64 = 100_000_000;
    /// From so many on it is a series.
    const FEWEST: usize = 3;

    fn new(kind: WaitKind, waiting: &Waiting) -> Run {
        Run {
            kind,
            window: waiting.from..waiting.to,
            longest: waiting.wait,
            waited: waiting.to - waiting.from,
            count: 1,
            other: 0,
            gap: 0,
        }
    }

    pub(super) fn length(&self) -> u64 {
        self.window.end - self.window.start
    }

    /// What may lie between two of its waits, ns: of what comes from a disk, some of what each took may
    /// be worked on.
    fn most_gap(&self) -> u64 {
        match self.kind {
            WaitKind::Stopped => Run::STOPPED_GAP_NS,
            WaitKind::Disk => Run::GAP_NS.max(self.longest.duration() / 8),
            _ => Run::GAP_NS,
        }
    }

    /// Takes in the one that follows.
    fn append(&mut self, next: Run) {
        self.window.end = next.window.end;
        self.waited += next.waited;
        self.other += std::mem::replace(&mut self.gap, next.gap) + next.other;
        self.count += next.count;
        if next.longest.duration() > self.longest.duration() {
            self.longest = next.longest;
        }
    }

    /// Several, one after the other.
    fn joined(runs: &[Run]) -> Option<Run> {
        let (first, rest) = runs.split_first()?;
        Some(rest.iter().fold(first.clone(), |mut run, next| {
            run.append(next.clone());
            run
        }))
    }

    /// Whether it is the sum that took long, not what was done in between or one wait of many.
    fn adds_up(&self) -> bool {
        let longest = self.longest.duration();
        let is_rhythm =
            self.kind == WaitKind::Sleep && self.waited / self.count as u64 > Run::MOMENT_NS;
        // Of waits for a device the longest need not be the one that counts.
        let is_of_many = match self.kind {
            WaitKind::Disk => longest.saturating_mul(6) < self.length().saturating_mul(5),
            _ => self.count >= Run::FEWEST && longest.saturating_mul(2) < self.length(),
        };
        is_of_many && self.waited >= self.other && !is_rhythm
    }
}

/// A series that goes on.
#[derive(Default)]
pub(super) struct Series {
    /// Its turns, all but the last.
    before: Vec<Run>,
    last: Option<Run>,
    /// It has waited for the next request since the last wait.
    is_turn_over: bool,
}

impl Series {
    /// Kinds of waits that add up. A loop of messages or conditions is how threads work together:
    /// the sum of its waits says nothing.
    const KINDS: [WaitKind; 4] = [
        WaitKind::Disk,
        WaitKind::Lock,
        WaitKind::Sleep,
        WaitKind::Stopped,
    ];
    /// A wait of another kind that is longer than this ends the series.
    const BREAK_NS: u64 = 1_000_000;
    /// Beyond so many turns they are joined and no longer compared, which bounds the memory.
    const MOST_TURNS: usize = 4096;

    /// Takes in a wait; gives what has ended by it.
    pub(super) fn wait(&mut self, waiting: &Waiting) -> Vec<Run> {
        let kind = match waiting.wait.kind {
            // Memory comes in from a disk too.
            WaitKind::Paging => WaitKind::Disk,
            kind => kind,
        };
        let length = waiting.to - waiting.from;
        if !Series::KINDS.contains(&kind) {
            if length > Series::BREAK_NS {
                return self.end();
            }
            self.busy(length);
            self.is_turn_over |= matches!(
                kind,
                WaitKind::Message | WaitKind::Condition | WaitKind::Poll | WaitKind::Idle
            );
            return Vec::new();
        }
        let next = Run::new(kind, waiting);
        let is_turn_over = std::mem::take(&mut self.is_turn_over);
        match &mut self.last {
            Some(run) if run.kind == kind && run.gap <= run.most_gap() => {
                if kind == WaitKind::Disk && is_turn_over {
                    self.before.push(std::mem::replace(run, next));
                    if self.before.len() > Series::MOST_TURNS {
                        self.before = Run::joined(&self.before).into_iter().collect();
                    }
                } else {
                    run.append(next);
                }
                Vec::new()
            }
            _ => {
                let ended = self.end();
                self.last = Some(next);
                ended
            }
        }
    }

    /// Takes in time in which the thread did something else.
    pub(super) fn busy(&mut self, length: u64) {
        if let Some(run) = &mut self.last {
            run.gap += length;
        }
    }

    /// Ends the series; gives what took long by its sum: the turn that stands out, and what was before and
    /// after it, or all together.
    pub(super) fn end(&mut self) -> Vec<Run> {
        let mut turns = std::mem::take(&mut self.before);
        turns.extend(self.last.take());
        self.is_turn_over = false;
        let lengths = || turns.iter().map(Run::length);
        let longest = (0..turns.len()).max_by_key(|&at| turns[at].length());
        let one = longest.filter(|&at| {
            let others = lengths().enumerate().filter(|&(other, _)| other != at);
            let second = others.map(|(_, length)| length).max().unwrap_or(0);
            stands_out(turns[at].length(), second, lengths().sum())
        });
        let parts = match one {
            Some(at) => [&turns[..at], &turns[at..=at], &turns[at + 1..]],
            None => [&turns[..], &[], &[]],
        };
        let runs = parts.into_iter().filter_map(Run::joined);
        runs.filter(Run::adds_up).collect()
    }
}

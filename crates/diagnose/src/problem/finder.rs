//! A thread's waits, computations and series of small waits, as candidates for problems.

use hangdog_graph::Site;
use hangdog_graph::{Evidence, Mark, Wait, WaitKind};
use hangdog_timeline::{Cause, Interval, State};
use hangdog_trace::ids::{NO_STACK, Utid};
use hangdog_trace::object::ObjectKind;
use hangdog_trace::words::Context;
use std::collections::HashMap;
use std::ops::Range;

use super::busy::{Busy, Piece};
use super::many::{Many, ManyWaits};
use super::series::{Run, Series};
use super::{Doing, NOTED_NS, SHORTEST_NS};
use crate::stretch::Waiting;

/// From so many looks of its own accord on, a thread looks now and then, and is not kept waiting.
const LOOKS: usize = 3;

pub(super) struct Candidate {
    pub(super) window: Range<u64>,
    pub(super) doing: Doing,
    /// Where waits of the same kind are counted.
    pub(super) site: Option<Site>,
    pub(super) wait: Option<Wait>,
    /// The small waits that it consists of.
    pub(super) many: Option<ManyWaits>,
    /// It looked again and again whether something had come.
    pub(super) looks: bool,
    /// A timeout ended it.
    pub(super) timed_out: bool,
    /// How long it was runnable without a CPU meanwhile, ns.
    pub(super) starved: u64,
}

#[derive(Default)]
pub(super) struct Finder {
    pub(super) candidates: Vec<Candidate>,
    /// Waits for one of several descriptors, or for input.
    polls: usize,
    /// Waits of which an event loop can be made, by site.
    turns: HashMap<Site, usize>,
    /// Short sleeps.
    naps: usize,
    /// Those not yet counted there.
    turn: Option<(Site, usize)>,
    /// Lengths of waits by site, as counts by power of two.
    lengths: HashMap<Site, usize>,
    counts: Vec<[u32; 64]>,
    /// The sites that were counted last: a loop has few.
    recent: [Option<(Site, usize)>; 2],
    busy: Option<Busy>,
    series: Series,
    many: Many,
}

/// A wait up to this long, and up to this share of what was done before, does not end a
/// computation; one for those that do parts of it may be longer.
const PAUSE_NS: u64 = 1_000_000;
const JOIN_NS: u64 = 20_000_000;
const PAUSE_SHARE: u64 = 10;

fn longest_pause(evidence: &Evidence<'_>, waiting: &Waiting) -> u64 {
    let stack = waiting.wait.user_stack(evidence);
    match evidence.shows(stack, Mark::JoinsHelpers) {
        true => JOIN_NS,
        false => PAUSE_NS,
    }
}

impl Finder {
    pub(super) fn wait(&mut self, evidence: &Evidence<'_>, waiting: &Waiting) {
        let length = waiting.to - waiting.from;
        if let Some(busy) = &mut self.busy {
            // Between two times without a CPU it may get enough of one for a few short waits.
            busy.paused += length;
            let is_kept_out = busy.starved() > busy.busy() / 10 * 9;
            let goes_on = match is_kept_out {
                true => busy.paused <= busy.busy() / PAUSE_SHARE,
                false => {
                    length <= longest_pause(evidence, waiting)
                        && length <= busy.busy() / PAUSE_SHARE
                }
            };
            if !goes_on {
                self.end_busy();
            }
        }
        self.add_up(waiting);
        if let Some(work) = self.many.wait(evidence, waiting) {
            self.add_many(work);
        }
        let kind = waiting.wait.kind;
        self.polls += usize::from(matches!(kind, WaitKind::Poll | WaitKind::Device));
        if let (WaitKind::Condition | WaitKind::Message, Some(row)) = (kind, waiting.wait.row) {
            let site = evidence.site(row);
            match &mut self.turn {
                Some((turn, turns)) if *turn == site => *turns += 1,
                turn => {
                    if let Some((site, turns)) = turn.replace((site, 1)) {
                        *self.turns.entry(site).or_default() += turns;
                    }
                }
            }
        }
        if is_nap(waiting) {
            self.naps += waiting.parts;
        }
        let site = waiting.wait.row.map(|row| evidence.site(row));
        if let Some(site) = site {
            self.count_length(site, length);
        }
        // Of one that nothing is known of it is not known either whether it was one.
        if length >= SHORTEST_NS && waiting.wait.row.is_some() {
            self.candidates.push(Candidate {
                window: waiting.from..waiting.to,
                doing: Doing::Waiting(asked_for(evidence, &waiting.wait)),
                site,
                wait: Some(waiting.wait),
                many: None,
                looks: waiting.timed_out >= LOOKS,
                timed_out: waiting.wake.is_some_and(|row| is_timer(evidence, row)),
                starved: 0,
            });
            self.shrink();
        }
    }

    fn count_length(&mut self, site: Site, length: u64) {
        let bucket = length.max(1).ilog2() as usize;
        let known = self
            .recent
            .iter()
            .flatten()
            .find(|(recent, _)| *recent == site);
        let at = match known {
            Some(&(_, at)) => at,
            None => {
                let next = self.counts.len();
                let at = *self.lengths.entry(site).or_insert(next);
                if at == next {
                    self.counts.push([0; 64]);
                }
                self.recent = [Some((site, at)), self.recent[0]];
                at
            }
        };
        self.counts[at][bucket] += 1;
    }

    fn add_up(&mut self, waiting: &Waiting) {
        let ended = self.series.wait(waiting);
        self.add_series(ended);
    }

    pub(super) fn end_series(&mut self) {
        let ended = self.series.end();
        self.add_series(ended);
    }

    fn add_series(&mut self, ended: Vec<Run>) {
        for run in ended {
            // No call has such a number: all series of a kind are one site.
            let site = (i16::MIN + run.kind as i16, 0);
            self.count_length(site, run.length());
            // What is owed to one of them alone is owed to all.
            let is_noted = run.longest.duration() >= NOTED_NS;
            if run.length() >= SHORTEST_NS {
                self.candidates.push(Candidate {
                    doing: Doing::Waiting(run.kind),
                    site: Some(site),
                    wait: (run.kind == WaitKind::Disk && is_noted).then_some(run.longest),
                    window: run.window,
                    many: None,
                    looks: false,
                    timed_out: false,
                    starved: 0,
                });
                self.shrink();
            }
        }
    }

    pub(super) fn end_many(&mut self) {
        if let Some(work) = self.many.end() {
            self.add_many(work);
        }
    }

    fn add_many(&mut self, many: ManyWaits) {
        self.candidates.push(Candidate {
            window: many.window.clone(),
            doing: Doing::Many,
            many: Some(many),
            site: None,
            wait: None,
            looks: false,
            timed_out: false,
            starved: 0,
        });
        self.shrink();
    }

    pub(super) fn busy(&mut self, evidence: &Evidence<'_>, thread: Utid, interval: &Interval) {
        let is_denied = interval.state == State::Running
            && evidence.is_denied(thread, interval.start, interval.end);
        if is_denied || is_unseen(evidence, thread, interval) {
            return self.end_busy();
        }
        self.many.busy(interval);
        let window = interval.start..interval.end;
        let length = interval.duration();
        if interval.state.is_on_cpu() {
            self.series.busy(length);
        }
        let starved = if interval.state.wants_cpu() {
            length
        } else {
            0
        };
        let piece = Piece {
            window,
            busy: length,
            starved,
        };
        match &mut self.busy {
            Some(busy) => busy.append(piece),
            None => self.busy = Some(Busy::new(piece)),
        }
    }

    pub(super) fn end_busy(&mut self) {
        let Some(busy) = self.busy.take() else { return };
        for part in busy.parts().filter(|part| part.busy >= SHORTEST_NS) {
            self.candidates.push(Candidate {
                window: part.window,
                doing: Doing::Busy,
                site: None,
                wait: None,
                many: None,
                looks: false,
                timed_out: false,
                starved: part.starved,
            });
            self.shrink();
        }
    }

    /// Keeps memory bounded: only the longest can become problems.
    fn shrink(&mut self) {
        const MOST_CANDIDATES: usize = 4096;
        if self.candidates.len() > MOST_CANDIDATES {
            self.candidates
                .sort_by_key(|c| std::cmp::Reverse(c.window.end - c.window.start));
            self.candidates.truncate(MOST_CANDIDATES / 2);
        }
    }

    /// Whether the thread takes turns in an event loop. One that has others give it work, by a condition or a
    /// pipe, does so for somebody only if its program `serves`.
    pub(super) fn takes_turns(&self, serves: bool) -> bool {
        const POLLS: usize = 3;
        const TURNS: usize = 10;
        let last = self.turn.iter().map(|(_, turns)| turns);
        self.polls >= POLLS
            || serves && self.turns.values().chain(last).any(|&turns| turns >= TURNS)
    }

    /// Whether the thread comes back to one place again and again to wait for what it is to do next.
    pub(super) fn has_usual_place(&self) -> bool {
        const TIMES: u32 = 30;
        let times = |&at: &usize| self.counts[at].iter().sum::<u32>();
        let sites = self.lengths.iter().filter(|(site, _)| site.1 != NO_STACK);
        sites.map(|(_, at)| times(at)).any(|times| times >= TIMES)
    }

    /// Whether the thread does its work at a pace, frame by frame, and one of its turns was computed in a
    /// window: it slept briefly right before and right after.
    pub(super) fn is_frame(
        &self,
        evidence: &Evidence<'_>,
        thread: Utid,
        window: &Range<u64>,
    ) -> bool {
        const NAPS: usize = 10;
        self.naps >= NAPS && is_between_naps(evidence, thread, window)
    }

    /// Whether the thread waited often where this candidate is. Of one that waited already when the
    /// recording began, the stack was read in another way, and may be shorter: then its innermost functions
    /// tell.
    pub(super) fn is_often(&self, evidence: &Evidence<'_>, candidate: &Candidate) -> bool {
        const OFTEN: u32 = 3;
        const OFTEN_NEAR: u32 = 10;
        let Some(site) = candidate.site.filter(|_| !candidate.looks) else {
            return candidate.looks;
        };
        let times = |at: usize| self.counts[at].iter().sum::<u32>();
        let is_near =
            |other: Site| other.0 == site.0 && evidence.near(other.1) == evidence.near(site.1);
        let here = self
            .lengths
            .get(&site)
            .is_some_and(|&at| times(at) >= OFTEN);
        let nearby = || {
            let near = self.lengths.iter().filter(|&(&other, _)| is_near(other));
            near.map(|(_, &at)| times(at)).sum::<u32>() >= OFTEN_NEAR
        };
        here || candidate.window.start == 0 && evidence.near(site.1) != NO_STACK && nearby()
    }

    /// What waits at a site usually take, where there are enough to say: the lower bound of the
    /// median's power of two.
    pub(super) fn usual(&self) -> HashMap<Site, u64> {
        const ENOUGH: u32 = 3;
        self.lengths
            .iter()
            .filter_map(|(&site, &at)| {
                let counts = &self.counts[at];
                let total: u32 = counts.iter().sum();
                let mut below = 0;
                let median = counts.iter().position(|&count| {
                    below += count;
                    below * 2 >= total
                })?;
                (total >= ENOUGH).then_some((site, 1 << median))
            })
            .collect()
    }
}

/// Whether a wait is a short sleep, or a series of them.
fn is_nap(waiting: &Waiting) -> bool {
    let each = (waiting.to - waiting.from) / waiting.parts.max(1) as u64;
    matches!(waiting.wait.kind, WaitKind::Sleep | WaitKind::Timer) && each < NOTED_NS
}

/// Whether a thread sleeps briefly right before and right after a window.
pub(super) fn is_between_naps(evidence: &Evidence<'_>, thread: Utid, window: &Range<u64>) -> bool {
    /// Most intervals between the window and the sleep beside it: of them it is blocked in none.
    const NEAR: usize = 8;
    let intervals = evidence.timeline.intervals(thread);
    let is_nap = |at: usize| {
        let interval = intervals.get(at)?;
        (interval.state == State::Blocked).then(|| {
            let wait = Wait::new(evidence, thread, &interval);
            matches!(wait.kind, WaitKind::Sleep | WaitKind::Timer) && wait.duration() < NOTED_NS
        })
    };
    let (Some(first), Some(last)) = (
        intervals.index_at(window.start),
        intervals.index_at(window.end),
    ) else {
        return false;
    };
    let before = (0..first).rev().take(NEAR).find_map(is_nap);
    let after = (last..intervals.len()).take(NEAR).find_map(is_nap);
    before == Some(true) && after == Some(true)
}

/// Whether a timeout made a thread go on.
pub(super) fn is_timer(evidence: &Evidence<'_>, wake: usize) -> bool {
    Context::from(evidence.wakes.context[wake]).is_timer()
}

/// What a wait is for. One for several descriptors that names a single one is for what comes by
/// that.
fn asked_for(evidence: &Evidence<'_>, wait: &Wait) -> WaitKind {
    match (wait.kind, wait.object(evidence).kind()) {
        (WaitKind::Poll, ObjectKind::Pipe | ObjectKind::Unix | ObjectKind::Inet) => {
            WaitKind::Message
        }
        (kind, _) => kind,
    }
}

/// Whether a thread only seems to have been runnable since the recording began: it was found running
/// then, and is one whose leaving the CPU the kernel does not report, as some do of process 1.
fn is_unseen(evidence: &Evidence<'_>, thread: Utid, interval: &Interval) -> bool {
    const NEXT: usize = 8;
    const INIT: u32 = 1;
    if interval.start > 0 || interval.state != State::Runnable || interval.cause != Cause::Unknown {
        return false;
    }
    let intervals = evidence.timeline.intervals(thread);
    let is_init = evidence.threads.thread(thread).pid == INIT;
    let mut next = (1..=NEXT).filter_map(|at| intervals.get(at));
    is_init || next.any(|next| next.state == State::Blocked && next.cause == Cause::Unknown)
}

//! Blame that adds up: every nanosecond of a problem is attributed to exactly one thread and kind.
//!
//! [`walk`](crate::walk) makes it; here is what it consists of, and what can be asked of it.

use hangdog_graph::belief::Belief;
use hangdog_graph::{Edge, EdgeKind, Strength};
use hangdog_trace::ids::Utid;
use hangdog_trace::words::Left;
use std::collections::HashMap;
use std::ops::{Deref, Range};

use crate::kind::BlameKind;
use crate::problem::Problem;
use crate::shape::Shape;
use crate::stretch::Waiting;
use crate::thinned::Look;
use crate::verdict::BlameSpan;

/// A step down: a wait, and the thread that it leads to.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// The step above; none for the problem itself.
    pub above: Option<usize>,
    /// Who is looked at.
    pub thread: Utid,
    /// The wait above that led here, and how.
    pub reached: Option<(Waiting, Edge)>,
    /// Until when; and how many waits led here, where they are too short to be told apart, of
    /// which `reached` is the first.
    pub until: u64,
    pub times: usize,
    /// How likely it is that the edge is the cause, 0 to 1.
    pub probability: f64,
}

impl Step {
    /// How likely it is that its time belongs to the wait above, 0 to 1.
    pub(crate) fn likelihood(&self) -> f64 {
        let of_edge = self.reached.as_ref().map(|(_, edge)| of_edge(edge));
        self.probability * of_edge.unwrap_or(1.0)
    }
}

/// An interval of time with its blame; or the sum of many that are too short to be told apart.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    /// The step that it lies in.
    pub step: usize,
    /// Who is to blame.
    pub thread: Utid,
    /// When.
    pub parts: Parts,
    /// How many waits or yields it is.
    pub count: usize,
    pub kind: BlameKind,
    /// The wait that it is, if it is one, and what ended it.
    pub wait: Option<(Waiting, Edge)>,
    /// How likely it is that the wait ended by that, 0 to 1; 1 where it is no wait.
    pub probability: f64,
    /// How it left its CPU, where it wants one.
    pub left: Option<Left>,
}

impl Piece {
    /// Since when.
    pub(crate) fn from(&self) -> u64 {
        self.parts.iter().map(|part| part.start).min().unwrap_or(0)
    }

    /// Until when.
    pub(crate) fn to(&self) -> u64 {
        self.parts.iter().map(|part| part.end).max().unwrap_or(0)
    }

    /// How long, of all parts together.
    pub(crate) fn ns(&self) -> u64 {
        self.parts.ns
    }
}

/// Intervals of time, no two at one time: a wait has gaps where the thread looked, a sum has many. How
/// long they are together is kept, because a sum may have millions; of too many, some stand for all.
#[derive(Clone, Debug)]
pub(crate) struct Parts {
    all: Vec<Range<u64>>,
    ns: u64,
}

impl Parts {
    pub(crate) fn extend(&mut self, more: &Parts) {
        self.all.extend_from_slice(&more.all);
        self.ns += more.ns;
    }

    /// Counts so many ns more, for which the intervals stand.
    pub(crate) fn count_also(&mut self, ns: u64) {
        self.ns += ns;
    }

    /// How many times their own length the intervals stand for.
    pub(crate) fn stands_for(&self) -> f64 {
        let own: u64 = self.all.iter().map(|part| part.end - part.start).sum();
        self.ns as f64 / own.max(1) as f64
    }
}

impl From<Vec<Range<u64>>> for Parts {
    fn from(all: Vec<Range<u64>>) -> Parts {
        let ns = all.iter().map(|part| part.end - part.start).sum();
        Parts { all, ns }
    }
}

impl Deref for Parts {
    type Target = [Range<u64>];

    fn deref(&self) -> &[Range<u64>] {
        &self.all
    }
}

/// A wait of which it is not sure what ended it.
#[derive(Clone, Debug)]
pub(crate) struct Doubt {
    pub waiting: Waiting,
    pub shape: Shape,
    /// What may have ended it, the most likely first.
    pub beliefs: Vec<Belief>,
    /// Which of them is followed; none if the answer was that it is none of them.
    pub chosen: Option<usize>,
    /// The number of the answer that chose it.
    pub answer: Option<u32>,
}

/// A circle of waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Knot {
    pub threads: Vec<Utid>,
    pub duration: u64,
}

/// Where a problem's time went.
#[derive(Debug, Default)]
pub(crate) struct Blame {
    pub steps: Vec<Step>,
    pub pieces: Vec<Piece>,
    pub knots: Vec<Knot>,
    pub doubts: Vec<Doubt>,
    /// Threads of short-lived processes of which none took much, but all together did, by the thread
    /// that started them one after the other.
    pub(crate) starters: HashMap<Utid, Utid>,
    /// Times of which a sample was looked at, in order.
    pub(crate) thinned: Vec<Look>,
}

/// A circle counts as the cause from this share of the problem on.
const CIRCLE_SHARE: f64 = 0.5;

impl Blame {
    /// Notes that threads waited for each other for so long. One that looks now and then goes round the
    /// same circle again after each look.
    pub(crate) fn add_knot(&mut self, threads: Vec<Utid>, duration: u64) {
        match self.knots.iter_mut().find(|knot| knot.threads == threads) {
            Some(knot) => knot.duration += duration,
            None => self.knots.push(Knot { threads, duration }),
        }
    }

    /// The circle that most of the problem's time went round in.
    pub(crate) fn knot(&self, problem: &Problem) -> Option<&Knot> {
        let longest = self.knots.iter().max_by_key(|knot| knot.duration)?;
        let share = longest.duration as f64 / problem.duration().max(1) as f64;
        (share >= CIRCLE_SHARE).then_some(longest)
    }

    /// What each part of the time went to, in order; neighbours of one thread and kind are one.
    pub(crate) fn over_time(&self) -> Vec<BlameSpan> {
        let mut parts: Vec<(Range<u64>, &Piece)> = self
            .pieces
            .iter()
            .flat_map(|piece| piece.parts.iter().map(move |part| (part, piece)))
            .filter(|(part, _)| !part.is_empty())
            .map(|(part, piece)| (self.stretched(part), piece))
            .collect();
        // Stable, because that is quick where pieces are in order already.
        parts.sort_by_key(|(part, _)| part.start);
        let mut spans: Vec<BlameSpan> = Vec::new();
        for (part, piece) in parts {
            let span = BlameSpan {
                from_ns: part.start,
                to_ns: part.end,
                utid: piece.thread,
                kind: piece.kind.text(),
            };
            match spans.last_mut() {
                Some(last)
                    if last.to_ns == span.from_ns
                        && (last.utid, last.kind) == (span.utid, span.kind) =>
                {
                    last.to_ns = span.to_ns;
                }
                _ => spans.push(span),
            }
        }
        spans
    }

    /// How much time was not looked at, and is estimated from samples, ns.
    pub(crate) fn estimated_ns(&self) -> u64 {
        self.thinned.iter().map(Look::estimated_ns).sum()
    }

    /// A time as it is shown: a part of a sample is as long as what it stands for.
    fn stretched(&self, part: &Range<u64>) -> Range<u64> {
        let behind = (self.thinned).partition_point(|look| look.looked.start <= part.start);
        match behind.checked_sub(1).map(|at| &self.thinned[at]) {
            Some(look) if part.end <= look.looked.end => {
                look.stretched(part.start)..look.stretched(part.end)
            }
            _ => part.clone(),
        }
    }

    /// Who answers for a piece: its thread, or the one that started that among many.
    pub(crate) fn answerable(&self, piece: &Piece) -> Utid {
        let starter = self.starters.get(&piece.thread);
        starter.copied().unwrap_or(piece.thread)
    }

    /// How many waits led to a thread.
    pub(crate) fn visits(&self, thread: Utid) -> usize {
        let of_thread = self.steps.iter().filter(|step| step.thread == thread);
        of_thread.map(|step| step.times).sum()
    }

    /// The steps from the problem down to one of them.
    pub(crate) fn way_to(&self, step: usize) -> Vec<usize> {
        let mut way: Vec<usize> =
            std::iter::successors(Some(step), |&at| self.steps[at].above).collect();
        way.reverse();
        way
    }
}

/// How likely it is that the time of a wait belongs to whom its edge leads to.
pub(crate) fn of_edge(edge: &Edge) -> f64 {
    match (edge.kind, edge.strength) {
        (EdgeKind::Unknown, _) => 0.4,
        (EdgeKind::Habit | EdgeKind::Asked | EdgeKind::Amid | EdgeKind::Killed, _) => 0.5,
        (_, Strength::Weak) => 0.7,
        // Who ended, or sent a signal, may have been told to by whoever is the cause.
        (EdgeKind::Exit | EdgeKind::Kill | EdgeKind::Fork, _) => 0.8,
        (EdgeKind::Peer, _) => 0.85,
        (EdgeKind::Signal, _) => 0.95,
        (_, Strength::Strong) => 1.0,
    }
}

//! The lives of all threads cut into vertices: intervals that one event began and that go on to
//! the next one that may have another cause.
//!
//! A vertex is where it starts, the interval of the timeline that it starts in, and what began it;
//! it ends where the thread's next one starts, so that there is no gap and no overlap. The wait
//! that ends a vertex belongs to it: it is what the vertex came to.
//!
//! The cuts:
//! - *a wait*: a thread that was blocked was woken, or went on unseen;
//! - *a work item*: a worker took it up;
//! - *a batch*: it received after it had sent on another connection: a server turning to the next;
//! - *peers*: it sent to, or received from, others than the last time.
//!
//! The last two are guesses, made only between transfers of one vertex.

use rayon::prelude::*;
use std::iter::Peekable;
use std::ops::Range;

use hangdog_timeline::{Cause, Interval, State};
use hangdog_trace::ids::Utid;
use hangdog_trace::tables::{Transfers, Wakes};

use crate::async_work::{AsyncWork, TakenUp};
use crate::edge::EdgeKind;
use crate::evidence::Evidence;
use crate::message::Messages;

/// What began a vertex.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Begin {
    /// The thread's life, as far as it is in the trace.
    Life,
    /// The end of a wait.
    Wait,
    /// The taking up of a work item.
    WorkItem,
    /// A receive after a send on another connection.
    Batch,
    /// A transfer with others than the one before.
    Peers,
}

impl Begin {
    /// Every one, in the order of its number.
    pub const ALL: [Begin; 5] = [
        Begin::Life,
        Begin::Wait,
        Begin::WorkItem,
        Begin::Batch,
        Begin::Peers,
    ];

    /// The word that reports print.
    pub fn text(self) -> &'static str {
        match self {
            Begin::Life => "life",
            Begin::Wait => "wait",
            Begin::WorkItem => "work item",
            Begin::Batch => "batch",
            Begin::Peers => "peers",
        }
    }

    /// Whether the cut before it is a guess.
    pub fn is_guess(self) -> bool {
        matches!(self, Begin::Batch | Begin::Peers)
    }
}

/// Number of a vertex: those of a thread follow each other in order of time.
pub type VertexId = u32;
/// No vertex.
pub(crate) const NOWHERE: VertexId = VertexId::MAX;

/// All vertices, as columns in CSR form by thread.
#[derive(Debug, Default)]
pub struct Vertices {
    /// By utid, where its vertices begin; one more than there are threads.
    offsets: Vec<VertexId>,
    starts: Vec<u64>,
    /// The interval of its thread that it starts in.
    intervals: Vec<u32>,
    begins: Vec<Begin>,
    /// By utid.
    ends: Vec<u64>,
}

impl Vertices {
    /// Cuts the lives of all threads.
    pub(crate) fn new(
        evidence: &Evidence<'_>,
        messages: &Messages,
        async_work: &AsyncWork,
    ) -> Vertices {
        let timeline = evidence.timeline;
        let threads: Vec<Utid> = (0..timeline.threads().end).collect();
        let cut: Vec<Cutter> = threads
            .par_iter()
            .map(|&thread| {
                let mut cutter = Cutter {
                    wakes: evidence.wakes,
                    transfers: evidence.transfers,
                    messages,
                    starts: Vec::new(),
                    intervals: Vec::new(),
                    begins: Vec::new(),
                };
                cutter.cut(
                    timeline.intervals(thread).iter(),
                    messages.of_thread(thread),
                    async_work.taken_by(thread),
                );
                cutter
            })
            .collect();
        let count = cut.iter().map(|part| part.starts.len()).sum();
        let mut vertices = Vertices {
            offsets: Vec::with_capacity(cut.len() + 1),
            starts: Vec::with_capacity(count),
            intervals: Vec::with_capacity(count),
            begins: Vec::with_capacity(count),
            ends: threads.iter().map(|&t| timeline.life(t).end).collect(),
        };
        for part in cut {
            vertices.offsets.push(vertices.starts.len() as VertexId);
            vertices.starts.extend_from_slice(&part.starts);
            vertices.intervals.extend_from_slice(&part.intervals);
            vertices.begins.extend_from_slice(&part.begins);
        }
        vertices.offsets.push(vertices.starts.len() as VertexId);
        vertices
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// Every thread that can have vertices.
    pub fn threads(&self) -> Range<Utid> {
        0..self.ends.len() as Utid
    }

    /// The vertices of a thread.
    pub fn of_thread(&self, thread: Utid) -> Range<VertexId> {
        let at = thread as usize;
        match self.offsets.get(at..at.saturating_add(2)) {
            Some(&[from, to]) => from..to,
            _ => 0..0,
        }
    }

    /// Whose vertex it is.
    ///
    /// # Panics
    /// If there is no such vertex, as the functions below.
    pub fn thread(&self, vertex: VertexId) -> Utid {
        assert!((vertex as usize) < self.len());
        (self.offsets.partition_point(|&first| first <= vertex) - 1) as Utid
    }

    /// When it starts, ns since the trace's start.
    pub fn start(&self, vertex: VertexId) -> u64 {
        self.starts[vertex as usize]
    }

    /// When the thread's next one starts, or its life ends, ns since the trace's start.
    pub fn end(&self, vertex: VertexId) -> u64 {
        let thread = self.thread(vertex);
        match vertex + 1 == self.offsets[thread as usize + 1] {
            true => self.ends[thread as usize],
            false => self.starts[vertex as usize + 1],
        }
    }

    /// What began it.
    pub fn begin(&self, vertex: VertexId) -> Begin {
        self.begins[vertex as usize]
    }

    /// The index, among its thread's intervals, of the one that it starts in.
    pub fn interval(&self, vertex: VertexId) -> usize {
        self.intervals[vertex as usize] as usize
    }

    /// The vertex in which a thread is at `ts`; at the end of its life, its last.
    pub fn at(&self, thread: Utid, ts: u64) -> Option<VertexId> {
        let own = self.of_thread(thread);
        if own.is_empty() || ts > self.ends[thread as usize] {
            return None;
        }
        let starts = &self.starts[own.start as usize..own.end as usize];
        let before = starts
            .partition_point(|&start| start <= ts)
            .checked_sub(1)?;
        Some(own.start + before as VertexId)
    }

    /// As [`at`](Vertices::at) for each of many events in order of time, [`NOWHERE`] for none: a
    /// walk along all threads at once instead of a search for each.
    pub(crate) fn at_each(&self, threads: &[Utid], ts: &[u64]) -> Vec<VertexId> {
        let mut here: Vec<VertexId> = self.offsets.clone();
        threads
            .iter()
            .zip(ts)
            .map(|(&thread, &ts)| {
                let own = self.of_thread(thread);
                if own.is_empty() || ts > self.ends[thread as usize] {
                    return NOWHERE;
                }
                let at = &mut here[thread as usize];
                if self.starts[*at as usize] > ts {
                    // Before its first one, or events that are not in order.
                    return self.at(thread, ts).unwrap_or(NOWHERE);
                }
                while *at + 1 < own.end && self.starts[*at as usize + 1] <= ts {
                    *at += 1;
                }
                *at
            })
            .collect()
    }

    /// How many began with each cause, in the order of [`Begin::ALL`].
    pub fn count_by_begin(&self) -> [usize; Begin::ALL.len()] {
        let mut counts = [0; Begin::ALL.len()];
        for &begin in &self.begins {
            counts[begin as usize] += 1;
        }
        counts
    }
}

/// Cuts one thread's life.
struct Cutter<'a> {
    wakes: &'a Wakes,
    transfers: &'a Transfers,
    messages: &'a Messages,
    starts: Vec<u64>,
    intervals: Vec<u32>,
    begins: Vec<Begin>,
}

impl Cutter<'_> {
    fn cut(
        &mut self,
        intervals: impl Iterator<Item = Interval>,
        transfers: &[u32],
        async_work: impl Iterator<Item = TakenUp>,
    ) {
        let mut async_work = async_work
            .filter(|taken_up| taken_up.kind == EdgeKind::Work)
            .peekable();
        let mut before: Option<State> = None;
        let mut next = 0;
        // The last transfer of the vertex.
        let mut last = None;
        for (at, interval) in intervals.enumerate() {
            if before.is_none() {
                self.start(interval.start, at, Begin::Life);
            } else if self.ended_a_wait(before, at, &interval) {
                self.start(interval.start, at, Begin::Wait);
                last = None;
            }
            before = Some(interval.state);
            while let Some(&row) = transfers.get(next)
                && self.transfers.ts[row as usize] < interval.end
            {
                let row = row as usize;
                let ts = self.transfers.ts[row];
                if self.take_up(&mut async_work, at, &interval, ts) {
                    last = None;
                }
                // Only a damaged trace has transfers that are not in order.
                if let Some(begin) = last.and_then(|last| self.other_work(last, row))
                    && ts >= interval.start
                    && self.starts.last().is_some_and(|&start| start < ts)
                {
                    self.start(ts, at, begin);
                }
                last = Some(row);
                next += 1;
            }
            if self.take_up(&mut async_work, at, &interval, interval.end) {
                last = None;
            }
        }
    }

    /// Cuts at the work items that are taken up in the interval before `until`; whether there were
    /// any.
    fn take_up(
        &mut self,
        async_work: &mut Peekable<impl Iterator<Item = TakenUp>>,
        at: usize,
        interval: &Interval,
        until: u64,
    ) -> bool {
        let mut any = false;
        while let Some(taken_up) = async_work.next_if(|next| next.taken < until) {
            let is_new = self.starts.last().is_some_and(|&s| s < taken_up.taken);
            if is_new && taken_up.taken >= interval.start {
                self.start(taken_up.taken, at, Begin::WorkItem);
                any = true;
            }
        }
        any
    }

    fn start(&mut self, ts: u64, interval: usize, begin: Begin) {
        self.starts.push(ts);
        self.intervals.push(interval as u32);
        self.begins.push(begin);
    }

    /// Whether a wait ended where the interval begins. Of a wait that was over before the thread
    /// was off its CPU, only the wake is left. A new thread's first wake is its birth.
    fn ended_a_wait(&self, before: Option<State>, at: usize, interval: &Interval) -> bool {
        match interval.cause {
            Cause::Wake(row) => at > 1 || !self.wakes.new[row as usize],
            _ => before == Some(State::Blocked),
        }
    }

    /// What to call the cut between two transfers, if they are of different work.
    fn other_work(&self, last: usize, row: usize) -> Option<Begin> {
        let Transfers { object, sent, .. } = self.transfers;
        let other_peer = match (self.messages.peer(last), self.messages.peer(row)) {
            (Some(before), Some(now)) => before != now,
            _ => false,
        };
        if sent[last] && !sent[row] && object[last] != object[row] {
            // The same one may answer on a connection of its own.
            let peers_known = self.messages.peer(last).and(self.messages.peer(row));
            return (other_peer || peers_known.is_none()).then_some(Begin::Batch);
        }
        other_peer.then_some(Begin::Peers)
    }
}

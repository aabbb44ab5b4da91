//! The whole graph: vertices, and the edges that lead into each, as columns in CSR form.
//!
//! An edge stands for something that happened at one time: a wake that ended a wait, bytes that
//! were received, work that was taken up, a guess that cut a thread's life in two. It leads from
//! the vertex in which its thread caused it, or from what is no thread (a timer, a device), to the
//! vertex that it began or reached, and never back in time. What should have happened and did not
//! is no edge here; see [`ended_by`](crate::ended::ended_by).
//!
//! That a thread went on after a wait by itself is not kept as an edge: the vertex before is the
//! one with the number before.

use rayon::prelude::*;
use std::ops::Range;

use hangdog_timeline::{Cause, Interval, Intervals, State};
use hangdog_trace::SocketTable;
use hangdog_trace::ids::Utid;
use hangdog_trace::tables::{Handoffs, Losses};

use crate::async_work::{AsyncWork, TakenUp};
use crate::classify::classify;
use crate::edge::{EdgeKind, Source, Strength};
use crate::evidence::Evidence;
use crate::message::Messages;
use crate::vertex::{Begin, NOWHERE, VertexId, Vertices};
use crate::wait::Wait;

/// Where an edge comes from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Origin {
    /// What a thread did.
    Vertex(VertexId),
    /// A timer.
    Timer,
    /// A block device.
    Disk,
    /// The network.
    Network,
    /// A device, by interrupt number.
    Device(u16),
    /// The trace does not say.
    Nobody,
}

impl Origin {
    /// In 32 bits: numbers that vertices do not reach stand for the others.
    fn pack(self) -> u32 {
        match self {
            Origin::Vertex(vertex) => vertex,
            Origin::Device(number) => DEVICES + u32::from(number),
            Origin::Timer => DEVICES - 4,
            Origin::Disk => DEVICES - 3,
            Origin::Network => DEVICES - 2,
            Origin::Nobody => DEVICES - 1,
        }
    }

    fn unpack(packed: u32) -> Origin {
        match packed {
            DEVICES.. => Origin::Device((packed - DEVICES) as u16),
            NOBODY => Origin::Nobody,
            NETWORK => Origin::Network,
            DISK => Origin::Disk,
            TIMER => Origin::Timer,
            vertex => Origin::Vertex(vertex),
        }
    }
}

const DEVICES: u32 = u32::MAX - u16::MAX as u32;
const NOBODY: u32 = DEVICES - 1;
const NETWORK: u32 = DEVICES - 2;
const DISK: u32 = DEVICES - 3;
const TIMER: u32 = DEVICES - 4;

/// The event that an edge is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Event {
    /// Row of `wakes`.
    Wake(u32),
    /// Row of `transfers`: the send.
    Transfer(u32),
    /// Row of `handoffs`: the handing over.
    Handoff(u32),
    /// None: the edge is a guess.
    Guess,
}

/// Which table an edge's row is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum RowOf {
    Wakes,
    Transfers,
    Handoffs,
    None,
}

/// One edge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrow {
    /// How the cause reached its effect.
    pub kind: EdgeKind,
    /// How surely it is the cause.
    pub strength: Strength,
    /// What caused it.
    pub from: Origin,
    /// What it began or reached.
    pub to: VertexId,
    /// When, ns since the trace's start.
    pub ts: u64,
    /// Its row.
    pub event: Event,
}

/// All edges, by the vertex that they lead to.
#[derive(Debug, Default)]
pub struct Edges {
    /// By vertex, where its edges begin; one more than there are vertices.
    offsets: Vec<u32>,
    from: Vec<u32>,
    kinds: Vec<EdgeKind>,
    strengths: Vec<Strength>,
    ts: Vec<u64>,
    /// Rows of the tables that `tables` tell.
    rows: Vec<u32>,
    tables: Vec<RowOf>,
}

impl Edges {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.from.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.from.is_empty()
    }

    /// The edges that lead to a vertex: what began it first, then what came to it, in order of time.
    pub fn leading_to(&self, vertex: VertexId) -> impl ExactSizeIterator<Item = Arrow> + '_ {
        let at = vertex as usize;
        let range = match self.offsets.get(at..at + 2) {
            Some(&[from, to]) => from as usize..to as usize,
            _ => 0..0,
        };
        range.map(move |at| self.arrow(at, vertex))
    }

    fn arrow(&self, at: usize, to: VertexId) -> Arrow {
        Arrow {
            kind: self.kinds[at],
            strength: self.strengths[at],
            from: Origin::unpack(self.from[at]),
            to,
            ts: self.ts[at],
            event: match self.tables[at] {
                RowOf::Wakes => Event::Wake(self.rows[at]),
                RowOf::Transfers => Event::Transfer(self.rows[at]),
                RowOf::Handoffs => Event::Handoff(self.rows[at]),
                RowOf::None => Event::Guess,
            },
        }
    }

    /// Kind and strength of every edge.
    pub fn kinds(&self) -> impl Iterator<Item = (EdgeKind, Strength)> + '_ {
        let strengths = self.strengths.iter().copied();
        self.kinds.iter().copied().zip(strengths)
    }

    fn push(&mut self, arrow: &Arrow) {
        self.from.push(arrow.from.pack());
        self.kinds.push(arrow.kind);
        self.strengths.push(arrow.strength);
        self.ts.push(arrow.ts);
        let (row, table) = match arrow.event {
            Event::Wake(row) => (row, RowOf::Wakes),
            Event::Transfer(row) => (row, RowOf::Transfers),
            Event::Handoff(row) => (row, RowOf::Handoffs),
            Event::Guess => (0, RowOf::None),
        };
        self.rows.push(row);
        self.tables.push(table);
    }

    /// Puts another's edges behind; they lead to the vertices that follow.
    fn append(&mut self, other: &Edges) {
        let before = self.from.len() as u32;
        self.offsets
            .extend(other.offsets.iter().map(|&offset| before + offset));
        self.from.extend_from_slice(&other.from);
        self.kinds.extend_from_slice(&other.kinds);
        self.strengths.extend_from_slice(&other.strengths);
        self.ts.extend_from_slice(&other.ts);
        self.rows.extend_from_slice(&other.rows);
        self.tables.extend_from_slice(&other.tables);
    }
}

/// What became of the wakes of a trace; together they are all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WakeCounts {
    /// Edges.
    pub edges: usize,
    /// Of threads by which the kernel keeps itself going: left out.
    pub upkeep: usize,
    /// Of threads that did not wait: they caused nothing.
    pub moot: usize,
}

/// Vertices, edges, and the messages that some of them are.
#[derive(Debug)]
pub struct Graph {
    /// The intervals of all threads' lives.
    pub vertices: Vertices,
    /// What led to each.
    pub edges: Edges,
    /// Sends and receives.
    pub messages: Messages,
    /// What became of the wakes.
    pub wakes: WakeCounts,
}

/// What a graph is made from beside the evidence.
#[derive(Clone, Copy, Debug)]
pub struct Sources<'a> {
    /// What was lost.
    pub losses: &'a Losses,
    /// Which ends of connections belong together.
    pub sockets: &'a SocketTable,
    /// Work, signals and timers on their way.
    pub handoffs: &'a Handoffs,
}

impl Graph {
    /// Builds the graph of a trace.
    pub fn new(evidence: &Evidence<'_>, sources: Sources<'_>) -> Graph {
        let (wakes, transfers) = (evidence.wakes, evidence.transfers);
        let threads = evidence.timeline.threads().end as usize;
        let (messages, async_work) = rayon::join(
            || Messages::new(evidence, sources.losses, sources.sockets),
            || AsyncWork::new(sources.handoffs, wakes, threads),
        );
        let vertices = Vertices::new(evidence, &messages, &async_work);
        let (wakers, senders) = rayon::join(
            || vertices.at_each(&wakes.waker, &wakes.ts),
            || vertices.at_each(&transfers.thread, &transfers.ts),
        );
        let builder = Builder {
            evidence,
            handoffs: sources.handoffs,
            messages: &messages,
            async_work: &async_work,
            vertices: &vertices,
            wakers,
            senders,
        };
        let threads: Vec<Utid> = vertices.threads().collect();
        let parts: Vec<(Edges, WakeCounts)> = threads
            .par_iter()
            .map(|&thread| builder.edges_of(thread))
            .collect();
        let mut edges = Edges::default();
        let mut counts = WakeCounts::default();
        for (part, counted) in parts {
            edges.append(&part);
            counts.edges += counted.edges;
            counts.upkeep += counted.upkeep;
        }
        edges.offsets.push(edges.from.len() as u32);
        counts.moot = wakes.len() - counts.edges - counts.upkeep;
        drop(builder);
        Graph {
            vertices,
            edges,
            messages,
            wakes: counts,
        }
    }
}

/// What edges are made from.
struct Builder<'a> {
    evidence: &'a Evidence<'a>,
    handoffs: &'a Handoffs,
    messages: &'a Messages,
    async_work: &'a AsyncWork,
    vertices: &'a Vertices,
    /// By row of `wakes`, the vertex in which the waker was.
    wakers: Vec<VertexId>,
    /// By row of `transfers`, likewise.
    senders: Vec<VertexId>,
}

impl Builder<'_> {
    /// The edges that lead to the vertices of one thread.
    fn edges_of(&self, thread: Utid) -> (Edges, WakeCounts) {
        let (mut edges, mut counts) = (Edges::default(), WakeCounts::default());
        let intervals = self.evidence.timeline.intervals(thread);
        let life_end = self.evidence.timeline.life(thread).end;
        let Range { start, end } = self.vertices.of_thread(thread);
        let transfers = self.evidence.transfers;
        let mut rows = self.messages.of_thread(thread).iter().peekable();
        let mut taken = self.async_work.taken_by(thread).peekable();
        let mut received = Vec::new();
        for vertex in start..end {
            edges.offsets.push(edges.from.len() as u32);
            let wake = match self.vertices.begin(vertex) {
                Begin::Wait => {
                    (intervals.get(self.vertices.interval(vertex))).and_then(|it| it.wake())
                }
                Begin::Life => self.born_by(&intervals),
                Begin::WorkItem | Begin::Batch | Begin::Peers => None,
            };
            let first = match (wake, self.vertices.begin(vertex)) {
                (Some(row), _) if self.evidence.is_upkeep(row) => {
                    counts.upkeep += 1;
                    None
                }
                (Some(row), _) => {
                    counts.edges += 1;
                    Some(self.wake(thread, &intervals, vertex, row))
                }
                (None, begin) if begin.is_guess() => Some(Arrow {
                    kind: EdgeKind::Next,
                    strength: Strength::Weak,
                    from: Origin::Vertex(vertex - 1),
                    to: vertex,
                    ts: self.vertices.start(vertex),
                    event: Event::Guess,
                }),
                _ => None,
            };
            if let Some(first) = &first {
                edges.push(first);
            }
            let vertex_end = match vertex + 1 == end {
                true => life_end.saturating_add(1),
                false => self.vertices.start(vertex + 1),
            };
            while let Some(&row) = rows.next_if(|&&row| transfers.ts[row as usize] < vertex_end) {
                self.receive(vertex, row as usize, first.as_ref(), &mut received);
            }
            while let Some(taken_up) = taken.next_if(|taken_up| taken_up.taken < vertex_end) {
                let arrow = self.done_for(vertex, &taken_up);
                received.extend(arrow.filter(|arrow| !is_same(arrow, first.as_ref())));
            }
            // The same sender's vertex may have sent often: its first message stands for all.
            let key = |arrow: &Arrow| (arrow.from.pack(), arrow.kind as u8);
            received.sort_by_key(|arrow: &Arrow| (key(arrow), arrow.ts));
            received.dedup_by_key(|arrow| key(arrow));
            received.sort_by_key(|arrow| arrow.ts);
            received.drain(..).for_each(|arrow| edges.push(&arrow));
        }
        (edges, counts)
    }

    /// The wake by which a thread's life began, if it did in the trace.
    fn born_by(&self, intervals: &Intervals<'_>) -> Option<usize> {
        (0..2)
            .find_map(|at| intervals.get(at)?.wake())
            .filter(|&row| self.evidence.wakes.new[row])
    }

    fn wake(&self, thread: Utid, intervals: &Intervals<'_>, vertex: VertexId, row: usize) -> Arrow {
        let wait = self.wait_before(thread, intervals, self.vertices.interval(vertex));
        let (kind, strength, source) = classify(self.evidence, &wait, row);
        let wakes = self.evidence.wakes;
        // Of a birth, the wake lies in the vertex; otherwise it begins it. Only a damaged trace
        // has it later.
        let latest = match self.vertices.begin(vertex) {
            Begin::Life => self.vertices.end(vertex),
            _ => self.vertices.start(vertex),
        };
        let ts = wakes.ts[row].min(latest);
        let from = match source {
            // Another thread than the waker may stand for it, or the row's time may be out of order.
            Source::Thread(cause) => {
                let at = match ts == wakes.ts[row] && cause == wakes.waker[row] {
                    true => Some(self.wakers[row]).filter(|&at| at != NOWHERE),
                    false => self.vertices.at(cause, ts),
                };
                at.map_or(Origin::Nobody, Origin::Vertex)
            }
            Source::Timer => Origin::Timer,
            Source::Disk => Origin::Disk,
            Source::Network => Origin::Network,
            Source::Device(number) => Origin::Device(number),
            Source::Nobody => Origin::Nobody,
        };
        Arrow {
            kind,
            strength,
            from,
            to: vertex,
            ts,
            event: Event::Wake(row as u32),
        }
    }

    /// The wait that ended where an interval begins. One that was over before the thread was off
    /// its CPU has no interval, but the switch is there.
    fn wait_before(&self, thread: Utid, intervals: &Intervals<'_>, at: usize) -> Wait {
        let before = at.checked_sub(1).and_then(|at| intervals.get(at));
        let blocked = before.filter(|interval| interval.state == State::Blocked);
        let interval = blocked.unwrap_or_else(|| {
            let ts = intervals.get(at).map_or(0, |interval| interval.start);
            let switches = self.evidence.switches;
            let first = switches.ts.partition_point(|&before| before < ts);
            let switch = (first..switches.len())
                .take_while(|&row| switches.ts[row] == ts)
                .find(|&row| switches.prev[row] == thread);
            Interval {
                start: ts,
                end: ts,
                state: State::Blocked,
                cause: switch.map_or(Cause::Unknown, |row| Cause::Switch(row as u32)),
            }
        });
        Wait::new(self.evidence, thread, &interval)
    }

    /// Adds the edges of a transfer, if it is a receive, except one that `first` is already.
    fn receive(
        &self,
        vertex: VertexId,
        row: usize,
        first: Option<&Arrow>,
        received: &mut Vec<Arrow>,
    ) {
        let transfers = self.evidence.transfers;
        for &send in self.messages.senders_of(row) {
            let sent = transfers.ts[send as usize];
            // A send is stamped when its call returns: the receiver may have been faster.
            let ts = sent.min(transfers.ts[row]);
            let from = match ts == sent {
                true => Some(self.senders[send as usize]).filter(|&at| at != NOWHERE),
                false => self.vertices.at(transfers.thread[send as usize], ts),
            };
            let Some(from) = from.filter(|&from| from != vertex) else {
                continue;
            };
            let from = Origin::Vertex(from);
            let is_doubtful = transfers.ts[row].max(sent) >= self.messages.doubtful_from();
            let arrow = Arrow {
                kind: EdgeKind::Message,
                strength: match is_doubtful {
                    true => Strength::Weak,
                    false => Strength::Strong,
                },
                from,
                to: vertex,
                ts,
                event: Event::Transfer(send),
            };
            if !is_same(&arrow, first) {
                received.push(arrow);
            }
        }
    }

    /// The edge of what a thread took up in a vertex.
    fn done_for(&self, vertex: VertexId, taken_up: &TakenUp) -> Option<Arrow> {
        let row = taken_up.row as usize;
        let ts = self.handoffs.ts[row];
        let from = self.vertices.at(self.handoffs.thread[row], ts)?;
        (from != vertex).then_some(Arrow {
            kind: taken_up.kind,
            strength: Strength::Strong,
            from: Origin::Vertex(from),
            to: vertex,
            ts,
            event: Event::Handoff(taken_up.row),
        })
    }
}

/// Whether what began the vertex is the same edge already.
fn is_same(arrow: &Arrow, first: Option<&Arrow>) -> bool {
    first.is_some_and(|first| (first.kind, first.from) == (arrow.kind, arrow.from))
}

//! What holds of the graph of any trace, sound or damaged.

mod common;

use common::Recording;
use hangdog_graph::ended::ended_by;
use hangdog_graph::graph::Event;
use hangdog_graph::part::{Part, Shown, View};
use hangdog_graph::{Begin, EdgeKind, Graph, Origin, Source, Sources, WaitKind, dot};
use hangdog_timeline::{Cause, State};
use hangdog_trace::tables::*;
use hangdog_trace::text::TextTrace;
use hangdog_trace::{SocketTable, Tables};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Times close enough to each other to meet.
fn ts() -> impl Strategy<Value = u64> {
    prop_oneof![20 => 0..2_000_u64, 1 => any::<u64>().prop_map(|ts| ts >> 8)]
}

/// A few threads that meet each other, and rarely one that cannot be.
fn thread() -> impl Strategy<Value = u32> {
    prop_oneof![30 => 0..6_u32, 1 => any::<u32>()]
}

/// A few ends that are each other's peers, and others.
fn end() -> impl Strategy<Value = u64> {
    prop_oneof![
        10 => (1..5_u64).prop_map(|inode| 3 << 56 | inode),
        3 => Just(2 << 56 | 9),
        1 => any::<u64>(),
        1 => Just(0),
    ]
}

const CALLS: [i16; 12] = [-2, -1, 0, 1, 7, 35, 44, 45, 56, 60, 62, 202];

fn call() -> impl Strategy<Value = i16> {
    prop::sample::select(CALLS.to_vec())
}

fn switch() -> impl Strategy<Value = Switch> {
    (
        ts(),
        0..2_u16,
        thread(),
        thread(),
        0..9_u8,
        call(),
        end(),
        thread(),
    )
        .prop_map(|(ts, cpu, prev, next, left, call, object, holder)| Switch {
            ts,
            cpu,
            prev,
            next,
            left,
            next_priority: 120,
            call,
            object,
            arg: 0,
            holder,
            user_stack: 0,
            kernel_stack: 0,
        })
}

fn wake() -> impl Strategy<Value = Wake> {
    let who = (ts(), thread(), thread(), 0..6_u8, 0..6_u16, any::<bool>());
    (who, call(), end()).prop_map(
        |((ts, waker, wakee, context, vector, new), call, object)| Wake {
            ts,
            cpu: 0,
            waker,
            wakee,
            context,
            vector,
            new,
            call,
            object,
            arg: 1,
            user_stack: 0,
            kernel_stack: 0,
        },
    )
}

fn transfer() -> impl Strategy<Value = Transfer> {
    (ts(), thread(), end(), end(), any::<bool>(), 0..60_u32).prop_map(
        |(ts, thread, object, peer, sent, bytes)| Transfer {
            ts,
            thread,
            object,
            peer,
            sent,
            bytes,
        },
    )
}

fn handoff() -> impl Strategy<Value = Handoff> {
    let what = (0..6_u8, 0..5_u8, 0..3_u64);
    (ts(), 0..2_u16, thread(), 0..5_u8, what).prop_map(
        |(ts, cpu, thread, context, (kind, step, key))| Handoff {
            ts,
            cpu,
            thread,
            context,
            kind,
            step,
            key,
            object: 0,
            other: u32::MAX,
            frame: u32::MAX,
            detail: 0,
        },
    )
}

fn step() -> impl Strategy<Value = LifecycleEvent> {
    (ts(), 0..5_u8, thread(), 0..3_u32, thread()).prop_map(|(ts, kind, thread, process, parent)| {
        LifecycleEvent {
            ts,
            kind,
            thread,
            process,
            tid: thread,
            pid: process,
            parent,
            name: "rcu_name\"\n".chars().skip(thread as usize % 5).collect(),
            detail: String::new(),
        }
    })
}

/// Tables of any content, in order of time as a trace's are when they are read.
fn tables() -> impl Strategy<Value = Tables> {
    let rows = 0..60_usize;
    (
        prop::collection::vec(switch(), rows.clone()),
        prop::collection::vec(wake(), rows.clone()),
        prop::collection::vec(transfer(), rows.clone()),
        prop::collection::vec(handoff(), rows),
        prop::collection::vec(step(), 0..8),
        any::<bool>(),
    )
        .prop_map(
            |(mut switches, mut wakes, mut transfers, mut handoffs, steps, sorted)| {
                if sorted {
                    switches.sort_by_key(|row| row.ts);
                    wakes.sort_by_key(|row| row.ts);
                    transfers.sort_by_key(|row| row.ts);
                    handoffs.sort_by_key(|row| row.ts);
                }
                Tables {
                    switches: switches.into_iter().collect(),
                    wakes: wakes.into_iter().collect(),
                    transfers: transfers.into_iter().collect(),
                    handoffs: handoffs.into_iter().collect(),
                    lifecycle: steps.into_iter().collect(),
                    ..Tables::default()
                }
            },
        )
}

fn recording(tables: Tables) -> Recording {
    Recording::new(TextTrace {
        tables,
        ..TextTrace::default()
    })
}

fn graph(recording: &Recording) -> Graph {
    let sources = Sources {
        losses: &Losses::default(),
        sockets: &SocketTable::default(),
        handoffs: &recording.trace.tables.handoffs,
    };
    Graph::new(&recording.evidence(), sources)
}

proptest! {
    /// A thread's vertices begin where its life does, follow each other, and end where it ends;
    /// none is empty, and each starts in the interval that it names.
    #[test]
    fn vertices_cover_lives(tables in tables()) {
        let recording = recording(tables);
        let graph = graph(&recording);
        for thread in recording.timeline.threads() {
            let life = recording.timeline.life(thread);
            let intervals = recording.timeline.intervals(thread);
            let mut at = life.start;
            for vertex in graph.vertices.of_thread(thread) {
                prop_assert_eq!(graph.vertices.thread(vertex), thread);
                prop_assert_eq!(graph.vertices.start(vertex), at);
                prop_assert!(graph.vertices.end(vertex) > at);
                prop_assert_eq!(graph.vertices.at(thread, at), Some(vertex));
                let interval = intervals.get(graph.vertices.interval(vertex));
                prop_assert!(interval.is_some_and(|i| i.start <= at && at < i.end));
                at = graph.vertices.end(vertex);
            }
            prop_assert_eq!(at, life.end);
        }
    }

    /// No edge runs back in time: its vertex has started when it leaves, and it arrives before its
    /// target ends, or where it ended a wait, begins. Messages from one vertex to another are one
    /// edge, each wake is one at most, and no wake is forgotten.
    #[test]
    fn edges_go_forwards(tables in tables()) {
        let recording = recording(tables);
        let graph = graph(&recording);
        let mut wakes = BTreeSet::new();
        let mut count = 0;
        for vertex in 0..graph.vertices.len() as u32 {
            let mut senders = Vec::new();
            for arrow in graph.edges.leading_to(vertex) {
                count += 1;
                prop_assert_eq!(arrow.to, vertex);
                prop_assert!(arrow.ts <= graph.vertices.end(vertex));
                if let Origin::Vertex(from) = arrow.from {
                    prop_assert_ne!(from, vertex);
                    prop_assert!(graph.vertices.start(from) <= arrow.ts);
                    prop_assert!(arrow.ts <= graph.vertices.end(from));
                }
                match arrow.event {
                    Event::Wake(row) => {
                        prop_assert!(wakes.insert(row));
                        let begin = graph.vertices.begin(vertex);
                        prop_assert!(begin == Begin::Life || arrow.ts <= graph.vertices.start(vertex));
                    }
                    Event::Transfer(_) | Event::Handoff(_) => {
                        let sender = (arrow.from, arrow.kind);
                        prop_assert!(!senders.contains(&sender));
                        senders.push(sender);
                    }
                    Event::Guess => prop_assert_eq!(arrow.kind, EdgeKind::Next),
                }
            }
        }
        prop_assert_eq!(count, graph.edges.len());
        prop_assert_eq!(wakes.len(), graph.wakes.edges);
        let counted = graph.wakes.edges + graph.wakes.upkeep + graph.wakes.moot;
        prop_assert_eq!(counted, recording.trace.tables.wakes.len());
    }

    /// No byte is in two messages: of what a send put in, no more is taken than that.
    #[test]
    fn bytes_are_kept(tables in tables()) {
        let recording = recording(tables);
        let graph = graph(&recording);
        let transfers = &recording.trace.tables.transfers;
        let bytes = |rows: &[u32]| -> u64 {
            rows.iter().map(|&row| u64::from(transfers.bytes[row as usize])).sum()
        };
        for row in 0..transfers.len() {
            let own = u64::from(transfers.bytes[row]);
            // All but the outermost of those that it met belong to it alone.
            let met = [graph.messages.senders_of(row), graph.messages.receivers_of(row)];
            for met in met {
                let inner = met.get(1..met.len().saturating_sub(1)).unwrap_or_default();
                prop_assert!(bytes(inner) <= own);
                for &other in met {
                    let other = other as usize;
                    let back = match transfers.sent[row] {
                        true => graph.messages.senders_of(other),
                        false => graph.messages.receivers_of(other),
                    };
                    prop_assert!(back.contains(&(row as u32)));
                }
            }
        }
    }

    /// An edge for a wake is what a diagnosis that asks for that wait is told, unless it is told
    /// of one that should have come instead.
    #[test]
    fn edges_agree_with_reasons(tables in tables()) {
        let recording = recording(tables);
        let (evidence, graph) = (recording.evidence(), graph(&recording));
        for thread in recording.timeline.threads() {
            for (wait, wake) in recording.waits(thread) {
                let Some(row) = wake else { continue };
                let told = ended_by(&evidence, &wait, Some(row));
                let of_row = |arrow: &hangdog_graph::Arrow| arrow.event == Event::Wake(row as u32);
                let vertex = graph.vertices.at(thread, wait.end);
                let arrow = vertex.and_then(|v| graph.edges.leading_to(v).find(of_row));
                let Some(arrow) = arrow else { continue };
                if told.source == Source::Nobody
                    && (told.wake.is_none() || wait.kind == WaitKind::Stopped)
                {
                    // The wake only made the thread die, or go on where it had been stopped.
                    continue;
                }
                if matches!(
                    told.kind,
                    EdgeKind::Holder | EdgeKind::Awaited | EdgeKind::Peer | EdgeKind::Network
                )
                    || recording.trace.tables.wakes.new[row]
                {
                    continue;
                }
                prop_assert_eq!((arrow.kind, arrow.strength), (told.kind, told.strength));
                let same_origin = match (arrow.from, told.source) {
                    (Origin::Vertex(from), Source::Thread(by)) => graph.vertices.thread(from) == by,
                    (Origin::Timer, Source::Timer) | (Origin::Disk, Source::Disk) => true,
                    (Origin::Network, Source::Network) | (Origin::Nobody, _) => true,
                    (Origin::Device(a), Source::Device(b)) => a == b,
                    _ => false,
                };
                prop_assert!(same_origin, "{:?} {:?}", arrow.from, told.source);
            }
        }
    }

    /// A thread is cut exactly where it was blocked or woken, and at transfers.
    #[test]
    fn cuts_have_causes(tables in tables()) {
        let recording = recording(tables);
        let graph = graph(&recording);
        for thread in recording.timeline.threads() {
            let intervals: Vec<_> = recording.timeline.intervals(thread).iter().collect();
            let waited = intervals.windows(2).enumerate().filter(|(at, pair)| {
                match pair[1].cause {
                    Cause::Wake(row) => *at > 0 || !recording.trace.tables.wakes.new[row as usize],
                    _ => pair[0].state == State::Blocked,
                }
            });
            let cuts = graph.vertices.of_thread(thread);
            let cuts = cuts.filter(|&v| graph.vertices.begin(v) == Begin::Wait).count();
            prop_assert_eq!(cuts, waited.count());
        }
    }

    /// A part shows no more than was asked for and every vertex of a shown thread's window once,
    /// drawn or folded; its drawing names no node that it does not have.
    #[test]
    fn parts_are_whole(
        tables in tables(),
        from in 0..2_000_u64,
        length in 1..2_000_u64,
        most in 1..20_usize,
    ) {
        let recording = recording(tables);
        let graph = graph(&recording);
        let view = View { thread: 1, window: from..from + length, depth: 3, most };
        let part = Part::new(&graph, &view);
        let mut shown = BTreeSet::new();
        for (&thread, row) in &part.rows {
            let mut next = None;
            for place in row {
                let range = match place {
                    Shown::Vertex(vertex) => *vertex..vertex + 1,
                    Shown::Folded(range) => range.clone(),
                };
                prop_assert!(next.is_none_or(|next| next == range.start));
                prop_assert!(!range.is_empty());
                next = Some(range.end);
                if let Shown::Vertex(vertex) = place {
                    prop_assert_eq!(graph.vertices.thread(*vertex), thread);
                    shown.insert(*vertex);
                }
            }
        }
        prop_assert!(shown.len() <= most);
        let drawing = dot::draw(&recording.evidence(), &graph, &part);
        let opened = drawing.matches('{').count();
        prop_assert_eq!(opened, drawing.matches('}').count());
        for arrow in &part.arrows {
            prop_assert!(shown.contains(&arrow.to));
        }
    }
}

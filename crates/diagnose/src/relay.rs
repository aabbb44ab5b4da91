//! Work that a server's event loop had another do for an answer, while it served others.
//!
//! A server that takes turns for many clients waits only moments between them, whoever works on what one
//! client waits for. So its own timeline says nothing of that: what it asked for an answer is found backwards
//! from the answer. The turn in which it gave that began when somebody brought something; whom it had asked
//! before, worked on it since.

use hangdog_graph::ended::ended_by;
use hangdog_graph::{Edge, EdgeKind, Evidence, Source, Strength, Wait, WaitKind};
use hangdog_timeline::State;
use hangdog_trace::calls::Call;
use hangdog_trace::ids::Utid;
use std::ops::Range;

use crate::owed::is_home;
use crate::stretch::{Waiting, wake_of};

/// So many intervals of the server are looked at, from the answer back: a turn has few.
const MOST_STEPS: usize = 256;

/// A server may have asked the other so long before its client began to wait, ns.
const SOON_NS: u64 = 10_000_000;

/// Work of another for an answer.
pub(crate) struct Relay {
    /// Who worked.
    pub worker: Utid,
    /// From when it was asked until it brought what the server made its answer of.
    pub window: Range<u64>,
    /// The server's wait for that.
    pub waiting: Waiting,
    /// By what it ended.
    pub edge: Edge,
}

/// Who worked for an answer that `server` gave at `until`, for most of `parts`, in which it served others too.
pub(crate) fn of(
    evidence: &Evidence<'_>,
    server: Utid,
    parts: &[Range<u64>],
    until: u64,
) -> Option<Relay> {
    let from = parts.first()?.start;
    let intervals = evidence.timeline.intervals(server);
    let last = intervals.index_at(until)?;
    let mut turns = (0..=last).rev().take(MOST_STEPS).filter_map(|at| {
        let interval = intervals.get(at)?;
        if interval.state != State::Blocked || interval.end > until || interval.start < from {
            return None;
        }
        let wait = Wait::new(evidence, server, &interval);
        let is_turn = matches!(wait.kind, WaitKind::Poll | WaitKind::Idle);
        (is_turn || is_home(evidence, &wait)).then_some((at, wait))
    });
    let (at, wait) = turns.next()?;
    turns.next()?;
    let wake = wake_of(evidence, server, &intervals.get(at + 1)?)?;
    let edge = ended_by(evidence, &wait, Some(wake));
    let Source::Thread(worker) = edge.source else {
        return None;
    };
    let is_answer = matches!(
        edge.kind,
        EdgeKind::Message | EdgeKind::Exit | EdgeKind::Signal
    );
    if worker == server || edge.strength != Strength::Strong || !is_answer {
        return None;
    }
    let since = from.saturating_sub(SOON_NS);
    let asked = asked_at(evidence, server, worker, since..wait.end)?.max(from);
    let window = asked..wait.end;
    let total: u64 = parts.iter().map(|part| part.end - part.start).sum();
    if (window.end - window.start) * 2 < total {
        return None;
    }
    let wait = Wait {
        start: asked,
        ..wait
    };
    Some(Relay {
        worker,
        waiting: Waiting {
            from: asked,
            to: window.end,
            wait,
            wake: Some(wake),
            parts: 1,
            cried_wolf: 0,
            timed_out: 0,
            made_room: 0,
        },
        window,
        edge,
    })
}

/// When a server asked a worker last within a time: it sent something to its process, woke it, or had it born.
fn asked_at(
    evidence: &Evidence<'_>,
    server: Utid,
    worker: Utid,
    within: Range<u64>,
) -> Option<u64> {
    let process = |thread: Utid| evidence.threads.thread(thread).upid;
    let is_of_worker = |other: Utid| match process(worker) == process(server) {
        true => other == worker,
        false => process(other) == process(worker),
    };
    let wakes = evidence.wakes;
    // Who reads only makes room for more.
    let asks = |&row: &usize| {
        is_of_worker(wakes.wakee[row]) && evidence.call(wakes.call[row]) != Call::Read
    };
    let woken = evidence
        .wakes_by(server, within.start, within.end)
        .filter(asks)
        .last()
        .map(|row| wakes.ts[row]);
    let sent = evidence.last_sent_to(server, process(worker), within.clone());
    let birth = evidence.timeline.life(worker).start;
    let parent = evidence.threads.process_of(worker).parent;
    let is_child = parent == process(server) && within.contains(&birth);
    woken.max(sent).max(is_child.then_some(birth))
}

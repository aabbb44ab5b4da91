//! Work that a server's event loop had another do for an answer, while it served others.
//!
//! A server that takes turns for many clients waits only moments between them, whoever works on what one
//! client waits for. So its own timeline says nothing of that: what it asked for an answer is found backwards
//! from the answer. The turn in which it gave that began when somebody brought something; whom it had asked
//! before, worked on it since. Where one thread asks and another goes on, the times show it at which the server sent its own
//! requests and got their answers ([`asked_for_answer`]); of a request that was not answered, what the server has asked
//! for since and not got ([`asked_on_behalf`]).

use hangdog_graph::ended::ended_by;
use hangdog_graph::owed::{Asked, asked_for_answer, asked_on_behalf, descendants, peer, peer_of};
use hangdog_graph::{Edge, EdgeKind, Evidence, Source, Strength, Wait, WaitKind};
use hangdog_timeline::{Interval, State};
use hangdog_trace::calls::Call;
use hangdog_trace::ids::{Upid, Utid};
use hangdog_trace::object::Object;
use std::collections::BTreeSet;
use std::ops::Range;

use crate::owed::is_home;
use crate::stretch::{Waiting, wake_of};

/// So many intervals of the server are looked at, from the answer back: a turn has few.
const MOST_STEPS: usize = 256;

/// A server may have asked the other so long before its client began to wait, ns.
const SOON_NS: u64 = 10_000_000;

/// Work of another for an answer.
pub(crate) struct Relay {
    /// From when it was asked until it brought what the server made its answer of.
    pub window: Range<u64>,
    /// The wait for that, of the server or of a helper that asked for it.
    pub waiting: Waiting,
    /// By what it ended, or who is to end it.
    pub edge: Edge,
}

/// Who worked for an answer for which a client waits as `waiting` says, led by `edge` to a thread `server`, for most of
/// `parts`, in which that served others too.
pub(crate) fn of(
    evidence: &Evidence<'_>,
    server: Utid,
    (waiting, edge): (&Waiting, &Edge),
    parts: &[Range<u64>],
) -> Option<Relay> {
    let during = parts.first()?.start..waiting.to;
    match edge.kind {
        EdgeKind::Message => {
            let total: u64 = parts.iter().map(|part| part.end - part.start).sum();
            let by_turn = by_turn(evidence, server, &during, total);
            by_turn.or_else(|| answered(evidence, server, (waiting, edge), &during))
        }
        EdgeKind::Peer => unanswered(evidence, server, (waiting, edge), &during),
        _ => None,
    }
}

/// The server's end of the connection by which a client waits for it.
fn end_at(
    evidence: &Evidence<'_>,
    server: Utid,
    (waiting, edge): (&Waiting, &Edge),
) -> Option<Object> {
    let wait = &waiting.wait;
    let received =
        || evidence.received(wait.thread, waiting.to, waiting.to.saturating_add(SOON_NS));
    let server = process_of(evidence, server);
    let is_its = |object: &Object| !object.is_none() && peer_of(evidence, *object) == Some(server);
    let known = [edge.connection, wait.object(evidence)];
    let object = known.into_iter().find(is_its);
    let object = object.or_else(|| received().filter(is_its))?;
    evidence.sockets.peer(object)
}

/// The wait of a server's thread for its next turn that ends last within a time, if it spent most of that in such.
fn last_turn(evidence: &Evidence<'_>, server: Utid, during: &Range<u64>) -> Option<Wait> {
    let mut waited = 0;
    let mut last = None;
    for interval in blocked(evidence, server, during) {
        let wait = Wait::new(evidence, server, &interval);
        if is_turn(evidence, &wait) {
            waited += interval.end - interval.start;
            last = Some(wait);
        }
    }
    last.filter(|_| waited.saturating_mul(2) >= during.end - during.start)
}

/// The intervals in which a thread was blocked within a time; of very many the last.
pub(crate) fn blocked(
    evidence: &Evidence<'_>,
    thread: Utid,
    during: &Range<u64>,
) -> impl Iterator<Item = Interval> {
    const MOST: usize = 100_000;
    let (start, end) = (during.start, during.end);
    let intervals = evidence.timeline.intervals(thread);
    let indexes = intervals.indexes(start, end);
    let last = indexes.start.max(indexes.end.saturating_sub(MOST))..indexes.end;
    let clipped = last.filter_map(move |at| {
        let interval = intervals.get(at)?;
        Some(Interval {
            start: interval.start.max(start),
            end: interval.end.min(end),
            ..interval
        })
    });
    clipped.filter(|interval| interval.state == State::Blocked)
}

fn is_turn(evidence: &Evidence<'_>, wait: &Wait) -> bool {
    matches!(wait.kind, WaitKind::Poll | WaitKind::Idle) || is_home(evidence, wait)
}

/// A server's last turn, if it takes any, and its end of the connection by which a client waits for it.
fn turn_for(
    evidence: &Evidence<'_>,
    server: Utid,
    asker: (&Waiting, &Edge),
    during: &Range<u64>,
) -> Option<(Wait, Object)> {
    let end = end_at(evidence, server, asker)?;
    Some((last_turn(evidence, server, during)?, end))
}

/// What a server, or a helper of its program, asked another for and made its answer of.
fn answered(
    evidence: &Evidence<'_>,
    server: Utid,
    asker: (&Waiting, &Edge),
    during: &Range<u64>,
) -> Option<Relay> {
    let (turn, end) = turn_for(evidence, server, asker, during)?;
    let by_itself = || {
        let own = process_of(evidence, server);
        Some((turn, asked_for_answer(evidence, own, end, during)?))
    };
    let by_helper = || {
        let helpers = helpers(evidence, server).into_iter();
        let asked = helpers.filter_map(|thread| {
            let asked = asked_for_answer(evidence, process_of(evidence, thread), end, during)?;
            Some((Wait { thread, ..turn }, asked))
        });
        asked.min_by_key(|(_, asked)| asked.since)
    };
    let (wait, asked) = by_itself().or_else(by_helper)?;
    let edge = match asked.by {
        Some(by) => Edge {
            kind: EdgeKind::Message,
            strength: Strength::Strong,
            reason: format!(
                "{} answered what it had asked by {}",
                evidence.name(by),
                asked.connection
            ),
            source: Source::Thread(by),
            wake: None,
            connection: asked.connection,
        },
        None => peer(evidence, &wait, asked.connection)?,
    };
    relay(&wait, &asked, edge)
}

/// What a server, or a helper of its program, asked another for and did not get.
fn unanswered(
    evidence: &Evidence<'_>,
    server: Utid,
    asker: (&Waiting, &Edge),
    during: &Range<u64>,
) -> Option<Relay> {
    let end = end_at(evidence, server, asker)?;
    let until = |wait: Wait| Wait {
        end: during.end,
        ..wait
    };
    let by_itself = || {
        let turn = until(last_turn(evidence, server, during)?);
        Some((turn, asked_on_behalf(evidence, &turn, end, during)?))
    };
    let by_helper = || {
        let last = blocked(evidence, server, during).last()?;
        let wait = until(Wait::new(evidence, server, &last));
        let helpers = helpers(evidence, server).into_iter();
        let asked = helpers.filter_map(|thread| {
            let wait = Wait { thread, ..wait };
            Some((wait, asked_on_behalf(evidence, &wait, end, during)?))
        });
        asked.min_by_key(|(_, asked)| asked.since)
    };
    let (wait, asked) = by_itself().or_else(by_helper)?;
    let edge = peer(evidence, &wait, asked.connection)?;
    relay(&wait, &asked, edge)
}

/// A thread of each of the processes that a server's process has started and that run the same program, as those of a browser: one
/// of them may ask others for it.
fn helpers(evidence: &Evidence<'_>, server: Utid) -> Vec<Utid> {
    /// So many are looked at.
    const MOST: usize = 64;
    let own = process_of(evidence, server);
    let process = |it: Upid| evidence.threads.process(it);
    let family = descendants(evidence, std::iter::once(own)).into_iter();
    let helpers: BTreeSet<Upid> = family
        .filter(|&it| it != own && process(it).name == process(own).name)
        .collect();
    let threads = helpers.into_iter().take(MOST);
    threads
        .filter_map(|it| process(it).threads.first().copied())
        .collect()
}

fn relay(turn: &Wait, asked: &Asked, edge: Edge) -> Option<Relay> {
    let window = asked.window.0..asked.window.1;
    if edge.source == Source::Thread(turn.thread) || window.is_empty() {
        return None;
    }
    Some(Relay {
        waiting: waiting_for(turn, &window, edge.wake),
        window,
        edge,
    })
}

pub(crate) fn waiting_for(turn: &Wait, window: &Range<u64>, wake: Option<usize>) -> Waiting {
    let wait = Wait {
        start: window.start,
        end: window.end,
        ..*turn
    };
    Waiting {
        from: window.start,
        to: window.end,
        wait,
        wake,
        parts: 1,
        cried_wolf: 0,
        timed_out: 0,
        made_room: 0,
    }
}

pub(crate) fn process_of(evidence: &Evidence<'_>, thread: Utid) -> Upid {
    evidence.threads.thread(thread).upid
}

/// Who worked for what a server made its answer of at the end of `during`, as the turn shows in which it gave that.
fn by_turn(
    evidence: &Evidence<'_>,
    server: Utid,
    during: &Range<u64>,
    total: u64,
) -> Option<Relay> {
    let (from, until) = (during.start, during.end);
    let intervals = evidence.timeline.intervals(server);
    let last = intervals.index_at(until)?;
    let mut turns = (0..=last).rev().take(MOST_STEPS).filter_map(|at| {
        let interval = intervals.get(at)?;
        if interval.state != State::Blocked || interval.end > until || interval.start < from {
            return None;
        }
        let wait = Wait::new(evidence, server, &interval);
        is_turn(evidence, &wait).then_some((at, wait))
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
    if is_one_wait(evidence, server, worker, during) {
        return None;
    }
    let since = from.saturating_sub(SOON_NS)..wait.end;
    // One that passes on what others send has no work of its own: what it is handed is on its way at once.
    let processes = [server, worker].map(|thread| process_of(evidence, thread));
    let passes_on = processes.iter().any(|&it| evidence.passes_on(it));
    let asked = match passes_on {
        true => {
            let sent = evidence.first_sent_to(server, process_of(evidence, worker), since);
            sent.filter(|_| from > 0).or(Some(from))
        }
        // What was asked before the recording is not seen.
        false => asked_at(evidence, server, worker, since).or((from == 0).then_some(0)),
    };
    let asked = asked?.max(from);
    let window = asked..wait.end;
    if (window.end - window.start).saturating_mul(2) < total {
        return None;
    }
    Some(Relay {
        waiting: waiting_for(&wait, &window, Some(wake)),
        window,
        edge,
    })
}

/// Whether a thread waited for a worker in one go for most of a time: then it took no turns.
fn is_one_wait(evidence: &Evidence<'_>, thread: Utid, worker: Utid, during: &Range<u64>) -> bool {
    let longest = blocked(evidence, thread, during).max_by_key(Interval::duration);
    let is_by_worker = |longest: Interval| {
        let intervals = evidence.timeline.intervals(thread);
        let next = intervals.get(intervals.index_at(longest.end)?)?;
        let waker = evidence.wakes.waker[wake_of(evidence, thread, &next)?];
        let waker = evidence.threads.known(waker)?.upid;
        Some(waker == process_of(evidence, worker))
    };
    let longest = longest.filter(|it| it.duration().saturating_mul(2) > during.end - during.start);
    longest.and_then(is_by_worker) == Some(true)
}

/// When a server asked a worker last within a time: it sent something to its process, woke it, or had it born.
pub(crate) fn asked_at(
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

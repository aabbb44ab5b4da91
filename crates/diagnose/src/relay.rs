//! Work that a server's event loop had another do for an answer, while it served others.
//!
//! A server that takes turns for many clients waits only moments between them, whoever works on what one
//! client waits for. So its own timeline says nothing of that: what it asked for an answer is found backwards
//! from the answer. The turn in which it gave that began when somebody brought something; whom it had asked
//! before, worked on it since.

use hangdog_graph::ended::ended_by;
use hangdog_graph::owed::{Asked, asked_for_answer, asked_on_behalf, peer, peer_of};
use hangdog_graph::{Edge, EdgeKind, Evidence, Source, Strength, Wait, WaitKind};
use hangdog_timeline::{Interval, State};
use hangdog_trace::calls::Call;
use hangdog_trace::ids::{Upid, Utid};
use hangdog_trace::object::Object;
use hangdog_trace::sockets::Role;
use std::ops::Range;

use crate::owed::is_home;
use crate::stretch::{Waiting, wake_of};
use crate::tasks;

/// So many intervals of the server are looked at, from the answer back: a turn has few.
const MOST_STEPS: usize = 256;

/// A server may have asked the other so long before its client began to wait, ns.
const SOON_NS: u64 = 10_000_000;

/// Work of another for an answer.
pub(crate) struct Relay {
    /// From when it was asked until it brought what the server made its answer of.
    pub window: Range<u64>,
    /// The server's wait for that.
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
    let received = || evidence.received(wait.thread, waiting.to, waiting.to + SOON_NS);
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

/// The intervals in which a thread was blocked within a time; of very many the first.
fn blocked(
    evidence: &Evidence<'_>,
    thread: Utid,
    during: &Range<u64>,
) -> impl Iterator<Item = Interval> {
    const MOST: usize = 100_000;
    let intervals = evidence.timeline.between(thread, during.start, during.end);
    let intervals = intervals.take(MOST);
    intervals.filter(|interval| interval.state == State::Blocked)
}

fn is_turn(evidence: &Evidence<'_>, wait: &Wait) -> bool {
    matches!(wait.kind, WaitKind::Poll | WaitKind::Idle) || is_home(evidence, wait)
}

/// What a server asked another for and made its answer of.
fn answered(
    evidence: &Evidence<'_>,
    server: Utid,
    asker: (&Waiting, &Edge),
    during: &Range<u64>,
) -> Option<Relay> {
    let turn = last_turn(evidence, server, during)?;
    let end = end_at(evidence, server, asker)?;
    let asked = asked_for_answer(evidence, process_of(evidence, server), end, during)?;
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
        None => peer(evidence, &turn, asked.connection)?,
    };
    relay(&turn, &asked, edge)
}

/// What a server asked another for and did not get.
fn unanswered(
    evidence: &Evidence<'_>,
    server: Utid,
    asker: (&Waiting, &Edge),
    during: &Range<u64>,
) -> Option<Relay> {
    let turn = last_turn(evidence, server, during)?;
    let end = end_at(evidence, server, asker)?;
    let wait = Wait {
        end: during.end,
        ..turn
    };
    let asked = asked_on_behalf(evidence, &wait, end, during)?;
    let edge = peer(evidence, &wait, asked.connection)?;
    relay(&wait, &asked, edge)
}

/// The turns of a server that began with what other clients sent: they brought the answer no nearer.
pub(crate) struct Turns {
    /// Its waits for them, in order.
    pub parts: Vec<Range<u64>>,
    /// The last of them, from the first on.
    pub waiting: Waiting,
    /// What it waited for meanwhile, for the client that is looked at.
    pub edge: Edge,
}

/// The turns that a server's thread took for others while a client's thread waited for it, if they are much of that time. In
/// its last turn it went on with what the client waits for, or it did not until the end.
pub(crate) fn turns_for_others(
    evidence: &Evidence<'_>,
    server: Utid,
    asker: Utid,
    during: Range<u64>,
    is_answered: bool,
) -> Option<Turns> {
    /// What came is read so soon.
    const READ_NS: u64 = 1_000_000;
    /// The part of the time that is much.
    const MUCH: u64 = 5;
    let own = process_of(evidence, server);
    if evidence.passes_on(own) {
        return None;
    }
    let client = process_of(evidence, asker);
    let began_with_request = |wait: &Wait| {
        let came = evidence.received(wait.thread, wait.end, wait.end.saturating_add(READ_NS));
        came.is_some_and(|object| {
            evidence.sockets.role(object) == Some(Role::Server)
                && peer_of(evidence, object).is_some_and(|it| it != client && it != own)
        })
    };
    // A scheduler's thread without a task is woken for any.
    let is_of_others = |wait: &Wait| tasks::is_without(evidence, wait) || began_with_request(wait);
    let turns: Vec<Wait> = blocked(evidence, server, &during)
        .map(|interval| Wait::new(evidence, server, &interval))
        .filter(|wait| matches!(wait.kind, WaitKind::Poll | WaitKind::Idle))
        .collect();
    let last = *turns.last()?;
    let others: Vec<&Wait> = turns.iter().filter(|wait| is_of_others(wait)).collect();
    let parts: Vec<Range<u64>> = others.iter().map(|wait| wait.start..wait.end).collect();
    let total: u64 = parts.iter().map(|part| part.end - part.start).sum();
    if parts.len() < 2 || total.saturating_mul(MUCH) < during.end - during.start {
        return None;
    }
    let (edge, is_request) = match is_answered {
        // What the answer was made of came with the turn in which it was given.
        true => {
            let (wait, wake) = what_began(evidence, last)?;
            let edge = ended_by(evidence, &wait, Some(wake));
            // A packet's bearer may be anybody; who sent it within the machine is known by the connection.
            let by_packet = edge.source == Source::Network;
            let sender = by_packet
                .then(|| sender_to(evidence, &wait, READ_NS))
                .flatten();
            (sender.unwrap_or(edge), began_with_request(&wait))
        }
        false => {
            let wait = Wait {
                start: during.start,
                end: during.end,
                ..last
            };
            (ended_by(evidence, &wait, None), false)
        }
    };
    let is_for_client = match edge.source {
        Source::Thread(by) => process_of(evidence, by) != client && !is_request,
        Source::Timer | Source::Network => true,
        _ => edge.kind == EdgeKind::Unknown,
    };
    let (first, end) = (parts.first()?.start, parts.last()?.end);
    is_for_client.then(|| Turns {
        waiting: Waiting {
            parts: parts.len(),
            ..waiting_for(&last, &(first..end), None)
        },
        parts,
        edge,
    })
}

/// Who sent what a thread read right behind a wait, if that is of this machine.
fn sender_to(evidence: &Evidence<'_>, wait: &Wait, within: u64) -> Option<Edge> {
    let until = wait.end.saturating_add(within);
    let object = evidence.received(wait.thread, wait.end, until)?;
    let far = evidence.sockets.peer(object)?;
    let mut uses = evidence.uses_before(far, until);
    let sent = uses.find(|&row| evidence.transfers.sent[row])?;
    let by = evidence.transfers.thread[sent];
    Some(Edge {
        kind: EdgeKind::Message,
        strength: Strength::Strong,
        reason: format!("{} sent what it read then by {object}", evidence.name(by)),
        source: Source::Thread(by),
        wake: None,
        connection: object,
    })
}

/// The wait behind which a turn began, and the wake that ended it: of a scheduler's thread that another of them woke,
/// that one's.
fn what_began(evidence: &Evidence<'_>, turn: Wait) -> Option<(Wait, usize)> {
    /// They wake each other so often at most.
    const MOST: usize = 8;
    let own = process_of(evidence, turn.thread);
    let mut began = None;
    let mut wait = turn;
    for _ in 0..MOST {
        let intervals = evidence.timeline.intervals(wait.thread);
        let next = intervals.get(intervals.index_at(wait.start)? + 1)?;
        let wake = wake_of(evidence, wait.thread, &next)?;
        began = Some((wait, wake));
        let by = match ended_by(evidence, &wait, Some(wake)).source {
            Source::Thread(by) if process_of(evidence, by) == own => by,
            _ => break,
        };
        let before = wait_that_ended(evidence, by, evidence.wakes.ts[wake]);
        match before.filter(|before| tasks::is_without(evidence, before)) {
            Some(before) if tasks::is_without(evidence, &wait) => wait = before,
            _ => break,
        }
    }
    began
}

/// The last wait of a thread that had ended by a moment.
fn wait_that_ended(evidence: &Evidence<'_>, thread: Utid, moment: u64) -> Option<Wait> {
    let intervals = evidence.timeline.intervals(thread);
    let last = intervals.index_at(moment)?;
    let mut before = (0..=last).rev().take(MOST_STEPS);
    let at = before.find_map(|at| {
        intervals
            .get(at)
            .filter(|it| it.state == State::Blocked && it.end <= moment)
    })?;
    Some(Wait::new(evidence, thread, &at))
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

fn waiting_for(turn: &Wait, window: &Range<u64>, wake: Option<usize>) -> Waiting {
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

fn process_of(evidence: &Evidence<'_>, thread: Utid) -> Upid {
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
    let since = from.saturating_sub(SOON_NS)..wait.end;
    // One that passes on what others send has no work of its own: what it is handed is on its way at once.
    let processes = [server, worker].map(|thread| process_of(evidence, thread));
    let passes_on = processes.iter().any(|&it| evidence.passes_on(it));
    let asked = match passes_on {
        true if from == 0 => Some(0),
        true => evidence.first_sent_to(server, process_of(evidence, worker), since),
        // What was asked before the recording is not seen.
        false => asked_at(evidence, server, worker, since).or((from == 0).then_some(0)),
    };
    let asked = asked?.max(from);
    let window = asked..wait.end;
    if (window.end - window.start) * 2 < total {
        return None;
    }
    Some(Relay {
        waiting: waiting_for(&wait, &window, Some(wake)),
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

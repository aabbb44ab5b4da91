//! The turns that a server takes for others while one of its clients waits.
//!
//! Each of the server's waits in between ends by a request of somebody else, or, of a scheduler's thread, by whatever gives
//! any of its tasks something to do. None of these is what the client waits for: that is what began the server's last turn
//! before it went on with the client's request, or, where it did not, what it waits for in the end.

use hangdog_graph::ended::ended_by;
use hangdog_graph::owed::peer_of;
use hangdog_graph::{Edge, EdgeKind, Evidence, Source, Strength, Wait, WaitKind};
use hangdog_timeline::State;
use hangdog_trace::ids::{Upid, Utid};
use hangdog_trace::object::Object;
use hangdog_trace::sockets::Role;
use hangdog_trace::words::Context;
use std::ops::Range;

use crate::owed::{ending_wake, is_home};
use crate::relay::{asked_at, blocked, process_of, waiting_for};
use crate::stretch::{Waiting, wake_of};
use crate::tasks;

/// The part of the time that is much.
const MUCH: u64 = 5;
/// So many connections of a server are looked at.
const MOST_CONNECTIONS: usize = 1_024;

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
pub(crate) fn for_others(
    evidence: &Evidence<'_>,
    server: Utid,
    asker: Utid,
    during: Range<u64>,
    is_answered: bool,
) -> Option<Turns> {
    let own = process_of(evidence, server);
    let sockets = evidence.sockets;
    let has_clients = || {
        sockets.served_by(own).next().is_some()
            || sockets.had(own).any(|object| sockets.listens(object))
    };
    if evidence.passes_on(own) || !has_clients() {
        return None;
    }
    let client = process_of(evidence, asker);
    // What the client itself sends again brings what was not answered no nearer either.
    let but = is_answered.then_some(client);
    let is_request = |wait: &Wait| began_with_request(evidence, wait, but);
    // A scheduler's thread without a task is woken for any.
    let is_of_others = |wait: &Wait| tasks::is_without(evidence, wait) || is_request(wait);
    let turns: Vec<Wait> = blocked(evidence, server, &during)
        .map(|interval| Wait::new(evidence, server, &interval))
        .filter(|wait| matches!(wait.kind, WaitKind::Poll | WaitKind::Idle))
        .collect();
    let last = *turns.last()?;
    let (edge, by_request) = match is_answered {
        // What the answer was made of came with the turn in which it was given.
        true => {
            let (wait, wake) = what_began(evidence, last)?;
            let edge = ended_by(evidence, &wait, Some(wake));
            // A packet's bearer may be anybody; who sent it within the machine is known by the connection.
            let by_packet = edge.source == Source::Network;
            let sender = by_packet.then(|| sender_to(evidence, &wait)).flatten();
            let edge = sender.unwrap_or(edge);
            match held_back(evidence, server, &edge, &(during.start..wait.end)) {
                Some(edge) => (edge, false),
                None => (edge, is_request(&wait)),
            }
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
        Source::Thread(by) => process_of(evidence, by) != client && !by_request,
        Source::Timer | Source::Network => true,
        _ => edge.kind == EdgeKind::Unknown,
    };
    // Which of several timers was for the client does not matter: each is the server's own. A connection that was made is
    // another's.
    let brought_nothing = |wait: &Wait| {
        let by = ended_by(evidence, wait, ending_wake(evidence, wait)).source;
        by == Source::Timer || by == Source::Network && is_home(evidence, wait)
    };
    let others = turns.iter().filter(|wait| {
        is_of_others(wait)
            || match edge.source {
                Source::Timer => brought_nothing(wait),
                // Where it went on by no timer, timers were for others too.
                _ => ended_by_timer(evidence, wait),
            }
    });
    let parts: Vec<Range<u64>> = others.map(|wait| wait.start..wait.end).collect();
    let total: u64 = parts.iter().map(|part| part.end - part.start).sum();
    if parts.len() < 2 || total.saturating_mul(MUCH) < during.end - during.start {
        return None;
    }
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

/// Whether a wait of a server ended by what one of its clients sent, other than `but`.
pub(crate) fn began_with_request(evidence: &Evidence<'_>, wait: &Wait, but: Option<Upid>) -> bool {
    let own = process_of(evidence, wait.thread);
    let sockets = evidence.sockets;
    // As whose doing the wake shows.
    let waker = || {
        let edge = ended_by(evidence, wait, ending_wake(evidence, wait));
        match edge.source {
            Source::Thread(by) if edge.kind == EdgeKind::Message => Some(process_of(evidence, by)),
            _ => None,
        }
    };
    let is_client = |other: Upid| {
        let is_asked = || {
            let mut asks = sockets.asks(own).take(MOST_CONNECTIONS);
            asks.any(|object| peer_of(evidence, object) == Some(other))
        };
        Some(other) != but && other != own && !is_asked()
    };
    match evidence.received(wait.thread, wait.end, read_by(evidence, wait)) {
        Some(object) if sockets.role(object) == Some(Role::Server) => {
            let client = peer_of(evidence, object).or_else(waker);
            client.is_some_and(|it| Some(it) != but && it != own)
        }
        // A socket for the datagrams of anybody.
        Some(object) if sockets.listens(object) => waker().is_none_or(|it| Some(it) != but),
        Some(_) => false,
        // It only accepted a connection, or what it read is not in the recording.
        None => waker().is_some_and(is_client),
    }
}

fn ended_by_timer(evidence: &Evidence<'_>, wait: &Wait) -> bool {
    let wake = ending_wake(evidence, wait);
    wake.is_some_and(|row| Context::from(evidence.wakes.context[row]).is_timer())
}

/// Until when a thread reads what ended a wait: its next wait, but not long.
fn read_by(evidence: &Evidence<'_>, wait: &Wait) -> u64 {
    const LONG_NS: u64 = 100_000_000;
    const MOST: usize = 64;
    let intervals = evidence.timeline.intervals(wait.thread);
    let until = wait.end.saturating_add(LONG_NS);
    let mut after = intervals.between(wait.end, until).take(MOST);
    let next = after.find(|it| it.state == State::Blocked && it.start >= wait.end);
    next.map_or(until, |next| next.start)
}

/// Who sent what a thread read right behind a wait, if that is of this machine.
pub(crate) fn sender_to(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    let until = read_by(evidence, wait);
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

/// Where a server asked another, to which an edge leads from its last turn, only when most of a time was over, it kept the request
/// itself until then: by its own timer, if that began one of the turns in which it asked.
fn held_back(
    evidence: &Evidence<'_>,
    server: Utid,
    edge: &Edge,
    during: &Range<u64>,
) -> Option<Edge> {
    /// It asks in so many pieces.
    const MOST: usize = 8;
    let Source::Thread(by) = edge.source else {
        return None;
    };
    let other = process_of(evidence, by);
    let asked = (other != process_of(evidence, server))
        .then(|| asked_at(evidence, server, by, during.clone()))??;
    let half = during.start + (during.end - during.start) / 2;
    if asked <= half {
        return None;
    }
    let before = |&until: &u64| evidence.last_sent_to(server, other, half..until);
    let mut turns = std::iter::successors(Some(asked), before)
        .take(MOST)
        .filter_map(|asked| wait_that_ended(evidence, server, asked));
    let (kind, source, reason) = match turns.any(|turn| ended_by_timer(evidence, &turn)) {
        true => (EdgeKind::Timer, Source::Timer, "its timeout ended the wait"),
        false => (
            EdgeKind::Unknown,
            Source::Nobody,
            "it asked nobody for most of that time, and served others",
        ),
    };
    Some(Edge {
        kind,
        strength: Strength::Weak,
        reason: reason.into(),
        source,
        wake: None,
        connection: Object::NONE,
    })
}

/// The last wait of a thread that had ended by a moment.
fn wait_that_ended(evidence: &Evidence<'_>, thread: Utid, moment: u64) -> Option<Wait> {
    let intervals = evidence.timeline.intervals(thread);
    let last = intervals.index_at(moment)?;
    /// So many intervals are looked at.
    const MOST: usize = 256;
    let mut before = (0..=last).rev().take(MOST);
    let at = before.find_map(|at| {
        intervals
            .get(at)
            .filter(|it| it.state == State::Blocked && it.end <= moment)
    })?;
    Some(Wait::new(evidence, thread, &at))
}

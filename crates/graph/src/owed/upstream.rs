//! What a server asked others for an answer, where it serves many at once.
//!
//! A server that takes turns, or whose language has a scheduler of its own, waits only moments on each of its threads,
//! whoever works on what one client waits for. Times show what it asked for that: it sent a request by a connection that
//! it had made once that client's request had come, and got the answer shortly before it answered the client, or
//! not at all. So of several that are asked meanwhile, each belongs to the client whose request came right before it.

use hangdog_trace::ids::{Upid, Utid};
use hangdog_trace::object::Object;
use hangdog_trace::words::LastTransfer;
use std::ops::Range;

use super::connection::{open_requests, peer};
use super::last::{last_received, last_transfer, other_end_of, peer_of};
use super::open::lies_unread;
use super::who::{stopped_thread, wait_at};
use crate::edge::Edge;
use crate::evidence::{Evidence, signed};
use crate::marks::Mark;
use crate::wait::{Wait, WaitKind};

/// A request of a server's, by a connection that it made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Asked {
    /// The server's end.
    pub connection: Object,
    /// When it was sent, ns since the trace's start.
    pub since: i64,
    /// From then, or from when the client began to wait, until it was answered, or until the moment that was asked about.
    pub window: (u64, u64),
    /// Who sent the answer, as far as is known.
    pub by: Option<Utid>,
}

/// The kernel's clock tells the time of what was sent before the recording no better, ns.
const TICK_NS: i64 = 10_000_000;
/// What is done with an answer before it leads to another takes this part of the time for it, or less.
const SOON_PART: i64 = 50;
/// What is sent this long before or after a wait begins may be what it is for, ns.
const AT_ONCE_NS: u64 = 20_000_000;
/// So many uses of a connection are looked at.
const MOST: usize = 4_096;
/// And so many connections of one server.
const MOST_CONNECTIONS: usize = 1_024;

/// When what a client asked for last by a server's `end` of a connection had come before a moment, ns since the trace's
/// start; before the trace, where negative.
fn came_at(evidence: &Evidence<'_>, end: Object, until: u64) -> Option<i64> {
    let transfers = evidence.transfers;
    if last_received(evidence, end, until).is_some() {
        let uses = evidence.uses_before(end, until).take(MOST);
        let request = uses
            .skip_while(|&row| transfers.sent[row])
            .take_while(|&row| !transfers.sent[row]);
        return request.last().map(|row| signed(transfers.ts[row]));
    }
    let is_told = |object: Object, way: LastTransfer| {
        let holder = evidence.sockets.holders(object).first()?;
        (holder.last == way).then_some(holder.last_at)
    };
    let other = evidence.sockets.peer(end)?;
    let sent = evidence.uses_before(other, until).take(MOST);
    let first_sent = sent
        .skip_while(|&row| !transfers.sent[row])
        .take_while(|&row| transfers.sent[row])
        .last();
    first_sent
        .map(|row| signed(transfers.ts[row]))
        .or_else(|| is_told(end, LastTransfer::Received))
        .or_else(|| is_told(other, LastTransfer::Sent))
}

/// When what lies open at a moment was asked for by a connection, ns since the trace's start.
fn asked_at(evidence: &Evidence<'_>, connection: Object, until: u64) -> Option<i64> {
    let transfers = evidence.transfers;
    let uses = evidence.uses_before(connection, until).take(MOST);
    let first = uses.take_while(|&row| transfers.sent[row]).last();
    first.map(|row| signed(transfers.ts[row])).or_else(|| {
        let own = evidence.sockets.holders(connection).first()?;
        (own.last == LastTransfer::Sent).then_some(own.last_at)
    })
}

/// The connections by which a server asked others than the client at the other end of `end`.
fn connections<'e>(
    evidence: &'e Evidence<'_>,
    server: Upid,
    end: Object,
) -> impl Fn(&Object) -> bool + 'e {
    let client = evidence
        .sockets
        .peer(end)
        .and_then(|_| peer_of(evidence, end));
    move |&connection: &Object| {
        let process = peer_of(evidence, connection);
        process != Some(server) && (process.is_none() || process != client)
    }
}

/// What the server in `wait` asked for and had not got at the wait's end, for most of `during`, on behalf of who asked it
/// by its `end` of a connection.
pub fn asked_on_behalf(
    evidence: &Evidence<'_>,
    wait: &Wait,
    end: Object,
    during: &Range<u64>,
) -> Option<Asked> {
    let server = evidence.threads.thread(wait.thread).upid;
    let came = came_at(evidence, end, wait.end);
    let is_others = connections(evidence, server, end);
    let until = signed(wait.end);
    let open = open_requests(evidence, wait)
        .filter(is_others)
        .take(MOST_CONNECTIONS);
    let fitting = open.filter_map(|connection| {
        let asked = asked_at(evidence, connection, wait.end)?;
        let late = came.map_or(0, |came| asked.saturating_sub(came));
        let covered = until.saturating_sub(asked.max(signed(during.start)));
        (late >= -TICK_NS && is_most(covered, during)).then_some((connection, asked, late))
    });
    let fitting: Vec<_> = fitting.collect();
    // Where it is not known when the client asked, the only one may be for it.
    if came.is_none() && fitting.len() > 1 {
        return None;
    }
    let is_stuck = |connection: Object| {
        let other = other_end_of(evidence, connection);
        lies_unread(evidence, connection, wait.end)
            || other.is_some_and(|it| stopped_thread(evidence, it.process, wait.end).is_some())
    };
    let (connection, asked, _) = (fitting.into_iter())
        .min_by_key(|&(connection, _, late)| (!is_stuck(connection), late, connection.0))?;
    let from = u64::try_from(asked).unwrap_or(0).max(during.start);
    Some(Asked {
        connection,
        since: asked,
        window: (from, wait.end),
        by: None,
    })
}

/// What the process of one that waits for a condition asked another for as that wait began, and has not got: it handed the request
/// to the thread that sends, and waits for that one to bring the answer. Only where that is the only one that was asked then.
pub(crate) fn asked_as_it_began(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    let stack = wait.user_stack(evidence);
    let may_wait_for_it = wait.kind == WaitKind::Condition
        && wait.holder.is_none()
        && !wait.is_idle(evidence)
        && !evidence.shows(stack, Mark::TakesWork);
    if !may_wait_for_it {
        return None;
    }
    let began = match wait.start {
        0 => evidence.away_since(wait.thread)?,
        start => signed(start),
    };
    let own = evidence.threads.thread(wait.thread).upid;
    // One that waits by the connection itself asks for itself.
    let is_awaited = |connection: Object| {
        let threads = &evidence.threads.process(own).threads;
        threads.iter().any(|&thread| {
            wait_at(evidence, thread, wait.end)
                .is_some_and(|there| there.object(evidence) == connection)
        })
    };
    // Of a connection that was used before the recording only, it need not be known when.
    let is_known = |connection: Object| {
        let holder = evidence.sockets.holders(connection).first();
        last_transfer(evidence, connection, wait.end).is_some()
            || holder.is_some_and(|holder| holder.last_at < signed(holder.ts))
    };
    let is_then = |&connection: &Object| {
        let asked = asked_at(evidence, connection, wait.end).filter(|_| is_known(connection));
        asked.is_some_and(|asked| asked.saturating_sub(began).unsigned_abs() <= AT_ONCE_NS)
            && peer_of(evidence, connection) != Some(own)
            && !is_awaited(connection)
    };
    let open = open_requests(evidence, wait).take(MOST_CONNECTIONS);
    let mut asked = open.filter(is_then);
    let only = asked.next().filter(|_| asked.next().is_none())?;
    peer(evidence, wait, only)
}

/// What a server asked for, and got, for most of `during`, before it answered by its `end` of a connection at the end of that.
pub fn asked_for_answer(
    evidence: &Evidence<'_>,
    server: Upid,
    end: Object,
    during: &Range<u64>,
) -> Option<Asked> {
    let came = came_at(evidence, end, during.end)?;
    let is_others = connections(evidence, server, end);
    let asks = evidence.sockets.asks(server).filter(is_others);
    let answered = asks
        .take(MOST_CONNECTIONS)
        .flat_map(|connection| exchanges(evidence, connection, during));
    let soon = TICK_NS.max(signed(during.end.saturating_sub(during.start)) / SOON_PART);
    let early = |asked: &Asked| signed(during.end).saturating_sub(signed(asked.window.1));
    let is_for_it = |asked: &Asked| asked.since >= came.saturating_sub(TICK_NS);
    let fitting = answered.filter(|asked| {
        let (from, to) = asked.window;
        is_most(signed(to.saturating_sub(from)), during)
            && (is_for_it(asked) || early(asked) < soon)
    });
    // The one that began with the client's request, and ended with its answer; or else one that was for another, who
    // had a lock until then.
    fitting.min_by_key(|asked| {
        let late = asked.since.saturating_sub(came).max(0);
        let apart = late.saturating_add(early(asked));
        (!is_for_it(asked), apart, asked.connection.0)
    })
}

/// The requests by one connection that were answered by the end of `during`.
fn exchanges(evidence: &Evidence<'_>, connection: Object, during: &Range<u64>) -> Vec<Asked> {
    let transfers = evidence.transfers;
    let far = evidence.sockets.peer(connection);
    let mut found = Vec::new();
    // Backwards: the first bytes of an answer, and the first of what it is an answer to.
    let mut answer: Option<usize> = None;
    let mut asked: Option<usize> = None;
    let mut end_of = |answer: Option<usize>, asked: i64| {
        let Some(answer) = answer else {
            return;
        };
        // Who was busy read it late.
        let received = transfers.ts[answer];
        let sent = far.and_then(|far| {
            let mut before = evidence.uses_before(far, received.saturating_add(1));
            before.find(|&row| transfers.sent[row] && signed(transfers.ts[row]) >= asked)
        });
        let to = sent.map_or(received, |row| transfers.ts[row].min(received));
        found.push(Asked {
            connection,
            since: asked,
            window: (u64::try_from(asked).unwrap_or(0).max(during.start), to),
            by: sent.map(|row| transfers.thread[row]),
        });
    };
    for row in evidence.uses_before(connection, during.end).take(MOST) {
        match (transfers.sent[row], asked) {
            (true, _) => asked = Some(row),
            (false, Some(first)) => {
                end_of(answer, signed(transfers.ts[first]));
                (answer, asked) = (Some(row), None);
            }
            (false, None) => answer = Some(row),
        }
    }
    match asked {
        Some(first) => end_of(answer, signed(transfers.ts[first])),
        // It was asked before the recording.
        None => {
            if let Some(asked) = asked_at(evidence, connection, 0) {
                end_of(answer, asked);
            }
        }
    }
    found
}

/// Whether a time is most of another.
fn is_most(ns: i64, of: &Range<u64>) -> bool {
    ns.saturating_mul(2) >= signed(of.end.saturating_sub(of.start))
}

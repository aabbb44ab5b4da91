//! What was sent by a socket without a connection, as a question to a name server is, and was not answered.

use hangdog_trace::object::{Object, ObjectKind};

use crate::edge::{Edge, EdgeKind, Source, Strength};
use crate::evidence::Evidence;
use crate::wait::{Wait, WaitKind};

/// So long before a wait its question was sent at most, ns.
const SENT_WITHIN_NS: u64 = 5_000_000;
/// Whoever is on this machine receives a datagram within so long, ns.
const RECEIVED_WITHIN_NS: u64 = 100_000_000;
/// Whom it wakes is woken so long before it counts as sent at most, ns.
const WOKEN_WITHIN_NS: u64 = 200_000;
/// Of the transfers that follow no more are looked at.
const MOST_ROWS: usize = 10_000;

/// The network, where the thread sent a datagram right before it waited, nothing came back while it did, and nobody
/// on this machine was woken by it or received as many bytes by such a socket soon.
pub fn unanswered(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    if !matches!(
        wait.kind,
        WaitKind::Poll | WaitKind::Idle | WaitKind::Message
    ) {
        return None;
    }
    let transfers = evidence.transfers;
    let since = wait.start.saturating_sub(SENT_WITHIN_NS);
    let is_open = |&row: &usize| {
        let object = Object(transfers.object[row]);
        transfers.sent[row]
            && is_datagram_socket(evidence, object)
            && evidence.uses_before(object, wait.end).next() == Some(row)
            && asks_by(evidence, object)
            && !is_received(evidence, row)
    };
    // Of a server that serves others meanwhile, the wait has turns in between.
    let row = evidence
        .used_within(wait.thread, since, wait.end)
        .take(MOST_ROWS)
        .find(is_open)?;
    let reason = format!(
        "it sent {} bytes over {}, nobody on this machine received them, and nothing came back",
        transfers.bytes[row],
        Object(transfers.object[row])
    );
    Some(Edge::new(
        EdgeKind::Network,
        Strength::Strong,
        Source::Network,
        reason,
    ))
}

/// Whether an internet socket has an address of its own, and is connected with nobody.
fn is_datagram_socket(evidence: &Evidence<'_>, object: Object) -> bool {
    let addresses = evidence.sockets.addresses(object);
    object.kind() == ObjectKind::Inet
        && evidence.sockets.peer(object).is_none()
        && addresses.is_some_and(|(local, remote)| !local.is_empty() && remote.is_empty())
}

/// Whether what went first over a socket was sent: who serves by it receives first.
fn asks_by(evidence: &Evidence<'_>, object: Object) -> bool {
    let first = evidence.first_use(object);
    first.is_some_and(|row| evidence.transfers.sent[row])
}

/// Whether a datagram woke another thread, or one received as many bytes by such a socket soon after it was sent.
fn is_received(evidence: &Evidence<'_>, sent: usize) -> bool {
    let transfers = evidence.transfers;
    let (thread, at) = (transfers.thread[sent], transfers.ts[sent]);
    let since = at.saturating_sub(WOKEN_WITHIN_NS);
    if evidence
        .wakes_by(thread, since, at.saturating_add(1))
        .next()
        .is_some()
    {
        return true;
    }
    let until = transfers.ts[sent].saturating_add(RECEIVED_WITHIN_NS);
    let later = (sent + 1..transfers.len()).take(MOST_ROWS);
    later
        .take_while(|&row| transfers.ts[row] <= until)
        .any(|row| {
            !transfers.sent[row]
                && transfers.thread[row] != thread
                && transfers.bytes[row] == transfers.bytes[sent]
                && is_datagram_socket(evidence, Object(transfers.object[row]))
        })
}

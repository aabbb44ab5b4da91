//! Who brought what ended a wait, where the one who woke the thread only handed it on, or nobody seems to
//! have.

use hangdog_timeline::State;
use hangdog_trace::calls::Call;
use hangdog_trace::ids::Utid;
use hangdog_trace::object::{Object, ObjectKind};
use hangdog_trace::sockets::Role;

use super::connection::leaves_unread;
use super::last::{last_transfer, last_user};
use super::last::{peer_of, process_of};
use super::owes;
use super::who::{is_amid, thread_of};
use crate::descriptors::descriptors_used_up;
use crate::edge::{Edge, EdgeKind, Source, Strength};
use crate::evidence::Evidence;
use crate::wait::{Wait, WaitKind};

/// Who accepted a connection late, if that was what ended a wait: for the connection itself, or for anything. The
/// kernel drops who asks to be connected while a listener's queue is full, and asks again after a second. A listener
/// that has nothing else to do, and may open files, has no full queue: then nothing reached it.
pub fn accepted_late(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    const LATE_NS: u64 = 500_000_000;
    if wait.duration() < LATE_NS {
        return None;
    }
    let object = match wait.row {
        Some(row) if evidence.call(evidence.switches.call[row]) == Call::Connect => {
            wait.object(evidence)
        }
        _ => first_sent(evidence, wait)?,
    };
    let sockets = evidence.sockets;
    let listener = || sockets.listeners(object).next();
    let process = peer_of(evidence, object).or_else(|| process_of(evidence, listener()?));
    let process =
        process.filter(|&process| process != evidence.threads.thread(wait.thread).upid)?;
    let middle = wait.start + wait.duration() / 2;
    let thread = thread_of(
        evidence,
        process,
        listener().unwrap_or(Object::NONE),
        middle,
    )?;
    let name = evidence.name(thread);
    let is_full = descriptors_used_up(evidence, process, &(wait.start..wait.end)).is_some();
    if !is_full && !is_amid(evidence, thread, middle) {
        let reason = format!(
            "it connected to {name}, which was ready to accept: its packets were lost or dropped"
        );
        return Some(Edge::new(
            EdgeKind::Network,
            Strength::Strong,
            Source::Network,
            reason,
        ));
    }
    let reason = format!("it connected to {name}, which took long to accept");
    Some(owes(thread, Strength::Strong, reason))
}

/// The connection to a program of this machine over which a thread sends for the first time, right behind a wait for
/// anything. One that receives something first was woken by that.
fn first_sent(evidence: &Evidence<'_>, wait: &Wait) -> Option<Object> {
    const SOON_NS: u64 = 2_000_000;
    let soon = wait.end.saturating_add(SOON_NS);
    let first = evidence.used_within(wait.thread, wait.end, soon).last();
    let first = first.filter(|&row| evidence.transfers.sent[row])?;
    let object = Object(evidence.transfers.object[first]);
    let before = evidence.uses_before(object, evidence.transfers.ts[first]);
    let is_new = object.kind() == ObjectKind::Inet
        && evidence.sockets.role(object) == Some(Role::Client)
        && before.count() == 0;
    (wait.kind == WaitKind::Poll && is_new).then_some(object)
}

/// Who has left unread what a thread sent on this machine before it waited: when there is room for more, a packet
/// says so, whose bearer may be anybody.
pub(crate) fn slow_reader(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    let object = wait.object(evidence);
    let end = evidence.sockets.peer(object)?;
    let is_wait = matches!(wait.kind, WaitKind::Message | WaitKind::Poll);
    let has_sent =
        last_transfer(evidence, object, wait.start).is_some_and(|row| evidence.transfers.sent[row]);
    if !is_wait || object.kind() != ObjectKind::Inet || !has_sent {
        return None;
    }
    let reader = leaves_unread(evidence, end)?;
    let thread = last_user(evidence, end, wait.end)
        .filter(|&user| evidence.threads.thread(user).upid == reader)
        .or_else(|| thread_of(evidence, reader, end, wait.end))?;
    let name = evidence.name(thread);
    let reason = format!("what it had sent lay unread with {name}");
    Some(owes(thread, Strength::Strong, reason))
}

/// Who answered what a thread had asked for right before it waited, where another thread of its process has
/// the connection, and woke it when the answer came. What that thread waited for otherwise is not its concern.
pub(crate) fn handed_answer(evidence: &Evidence<'_>, wait: &Wait, waker: Utid) -> Option<Edge> {
    const SOON_NS: u64 = 1_000_000;
    const SHORTEST_NS: u64 = 10_000_000;
    /// So much of the wait may have passed when it was asked.
    const EARLY_PART: u64 = 20;
    let own = evidence.threads.thread(wait.thread).upid;
    let is_own = waker != wait.thread && evidence.threads.thread(waker).upid == own;
    let anything = matches!(wait.kind, WaitKind::Poll | WaitKind::Condition);
    if !is_own || !anything || wait.duration() < SHORTEST_NS {
        return None;
    }
    // One that computed meanwhile is no mere hand.
    let intervals = evidence.timeline.between(waker, wait.start, wait.end);
    let waited = intervals.filter(|interval| interval.state == State::Blocked);
    if waited.map(|interval| interval.duration()).sum::<u64>() < wait.duration() / 2 {
        return None;
    }
    let early = wait.start + wait.duration() / EARLY_PART;
    let transfers = evidence.transfers;
    let is_answer = |&row: &usize| {
        let object = Object(transfers.object[row]);
        let mut before = evidence.uses_before(object, transfers.ts[row]);
        !transfers.sent[row]
            && evidence.sockets.role(object) == Some(Role::Client)
            && before
                .next()
                .is_some_and(|last| transfers.ts[last] <= early)
    };
    let came = evidence.used_within(waker, wait.end.saturating_sub(SOON_NS), wait.end);
    let answer = came.filter(is_answer).last()?;
    let object = Object(transfers.object[answer]);
    let end = evidence.sockets.peer(object);
    let user = end.and_then(|end| last_user(evidence, end, transfers.ts[answer]));
    let thread =
        user.or_else(|| thread_of(evidence, peer_of(evidence, object)?, end?, wait.end))?;
    if evidence.threads.thread(thread).upid == own {
        return None;
    }
    let (by, name) = (evidence.name(waker), evidence.name(thread));
    let reason = format!("{by} handed it what {name} answered");
    Some(owes(thread, Strength::Strong, reason))
}

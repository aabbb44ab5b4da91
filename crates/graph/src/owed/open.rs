//! Whether an answer is owed over a connection, also through one that passes messages on.

use hangdog_trace::ids::{NONE, Upid, Utid};
use hangdog_trace::object::Object;
use hangdog_trace::sockets::Role;
use hangdog_trace::words::LastTransfer;
use std::ops::Range;

use super::kin::main_life;
use super::last::{has_sent, last_received, last_transfer, other_end_of, process_of};
use super::who::{is_home, thread_of, wait_at};
use crate::edge::{Edge, EdgeKind, Source, Strength};
use crate::evidence::Evidence;
use crate::marks::Mark;
use crate::wait::Wait;

/// Whether what was asked for by a connection is owed at a moment: it was sent, and nothing came back;
/// through one that passes on, if whoever was handed it did not answer.
pub fn is_open(evidence: &Evidence<'_>, object: Object, until: u64) -> bool {
    let end = other_end_of(evidence, object);
    if lies_unread(evidence, object, until) {
        return true;
    }
    let sent = has_sent(evidence, object, until);
    match end {
        // Much of what is passed on needs no answer: one that read it and has nothing to do owes none.
        Some(end) if evidence.passes_on(end.process) => {
            let far = evidence.sockets.peer(object);
            let handed = far.and_then(|far| handed_to(evidence, far, until));
            sent && handed.is_some_and(|handed| {
                let waits = wait_at(evidence, handed.thread, until);
                handed.is_unread || !waits.is_some_and(|waits| is_home(evidence, &waits))
            })
        }
        _ => sent,
    }
}

/// Whether a client has got all that it asked for by a connection, as far as is known: what went last came in.
pub(super) fn is_at_rest(evidence: &Evidence<'_>, object: Object, until: u64) -> bool {
    let came_last = match last_transfer(evidence, object, until) {
        Some(row) => !evidence.transfers.sent[row],
        None => {
            let own = evidence.sockets.holders(object).first();
            own.is_some_and(|own| matches!(own.last, LastTransfer::Received))
        }
    };
    came_last && evidence.sockets.role(object) == Some(Role::Client)
}

/// Whether what was sent over a connection lies unread at the other end at a moment: so it was when the sockets
/// were looked at, and nothing went over it since that moment.
pub(super) fn lies_unread(evidence: &Evidence<'_>, object: Object, until: u64) -> bool {
    other_end_of(evidence, object).is_some_and(|end| end.unread > 0)
        && last_transfer(evidence, object, until) == last_transfer(evidence, object, u64::MAX)
}

/// Whom the display asked for what a program with a window wants of the clipboard: another client.
pub(super) fn selection_owner(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    if !evidence.shows(wait.user_stack(evidence), Mark::AwaitsSelection) {
        return None;
    }
    let own = evidence.threads.thread(wait.thread).upid;
    let sockets = evidence.sockets;
    let serves = |&object: &Object| {
        let peer = sockets.peer_process(object);
        peer.is_some_and(|peer| evidence.serves_display(peer))
    };
    let display = sockets.asks(own).find(serves)?;
    let owner = handed_to(evidence, sockets.peer(display)?, wait.end)?.thread;
    let is_other = evidence.threads.thread(owner).upid != own;
    let reason = format!(
        "it waits for the clipboard, and its display asked {} last",
        evidence.name(owner)
    );
    is_other.then(|| {
        Edge::new(
            EdgeKind::Peer,
            Strength::Weak,
            Source::Thread(owner),
            reason,
        )
    })
}

/// Whether something may be owed over a connection of which nothing is known: none of its bytes are in
/// the trace, the kernel does not tell which way the last went, and whoever has the other end is in the
/// middle of work.
pub fn may_be_open(evidence: &Evidence<'_>, object: Object, until: u64) -> bool {
    let own = evidence.sockets.holders(object).first();
    let is_told = own.is_some_and(|own| matches!(own.last, LastTransfer::Received));
    let Some(end) = evidence.sockets.peer(object) else {
        return false;
    };
    let is_used = [object, end]
        .iter()
        .any(|&end| last_transfer(evidence, end, until).is_some());
    let Some(process) = process_of(evidence, end) else {
        return false;
    };
    if is_told || is_used || evidence.passes_on(process) {
        return false;
    }
    let is_amid = |thread: Utid| {
        wait_at(evidence, thread, until).is_none_or(|there| {
            let is_kept = evidence.shows(there.user_stack(evidence), Mark::DatabaseLock);
            is_kept || !is_home(evidence, &there) && there.object(evidence) != end
        })
    };
    thread_of(evidence, process, end, until).is_some_and(is_amid)
}

/// One to whom a message was passed on.
pub(super) struct Handed {
    pub(super) thread: Utid,
    /// It lies unread there.
    pub(super) is_unread: bool,
}

/// To whom a process that passes messages on handed the one that came last by `end`, its end of a
/// connection: by the bytes that it sent next over another, or, where that was not seen, by what
/// lies unread at one of those that it is connected to. None if that one has answered since.
pub(super) fn handed_to(evidence: &Evidence<'_>, end: Object, until: u64) -> Option<Handed> {
    let transfers = evidence.transfers;
    let sockets = evidence.sockets;
    let Some(came) = last_received(evidence, end, until) else {
        return left_unread(evidence, end, until);
    };
    let relay = transfers.thread[came];
    let until_row = transfers.ts.partition_point(|&ts| ts < until);
    let sent = (came + 1..until_row.min(came + PASSED_WITHIN))
        .take_while(|&row| transfers.thread[row] != relay || transfers.sent[row])
        .find(|&row| transfers.thread[row] == relay && transfers.object[row] != end.0);
    let Some(sent) = sent else {
        return started_for(evidence, relay, transfers.ts[came]..until);
    };
    let far = sockets.peer(Object(transfers.object[sent]))?;
    let holder = sockets.holders(far).last();
    let process = holder
        .map(|holder| holder.process)
        .or_else(|| sockets.peer_process(Object(transfers.object[sent])))?;
    let answered = evidence
        .uses_before(far, until)
        .any(|row| row > sent && transfers.sent[row]);
    if answered {
        return None;
    }
    Some(Handed {
        thread: thread_of(evidence, process, far, until)?,
        is_unread: holder.is_some_and(|holder| holder.unread > 0),
    })
}

/// A message is passed on within so many transfers of all.
const PASSED_WITHIN: usize = 100_000;

/// Whom a process that passes messages on started to take one: the first that a child of it made
/// then, which only watches it, or else that child.
fn started_for(evidence: &Evidence<'_>, relay: Utid, during: Range<u64>) -> Option<Handed> {
    const SOON_NS: u64 = 200_000_000;
    let own = evidence.threads.thread(relay).upid;
    let parent = |process: Upid| evidence.threads.process(process).parent;
    let soon = during.start..during.end.min(during.start.saturating_add(SOON_NS));
    let made = evidence.threads.processes().filter_map(|other| {
        let birth = main_life(evidence, other.upid)?.start;
        let is_child = other.parent == own;
        let is_of_child = other.parent != NONE && parent(other.parent) == own;
        let is_made = soon.contains(&birth) && (is_child || is_of_child);
        is_made.then_some((is_child, birth, other.upid))
    });
    let (_, _, first) = made.min()?;
    Some(Handed {
        thread: thread_of(evidence, first, Object::NONE, during.end)?,
        is_unread: false,
    })
}

/// One that is connected to the process of `end` and has not read what that sent, or is the only one
/// that runs.
fn left_unread(evidence: &Evidence<'_>, end: Object, until: u64) -> Option<Handed> {
    let sockets = evidence.sockets;
    let relay = sockets.holders(end).last()?.process;
    let own = sockets.peer(end);
    let mut unread = sockets
        .served_by(relay)
        .filter_map(|near| sockets.peer(near))
        .filter(|far| Some(*far) != own)
        .filter_map(|far| Some((far, sockets.holders(far).last()?)))
        .filter(|(_, holder)| holder.unread > 0 && holder.process != relay);
    if let Some((far, holder)) = unread.next() {
        return Some(Handed {
            thread: thread_of(evidence, holder.process, far, until)?,
            is_unread: true,
        });
    }
    // One that read it, and is at it.
    let asker = own.and_then(|own| process_of(evidence, own));
    let served = sockets
        .served_by(relay)
        .filter_map(|near| sockets.peer(near));
    let others = served
        .filter_map(|far| process_of(evidence, far))
        .filter(|&process| process != relay && Some(process) != asker);
    // A program that draws for itself may sleep between two frames; a service of a bus does not.
    let is_bus = !evidence.serves_display(relay);
    let is_at_it = |&thread: &Utid| {
        wait_at(evidence, thread, until).is_none_or(|there| is_bus && !is_home(evidence, &there))
    };
    let mut busy: Vec<Utid> = others
        .filter_map(|process| thread_of(evidence, process, Object::NONE, until))
        .filter(is_at_it)
        .collect();
    busy.sort_unstable();
    busy.dedup();
    let [thread] = busy[..] else { return None };
    Some(Handed {
        thread,
        is_unread: false,
    })
}

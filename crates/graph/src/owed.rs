//! Who owes a thread what it waits for, where no wake brought it.
//!
//! - Who waits for a pipe or connection waits for the process at the other end; who waits for
//!   anything, for the one that its process asked and that did not answer. A process that is stopped,
//!   or has left unread what it was handed, is more surely the one than another.
//! - A thread that woke another before it waited may have asked it for what it waits for.
//! - One that was refused a file's lock, or waits for it, waits for the process that has the lock.

use hangdog_timeline::{Interval, State};
use hangdog_trace::Process;
use hangdog_trace::calls::Call;
use hangdog_trace::ids::{NONE, Upid, Utid};
use hangdog_trace::object::{Object, ObjectKind};
use hangdog_trace::sockets::{Holder, Role};
use hangdog_trace::words::{HandoffStep, LastTransfer};

use crate::edge::{Edge, EdgeKind, Source, Strength};
use crate::evidence::Evidence;
use crate::file_locks::{self, File};
use crate::marks::Mark;
use crate::wait::{Wait, WaitKind};

/// The one who owes a thread what it waits for, by what the wait itself is about: who has the other
/// end of its pipe or connection, who serves its file system, and of a process that waits for
/// anything the one that it asked and that has not answered.
pub(crate) fn debtor(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    if wait.is_for_served_file(evidence) {
        return server_of_files(evidence, wait);
    }
    let object = wait.object(evidence);
    match (wait.kind, object.kind()) {
        (WaitKind::Message | WaitKind::Poll, ObjectKind::Pipe) => other_end(evidence, wait, object),
        (
            WaitKind::Message | WaitKind::Poll | WaitKind::Kernel,
            ObjectKind::Unix | ObjectKind::Inet,
        ) => peer(evidence, wait, object),
        (WaitKind::Poll, ObjectKind::None | ObjectKind::Epoll | ObjectKind::Eventfd)
        | (WaitKind::Idle, _) => lock_holder_by_title(evidence, wait)
            .or_else(|| asked_process(evidence, wait))
            .or_else(|| only_client(evidence, wait)),
        _ => None,
    }
}

/// The program that serves the file that a thread waits for, where there is but one that serves
/// any, or one of them that does not go on.
fn server_of_files(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    let servers = evidence.sockets.file_systems();
    let stopped = |&&process: &&Upid| stopped_thread(evidence, process, wait.end).is_some();
    let server = match servers {
        [only] => *only,
        _ => *servers.iter().find(stopped)?,
    };
    let thread = thread_of(evidence, server, Object::NONE, wait.end)?;
    let reason = format!("{} serves the file system", evidence.name(thread));
    Some(owes(thread, Strength::Strong, reason))
}

/// Who has the other end of a pipe.
fn other_end(evidence: &Evidence<'_>, wait: &Wait, pipe: Object) -> Option<Edge> {
    let writes = wait
        .row
        .is_some_and(|row| evidence.call(evidence.switches.call[row]) == Call::Write);
    let own = evidence.threads.thread(wait.thread).upid;
    let mut others: Vec<Upid> = Vec::new();
    for holder in evidence.sockets.holders(pipe) {
        let is_other_end = if writes { holder.reads } else { holder.writes };
        let has_both = holder.reads && holder.writes && others.contains(&holder.process);
        if is_other_end && !has_both && !others.contains(&holder.process) && holder.process != own {
            others.push(holder.process);
        }
    }
    let stopped = |&process: &Upid| stopped_thread(evidence, process, wait.end).is_some();
    let chosen = match others[..] {
        [] => return None,
        [only] => only,
        _ => others
            .iter()
            .copied()
            .find(stopped)
            .or(others.last().copied())?,
    };
    let thread = thread_of(evidence, chosen, pipe, wait.end)?;
    let name = evidence.name(thread);
    let (reason, strength) = match (others.len(), writes) {
        (1, false) => (format!("only {name} can write to {pipe}"), Strength::Strong),
        (1, true) => (
            format!("only {name} can read from {pipe}"),
            Strength::Strong,
        ),
        (count, _) => (
            format!(
                "{name} has the other end of {pipe}, as {} others do",
                count - 1
            ),
            Strength::Weak,
        ),
    };
    Some(owes(thread, strength, reason))
}

/// Whether a wait is for what the parent of its process writes: orders, which may come at any time.
pub fn parent_writes(evidence: &Evidence<'_>, wait: &Wait) -> bool {
    let pipe = wait.object(evidence);
    let process = evidence.threads.thread(wait.thread).upid;
    let parent = evidence.threads.process(process).parent;
    let holders = evidence.sockets.holders(pipe);
    let mut writers = holders.iter().filter(|holder| holder.writes);
    writers.any(|holder| holder.process == parent)
}

/// Whether what was sent over a connection does not arrive.
pub fn is_lost(evidence: &Evidence<'_>, object: Object) -> bool {
    let mut holders = evidence.sockets.holders(object).iter();
    holders.any(|holder| holder.last == LastTransfer::Lost)
}

/// Whether what a thread sent before it waited had not reached the other end for most of the wait.
pub(crate) fn is_undelivered(evidence: &Evidence<'_>, wait: &Wait) -> bool {
    let object = wait.object(evidence);
    let transfers = evidence.transfers;
    if object.kind() != ObjectKind::Inet || wait.duration() < SURELY_SENT_NS {
        return false;
    }
    let Some(sent) = last_transfer(evidence, object, wait.start).filter(|&row| transfers.sent[row])
    else {
        return false;
    };
    let by_then = wait.start + wait.duration() / 2;
    let sockets = evidence.sockets;
    let ends = || {
        sockets
            .peer(object)
            .into_iter()
            .chain(sockets.listeners(object))
    };
    let uses = |end| evidence.uses_before(end, by_then);
    let came = ends()
        .flat_map(uses)
        .any(|row| row > sent && !transfers.sent[row]);
    // Who is busy does not read what came, and who has not accepted a connection neither.
    let user = ends()
        .flat_map(|end| evidence.uses_before(end, wait.start))
        .map(|row| transfers.thread[row])
        .next();
    let waits = user.and_then(|user| wait_at(evidence, user, by_then));
    !came && waits.is_some_and(|waits| is_home(&waits))
}

/// Within one machine bytes arrive long before that.
const SURELY_SENT_NS: u64 = 100_000_000;

/// Who has the other end of a connection, or listens where it should lead.
fn peer(evidence: &Evidence<'_>, wait: &Wait, object: Object) -> Option<Edge> {
    let sockets = evidence.sockets;
    if is_lost(evidence, object) {
        let reason = format!("what it sent over {object} is not acknowledged, and sent again");
        return Some(Edge::new(
            EdgeKind::Network,
            Strength::Strong,
            Source::Network,
            reason,
        ));
    }
    let end = sockets.peer(object);
    let holder = |object: Object| sockets.holders(object).last().map(|holder| holder.process);
    // Who used the other end last is more surely the one than whoever made it.
    let user = end.and_then(|end| last_user(evidence, end, wait.end));
    let process = user
        .map(|thread| evidence.threads.thread(thread).upid)
        .or_else(|| holder(end?))
        .or_else(|| sockets.listeners(object).find_map(holder))
        .or_else(|| sockets.peer_process(object))?;
    let thread = match user {
        Some(user) if is_there(evidence, user, wait.end) => user,
        _ => thread_of(evidence, process, end.unwrap_or(Object::NONE), wait.end)?,
    };
    // The debt moved on with what was asked.
    if let Some(end) = end
        && evidence.passes_on(process)
        && let Some(handed) = handed_to(evidence, end, wait.end)
        && evidence.threads.thread(handed).upid != evidence.threads.thread(wait.thread).upid
    {
        let (by, to) = (evidence.name(thread), evidence.name(handed));
        let reason = format!("{by} passed on to {to} what it asked for, and that has not answered");
        return Some(owes(handed, Strength::Strong, reason));
    }
    if thread == wait.thread {
        return None;
    }
    let name = evidence.name(thread);
    let unread = end
        .into_iter()
        .chain(sockets.listeners(object))
        .filter_map(|end| sockets.holders(end).last())
        .map(|holder| holder.unread)
        .max()
        .unwrap_or(0);
    Some(match (sockets.role(object), unread) {
        (Some(Role::Client), 1..) => {
            let reason = format!("it asked {name} over {object}, where that lies unread");
            owes(thread, Strength::Strong, reason)
        }
        (Some(Role::Client), 0) => {
            let reason = format!("it asked {name} over {object}, and no answer has come");
            owes(thread, Strength::Strong, reason)
        }
        _ => {
            let reason = format!("{name} is at the other end of {object}");
            owes(thread, Strength::Weak, reason)
        }
    })
}

/// Of the connections of a process that waits for any of them, the one that it asked by and that did
/// not answer.
fn asked_process(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    if let Some(object) = open_request(evidence, wait) {
        return peer(evidence, wait, object);
    }
    // What was asked before the recording is not known; that something was, its functions tell.
    if !evidence.shows(wait.user_stack(evidence), Mark::Asks) {
        return None;
    }
    let process = evidence.threads.thread(wait.thread).upid;
    let by_bus = |object: &Object| {
        let peer = evidence.sockets.peer_process(*object);
        peer.is_some_and(|peer| evidence.passes_on(peer))
    };
    let mut asks = evidence.sockets.asks(process).filter(by_bus);
    asks.find_map(|object| peer(evidence, wait, object))
}

/// Whom a process waits for that serves one connection and asked for nothing: its client.
fn only_client(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    let process = evidence.threads.thread(wait.thread).upid;
    let mut served = evidence.sockets.served_by(process);
    let (first, second) = (served.next()?, served.next());
    second.is_none().then(|| peer(evidence, wait, first))?
}

/// Who has the lock that a process of PostgreSQL waits for, by the titles that these processes give
/// themselves: no other sign of such a lock leaves the server.
fn lock_holder_by_title(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    let title = |process: Upid| evidence.threads.process(process).command.as_str();
    let own = evidence
        .threads
        .process(evidence.threads.thread(wait.thread).upid);
    if !(own.command.starts_with("postgres:") && own.command.ends_with(" waiting")) {
        return None;
    }
    let others = || {
        let siblings = evidence.threads.processes();
        siblings.filter(|other| {
            let command = &other.command;
            other.parent == own.parent
                && other.upid != own.upid
                && command.starts_with("postgres:")
                && !command.ends_with(" waiting")
        })
    };
    let in_transaction = |other: &&Process| title(other.upid).contains("idle in transaction");
    let mut holders = others().filter(in_transaction);
    let (holder, another) = (holders.next()?, holders.next());
    let thread = thread_of(evidence, holder.upid, Object::NONE, wait.end)?;
    let strength = if another.is_none() {
        Strength::Strong
    } else {
        Strength::Weak
    };
    let reason = format!(
        "its title says that it waits for a lock, and that of {} that it is in a transaction",
        evidence.name(thread)
    );
    Some(Edge::new(
        EdgeKind::Holder,
        strength,
        Source::Thread(thread),
        reason,
    ))
}

/// The connection by which the process of a thread asked for something that it had not got when the
/// wait ended, where there is one such.
pub fn open_request(evidence: &Evidence<'_>, wait: &Wait) -> Option<Object> {
    let process = evidence.threads.thread(wait.thread).upid;
    let until = wait.end;
    let asks = evidence.sockets.asks(process);
    let mut open = asks.filter(|&object| is_open(evidence, object, until));
    // One that certainly was not answered, rather than one that may need no answer.
    let first = open.next()?;
    let is_stuck = |object: &Object| {
        let end = other_end_of(evidence, *object);
        end.is_some_and(|end| {
            end.unread > 0 || stopped_thread(evidence, end.process, until).is_some()
        })
    };
    Some(
        [first]
            .into_iter()
            .chain(open)
            .find(is_stuck)
            .unwrap_or(first),
    )
}

/// To whom a process that passes messages on handed the one that came last by `end`, its end of a
/// connection: by the bytes that it sent next over another, or, where that was not seen, by what
/// lies unread at one of those that it is connected to. None if that one has answered since.
fn handed_to(evidence: &Evidence<'_>, end: Object, until: u64) -> Option<Utid> {
    let transfers = evidence.transfers;
    let sockets = evidence.sockets;
    let Some(came) = last_received(evidence, end, until) else {
        return left_unread(evidence, end, until);
    };
    let relay = transfers.thread[came];
    let until_row = transfers.ts.partition_point(|&ts| ts < until);
    let sent = (came + 1..until_row.min(came + PASSED_WITHIN))
        .take_while(|&row| transfers.thread[row] != relay || transfers.sent[row])
        .find(|&row| transfers.thread[row] == relay && transfers.object[row] != end.0)?;
    let far = sockets.peer(Object(transfers.object[sent]))?;
    let process = (sockets.holders(far).last().map(|holder| holder.process))
        .or_else(|| sockets.peer_process(Object(transfers.object[sent])))?;
    let answered = evidence
        .uses_before(far, until)
        .any(|row| row > sent && transfers.sent[row]);
    (!answered).then(|| thread_of(evidence, process, far, until))?
}

/// A message is passed on within so many transfers of all.
const PASSED_WITHIN: usize = 100_000;

/// One that is connected to the process of `end` and has not read what that sent.
fn left_unread(evidence: &Evidence<'_>, end: Object, until: u64) -> Option<Utid> {
    let sockets = evidence.sockets;
    let relay = sockets.holders(end).last()?.process;
    let own = sockets.peer(end);
    let mut unread = sockets
        .served_by(relay)
        .filter_map(|near| sockets.peer(near))
        .filter(|far| Some(*far) != own)
        .filter_map(|far| Some((far, sockets.holders(far).last()?)))
        .filter(|(_, holder)| holder.unread > 0 && holder.process != relay);
    let (far, holder) = unread.next()?;
    thread_of(evidence, holder.process, far, until)
}

fn last_received(evidence: &Evidence<'_>, object: Object, until: u64) -> Option<usize> {
    let mut uses = evidence.uses_before(object, until);
    uses.find(|&row| !evidence.transfers.sent[row])
}

/// Who holds the other end of a connection, or listens where it leads.
fn other_end_of(evidence: &Evidence<'_>, object: Object) -> Option<Holder> {
    let sockets = evidence.sockets;
    let ends = sockets
        .peer(object)
        .into_iter()
        .chain(sockets.listeners(object));
    let mut holders = ends.filter_map(|end| sockets.holders(end).last());
    holders.next().copied()
}

/// Whether what was asked for by a connection is owed at a moment: it was sent, and nothing came back;
/// through one that passes on, if whoever was handed it did not answer.
pub fn is_open(evidence: &Evidence<'_>, object: Object, until: u64) -> bool {
    let end = other_end_of(evidence, object);
    if end.is_some_and(|end| end.unread > 0) {
        return true;
    }
    let sent = match last_transfer(evidence, object, until) {
        Some(row) => evidence.transfers.sent[row],
        None => {
            let own = evidence.sockets.holders(object).first();
            own.is_some_and(|own| own.last == LastTransfer::Sent)
        }
    };
    match end {
        Some(end) if evidence.passes_on(end.process) => {
            let far = evidence.sockets.peer(object);
            sent && far.is_some_and(|far| handed_to(evidence, far, until).is_some())
        }
        _ => sent,
    }
}

/// The stack of a thread that only waits for work is less deep.
const DEEP: usize = 12;

/// Whether a thread waits as one that has nothing to do.
fn is_home(wait: &Wait) -> bool {
    matches!(
        wait.kind,
        WaitKind::Poll
            | WaitKind::Condition
            | WaitKind::Idle
            | WaitKind::Signal
            | WaitKind::Unknown
    )
}

fn owes(thread: Utid, strength: Strength, reason: String) -> Edge {
    Edge::new(EdgeKind::Peer, strength, Source::Thread(thread), reason)
}

/// The row of `transfers` that used a socket last before `until`.
fn last_transfer(evidence: &Evidence<'_>, object: Object, until: u64) -> Option<usize> {
    evidence.uses_before(object, until).next()
}

fn last_user(evidence: &Evidence<'_>, object: Object, until: u64) -> Option<Utid> {
    last_transfer(evidence, object, until).map(|row| evidence.transfers.thread[row])
}

/// Whether a thread lives at a moment.
fn is_there(evidence: &Evidence<'_>, thread: Utid, ts: u64) -> bool {
    let life = evidence.timeline.life(thread);
    life.start < ts && ts <= life.end
}

/// A thread of a process that is stopped right before a moment.
fn stopped_thread(evidence: &Evidence<'_>, process: Upid, ts: u64) -> Option<Utid> {
    let threads = &evidence.threads.process(process).threads;
    let is_stopped = |&&thread: &&Utid| {
        wait_at(evidence, thread, ts).is_some_and(|wait| wait.kind == WaitKind::Stopped)
    };
    threads.iter().find(is_stopped).copied()
}

/// The wait that a thread is in right before a moment.
fn wait_at(evidence: &Evidence<'_>, thread: Utid, ts: u64) -> Option<Wait> {
    let intervals = evidence.timeline.intervals(thread);
    let at = intervals.index_at(ts.saturating_sub(1))?;
    let interval = intervals.get(at)?;
    (interval.state == State::Blocked).then(|| Wait::new(evidence, thread, &interval))
}

/// The thread of a process that should answer: one that is stopped; else one that waits for what
/// lies at `object`; else one that is busy with something, which may be this; else the first.
fn thread_of(evidence: &Evidence<'_>, process: Upid, object: Object, until: u64) -> Option<Utid> {
    if let Some(stopped) = stopped_thread(evidence, process, until) {
        return Some(stopped);
    }
    let alive = || {
        let threads = &evidence.threads.process(process).threads;
        (threads.iter().copied()).filter(|&thread| is_there(evidence, thread, until))
    };
    let reads = |&thread: &Utid| {
        let there = wait_at(evidence, thread, until);
        !object.is_none() && there.is_some_and(|there| there.object(evidence) == object)
    };
    let is_busy =
        |&thread: &Utid| wait_at(evidence, thread, until).is_none_or(|there| !is_home(&there));
    let is_main = |&thread: &Utid| evidence.threads.thread(thread).is_main();
    // Of those that wait for a condition, the one whose stack is deepest is amid some work.
    let depth = |thread: &Utid| {
        let there = wait_at(evidence, *thread, until);
        let condition = there.filter(|there| there.kind == WaitKind::Condition);
        condition.map_or(0, |there| {
            evidence.stacks.frame_ids(there.user_stack(evidence)).len()
        })
    };
    let deepest = || {
        let all = alive().filter(|thread| !is_main(thread));
        all.max_by_key(depth).filter(|thread| depth(thread) >= DEEP)
    };
    alive()
        .find(reads)
        .or_else(|| alive().find(|thread| is_main(thread) && is_busy(thread)))
        .or_else(|| alive().find(is_busy))
        .or_else(deepest)
        .or_else(|| alive().find(is_main))
        .or_else(|| alive().next())
}

/// Whom a thread woke before it waited, the last first: not by giving back a lock, and not longer
/// ago than a few short waits.
pub(crate) fn asked(evidence: &Evidence<'_>, wait: &Wait) -> Vec<Edge> {
    const VERTICES: usize = 3;
    const MOST: usize = 3;
    let intervals = evidence.timeline.intervals(wait.thread);
    let here = intervals.index_at(wait.start).unwrap_or(0);
    let is_blocked = |interval: &Interval| interval.state == State::Blocked;
    let since = (0..here)
        .rev()
        .filter_map(|at| intervals.get(at))
        .filter(is_blocked)
        .take(VERTICES)
        .take_while(|before| wait.start.saturating_sub(before.end) <= ASKED_WITHIN_NS)
        .last()
        .map_or(wait.start, |before| before.end);
    let woken: Vec<usize> = evidence
        .wakes_by(wait.thread, since, wait.start)
        .filter(|&row| !evidence.shows(evidence.wakes.user_stack[row], Mark::Unlock))
        .collect();
    let mut asked: Vec<Utid> = Vec::new();
    for &row in woken.iter().rev() {
        let other = evidence.wakes.wakee[row];
        let is_kernel = evidence.threads.thread(other).is_kernel();
        if asked.len() < MOST && !is_kernel && other != wait.thread && !asked.contains(&other) {
            asked.push(other);
        }
    }
    asked
        .into_iter()
        .map(|other| {
            let reason = format!(
                "it woke {} right before it waited, as one who asks for something",
                evidence.name(other)
            );
            Edge::new(
                EdgeKind::Asked,
                Strength::Weak,
                Source::Thread(other),
                reason,
            )
        })
        .collect()
}

/// What was asked for longer ago is not what is waited for now.
const ASKED_WITHIN_NS: u64 = 5_000_000;

/// A refusal longer before a wait than this is not what it is about.
const REFUSED_WITHIN_NS: u64 = 5_000_000;

/// Who has the lock of the file that `wait` is for, or that its thread was refused in the course of
/// the wait or right before it; `until` is where the wait ends, or the part of it that is looked at.
pub fn file_lock(evidence: &Evidence<'_>, wait: &Wait, until: u64) -> Option<Edge> {
    struct Held {
        file: File,
        holder: Utid,
        count: usize,
        last: usize,
    }
    let handoffs = evidence.handoffs;
    let since = wait.start.saturating_sub(REFUSED_WITHIN_NS);
    // A wait for the lock itself names the file, a sleep between two tries does not.
    let wanted = (wait.kind == WaitKind::Lock).then(|| wait.object(evidence).0);
    let mut all: Vec<Held> = Vec::new();
    for row in evidence.file_lock_steps(wait.thread, since, until) {
        let file = file_locks::file(handoffs, row);
        let holder = handoffs.other[row];
        match HandoffStep::from(handoffs.step[row]) {
            HandoffStep::Refused | HandoffStep::Waiting
                if holder != NONE
                    && holder != wait.thread
                    && wanted.is_none_or(|object| object == handoffs.object[row]) =>
            {
                let known = all
                    .iter_mut()
                    .find(|held| (held.file, held.holder) == (file, holder));
                match known {
                    Some(held) => {
                        held.count += 1;
                        held.last = row;
                    }
                    None => all.push(Held {
                        file,
                        holder,
                        count: 1,
                        last: row,
                    }),
                }
            }
            // It has got it before it waited.
            HandoffStep::Taken if handoffs.ts[row] <= wait.start => {
                all.retain(|held| held.file != file);
            }
            _ => {}
        }
    }
    let most = all.into_iter().max_by_key(|held| (held.count, held.last))?;
    let holder = evidence.file_lock_taker(most.file, most.holder, most.last);
    let times = match most.count {
        1 => String::new(),
        count => format!(", and refused it {count} times"),
    };
    let reason = format!("{} has the lock of the file{times}", evidence.name(holder));
    Some(Edge::new(
        EdgeKind::Holder,
        Strength::Strong,
        Source::Thread(holder),
        reason,
    ))
}

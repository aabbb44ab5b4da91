//! Who owes the answer to what was sent over a connection: the process at the other end, or, where that
//! passes on what others send, whoever was handed it.

use hangdog_timeline::State;
use hangdog_trace::calls::Call;
use hangdog_trace::ids::{Upid, Utid};
use hangdog_trace::object::{Object, ObjectKind};
use hangdog_trace::sockets::Role;
use hangdog_trace::words::LastTransfer;

use super::amid::only_one_at_condition;
use super::amid::{amid_child, child_at_work, other_thread};
use super::kin::{descendants, first_thread};
use super::last::{last_transfer, last_user, other_end_of, peer_of};
use super::open::{Handed, handed_to, is_open, lies_unread, may_be_open};
use super::owes;
use super::pipe::left_behind;
use super::who::{
    PARKED_NS, is_amid, is_home, is_machine, is_there, most_at_work, stopped_thread, thread_of,
    wait_at,
};
use crate::descriptors::descriptors_used_up;
use crate::edge::{Edge, EdgeKind, Source, Strength};
use crate::evidence::{Evidence, signed};
use crate::marks::Mark;
use crate::wait::{Wait, WaitKind};
use crate::wake::{by_timer, is_busy};

/// The only thread of a process that is in the middle of work and has waited since right after the asker began to wait, or since right after
/// the process read what was asked at its `end`: for longer than the recording, which shows for how long. None if one waits for
/// more at that end.
fn taken_up(
    evidence: &Evidence<'_>,
    process: Upid,
    wait: &Wait,
    end: Option<Object>,
) -> Option<Utid> {
    /// It was woken by what was sent, before the sender went to sleep.
    const BEFORE_NS: i64 = 1_000_000;
    const SOON_NS: i64 = 50_000_000;
    let since = |wait: &Wait| evidence.away_since(wait.thread).filter(|_| wait.start == 0);
    // One whose waits are cut by timeouts asked before that.
    let read = || {
        let holder = evidence.sockets.holders(end?).last()?;
        let was_before = holder.last == LastTransfer::Received && holder.last_at < 0;
        was_before.then_some(holder.last_at)
    };
    let asked: Vec<i64> = since(wait).into_iter().chain(read()).collect();
    let reads = |thread: Utid| {
        let there = wait_at(evidence, thread, wait.end);
        there.is_some_and(|there| Some(there.object(evidence)) == end)
    };
    let has_taken_up = |&thread: &Utid| {
        // One that polls a single connection that its process has made is not at home.
        let asks = |there: &Wait| {
            !there.by_epoll(evidence)
                && evidence.sockets.role(there.object(evidence)) == Some(Role::Client)
        };
        let is_amid = |there: &Wait| !is_home(evidence, there) || asks(there);
        let there = wait_at(evidence, thread, wait.end).filter(is_amid);
        let began = there.and_then(|there| since(&there));
        began.is_some_and(|began| {
            (asked.iter()).any(|asked| {
                (asked.saturating_sub(BEFORE_NS)..asked.saturating_add(SOON_NS)).contains(&began)
            })
        })
    };
    let threads = || evidence.threads.process(process).threads.iter().copied();
    if threads().any(reads) {
        return None;
    }
    let mut found = threads().filter(has_taken_up);
    found.next().filter(|_| found.next().is_none())
}

/// The only thread of a process that was in the middle of work in one wait for nearly all of another's.
fn at_one_thing(evidence: &Evidence<'_>, process: Upid, wait: &Wait) -> Option<Utid> {
    const SOON_PART: u64 = 10;
    let is_at_one_thing = |&thread: &Utid| {
        // One that sleeps for very long, or waits for its user, does nothing for anybody.
        let rests = |there: &Wait| {
            let parked = there
                .asked_ns(evidence)
                .is_some_and(|asked| asked >= PARKED_NS);
            parked || there.kind == WaitKind::Device || is_home(evidence, there)
        };
        let there = wait_at(evidence, thread, wait.end).filter(|there| !rests(there));
        // It begins a little after the one who asked waits.
        let soon = wait.start + wait.duration() / SOON_PART;
        !is_machine(evidence, thread) && there.is_some_and(|there| there.start <= soon)
    };
    let threads = evidence.threads.process(process).threads.iter().copied();
    let mut found = threads.filter(is_at_one_thing);
    found.next().filter(|_| found.next().is_none())
}

/// Whose helpers are at work is looked at for waits that somebody may feel, ns.
const FELT_NS: u64 = 50_000_000;

/// The thread of a process that one which another started has started, as a browser's zygote does, and that was at work for most
/// of a wait: if there is but one.
fn helper_at_work(evidence: &Evidence<'_>, process: Upid, wait: &Wait) -> Option<Utid> {
    let family = descendants(evidence, std::iter::once(process));
    // Its own children are found from its wait.
    let is_further = |&it: &Upid| it != process && evidence.threads.process(it).parent != process;
    let mut helpers: Vec<Upid> = family.into_iter().filter(is_further).collect();
    helpers.sort_unstable();
    let during = wait.start..wait.end;
    let mut working = (helpers.into_iter())
        .filter_map(|helper| most_at_work(evidence, helper, during.clone()))
        .filter(|&thread| is_busy(evidence, thread, wait));
    working.next().filter(|_| working.next().is_none())
}

/// Who has the other end of a connection, or listens where it should lead.
pub fn peer(evidence: &Evidence<'_>, wait: &Wait, object: Object) -> Option<Edge> {
    Some(at_other_end(evidence, wait, object)?.over(object))
}

fn at_other_end(evidence: &Evidence<'_>, wait: &Wait, object: Object) -> Option<Edge> {
    let sockets = evidence.sockets;
    if let Some(receiver) = never_woken(evidence, wait, object) {
        let reason = format!(
            "it asked {}, which has slept since before that: the request has not arrived",
            evidence.name(receiver)
        );
        return Some(Edge::new(
            EdgeKind::Network,
            Strength::Strong,
            Source::Network,
            reason,
        ));
    }
    let other_end = sockets.peer(object).filter(|&end| is_lost(evidence, end));
    let is_lost = is_lost(evidence, object) && !is_kept_out(evidence, wait, object);
    if is_lost || other_end.is_some() {
        let reason = match is_lost {
            true if sockets.connecting(object).is_some() => unanswered_attempt(evidence, object),
            true => format!("the data it sent over {object} is not acknowledged"),
            false => format!("the data that was sent to it over {object} does not arrive"),
        };
        return Some(Edge::new(
            EdgeKind::Network,
            Strength::Strong,
            Source::Network,
            reason,
        ));
    }
    let end = sockets.peer(object);
    let own = evidence.threads.thread(wait.thread).upid;
    // Of several that have it, as a family of processes does, the one that reads there.
    let holder = |object: Object| {
        let processes = || sockets.holders(object).iter().map(|holder| holder.process);
        let reads = |thread: &Utid| {
            wait_at(evidence, *thread, wait.end)
                .is_some_and(|there| there.object(evidence) == object)
        };
        let is_reader =
            |&process: &Upid| evidence.threads.process(process).threads.iter().any(reads);
        processes()
            .find(is_reader)
            .or_else(|| processes().next_back())
    };
    // Who used the other end last is more surely the one than whoever made it.
    let user = end.and_then(|end| last_user(evidence, end, wait.end));
    let is_own = user.is_some_and(|user| evidence.threads.thread(user).upid == own);
    let elsewhere = || {
        let of_others = |thread: Utid| evidence.threads.thread(thread).upid != own;
        // Within a process one that reads there answers rather than one that only writes.
        receiver(evidence, end?, wait.end, of_others)
            .or_else(|| receiver(evidence, end?, wait.end, |thread| thread != wait.thread))
    };
    let user = is_own.then(elsewhere).flatten().or(user);
    let process = user
        .map(|thread| evidence.threads.thread(thread).upid)
        .or_else(|| holder(end?))
        .or_else(|| sockets.listeners(object).find_map(holder))
        // A process that uses the end later is likelier than the one that made it, which may have left it to a child.
        .or_else(|| Some(evidence.threads.thread(first_user(evidence, end?)?).upid))
        .or_else(|| sockets.peer_process(object));
    let Some(process) = process else {
        let asks = sockets.is_elsewhere(object) && sockets.role(object) == Some(Role::Client);
        let (_, remote) = sockets.addresses(object).filter(|_| asks)?;
        let reason = format!("it asked {remote}, where no program of this machine answers");
        let source = Source::Network;
        return Some(Edge::new(
            EdgeKind::Network,
            Strength::Strong,
            source,
            reason,
        ));
    };
    let awaits_work = |there: Wait| there.kind == WaitKind::Condition && is_home(evidence, &there);
    let has_nothing_to_do =
        |user: Utid| wait_at(evidence, user, wait.end).is_some_and(|there| there.is_idle(evidence));
    let thread = match user {
        Some(user)
            if process != own
                && has_nothing_to_do(user)
                && let Some(other) = most_at_work(evidence, process, wait.start..wait.end) =>
        {
            other
        }
        // It is one of several workers, and answers what others ask by the connection.
        Some(user)
            if process != own
                && wait_at(evidence, user, wait.end).is_some_and(awaits_work)
                && let Some(other) = at_one_thing(evidence, process, wait) =>
        {
            other
        }
        Some(user) if is_there(evidence, user, wait.end) => user,
        _ if process == evidence.threads.thread(wait.thread).upid => {
            let later = end.and_then(|end| first_user(evidence, end));
            later
                .filter(|&user| user != wait.thread && is_there(evidence, user, wait.end))
                .or_else(|| other_thread(evidence, wait, true))
                .or_else(|| only_one_at_condition(evidence, wait))
                .or_else(|| waits_for_itself(evidence, wait, object).then_some(wait.thread))?
        }
        _ => taken_up(evidence, process, wait, end)
            .or_else(|| thread_of(evidence, process, end.unwrap_or(Object::NONE), wait.end))?,
    };
    // The debt moved on with what was asked.
    if let Some(end) = end
        && evidence.passes_on(process)
        && let Some(Handed { thread: to, .. }) = handed_to(evidence, end, wait.end)
        && evidence.threads.thread(to).upid != evidence.threads.thread(wait.thread).upid
    {
        let (by, name) = (evidence.name(thread), evidence.name(to));
        let reason = format!("{by} forwarded its request to {name}, which has not answered");
        return Some(owes(to, Strength::Strong, reason));
    }
    if thread == wait.thread {
        let reason = format!("it asked itself over {object}, and has no other thread to answer");
        return waits_for_itself(evidence, wait, object)
            .then(|| owes(thread, Strength::Strong, reason));
    }
    // A program of several processes has others of them compute.
    if user.is_none()
        && wait.duration() >= FELT_NS
        && !is_amid(evidence, thread, wait.end)
        && let Some(helper) = helper_at_work(evidence, process, wait)
    {
        let [name, helper_name] = [thread, helper].map(|it| evidence.name(it));
        let reason = format!(
            "it asked {name} over {object}, and got no answer; {helper_name}, a process of its program, is at work"
        );
        return Some(owes(helper, Strength::Weak, reason));
    }
    let name = evidence.name(thread);
    let unread_at = |end: Object| sockets.holders(end).last().map(|holder| holder.unread);
    let of_end = end.and_then(unread_at);
    let queued = sockets
        .listeners(object)
        .filter_map(unread_at)
        .max()
        .unwrap_or(0);
    // What nobody has accepted yet lies at the listener, and that of another connection may.
    let unread = of_end.unwrap_or(queued);
    if unread == 0 && is_done_with_all(evidence, thread, wait.end) {
        return None;
    }
    if is_awaited_by(evidence, wait, object, thread) && ends_by_time(evidence, wait) {
        return child_at_work(evidence, wait);
    }
    Some(match (sockets.role(object), unread) {
        (Some(Role::Client), 1..) if of_end.is_none() => {
            let reason =
                format!("it connected to {name} by {object}, which has not accepted that yet");
            owes(thread, Strength::Strong, reason)
        }
        (Some(Role::Client), 1..) => {
            let reason = format!("it asked {name} over {object}, which has not read all of it");
            owes(thread, Strength::Strong, reason)
        }
        (Some(Role::Client), 0) => {
            let alike = waiting_for(evidence, wait, evidence.threads.thread(thread).upid);
            let alike = match alike {
                0..MANY_ALIKE => String::new(),
                count => format!("; {count} threads of its process wait for that"),
            };
            let reason = format!("it asked {name} over {object}, and got no answer{alike}");
            owes(thread, Strength::Strong, reason)
        }
        _ => {
            let reason = format!("{name} is at the other end of {object}");
            owes(thread, Strength::Weak, reason)
        }
    })
}

/// Whether a server waits for what a client's thread sends by a connection, while that waits for the server's answer.
fn is_awaited_by(evidence: &Evidence<'_>, wait: &Wait, object: Object, client: Utid) -> bool {
    let middle = wait.start + wait.duration() / 2;
    let end = evidence.sockets.peer(object);
    end.is_some()
        && evidence.sockets.role(object) == Some(Role::Server)
        && wait_at(evidence, client, middle).is_some_and(|there| {
            matches!(there.kind, WaitKind::Message | WaitKind::Poll)
                && Some(there.object(evidence)) == end
                && !there.writes(evidence)
        })
}

/// Whether a wait for what comes by a connection ends after some time: its first part did, or its call says so.
fn ends_by_time(evidence: &Evidence<'_>, wait: &Wait) -> bool {
    let intervals = evidence.timeline.intervals(wait.thread);
    let next = intervals.index_at(wait.start).map(|at| at + 1);
    let wake = next
        .and_then(|next| intervals.get(next))
        .and_then(|next| next.wake());
    wake.is_some_and(|row| by_timer(evidence, row)) || wait.poll_limit_ns(evidence).is_some()
}

/// Whether a poll goes on until its time is over, as far as is known: who could end it before waits for its process, or
/// nobody else could.
pub fn awaits_time_limit(evidence: &Evidence<'_>, wait: &Wait) -> bool {
    if wait.kind != WaitKind::Poll || wait.poll_limit_ns(evidence).is_none() {
        return false;
    }
    let object = wait.object(evidence);
    let own = evidence.threads.thread(wait.thread).upid;
    let client = || {
        let end = evidence.sockets.peer(object)?;
        let process = evidence.sockets.peer_process(object)?;
        thread_of(evidence, process, end, wait.end)
    };
    // By what only it has both ends of its own threads wake it.
    let wakes_itself = || {
        let threads = evidence.threads.process(own).threads.iter();
        let mut alive = threads.filter(|&&thread| is_there(evidence, thread, wait.end));
        evidence.sockets.peer_process(object) == Some(own)
            && alive.next().is_some()
            && alive.next().is_none()
    };
    wakes_itself() || client().is_some_and(|client| is_awaited_by(evidence, wait, object, client))
}

/// Whether a server of one thread waits for its next client: it reads no connection, and has answered those that it
/// had or dropped them.
fn is_done_with_all(evidence: &Evidence<'_>, thread: Utid, moment: u64) -> bool {
    let process = evidence.threads.thread(thread).upid;
    let threads = &evidence.threads.process(process).threads;
    let mut others = threads.iter().filter(|&&other| other != thread);
    let accepts = || {
        let row = wait_at(evidence, thread, moment).and_then(|there| there.row);
        row.is_some_and(|row| evidence.call(evidence.switches.call[row]) == Call::Accept)
    };
    accepts() && !others.any(|&other| is_there(evidence, other, moment))
}

/// Who should have got a datagram that a thread sent before it waited, and has not been woken since: all
/// threads of the receiver have slept since before that. A program sends a datagram anew each time that
/// it waits for an answer, but not a request by a connection.
fn never_woken(evidence: &Evidence<'_>, wait: &Wait, object: Object) -> Option<Utid> {
    const SURELY_BEFORE_NS: i64 = 1_000_000;
    let sockets = evidence.sockets;
    if object.kind() != ObjectKind::Inet || sockets.peer(object).is_some() {
        return None;
    }
    let asked = evidence.switches.ts[wait.row?];
    let asked_since = asleep_since(evidence, wait.thread, asked.saturating_add(1))?;
    if signed(wait.end).saturating_sub(asked_since) < signed(SURELY_SENT_NS) {
        return None;
    }
    let is_datagram = |&end: &Object| !sockets.accepts(end);
    let mut holders = (sockets.listeners(object).filter(is_datagram))
        .filter_map(|end| sockets.holders(end).last());
    let holder = holders.next()?;
    let threads = &evidence.threads.process(holder.process).threads;
    let mut receivers = (threads.iter().copied())
        .filter(|&thread| thread != wait.thread && is_there(evidence, thread, wait.end));
    let first = receivers.clone().next()?;
    let has_slept = |thread: Utid| {
        asleep_since(evidence, thread, wait.end)
            .is_some_and(|since| since.saturating_add(SURELY_BEFORE_NS) < asked_since)
    };
    (holder.unread == 0 && receivers.all(has_slept)).then_some(first)
}

/// Since when a thread has been off its CPU that waits right before a moment, ns since the trace's start:
/// before that, of one that was found so. None of one that does not wait, or where it is not known.
fn asleep_since(evidence: &Evidence<'_>, thread: Utid, moment: u64) -> Option<i64> {
    let intervals = evidence.timeline.intervals(thread);
    let interval = intervals.get(intervals.index_at(moment.saturating_sub(1))?)?;
    match interval.start {
        _ if interval.state != State::Blocked => None,
        0 => evidence.away_since(thread),
        start => Some(signed(start)),
    }
}

/// Who used an end of a connection first of all, be it after the wait for the other end.
fn first_user(evidence: &Evidence<'_>, end: Object) -> Option<Utid> {
    let first = evidence.uses_before(end, u64::MAX).last()?;
    Some(evidence.transfers.thread[first])
}

/// Whether a thread waits for the answer to what it asked by a connection that only its own process could
/// accept, which has no other thread.
fn waits_for_itself(evidence: &Evidence<'_>, wait: &Wait, object: Object) -> bool {
    let sockets = evidence.sockets;
    if sockets.role(object) != Some(Role::Client)
        || sockets.listens(object)
        || object.kind() != ObjectKind::Inet
    {
        return false;
    }
    // It may accept it when it has given up.
    if (sockets.peer(object)).is_some_and(|end| last_user(evidence, end, wait.end).is_some()) {
        return false;
    }
    let threads = &evidence.threads.process_of(wait.thread).threads;
    let mut others = threads.iter().filter(|&&other| other != wait.thread);
    !others.any(|&other| is_there(evidence, other, wait.end))
}

/// Whether a thread waits to be connected to a listener of this machine that does not take the
/// connections that it has got: then the kernel drops further ones. The thread may take itself for connected,
/// and have sent what nobody is there to receive.
fn is_kept_out(evidence: &Evidence<'_>, wait: &Wait, object: Object) -> bool {
    let call = wait
        .row
        .map(|row| evidence.call(evidence.switches.call[row]));
    let mut listeners = evidence.sockets.listeners(object);
    (call == Some(Call::Connect) || evidence.sockets.peer(object).is_none())
        && listeners.any(|listener| {
            let holder = evidence.sockets.holders(listener).last();
            let is_full =
                |process| descriptors_used_up(evidence, process, &(wait.start..wait.end)).is_some();
            holder.is_some_and(|holder| holder.unread > 0 || is_full(holder.process))
        })
}

/// Whether what was sent over a connection does not arrive: nobody acknowledges it, though it was sent again, or it does
/// not leave this machine.
pub fn is_lost(evidence: &Evidence<'_>, object: Object) -> bool {
    let mut holders = evidence.sockets.holders(object).iter();
    holders.any(|holder| holder.last == LastTransfer::Lost)
}

/// The socket by which a thread waits to be connected, which nothing has answered: what it waits for alone, or in an
/// event loop the last that its program began to connect right before.
pub fn attempt(evidence: &Evidence<'_>, wait: &Wait) -> Option<Object> {
    const SOON_NS: u64 = 10_000_000;
    const SEEN_NS: u64 = 1_000_000_000;
    let sockets = evidence.sockets;
    let is_open = |object: &Object| {
        sockets.connecting(*object).is_some() && evidence.first_use(*object).is_none()
    };
    if !wait.by_epoll(evidence) {
        return Some(wait.object(evidence)).filter(is_open);
    }
    // What was there already was seen a moment after the recording began.
    let begun = match wait.start {
        0 => 0..=SEEN_NS,
        start => start.saturating_sub(SOON_NS)..=start,
    };
    let process = evidence.threads.thread(wait.thread).upid;
    sockets.attempts(process, begun).find(is_open)
}

/// The connection that a thread's event loop began to make right before it waited, and that is not one which a
/// listener of this machine keeps waiting.
pub(crate) fn attempts_in_loop(evidence: &Evidence<'_>, wait: &Wait) -> Option<Object> {
    let object = attempt(evidence, wait).filter(|_| wait.by_epoll(evidence))?;
    let is_own = evidence.sockets.connecting(object) > Some(0);
    (is_own && !is_kept_out(evidence, wait, object)).then_some(object)
}

/// That nothing has answered the attempt to connect by this socket.
pub(crate) fn unanswered_attempt(evidence: &Evidence<'_>, object: Object) -> String {
    let remote = evidence.sockets.addresses(object).map_or("", |ends| ends.1);
    format!("it connects to {remote}, and nothing has answered")
}

/// Whether a thread waits for a connection that it makes, and nothing has answered: none of its bytes ever went,
/// and since it was seen to connect the thread was woken by its own time limits alone.
pub fn is_unconnected(evidence: &Evidence<'_>, wait: &Wait) -> bool {
    const MOST: usize = 256;
    let object = wait.object(evidence);
    // Of one that was seen before the trace begins it is not known what it has done since.
    let Some(since) = evidence.sockets.connecting(object).filter(|&ts| ts > 0) else {
        return false;
    };
    if is_kept_out(evidence, wait, object) {
        return false;
    }
    let intervals = evidence.timeline.intervals(wait.thread);
    let mut since = intervals.between(since, wait.start).take(MOST);
    let is_time_limit = |wake: Option<usize>| wake.is_none_or(|row| by_timer(evidence, row));
    matches!(wait.kind, WaitKind::Poll | WaitKind::Message)
        && evidence.first_use(object).is_none()
        && since.all(|interval| is_time_limit(interval.wake()))
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
    // On another CPU it may be received before the call that sent it has come back.
    let mut before = evidence.uses_before(object, transfers.ts[sent].saturating_add(1));
    let before = before.find(|&row| row < sent);
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
        .any(|row| before.is_none_or(|before| row > before) && !transfers.sent[row]);
    // Who is busy does not read what came, and who has not accepted a connection neither.
    let user = ends()
        .flat_map(|end| evidence.uses_before(end, wait.start))
        .map(|row| transfers.thread[row])
        .next();
    // A datagram is for whoever has the socket.
    let holder = || {
        let ends = ends().filter(|&end| !sockets.accepts(end));
        let mut holders = ends.flat_map(|end| sockets.holders(end).iter());
        let process = holders.next().map(|holder| holder.process)?;
        thread_of(evidence, process, Object::NONE, by_then)
    };
    let waits = user
        .or_else(holder)
        .and_then(|user| wait_at(evidence, user, by_then));
    // A worker that waits for a task reads nothing by itself.
    let would_read = |waits: Wait| match waits.kind {
        WaitKind::Poll => true,
        WaitKind::Idle => waits.object(evidence).kind() != ObjectKind::Futex,
        WaitKind::Message => sockets.peer(object) == Some(waits.object(evidence)),
        _ => false,
    };
    // What lies there unread has arrived, and its receiver takes its time.
    !came
        && waits.is_some_and(would_read)
        && ends().all(|end| leaves_unread(evidence, end).is_none())
}

/// The process that had not read what had come by its end of a connection when it was looked at.
pub(super) fn leaves_unread(evidence: &Evidence<'_>, end: Object) -> Option<Upid> {
    if evidence.sockets.accepts(end) {
        return None;
    }
    let mut holders = evidence.sockets.holders(end).iter();
    let reader = holders.find(|holder| holder.unread > 0)?;
    Some(reader.process)
}

/// Within one machine bytes arrive long before that.
const SURELY_SENT_NS: u64 = 100_000_000;

/// Of the connections of a process that waits for any of them, the one that it asked by and that did
/// not answer.
pub(super) fn asked_process(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    if let Some(object) = open_request(evidence, wait) {
        return peer(evidence, wait, object);
    }
    // What was asked before the recording is not known; that something was, its functions tell.
    if !evidence.shows(wait.user_stack(evidence), Mark::Asks) {
        return None;
    }
    let process = evidence.threads.thread(wait.thread).upid;
    let asks_bus = evidence.shows(wait.user_stack(evidence), Mark::AsksBus);
    let by_bus = |object: &Object| {
        let peer = evidence.sockets.peer_process(*object);
        peer.is_some_and(|peer| {
            evidence.passes_on(peer) && !(asks_bus && evidence.serves_display(peer))
        })
    };
    // A toolkit is also connected with a bus of its own for screen readers, which is asked for little.
    let is_for_readers = |object: &Object| {
        let addresses = evidence.sockets.addresses(*object);
        addresses.is_some_and(|(_, remote)| remote.contains("/at-spi/"))
    };
    let mut asks: Vec<Object> = evidence.sockets.asks(process).filter(by_bus).collect();
    asks.sort_by_key(is_for_readers);
    let mut asks = asks.into_iter();
    let asked = asks.find_map(|object| peer(evidence, wait, object));
    // Without a bus, by the only connection that it made to another process.
    asked.or_else(|| {
        let is_others = |object: &Object| {
            let peer = evidence.sockets.peer_process(*object);
            peer != Some(process) && peer.is_none_or(|peer| !evidence.passes_on(peer))
        };
        let mut asks = evidence.sockets.asks(process).filter(is_others);
        let (only, second) = (asks.next()?, asks.next());
        second.is_none().then(|| peer(evidence, wait, only))?
    })
}

/// Whom a program may have asked before the recording began: one of those that it is a client of, if that is in the
/// middle of work.
pub fn may_have_asked(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    let process = evidence.threads.thread(wait.thread).upid;
    let mut asks = evidence.sockets.asks(process);
    let asked = asks.find(|&object| may_be_open(evidence, object, wait.end))?;
    peer(evidence, wait, asked)
}

/// The server of a client that polls for long, where that waits on this machine for what others print: so ssh waits
/// until nobody has the output of its command open any more.
pub fn remote_output(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    const LONG_NS: u64 = 1_000_000_000;
    if wait.kind != WaitKind::Poll || wait.by_epoll(evidence) || wait.duration() < LONG_NS {
        return None;
    }
    let process = evidence.threads.thread(wait.thread).upid;
    let left_behind = |object: Object| {
        let server = first_thread(evidence, peer_of(evidence, object)?)?;
        let there = wait_at(evidence, server, wait.end)?;
        left_behind(evidence, &there).map(|_| server)
    };
    let server = evidence.sockets.asks(process).find_map(left_behind)?;
    let reason = format!(
        "it is a client of {}, which waits for what others print",
        evidence.name(server)
    );
    Some(owes(server, Strength::Weak, reason))
}

/// So many threads of one process that wait for the same server are told of: all of a pool may.
const MANY_ALIKE: usize = 4;

/// How many threads of the waiting one's process wait for an answer of the same server; 0 for a short wait.
fn waiting_for(evidence: &Evidence<'_>, wait: &Wait, server: Upid) -> usize {
    const LONG_NS: u64 = 100_000_000;
    let threads = &evidence.threads.process_of(wait.thread).threads;
    if wait.duration() < LONG_NS || threads.len() < MANY_ALIKE {
        return 0;
    }
    let waits_for_it = |&&thread: &&Utid| {
        wait_at(evidence, thread, wait.end).is_some_and(|there| {
            let object = there.object(evidence);
            evidence.sockets.role(object) == Some(Role::Client)
                && peer_of(evidence, object) == Some(server)
        })
    };
    threads.iter().filter(waits_for_it).count()
}

/// Whom a process waits for that serves one connection and asked for nothing: its client.
pub(super) fn only_client(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    // Where a timeout ended it, the server let that pass on its own account.
    if wait.end < evidence.timeline.end() {
        return None;
    }
    let process = evidence.threads.thread(wait.thread).upid;
    let mut served = evidence.sockets.served_by(process);
    let (first, second) = (served.next()?, served.next());
    second.is_none().then(|| peer(evidence, wait, first))?
}

/// Whom a process waits for that made connections over which nothing went in the trace: of those at their other
/// ends the only one that is in the middle of work, or has a child that is.
pub(super) fn server_at_work(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    if wait.end < evidence.timeline.end() || !evidence.stands_for_program(wait.thread) {
        return None;
    }
    let process = evidence.threads.thread(wait.thread).upid;
    let works = |&object: &Object| {
        let end = evidence.sockets.peer(object);
        let Some((end, server)) = end.zip(peer_of(evidence, object)) else {
            return false;
        };
        let is_used = [object, end]
            .iter()
            .any(|&end| last_transfer(evidence, end, wait.end).is_some());
        if is_used || server == process || evidence.passes_on(server) {
            return false;
        }
        is_at_work(evidence, server, end, wait.end)
    };
    let mut at_work = evidence.sockets.asks(process).filter(works);
    let only = at_work.next().filter(|_| at_work.next().is_none())?;
    peer(evidence, wait, only)
}

/// Whether a process that has an end of a connection is in the middle of work, or has a child that is, and does not
/// wait for the other end itself.
fn is_at_work(evidence: &Evidence<'_>, process: Upid, end: Object, until: u64) -> bool {
    let thread = thread_of(evidence, process, end, until);
    thread.is_some_and(|thread| {
        wait_at(evidence, thread, until).is_none_or(|there| {
            let asks_back = there.object(evidence) == end;
            !asks_back && (!is_home(evidence, &there) || amid_child(evidence, &there).is_some())
        })
    })
}

/// Who is still at work on what a thread asked for before it waited for anything, where `edge`, by which the wait
/// ended, came from another: the loop went round, and waits on.
pub(crate) fn still_at_work(evidence: &Evidence<'_>, wait: &Wait, edge: &Edge) -> Option<Edge> {
    const SHORTEST_NS: u64 = 1_000_000;
    let process = |thread: Utid| evidence.threads.thread(thread).upid;
    let by = match edge.source {
        Source::Thread(waker) => Some(process(waker)),
        _ => None,
    };
    let is_any = matches!(wait.kind, WaitKind::Poll | WaitKind::Idle);
    let is_delivery = matches!(edge.kind, EdgeKind::Message | EdgeKind::Network);
    if !is_any || !is_delivery || wait.duration() < SHORTEST_NS {
        return None;
    }
    let works = |&object: &Object| {
        // Another thread of the program may have asked.
        let is_its_own = match last_transfer(evidence, object, wait.end) {
            Some(row) => {
                let transfers = evidence.transfers;
                transfers.thread[row] == wait.thread && transfers.ts[row] <= wait.start
            }
            None => evidence.stands_for_program(wait.thread) || wait.object(evidence) == object,
        };
        let end = evidence.sockets.peer(object).filter(|_| is_its_own);
        let Some((end, server)) = end.zip(peer_of(evidence, object)) else {
            return false;
        };
        if by == Some(server) || server == process(wait.thread) || evidence.passes_on(server) {
            return false;
        }
        is_at_work(evidence, server, end, wait.end)
    };
    let object = open_requests(evidence, wait).find(works)?;
    peer(evidence, wait, object)
}

/// The connection by which the process of a thread asked for something that it had not got when the
/// wait ended: of several one that certainly was not answered, else the one that was asked last.
pub fn open_request(evidence: &Evidence<'_>, wait: &Wait) -> Option<Object> {
    let until = wait.end;
    let is_stuck = |object: Object| {
        let end = other_end_of(evidence, object);
        lies_unread(evidence, object, until)
            || end.is_some_and(|end| stopped_thread(evidence, end.process, until).is_some())
    };
    open_requests(evidence, wait).max_by_key(|&object| {
        (
            is_stuck(object),
            last_transfer(evidence, object, until),
            object.0,
        )
    })
}

/// All such connections.
pub(super) fn open_requests<'e>(
    evidence: &'e Evidence<'_>,
    wait: &Wait,
) -> impl Iterator<Item = Object> + 'e {
    let wait = *wait;
    let process = evidence.threads.thread(wait.thread).upid;
    // Nobody was seen to hold a connection that was made and closed within the recording. It was still open if it
    // was used later, or if it is what the thread used last.
    let is_there = move |object: &Object| {
        let mut holders = evidence.sockets.holders(*object).iter();
        let last = last_transfer(evidence, *object, wait.end);
        holders.any(|holder| holder.process == process)
            || last.is_some()
                && (last == evidence.last_used(wait.thread, wait.end)
                    || last != last_transfer(evidence, *object, u64::MAX))
    };
    // An event loop wakes itself by a connection, and would answer itself.
    let is_own = move |object: &Object| {
        wait.by_epoll(evidence) && evidence.sockets.peer_process(*object) == Some(process)
    };
    let asks = evidence.sockets.asks(process).filter(is_there);
    asks.filter(move |object| !is_own(object))
        .filter(move |&object| is_open(evidence, object, wait.end))
}

/// Whether a process serves another by a connection that is in the trace, too.
pub(crate) fn serves_known(evidence: &Evidence<'_>, process: Upid) -> bool {
    let mut served = evidence.sockets.served_by(process);
    served.any(|object| peer_of(evidence, object).is_some())
}

/// The thread that read last at one end of a connection, of those that `is_one` allows: of what is asked at the other
/// end it knows, while one that only writes there need not.
fn receiver(
    evidence: &Evidence<'_>,
    end: Object,
    until: u64,
    is_one: impl Fn(Utid) -> bool,
) -> Option<Utid> {
    /// So many uses are looked at.
    const MOST: usize = 4_096;
    let transfers = evidence.transfers;
    let uses = evidence.uses_before(end, until).take(MOST);
    let mut threads = uses
        .filter(|&row| !transfers.sent[row])
        .map(|row| transfers.thread[row]);
    threads.find(|&thread| is_one(thread))
}

//! Who owes a thread what it waits for, where no wake brought it.
//!
//! - Who waits for a pipe or connection waits for the process at the other end ([`pipe`],
//!   [`connection`]); who waits for anything, for the one that its process asked and that did not
//!   answer. A process that is stopped, or has left unread what it was handed, is more surely the one
//!   than another; where nothing else is known, one that is stopped within reach ([`stopped`]).
//! - One that was refused a file's lock, or waits for it, waits for the process that has the lock; one
//!   that looks whether its child has ended, for that ([`again`]). A database's locks show at its
//!   clients ([`clients`]), a program's own at what its other threads do.
//! - The event loop of a server has handed its work to another thread of it; that of a window waits for its
//!   user; each worker of a pool may wait for a task that only they could run.
//! - A child that a signal killed as the wait began may have been at work for it ([`killed`]).
//! - A thread that woke another before it waited may have asked it for what it waits for.

mod again;
mod clients;
mod connection;
mod killed;
mod own;
mod partner;
mod pipe;
pub(crate) mod stopped;
mod who;

use hangdog_timeline::{Interval, State};
use hangdog_trace::calls::Call;
use hangdog_trace::ids::{NONE, Upid, Utid};
use hangdog_trace::object::{Object, ObjectKind};
use hangdog_trace::sockets::Role;

use crate::edge::{Edge, EdgeKind, Source, Strength};
use crate::evidence::{Evidence, signed};
use crate::marks::Mark;
use crate::wait::{Wait, WaitKind};

use again::awaited_child;
pub use again::{asked_again, child_looked_after, waits_out_child};
pub use clients::may_wait_for_jobs;
use clients::other_client;
pub(crate) use connection::{accepted_late, handed_answer, is_undelivered};
use connection::{asked_process, only_client, only_one_at_condition, only_server, peer};
pub use connection::{is_lost, is_open, may_be_open, open_request};
pub(crate) use killed::{all_killed, killed};
pub(crate) use own::told_by_stacks;
use partner::child_at_terminal;
pub use partner::only_partner;
use pipe::other_end;
pub(crate) use pipe::relative;
pub use pipe::{is_from_outside, is_job_pool, is_own_pipe, takes_orders_by_pipe};
pub(crate) use who::stopped_thread;
pub use who::{ancestors, awaits_completions, is_deadlocked, is_descendant, peer_of};
use who::{deepest_of_deadlocked, is_home, is_machine, is_there, thread_of, wait_at};

/// The one who owes a thread what it waits for, by what the wait itself is about: who has the other
/// end of its pipe or connection, who serves its file system, and of a process that waits for
/// anything the one that it asked and that has not answered.
pub(crate) fn debtor(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    let named = named_debtor(evidence, wait);
    // An idle server that was asked may have passed it on to one that is stopped.
    let is_idle = matches!(
        wait.kind,
        WaitKind::Poll | WaitKind::Condition | WaitKind::Device
    );
    named.or_else(|| is_idle.then(|| stopped::within_reach(evidence, wait))?)
}

fn named_debtor(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    let sockets = evidence.sockets;
    if wait.is_for_served_file(evidence) {
        let what = "serves the file system";
        return server_of_files(evidence, wait, sockets.file_systems(), what);
    }
    if evidence.shows(wait.kernel_stack(evidence), Mark::Permission) {
        let what = "is asked by the kernel before the file is opened";
        return server_of_files(evidence, wait, sockets.keepers(), what);
    }
    if starves_own_pool(evidence, wait) {
        let reason = "each worker of its pool waits for a task that only they could run";
        return Some(Edge::new(
            EdgeKind::Awaited,
            Strength::Strong,
            Source::Nobody,
            reason,
        ));
    }
    if let Some(edge) = awaited_child(evidence, wait).or_else(|| other_client(evidence, wait)) {
        return Some(edge);
    }
    let object = wait.object(evidence);
    match (wait.kind, object.kind()) {
        // The next request comes by it, while the last one is worked on.
        (WaitKind::Poll, ObjectKind::Pipe) if wait.by_epoll(evidence) => {
            child_at_work(evidence, wait).or_else(|| other_end(evidence, wait, object))
        }
        (WaitKind::Message | WaitKind::Poll, ObjectKind::Pipe | ObjectKind::MessageQueue) => {
            other_end(evidence, wait, object)
        }
        (WaitKind::Device, _) if wait.writes(evidence) => terminal(evidence, wait),
        (WaitKind::Poll, ObjectKind::Unix | ObjectKind::Inet) if awaits_user(evidence, wait) => {
            Some(of_user())
        }
        // An epoll's only connection when it was looked at need not be what it waits for since.
        (WaitKind::Poll, ObjectKind::Inet) if wait.by_epoll(evidence) => {
            asked_process(evidence, wait).or_else(|| peer(evidence, wait, object))
        }
        (
            WaitKind::Message | WaitKind::Poll | WaitKind::Kernel,
            ObjectKind::Unix | ObjectKind::Inet,
        ) => peer(evidence, wait, object),
        // A lock of the program's own that is made of an eventfd: another thread has it.
        (WaitKind::Poll, ObjectKind::Eventfd) if wait.is_for_own_lock(evidence) => None,
        (WaitKind::Poll, ObjectKind::None | ObjectKind::Epoll | ObjectKind::Eventfd)
        | (WaitKind::Idle, _) => asked_process(evidence, wait)
            .or_else(|| helper(evidence, wait))
            .or_else(|| own_worker(evidence, wait).filter(|_| wait.kind == WaitKind::Poll))
            .or_else(|| awaits_user(evidence, wait).then(of_user))
            .or_else(|| child_at_work(evidence, wait))
            .or_else(|| only_client(evidence, wait))
            .or_else(|| only_server(evidence, wait))
            .or_else(|| only_partner(evidence, wait))
            .or_else(|| child_at_terminal(evidence, wait)),
        _ => None,
    }
}

/// The program that serves the file that a thread waits for: the only one of `servers`, or one of them
/// that is stopped, or in the middle of work.
fn server_of_files(
    evidence: &Evidence<'_>,
    wait: &Wait,
    servers: &[Upid],
    what: &str,
) -> Option<Edge> {
    let is_stopped = |process: Upid| stopped_thread(evidence, process, wait.end).is_some();
    // A thread of it that waits for the next request does not work on this one.
    let amid = |process: Upid| {
        let threads = evidence.threads.process(process).threads.iter().copied();
        let mut alive = threads.filter(|&thread| is_there(evidence, thread, wait.end));
        alive.find(|&thread| {
            let there = wait_at(evidence, thread, wait.end);
            !there.is_some_and(|there| is_home(evidence, &there) || there.kind == WaitKind::Device)
        })
    };
    let is_amid = |process: Upid| amid(process).is_some();
    let find = |is_it: &dyn Fn(Upid) -> bool| servers.iter().copied().find(|&it| is_it(it));
    let server = match servers {
        [only] => *only,
        _ => find(&is_stopped).or_else(|| find(&is_amid))?,
    };
    let thread = match stopped_thread(evidence, server, wait.end).or_else(|| amid(server)) {
        Some(thread) => thread,
        None => thread_of(evidence, server, Object::NONE, wait.end)?,
    };
    let reason = format!("{} {what}", evidence.name(thread));
    Some(owes(thread, Strength::Strong, reason))
}

fn owes(thread: Utid, strength: Strength, reason: String) -> Edge {
    Edge::new(EdgeKind::Peer, strength, Source::Thread(thread), reason)
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
    // The end of a vfork is no request.
    let ends_vfork = |row: usize| {
        let there = wait_at(evidence, evidence.wakes.wakee[row], evidence.wakes.ts[row]);
        let call = there.and_then(|there| there.row);
        call.is_some_and(|row| evidence.call(evidence.switches.call[row]) == Call::Fork)
    };
    let woken: Vec<usize> = evidence
        .wakes_by(wait.thread, since, wait.start)
        .filter(|&row| !ends_vfork(row))
        .filter(|&row| !evidence.shows(evidence.wakes.user_stack[row], Mark::Unlock))
        .collect();
    let own = evidence.threads.thread(wait.thread).upid;
    let within = wait.is_within_process(evidence);
    let middle = wait.start + wait.duration() / 2;
    let has_nothing_to_do = |other: Utid| {
        let there = wait_at(evidence, other, middle);
        there.is_some_and(|there| there.is_idle(evidence))
    };
    let mut asked: Vec<Utid> = Vec::new();
    for &row in woken.iter().rev() {
        let other = evidence.wakes.wakee[row];
        let known = evidence.threads.thread(other);
        // Two kinds of threads are woken without being asked for an answer: the recorder, which waits
        // for the exec of its command, and a virtual machine's own threads, as its compilers.
        let is_nobody = known.is_kernel()
            || Some(known.pid) == evidence.recorder
            || is_machine(evidence, other);
        let may_end_it = !is_nobody && !has_nothing_to_do(other) && (!within || known.upid == own);
        if asked.len() < MOST && may_end_it && other != wait.thread && !asked.contains(&other) {
            asked.push(other);
        }
    }
    asked
        .into_iter()
        .map(|other| {
            let reason = format!(
                "it woke {} right before it waited, as a request does",
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

/// Whether a thread woke another of its process right before it waited.
pub fn asked_own(evidence: &Evidence<'_>, wait: &Wait) -> bool {
    let process = |thread: Utid| evidence.threads.thread(thread).upid;
    asked(evidence, wait).iter().any(|edge| match edge.source {
        Source::Thread(other) => process(other) == process(wait.thread),
        _ => false,
    })
}

/// Whether a thread waits for whatever comes in the middle of a wait, or for its user.
pub(crate) fn awaits_anything(evidence: &Evidence<'_>, thread: Utid, wait: &Wait) -> bool {
    wait_at(evidence, thread, wait.start + wait.duration() / 2)
        .is_some_and(|there| there.kind == WaitKind::Device || is_home(evidence, &there))
}

/// What was asked for longer ago is not what is waited for now.
const ASKED_WITHIN_NS: u64 = 5_000_000;

/// Who may have a lock of the program's own that names no holder: of the other threads of the process
/// one that is in the middle of work; where there is none, one that waits for such a lock itself.
pub(crate) fn likely_holder(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    if !wait.is_for_own_lock(evidence) {
        return None;
    }
    if let Some(holder) = other_thread(evidence, wait, true) {
        let reason = format!(
            "the lock names no holder; {} may hold it, judging by its activity",
            evidence.name(holder)
        );
        return Some(amid_edge(holder, reason));
    }
    let holder = sole_other(evidence, wait).filter(|&other| !goes_on(evidence, other, wait))?;
    let reason = format!(
        "the lock names no holder, and {} is the only other thread of its process",
        evidence.name(holder)
    );
    Some(amid_edge(holder, reason))
}

/// The only other thread of the process, what a virtual machine keeps for itself apart.
fn sole_other(evidence: &Evidence<'_>, wait: &Wait) -> Option<Utid> {
    let process = evidence.threads.thread(wait.thread).upid;
    let threads = evidence.threads.process(process).threads.iter().copied();
    let mut others = threads.filter(|&other| {
        other != wait.thread && is_there(evidence, other, wait.end) && !is_machine(evidence, other)
    });
    others.next().filter(|_| others.next().is_none())
}

/// What the first thread of a program, or a worker that has a task, may wait for by a condition: another
/// that is in the middle of work, or that waits for a lock; where there is none, a worker of a pool that
/// waits for itself, or a child of its process that is in the middle of work. A thread of a language's
/// scheduler waits for whatever its process does.
pub(crate) fn amid_something(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    if wait.kind == WaitKind::Idle {
        let other = other_thread(evidence, wait, false)?;
        return Some(amid_thread(evidence, other));
    }
    let awaits_other = wait.kind == WaitKind::Condition
        && wait.holder.is_none()
        && (evidence.stands_for_program(wait.thread)
            || evidence.shows(wait.user_stack(evidence), Mark::Handles));
    if !awaits_other {
        return None;
    }
    if let Some(other) = other_thread(evidence, wait, true) {
        return Some(amid_thread(evidence, other));
    }
    let takes_work = |thread: Utid| {
        wait_at(evidence, thread, wait.end).is_some_and(|there| {
            let stack = there.user_stack(evidence);
            there.is_idle(evidence) || evidence.shows(stack, Mark::TakesWork)
        })
    };
    if let Some(worker) = starved_worker(evidence, wait) {
        let reason = format!(
            "it waits for a task's result, and {} waits for one within a task",
            evidence.name(worker)
        );
        return Some(amid_edge(worker, reason));
    }
    if let Some(other) = deepest_of_deadlocked(evidence, wait) {
        let reason = format!(
            "no thread of its process can go on, and {} is the one most deep in work",
            evidence.name(other)
        );
        return Some(amid_edge(other, reason));
    }
    if let Some(other) = only_one_at_condition(evidence, wait).filter(|&other| !takes_work(other)) {
        let reason = format!(
            "of the other threads of its process, {} alone waits for a condition, and not for work",
            evidence.name(other)
        );
        return Some(amid_edge(other, reason));
    }
    let (other, what) = match amid_child(evidence, wait) {
        Some(child) => (child, "its child"),
        None => (amid_sibling(evidence, wait)?, "of those started with it"),
    };
    let reason = format!(
        "no thread of its process is in the middle of work, but {what} {} is",
        evidence.name(other)
    );
    Some(amid_edge(other, reason))
}

/// Of the processes that have the same parent, and may share with a process the memory that it waits at, the
/// only one that is in the middle of work.
fn amid_sibling(evidence: &Evidence<'_>, wait: &Wait) -> Option<Utid> {
    if wait.is_within_process(evidence) {
        return None;
    }
    let moment = wait.start + wait.duration() / 2;
    let own = evidence.threads.process_of(wait.thread);
    let is_amid = |&thread: &Utid| {
        wait_at(evidence, thread, moment).is_none_or(|there| !is_home(evidence, &there))
    };
    let siblings = evidence.threads.processes();
    let siblings =
        siblings.filter(|it| it.upid != own.upid && it.parent == own.parent && own.parent != NONE);
    let amid: Vec<Utid> = siblings
        .filter(|it| it.name == own.name)
        .filter_map(|it| thread_of(evidence, it.upid, Object::NONE, wait.end))
        .filter(is_amid)
        .collect();
    // Who sleeps is less likely than who does not.
    let sleeps = |thread: Utid| {
        wait_at(evidence, thread, moment).is_some_and(|there| there.kind == WaitKind::Sleep)
    };
    let mut awake = amid.iter().copied().filter(|&thread| !sleeps(thread));
    match (&amid[..], awake.next()) {
        ([only], _) => Some(*only),
        (_, only) => only.filter(|_| awake.next().is_none()),
    }
}

fn amid_thread(evidence: &Evidence<'_>, other: Utid) -> Edge {
    let reason = format!(
        "of the other threads of its process, {} is in the middle of work",
        evidence.name(other)
    );
    amid_edge(other, reason)
}

/// The child that an event loop started right before it waited, or meanwhile, and that is in the middle of
/// work.
fn child_at_work(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    const SOON_NS: u64 = 100_000_000;
    if !evidence.stands_for_program(wait.thread) {
        return None;
    }
    let child = amid_child(evidence, wait)?;
    let born = evidence.timeline.life(child).start;
    let reason = format!(
        "it started {}, which is in the middle of work",
        evidence.name(child)
    );
    (born.saturating_add(SOON_NS) >= wait.start).then(|| amid_edge(child, reason))
}

/// The child started last of those that are in the middle of work and do not wait for their parent.
fn amid_child(evidence: &Evidence<'_>, wait: &Wait) -> Option<Utid> {
    let moment = wait.start + wait.duration() / 2;
    let own = evidence.threads.thread(wait.thread).upid;
    let awaits_parent = |there: &Wait| {
        let object = there.object(evidence);
        let mut holders = evidence.sockets.holders(object).iter();
        there.kind == WaitKind::Message
            && (peer_of(evidence, object) == Some(own) || holders.any(|it| it.process == own))
    };
    // Who shares what it waits for may just keep it.
    let shares = !wait.is_within_process(evidence);
    let is_amid = |&thread: &Utid| {
        wait_at(evidence, thread, moment).is_none_or(|there| {
            let is_home = is_home(evidence, &there);
            !awaits_parent(&there) && (!is_home || shares && there.kind == WaitKind::Signal)
        })
    };
    let children = evidence
        .threads
        .processes()
        .filter(|child| child.parent == own && child.upid != own);
    children
        .filter_map(|child| thread_of(evidence, child.upid, Object::NONE, moment))
        .filter(is_amid)
        .last()
}

/// Whether a thread that may hold what is waited for waits itself for the one who waits, otherwise
/// than for a lock: then it is no guess that it holds one. Two who wait for locks may be a deadlock, and one
/// who waits for a lock and one who asked a server, which keeps it waiting for what the other has there.
pub(crate) fn waits_for_it(
    evidence: &Evidence<'_>,
    wait: &Wait,
    guess: &Edge,
    dependent: &[Utid],
) -> bool {
    let Source::Thread(other) = guess.source else {
        return false;
    };
    let moment = wait.start + wait.duration() / 2;
    let waits_for_lock = || {
        wait_at(evidence, other, moment).is_some_and(|there| {
            let asked = there.object(evidence);
            let asks = evidence.sockets.role(asked) == Some(Role::Client)
                && peer_of(evidence, asked) != Some(evidence.threads.thread(other).upid);
            there.is_for_own_lock(evidence) || asks && wait.is_for_own_lock(evidence)
        })
    };
    guess.kind == EdgeKind::Amid && dependent.contains(&other) && !waits_for_lock()
}

/// Who alone is left to end a wait for a condition that others wait for: the only other thread of the
/// process that is not one of those, the `dependent`.
pub(crate) fn only_other(evidence: &Evidence<'_>, wait: &Wait, dependent: &[Utid]) -> Option<Edge> {
    let process = |thread: Utid| evidence.threads.thread(thread).upid;
    let own = process(wait.thread);
    let is_awaited = dependent
        .iter()
        .any(|&other| other != wait.thread && process(other) == own);
    if !is_awaited || wait.kind != WaitKind::Condition || wait.holder.is_some() {
        return None;
    }
    let threads = evidence.threads.process(own).threads.iter().copied();
    let mut others = threads.filter(|thread| {
        *thread != wait.thread
            && !dependent.contains(thread)
            && is_there(evidence, *thread, wait.end)
    });
    let only = others.next().filter(|_| others.next().is_none())?;
    let reason = format!(
        "{} is the only thread left in its process that can end it",
        evidence.name(only)
    );
    Some(amid_edge(only, reason))
}

fn amid_edge(thread: Utid, reason: String) -> Edge {
    Edge::new(
        EdgeKind::Amid,
        Strength::Weak,
        Source::Thread(thread),
        reason,
    )
}

/// The thread of the same process that is most surely in the middle of work during a wait, rather
/// than waiting for work; `is_lock` says that those who wait for a lock count too, if nobody else
/// does.
fn other_thread(evidence: &Evidence<'_>, wait: &Wait, is_lock: bool) -> Option<Utid> {
    // When it ends, all may run, to end as well.
    let moment = wait.start + wait.duration() / 2;
    let process = evidence.threads.thread(wait.thread).upid;
    let threads = evidence.threads.process(process).threads.iter().copied();
    let asks = |there: &Wait| evidence.sockets.role(there.object(evidence)) == Some(Role::Client);
    let amid = |thread: Utid| {
        let Some(there) = wait_at(evidence, thread, moment) else {
            return 5;
        };
        match there.kind {
            _ if there.is_idle(evidence) => 0,
            _ if there.is_for_own_lock(evidence) => 3 * usize::from(is_lock),
            _ if evidence.shows(there.user_stack(evidence), Mark::AwaitsChild) => 4,
            WaitKind::Sleep if lets_time_pass(evidence, &there, wait) => 0,
            WaitKind::Sleep | WaitKind::Disk | WaitKind::Paging | WaitKind::Child => 4,
            WaitKind::Stopped => 4,
            WaitKind::Poll if evidence.shows(there.user_stack(evidence), Mark::Asks) => 4,
            WaitKind::Poll
                if asks(&there)
                    && (is_open(evidence, there.object(evidence), moment)
                        || may_be_open(evidence, there.object(evidence), moment)) =>
            {
                4
            }
            // Of a datagram it is not known whether it is to be answered.
            WaitKind::Poll
                if asks(&there) && evidence.sockets.peer(there.object(evidence)).is_none() =>
            {
                2
            }
            // Who waits to be connected to is not, nor who reads what its process is to do next.
            WaitKind::Message if is_home(evidence, &there) => 0,
            // For room, or for an answer.
            WaitKind::Message if there.writes(evidence) || asks(&there) => 4,
            WaitKind::Message | WaitKind::Kernel | WaitKind::Device => 2,
            WaitKind::Condition if !is_home(evidence, &there) => 2,
            // Somebody has the lock.
            WaitKind::Condition => usize::from(wait.kind == WaitKind::Lock),
            // So it has who waits for anything, if nobody else is more likely to.
            WaitKind::Poll => usize::from(wait.is_for_own_lock(evidence)),
            _ => 0,
        }
    };
    let depth = |thread: Utid| {
        let there = wait_at(evidence, thread, moment);
        let stack = there.map_or(0, |there| there.user_stack(evidence));
        evidence.stacks.frame_ids(stack).len()
    };
    threads
        .filter(|&other| other != wait.thread && is_there(evidence, other, moment))
        // What a virtual machine keeps for itself has no lock of the program's.
        .filter(|&other| !is_machine(evidence, other) && amid(other) > 0)
        .max_by_key(|&other| (amid(other), depth(other), std::cmp::Reverse(other)))
}

/// Whether a thread only lets time pass in pieces while another waits.
pub(crate) fn goes_on(evidence: &Evidence<'_>, thread: Utid, wait: &Wait) -> bool {
    let there = wait_at(evidence, thread, wait.start + wait.duration() / 2);
    there.is_some_and(|there| {
        there.kind == WaitKind::Sleep && lets_time_pass(evidence, &there, wait)
    })
}

/// Whether a thread has begun, since another waits, one of several short sleeps: it goes on meanwhile.
fn lets_time_pass(evidence: &Evidence<'_>, there: &Wait, wait: &Wait) -> bool {
    let since = |of: &Wait| match of.start {
        0 => evidence.away_since(of.thread).unwrap_or(0),
        start => signed(start),
    };
    let waited = signed(wait.end).saturating_sub(since(wait));
    let ended = (there.end < evidence.timeline.end()).then(|| there.duration());
    let length = ended.or_else(|| there.asked_ns(evidence));
    let is_short = length.is_some_and(|length| signed(length) <= waited / 3);
    is_short && since(there) > since(wait)
}

/// The child of a server that works for it: the last that was started of those that are in the
/// middle of work. A copy of itself that only looks after a child stands for that: so a message bus
/// starts services.
fn helper(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    let threads = evidence.threads;
    let own = threads.process(threads.thread(wait.thread).upid);
    // Who was not asked waits for nobody's help.
    evidence.sockets.served_by(own.upid).next()?;
    let children = threads.processes().filter(|child| {
        let parent = threads.process(child.parent);
        child.parent == own.upid || parent.parent == own.upid && parent.name == own.name
    });
    let alive =
        children.filter_map(|child| thread_of(evidence, child.upid, Object::NONE, wait.end));
    let is_amid = |&thread: &Utid| {
        let there = wait_at(evidence, thread, wait.end);
        !there.is_some_and(|there| is_home(evidence, &there))
    };
    let thread = alive.filter(is_amid).last()?;
    let reason = format!(
        "it started {}, which is in the middle of work",
        evidence.name(thread)
    );
    Some(owes(thread, Strength::Weak, reason))
}

/// Whether a worker of a pool of threads waits, within a task, for the result of another, and so does each
/// other worker of the pool: then none is left to run that.
pub fn starves_own_pool(evidence: &Evidence<'_>, wait: &Wait) -> bool {
    let shows = |wait: &Wait, mark| evidence.shows(wait.user_stack(evidence), mark);
    let awaits_task = |wait: &Wait| {
        let is_condition = matches!(wait.kind, WaitKind::Condition | WaitKind::Lock);
        is_condition && shows(wait, Mark::Handles) && shows(wait, Mark::AwaitsResult)
    };
    if evidence.threads.thread(wait.thread).is_main() || !awaits_task(wait) {
        return false;
    }
    let middle = wait.start + wait.duration() / 2;
    let stem = |thread: Utid| {
        let name = evidence.threads.thread(thread).name();
        name.trim_end_matches(|c: char| c.is_ascii_digit())
    };
    let own = evidence.threads.thread(wait.thread).upid;
    let threads = evidence.threads.process(own).threads.iter().copied();
    let mut others = threads.filter(|&other| {
        other != wait.thread
            && stem(other) == stem(wait.thread)
            && !evidence.threads.thread(other).is_main()
            && is_there(evidence, other, middle)
    });
    others.all(|other| wait_at(evidence, other, middle).is_some_and(|there| awaits_task(&there)))
}

/// A worker of such a pool in the process of one that waits for a task's result.
fn starved_worker(evidence: &Evidence<'_>, wait: &Wait) -> Option<Utid> {
    if !evidence.shows(wait.user_stack(evidence), Mark::AwaitsResult) {
        return None;
    }
    let middle = wait.start + wait.duration() / 2;
    let process = evidence.threads.process_of(wait.thread);
    let mut others = (process.threads.iter().copied()).filter(|&other| other != wait.thread);
    others.find(|&other| {
        is_there(evidence, other, middle)
            && wait_at(evidence, other, middle)
                .is_some_and(|there| starves_own_pool(evidence, &there))
    })
}

/// Whether a program with a window waits for what its user does: its event loop polls, it asked its display
/// for nothing that it waits for, and the display has nothing to do.
pub fn awaits_user(evidence: &Evidence<'_>, wait: &Wait) -> bool {
    let process = evidence.threads.thread(wait.thread).upid;
    if wait.kind != WaitKind::Poll
        || !evidence.stands_for_program(wait.thread)
        || evidence.shows(wait.user_stack(evidence), Mark::Asks)
        || !evidence.shows(wait.user_stack(evidence), Mark::EventLoop)
    {
        return false;
    }
    let mut peers =
        (evidence.sockets.asks(process)).filter_map(|object| evidence.sockets.peer_process(object));
    let display = peers.find(|&peer| evidence.serves_display(peer));
    let Some(thread) = display.and_then(|display| who::first_thread(evidence, display)) else {
        return false;
    };
    let is_idle = wait_at(evidence, thread, wait.end).is_some_and(|it| is_home(evidence, &it));
    is_idle && display.is_some_and(|display| stopped_thread(evidence, display, wait.end).is_none())
}

fn of_user() -> Edge {
    let reason = "its event loop waits for input from its display: a user who does nothing";
    Edge::new(EdgeKind::Input, Strength::Strong, Source::Nobody, reason)
}

/// The thread of a server that works for its event loop: one that does not wait for work, but for what it
/// asked for, a file, or a lock, or computes.
fn own_worker(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    let own = evidence.threads.thread(wait.thread).upid;
    // Who was not asked waits for no work to be done.
    evidence.sockets.served_by(own).next()?;
    let middle = wait.start + wait.duration() / 2;
    let is_amid = |thread: Utid, moment: u64| {
        wait_at(evidence, thread, moment).is_none_or(|there| {
            let asks = evidence.shows(there.user_stack(evidence), Mark::Asks)
                || asks_by(evidence, &there, moment);
            let works = !is_home(evidence, &there) && there.kind != WaitKind::Sleep
                || evidence.shows(there.user_stack(evidence), Mark::Handles);
            works || there.kind == WaitKind::Poll && asks
        })
    };
    let threads = evidence.threads.process(own).threads.iter().copied();
    let thread = threads
        .filter(|&other| other != wait.thread && !is_machine(evidence, other))
        .filter(|&other| {
            [middle, wait.end]
                .iter()
                .all(|&at| is_there(evidence, other, at))
        })
        .find(|&other| is_amid(other, middle) && is_amid(other, wait.end))?;
    let reason = format!(
        "of the other threads of its process, {} is in the middle of work",
        evidence.name(thread)
    );
    Some(owes(thread, Strength::Weak, reason))
}

/// Whether a thread waits for the answer to what it asked for by a connection.
fn asks_by(evidence: &Evidence<'_>, wait: &Wait, moment: u64) -> bool {
    let object = wait.object(evidence);
    evidence.sockets.role(object) == Some(Role::Client) && is_open(evidence, object, moment)
}

/// The program at the other end of a terminal that takes no more: of those that the writer descends
/// from, or that these started, one that is stopped; else the nearest that does not itself wait for
/// a child. One that has nothing to do would read what is shown: then the terminal is halted.
fn terminal(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    let own = evidence.threads.thread(wait.thread).upid;
    let ancestors = ancestors(evidence, own);
    let awaits_child = |&thread: &Utid| {
        let there = wait_at(evidence, thread, wait.end);
        there.is_some_and(|there| matches!(there.kind, WaitKind::Child | WaitKind::Signal))
    };
    let is_amid = |&thread: &Utid| {
        wait_at(evidence, thread, wait.end).is_none_or(|there| !is_home(evidence, &there))
    };
    let stopped = |process: Upid| stopped_thread(evidence, process, wait.end);
    // A thread of its own reads what is shown.
    let reads = |thread: &Utid| {
        let process = evidence.threads.process_of(*thread);
        process.threads.iter().any(|&other| {
            other != *thread
                && wait_at(evidence, other, wait.end)
                    .is_some_and(|there| there.kind == WaitKind::Device && !there.writes(evidence))
        })
    };
    let all = || ancestors.clone();
    let beside = || {
        let parents: Vec<Upid> = all().collect();
        let processes = evidence.threads.processes();
        processes.filter(move |other| other.upid != own && parents.contains(&other.parent))
    };
    let thread = all()
        .find_map(stopped)
        .or_else(|| beside().find_map(|other| stopped(other.upid)))
        .or_else(|| {
            all()
                .filter_map(|process| thread_of(evidence, process, Object::NONE, wait.end))
                .find(|thread| !awaits_child(thread))
                .filter(|thread| is_amid(thread) && !reads(thread))
        })?;
    let reason = format!("{} may be using its terminal", evidence.name(thread));
    Some(owes(thread, Strength::Weak, reason))
}

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
//! - What came may have come by way of another: a thread that has the connection, a queue of connections that
//!   are not accepted ([`came`]); or it came late, since TCP kept it ([`held_back`]). A program that polls its only
//!   child waits for that ([`partner`]).
//! - Who has a lock the stacks may tell ([`own`]); otherwise one that is in the middle of work may ([`amid`]).
//! - A child that a signal killed as the wait began may have been at work for it, or a thread that exited then
//!   and left none that could end it ([`killed`]).
//! - A server that serves many at once waits for what it asked others for on a client's behalf ([`upstream`]).
//! - A thread that woke another before it waited may have asked it for what it waits for.

mod again;
mod amid;
mod came;
mod clients;
mod connection;
mod datagram;
mod held_back;
mod killed;
mod kin;
mod language;
mod last;
mod on_behalf;
mod open;
mod orders;
mod own;
mod partner;
mod pipe;
mod place;
pub(crate) mod stopped;
mod upstream;
mod who;

use hangdog_timeline::{Interval, State};
use hangdog_trace::calls::Call;
use hangdog_trace::ids::{Upid, Utid};
use hangdog_trace::object::{Object, ObjectKind};

use crate::edge::{Edge, EdgeKind, Source, Strength};
use crate::evidence::Evidence;
use crate::marks::Mark;
use crate::wait::{Gate, Wait, WaitKind};

use again::awaited_child;
pub(crate) use again::inherited_lock;
pub use again::{asked_again, asked_before, child_looked_after, waits_out_child};
pub use amid::has_lock_of;
pub(crate) use amid::{amid_something, goes_on, likely_holder, only_other, waits_for_it};
use amid::{child_at_work, helper, own_worker};
pub use came::accepted_late;
pub(crate) use came::{handed_answer, slow_reader};
pub use clients::may_wait_for_jobs;
use clients::other_client;
use connection::{asked_process, only_client, server_at_work};
pub use connection::{
    attempt, awaits_time_limit, is_lost, is_unconnected, may_have_asked, open_request, peer,
    remote_output,
};
pub(crate) use connection::{attempts_in_loop, unanswered_attempt};
pub(crate) use connection::{is_undelivered, serves_known, still_at_work};
pub use datagram::unanswered;
pub use held_back::held_back;
pub(crate) use killed::{exited_mate, killed};
use kin::first_thread;
pub use kin::{ancestors, descendants, is_descendant, is_orphan, started_together};
pub use last::peer_of;
pub use on_behalf::{helper_that_asked, prompter};
use open::{is_at_rest, selection_owner};
pub use open::{is_open, may_be_open};
pub use orders::{is_own_pipe, takes_orders_by_pipe};
pub(crate) use own::told_by_stacks;
pub use partner::only_partner;
use partner::{child_at_terminal, lone_child};
pub(crate) use partner::{connected_child, terminal_reader};
pub(crate) use pipe::relative;
pub use pipe::{is_from_outside, is_job_pool, left_behind};
use pipe::{is_lifeline, other_end};
pub use stopped::has_unread;
pub(crate) use upstream::asked_as_it_began;
pub use upstream::{Asked, asked_for_answer, asked_on_behalf};
pub(crate) use who::stopped_thread;
pub use who::{awaits_completions, has_mates, is_deadlocked, is_upkeep};
use who::{has_rested, is_amid, is_home, is_machine, is_there, thread_of, wait_at};

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
    if evidence.shows(wait.kernel_stack(evidence), Mark::AwaitsMount) {
        return mounter(evidence, wait);
    }
    if starves_own_pool(evidence, wait) {
        let reason = match evidence.shows(wait.user_stack(evidence), Mark::AwaitsPermit) {
            true => "each worker of its pool waits for a permit, and none is left to release one",
            false => "each worker of its pool waits for a task that only they could run",
        };
        return Some(Edge::new(
            EdgeKind::Awaited,
            Strength::Strong,
            Source::Nobody,
            reason,
        ));
    }
    if let Some(owner) = selection_owner(evidence, wait) {
        return Some(owner);
    }
    // A standby that is stopped confirms nothing. What another waits for is only followed from who reports it.
    let may_end_it = |edge: &Edge| match edge.source {
        Source::Thread(thread) if wait.gate(evidence) == Some(Gate::Standby) => {
            let process = evidence.threads.thread(thread).upid;
            stopped_thread(evidence, process, wait.end).is_some()
        }
        _ => true,
    };
    if wait.gate(evidence) == Some(Gate::Standby)
        && let Some(lost) = unconfirmed(evidence, wait)
    {
        return Some(lost);
    }
    let by_client = || other_client(evidence, wait).filter(may_end_it);
    if let Some(edge) = awaited_child(evidence, wait).or_else(by_client) {
        return Some(edge);
    }
    // Of a lock of a database's it is not told who has it, and what else the server looks at brings it not.
    if evidence.shows(wait.user_stack(evidence), Mark::DatabaseLock) {
        return None;
    }
    if let Some(edge) = machine_thread(evidence, wait) {
        return Some(edge);
    }
    let object = match is_lifeline(evidence, wait) {
        true => Object::NONE,
        false => wait.object(evidence),
    };
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
            let rests =
                wait.poll_limit_ns(evidence).is_some() && is_at_rest(evidence, object, wait.end);
            let other = || peer(evidence, wait, object).filter(|_| !rests);
            asked_process(evidence, wait).or_else(other)
        }
        // A name server polls the socket that it is asked by, and another for what it asked itself.
        (WaitKind::Poll, ObjectKind::Inet) if sockets.listens(object) => {
            peer(evidence, wait, object).or_else(|| unanswered(evidence, wait))
        }
        (
            WaitKind::Message | WaitKind::Poll | WaitKind::Kernel,
            ObjectKind::Unix | ObjectKind::Inet,
        ) => peer(evidence, wait, object),
        (WaitKind::Kernel, ObjectKind::File) => user_of_file(evidence, wait, object),
        // A lock of the program's own that is made of an eventfd: another thread has it.
        (WaitKind::Poll, ObjectKind::Eventfd) if wait.is_for_own_lock(evidence) => None,
        (WaitKind::Poll, ObjectKind::None | ObjectKind::Epoll | ObjectKind::Eventfd)
        | (WaitKind::Idle, _) => asked_process(evidence, wait)
            .or_else(|| unanswered(evidence, wait))
            .or_else(|| prompter(evidence, wait))
            .or_else(|| helper(evidence, wait))
            .or_else(|| own_worker(evidence, wait).filter(|_| wait.kind == WaitKind::Poll))
            .or_else(|| awaits_user(evidence, wait).then(of_user))
            .or_else(|| helper_that_asked(evidence, wait))
            .or_else(|| child_at_work(evidence, wait))
            .or_else(|| server_at_work(evidence, wait))
            .or_else(|| left_behind(evidence, wait))
            .or_else(|| remote_output(evidence, wait))
            .or_else(|| only_client(evidence, wait))
            .or_else(|| only_partner(evidence, wait))
            .or_else(|| child_at_terminal(evidence, wait))
            .or_else(|| lone_child(evidence, wait)),
        _ => None,
    }
}

/// The network, where what PostgreSQL's process for that sent to a standby is not acknowledged.
fn unconfirmed(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    let own = evidence.threads.process_of(wait.thread);
    let siblings = evidence.threads.processes();
    let siblings = siblings.filter(|it| it.upid != own.upid && it.parent == own.parent);
    let (name, connection) = siblings
        .filter_map(|it| {
            let name = evidence.name(first_thread(evidence, it.upid)?);
            let mut had = evidence.sockets.had(it.upid);
            Some((name, had.find(|&object| is_lost(evidence, object))?))
        })
        // Another session's client may be out of reach, too.
        .find(|(name, _)| name.contains("walsender"))?;
    let reason = format!("what {name} sent to a standby over {connection} is not acknowledged");
    Some(Edge::new(
        EdgeKind::Network,
        Strength::Strong,
        Source::Network,
        reason,
    ))
}

/// The thread of a Java virtual machine that does what stops all others, for one that asked for that.
fn machine_thread(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    if !evidence.shows(wait.user_stack(evidence), Mark::AsksMachine) {
        return None;
    }
    let threads = &evidence.threads.process_of(wait.thread).threads;
    let mut alive = threads
        .iter()
        .filter(|&&thread| is_there(evidence, thread, wait.end));
    let stops_all = |thread: &&Utid| {
        wait_at(evidence, **thread, wait.end)
            .is_some_and(|there| evidence.shows(there.user_stack(evidence), Mark::AwaitsSafepoint))
            || evidence.threads.thread(**thread).name() == "VM Thread"
    };
    let thread = *alive.find(stops_all)?;
    let reason = format!("it asked {} to run an operation", evidence.name(thread));
    Some(owes(thread, Strength::Strong, reason))
}

/// Who has a file that a thread is kept from within the kernel, where its lock has no name: the only other thread
/// that is in a call on the same file all the time, and waits elsewhere in the kernel or for the disk.
fn user_of_file(evidence: &Evidence<'_>, wait: &Wait, file: Object) -> Option<Edge> {
    /// So many looks at the others, evenly spaced; in one of them they may run.
    const LOOKS: u64 = 8;
    /// Shorter waits are how locks work, and there may be many.
    const LEAST_NS: u64 = 10_000_000;
    if wait.duration() < LEAST_NS {
        return None;
    }
    let place = evidence.same_frames(wait.kernel_stack(evidence));
    let uses = |thread: Utid| {
        let looks = (1..LOOKS).map(|at| wait.start + wait.duration() / LOOKS * at);
        let at = looks.filter_map(|moment| wait_at(evidence, thread, moment));
        let mut uses = at.filter(|there| {
            let is_kept = match there.kind {
                WaitKind::Disk => true,
                WaitKind::Kernel => evidence.same_frames(there.kernel_stack(evidence)) != place,
                _ => false,
            };
            is_kept && there.object(evidence) == file
        });
        uses.next().is_some()
    };
    let alive = evidence.threads.iter().map(|thread| thread.utid);
    let alive = alive.filter(|&other| {
        let life = evidence.timeline.life(other);
        other != wait.thread && life.start <= wait.end && life.end >= wait.end
    });
    let mut users = alive.filter(|&other| uses(other));
    let only = users.next().filter(|_| users.next().is_none())?;
    let reason = format!(
        "{} is in a call on the same file, and waits there",
        evidence.name(only)
    );
    let source = Source::Thread(only);
    Some(Edge::new(EdgeKind::Holder, Strength::Weak, source, reason))
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

/// The thread of an automounter that is asked to mount something: it makes one for each request.
fn mounter(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    let [server] = *evidence.sockets.mounters() else {
        return None;
    };
    let threads = &evidence.threads.process(server).threads;
    let mut alive = (threads.iter().rev()).filter(|&&it| is_there(evidence, it, wait.end));
    let thread = stopped_thread(evidence, server, wait.end).or_else(|| alive.next().copied())?;
    let reason = format!(
        "the kernel asked {} to mount a file system",
        evidence.name(thread)
    );
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
    if reads_commands(evidence, wait) {
        return Vec::new();
    }
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
    let by_socket = wait.kind == WaitKind::Message
        && matches!(
            wait.object(evidence).kind(),
            ObjectKind::Inet | ObjectKind::Unix
        );
    let has_nothing_to_do = |other: Utid| {
        let there = wait_at(evidence, other, middle);
        // Who was to send something by a socket, and waits for another process to tell it by a pipe what to do,
        // was not asked for that.
        there.is_some_and(|there| {
            there.is_idle(evidence) || by_socket && takes_orders_by_pipe(evidence, &there)
        })
    };
    // A worker that is where it was before it was woken has done what it could.
    let went_home = |row: usize, other: Utid| {
        let condition = |ts: u64| {
            let there = wait_at(evidence, other, ts)?;
            let stack = evidence.same_frames(there.user_stack(evidence));
            (there.kind == WaitKind::Condition).then_some(stack)
        };
        let home = condition(evidence.wakes.ts[row]);
        home.is_some() && home == condition(middle)
    };
    // A new worker that waits as soon as it runs has found nothing to do, nor has one that naps; who made it serves
    // others.
    let found_nothing = |row: usize, other: Utid| {
        let begin = evidence.timeline.life(other).start;
        let soon = begin.saturating_add(ASKED_WITHIN_NS);
        matches!(wait.kind, WaitKind::Poll | WaitKind::Idle)
            && evidence.wakes.new[row]
            && (goes_on(evidence, other, wait)
                || wait_at(evidence, other, middle)
                    .is_some_and(|there| there.kind == WaitKind::Condition && there.start <= soon))
    };
    let mut asked: Vec<Utid> = Vec::new();
    for &row in woken.iter().rev() {
        let other = evidence.wakes.wakee[row];
        let is_own = evidence.threads.thread(other).upid == own;
        if is_own && (went_home(row, other) || found_nothing(row, other)) {
            continue;
        }
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

/// Whether a thread waits for the next command from its terminal: whomever it woke before, it has its answer.
fn reads_commands(evidence: &Evidence<'_>, wait: &Wait) -> bool {
    wait.object(evidence).kind() == ObjectKind::CharDevice
        && evidence.shows(wait.user_stack(evidence), Mark::ReadsCommands)
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

/// Whether a thread waited for something to do, or for whatever comes, for as long as another waited.
pub(crate) fn idles_throughout(evidence: &Evidence<'_>, thread: Utid, wait: &Wait) -> bool {
    wait_at(evidence, thread, wait.start + wait.duration() / 2).is_some_and(|there| {
        there.start <= wait.start && there.end >= wait.end && is_home(evidence, &there)
    })
}

/// A request that was made longer than this before a wait is not the one that the wait is for, ns.
const ASKED_WITHIN_NS: u64 = 5_000_000;

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

/// Of a thread that waits for a task's result, a worker that waits for one within such a task.
pub(crate) fn starved_worker_of(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    let worker = starved_worker(evidence, wait)?;
    let reason = format!(
        "it waits for a task's result, and {} waits within a task",
        evidence.name(worker)
    );
    let source = Source::Thread(worker);
    Some(Edge::new(EdgeKind::Amid, Strength::Weak, source, reason))
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
        || evidence.shows(wait.user_stack(evidence), Mark::AmidEvent)
    {
        return false;
    }
    let mut peers =
        (evidence.sockets.asks(process)).filter_map(|object| evidence.sockets.peer_process(object));
    let display = peers.find(|&peer| evidence.serves_display(peer));
    let Some(thread) = display.and_then(|display| first_thread(evidence, display)) else {
        return false;
    };
    let is_idle = wait_at(evidence, thread, wait.end).is_some_and(|it| is_home(evidence, &it));
    is_idle && display.is_some_and(|display| stopped_thread(evidence, display, wait.end).is_none())
}

fn of_user() -> Edge {
    let reason = "its event loop waits for input from its display: a user who does nothing";
    Edge::new(EdgeKind::Input, Strength::Strong, Source::Nobody, reason)
}

/// The program at the other end of a terminal that takes no more: of those that the writer descends
/// from, or that these started, one that is stopped; else the nearest that does not itself wait for
/// a child. One that has nothing to do would read what is shown: then the terminal is halted.
fn terminal(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    if wait.gate(evidence) == Some(Gate::HaltedTerminal) {
        return None;
    }
    let own = evidence.threads.thread(wait.thread).upid;
    let ancestors = ancestors(evidence, own);
    let awaits_child = |&thread: &Utid| {
        let there = wait_at(evidence, thread, wait.end);
        there.is_some_and(|there| matches!(there.kind, WaitKind::Child | WaitKind::Signal))
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
                .filter(|thread| is_amid(evidence, *thread, wait.end) && !reads(thread))
                .filter(|thread| !has_rested(evidence, *thread, wait.start..wait.end))
        })?;
    let reason = format!("{} may be using its terminal", evidence.name(thread));
    Some(owes(thread, Strength::Weak, reason))
}

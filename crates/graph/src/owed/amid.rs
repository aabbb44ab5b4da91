//! Who is in the middle of work while a thread waits: where nothing names who is to end the wait, it is one of
//! those. Other threads of the process, a child, a process that was started with it.

use hangdog_trace::ids::{NO_STACK, NONE, Utid};
use hangdog_trace::object::{Object, ObjectKind};
use hangdog_trace::sockets::Role;

use super::last::peer_of;
use super::open::{is_open, may_be_open};
use super::orders::{is_own_pipe, reads_orders};
use super::place::{is_beyond, shares_place};
use super::who::{
    deepest_of_deadlocked, is_amid, is_home, is_machine, is_there, most_at_work, thread_of, wait_at,
};
use super::{owes, starved_worker_of};
use crate::edge::{Edge, EdgeKind, Source, Strength};
use crate::evidence::{Evidence, signed};
use crate::marks::Mark;
use crate::wait::{Wait, WaitKind};

/// Who may have a lock of the program's own that names no holder: of the other threads of the process
/// one that is in the middle of work; where there is none, one that waits for such a lock itself.
pub(crate) fn likely_holder(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    if !wait.is_for_own_lock(evidence) {
        return None;
    }
    let other = other_thread(evidence, wait, true);
    if let Some(edge) = has_it_itself(evidence, wait, other) {
        return Some(edge);
    }
    if let Some(holder) = other {
        let reason = format!(
            "the lock names no holder; {} may hold it, judging by its activity",
            evidence.name(holder)
        );
        return Some(amid_edge(holder, reason));
    }
    let holder = sole_other(evidence, wait).filter(|&other| !goes_on(evidence, other, wait))?;
    let reads_orders = |there: Wait| reads_orders(evidence, &there);
    if wait_at(evidence, holder, wait.end).is_some_and(reads_orders) {
        let reason = "the lock names no holder, and the only other thread of its process reads orders: it may have the lock itself";
        let source = Source::Thread(wait.thread);
        return Some(Edge::new(EdgeKind::Amid, Strength::Weak, source, reason));
    }
    let reason = format!(
        "the lock names no holder, and {} is the only other thread of its process",
        evidence.name(holder)
    );
    Some(amid_edge(holder, reason))
}

/// Whether a thread may have the lock that it waits for: it came through the same function of its program before, as
/// one does that takes another task while it waits for a part of the first. No `other` thread has come through that
/// function, or works.
fn has_it_itself(evidence: &Evidence<'_>, wait: &Wait, other: Option<Utid>) -> Option<Edge> {
    let waiting = wait.user_stack(evidence);
    let middle = wait.start + wait.duration() / 2;
    let is_likelier = |other: Utid| {
        wait_at(evidence, other, middle).is_none_or(|there| {
            there.kind != WaitKind::Condition
                || is_beyond(evidence, waiting, there.user_stack(evidence))
        })
    };
    if wait.kind != WaitKind::Lock
        || !is_beyond(evidence, waiting, waiting)
        || other.is_some_and(is_likelier)
    {
        return None;
    }
    let reason = "it is in that function twice, and may have taken the lock the first time";
    let source = Source::Thread(wait.thread);
    Some(Edge::new(EdgeKind::Amid, Strength::Weak, source, reason))
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

/// What the first thread of a program, a worker that has a task, or who waits for the result of one, may wait for by a
/// condition: another
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
            || [Mark::Handles, Mark::AwaitsResult]
                .iter()
                .any(|&mark| evidence.shows(wait.user_stack(evidence), mark)));
    if !awaits_other {
        return program_at_work(evidence, wait);
    }
    if let Some(other) = other_thread(evidence, wait, true) {
        return Some(match pool_beside(evidence, wait, other) {
            None => amid_thread(evidence, other),
            Some(child) => {
                let [sleeper, child_name] = [other, child].map(|it| evidence.name(it));
                let reason = format!(
                    "{sleeper} sleeps, and its child {child_name} is in the middle of work"
                );
                amid_edge(child, reason)
            }
        });
    }
    if let Some(other) = outlives(evidence, wait) {
        return Some(other);
    }
    let takes_work = |thread: Utid| {
        wait_at(evidence, thread, wait.end).is_some_and(|there| {
            let stack = there.user_stack(evidence);
            there.is_idle(evidence) || evidence.shows(stack, Mark::TakesWork)
        })
    };
    if let Some(worker) = starved_worker_of(evidence, wait) {
        return Some(worker);
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

/// The child that works on the result which a thread waits for, where the `other` thread of its process only sleeps: one
/// of a pool of processes.
fn pool_beside(evidence: &Evidence<'_>, wait: &Wait, other: Utid) -> Option<Utid> {
    let sleeps = |thread: Utid| {
        wait_at(evidence, thread, wait.end).is_some_and(|there| there.kind == WaitKind::Sleep)
    };
    let awaits_result = evidence.shows(wait.user_stack(evidence), Mark::AwaitsResult);
    let child = || amid_child(evidence, wait).filter(|&child| !sleeps(child));
    (awaits_result && sleeps(other)).then(child)?
}

/// Of a program that ends, the thread that has not ended: of several the one most deep in work.
fn outlives(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    if !evidence.shows(wait.user_stack(evidence), Mark::AwaitsThreads) {
        return None;
    }
    let depth = |&thread: &Utid| {
        let there = wait_at(evidence, thread, wait.end);
        there.map_or(usize::MAX, |there| {
            evidence.stacks.frame_ids(there.user_stack(evidence)).len()
        })
    };
    let threads = &evidence.threads.process_of(wait.thread).threads;
    let others = threads.iter().copied().filter(|&other| {
        other != wait.thread && is_there(evidence, other, wait.end) && !is_machine(evidence, other)
    });
    let other = others.max_by_key(|other| (depth(other), std::cmp::Reverse(*other)))?;
    let reason = format!(
        "its program waits for all of its threads to end, and {} has not",
        evidence.name(other)
    );
    Some(amid_edge(other, reason))
}

/// The main thread of a program, if that works for most of the time in which another thread of it waits for a
/// condition, and not for work: that one was asked for what the program is to do when it comes to it.
fn program_at_work(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    let stack = wait.user_stack(evidence);
    let may_wait_for_it = wait.kind == WaitKind::Condition
        && wait.holder.is_none()
        && wait.is_within_process(evidence)
        && !evidence.stands_for_program(wait.thread)
        && !evidence.shows(stack, Mark::TakesWork);
    if !may_wait_for_it {
        return None;
    }
    let process = evidence.threads.thread(wait.thread).upid;
    let busy = most_at_work(evidence, process, wait.start..wait.end)?;
    let is_main = busy != wait.thread && evidence.stands_for_program(busy);
    is_main.then(|| {
        let reason = format!(
            "{} works all the time, and is the program's main thread",
            evidence.name(busy)
        );
        amid_edge(busy, reason)
    })
}

/// Of the processes that have the same parent, and may share with a process the memory that it waits at, the
/// only one that is in the middle of work.
fn amid_sibling(evidence: &Evidence<'_>, wait: &Wait) -> Option<Utid> {
    if wait.is_within_process(evidence) {
        return None;
    }
    let moment = wait.start + wait.duration() / 2;
    let own = evidence.threads.process_of(wait.thread);
    let siblings = evidence.threads.processes();
    let siblings =
        siblings.filter(|it| it.upid != own.upid && it.parent == own.parent && own.parent != NONE);
    let amid: Vec<Utid> = siblings
        // A worker may have renamed itself after its task.
        .filter(|it| it.name == own.name || !own.command.is_empty() && it.command == own.command)
        .filter_map(|it| thread_of(evidence, it.upid, Object::NONE, wait.end))
        .filter(|&thread| is_amid(evidence, thread, moment))
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
pub(super) fn child_at_work(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
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
pub(super) fn amid_child(evidence: &Evidence<'_>, wait: &Wait) -> Option<Utid> {
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
    // Where the stacks tell that it has the lock, the two wait for each other.
    guess.kind == EdgeKind::Amid
        && dependent.contains(&other)
        && !waits_for_lock()
        && !has_lock_of(evidence, other, wait)
}

/// Whether a thread has the lock that another waits for, as far as their stacks tell: both are in the function that
/// takes the lock, and it has called another one from there.
pub fn has_lock_of(evidence: &Evidence<'_>, thread: Utid, wait: &Wait) -> bool {
    let waiting = wait.user_stack(evidence);
    wait.kind == WaitKind::Lock
        && wait.is_within_process(evidence)
        && wait_at(evidence, thread, wait.start + wait.duration() / 2)
            .is_some_and(|there| is_beyond(evidence, waiting, there.user_stack(evidence)))
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
    // It does what the others tell it by that, or waits for one of those to end.
    let is_kept = |there: Wait| {
        let by = there.holder.filter(|holder| dependent.contains(holder));
        by.is_some() || is_own_pipe(evidence, &there)
    };
    if wait_at(evidence, only, wait.end).is_some_and(is_kept) {
        return None;
    }
    let reason = format!(
        "{} is the only thread left in its process that can end it",
        evidence.name(only)
    );
    Some(amid_edge(only, reason))
}

pub(super) fn amid_edge(thread: Utid, reason: String) -> Edge {
    Edge::new(
        EdgeKind::Amid,
        Strength::Weak,
        Source::Thread(thread),
        reason,
    )
}

/// From so much on, a thread of those below waits for something that it needs for its work.
const SURELY_AMID: usize = 3;

/// The thread of the same process that is most surely in the middle of work during a wait, rather
/// than waiting for work; `is_lock` says that those who wait for a lock count too, if nobody else
/// does.
pub(super) fn other_thread(evidence: &Evidence<'_>, wait: &Wait, is_lock: bool) -> Option<Utid> {
    // When it ends, all may run, to end as well.
    let moment = wait.start + wait.duration() / 2;
    let process = evidence.threads.thread(wait.thread).upid;
    let threads = evidence.threads.process(process).threads.iter().copied();
    let asks = |there: &Wait| evidence.sockets.role(there.object(evidence)) == Some(Role::Client);
    let stack = |thread: Utid| {
        let there = wait_at(evidence, thread, moment);
        there.map_or(NO_STACK, |there| there.user_stack(evidence))
    };
    let waiting = wait.user_stack(evidence);
    let is_lock_of_own = wait.kind == WaitKind::Lock && wait.is_within_process(evidence);
    let is_beyond_it = |thread: Utid| is_lock_of_own && is_beyond(evidence, waiting, stack(thread));
    let is_same_lock = |there: &Wait| {
        let lock = there.object(evidence);
        is_lock_of_own && !lock.is_none() && lock == wait.object(evidence)
    };
    let amid = |thread: Utid| {
        let Some(there) = wait_at(evidence, thread, moment) else {
            return 5;
        };
        match there.kind {
            _ if there.is_idle(evidence) => 0,
            // It waits for the waiter's own end.
            _ if there.holder == Some(wait.thread) => 0,
            // Who waits for the same lock does not have it, but for one that came through there before.
            WaitKind::Lock if is_same_lock(&there) && !is_beyond_it(thread) => 0,
            _ if there.is_for_own_lock(evidence) => 3 * usize::from(is_lock),
            WaitKind::Lock if there.object(evidence).kind() == ObjectKind::File => 4,
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
    let depth = |thread: Utid| evidence.stacks.frame_ids(stack(thread)).len();
    let is_near = |thread: Utid| shares_place(evidence, waiting, stack(thread));
    // Of those that may as well wait for work, and of those that surely do not, who is beyond the lock comes first.
    let likely = |amid: usize, other: Utid| (amid >= SURELY_AMID, is_beyond_it(other), amid);
    let all: Vec<((bool, bool, usize), Utid)> = threads
        .filter(|&other| other != wait.thread && is_there(evidence, other, moment))
        // What a virtual machine keeps for itself has no lock of the program's.
        .filter(|&other| !is_machine(evidence, other))
        .map(|other| (amid(other), other))
        .filter(|&(amid, _)| amid > 0)
        .map(|(amid, other)| (likely(amid, other), other))
        .collect();
    let most = all.iter().map(|&(likely, _)| likely).max()?;
    let likely = all.iter().filter(|&&(likely, _)| likely == most);
    likely
        .map(|&(_, other)| other)
        .max_by_key(|&other| (is_near(other), depth(other), std::cmp::Reverse(other)))
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
pub(super) fn helper(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
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
    let thread = alive
        .filter(|&thread| is_amid(evidence, thread, wait.end))
        .last()?;
    let reason = format!(
        "it started {}, which is in the middle of work",
        evidence.name(thread)
    );
    Some(owes(thread, Strength::Weak, reason))
}

/// The thread of a server that works for its event loop: one that does not wait for work, but for what it
/// asked for, a file, or a lock, or computes. One that waits for a lock may do so because of the event loop itself,
/// and comes after the others.
pub(super) fn own_worker(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
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
    let is_kept_out = |thread: Utid| {
        wait_at(evidence, thread, middle).is_some_and(|there| there.kind == WaitKind::Lock)
    };
    let threads = evidence.threads.process(own).threads.iter().copied();
    let thread = threads
        .filter(|&other| other != wait.thread && !is_machine(evidence, other))
        .filter(|&other| {
            [middle, wait.end]
                .iter()
                .all(|&at| is_there(evidence, other, at))
        })
        .filter(|&other| is_amid(other, middle) && is_amid(other, wait.end))
        .min_by_key(|&other| is_kept_out(other))?;
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

/// The only other thread of the process that waits for a condition. Of several it is not known which of
/// them handles the request, and which wait for one.
pub(super) fn only_one_at_condition(evidence: &Evidence<'_>, wait: &Wait) -> Option<Utid> {
    let process = evidence.threads.thread(wait.thread).upid;
    let threads = evidence.threads.process(process).threads.iter().copied();
    let mut waiting = threads.filter(|&other| {
        other != wait.thread
            && is_there(evidence, other, wait.end)
            && wait_at(evidence, other, wait.end).is_some_and(|there| {
                there.kind == WaitKind::Condition && there.holder != Some(wait.thread)
            })
    });
    waiting.next().filter(|_| waiting.next().is_none())
}

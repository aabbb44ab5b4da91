//! What the threads of a process do at a moment, and which of them should answer for it.

use hangdog_timeline::{Interval, State};
use hangdog_trace::ids::{Upid, Utid};
use hangdog_trace::object::Object;
use hangdog_trace::sockets::Role;
use std::ops::Range;

use super::kin::is_descendant;
use super::last::has_sent;
use super::orders::is_own_pipe;
use super::orders::reads_orders;
use crate::evidence::Evidence;
use crate::marks::Mark;
use crate::names;
use crate::wait::{Wait, WaitKind};

/// The thread of a process that should answer: one that is stopped; else one that waits for what
/// lies at `object`; else one of a database that is kept from a lock; else a main thread that is busy; else one that
/// has another thread of its process wait for a child; else one that is busy with something, which may be this; else one
/// that itself asked somebody, or a program that its process has started; else one that sleeps, unless it does so for
/// very long or again and again; else the one that parked the deepest of a scheduler's tasks that wait for each
/// other; else the one that waits for what they wait for; else the first.
pub(super) fn thread_of(
    evidence: &Evidence<'_>,
    process: Upid,
    object: Object,
    until: u64,
) -> Option<Utid> {
    if let Some(stopped) = stopped_thread(evidence, process, until) {
        return Some(stopped);
    }
    let all = || {
        let threads = &evidence.threads.process(process).threads;
        (threads.iter().copied()).filter(|&thread| is_there(evidence, thread, until))
    };
    let alive = || all().filter(|&thread| !is_machine(evidence, thread));
    let reads = |&thread: &Utid| {
        let there = wait_at(evidence, thread, until);
        !object.is_none() && there.is_some_and(|there| there.object(evidence) == object)
    };
    let is_busy = |&thread: &Utid| {
        !is_machine(evidence, thread)
            && wait_around(evidence, thread, until).is_none_or(|there| !is_home(evidence, &there))
    };
    let sleeps = |&thread: &Utid| {
        wait_at(evidence, thread, until)
            .is_some_and(|there| matches!(there.kind, WaitKind::Sleep | WaitKind::Timer))
    };
    // Who is in the middle of a request has read it: a short sleep is of a thread that does something now and then.
    let is_unread = || (evidence.sockets.holders(object).last()).is_some_and(|it| it.unread > 0);
    let naps = |&thread: &Utid| {
        let asked = wait_at(evidence, thread, until).and_then(|there| there.asked_ns(evidence));
        asked.is_some_and(|asked| asked <= NAP_NS) && is_unread()
    };
    // A language's own thread, as Java's process reaper, waits for the child on behalf of this one.
    let has_child_awaited = |&thread: &Utid| {
        wait_at(evidence, thread, until).is_some_and(|there| {
            let stack = there.user_stack(evidence);
            there.kind == WaitKind::Condition && evidence.shows(stack, Mark::AwaitsChild)
        })
    };
    // Its other threads do all the work.
    let is_parked = |&thread: &Utid| {
        wait_at(evidence, thread, until)
            .and_then(|there| there.asked_ns(evidence))
            .is_some_and(|asked| asked >= PARKED_NS)
    };
    let is_main = |&thread: &Utid| evidence.threads.thread(thread).is_main();
    let asks = |&thread: &Utid| {
        let object = wait_at(evidence, thread, until).map(|there| there.object(evidence));
        object.is_some_and(|object| {
            evidence.sockets.role(object) == Some(Role::Client) && has_sent(evidence, object, until)
        })
    };
    // What it is asked for, it asks a program that it has started.
    let asks_child = |&thread: &Utid| {
        let there = wait_at(evidence, thread, until);
        there.is_some_and(|there| {
            let object = there.object(evidence);
            let mut holders = evidence.sockets.holders(object).iter();
            object.is_pipe()
                && !there.by_epoll(evidence)
                && holders.any(|holder| {
                    holder.process != process && is_descendant(evidence, holder.process, process)
                })
        })
    };
    // Of those that wait for a condition, the one whose stack is deepest is amid some work.
    let depth = |thread: &Utid| {
        let there = wait_at(evidence, *thread, until);
        let condition = there.filter(|there| there.kind == WaitKind::Condition);
        condition.map_or(0, |there| {
            evidence.stacks.frame_ids(there.user_stack(evidence)).len()
        })
    };
    let deepest = || {
        let is_idle = |thread: &Utid| {
            wait_at(evidence, *thread, until).is_some_and(|there| there.is_idle(evidence))
        };
        let all = alive().filter(|thread| !is_main(thread) && !is_idle(thread));
        all.max_by_key(depth).filter(|thread| depth(thread) >= DEEP)
    };
    let is_kept = |&thread: &Utid| {
        let there = wait_at(evidence, thread, until);
        there.is_some_and(|there| {
            matches!(there.kind, WaitKind::Condition | WaitKind::Poll)
                && evidence.shows(there.user_stack(evidence), Mark::DatabaseLock)
        })
    };
    // It waits for what the tasks of a language's scheduler wait for, where any thread runs those; one that was
    // made since does so in turn with others.
    let without_task = |thread: Utid| {
        let there = wait_at(evidence, thread, until);
        there.filter(|there| evidence.shows(there.user_stack(evidence), Mark::Scheduler))
    };
    // Of the tasks that its threads parked last, one that waits for a lock, or the one most deep in work, waits for
    // what they all wait for.
    let deepest_task = || {
        let awaits = |thread: Utid| {
            without_task(thread)
                .filter(|there| evidence.shows(there.user_stack(evidence), Mark::AwaitsTask))
        };
        let rank = |there: Wait| {
            let stack = there.user_stack(evidence);
            let is_lock = evidence.shows(stack, Mark::AwaitsTaskLock);
            (is_lock, evidence.stacks.frame_ids(stack).len())
        };
        let tasks = alive().filter_map(|thread| Some((rank(awaits(thread)?), thread)));
        tasks.max().map(|(_, thread)| thread)
    };
    let polls_for_tasks = |&thread: &Utid| {
        evidence.timeline.life(thread).start == 0
            && without_task(thread).is_some_and(|there| there.by_epoll(evidence))
            && alive().any(|main| is_main(&main) && without_task(main).is_some())
    };
    // One of the tasks reads what another program writes, and the others may wait for that.
    let awaits_pipe = |thread: &Utid| {
        wait_at(evidence, *thread, until).is_some_and(|there| there.object(evidence).is_pipe())
    };
    // What came there was taken, if its thread waits for more: by one that works. A main thread that polls hands on
    // what comes, too.
    let has_passed_on = |reader: &Utid| {
        let there = wait_at(evidence, *reader, until);
        there.is_some_and(|there| {
            there.by_epoll(evidence) || there.kind == WaitKind::Poll && is_main(reader)
        }) && alive().any(|other| is_busy(&other) && !sleeps(&other))
    };
    all()
        .find(|thread| reads(thread) && !has_passed_on(thread))
        .or_else(|| alive().find(is_kept))
        .or_else(|| alive().find(|thread| is_main(thread) && is_busy(thread) && !is_parked(thread)))
        .or_else(|| alive().find(has_child_awaited))
        .or_else(|| alive().find(|thread| is_busy(thread) && !sleeps(thread)))
        .or_else(|| alive().find(asks))
        .or_else(|| alive().find(asks_child))
        .or_else(|| {
            let ticks = |thread| is_parked(&thread) || is_ticker(evidence, thread, until);
            alive().find(|&thread| is_busy(&thread) && !ticks(thread) && !naps(&thread))
        })
        .or_else(deepest)
        .or_else(|| alive().find(|thread| polls_for_tasks(thread) && awaits_pipe(thread)))
        .or_else(deepest_task)
        .or_else(|| alive().find(polls_for_tasks))
        .or_else(|| alive().find(is_main))
        .or_else(|| alive().find(is_busy))
        .or_else(|| alive().next())
        .or_else(|| all().next())
}

/// The thread of a process that was at work for most of the time within `during`, and still is at its end: of a
/// language that has a scheduler of its own, any thread may have gone on with what another began.
pub(super) fn most_at_work(
    evidence: &Evidence<'_>,
    process: Upid,
    during: Range<u64>,
) -> Option<Utid> {
    let worked_ns = |&thread: &Utid| {
        let intervals = evidence.timeline.intervals(thread);
        let works = |interval: &Interval| match interval.state {
            State::Blocked => Wait::new(evidence, thread, interval).kind == WaitKind::Disk,
            _ => true,
        };
        let worked = intervals.between(during.start, during.end).filter(works);
        worked.map(|interval| interval.duration()).sum::<u64>()
    };
    let threads = evidence.threads.process(process).threads.iter().copied();
    let most = threads
        .filter(|&thread| {
            is_there(evidence, thread, during.end) && is_amid(evidence, thread, during.end)
        })
        .max_by_key(worked_ns)?;
    (worked_ns(&most) > (during.end - during.start) / 2).then_some(most)
}

/// A main thread that sleeps so long does nothing at all, ns.
pub(super) const PARKED_NS: u64 = 60_000_000_000;

/// So long a thread sleeps at most that does something now and then, ns.
const NAP_NS: u64 = 100_000_000;

/// The stack of a thread that only waits for work is less deep.
const DEEP: usize = 12;

/// Whether a thread sleeps at one place again and again.
fn is_ticker(evidence: &Evidence<'_>, thread: Utid, until: u64) -> bool {
    const OFTEN: usize = 3;
    let intervals = evidence.timeline.intervals(thread);
    let Some(at) = intervals.index_at(until.saturating_sub(1)) else {
        return false;
    };
    let sleeps = |at: usize| {
        let interval = intervals.get(at)?;
        let wait =
            (interval.state == State::Blocked).then(|| Wait::new(evidence, thread, &interval));
        let wait = wait.filter(|wait| matches!(wait.kind, WaitKind::Sleep | WaitKind::Timer));
        Some(wait.map(|wait| evidence.same_frames(wait.user_stack(evidence))))
    };
    let Some(Some(here)) = sleeps(at) else {
        return false;
    };
    // Between two sleeps it ran, and was runnable.
    let mut before = (0..at).rev().take(4 * OFTEN).filter_map(sleeps).flatten();
    before
        .by_ref()
        .take(OFTEN)
        .filter(|&site| site == here)
        .count()
        == OFTEN
}

/// The wait that a thread is in right before a moment, or was in but for a look that began just before:
/// one that a timeout wakes now and then does nothing else.
fn wait_around(evidence: &Evidence<'_>, thread: Utid, ts: u64) -> Option<Wait> {
    const MOST_STEPS: usize = 16;
    const LOOK_PART: u64 = 10;
    let intervals = evidence.timeline.intervals(thread);
    let at = intervals.index_at(ts.saturating_sub(1))?;
    let mut back = (0..=at).rev().take(MOST_STEPS);
    let last = back.find_map(|at| {
        let interval = intervals.get(at)?;
        (interval.state == State::Blocked).then_some(interval)
    })?;
    let since = ts.saturating_sub(last.end);
    (since <= last.duration() / LOOK_PART).then(|| Wait::new(evidence, thread, &last))
}

/// The wait that a thread is in right before a moment.
pub(super) fn wait_at(evidence: &Evidence<'_>, thread: Utid, ts: u64) -> Option<Wait> {
    let intervals = evidence.timeline.intervals(thread);
    let at = intervals.index_at(ts.saturating_sub(1))?;
    let interval = intervals.get(at)?;
    (interval.state == State::Blocked).then(|| Wait::new(evidence, thread, &interval))
}

/// Whether a thread waits as one that has nothing to do.
pub(super) fn is_home(evidence: &Evidence<'_>, wait: &Wait) -> bool {
    match wait.kind {
        _ if wait.is_idle(evidence) => true,
        _ if evidence.shows(wait.user_stack(evidence), Mark::DatabaseLock) => false,
        WaitKind::Condition | WaitKind::Signal => {
            !evidence.shows(wait.user_stack(evidence), Mark::Handles)
        }
        WaitKind::Poll | WaitKind::Idle | WaitKind::Unknown => true,
        // For whoever connects, for orders, or for a signal handler of its own process.
        WaitKind::Message => {
            evidence.sockets.listens(wait.object(evidence))
                || reads_orders(evidence, wait)
                || is_own_pipe(evidence, wait)
        }
        _ => awaits_completions(evidence, wait),
    }
}

/// Whether a thread waited as one that has nothing to do for nearly all of a time: if it is awake at its end, that is by chance.
pub(super) fn has_rested(evidence: &Evidence<'_>, thread: Utid, during: Range<u64>) -> bool {
    const PARTS: u64 = 10;
    let intervals = evidence.timeline.between(thread, during.start, during.end);
    let rested = intervals.filter(|interval| {
        interval.state == State::Blocked
            && is_home(evidence, &Wait::new(evidence, thread, interval))
    });
    let rested_ns = rested.map(|interval| interval.duration()).sum::<u64>();
    let all_ns = during.end - during.start;
    all_ns - rested_ns.min(all_ns) < all_ns / PARTS
}

/// Whether a thread is in the middle of work at a moment: it runs, or waits for more than the next request.
pub(super) fn is_amid(evidence: &Evidence<'_>, thread: Utid, at: u64) -> bool {
    wait_at(evidence, thread, at).is_none_or(|there| !is_home(evidence, &there))
}

/// Whether a thread waits until any of what it submitted to the kernel is done, as it would poll.
pub fn awaits_completions(evidence: &Evidence<'_>, wait: &Wait) -> bool {
    const CALLS: [&str; 3] = ["io_uring_enter", "io_getevents", "io_pgetevents"];
    let call = |row: usize| evidence.calls.name(evidence.switches.call[row]);
    wait.kind == WaitKind::Kernel
        && wait
            .row
            .is_some_and(|row| CALLS.contains(&call(row).as_ref()))
}

/// Whether each thread of a process waits, at the end of the trace, for a lock, a condition or another
/// thread of it, which a pipe may be for that only its own threads write to, without a time limit: then none is left
/// to wake another, and nothing from outside can.
/// A virtual machine's own threads do not count.
pub fn is_deadlocked(evidence: &Evidence<'_>, process: Upid) -> bool {
    let end = evidence.timeline.end();
    let threads = &evidence.threads.process(process).threads;
    let mut alive = threads
        .iter()
        .copied()
        .filter(|&thread| is_there(evidence, thread, end) && !is_upkeep(evidence, thread))
        .peekable();
    let is_own = |thread: Utid| evidence.threads.thread(thread).upid == process;
    // One that is amid a task may give that up after a while, but until then it has it. A debugger can let any go on.
    let gives_up = |there: &Wait| {
        let shows = |mark| evidence.shows(there.user_stack(evidence), mark);
        shows(Mark::Timed)
            || shows(Mark::AwaitsDebugger)
            || there.has_time_limit(evidence) && !shows(Mark::Handles)
    };
    let waits = |thread: Utid| {
        wait_at(evidence, thread, end).is_some_and(|there| {
            let is_own = match there.kind {
                WaitKind::Lock | WaitKind::Condition => {
                    there.is_within_process(evidence) || there.holder.is_some_and(is_own)
                }
                WaitKind::Message | WaitKind::Poll => {
                    is_own_pipe(evidence, &there) && there.poll_limit_ns(evidence).is_none()
                }
                _ => false,
            };
            is_own && !gives_up(&there)
        })
    };
    alive.peek().is_some() && alive.all(waits)
}

/// Whether the process of a thread has another one at the end of the trace, a virtual machine's own aside.
pub fn has_mates(evidence: &Evidence<'_>, thread: Utid) -> bool {
    let end = evidence.timeline.end();
    let threads = evidence.threads.process_of(thread).threads.iter().copied();
    let mut others = threads.filter(|&other| other != thread);
    others.any(|other| is_there(evidence, other, end) && !is_upkeep(evidence, other))
}

/// Of the threads of a process none of which can go on, the one other than the waiter that is most deep in
/// work: its main thread mostly waits for the others to end.
pub(super) fn deepest_of_deadlocked(evidence: &Evidence<'_>, wait: &Wait) -> Option<Utid> {
    let process = evidence.threads.process_of(wait.thread);
    if wait.end < evidence.timeline.end() || !is_deadlocked(evidence, process.upid) {
        return None;
    }
    let depth = |thread: Utid| {
        let there = wait_at(evidence, thread, wait.end);
        there.map_or(0, |there| {
            evidence.stacks.frame_ids(there.user_stack(evidence)).len()
        })
    };
    let others = process.threads.iter().copied().filter(|&other| {
        other != wait.thread
            && is_there(evidence, other, wait.end)
            && !is_upkeep(evidence, other)
            && !wait_at(evidence, other, wait.end).is_some_and(|there| {
                there.is_idle(evidence)
                    || is_own_pipe(evidence, &there)
                    // It waits for one of the others by name, as for its end.
                    || there.holder.is_some()
            })
    });
    others.max_by_key(|&other| (depth(other), std::cmp::Reverse(other)))
}

/// Whether a thread is one that a virtual machine keeps for itself.
pub(super) fn is_machine(evidence: &Evidence<'_>, thread: Utid) -> bool {
    let name = evidence.threads.thread(thread).name();
    (names::JAVA_MACHINE.iter().chain(names::ERLANG_MACHINE)).any(|start| name.starts_with(start))
}

/// The same, or one that waits for what such a thread, or the program, leaves to do.
pub fn is_upkeep(evidence: &Evidence<'_>, thread: Utid) -> bool {
    let name = evidence.threads.thread(thread).name();
    let is_one = names::JAVA_UPKEEP
        .iter()
        .any(|start| name.starts_with(start));
    is_one || is_machine(evidence, thread)
}

/// Whether a thread lives at a moment.
pub(super) fn is_there(evidence: &Evidence<'_>, thread: Utid, ts: u64) -> bool {
    let life = evidence.timeline.life(thread);
    life.start < ts && ts <= life.end
}

/// A thread of a process that is stopped right before a moment.
pub(crate) fn stopped_thread(evidence: &Evidence<'_>, process: Upid, ts: u64) -> Option<Utid> {
    let threads = &evidence.threads.process(process).threads;
    let is_stopped = |&&thread: &&Utid| {
        wait_at(evidence, thread, ts).is_some_and(|wait| wait.kind == WaitKind::Stopped)
    };
    threads.iter().find(is_stopped).copied()
}

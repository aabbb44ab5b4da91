//! Threads of a language's scheduler, as Go's: each runs any of the program's tasks, and none stands for one.
//!
//! A task goes from thread to thread. So while one of them has nothing to do, what the program does is what the
//! others do; and what several of them do is one thing, done in turns.

use hangdog_graph::asyncio::{Awaits, Circle};
use hangdog_graph::{Evidence, Mark, Wait};
use hangdog_timeline::State;
use hangdog_trace::ids::{Upid, Utid};
use std::ops::Range;

use crate::kind::BlameKind;

/// Whether a thread that has no task waits for one, or for the next time to look after those that have.
pub(crate) fn is_without(evidence: &Evidence<'_>, wait: &Wait) -> bool {
    evidence.shows(wait.user_stack(evidence), Mark::Scheduler)
}

/// Whether the task that a thread parked last, or that its event loop waits for, waits for another of its program's.
pub(crate) fn awaits_other(evidence: &Evidence<'_>, wait: &Wait) -> bool {
    if let Some(task) = wait.task {
        return task.awaits != Awaits::Time;
    }
    is_without(evidence, wait) && evidence.shows(wait.user_stack(evidence), Mark::AwaitsTask)
}

/// What such a task waits for another to do, as a phrase: "another goroutine to unlock a mutex".
pub(crate) fn other(evidence: &Evidence<'_>, wait: &Wait) -> String {
    let wants = wants(evidence, wait);
    match wait.task.map(|task| task.circle) {
        None => format!("another goroutine{wants}"),
        Some(Circle::Itself) => "a lock that the same task has".to_owned(),
        Some(_) => format!("another task{wants}"),
    }
}

/// The rest of that phrase: " to unlock a mutex".
pub(crate) fn wants(evidence: &Evidence<'_>, wait: &Wait) -> &'static str {
    let mut frames = evidence.stacks.stack(wait.user_stack(evidence));
    let phrase = |function: &str| {
        Some(match function {
            "runtime.chansend1" => " to receive from a channel",
            "runtime.chanrecv1" | "runtime.chanrecv2" => " to send on a channel",
            "runtime.selectgo" => " to use one of several channels",
            "sync.runtime_notifyListWait" => " to signal a condition",
            "sync.(*WaitGroup).Wait" => " of a group to be done",
            "sync.(*Mutex).Lock" | "internal/sync.(*Mutex).lockSlow" => " to unlock a mutex",
            "sync.(*RWMutex).Lock" | "sync.(*RWMutex).RLock" => " to unlock a mutex",
            "Lock.acquire" => " to release a lock",
            "Semaphore.acquire" => " to release a semaphore",
            "Condition.wait" => " to notify a condition",
            "Event.wait" => " to set an event",
            "Queue.get" => " to put something into a queue",
            "Queue.put" => " to take something from a queue",
            "Queue.join" => " to finish what is in a queue",
            "TaskGroup.__aexit__" => " of its group to be done",
            _ => return None,
        })
    };
    (frames.find_map(|frame| phrase(frame.function?))).unwrap_or_default()
}

/// The function that such a task waits in, that of whoever made the lock or the channel: the innermost one that is
/// not of Go's runtime.
pub(crate) fn place_of_task<'e>(evidence: &'e Evidence<'_>, wait: &Wait) -> Option<&'e str> {
    const RUNTIME: [&str; 3] = ["runtime.", "sync.", "internal/"];
    if wait.task.is_some() {
        return None;
    }
    let frames = evidence.stacks.stack(wait.user_stack(evidence));
    let mut functions = frames.map(|frame| frame.function.unwrap_or_default());
    functions.find(|function| !RUNTIME.iter().any(|start| function.starts_with(start)))
}

/// Whether none of the tasks of a process can run at a moment: each of its threads rests in the scheduler, or waits
/// where its runtime waits for events, and the process asks nobody who could bring one.
pub(crate) fn none_can_run(evidence: &Evidence<'_>, process: Upid, at: u64) -> bool {
    let rest = |thread: Utid| {
        let intervals = evidence.timeline.intervals(thread);
        let interval = intervals.index_at(at).and_then(|it| intervals.get(it));
        let blocked = interval.filter(|interval| interval.state == State::Blocked);
        blocked.map(|interval| Wait::new(evidence, thread, &interval))
    };
    let threads = &evidence.threads.process(process).threads;
    let mut alive = (threads.iter().copied())
        .filter(|&thread| evidence.timeline.life(thread).contains(&at))
        .peekable();
    let mut has_scheduler = false;
    let all_rest = alive.peek().is_some()
        && alive.all(|thread| {
            rest(thread).is_some_and(|wait| {
                has_scheduler |= is_without(evidence, &wait);
                wait.is_idle(evidence)
            })
        });
    let mut asked = evidence.sockets.asks(process);
    let asks_others = asked.any(|object| evidence.sockets.peer_process(object) != Some(process));
    all_rest && has_scheduler && !asks_others
}

/// So many waits show what a thread rests in, and so many threads what a process does.
const FEW: usize = 16;

/// Whether a thread runs any task, as far as its waits within `window` show.
pub(crate) fn runs_any(evidence: &Evidence<'_>, thread: Utid, window: &Range<u64>) -> bool {
    let parts = evidence.timeline.between(thread, window.start, window.end);
    let waits = parts.filter(|part| part.state == State::Blocked);
    (waits.take(FEW)).any(|part| is_without(evidence, &Wait::new(evidence, thread, &part)))
}

/// Whether a scheduler runs the tasks of a thread's process, as far as the waits of its threads show within
/// `window`.
pub(crate) fn has_scheduler(evidence: &Evidence<'_>, thread: Utid, window: &Range<u64>) -> bool {
    let threads = evidence.threads.process_of(thread).threads.iter();
    threads
        .take(FEW)
        .any(|&thread| runs_any(evidence, thread, window))
}

/// A time in which another thread had a task.
pub(crate) struct Busy {
    pub thread: Utid,
    pub kind: BlameKind,
    pub part: Range<u64>,
}

/// What the other threads of the process did within `parts`, in which `thread` had no task, those that ran
/// before those that wanted to; and the times in which none of them did.
pub(crate) fn elsewhere(
    evidence: &Evidence<'_>,
    thread: Utid,
    parts: Vec<Range<u64>>,
) -> (Vec<Busy>, Vec<Range<u64>>) {
    /// A scheduler has some threads for each CPU; a damaged trace may have any number.
    const MOST: usize = 1024;
    let threads = &evidence.threads.process_of(thread).threads;
    let others: Vec<Utid> = (threads.iter().copied())
        .filter(|&other| other != thread)
        .take(MOST)
        .collect();
    let mut busy = Vec::new();
    let mut rest = parts;
    for wanted in [BlameKind::Run, BlameKind::Runnable] {
        for &other in &others {
            let mut left = Vec::new();
            for part in rest {
                let mut from = part.start;
                for interval in evidence.timeline.between(other, part.start, part.end) {
                    let kind = match interval.state {
                        State::Running | State::Interrupted => BlameKind::Run,
                        State::Runnable | State::Preempted => BlameKind::Runnable,
                        State::Blocked => continue,
                    };
                    if kind != wanted {
                        continue;
                    }
                    let taken = interval.start.max(from)..interval.end.min(part.end);
                    if taken.is_empty() {
                        continue;
                    }
                    if from < taken.start {
                        left.push(from..taken.start);
                    }
                    from = taken.end;
                    busy.push(Busy {
                        thread: other,
                        kind,
                        part: taken,
                    });
                }
                if from < part.end {
                    left.push(from..part.end);
                }
            }
            rest = left;
        }
    }
    (busy, rest)
}

//! A child that a signal killed while its parent waited for what it was to do; a thread that exited, after
//! which none is left in its process that could end a wait.
//!
//! The parent may have other threads or processes in between that would have passed the result on:
//! they have nothing to pass on, and are idle. A pool of workers often makes a new one in its place,
//! which knows nothing of the lost task.

use hangdog_timeline::State;
use hangdog_trace::ids::Utid;

use super::is_deadlocked;
use super::who::is_there;
use crate::edge::{Edge, EdgeKind, Source, Strength};
use crate::evidence::Evidence;
use crate::wait::{Wait, WaitKind};

/// Shorter waits need no such explanation, ns.
const LONG_NS: u64 = 500_000_000;
/// It may have died so long before: who waits may have done something else first.
const BEFORE_NS: u64 = 100_000_000;
/// The death lies within the first part of the wait.
const FIRST_PART: u64 = 10;

/// A thread may have exited so long before: the others go on for as long as what it left to them lasts.
const MATE_BEFORE_NS: u64 = 1_000_000_000;

/// The first threads of the processes that died by a signal of a fault, or were killed outright.
fn all_killed<'e>(evidence: &'e Evidence<'_>) -> &'e [Utid] {
    evidence.memo.killed.get_or_init(|| {
        let threads = evidence.threads.iter();
        let killed = threads.filter(|thread| thread.is_main() && thread.fatal_signal().is_some());
        killed.map(|thread| thread.utid).collect()
    })
}

/// The child of the process that waits that died by a signal about when the wait began.
pub(crate) fn killed(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    if wait.duration() < LONG_NS {
        return None;
    }
    let own = evidence.threads.thread(wait.thread).upid;
    let when = wait.start.saturating_sub(BEFORE_NS)..wait.start + wait.duration() / FIRST_PART;
    let (child, end, by) = all_killed(evidence).iter().find_map(|&child| {
        let thread = evidence.threads.thread(child);
        let is_own = evidence.threads.thread(thread.parent).upid == own;
        let end = thread.end.filter(|end| is_own && when.contains(end))?;
        Some((child, end, thread.killed_by()?))
    })?;
    let name = evidence.name(child);
    let at = end as f64 / 1e9;
    let reason = format!("its child {name} was killed at {at:.3} s by {by}");
    let source = Source::Thread(child);
    Some(Edge::new(EdgeKind::Killed, Strength::Weak, source, reason))
}

/// Whether the last that a thread did before it exited was to wake another: it had done what it was there for.
fn brought_its_part(evidence: &Evidence<'_>, mate: Utid, waiter: Utid, end: u64) -> bool {
    const LAST_NS: u64 = 1_000_000;
    let wakes = evidence.wakes;
    let mut own = evidence.own_wakes(mate).iter().rev();
    let Some(&last) = own.find(|&&row| wakes.wakee[row as usize] == waiter) else {
        return false;
    };
    let last = wakes.ts[last as usize];
    let mut after = evidence.timeline.between(mate, last, end);
    end.saturating_sub(last) <= LAST_NS && after.all(|part| part.state != State::Blocked)
}

/// The thread of the process that exited last, about when the wait for a condition began, where each of those
/// left waits for another of them: an exception ended it, or it returned early.
pub(crate) fn exited_mate(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    let trace_end = evidence.timeline.end();
    let own = evidence.threads.thread(wait.thread).upid;
    if wait.kind != WaitKind::Condition
        || wait.holder.is_some()
        || wait.is_for_own_lock(evidence)
        || wait.end < trace_end
        || wait.duration() < LONG_NS
        || !is_deadlocked(evidence, own)
    {
        return None;
    }
    let when = wait.start.saturating_sub(MATE_BEFORE_NS)..wait.start + wait.duration() / FIRST_PART;
    let threads = evidence.threads.process(own).threads.iter().copied();
    let exits = threads.filter_map(|thread| Some((evidence.threads.thread(thread).end?, thread)));
    let (end, mate) = exits.max().filter(|(end, _)| when.contains(end))?;
    if brought_its_part(evidence, mate, wait.thread, end) {
        return None;
    }
    // Who has started threads of its own works with those.
    let is_own = |thread: Utid| evidence.threads.thread(thread).parent == wait.thread;
    let mut threads = evidence.threads.process(own).threads.iter().copied();
    let has_own = threads.any(|thread| is_own(thread) && is_there(evidence, thread, wait.end));
    if has_own && !is_own(mate) {
        return None;
    }
    let name = evidence.name(mate);
    let at = end as f64 / 1e9;
    let reason = format!(
        "{name} exited at {at:.3} s, and no thread is left in its process that could end the wait"
    );
    let source = Source::Thread(mate);
    Some(Edge::new(EdgeKind::Habit, Strength::Weak, source, reason))
}

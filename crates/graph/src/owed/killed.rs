//! A child that a signal killed while its parent waited for what it was to do.
//!
//! The parent may have other threads or processes in between that would have passed the result on:
//! they have nothing to pass on, and are idle. A pool of workers often makes a new one in its place,
//! which knows nothing of the lost task.

use hangdog_trace::ids::Utid;

use crate::edge::{Edge, EdgeKind, Source, Strength};
use crate::evidence::Evidence;
use crate::wait::Wait;

/// Shorter waits need no such explanation, ns.
const LONG_NS: u64 = 500_000_000;
/// It may have died so long before: who waits may have done something else first.
const BEFORE_NS: u64 = 100_000_000;
/// The death lies within the first part of the wait.
const FIRST_PART: u64 = 10;

/// The first threads of the processes that died by a signal of a fault, or were killed outright.
pub(crate) fn all_killed(evidence: &Evidence<'_>) -> Vec<Utid> {
    let threads = evidence.threads.iter();
    let killed = threads.filter(|thread| thread.is_main() && thread.fatal_signal().is_some());
    killed.map(|thread| thread.utid).collect()
}

/// The child of the process that waits that died by a signal about when the wait began.
pub(crate) fn killed(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    if wait.duration() < LONG_NS {
        return None;
    }
    let own = evidence.threads.thread(wait.thread).upid;
    let when = wait.start.saturating_sub(BEFORE_NS)..wait.start + wait.duration() / FIRST_PART;
    let (child, end, signal) = evidence.killed().iter().find_map(|&child| {
        let thread = evidence.threads.thread(child);
        let is_own = evidence.threads.thread(thread.parent).upid == own;
        let end = thread.end.filter(|end| is_own && when.contains(end))?;
        Some((child, end, thread.fatal_signal()?))
    })?;
    let name = evidence.name(child);
    let at = end as f64 / 1e9;
    let reason = format!("{signal} killed its child {name} at {at:.3} s");
    let source = Source::Thread(child);
    Some(Edge::new(EdgeKind::Killed, Strength::Weak, source, reason))
}

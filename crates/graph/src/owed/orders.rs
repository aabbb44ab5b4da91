//! Whether what a thread reads from a pipe are orders: then it is idle until one comes.

use hangdog_trace::ids::{NONE, Upid};

use super::kin::{ancestors, main_life};
use crate::evidence::Evidence;
use crate::wait::Wait;

/// Whether a wait is for what its parent writes to a pipe, or whoever started that: orders, which may
/// come at any time.
pub fn takes_orders_by_pipe(evidence: &Evidence<'_>, wait: &Wait) -> bool {
    let pipe = wait.object(evidence);
    let process = evidence.threads.thread(wait.thread).upid;
    let holders = evidence.sockets.holders(pipe);
    let is_above = |other: Upid| ancestors(evidence, process).any(|above| above == other);
    let mut writers = holders.iter().filter(|holder| holder.writes);
    // A pipe that was there neither at the recording's start nor at its end is known by who wrote to it.
    let wrote = || holders.is_empty() && last_writer(evidence, wait).is_some_and(is_above);
    writers.any(|writer| is_above(writer.process)) || wrote() || has_parent_gone(evidence, wait)
}

/// The process that ended the last wait of the same thread for the same pipe.
fn last_writer(evidence: &Evidence<'_>, wait: &Wait) -> Option<Upid> {
    /// So many intervals are looked at.
    const MOST: usize = 256;
    let pipe = wait.object(evidence);
    let intervals = evidence.timeline.intervals(wait.thread);
    let at = intervals.index_at(wait.start)?;
    let row = (0..at).rev().take(MOST).find_map(|at| {
        let before = Wait::new(evidence, wait.thread, &intervals.get(at)?);
        let is_same = before.row.is_some() && before.object(evidence) == pipe;
        is_same.then(|| intervals.get(at + 1)?.wake())?
    })?;
    Some(evidence.threads.known(evidence.wakes.waker[row])?.upid)
}

/// Whether a thread reads by a pipe what its parent wants done.
pub(super) fn reads_orders(evidence: &Evidence<'_>, wait: &Wait) -> bool {
    let reads = wait.object(evidence).is_pipe() && !wait.writes(evidence);
    reads && takes_orders_by_pipe(evidence, wait)
}

/// Whether the parent of the one who waits for a pipe ended meanwhile, before it was looked who has
/// the pipe open: it may have had the other end, and those that have it now only inherited it.
pub(super) fn has_parent_gone(evidence: &Evidence<'_>, wait: &Wait) -> bool {
    let process = evidence.threads.thread(wait.thread).upid;
    let parent = evidence.threads.process(process).parent;
    let looked = evidence.sockets.holders(wait.object(evidence)).first();
    let Some(looked) = looked.filter(|_| parent != NONE) else {
        return false;
    };
    let end = main_life(evidence, parent).map_or(u64::MAX, |life| life.end);
    (wait.start..wait.end.min(looked.ts)).contains(&end)
}

/// Whether nobody but the process itself can write to the pipe that a thread waits to read.
pub fn is_own_pipe(evidence: &Evidence<'_>, wait: &Wait) -> bool {
    let process = evidence.threads.thread(wait.thread).upid;
    let holders = evidence.sockets.holders(wait.object(evidence));
    let mut writers = holders.iter().filter(|holder| holder.writes).peekable();
    wait.object(evidence).is_pipe()
        && !wait.writes(evidence)
        && writers.peek().is_some()
        && writers.all(|writer| writer.process == process)
}

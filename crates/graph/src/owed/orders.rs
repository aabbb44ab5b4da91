//! Whether what a thread reads from a pipe are orders: then it is idle until one comes.

use hangdog_trace::ids::NONE;

use super::kin::{ancestors, main_life};
use crate::evidence::Evidence;
use crate::wait::Wait;

/// Whether a wait is for what its parent writes to a pipe, or whoever started that: orders, which may
/// come at any time.
pub fn takes_orders_by_pipe(evidence: &Evidence<'_>, wait: &Wait) -> bool {
    let pipe = wait.object(evidence);
    let process = evidence.threads.thread(wait.thread).upid;
    let holders = evidence.sockets.holders(pipe);
    let mut writers = holders.iter().filter(|holder| holder.writes);
    writers.any(|writer| ancestors(evidence, process).any(|above| above == writer.process))
        || has_parent_gone(evidence, wait)
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

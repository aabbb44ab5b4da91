//! How processes are related: who started whom, and when each lived.

use hangdog_trace::ids::{NONE, Upid, Utid};
use std::collections::HashSet;
use std::ops::Range;

use crate::evidence::Evidence;

/// Whether two processes were started within a moment, as the commands of a pipeline are, if that is known.
pub fn started_together(evidence: &Evidence<'_>, a: Upid, b: Upid) -> Option<bool> {
    const MOMENT_NS: u64 = 100_000_000;
    let both = evidence.started_at(a).zip(evidence.started_at(b));
    both.map(|(a, b)| a.abs_diff(b) <= MOMENT_NS)
}

/// A process's first thread.
pub(super) fn first_thread(evidence: &Evidence<'_>, process: Upid) -> Option<Utid> {
    let mut threads = evidence.threads.process(process).threads.iter().copied();
    threads.find(|&thread| evidence.threads.thread(thread).is_main())
}

/// The life of a process's first thread.
pub(super) fn main_life(evidence: &Evidence<'_>, process: Upid) -> Option<Range<u64>> {
    let first = first_thread(evidence, process)?;
    Some(evidence.timeline.life(first))
}

/// Whether what started a process had ended by a moment: it runs in the background, and nobody awaits its end.
pub fn is_orphan(evidence: &Evidence<'_>, process: Upid, at: u64) -> bool {
    const INIT: u32 = 1;
    let parent = evidence.threads.process(process).parent;
    parent != NONE
        && (evidence.threads.process(parent).pid == INIT
            || main_life(evidence, parent)
                .is_some_and(|life| life.end <= at && life.end < evidence.timeline.end()))
}

/// Some processes, and all that they started, directly or by others.
pub fn descendants(evidence: &Evidence<'_>, heads: impl Iterator<Item = Upid>) -> HashSet<Upid> {
    let mut family: HashSet<Upid> = heads.collect();
    // Children come after their parents in the order of ids.
    for process in evidence.threads.processes() {
        if process.parent != NONE && family.contains(&process.parent) {
            family.insert(process.upid);
        }
    }
    family
}

/// Who started a process, and who started that, and so on: not without end, as the parents may form
/// a circle in a damaged trace.
pub fn ancestors<'e>(
    evidence: &'e Evidence<'_>,
    process: Upid,
) -> impl Iterator<Item = Upid> + Clone + 'e {
    const DEEPEST: usize = 64;
    let parent = move |&at: &Upid| {
        let parent = evidence.threads.process(at).parent;
        (parent != NONE && parent != at).then_some(parent)
    };
    std::iter::successors(parent(&process), parent).take(DEEPEST)
}

/// Whether a process was started by another, or by what that started, or is that itself.
pub fn is_descendant(evidence: &Evidence<'_>, process: Upid, of: Upid) -> bool {
    process == of || ancestors(evidence, process).any(|at| at == of)
}

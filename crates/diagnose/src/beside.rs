//! What another program did meanwhile, for one that polls: no event says whom it waits for, but of the
//! programs that were started with it one alone may have been at work.

use hangdog_graph::Evidence;
use hangdog_graph::owed::is_descendant;
use hangdog_timeline::State;
use hangdog_trace::ids::{Upid, Utid};
use std::collections::HashMap;
use std::ops::Range;

use crate::function;
use crate::profile::samples_of;

/// A program at work.
pub(crate) struct AtWork {
    /// The thread of it that worked most.
    pub thread: Utid,
    /// The function in which that was seen most.
    pub function: Option<String>,
}

/// Of the programs that were started by whoever started the program of `thread`, the one that computed for
/// most of a time, or wanted to; none if there are several.
pub(crate) fn only_one_at_work(
    evidence: &Evidence<'_>,
    thread: Utid,
    window: &Range<u64>,
) -> Option<AtWork> {
    /// It computes for so much of the time, and all others together for less than the rest.
    const MOST: f64 = 0.7;
    const LITTLE: f64 = 0.3;
    /// The first process adopts whose parents have ended: they were not started together.
    const FIRST_PID: u32 = 1;
    let threads = evidence.threads;
    let own = threads.process_of(thread);
    let parent = threads.process(own.parent);
    if parent.upid != own.parent || parent.pid <= FIRST_PID {
        return None;
    }
    let recorder = threads
        .processes()
        .find(|process| Some(process.pid) == evidence.recorder);
    let is_recorders = |process: Upid| {
        recorder.is_some_and(|recorder| {
            process == recorder.upid || is_descendant(evidence, process, recorder.upid)
        })
    };
    let is_beside = |process: Upid| {
        process != own.upid
            && is_descendant(evidence, process, parent.upid)
            && !is_descendant(evidence, process, own.upid)
            && !is_recorders(process)
    };
    let length = window.end.saturating_sub(window.start) as f64;
    let worked = |thread: Utid| {
        let intervals = evidence.timeline.between(thread, window.start, window.end);
        let works = intervals.filter(|it| it.state == State::Running || it.state.wants_cpu());
        works.map(|it| it.duration()).sum::<u64>() as f64 / length
    };
    let mut of_each: Vec<(f64, Utid)> = threads
        .processes()
        .filter(|process| is_beside(process.upid))
        .filter_map(|process| {
            let each = process
                .threads
                .iter()
                .map(|&thread| (worked(thread), thread));
            each.max_by(|a, b| a.0.total_cmp(&b.0))
        })
        .collect();
    of_each.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (most, rest) = of_each.split_first()?;
    if most.0 < MOST || rest.iter().map(|(share, _)| share).sum::<f64>() > LITTLE {
        return None;
    }
    let mut counts: HashMap<String, usize> = HashMap::new();
    for row in samples_of(evidence, most.1, std::slice::from_ref(window)) {
        if let Some(function) = function::own(evidence, evidence.samples.user_stack[row]) {
            *counts.entry(function.name).or_default() += 1;
        }
    }
    let function = counts
        .into_iter()
        .max_by(|a, b| (a.1, &b.0).cmp(&(b.1, &a.0)));
    Some(AtWork {
        thread: most.1,
        function: function.map(|(name, _)| name),
    })
}

//! A program whose goroutines or whose tasks of asyncio hold each other up: its threads go on with others, and none of them
//! shows that.
//!
//! It is reported where somebody asks about the program. Of another, a goroutine that is left behind so need not matter; a task of asyncio
//! that waits for a lock, or for room in a queue, is reported with less weight.

use hangdog_graph::{Evidence, Wait};
use hangdog_timeline::State;
use hangdog_trace::ids::{Upid, Utid};
use std::collections::BTreeSet;

use super::{Problem, ProblemKind, worth};

/// As much as of a thread that waits for a lock of its program.
const FELT: f64 = 0.5;
/// The same where nobody asks.
const OTHERS: f64 = 0.1;
/// What it did in this part of the time, at its beginning, was before that.
const EARLY_PART: u64 = 10;
/// Who ran so long at a time did some work, ns.
const WORK_NS: u64 = 2_000_000;

/// For each process that has a thread which is asked about, the time until the end in which a goroutine or a task was held up.
pub(super) fn find(evidence: &Evidence<'_>, is_asked: impl Fn(Utid) -> bool) -> Vec<Problem> {
    (processes(evidence, is_asked).into_iter())
        .filter_map(|process| of(evidence, process))
        .collect()
}

/// The same for each process that has a thread which is not asked about, of those whose tasks are held up for sure and that did
/// no work meanwhile: where many tasks take turns, some always wait for a semaphore.
pub(super) fn find_others(
    evidence: &Evidence<'_>,
    is_asked: impl Fn(Utid) -> bool,
) -> Vec<Problem> {
    (processes(evidence, |thread| !is_asked(thread)).into_iter())
        .filter(|&process| evidence.has_held_up_task(process))
        .filter_map(|process| {
            let problem = of(evidence, process)?;
            let worked = last_work(evidence, process).unwrap_or(0);
            let early = problem.window.start + problem.duration() / EARLY_PART;
            (worked <= early).then_some(problem)
        })
        .map(|problem| Problem {
            felt: OTHERS,
            owed: OTHERS,
            score: problem.score * OTHERS / FELT,
            ..problem
        })
        .collect()
}

fn processes(evidence: &Evidence<'_>, of: impl Fn(Utid) -> bool) -> BTreeSet<Upid> {
    let threads = (evidence.threads.iter()).filter(|thread| of(thread.utid));
    threads.map(|thread| thread.upid).collect()
}

/// Since its program did some work last, and since one of `process` was found so at the latest.
fn of(evidence: &Evidence<'_>, process: Upid) -> Option<Problem> {
    let threads = &evidence.threads.process(process).threads;
    let (thread, found) = match evidence.goroutine_held_up_since(process) {
        Some(found) => (*threads.first()?, found),
        None => {
            let found = evidence.task_held_up_since(process)?;
            let waits = |&&thread: &&Utid| waits_for_task(evidence, thread);
            (*threads.iter().find(waits)?, found)
        }
    };
    let life = evidence.timeline.life(thread);
    let worked = last_work(evidence, process).unwrap_or(0);
    let start = worked.min(found).max(life.start);
    (start < life.end).then(|| Problem {
        thread,
        window: start..life.end,
        kind: ProblemKind::Wait,
        felt: FELT,
        owed: FELT,
        score: worth((life.end - start) as f64) * FELT,
        many: None,
    })
}

/// When a process did some work last.
fn last_work(evidence: &Evidence<'_>, process: Upid) -> Option<u64> {
    let end = evidence.timeline.end();
    let threads = &evidence.threads.process(process).threads;
    let is_work = |state: State| matches!(state, State::Running | State::Interrupted);
    let worked = threads.iter().filter_map(|&thread| {
        let parts = evidence.timeline.between(thread, 0, end);
        let worked = parts.filter(|part| is_work(part.state) && part.duration() >= WORK_NS);
        worked.map(|part| part.end).max()
    });
    worked.max()
}

/// Whether a thread runs an event loop, and waits for one of its tasks in one of the last of its waits.
fn waits_for_task(evidence: &Evidence<'_>, thread: Utid) -> bool {
    /// At the very end it may run for a moment.
    const LAST: usize = 8;
    let intervals = evidence.timeline.intervals(thread);
    let last = (0..intervals.len()).rev().take(LAST);
    let mut blocked = (last.filter_map(|at| intervals.get(at)))
        .filter(|interval| interval.state == State::Blocked);
    blocked.any(|interval| (Wait::new(evidence, thread, &interval).find_task(evidence)).is_some())
}

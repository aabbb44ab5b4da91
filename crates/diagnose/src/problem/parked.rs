//! A Go program that somebody asks about, whose goroutines hold each other up: its threads go on with others, and none of
//! them shows that. Of other programs it is not reported, since a goroutine that is left behind so need not matter.

use hangdog_graph::Evidence;
use hangdog_timeline::State;
use hangdog_trace::ids::{Upid, Utid};
use std::collections::BTreeSet;

use super::{Problem, ProblemKind, worth};

/// As much as of a thread that waits for a lock of its program.
const FELT: f64 = 0.5;
/// Who ran so long at a time did some work, ns.
const WORK_NS: u64 = 2_000_000;

/// For each process that has a thread which is asked about, the time until the end in which a goroutine was held up.
pub(super) fn find(evidence: &Evidence<'_>, is_asked: impl Fn(Utid) -> bool) -> Vec<Problem> {
    let asked = (evidence.threads.iter()).filter(|thread| is_asked(thread.utid));
    let processes: BTreeSet<Upid> = asked.map(|thread| thread.upid).collect();
    (processes.into_iter())
        .filter_map(|process| of(evidence, process))
        .collect()
}

/// Since its program did some work last, and since a goroutine of `process` was found so at the latest.
fn of(evidence: &Evidence<'_>, process: Upid) -> Option<Problem> {
    let found = evidence.goroutine_held_up_since(process)?;
    let threads = &evidence.threads.process(process).threads;
    let end = evidence.timeline.end();
    let is_work = |state: State| matches!(state, State::Running | State::Interrupted);
    let worked = threads.iter().filter_map(|&thread| {
        let parts = evidence.timeline.between(thread, 0, end);
        let worked = parts.filter(|part| is_work(part.state) && part.duration() >= WORK_NS);
        worked.map(|part| part.end).max()
    });
    let thread = *threads.first()?;
    let life = evidence.timeline.life(thread);
    let start = worked.max().unwrap_or(0).min(found).max(life.start);
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

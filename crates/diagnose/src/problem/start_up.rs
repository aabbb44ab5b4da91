//! What a program waits for right after it was started: what is not in memory yet has to be read.
//!
//! Every start takes its time, and only a long one is felt as a wait of a program that runs is. Whoever
//! recorded the program asks where its time went, its start included.

use hangdog_graph::evidence::signed;
use hangdog_graph::{Evidence, WaitKind};

use super::family::Family;
use super::{Problem, ProblemKind};
use crate::stretch::{Stretch, each_stretch};

/// So long after its birth a program may still be starting.
const START_NS: i64 = 2_000_000_000;
/// A start that takes so long is felt as any other wait is.
const LONG_NS: f64 = 8e9;

/// What is left of how much a problem is felt: less than 1 where it is the disk and pages that a program waits
/// for as it starts.
pub(super) fn felt(evidence: &Evidence<'_>, family: &Family, problem: &Problem) -> f64 {
    let process = evidence.threads.thread(problem.thread).upid;
    let is_start = problem.kind == ProblemKind::Wait
        && !family.has(process)
        && evidence
            .started_at(process)
            .is_some_and(|born| signed(problem.window.start) - born < START_NS);
    match is_start && reads_mostly(evidence, problem) {
        true => (problem.duration() as f64 / LONG_NS).min(1.0),
        false => 1.0,
    }
}

/// Whether most of the time of a problem goes to waits for disks and pages.
fn reads_mostly(evidence: &Evidence<'_>, problem: &Problem) -> bool {
    let mut read = 0;
    each_stretch(
        evidence,
        problem.thread,
        problem.window.clone(),
        |stretch| {
            if let Stretch::Waiting(waiting) = stretch
                && matches!(waiting.wait.kind, WaitKind::Disk | WaitKind::Paging)
            {
                read += waiting.to - waiting.from;
            }
        },
    );
    read >= problem.duration() / 2
}

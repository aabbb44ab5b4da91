//! Which problems are those of a program that somebody named: its own, and what it started where its own threads
//! only wait for whatever comes.

use hangdog_graph::Evidence;
use hangdog_graph::owed::descendants;
use hangdog_trace::ids::Utid;
use rayon::prelude::*;

use super::chained::{main_wait, overlap};
use super::starter::of_starter;
use super::{LEAST_FELT, Problem, parked};
use crate::tasks;

/// What is left of a problem of a program that the named one has started: the named one comes first, if something
/// of its own is nearly as bad.
const STARTED: f64 = 0.3;

/// Of all `problems` those of the threads that are named, and of what their programs started.
pub(super) fn of(
    evidence: &Evidence<'_>,
    problems: Vec<Problem>,
    is_named: &(impl Fn(Utid) -> bool + Sync),
) -> Vec<Problem> {
    let process = |thread: Utid| evidence.threads.thread(thread).upid;
    let named = (evidence.threads.iter()).filter(|thread| is_named(thread.utid));
    let programs = descendants(evidence, named.map(|thread| thread.upid));
    let (mut own, started): (Vec<Problem>, Vec<Problem>) = (problems.into_par_iter())
        // What a program computes may be the wait of the named one.
        .map(|problem| of_starter(evidence, problem, is_named))
        .filter(|problem| programs.contains(&process(problem.thread)))
        .partition(|problem| is_named(problem.thread));
    let of_started: Vec<Problem> = (started.into_iter())
        .filter(|problem| problem.owed >= LEAST_FELT && !is_owed_meanwhile(&own, problem))
        .map(|problem| Problem {
            score: problem.score * STARTED,
            ..problem
        })
        .collect();
    own.extend(of_started);
    let mut found = without_resting(evidence, own);
    found.extend(parked::find(evidence, is_named));
    found
}

/// Whether something was owed to one of the named threads for much of another problem's time: that wait leads to the
/// other.
fn is_owed_meanwhile(own: &[Problem], other: &Problem) -> bool {
    own.iter().any(|own| {
        own.owed >= LEAST_FELT && overlap(&own.window, &other.window) >= other.duration() / 2
    })
}

/// Those of threads that do something for their program, if there are any; else all.
fn without_resting(evidence: &Evidence<'_>, problems: Vec<Problem>) -> Vec<Problem> {
    let (resting, others): (Vec<Problem>, Vec<Problem>) =
        (problems.into_par_iter()).partition(|problem| rests(evidence, problem));
    if others.is_empty() { resting } else { others }
}

/// Whether a problem is the wait of a pool's thread for a task.
fn rests(evidence: &Evidence<'_>, problem: &Problem) -> bool {
    let Some(waiting) = main_wait(evidence, problem.thread, problem.window.clone()) else {
        return false;
    };
    let wait = waiting.wait;
    let is_one_of_pool = match tasks::is_without(evidence, &wait) {
        // Of a language's scheduler the one that polls waits for what the tasks wait for.
        true => !wait.by_epoll(evidence),
        false => !evidence.stands_for_program(problem.thread),
    };
    wait.is_idle(evidence) && is_one_of_pool
}

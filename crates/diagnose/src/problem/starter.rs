//! Whose problem a long computation is, where a program only started it and awaits its end: that
//! program's, which a person started and looks at. A shell only starts what its user wants.

use hangdog_graph::{Evidence, WaitKind};
use hangdog_trace::ids::{NONE, Utid};
use std::ops::Range;

use super::chained::{is_as_long, main_wait, next_link};
use super::{Problem, ProblemKind};

const SHELLS: [&str; 6] = ["bash", "dash", "fish", "ksh", "sh", "zsh"];
/// So many programs start each other.
const MOST: usize = 64;

/// Whether a thread is a shell's.
pub(super) fn is_shell(evidence: &Evidence<'_>, thread: Utid) -> bool {
    SHELLS.contains(&evidence.threads.process_of(thread).name.as_str())
}

/// A computation as the problem of whoever awaits it all the time, of several the first that is `meant`, or else
/// the outermost; any other problem as it is.
pub(super) fn of_starter(
    evidence: &Evidence<'_>,
    mut problem: Problem,
    is_meant: impl Fn(Utid) -> bool,
) -> Problem {
    if problem.kind != ProblemKind::Busy {
        return problem;
    }
    for _ in 0..MOST {
        if is_meant(problem.thread) {
            break;
        }
        let Some((thread, window)) = starter(evidence, problem.thread, &problem.window) else {
            break;
        };
        problem = Problem {
            thread,
            window,
            kind: ProblemKind::Wait,
            ..problem
        };
    }
    problem
}

/// The thread of its parent that waits for a thread's process as long as `window`, and since when and
/// until when.
fn starter(
    evidence: &Evidence<'_>,
    thread: Utid,
    window: &Range<u64>,
) -> Option<(Utid, Range<u64>)> {
    let own = evidence.threads.process_of(thread);
    let parent = (own.parent != NONE).then(|| evidence.threads.process(own.parent))?;
    let awaits = |&starter: &Utid| {
        let life = evidence.timeline.life(starter);
        let window = window.start.max(life.start)..window.end.min(life.end);
        let link = (!window.is_empty()).then(|| next_link(evidence, starter, window.clone()))??;
        let is_child = evidence.threads.thread(link.thread).upid == own.upid;
        (is_child && is_as_long(&link.window, &window)).then_some((starter, link.window))
    };
    let mut threads = parent.threads.iter();
    let (starter, window) = threads.find_map(awaits)?;
    let pid = evidence.threads.thread(starter).pid;
    let is_user = evidence.recorder != Some(pid)
        && !is_shell(evidence, starter)
        && !sleeps_meanwhile(evidence, starter, window.clone());
    is_user.then_some((starter, window))
}

/// Whether the program of a thread lets time pass in a window, whatever that thread waits for: then it is not held
/// up by that.
pub(super) fn sleeps_meanwhile(evidence: &Evidence<'_>, thread: Utid, window: Range<u64>) -> bool {
    let threads = &evidence.threads.process_of(thread).threads;
    threads
        .iter()
        .filter(|&&other| other != thread && evidence.stands_for_program(other))
        .filter_map(|&other| main_wait(evidence, other, window.clone()))
        .any(|waiting| waiting.wait.kind == WaitKind::Sleep)
}

//! What stopped a thread, as far as the trace tells: a signal, and from whom, or the freezer of a control group.
//!
//! The scheduler has one state for both. A thread that sleeps is woken by the signal that is to stop it, right
//! before it stops, and whoever lets it go on does so by a signal or by a write to the freezer's file.

use hangdog_timeline::{Cause, State};
use hangdog_trace::calls::Call;
use hangdog_trace::words::Context;

use crate::edge::{SIGCONT, SIGSTOP, SIGTSTP};
use crate::evidence::Evidence;
use crate::marks::Mark;
use crate::wait::Wait;

/// How a thread was stopped, as a phrase that follows its name.
pub fn phrase(evidence: &Evidence<'_>, wait: &Wait) -> String {
    const SIGNAL: &str = "was stopped by a signal";
    if let Some(row) = stopping_wake(evidence, wait) {
        let sender = evidence.name(evidence.wakes.waker[row]);
        return format!("{SIGNAL} from {sender}");
    }
    let ended = ending_wake(evidence, wait);
    let by_freezer = evidence.shows(wait.kernel_stack(evidence), Mark::Frozen)
        || ended.is_some_and(|row| evidence.shows(evidence.wakes.kernel_stack[row], Mark::Frozen));
    if by_freezer {
        return "was frozen by its control group".to_owned();
    }
    match ended.is_some_and(|row| is_signal(evidence, row, &[SIGCONT])) {
        true => SIGNAL.to_owned(),
        false => {
            "was stopped by a signal, a debugger or the freezer of its control group".to_owned()
        }
    }
}

/// Whether a row of `wakes` is somebody's sending of one of these signals.
fn is_signal(evidence: &Evidence<'_>, row: usize, signals: &[u64]) -> bool {
    let wakes = evidence.wakes;
    Context::from(wakes.context[row]) == Context::Task
        && evidence.call(wakes.call[row]) == Call::Kill
        && signals.contains(&wakes.arg[row])
}

/// The wake by the signal that stopped a thread, which slept until then.
fn stopping_wake(evidence: &Evidence<'_>, wait: &Wait) -> Option<usize> {
    const MOST_INTERVALS: usize = 8;
    let intervals = evidence.timeline.intervals(wait.thread);
    let here = intervals.index_at(wait.start)?;
    let before = (0..here).rev().take(MOST_INTERVALS);
    let since = before
        .filter_map(|at| intervals.get(at))
        .take_while(|interval| interval.state != State::Blocked);
    let mut wakes = since.filter_map(|interval| match interval.cause {
        Cause::Wake(row) => Some(row as usize),
        _ => None,
    });
    wakes.find(|&row| is_signal(evidence, row, &[SIGSTOP, SIGTSTP]))
}

/// The wake that let a thread go on.
fn ending_wake(evidence: &Evidence<'_>, wait: &Wait) -> Option<usize> {
    let intervals = evidence.timeline.intervals(wait.thread);
    match intervals.get(intervals.index_at(wait.end)?)?.cause {
        Cause::Wake(row) => Some(row as usize),
        _ => None,
    }
}

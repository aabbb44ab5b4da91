//! What stopped a thread: a signal, with its sender, or the freezer of a control group.
//!
//! The recording has one state for both. The wakes around it tell them apart: SIGSTOP wakes a thread that sleeps
//! right before it stops, and SIGCONT or a write to the freezer's file ends the stop.

use std::ops::Range;

use hangdog_timeline::State;
use hangdog_trace::calls::Call;
use hangdog_trace::ids::{StackId, Utid};
use hangdog_trace::words::Context;

use crate::evidence::Evidence;
use crate::marks::Mark;

// The same numbers on all machines that hangdog knows.
pub(crate) const SIGCONT: u64 = 18;
pub(crate) const SIGSTOP: u64 = 19;
pub(crate) const SIGTSTP: u64 = 20;

/// What stopped a thread in `window`, as a phrase that follows its name; `kernel_stack` is the one that it was
/// stopped in, if there is one.
pub(crate) fn phrase(
    evidence: &Evidence<'_>,
    thread: Utid,
    window: &Range<u64>,
    kernel_stack: StackId,
) -> String {
    const SIGNAL: &str = "was stopped by a signal";
    if let Some(row) = stopping_wake(evidence, thread, window.start) {
        let sender = evidence.name(evidence.wakes.waker[row]);
        return format!("{SIGNAL} from {sender}");
    }
    let ended = ending_wake(evidence, thread, window.end);
    let by_freezer = evidence.shows(kernel_stack, Mark::Frozen)
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

/// Whether a row of `wakes` is the delivery of one of these signals.
fn is_signal(evidence: &Evidence<'_>, row: usize, signals: &[u64]) -> bool {
    let wakes = evidence.wakes;
    Context::from(wakes.context[row]) == Context::Task
        && evidence.call(wakes.call[row]) == Call::Kill
        && signals.contains(&wakes.arg[row])
}

/// The wake by the signal that stopped the thread, if it slept until then.
fn stopping_wake(evidence: &Evidence<'_>, thread: Utid, from: u64) -> Option<usize> {
    const MOST_INTERVALS: usize = 8;
    let intervals = evidence.timeline.intervals(thread);
    let here = intervals.index_at(from)?;
    let before = (0..here).rev().take(MOST_INTERVALS);
    let since = before
        .filter_map(|at| intervals.get(at))
        .take_while(|interval| interval.state != State::Blocked);
    let mut wakes = since.filter_map(|interval| interval.wake());
    wakes.find(|&row| is_signal(evidence, row, &[SIGSTOP, SIGTSTP]))
}

/// The wake that ended the stop.
fn ending_wake(evidence: &Evidence<'_>, thread: Utid, to: u64) -> Option<usize> {
    let intervals = evidence.timeline.intervals(thread);
    intervals.get(intervals.index_at(to)?)?.wake()
}

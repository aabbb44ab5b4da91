//! What stopped a thread: a signal, with its sender, a debugger, or the freezer of a control group.
//!
//! The recording has one state for all of them. The kernel's stack tells them apart, and the wakes around it: SIGSTOP
//! wakes a thread that sleeps right before it stops, and SIGCONT or a write to the freezer's file ends the stop. Of a
//! thread that ran, the kernel's step of sending the signal names the sender.

use std::ops::Range;

use hangdog_timeline::State;
use hangdog_trace::calls::Call;
use hangdog_trace::ids::{StackId, Utid};
use hangdog_trace::words::{Context, HandoffKind, HandoffStep};

use crate::evidence::Evidence;
use crate::marks::Mark;

// The same numbers on all machines that hangdog knows.
pub(crate) const SIGCONT: u64 = 18;
pub(crate) const SIGSTOP: u64 = 19;
pub(crate) const SIGTSTP: u64 = 20;
const SIGTTIN: u64 = 21;
const SIGTTOU: u64 = 22;

/// What stopped a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// A signal, of this thread where it was seen.
    Signal(Option<Utid>),
    /// A debugger or another tracer.
    Tracer,
    /// The freezer of its control group.
    Freezer,
    /// One of these.
    Unknown,
}

/// What stopped a thread in `window`; `kernel_stack` is the one that it was stopped in, if there is one.
pub(crate) fn of(
    evidence: &Evidence<'_>,
    thread: Utid,
    window: &Range<u64>,
    kernel_stack: StackId,
) -> Stop {
    if let Some(row) = stopping_wake(evidence, thread, window.start) {
        return Stop::Signal(Some(evidence.wakes.waker[row]));
    }
    if let Some(sender) = sender(evidence, thread, window.start) {
        return Stop::Signal(Some(sender));
    }
    let shows = |mark| evidence.shows(kernel_stack, mark);
    let ended = ending_wake(evidence, thread, window.end);
    let by_signal = shows(Mark::StoppedBySignal)
        || ended.is_some_and(|row| is_signal(evidence, row, &[SIGCONT]));
    let thawed =
        ended.is_some_and(|row| evidence.shows(evidence.wakes.kernel_stack[row], Mark::Frozen));
    // The freezer leaves many threads in the kernel's function in which they slept; the other stops do not.
    let has_names = || {
        let mut frames = evidence.stacks.stack(kernel_stack);
        frames.any(|frame| frame.function.is_some())
    };
    match () {
        () if shows(Mark::StoppedByTracer) => Stop::Tracer,
        () if by_signal => Stop::Signal(None),
        () if thawed || has_names() => Stop::Freezer,
        () => Stop::Unknown,
    }
}

/// The same as a phrase that follows the thread's name. `signal` is the number of the signal, where that is known.
pub(crate) fn phrase(evidence: &Evidence<'_>, stop: Stop, signal: u64) -> String {
    let which = match signal {
        SIGSTOP => " (SIGSTOP)",
        SIGTSTP => " (SIGTSTP, as Ctrl-Z sends it)",
        SIGTTIN => " (SIGTTIN: it read from its terminal in the background)",
        SIGTTOU => " (SIGTTOU: it changed or wrote to its terminal in the background)",
        // Traces of older versions have something else there.
        _ => "",
    };
    match stop {
        Stop::Signal(Some(sender)) => {
            format!(
                "was stopped by a signal{which} from {}",
                evidence.name(sender)
            )
        }
        Stop::Signal(None) => format!("was stopped by a signal{which}"),
        Stop::Tracer => "was stopped by a debugger or tracer".to_owned(),
        Stop::Freezer => "was frozen by its control group".to_owned(),
        Stop::Unknown => {
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

/// Who sent the signal that stopped a thread of a process which ran until then.
fn sender(evidence: &Evidence<'_>, thread: Utid, from: u64) -> Option<Utid> {
    const SOON_NS: u64 = 20_000_000;
    const MOST: usize = 1024;
    let handoffs = evidence.handoffs;
    let process = evidence.threads.thread(thread).upid;
    let end = handoffs.ts.partition_point(|&ts| ts <= from);
    let since = (0..end)
        .rev()
        .take(MOST)
        .take_while(|&row| from - handoffs.ts[row] <= SOON_NS);
    let mut stopping = since.filter(|&row| {
        HandoffKind::from(handoffs.kind[row]) == HandoffKind::Signal
            && HandoffStep::from(handoffs.step[row]) == HandoffStep::Submitted
            && [SIGSTOP, SIGTSTP].contains(&handoffs.detail[row])
            && evidence
                .threads
                .known(handoffs.other[row])
                .is_some_and(|to| to.upid == process)
    });
    // A terminal sends it by a thread of the kernel's: it was somebody's key.
    let sender = evidence.threads.known(handoffs.thread[stopping.next()?])?;
    (!sender.is_kernel()).then_some(sender.utid)
}

/// The wake that ended the stop.
fn ending_wake(evidence: &Evidence<'_>, thread: Utid, to: u64) -> Option<usize> {
    let intervals = evidence.timeline.intervals(thread);
    intervals.get(intervals.index_at(to)?)?.wake()
}

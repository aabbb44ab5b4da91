//! How many threads were running or runnable: the average for intervals of equal length.
//!
//! A thread that runs, is interrupted, or waits for a CPU counts; one that is blocked does not. That
//! is the kernel's load average without threads that wait for a disk, and without its smoothing.

use crate::case::Recording;
use crate::select::Window;
use hangdog_timeline::{Cause, Interval, Intervals, State};
use hangdog_trace::ids::Utid;
use rayon::prelude::*;
use serde::Serialize;

/// The averages, one after the other.
#[derive(Debug, PartialEq, Serialize)]
pub struct Load {
    /// The length of an interval, ns; the last may be cut short by the window's end.
    pub step_ns: u64,
    /// How many CPUs there were.
    pub cpus: usize,
    /// How many threads were running or runnable, on average, interval by interval.
    pub average: Vec<f64>,
}

/// Which threads count.
#[derive(Clone, Copy, Debug, Default)]
pub struct Chosen<'a> {
    /// Only threads of these processes, by their ids within the trace; of all if none are given.
    pub processes: Option<&'a [u32]>,
    /// Only at this kernel priority or a higher one, which is a lower number: 0-98 realtime, 100-139
    /// nice -20 to 19.
    pub priority: Option<u8>,
}

/// The load in a window, in steps of `step` ns, which is not 0.
pub fn load(recording: &Recording, window: Window, step: u64, chosen: Chosen<'_>) -> Load {
    let step = step.max(1);
    let count = (window.to - window.from).div_ceil(step) as usize;
    let add = |mut sums: Vec<u64>, utid: Utid| {
        let process = recording.threads.thread(utid).upid;
        if chosen
            .processes
            .is_none_or(|chosen| chosen.contains(&process))
        {
            let intervals = recording.timeline.intervals(utid);
            let is_counted = |interval: &Interval, at: usize| {
                chosen.priority.is_none_or(|least| {
                    let own = priority(recording, utid, intervals, at);
                    interval.state != State::Blocked && own.is_some_and(|own| own <= least)
                })
            };
            sum(&mut sums, window, step, intervals, is_counted);
        }
        sums
    };
    let sums = recording
        .timeline
        .threads()
        .into_par_iter()
        .fold(|| vec![0; count], add)
        .reduce(
            || vec![0; count],
            |a, b| a.iter().zip(&b).map(|(a, b)| a + b).collect(),
        );
    let length = |at: usize| {
        let from = window.from + at as u64 * step;
        (window.to.min(from.saturating_add(step)) - from).max(1)
    };
    let average = (sums.iter().enumerate()).map(|(at, &ns)| ns as f64 / length(at) as f64);
    Load {
        step_ns: step,
        cpus: recording.timeline.cpu_count(),
        average: average.collect(),
    }
}

/// Adds to each step the time for which a thread was running or runnable in it.
fn sum(
    sums: &mut [u64],
    window: Window,
    step: u64,
    intervals: Intervals<'_>,
    is_counted: impl Fn(&Interval, usize) -> bool,
) {
    for at in intervals.indexes(window.from, window.to) {
        let Some(interval) = intervals.get(at) else {
            break;
        };
        if interval.state == State::Blocked || !is_counted(&interval, at) {
            continue;
        }
        let mut from = interval.start.max(window.from) - window.from;
        let to = interval.end.min(window.to).saturating_sub(window.from);
        while from < to {
            let number = from / step;
            let next = (number + 1).saturating_mul(step).min(to);
            if let Some(sum) = sums.get_mut(number as usize) {
                *sum += next - from;
            }
            from = next;
        }
    }
}

/// The kernel priority of a thread in an interval: the one with which it comes on a CPU next, if it
/// does not block before, or else with which it came on one last. None if it was not seen to come.
pub fn priority(
    recording: &Recording,
    utid: Utid,
    intervals: Intervals<'_>,
    at: usize,
) -> Option<u8> {
    /// So far is looked.
    const FAR: usize = 64;
    let switches = &recording.switches;
    let came = |interval: Interval| match (interval.state, interval.cause) {
        (State::Running, Cause::Switch(row)) if switches.next[row as usize] == utid => {
            Some(switches.next_priority[row as usize])
        }
        _ => None,
    };
    let next = (at..intervals.len())
        .take(FAR)
        .map_while(|at| intervals.get(at))
        .take_while(|interval| interval.state != State::Blocked)
        .find_map(came);
    let before = || {
        let earlier = (0..=at).rev().take(FAR);
        earlier.filter_map(|at| intervals.get(at)).find_map(came)
    };
    next.or_else(before)
}

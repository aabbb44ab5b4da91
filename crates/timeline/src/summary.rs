//! Where a thread's time went, within a window.

use crate::state::{Interval, State};
use crate::timeline::{Intervals, Timeline};
use hangdog_trace::ids::Utid;
use rayon::prelude::*;

/// The time of one thread by state, within a window.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// Time in each state, ns, indexed by `State as usize`.
    pub time: [u64; State::COUNT],
    /// How many times it came on a CPU.
    pub switches: u64,
    /// The longest single interval that it spent off the CPU (blocked, runnable or preempted),
    /// as far as it lies in the window; the first of several that are as long.
    pub longest_wait: Option<Interval>,
}

impl Summary {
    /// Summary of a thread within `[from, to)`.
    pub fn of(intervals: Intervals<'_>, from: u64, to: u64) -> Summary {
        let mut summary = Summary::default();
        let mut before = None;
        let range = intervals.indexes(from, to);
        if let Some(i) = range.start.checked_sub(1) {
            before = intervals.get(i);
        }
        for (whole, interval) in range
            .filter_map(|i| intervals.get(i))
            .zip(intervals.between(from, to))
        {
            summary.time[interval.state as usize] += interval.duration();
            let came = interval.state.is_on_cpu() && before.is_some_and(|b| !b.state.is_on_cpu());
            if came && whole.start >= from {
                summary.switches += 1;
            }
            before = Some(whole);
            let longest = summary.longest_wait.map_or(0, |wait| wait.duration());
            if !interval.state.is_on_cpu() && interval.duration() > longest {
                summary.longest_wait = Some(interval);
            }
        }
        summary
    }

    /// Time in a state, ns.
    pub fn time_in(&self, state: State) -> u64 {
        self.time[state as usize]
    }

    /// Time in all states, ns: the thread's life as far as it lies in the window.
    pub fn total(&self) -> u64 {
        self.time.iter().sum()
    }
}

/// Summaries of all threads that live within `[from, to)`, ascending by thread.
pub fn summaries(timeline: &Timeline, from: u64, to: u64) -> Vec<(Utid, Summary)> {
    timeline
        .threads()
        .into_par_iter()
        .map(|utid| (utid, Summary::of(timeline.intervals(utid), from, to)))
        .filter(|(_, summary)| summary.total() > 0)
        .collect()
}

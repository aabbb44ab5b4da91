//! Weighted stacks: where the time of a selection went.
//!
//! A fold has a row for each thread, thing it did and pair of stacks. Stacks are ids there and get
//! names only when they are shown ([`crate::stack`]), so that a fold of millions of events is
//! small. There are three views:
//!
//! - on-CPU: samples, by what was running;
//! - off-CPU: blocked time, by the stack at which the thread blocked; and apart from it the time
//!   in which it had been woken, or was preempted, and waited for a CPU;
//! - wakes: blocked time by the stack at which the thread blocked and by who ended that.
//!
//! The rows are all there is: off-CPU rows add up to what the timeline says, and on-CPU rows to
//! the samples.

use std::collections::HashMap;
use std::hash::Hash;

use hangdog_timeline::{Cause, Intervals, State};
use hangdog_trace::ids::{NO_STACK, StackId, Utid};
use hangdog_trace::words::Context;
use rayon::prelude::*;

use crate::select::Selection;
use crate::source::Source;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// What ran, by samples.
    OnCpu,
    /// Where threads blocked, and for how long.
    OffCpu,
    /// Where threads blocked, and who ended it.
    Wakes,
}

impl View {
    /// The view's name.
    pub fn text(self) -> &'static str {
        match self {
            View::OnCpu => "on-CPU",
            View::OffCpu => "off-CPU",
            View::Wakes => "wakes",
        }
    }
}

/// A pair of stacks: the user's part and the kernel's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// User stack, [`NO_STACK`] for none.
    pub user: StackId,
    /// Kernel stack, [`NO_STACK`] for none.
    pub kernel: StackId,
}

impl Place {
    /// Whether nothing is known of it.
    pub fn is_none(self) -> bool {
        self == Place::default()
    }
}

/// Who ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Waker {
    /// A thread, at that place.
    Thread(Utid, Place),
    /// An interrupt: words::Context, its number, and where in the kernel that was.
    Interrupt(u8, u16, StackId),
    /// Nobody: the thread waited to the end of the trace, or of its life.
    Nobody,
    /// The trace does not tell.
    Unknown,
}

/// What a thread did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Doing {
    /// It ran.
    Running,
    /// It waited for something other than a CPU.
    Blocked,
    /// It was blocked until the waker came.
    BlockedUntil(Waker),
    /// It waited for a CPU.
    WaitingForCpu,
}

/// What a row counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// The thread.
    pub thread: Utid,
    /// What it did.
    pub doing: Doing,
    /// Where.
    pub place: Place,
    /// Whether the trace did not see it begin, because that lies before it or was lost: then
    /// nothing is known of the place.
    pub is_unseen: bool,
}

/// How much of it there was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weight {
    /// Time, ns; 0 where samples do not say how much time they stand for.
    pub ns: u64,
    /// Samples, or waits that have a part in the selection.
    pub count: u64,
}

impl Weight {
    /// Adds another.
    pub fn add(&mut self, other: Weight) {
        self.ns = self.ns.saturating_add(other.ns);
        self.count += other.count;
    }
}

/// Weighted stacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fold {
    /// What was counted.
    pub view: View,
    /// The rows, ascending by key, each key once.
    pub rows: Vec<(Key, Weight)>,
}

impl Fold {
    /// Folds what is selected.
    pub fn new(source: &Source<'_>, selection: &Selection, view: View) -> Fold {
        let mut rows = match view {
            View::OnCpu => samples(source, selection),
            View::OffCpu | View::Wakes => waits(source, selection, view),
        };
        rows.sort_unstable_by_key(|&(key, _)| key);
        Fold { view, rows }
    }

    /// All rows that fit, together.
    pub fn total(&self, fits: impl Fn(&Key) -> bool) -> Weight {
        let mut total = Weight::default();
        for (key, weight) in &self.rows {
            if fits(key) {
                total.add(*weight);
            }
        }
        total
    }
}

fn samples(source: &Source<'_>, selection: &Selection) -> Vec<(Key, Weight)> {
    let samples = source.samples;
    let weight = Weight {
        ns: source.sampling_period().unwrap_or(0),
        count: 1,
    };
    let first = samples.ts.partition_point(|&ts| ts < selection.from);
    let end = samples.ts.partition_point(|&ts| ts < selection.to);
    let mut sums = Sums::default();
    for row in first..end.max(first) {
        let thread = samples.thread[row];
        if selection.has_thread(thread) {
            let place = Place {
                user: samples.user_stack[row],
                kernel: samples.kernel_stack[row],
            };
            let doing = Doing::Running;
            sums.add(
                Key {
                    thread,
                    doing,
                    place,
                    is_unseen: false,
                },
                weight,
            );
        }
    }
    sums.0.into_iter().collect()
}

fn waits(source: &Source<'_>, selection: &Selection, view: View) -> Vec<(Key, Weight)> {
    let threads: Vec<Utid> = source.timeline.threads().collect();
    threads
        .into_par_iter()
        .filter(|&thread| selection.has_thread(thread))
        .flat_map_iter(|thread| thread_waits(source, selection, view, thread))
        .collect()
}

fn thread_waits(
    source: &Source<'_>,
    selection: &Selection,
    view: View,
    thread: Utid,
) -> HashMap<Key, Weight> {
    let intervals = source.timeline.intervals(thread);
    let (from, to) = (selection.from, selection.to);
    let mut sums = Sums::default();
    for (i, part) in intervals.indexes(from, to).zip(intervals.between(from, to)) {
        let doing = match (part.state, view) {
            (State::Blocked, View::Wakes) => Doing::BlockedUntil(waker(source, intervals, i)),
            (State::Blocked, _) => Doing::Blocked,
            (State::Runnable | State::Preempted, View::OffCpu) => Doing::WaitingForCpu,
            _ => continue,
        };
        let place = left_at(source, intervals, i);
        let weight = Weight {
            ns: part.duration(),
            count: 1,
        };
        sums.add(
            Key {
                thread,
                doing,
                place,
                is_unseen: part.cause == Cause::Unknown,
            },
            weight,
        );
    }
    sums.0
}

/// Where a thread had left its CPU that is off it in interval `i`.
pub(crate) fn left_at(source: &Source<'_>, intervals: Intervals<'_>, i: usize) -> Place {
    let at = |i| {
        intervals
            .get(i)
            .map(|interval| (interval.state, interval.cause))
    };
    let row = match (at(i), i.checked_sub(1).and_then(at)) {
        (Some((_, Cause::Switch(row))), _) => row as usize,
        (Some((_, Cause::Wake(_))), Some((State::Blocked, Cause::Switch(row)))) => row as usize,
        _ => return Place::default(),
    };
    let switches = source.switches;
    Place {
        user: switches.user_stack.get(row).copied().unwrap_or(NO_STACK),
        kernel: switches.kernel_stack.get(row).copied().unwrap_or(NO_STACK),
    }
}

/// Who ended the wait in interval `i`.
pub(crate) fn waker(source: &Source<'_>, intervals: Intervals<'_>, i: usize) -> Waker {
    if i + 1 >= intervals.len() {
        return Waker::Nobody;
    }
    let Some(row) = waker_row(intervals, i) else {
        return Waker::Unknown;
    };
    let (row, wakes) = (row as usize, source.wakes);
    let kernel = wakes.kernel_stack[row];
    match Context::from(wakes.context[row]) {
        Context::Unknown => Waker::Unknown,
        Context::Task => Waker::Thread(
            wakes.waker[row],
            Place {
                user: wakes.user_stack[row],
                kernel,
            },
        ),
        context => Waker::Interrupt(context.into(), wakes.vector[row], kernel),
    }
}

/// The row of the wake that ended the wait in interval `i`.
pub(crate) fn waker_row(intervals: Intervals<'_>, i: usize) -> Option<u32> {
    match intervals.get(i + 1)?.cause {
        Cause::Wake(row) => Some(row),
        _ => None,
    }
}

/// Weights by key.
#[derive(Default)]
struct Sums(HashMap<Key, Weight>);

impl Sums {
    fn add(&mut self, key: Key, weight: Weight) {
        self.0.entry(key).or_default().add(weight);
    }
}

//! What is exported.

use hangdog_timeline::Timeline;
use hangdog_trace::ids::Utid;
use hangdog_trace::tables::{Interrupts, Samples, Switches, Wakes};
use hangdog_trace::{Calls, Meta, StackTable, Threads};

/// A trace in memory, with what is derived from it.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// The recording as a whole.
    pub meta: &'a Meta,
    /// CPUs going from one thread to another.
    pub switches: &'a Switches,
    /// Threads made runnable.
    pub wakes: &'a Wakes,
    /// Interrupts and softirqs.
    pub interrupts: &'a Interrupts,
    /// What CPUs were running when sampled.
    pub samples: &'a Samples,
    /// Who the threads are.
    pub threads: &'a Threads,
    /// What each thread did when.
    pub timeline: &'a Timeline,
    /// What the stacks say.
    pub stacks: &'a StackTable,
    /// What system calls are named.
    pub calls: &'a Calls,
}

impl Source<'_> {
    /// Time between two samples of a CPU, ns; none where the trace does not tell.
    pub fn sampling_period(&self) -> Option<u64> {
        1_000_000_000u64.checked_div(self.meta.options.sample_hz.into())
    }
}

/// Something that took time, to be shown beside the threads: a problem, say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// What it is, in a sentence.
    pub name: String,
    /// Whose time it was.
    pub thread: Utid,
    /// When it began, ns since the trace's start.
    pub start: u64,
    /// When it ended, ns since the trace's start.
    pub end: u64,
}

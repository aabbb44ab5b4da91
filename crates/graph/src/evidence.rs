//! The tables of a trace that causes are read from, and the few ways in which they are looked at.

use hangdog_timeline::Timeline;
use hangdog_trace::Threads;
use hangdog_trace::calls::{Call, Calls};
use hangdog_trace::ids::{FrameId, NO_STACK, StackId, Utid};
use hangdog_trace::stacks::StackTable;
use hangdog_trace::tables::{Samples, Switches, Transfers, Wakes};

/// What is known.
pub struct Evidence<'a> {
    /// Who left a CPU for whom, and why.
    pub switches: &'a Switches,
    /// Who made whom runnable.
    pub wakes: &'a Wakes,
    /// What CPUs were seen running.
    pub samples: &'a Samples,
    /// What bytes went through sockets.
    pub transfers: &'a Transfers,
    /// Names and kinship.
    pub threads: &'a Threads,
    /// What each thread did when.
    pub timeline: &'a Timeline,
    /// Stacks with their names.
    pub stacks: &'a StackTable,
    /// System calls of the machine that was recorded.
    pub calls: Calls,
}

/// The rows whose time lies in `[from, to)`; `ts` ascends.
pub(crate) fn rows_between(ts: &[u64], from: u64, to: u64) -> std::ops::Range<usize> {
    let first = ts.partition_point(|&t| t < from);
    first..first + ts[first..].partition_point(|&t| t < to)
}

/// Where a thread waits: its call and the frames of its user stack, innermost first. Two stacks of
/// the same frames can have different ids: which code was known when they were taken differed.
pub type Site<'a> = (i16, &'a [FrameId]);

impl Evidence<'_> {
    /// Where the thread waits that leaves its CPU by a row of `switches`.
    pub fn site(&self, row: usize) -> Site<'_> {
        let stack = self.switches.user_stack[row];
        (self.switches.call[row], self.stacks.frame_ids(stack))
    }

    /// A thread as reports name it: its name, and its process's in front where that differs.
    pub fn name(&self, thread: Utid) -> String {
        let known = self.threads.thread(thread);
        let process = &self.threads.process(known.upid).name;
        match known.is_kernel() || process == known.name() {
            true => known.name().to_owned(),
            false => format!("{process}/{}", known.name()),
        }
    }

    /// Whether any frame of the stack has one of these names.
    pub fn has_function(&self, stack: StackId, names: &[&str]) -> bool {
        stack != NO_STACK
            && self.stacks.stack(stack).any(|frame| {
                frame
                    .function
                    .is_some_and(|function| names.contains(&function))
            })
    }

    /// Whether the innermost few frames of the stack have a name that contains one of these.
    pub fn is_within(&self, stack: StackId, parts: &[&str]) -> bool {
        stack != NO_STACK
            && self.stacks.stack(stack).take(4).any(|frame| {
                frame
                    .function
                    .is_some_and(|function| parts.iter().any(|&part| function.contains(part)))
            })
    }

    /// The system call that a row of `switches` blocked in.
    pub fn call(&self, number: i16) -> Call {
        self.calls.kind(number)
    }

    /// Rows of `wakes` in `[from, to)` that `waker` made from its own context.
    pub fn wakes_by(&self, waker: Utid, from: u64, to: u64) -> impl Iterator<Item = usize> + '_ {
        rows_between(&self.wakes.ts, from, to).filter(move |&row| {
            self.wakes.waker[row] == waker
                && hangdog_trace::words::Context::from(self.wakes.context[row])
                    == hangdog_trace::words::Context::Task
        })
    }
}

//! The tables of a trace that causes are read from.

use hangdog_timeline::Timeline;
use hangdog_trace::Threads;
use hangdog_trace::calls::Calls;
use hangdog_trace::sockets::SocketTable;
use hangdog_trace::stacks::StackTable;
use hangdog_trace::tables::{
    FlagAccesses, Flags, FoundWaitings, Goroutines, Handoffs, Limits, Samples, Switches, Transfers,
    Wakes,
};

/// What was read of a trace.
pub struct Tables<'a> {
    /// Who left a CPU for whom, and why.
    pub switches: &'a Switches,
    /// Who made whom runnable.
    pub wakes: &'a Wakes,
    /// What CPUs were seen running.
    pub samples: &'a Samples,
    /// What bytes went through sockets.
    pub transfers: &'a Transfers,
    /// What one context handed to another.
    pub handoffs: &'a Handoffs,
    /// Flags in memory that were watched.
    pub flags: &'a Flags,
    /// Who used them.
    pub flag_accesses: &'a FlagAccesses,
    /// Limits of processes' control groups.
    pub limits: &'a Limits,
    /// Who waited already when the recording began.
    pub found_waiting: &'a FoundWaitings,
    /// Goroutines that waited at a look.
    pub goroutines: &'a Goroutines,
    /// Which sockets belong together, and to whom.
    pub sockets: &'a SocketTable,
    /// Names and kinship.
    pub threads: &'a Threads,
    /// What each thread did when.
    pub timeline: &'a Timeline,
    /// Stacks with their names.
    pub stacks: &'a StackTable,
    /// System calls of the machine that was recorded.
    pub calls: Calls,
    /// The pid of the recorder: nobody is kept waiting by that, though its maker awaits its end.
    pub recorder: Option<u32>,
}

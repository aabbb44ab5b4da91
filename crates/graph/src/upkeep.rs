//! Wakes by which the kernel keeps itself going, and nothing that a program asked for.
//!
//! They are told by whom they wake (threads that do nothing else), or by the waker's kernel stack
//! where the scheduler itself woke a spare worker.

use hangdog_trace::ids::{IDLE, StackId};

use crate::tables::Tables;

/// How the kernel's threads of upkeep are named, up to the number of their CPU.
const THREADS: [&str; 12] = [
    "swapper",
    "rcu_",
    "rcuc/",
    "rcuog/",
    "rcuop/",
    "rcub/",
    "migration/",
    "ksoftirqd/",
    "cpuhp/",
    "idle_inject/",
    "watchdog/",
    "kcompactd",
];

/// Functions of the kernel in which it wakes a worker because another one sleeps.
const FUNCTIONS: [&str; 2] = ["wq_worker_sleeping", "wq_worker_running"];

/// Which wakes are upkeep.
pub(crate) struct Upkeep {
    /// By utid.
    threads: Vec<bool>,
    /// By the stack's row.
    stacks: Vec<bool>,
}

impl Upkeep {
    pub(crate) fn new(tables: &Tables<'_>) -> Upkeep {
        let mut threads = vec![false; tables.timeline.threads().end as usize];
        for thread in tables.threads.iter().filter(|thread| thread.is_kernel()) {
            let name = thread.name();
            if let Some(is_upkeep) = threads.get_mut(thread.utid as usize) {
                *is_upkeep = thread.utid == IDLE || THREADS.iter().any(|own| name.starts_with(own));
            }
        }
        let shows = |stack: StackId| {
            let mut functions = tables
                .stacks
                .stack(stack)
                .filter_map(|frame| frame.function);
            functions.any(|function| FUNCTIONS.contains(&function))
        };
        Upkeep {
            threads,
            stacks: tables.stacks.ids().map(shows).collect(),
        }
    }

    /// Whether the row of `wakes` is upkeep.
    pub(crate) fn is_wake(&self, tables: &Tables<'_>, row: usize) -> bool {
        let wakee = tables.wakes.wakee[row] as usize;
        let stack = || tables.stacks.row(tables.wakes.kernel_stack[row]);
        self.threads.get(wakee).copied().unwrap_or_default()
            || stack().is_some_and(|stack| self.stacks[stack])
    }
}

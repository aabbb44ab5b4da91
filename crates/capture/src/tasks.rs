//! What waits in programs without a thread of its own: goroutines of Go, and tasks of Python's asyncio.
//!
//! Both are looked at as a recording begins and ends, as a snapshot is taken, and for a look without a recording; each that waits
//! becomes an event with a stack.

use std::ops::Range;

use hangdog_symbols::memory::ProcessMemory;
use hangdog_trace::ids::NO_CPU;
use hangdog_trace::words::StackEnd;

use crate::chain::Numbers;
use crate::event::{Event, Happening};
use crate::goroutines;
use crate::language::Runtime;
use crate::python;
use crate::records::{Definition, StackCopy, What};
use crate::waiting::{Stacks, numbering, stack_of};

/// The most bytes of stacks that are copied of all processes at one look.
const LOOK_BYTES: usize = 64 << 20;
/// The most tasks of all processes at one look.
const LOOK_MOST: usize = 10_000;

/// What one look has found in all processes: an event for each that waits, and their stacks with what these need.
#[derive(Default)]
pub(crate) struct Found {
    pub events: Vec<Event>,
    pub stacks: Vec<Definition>,
    /// Bytes of the stacks.
    copied: usize,
}

impl Found {
    /// Adds what waits now in a process, as events at `ts`: nothing if its language has no such tasks, or if enough were found
    /// before.
    pub(crate) fn add(&mut self, stacks: &mut impl Stacks, pid: u32, ts: u64) {
        if self.copied >= LOOK_BYTES || self.events.len() >= LOOK_MOST {
            return;
        }
        if let Some(list) = stacks.goroutines(pid) {
            self.add_goroutines(stacks, (pid, list), ts);
        } else if let Some(Runtime::Python(runtime)) = stacks.interpreter(pid) {
            self.add_tasks(stacks, (pid, runtime), ts);
        }
    }

    fn add_goroutines(&mut self, stacks: &mut impl Stacks, (pid, list): (u32, u64), ts: u64) {
        let copy = |addresses: Range<u64>| stack_of(pid, addresses);
        for parked in goroutines::parked(&ProcessMemory(pid), list, copy) {
            let goroutines::Parked {
                number,
                registers,
                stack,
            } = parked;
            self.copied += stack.len();
            let id = stacks.next_stack();
            self.add_event((pid, ts), (number, 0), id);
            let copy = StackCopy {
                id,
                pid,
                frames: vec![registers.ip],
                sp: registers.sp,
                fp: registers.fp,
                exact: true,
                link: 0,
                tid: pid,
                thread_pointer: 0,
                top: registers.sp,
                bytes: stack,
                chain: Vec::new(),
            };
            let what = What::StackCopy(copy);
            self.stacks.push(Definition { ts, what });
        }
    }

    fn add_tasks(
        &mut self,
        stacks: &mut impl Stacks,
        (pid, runtime): (u32, python::frames::Runtime),
        ts: u64,
    ) {
        let memory = ProcessMemory(pid);
        let define = numbering(stacks, (pid, ts), &mut self.stacks);
        let tasks = python::tasks::parked(&memory, runtime, &mut Numbers::new(), define);
        for task in tasks {
            let id = stacks.next_stack();
            self.add_event((pid, ts), (task.address, task.awaited), id);
            let what = What::Stack {
                id,
                pid,
                frames: task.words,
                end: StackEnd::Root,
            };
            self.stacks.push(Definition { ts, what });
        }
    }

    fn add_event(&mut self, (pid, ts): (u32, u64), (number, awaited): (u64, u64), user_stack: u32) {
        self.events.push(Event {
            ts,
            tid: pid,
            cpu: NO_CPU,
            what: Happening::Goroutine {
                number,
                awaited,
                user_stack,
            },
        });
    }
}

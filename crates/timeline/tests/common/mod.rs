//! Small tables for tests: rows with the columns that the timeline looks at.
#![allow(dead_code, reason = "each test file uses its own part")]

pub mod simulator;

use hangdog_timeline::{Cause, Interval, State, Timeline};
use hangdog_trace::Threads;
use hangdog_trace::ids::NONE;
use hangdog_trace::tables::*;
use hangdog_trace::words::{Left, LifecycleKind};

/// The tables of a trace as far as the timeline needs them.
#[derive(Clone, Debug, Default)]
pub struct Events {
    pub switches: Switches,
    pub wakes: Wakes,
    pub interrupts: Interrupts,
    pub lifecycle: Lifecycle,
    pub end: u64,
}

impl Events {
    pub fn until(end: u64) -> Events {
        Events {
            end,
            ..Events::default()
        }
    }

    /// Adds a switch and gives its row.
    pub fn switch(&mut self, ts: u64, cpu: u16, prev: u32, next: u32, left: impl Into<u8>) -> u32 {
        self.switches.push(Switch {
            ts,
            cpu,
            prev,
            next,
            left: left.into(),
            next_priority: 120,
            call: -1,
            object: 0,
            arg: 0,
            holder: NONE,
            user_stack: 0,
            kernel_stack: 0,
        });
        self.switches.len() as u32 - 1
    }

    /// Adds a wake and gives its row.
    pub fn wake(&mut self, ts: u64, waker: u32, wakee: u32) -> u32 {
        self.wakes.push(Wake {
            ts,
            cpu: 0,
            waker,
            wakee,
            context: 0,
            vector: 0,
            new: false,
            call: -1,
            object: 0,
            arg: 0,
            user_stack: 0,
            kernel_stack: 0,
        });
        self.wakes.len() as u32 - 1
    }

    /// Adds an interrupt and gives its row.
    pub fn interrupt(&mut self, ts: u64, duration: u64, thread: u32) -> u32 {
        self.interrupts.push(Interrupt {
            ts,
            duration,
            cpu: 0,
            kind: 0,
            vector: 1,
            thread,
        });
        self.interrupts.len() as u32 - 1
    }

    /// Adds a step of a thread's life.
    pub fn step(&mut self, ts: u64, kind: LifecycleKind, thread: u32) {
        self.lifecycle.push(LifecycleEvent {
            ts,
            kind: kind.into(),
            thread,
            process: 1,
            tid: 100 + thread,
            pid: 100,
            parent: NONE,
            name: format!("t{thread}"),
            detail: String::new(),
        });
    }

    pub fn timeline(&self) -> Timeline {
        Timeline::build(
            &self.switches,
            &self.wakes,
            &self.interrupts,
            &Threads::new(&self.lifecycle),
            self.end,
        )
    }

    /// The intervals of one thread.
    pub fn intervals(&self, thread: u32) -> Vec<Interval> {
        self.timeline().intervals(thread).iter().collect()
    }
}

/// Shorthand for an expected interval.
pub fn interval(start: u64, end: u64, state: State, cause: Cause) -> Interval {
    Interval {
        start,
        end,
        state,
        cause,
    }
}

/// How threads leave a CPU, by what the state then is.
pub const BLOCKING: [Left; 4] = [
    Left::Sleeping,
    Left::Uninterruptible,
    Left::Stopped,
    Left::Idle,
];

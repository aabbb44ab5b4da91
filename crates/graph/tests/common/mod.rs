//! A trace in text form with all that evidence is made of.
#![allow(dead_code, reason = "each test file uses its own part")]

use hangdog_graph::ended::ended_by;
use hangdog_graph::{Belief, Edge, Evidence, InVain, Tables, Wait, beliefs};
use hangdog_timeline::{Cause, State, Timeline};
use hangdog_trace::Threads;
use hangdog_trace::calls::Calls;
use hangdog_trace::ids::Utid;
use hangdog_trace::sockets::SocketTable;
use hangdog_trace::stacks::StackTable;
use hangdog_trace::text::{self, TextTrace};

/// What was read of a trace: an [`Evidence`] borrows from it.
pub struct Recording {
    pub trace: TextTrace,
    pub threads: Threads,
    pub timeline: Timeline,
    pub stacks: StackTable,
    pub sockets: SocketTable,
    /// The pid of who recorded.
    pub recorder: Option<u32>,
}

impl Recording {
    /// Of a text as `hangdog_trace::text` describes it.
    pub fn of(text: &str) -> Recording {
        Recording::new(text::parse(text).expect("a trace in text form"))
    }

    pub fn new(trace: TextTrace) -> Recording {
        let tables = &trace.tables;
        let threads = Threads::new(&tables.lifecycle);
        let timeline = Timeline::build(
            &tables.switches,
            &tables.wakes,
            &tables.interrupts,
            &threads,
            trace.end,
        );
        let stacks = StackTable::new(
            tables.stacks.clone(),
            tables.frames.clone(),
            tables.modules.clone(),
            tables.symbols.clone(),
        );
        Recording {
            sockets: SocketTable::new(tables.sockets.clone(), &tables.descriptors),
            recorder: None,
            trace,
            threads,
            timeline,
            stacks,
        }
    }

    pub fn evidence(&self) -> Evidence<'_> {
        Evidence::new(Tables {
            switches: &self.trace.tables.switches,
            wakes: &self.trace.tables.wakes,
            samples: &self.trace.tables.samples,
            transfers: &self.trace.tables.transfers,
            handoffs: &self.trace.tables.handoffs,
            flags: &self.trace.tables.flags,
            flag_accesses: &self.trace.tables.flag_accesses,
            found_waiting: &self.trace.tables.found_waiting,
            goroutines: &self.trace.tables.goroutines,
            limits: &self.trace.tables.limits,
            sockets: &self.sockets,
            threads: &self.threads,
            timeline: &self.timeline,
            stacks: &self.stacks,
            calls: Calls::new("x86_64"),
            recorder: self.recorder,
        })
    }

    /// The thread that the text calls `name`.
    pub fn t(&self, name: &str) -> Utid {
        self.trace.t(name)
    }

    /// Every wait of a thread, in order, each with the row of the wake that ended it.
    pub fn waits(&self, thread: Utid) -> Vec<(Wait, Option<usize>)> {
        let evidence = self.evidence();
        let intervals: Vec<_> = self.timeline.intervals(thread).iter().collect();
        intervals
            .iter()
            .enumerate()
            .filter(|(_, interval)| interval.state == State::Blocked)
            .map(|(at, interval)| {
                let wake = match intervals.get(at + 1).map(|next| next.cause) {
                    Some(Cause::Wake(row)) => Some(row as usize),
                    _ => None,
                };
                (Wait::new(&evidence, thread, interval), wake)
            })
            .collect()
    }

    /// What ended the last wait of the thread that the text calls `name`.
    pub fn last_edge(&self, name: &str) -> Edge {
        let waits = self.waits(self.t(name));
        let (wait, wake) = waits.last().expect("a wait");
        ended_by(&self.evidence(), wait, *wake)
    }

    /// What may have ended the last wait of the thread that the text calls `name`.
    pub fn last_beliefs(&self, name: &str) -> Vec<Belief> {
        let waits = self.waits(self.t(name));
        let (wait, wake) = waits.last().expect("a wait");
        beliefs(&self.evidence(), wait, *wake, InVain::default(), &[])
    }
}

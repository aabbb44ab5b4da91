//! One thread's events become its states: a small state machine.
//!
//! The kernel's rules, and where they are not the obvious ones:
//!
//! - Before the first event nothing is known, but the first switch tells: a thread that leaves a
//!   CPU was running; one that comes on a CPU was runnable, or blocked if it is woken before.
//! - A thread that was found off its CPU, and has no event before that, was so from the start. One
//!   that has is where its events say.
//! - A wake of a thread that runs or is runnable already does nothing, with one exception.
//!   `sched_waking` is stamped on the waker's CPU a little before the wakee's switch-out is
//!   stamped on its own: the thread then leaves as sleeping and comes back with no further wake.
//!   So the last wake since the thread came on the CPU is kept, and used if none follows.
//! - Events can be lost. Then a state lasts until the next event that says otherwise; what lies
//!   between is not invented. But a thread does not go on running while its CPU is seen to leave
//!   another thread: there the running ends, and why is not known; and who leaves a CPU that it
//!   was not seen to come on, though it wanted one, had it since it wanted it or, if that is later,
//!   since the switch before ([`Unseen`]).
//! - An interrupt splits a running interval. Where interrupts nest or overlap, the outer (the
//!   earlier, and of two that start together the longer) has the time.

use crate::events::{Event, Lists};
use crate::state::{Cause, State};
use hangdog_trace::ids::NO_CPU;
use hangdog_trace::tables::{Interrupts, Switches, Wakes};
use hangdog_trace::words::Left;
use std::collections::HashMap;

/// The columns that a lane writes to: room for all intervals that it can have.
pub(crate) struct Room<'a> {
    pub(crate) starts: &'a mut [u64],
    pub(crate) states: &'a mut [State],
    pub(crate) causes: &'a mut [u32],
}

/// The room that a thread with so many events and interrupts needs: an event begins at most one
/// interval, or three where those before were lost, and an interrupt splits at most two off.
pub(crate) fn room_for(events: usize, interrupts: usize, is_lossy: bool) -> usize {
    let each = if is_lossy { 3 } else { 1 };
    1 + each * events + 2 * interrupts
}

/// The stays on a CPU of which the end or the beginning was lost: where a CPU leaves another
/// thread than the one that came last.
#[derive(Debug, Default)]
pub(crate) struct Unseen {
    /// By the row of `switches` that began a stay, the time of the CPU's next switch.
    exits: HashMap<u32, u64>,
    /// By the row that ended a stay, the time of the CPU's switch before.
    entries: HashMap<u32, u64>,
    /// A bit for each row that is in one of them: most are in none.
    rows: Vec<u64>,
}

impl Unseen {
    pub(crate) fn new(switches: &Switches, cpus: &Lists) -> Unseen {
        let mut unseen = Unseen {
            rows: vec![0; switches.len().div_ceil(64)],
            ..Unseen::default()
        };
        let pairs = (0..cpus.keys()).flat_map(|cpu| cpus.get(cpu).windows(2));
        for pair in pairs {
            let (before, after) = (pair[0] as usize, pair[1] as usize);
            if switches.next[before] != switches.prev[after] {
                unseen.exits.insert(pair[0], switches.ts[after]);
                unseen.entries.insert(pair[1], switches.ts[before]);
                for row in [before, after] {
                    unseen.rows[row / 64] |= 1 << (row % 64);
                }
            }
        }
        unseen
    }

    fn has(&self, row: u32) -> bool {
        let bits = self.rows.get(row as usize / 64).copied().unwrap_or(0);
        bits >> (row % 64) & 1 == 1
    }

    /// How many stays.
    pub(crate) fn len(&self) -> usize {
        self.exits.len()
    }
}

/// The tables that rows refer to, and what is known to be missing from them.
#[derive(Clone, Copy)]
pub(crate) struct Tables<'a> {
    pub(crate) unseen: &'a Unseen,
    pub(crate) switches: &'a Switches,
    pub(crate) wakes: &'a Wakes,
    pub(crate) interrupts: &'a Interrupts,
}

impl Tables<'_> {
    fn time(&self, event: Event) -> u64 {
        match event {
            Event::Wake(row) => self.wakes.ts[row as usize],
            Event::Out(row) | Event::In(row) => self.switches.ts[row as usize],
        }
    }

    fn lost_exit(&self, row: u32) -> Option<u64> {
        match self.unseen.has(row) {
            true => self.unseen.exits.get(&row).copied(),
            false => None,
        }
    }

    fn lost_entry(&self, row: u32) -> Option<u64> {
        match self.unseen.has(row) {
            true => self.unseen.entries.get(&row).copied(),
            false => None,
        }
    }

    fn left(&self, row: u32) -> Left {
        Left::from(self.switches.left[row as usize])
    }

    /// The state of the thread that left its CPU there.
    fn state_after(&self, row: u32) -> State {
        match self.left(row) {
            Left::Preempted | Left::Throttled => State::Preempted,
            Left::Yielded => State::Runnable,
            Left::Sleeping
            | Left::Uninterruptible
            | Left::Stopped
            | Left::Dead
            | Left::Idle
            | Left::Unknown => State::Blocked,
        }
    }

    /// Whether the thread was found off its CPU, and not seen to leave it.
    fn was_found(&self, row: u32) -> bool {
        self.switches.cpu[row as usize] == NO_CPU
    }
}

/// When a thread began and ended, and how many intervals were written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Life {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) intervals: usize,
}

/// Writes the intervals of a thread.
///
/// `known` is the life as far as it is known without the events; an event before its start moves
/// the start, an event after its end moves the end, and a last switch as dead is the end.
/// `interrupts` are rows in order of their start, of those that start together the longest first.
pub(crate) fn build(
    tables: Tables<'_>,
    events: &[u32],
    interrupts: &[u32],
    known: (u64, u64),
    room: Room<'_>,
) -> Life {
    let (events, died) = until_death(tables, events);
    let time = |packed: &u32| tables.time(Event::unpack(*packed));
    let start = events.first().map_or(known.0, |e| time(e).min(known.0));
    let end = match (died, events.last()) {
        (Some(died), _) => died,
        (None, Some(last)) => known.1.max(time(last)),
        (None, None) => known.1,
    }
    .max(start);

    let (state, cause) = first_state(tables, events, !interrupts.is_empty());
    let mut lane = Lane {
        tables,
        interrupts,
        room,
        len: 0,
        end,
        start,
        state,
        cause,
        kept: None,
        lost_exit: None,
    };
    for &packed in events {
        lane.take(Event::unpack(packed));
    }
    lane.leave_unseen(end);
    lane.close(end);
    Life {
        start,
        end,
        intervals: lane.len,
    }
}

/// The events up to a last switch as dead, and when that was. What follows it (a wake that came
/// too late) is nobody's.
fn until_death<'a>(tables: Tables<'_>, events: &'a [u32]) -> (&'a [u32], Option<u64>) {
    let last_switch = events
        .iter()
        .rposition(|&e| !matches!(Event::unpack(e), Event::Wake(_)));
    if let Some(i) = last_switch
        && let event @ Event::Out(row) = Event::unpack(events[i])
        && tables.left(row) == Left::Dead
    {
        return (&events[..=i], Some(tables.time(event)));
    }
    (events, None)
}

/// The state before the first event, and its cause.
fn first_state(tables: Tables<'_>, events: &[u32], interrupted: bool) -> (State, Cause) {
    let first = events.first().map(|&event| Event::unpack(event));
    if let Some(Event::Out(row)) = first
        && tables.was_found(row)
    {
        return (tables.state_after(row), Cause::Switch(row));
    }
    let seen = |&event: &u32| match Event::unpack(event) {
        Event::Wake(_) => false,
        Event::Out(row) => !tables.was_found(row),
        Event::In(_) => true,
    };
    let first_switch = events.iter().position(seen);
    let state = match first_switch.map(|i| (i, Event::unpack(events[i]))) {
        Some((_, Event::Out(_))) => State::Running,
        Some((0, _)) => State::Runnable,
        Some(_) => State::Blocked,
        // Never switched: an interrupt that found it on a CPU says that it never left it.
        None if interrupted => State::Running,
        None => State::Blocked,
    };
    (state, Cause::Unknown)
}

struct Lane<'a> {
    tables: Tables<'a>,
    /// Those not yet passed.
    interrupts: &'a [u32],
    room: Room<'a>,
    len: usize,
    /// End of the thread's life.
    end: u64,
    /// The interval that is not yet written, because its end is not known.
    start: u64,
    state: State,
    cause: Cause,
    /// The last wake since the thread came on the CPU.
    kept: Option<u32>,
    /// When it cannot be on its CPU any more, though no event says that it left.
    lost_exit: Option<u64>,
}

impl Lane<'_> {
    fn take(&mut self, event: Event) {
        let ts = self.tables.time(event);
        self.leave_unseen(ts);
        match event {
            Event::Wake(row) => match self.state {
                State::Blocked => self.enter(ts, State::Runnable, Cause::Wake(row)),
                State::Running => self.kept = Some(row),
                State::Runnable | State::Preempted | State::Interrupted => {}
            },
            Event::Out(row) if self.tables.was_found(row) => {}
            Event::Out(row) => {
                if self.state != State::Running {
                    // It ran in between: a wake from before that is spent.
                    self.kept = None;
                }
                if let (true, Some(entry)) = (self.state.wants_cpu(), self.tables.lost_entry(row)) {
                    self.enter(entry.max(self.start), State::Running, Cause::Unknown);
                }
                self.enter(ts, self.tables.state_after(row), Cause::Switch(row));
                self.lost_exit = None;
            }
            Event::In(row) => {
                if self.state == State::Blocked
                    && let Some(wake) = self.kept
                {
                    self.state = State::Runnable;
                    self.cause = Cause::Wake(wake);
                }
                self.kept = None;
                self.enter(ts, State::Running, Cause::Switch(row));
                self.lost_exit = self.tables.lost_exit(row);
            }
        }
    }

    /// Ends a stay on a CPU whose end was lost and lies before `ts`.
    fn leave_unseen(&mut self, ts: u64) {
        if let Some(exit) = self.lost_exit.take_if(|exit| *exit < ts)
            && self.state == State::Running
        {
            self.kept = None;
            self.enter(exit, State::Blocked, Cause::Unknown);
        }
    }

    fn enter(&mut self, ts: u64, state: State, cause: Cause) {
        // Unsorted events only can lie outside.
        let ts = ts.clamp(self.start, self.end);
        self.close(ts);
        (self.start, self.state, self.cause) = (ts, state, cause);
    }

    /// Writes the interval that ends at `end`, unless it is empty.
    fn close(&mut self, end: u64) {
        if self.state == State::Running {
            self.close_running(end);
        } else if self.start < end {
            self.write(self.start, self.state, self.cause);
        }
    }

    fn close_running(&mut self, end: u64) {
        let mut at = self.start;
        while let Some((&row, rest)) = self.interrupts.split_first() {
            let start = self.tables.interrupts.ts[row as usize];
            let stop = start.saturating_add(self.tables.interrupts.duration[row as usize]);
            if start >= end {
                break;
            }
            let (from, to) = (start.max(at), stop.min(end));
            if from < to {
                if at < from {
                    self.write(at, State::Running, self.cause);
                }
                self.write(from, State::Interrupted, Cause::Interrupt(row));
                at = to;
            }
            if stop > end {
                break;
            }
            self.interrupts = rest;
        }
        if at < end {
            self.write(at, State::Running, self.cause);
        }
    }

    fn write(&mut self, start: u64, state: State, cause: Cause) {
        self.room.starts[self.len] = start;
        self.room.states[self.len] = state;
        self.room.causes[self.len] = cause.pack();
        self.len += 1;
    }
}

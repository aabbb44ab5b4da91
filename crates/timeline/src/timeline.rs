//! The intervals of all threads: columns in CSR form by thread, built from a trace's tables.
//!
//! An interval is its start, state and cause, 13 bytes; it ends where the next one begins, so
//! that there can be no gap and no overlap. Building sorts the events by thread, gives each
//! thread room for all the intervals it could have, and fills the rooms on all cores (`lane`). What is
//! left of a room is memory that was never touched, so nothing is moved to close the columns up.

use crate::events::{CpuSwitches, Lists, ThreadEvents, ThreadInterrupts};
use crate::lane::{self, Life, Room};
use crate::occupancy::Occupancy;
use crate::state::{Cause, Interval, State};
use hangdog_trace::Threads;
use hangdog_trace::ids::{IDLE, NO_CPU, Utid};
use hangdog_trace::tables::{Interrupts, Switches, Wakes};
use rayon::prelude::*;
use std::cmp::Reverse;
use std::ops::Range;

/// What every thread did when.
#[derive(Debug)]
pub struct Timeline {
    /// By utid.
    lives: Vec<Life>,
    /// Where each thread's room begins, by utid; its life says how much of it is filled.
    offsets: Vec<usize>,
    starts: Vec<u64>,
    states: Vec<State>,
    causes: Vec<u32>,
    cpus: Lists,
    /// Intervals of all threads.
    len: usize,
    missing_switches: usize,
    end: u64,
}

impl Timeline {
    /// Builds the timeline of a trace that ends at `end` (ns since its start), or at its last
    /// event if that is later.
    ///
    /// Rows of a table past 2^30 are not looked at, and neither are threads with an id higher
    /// than the trace has events, which only a damaged trace can hold. Tables that are not
    /// sorted by time give states of no meaning, but no panic.
    pub fn build(
        switches: &Switches,
        wakes: &Wakes,
        interrupts: &Interrupts,
        threads: &Threads,
        end: u64,
    ) -> Timeline {
        let lives = threads.iter().map(|t| t.end.unwrap_or(0).max(t.start));
        let end = [&switches.ts, &wakes.ts, &interrupts.ts]
            .iter()
            .filter_map(|ts| ts.par_iter().max().copied())
            .chain(lives)
            .fold(end, u64::max);
        let count = thread_count(switches, wakes, interrupts, threads);
        let known = known_lives(threads, count, end);
        let seen = switches.cpu.par_iter().filter(|&&cpu| cpu != NO_CPU);
        let cpu_count = seen.max().map_or(0, |&cpu| cpu as usize + 1);
        let ((events, interrupted), (cpus, unseen)) = rayon::join(
            || {
                let events = Lists::new(count, ThreadEvents { switches, wakes });
                let mut interrupted = Lists::new(count, ThreadInterrupts(interrupts));
                interrupted.sort_by_key(|row| {
                    let row = row as usize;
                    (interrupts.ts[row], Reverse(interrupts.duration[row]))
                });
                (events, interrupted)
            },
            || {
                let cpus = Lists::new(cpu_count, CpuSwitches(switches));
                let unseen = lane::Unseen::new(switches, &cpus);
                (cpus, unseen)
            },
        );
        let tables = lane::Tables {
            unseen: &unseen,
            switches,
            wakes,
            interrupts,
        };

        let rooms: Vec<usize> = (0..count)
            .map(|utid| {
                if utid == IDLE as usize {
                    return 0;
                }
                let (events, interrupts) = (events.get(utid).len(), interrupted.get(utid).len());
                lane::room_for(events, interrupts, unseen.len() > 0)
            })
            .collect();
        let total = rooms.iter().sum();
        let mut starts = vec![0; total];
        let mut states = vec![State::Running; total];
        let mut causes = vec![0; total];

        let mut jobs = Vec::with_capacity(count);
        let mut offsets = Vec::with_capacity(count);
        let mut offset = 0;
        let (mut s, mut t, mut c) = (&mut starts[..], &mut states[..], &mut causes[..]);
        for (utid, &room) in rooms.iter().enumerate() {
            offsets.push(offset);
            offset += room;
            jobs.push((
                utid,
                Room {
                    starts: s.split_off_mut(..room).unwrap_or_default(),
                    states: t.split_off_mut(..room).unwrap_or_default(),
                    causes: c.split_off_mut(..room).unwrap_or_default(),
                },
            ));
        }
        let lives: Vec<Life> = jobs
            .into_par_iter()
            .map(|(utid, room)| {
                if utid == IDLE as usize {
                    return Life::default();
                }
                lane::build(
                    tables,
                    events.get(utid),
                    interrupted.get(utid),
                    known[utid],
                    room,
                )
            })
            .collect();

        Timeline {
            len: lives.iter().map(|life| life.intervals).sum(),
            lives,
            offsets,
            starts,
            states,
            causes,
            cpus,
            missing_switches: unseen.len(),
            end,
        }
    }

    /// When the trace ends, ns since its start.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// How many times a CPU was seen to leave another thread than the one that came last: at
    /// least so many switches are missing from the trace, whatever it says of its losses.
    pub fn missing_switches(&self) -> usize {
        self.missing_switches
    }

    /// Every thread that has a timeline, ascending: all but idle.
    pub fn threads(&self) -> Range<Utid> {
        1..self.lives.len().max(1) as Utid
    }

    /// Number of intervals of all threads together.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no interval at all.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// A thread's life as far as the trace saw it, ns since the trace's start; empty for idle
    /// and for a thread that is not known.
    pub fn life(&self, utid: Utid) -> Range<u64> {
        let life = self.lives.get(utid as usize).copied().unwrap_or_default();
        life.start..life.end
    }

    /// The intervals of a thread; none for idle and for a thread that is not known.
    pub fn intervals(&self, utid: Utid) -> Intervals<'_> {
        let range = match (
            self.offsets.get(utid as usize),
            self.lives.get(utid as usize),
        ) {
            (Some(&from), Some(life)) => from..from + life.intervals,
            _ => 0..0,
        };
        Intervals {
            starts: &self.starts[range.clone()],
            states: &self.states[range.clone()],
            causes: &self.causes[range],
            end: self.life(utid).end,
        }
    }

    /// The parts of a thread's intervals that lie in `[from, to)`, in order.
    pub fn between(
        &self,
        utid: Utid,
        from: u64,
        to: u64,
    ) -> impl ExactSizeIterator<Item = Interval> + '_ {
        self.intervals(utid).between(from, to)
    }

    /// Which thread a CPU ran when. `switches` is the table that the timeline was built from.
    pub fn cpu<'a>(&'a self, switches: &'a Switches, cpu: u16) -> Occupancy<'a> {
        Occupancy::new(switches, self.cpus.get(cpu as usize), self.end)
    }

    /// One more than the highest CPU that switched.
    pub fn cpu_count(&self) -> usize {
        self.cpus.keys()
    }
}

/// Start and end of each thread as the trace tells them, by utid.
fn known_lives(threads: &Threads, count: usize, end: u64) -> Vec<(u64, u64)> {
    let mut lives = vec![(0, end); count];
    for thread in threads.iter() {
        if let Some(life) = lives.get_mut(thread.utid as usize) {
            *life = (thread.start, thread.end.unwrap_or(end));
        }
    }
    lives
}

/// One more than the highest thread id, limited to what the tables can hold so that a damaged
/// id does not ask for memory without bound.
fn thread_count(
    switches: &Switches,
    wakes: &Wakes,
    interrupts: &Interrupts,
    threads: &Threads,
) -> usize {
    let in_events = [
        &switches.prev,
        &switches.next,
        &wakes.wakee,
        &interrupts.thread,
    ]
    .into_iter()
    .filter_map(|column| column.par_iter().max().copied());
    let known = threads.iter().map(|t| t.utid).max();
    let highest = in_events.chain(known).max().unwrap_or(IDLE) as usize;
    let possible = threads.iter().len() + 2 * switches.len() + wakes.len() + interrupts.len();
    highest.min(possible) + 1
}

/// The intervals of one thread, in order, without gap or overlap.
#[derive(Clone, Copy, Debug)]
pub struct Intervals<'a> {
    starts: &'a [u64],
    states: &'a [State],
    causes: &'a [u32],
    end: u64,
}

impl<'a> Intervals<'a> {
    /// How many.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// The interval at `i`, if there are that many.
    pub fn get(&self, i: usize) -> Option<Interval> {
        (i < self.len()).then(|| self.at(i))
    }

    /// When the interval at `i` begins, ns since the trace's start.
    ///
    /// # Panics
    /// If there are not that many.
    pub fn start(&self, i: usize) -> u64 {
        self.starts[i]
    }

    /// The state of the interval at `i`.
    ///
    /// # Panics
    /// If there are not that many.
    pub fn state(&self, i: usize) -> State {
        self.states[i]
    }

    /// When the last one ends, ns since the trace's start.
    pub fn end(&self) -> u64 {
        self.end
    }

    fn at(&self, i: usize) -> Interval {
        Interval {
            start: self.starts[i],
            end: self.starts.get(i + 1).copied().unwrap_or(self.end),
            state: self.states[i],
            cause: Cause::unpack(self.causes[i]),
        }
    }

    /// All of them.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Interval> + ExactSizeIterator + use<'a> {
        let all = *self;
        (0..all.len()).map(move |i| all.at(i))
    }

    /// The index of the interval that contains `t`, if the thread lives then.
    pub fn index_at(&self, t: u64) -> Option<usize> {
        if t >= self.end {
            return None;
        }
        self.starts
            .partition_point(|&start| start <= t)
            .checked_sub(1)
    }

    /// The indexes of the intervals that have a part in `[from, to)`.
    pub fn indexes(&self, from: u64, to: u64) -> Range<usize> {
        if from >= to || from >= self.end {
            return 0..0;
        }
        let first = self.starts.partition_point(|&start| start <= from);
        let last = self.starts.partition_point(|&start| start < to);
        first.saturating_sub(1)..last
    }

    /// The parts of the intervals that lie in `[from, to)`, in order.
    pub fn between(&self, from: u64, to: u64) -> impl ExactSizeIterator<Item = Interval> + use<'a> {
        let all = *self;
        all.indexes(from, to).map(move |i| {
            let whole = all.at(i);
            Interval {
                start: whole.start.max(from),
                end: whole.end.min(to),
                ..whole
            }
        })
    }
}

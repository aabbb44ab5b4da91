//! Marks that somebody waits for while a flight goes on.
//!
//! A flight leaves marks in the memory of their programs until a snapshot. This reads the same rings for
//! the marks of a few names, and passes them on in the order of time: what was written after a round of
//! reading began waits for the next round, since a ring that was read earlier in the round may hold what
//! came before it.

use std::collections::HashMap;

use hangdog_trace::words::{MarkKind, Pairing};

use super::{MOST_OF_ROUND, Marks, RawMark};
use crate::system::monotonic_ns;

/// One thing that a program did with a mark of a followed name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Followed {
    /// It wrote one.
    Mark(Step),
    /// It wrote more than could be read: a begin or an end may be missing.
    Missed {
        /// The process, as the kernel numbers it.
        pid: u32,
    },
}

/// A mark of a followed name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// CLOCK_MONOTONIC, ns.
    pub ts: u64,
    /// The process, as the kernel numbers it.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// Its place among the names that are followed.
    pub name: usize,
    /// Begin, end or point.
    pub kind: MarkKind,
    /// Which begin and end are one region.
    pub pairing: Pairing,
    /// The first argument.
    pub argument: i64,
}

/// Those who follow, and what waits for the next round.
pub(crate) struct Followers<'a> {
    names: &'a [String],
    /// By the trace's code, the place among the names; none where the name is another.
    places: HashMap<u32, Option<usize>>,
    waiting: Vec<RawMark>,
}

impl<'a> Followers<'a> {
    pub(crate) fn of(names: &'a [String]) -> Followers<'a> {
        Followers {
            names,
            places: HashMap::new(),
            waiting: Vec::new(),
        }
    }

    /// Tells what was marked until this round.
    pub(crate) fn follow(&mut self, marks: &mut Marks, tell: &mut dyn FnMut(Followed)) {
        if self.names.is_empty() {
            return;
        }
        let until = monotonic_ns();
        for pid in marks.follow(&mut self.waiting) {
            tell(Followed::Missed { pid });
        }
        let (names, places) = (self.names, &mut self.places);
        let mut place = |code: u32| {
            let find = || names.iter().position(|name| marks.is_named(code, name));
            *places.entry(code).or_insert_with(find)
        };
        self.waiting.retain(|mark| place(mark.code).is_some());
        self.waiting.sort_by_key(|mark| mark.ts);
        let due = self.waiting.partition_point(|mark| mark.ts < until);
        for mark in self.waiting.drain(..due) {
            let Some(name) = place(mark.code) else {
                continue;
            };
            tell(Followed::Mark(Step {
                ts: mark.ts,
                pid: mark.pid,
                tid: mark.tid,
                name,
                kind: MarkKind::from(mark.kind),
                pairing: Pairing::from(mark.pairing),
                argument: mark.args[0],
            }));
        }
    }
}

impl Marks {
    /// Takes what has been marked since the last time, beside a flight: what is lost here is lost to who
    /// follows, and not to the trace. Gives the processes of which something was.
    fn follow(&mut self, into: &mut Vec<RawMark>) -> Vec<u32> {
        self.ticks.measure();
        let (figures, mut allowed) = (self.figures, MOST_OF_ROUND);
        let mut raw = std::mem::take(&mut self.raw);
        let mut sources = std::mem::take(&mut self.sources);
        let mut missed = Vec::new();
        for source in &mut sources {
            let round = source.area.read_rings(&mut allowed, &mut raw);
            if round.lost > 0 {
                missed.push(source.pid);
            }
            self.take(source, &mut raw, into);
        }
        (self.sources, self.raw, self.figures) = (sources, raw, figures);
        missed
    }

    /// Whether a code is that of a name, or has these digits.
    fn is_named(&self, code: u32, name: &str) -> bool {
        match code.checked_sub(hangdog_trace::ids::FIRST_MARK_NAME) {
            Some(at) => self.told.get(at as usize).is_some_and(|told| told == name),
            None => name.parse() == Ok(code),
        }
    }
}

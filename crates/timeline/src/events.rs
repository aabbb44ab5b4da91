//! Sorts the events of all threads into one list per thread (a counting sort, CSR form).
//!
//! An event is a row number with its kind in the top two bits: four bytes, and the tables stay
//! where they are.

use crate::state::MAX_ROWS;
use hangdog_trace::ids::{IDLE, Utid};
use hangdog_trace::tables::{Interrupts, Switches, Wakes};

/// What happened to the thread whose list it is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    /// It was woken (row of `wakes`).
    Wake(u32),
    /// It left a CPU (row of `switches`).
    Out(u32),
    /// It came on a CPU (row of `switches`).
    In(u32),
}

const KIND_SHIFT: u32 = MAX_ROWS.trailing_zeros();

impl Event {
    fn pack(self) -> u32 {
        match self {
            Event::Wake(row) => row,
            Event::Out(row) => 1 << KIND_SHIFT | row,
            Event::In(row) => 2 << KIND_SHIFT | row,
        }
    }

    pub(crate) fn unpack(packed: u32) -> Event {
        let row = packed & (MAX_ROWS as u32 - 1);
        match packed >> KIND_SHIFT {
            0 => Event::Wake(row),
            1 => Event::Out(row),
            _ => Event::In(row),
        }
    }
}

/// Something that can report its items, each with the key of the list it belongs in.
pub(crate) trait Source {
    /// Reports every item in order; the same at each call.
    fn each(&self, sink: impl FnMut(usize, u32));
}

/// Lists of `u32` by key, one behind the other.
#[derive(Debug)]
pub(crate) struct Lists {
    /// Where each key's list begins; one more than there are keys.
    offsets: Vec<usize>,
    items: Vec<u32>,
}

impl Lists {
    /// Sorts what `source` reports by key, each list in the order of the reports. Items with a
    /// key that is not below `keys` are left out.
    pub(crate) fn new(keys: usize, source: impl Source) -> Lists {
        let mut offsets = vec![0; keys + 1];
        source.each(|key, _| {
            if key < keys {
                offsets[key + 1] += 1;
            }
        });
        for key in 0..keys {
            offsets[key + 1] += offsets[key];
        }
        let mut next = offsets.clone();
        let mut items = vec![0; offsets[keys]];
        source.each(|key, item| {
            if key < keys {
                items[next[key]] = item;
                next[key] += 1;
            }
        });
        Lists { offsets, items }
    }

    /// Sorts each list, stably.
    pub(crate) fn sort_by_key<K: Ord>(&mut self, order: impl Fn(u32) -> K) {
        for key in 0..self.keys() {
            self.items[self.offsets[key]..self.offsets[key + 1]].sort_by_key(|&item| order(item));
        }
    }

    /// Number of keys.
    pub(crate) fn keys(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The list of `key`; empty for a key that is not known.
    pub(crate) fn get(&self, key: usize) -> &[u32] {
        match self.offsets.get(key..key + 2) {
            Some(&[from, to]) => &self.items[from..to],
            _ => &[],
        }
    }
}

/// Key of events that concern no thread of interest: out of every list.
const NOBODY: usize = usize::MAX;

fn key(thread: Utid) -> usize {
    if thread == IDLE {
        NOBODY
    } else {
        thread as usize
    }
}

/// Switches and wakes by thread, in order of time. Of a wake and a switch at the same time the
/// wake comes first: it is stamped before it takes effect.
pub(crate) struct ThreadEvents<'a> {
    pub(crate) switches: &'a Switches,
    pub(crate) wakes: &'a Wakes,
}

impl Source for ThreadEvents<'_> {
    fn each(&self, mut sink: impl FnMut(usize, u32)) {
        let wakes = self.wakes.len().min(MAX_ROWS);
        let mut wake = 0;
        for row in 0..self.switches.len().min(MAX_ROWS) {
            while wake < wakes && self.wakes.ts[wake] <= self.switches.ts[row] {
                sink(key(self.wakes.wakee[wake]), Event::Wake(wake as u32).pack());
                wake += 1;
            }
            sink(key(self.switches.prev[row]), Event::Out(row as u32).pack());
            sink(key(self.switches.next[row]), Event::In(row as u32).pack());
        }
        for row in wake..wakes {
            sink(key(self.wakes.wakee[row]), Event::Wake(row as u32).pack());
        }
    }
}

/// Rows of interrupts by the thread that they interrupted.
pub(crate) struct ThreadInterrupts<'a>(pub(crate) &'a Interrupts);

impl Source for ThreadInterrupts<'_> {
    fn each(&self, mut sink: impl FnMut(usize, u32)) {
        for (row, &thread) in self.0.thread.iter().take(MAX_ROWS).enumerate() {
            sink(key(thread), row as u32);
        }
    }
}

/// Rows of switches by CPU.
pub(crate) struct CpuSwitches<'a>(pub(crate) &'a Switches);

impl Source for CpuSwitches<'_> {
    fn each(&self, mut sink: impl FnMut(usize, u32)) {
        for (row, &cpu) in self.0.cpu.iter().take(MAX_ROWS).enumerate() {
            sink(cpu as usize, row as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Pairs(&'static [(usize, u32)]);

    impl Source for Pairs {
        fn each(&self, mut sink: impl FnMut(usize, u32)) {
            self.0.iter().for_each(|&(key, item)| sink(key, item));
        }
    }

    /// Items come out by key in the order they went in; a key out of range is left out.
    #[test]
    fn lists_keep_order() {
        let lists = Lists::new(3, Pairs(&[(2, 7), (0, 5), (2, 6), (3, 1), (usize::MAX, 2)]));
        assert_eq!(lists.get(0), [5]);
        assert!(lists.get(1).is_empty());
        assert_eq!(lists.get(2), [7, 6]);
        assert!(lists.get(3).is_empty());
    }

    /// An event survives its packing, at both ends of the row range.
    #[test]
    fn packing_keeps_kind_and_row() {
        for row in [0, MAX_ROWS as u32 - 1] {
            for event in [Event::Wake(row), Event::Out(row), Event::In(row)] {
                assert_eq!(Event::unpack(event.pack()), event);
            }
        }
    }
}

//! Which thread a CPU ran when: the other view of the switches, for questions about who had the
//! CPU while a thread wanted one.

use hangdog_trace::ids::{IDLE, Utid};
use hangdog_trace::tables::Switches;

/// What one CPU ran, in order: intervals without gap or overlap from the trace's start to its
/// end, idle among them.
#[derive(Clone, Copy, Debug)]
pub struct Occupancy<'a> {
    switches: &'a Switches,
    rows: &'a [u32],
    end: u64,
}

/// An interval of time for which one thread had a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Occupant {
    /// When it came, ns since the trace's start; 0 for the one that was there.
    pub start: u64,
    /// When it left, ns since the trace's start.
    pub end: u64,
    /// The thread; 0 is idle.
    pub thread: Utid,
    /// The row of `switches` that brought it; none for the one that was there.
    pub row: Option<u32>,
}

impl<'a> Occupancy<'a> {
    pub(crate) fn new(switches: &'a Switches, rows: &'a [u32], end: u64) -> Occupancy<'a> {
        Occupancy {
            switches,
            rows,
            end,
        }
    }

    /// How many intervals; none for a CPU that never switched, of which nothing is known.
    pub fn len(&self) -> usize {
        match self.rows.len() {
            0 => 0,
            rows => rows + 1,
        }
    }

    /// Whether nothing is known of the CPU.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The interval at `i`, if there are that many. It is empty where two switches, or the
    /// trace's start and a switch, have one time.
    pub fn get(&self, i: usize) -> Option<Occupant> {
        (i < self.len()).then(|| self.at(i))
    }

    fn at(&self, i: usize) -> Occupant {
        let before = i.checked_sub(1).map(|i| self.rows[i]);
        let after = self.rows.get(i).map(|&row| row as usize);
        Occupant {
            start: before.map_or(0, |row| self.switches.ts[row as usize]),
            end: after.map_or(self.end, |row| self.switches.ts[row]),
            thread: match (before, after) {
                (Some(row), _) => self.switches.next[row as usize],
                (None, Some(row)) => self.switches.prev[row],
                (None, None) => IDLE,
            },
            row: before,
        }
    }

    /// All of them.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Occupant> + use<'a> {
        let all = *self;
        (0..all.len()).map(move |i| all.at(i))
    }

    /// The index of the interval that contains `t`; none past the trace's end or where nothing is
    /// known.
    pub fn index_at(&self, t: u64) -> Option<usize> {
        if self.is_empty() || t >= self.end {
            return None;
        }
        Some(
            self.rows
                .partition_point(|&row| self.switches.ts[row as usize] <= t),
        )
    }

    /// The parts of the intervals that lie in `[from, to)`, in order.
    pub fn between(&self, from: u64, to: u64) -> impl Iterator<Item = Occupant> + use<'a> {
        let all = *self;
        let first = all.index_at(from).unwrap_or(all.len());
        (first..all.len())
            .map(move |i| all.at(i))
            .take_while(move |stretch| stretch.start < to)
            .map(move |stretch| Occupant {
                start: stretch.start.max(from),
                end: stretch.end.min(to),
                ..stretch
            })
    }
}

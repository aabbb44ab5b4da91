//! Row numbers grouped by a small key, in CSR form: each group's rows in the order given.

use std::ops::Range;

/// The rows of every key.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    offsets: Vec<u32>,
    rows: Vec<u32>,
}

impl Groups {
    /// Groups the rows that `pairs` gives with their keys; one whose key is not below `keys`
    /// belongs to none.
    pub(crate) fn new<I>(keys: usize, pairs: impl Fn() -> I) -> Groups
    where
        I: Iterator<Item = (u32, u32)>,
    {
        let mut offsets = vec![0_u32; keys + 1];
        for (key, _) in pairs() {
            if (key as usize) < keys {
                offsets[key as usize + 1] += 1;
            }
        }
        for at in 0..keys {
            offsets[at + 1] += offsets[at];
        }
        let mut next = offsets.clone();
        let mut rows = vec![0; offsets[keys] as usize];
        for (key, row) in pairs() {
            if (key as usize) < keys {
                rows[next[key as usize] as usize] = row;
                next[key as usize] += 1;
            }
        }
        Groups { offsets, rows }
    }

    /// Where the rows of a key lie among all; empty for a key that is not known.
    pub(crate) fn range(&self, key: usize) -> Range<usize> {
        match self.offsets.get(key..key.saturating_add(2)) {
            Some(&[from, to]) => from as usize..to as usize,
            _ => 0..0,
        }
    }

    /// The rows of a key, in the order in which they were given.
    pub(crate) fn get(&self, key: usize) -> &[u32] {
        &self.rows[self.range(key)]
    }

    /// The rows of all keys, one group behind the other.
    pub(crate) fn rows(&self) -> &[u32] {
        &self.rows
    }
}

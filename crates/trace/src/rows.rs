//! Row numbers by id: a plain array where the ids are as dense as a recording makes them, a map
//! where a damaged trace has ids that would ask for memory without bound.

use std::collections::HashMap;

/// Where each id of a table is.
#[derive(Clone, Debug)]
pub(crate) enum Rows {
    /// By id; [`NOWHERE`] where there is no such id.
    Dense(Vec<u32>),
    /// By id.
    Sparse(HashMap<u32, u32>),
}

const NOWHERE: u32 = u32::MAX;
/// An array may have so many places for each id, and this many besides.
const PLACES: usize = 8;
const MORE_PLACES: usize = 1 << 16;

impl Default for Rows {
    fn default() -> Rows {
        Rows::Dense(Vec::new())
    }
}

impl Rows {
    /// Of a table's column of ids; of several rows with one id the last counts.
    pub(crate) fn new(ids: &[u32]) -> Rows {
        let highest = ids.iter().max().map_or(0, |&id| id as usize + 1);
        if highest > ids.len().saturating_mul(PLACES) + MORE_PLACES {
            return Rows::Sparse(ids.iter().zip(0..).map(|(&id, row)| (id, row)).collect());
        }
        let mut rows = vec![NOWHERE; highest];
        for (&id, row) in ids.iter().zip(0..) {
            rows[id as usize] = row;
        }
        Rows::Dense(rows)
    }

    /// The row of an id.
    pub(crate) fn get(&self, id: u32) -> Option<usize> {
        let row = match self {
            Rows::Dense(rows) => rows.get(id as usize).copied().filter(|&row| row != NOWHERE),
            Rows::Sparse(rows) => rows.get(&id).copied(),
        };
        row.map(|row| row as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::Rows;

    /// Ids far apart and ids close together are found alike, and what is not there is not.
    #[test]
    fn found_however_far_apart() {
        for ids in [vec![3, 1, 7], vec![3, u32::MAX - 1, 7]] {
            let rows = Rows::new(&ids);
            for (row, &id) in ids.iter().enumerate() {
                assert_eq!(rows.get(id), Some(row));
            }
            assert_eq!(rows.get(2), None);
            assert_eq!(rows.get(u32::MAX), None);
        }
        assert!(matches!(Rows::new(&[5, u32::MAX - 1]), Rows::Sparse(_)));
    }

    /// Of two rows with one id the last is found.
    #[test]
    fn the_last_counts() {
        assert_eq!(Rows::new(&[4, 4]).get(4), Some(1));
    }
}

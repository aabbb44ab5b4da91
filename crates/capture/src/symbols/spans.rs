//! Which piece of memory holds what, where later pieces take the place of earlier ones: a
//! just-in-time compiler uses its memory again.

use std::collections::BTreeMap;

/// Values by the memory that they stand for; no two overlap.
#[derive(Debug)]
pub(super) struct Spans<T>(BTreeMap<u64, (u64, T)>);

impl<T> Default for Spans<T> {
    fn default() -> Spans<T> {
        Spans(BTreeMap::new())
    }
}

impl<T> Spans<T> {
    /// Adds a piece and takes away every piece that it overlaps. One that has no length, or that
    /// goes beyond the last address, is nothing.
    pub(super) fn insert(&mut self, start: u64, size: u64, value: T) {
        let Some(end) = start.checked_add(size).filter(|&end| end > start) else {
            return;
        };
        while let Some((&at, &(old_end, _))) = self.0.range(..end).next_back() {
            if old_end <= start {
                break;
            }
            self.0.remove(&at);
        }
        self.0.insert(start, (end, value));
    }

    /// Takes away the piece that begins at an address.
    pub(super) fn remove(&mut self, start: u64) -> Option<T> {
        self.0.remove(&start).map(|(_, value)| value)
    }

    /// Where the piece at an address begins, and its value.
    pub(super) fn find(&self, address: u64) -> Option<(u64, &T)> {
        let (&start, (end, value)) = self.0.range(..=address).next_back()?;
        (address < *end).then_some((start, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A piece is found from its first byte to its last, and takes the place of all that it
    /// overlaps, wholly.
    #[test]
    fn later_pieces_win() {
        let mut spans = Spans::default();
        for (start, size, name) in [(10, 10, 'a'), (20, 10, 'b'), (40, 1, 'c'), (25, 16, 'd')] {
            spans.insert(start, size, name);
        }
        let at = |address| spans.find(address).map(|(start, name)| (start, *name));
        assert_eq!(
            (at(9), at(10), at(19)),
            (None, Some((10, 'a')), Some((10, 'a')))
        );
        assert_eq!(at(20), None, "b was overlapped by d, and so is gone");
        assert_eq!(
            (at(25), at(40), at(41)),
            (Some((25, 'd')), Some((25, 'd')), None)
        );
    }

    /// What is empty or ends beyond the last address is left out.
    #[test]
    fn nonsense_is_nothing() {
        let mut spans = Spans::default();
        spans.insert(5, 0, ());
        spans.insert(u64::MAX, 1, ());
        spans.insert(u64::MAX - 1, 1, ());
        assert_eq!(spans.find(5), None);
        assert_eq!(spans.find(u64::MAX), None);
        assert_eq!(spans.find(u64::MAX - 1), Some((u64::MAX - 1, &())));
    }
}

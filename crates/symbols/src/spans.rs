//! Which piece of memory holds what, where later pieces take the place of earlier ones: a
//! just-in-time compiler uses its memory again.

use std::collections::BTreeMap;

/// Values by the memory that they stand for; no two overlap.
#[derive(Debug)]
pub(crate) struct Spans<T>(BTreeMap<u64, (u64, T)>);

/// Names of code, of which those at some addresses are sought; takes no more memory than it is given,
/// however much is named.
pub(crate) struct Sought<'a> {
    /// Ascending.
    addresses: &'a [u64],
    /// Bytes left for names.
    room: usize,
    code: Spans<String>,
    /// Whether there was more than room for it.
    pub cut: bool,
}

/// So much a piece takes beside its name, about.
const PIECE: usize = 80;
/// Longer names are cut.
const LONGEST: usize = 4096;

impl<'a> Sought<'a> {
    /// `addresses` ascend; `room` is in bytes.
    pub(crate) fn new(addresses: &'a [u64], room: usize) -> Sought<'a> {
        Sought {
            addresses,
            room,
            code: Spans::default(),
            cut: false,
        }
    }

    /// A piece of code was put there, in place of what it overlaps. It is kept if it is sought.
    pub(crate) fn put(&mut self, start: u64, size: u64, name: &str) {
        let Some(end) = start.checked_add(size).filter(|&end| end > start) else {
            return;
        };
        let at = self.addresses.partition_point(|&address| address < start);
        if self.addresses.get(at).is_some_and(|&sought| sought < end) {
            self.keep(start, size, name);
        } else {
            self.code.clear(start, end);
        }
    }

    /// The same of one that may be moved later: it is kept in any case.
    pub(crate) fn keep(&mut self, start: u64, size: u64, name: &str) {
        let whole = |&length: &usize| name.is_char_boundary(length);
        let length = (0..=name.len().min(LONGEST)).rev().find(whole).unwrap_or(0);
        match self.room.checked_sub(length + PIECE) {
            Some(room) => {
                self.room = room;
                self.code.insert(start, size, name[..length].to_owned());
            }
            None => self.cut = true,
        }
    }

    /// The piece that begins at an address lies elsewhere now.
    pub(crate) fn relocate(&mut self, from: u64, to: u64, size: u64) {
        if let Some(name) = self.code.remove(from) {
            self.code.insert(to, size, name);
        }
    }

    /// Where the piece at an address begins, and its name.
    pub(crate) fn find(&self, address: u64) -> Option<(u64, &str)> {
        let (start, name) = self.code.find(address)?;
        Some((start, name))
    }
}

impl<T> Default for Spans<T> {
    fn default() -> Spans<T> {
        Spans(BTreeMap::new())
    }
}

impl<T> Spans<T> {
    /// Adds a piece and takes away every piece that it overlaps. One that has no length, or that
    /// goes beyond the last address, is nothing.
    pub(crate) fn insert(&mut self, start: u64, size: u64, value: T) {
        let Some(end) = start.checked_add(size).filter(|&end| end > start) else {
            return;
        };
        self.clear(start, end);
        self.0.insert(start, (end, value));
    }

    /// Takes away every piece that lies in part between two addresses.
    fn clear(&mut self, start: u64, end: u64) {
        while let Some((&at, &(old_end, _))) = self.0.range(..end).next_back() {
            if old_end <= start {
                break;
            }
            self.0.remove(&at);
        }
    }

    /// Takes away the piece that begins at an address.
    pub(crate) fn remove(&mut self, start: u64) -> Option<T> {
        self.0.remove(&start).map(|(_, value)| value)
    }

    /// Where the piece at an address begins, and its value.
    pub(crate) fn find(&self, address: u64) -> Option<(u64, &T)> {
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

    /// What nobody seeks takes no memory, and still takes the place of what it overlaps; where there
    /// is no room any more, that is reported.
    #[test]
    fn only_what_is_sought_is_kept() {
        let mut sought = Sought::new(&[0x15, 0x25], 3 * PIECE);
        for start in 0x100..0x10_0000 {
            sought.put(start, 1, "nobody asks");
        }
        sought.put(0x10, 0x10, "old");
        sought.put(0x20, 0x10, "b");
        sought.put(0x1f, 1, "over the end of old");
        assert!(!sought.cut);
        assert_eq!(sought.find(0x15), None);
        assert_eq!(sought.find(0x25), Some((0x20, "b")));
        sought.put(0x10, 0x10, &"n".repeat(3 * PIECE));
        assert!(sought.cut && sought.find(0x15).is_none());
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

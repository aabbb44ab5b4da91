//! How often something held threads up for one cause.
//!
//! Problems of one cause have the same signature. Those that overlap in time are one occasion that
//! several threads felt.

use serde::Serialize;
use std::ops::Range;

/// How often, and for how long in all.
#[derive(Clone, Copy, Serialize, Debug, PartialEq, Eq)]
pub struct Repeats {
    /// How many occasions there were: problems of one cause that overlap in time are one.
    pub times: usize,
    /// How long they took together, ns.
    pub total_ns: u64,
}

impl Repeats {
    /// Of problems of one cause, by when each was.
    pub fn of(windows: impl Iterator<Item = Range<u64>>) -> Repeats {
        let mut windows: Vec<Range<u64>> = windows.collect();
        windows.sort_by_key(|window| window.start);
        let mut occasions: Vec<Range<u64>> = Vec::new();
        for window in windows {
            match occasions.last_mut() {
                Some(last) if window.start < last.end => last.end = last.end.max(window.end),
                _ => occasions.push(window),
            }
        }
        let length = |window: &Range<u64>| window.end.saturating_sub(window.start);
        Repeats {
            times: occasions.len(),
            total_ns: (occasions.iter()).fold(0, |sum, it| sum.saturating_add(length(it))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_overlaps_is_one_occasion() {
        let repeats = Repeats::of([30..40, 0..10, 5..12, 12..20].into_iter());
        let expected = Repeats {
            times: 3,
            total_ns: 30,
        };
        assert_eq!(repeats, expected);
        assert_eq!(Repeats::of([].into_iter()).times, 0);
    }
}

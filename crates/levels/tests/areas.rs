//! What is drawn has the area of the time that it stands for, at any zoom.

use hangdog_levels::source::{STATES, Source};
use hangdog_levels::{Bin, Sums};
use proptest::prelude::*;

const BLOCKED: usize = 3;

/// Intervals of any lengths and states.
#[derive(Clone, Copy)]
struct Plain<'a> {
    starts: &'a [u64],
    states: &'a [usize],
    end: u64,
}

impl Source for Plain<'_> {
    fn len(&self) -> usize {
        self.starts.len()
    }
    fn start(&self, i: usize) -> u64 {
        self.starts[i]
    }
    fn end(&self) -> u64 {
        self.end
    }
    fn state(&self, i: usize) -> usize {
        self.states[i]
    }
}

/// A bin by looking at every interval.
fn by_hand(plain: Plain<'_>, from: u64, to: u64) -> Bin {
    let mut bin = Bin::default();
    for i in 0..plain.len() {
        let (start, end) = (plain.start(i).max(from), plain.end_of(i).min(to));
        let ns = end.saturating_sub(start);
        bin.time[plain.state(i)] += ns;
        bin.count += u32::from(plain.start(i) > from && plain.start(i) <= to);
        if plain.state(i) != BLOCKED && ns > bin.longest {
            (bin.longest, bin.longest_at) = (ns, i);
        }
    }
    bin
}

fn track() -> impl Strategy<Value = (Vec<u64>, Vec<usize>, u64)> {
    let lengths = prop_oneof![1u64..50, 1_000u64..100_000, Just(5_000)];
    (
        0u64..100_000,
        prop::collection::vec((lengths, 0..STATES), 0..500),
    )
        .prop_map(|(start, parts)| {
            let mut t = start;
            let (mut starts, mut states) = (Vec::new(), Vec::new());
            for (length, state) in parts {
                starts.push(t);
                states.push(state);
                t += length;
            }
            (starts, states, t)
        })
}

proptest! {
    /// Every bin has, to the nanosecond, the time of the intervals in it; and knows their longest
    /// and how many begin there.
    #[test]
    fn bins_equal_the_intervals((starts, states, end) in track(), from in 0u64..2_000_000, shift in 3u32..22) {
        let plain = Plain { starts: &starts, states: &states, end };
        let sums = Sums::new(plain);
        let width = 1u64 << shift;
        let bins = sums.bins(plain, from, shift, 40);
        for (at, bin) in bins.iter().enumerate() {
            let left = from + width * at as u64;
            let expected = by_hand(plain, left, left + width);
            prop_assert_eq!(bin.time, expected.time);
            prop_assert_eq!(bin.count, expected.count);
            prop_assert_eq!(bin.longest, expected.longest);
        }
    }

    /// Bins side by side add up to the time of the whole range.
    #[test]
    fn areas_add_up((starts, states, end) in track(), shift in 3u32..22) {
        let plain = Plain { starts: &starts, states: &states, end };
        let sums = Sums::new(plain);
        let count = (end >> shift) as usize + 1;
        prop_assume!(count < 100_000);
        let bins = sums.bins(plain, 0, shift, count);
        let whole = sums.time(plain, 0, u64::MAX);
        for (state, &expected) in whole.iter().enumerate() {
            prop_assert_eq!(bins.iter().map(|bin| bin.time[state]).sum::<u64>(), expected);
        }
        let life = starts.first().map_or(0, |first| end - first);
        prop_assert_eq!(whole.iter().sum::<u64>(), life);
    }
}

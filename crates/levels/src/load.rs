//! How many threads were runnable: the average for intervals of equal length.

use hangdog_timeline::{Intervals, State};

/// Adds to each interval of `width` ns the time for which a thread ran, was interrupted, or waited
/// for a CPU in it. The sum over threads by the width is how many were runnable on average.
pub fn add(sums: &mut [u64], width: u64, intervals: Intervals<'_>) {
    let end = width.saturating_mul(sums.len() as u64);
    for i in 0..intervals.len() {
        if intervals.state(i) == State::Blocked {
            continue;
        }
        let mut from = intervals.start(i);
        let to = intervals
            .get(i)
            .map_or(from, |interval| interval.end)
            .min(end);
        while from < to {
            let at = from / width;
            let next = ((at + 1) * width).min(to);
            sums[at as usize] += next - from;
            from = next;
        }
    }
}

//! Which parts of a thread's time are looked at, where there are too many to look at all.
//!
//! A thread that hands something over a hundred thousand times a second has millions of intervals in a
//! minute, and what they come to is a few sums. Evenly spaced blocks of them tell these sums within a
//! percent. Blocks that have an interval long enough to be told apart are always looked at.

use hangdog_timeline::Intervals;
use std::ops::Range;

/// More intervals than this are not looked at, except for long ones.
const MOST: usize = 1_000_000;
/// So many follow each other in a block.
const BLOCK: usize = 256;

/// A part of a thread's time that is looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    pub looked: Range<u64>,
    /// The time that it stands for, itself included.
    pub whole: Range<u64>,
}

impl Look {
    fn at_all(window: Range<u64>) -> Look {
        Look {
            looked: window.clone(),
            whole: window,
        }
    }

    /// Whether it stands for more than itself.
    pub(crate) fn is_sample(&self) -> bool {
        self.looked != self.whole
    }

    /// How much of what it stands for is not looked at, ns.
    pub(crate) fn estimated_ns(&self) -> u64 {
        (self.whole.end - self.whole.start) - (self.looked.end - self.looked.start)
    }

    /// Where a moment of it lies, if it is stretched to what it stands for.
    pub(crate) fn stretched(&self, at: u64) -> u64 {
        let length = |window: &Range<u64>| u128::from(window.end - window.start).max(1);
        let at = at.clamp(self.looked.start, self.looked.end) - self.looked.start;
        let along = u128::from(at) * length(&self.whole) / length(&self.looked);
        self.whole.start + along as u64
    }
}

/// All of a window.
pub(crate) fn all(window: Range<u64>) -> Vec<Look> {
    vec![Look::at_all(window)]
}

/// What is looked at of a thread's `window`, in order; together they stand for all of it. Intervals shorter
/// than `finest`, ns, are those that need not be told apart.
pub(crate) fn looks(intervals: Intervals<'_>, window: Range<u64>, finest: u64) -> Vec<Look> {
    let indexes = intervals.indexes(window.start, window.end);
    if indexes.len() <= MOST {
        return all(window);
    }
    let start = |at: usize| match at >= indexes.end {
        true => window.end,
        false => intervals.start(at).max(window.start),
    };
    // Each block: when, and whether all of it is fine.
    let blocks: Vec<(Range<u64>, bool)> = indexes
        .clone()
        .step_by(BLOCK)
        .map(|first| {
            let behind = (first + BLOCK).min(indexes.end);
            let is_fine = (first..behind).all(|at| start(at + 1) - start(at) < finest);
            (start(first)..start(behind), is_fine)
        })
        .collect();
    let fine = blocks.iter().filter(|(_, is_fine)| *is_fine).count();
    let stride = (fine * BLOCK).div_ceil(MOST);
    let runs = blocks.chunk_by(|(_, a), (_, b)| a == b);
    let of_run = |run: &[(Range<u64>, bool)]| -> Vec<Look> {
        let stride = if run[0].1 { stride } else { run.len() };
        let together =
            |group: &[(Range<u64>, bool)]| group[0].0.start..group[group.len() - 1].0.end;
        run.chunks(stride.max(1))
            .map(|group| match run[0].1 {
                true => Look {
                    looked: group[group.len() / 2].0.clone(),
                    whole: together(group),
                },
                false => Look::at_all(together(group)),
            })
            // What nothing could be seen of in a block without length goes to its neighbour.
            .filter(|look| !look.whole.is_empty())
            .map(|look| match look.looked.is_empty() {
                true => Look::at_all(look.whole),
                false => look,
            })
            .collect()
    };
    runs.flat_map(of_run).collect()
}

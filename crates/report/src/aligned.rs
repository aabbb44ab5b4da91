//! Fast and slow occurrences of the same work as a picture shows them: one above the other, aligned at their
//! begin, each with what its thread did.

use crate::compare::Found;
use crate::select::Who;
use hangdog_diagnose::compare::{Difference, Occurrence};
use hangdog_graph::{Evidence, Wait};
use hangdog_timeline::State;
use serde::Serialize;

/// So many of each group are shown.
const SHOWN: usize = 6;
/// What takes less than one of so many parts of the longest is shown with what came before.
const PARTS: u64 = 500;

/// Some of the fast and of the slow ones, from the shortest to the longest of each.
#[derive(Debug, Serialize)]
pub struct Aligned<'a> {
    /// The fast ones.
    pub fast: Vec<Drawn<'a>>,
    /// The slow ones.
    pub slow: Vec<Drawn<'a>>,
}

/// One occurrence.
#[derive(Debug, PartialEq, Serialize)]
pub struct Drawn<'a> {
    /// Whose it is.
    pub thread: Who<'a>,
    /// When it began, ns since the trace's start.
    pub start_ns: u64,
    /// How long it took, ns.
    pub duration_ns: u64,
    /// What its thread did, in order; they cover it.
    pub segments: Vec<Segment>,
}

/// A state of a thread.
#[derive(Debug, PartialEq, Serialize)]
pub struct Segment {
    /// The state.
    pub state: &'static str,
    /// From when on, ns since the occurrence's begin.
    pub from_ns: u64,
    /// Until when.
    pub to_ns: u64,
    /// What a blocked thread waited for, as a phrase; none of other states.
    pub what: Option<String>,
}

impl<'a> Aligned<'a> {
    /// Those of one trace that were compared with each other.
    pub fn of(evidence: &Evidence<'a>, found: &Found<'_>, difference: &Difference) -> Aligned<'a> {
        let length = |it: &Occurrence| it.to - it.from;
        let mut all: Vec<&Occurrence> = found.occurrences().iter().collect();
        all.sort_by_key(|it| (length(it), it.from));
        let (slow, fast): (Vec<&Occurrence>, Vec<&Occurrence>) = all
            .into_iter()
            .filter(|it| {
                length(it) <= difference.fast.max_ns || length(it) >= difference.slow.min_ns
            })
            .partition(|it| length(it) >= difference.slow.min_ns);
        let finest = difference.slow.max_ns / PARTS;
        let draw = |group: Vec<&Occurrence>| {
            let drawn = evenly(&group).map(|it| drawn(evidence, it, finest));
            drawn.collect()
        };
        Aligned {
            fast: draw(fast),
            slow: draw(slow),
        }
    }
}

/// At most [`SHOWN`] of a group, evenly, with its first and its last.
fn evenly<'s, T: Copy>(group: &'s [T]) -> impl Iterator<Item = T> + 's {
    let count = group.len().min(SHOWN);
    let last = group.len().saturating_sub(1);
    (0..count).map(move |at| group[(at * last).checked_div(count - 1).unwrap_or(0)])
}

fn drawn<'a>(evidence: &Evidence<'a>, occurrence: &Occurrence, finest: u64) -> Drawn<'a> {
    let &Occurrence { thread, from, to } = occurrence;
    let mut segments: Vec<Segment> = Vec::new();
    for interval in evidence.timeline.between(thread, from, to) {
        let (begin, end) = (interval.start.max(from) - from, interval.end.min(to) - from);
        match segments.last_mut() {
            Some(last) if end - begin < finest || last.state == interval.state.text() => {
                last.to_ns = end;
            }
            _ => segments.push(Segment {
                state: interval.state.text(),
                from_ns: begin,
                to_ns: end,
                what: (interval.state == State::Blocked)
                    .then(|| Wait::new(evidence, thread, &interval).phrase(evidence)),
            }),
        }
    }
    Drawn {
        thread: Who::new(evidence.threads, thread),
        start_ns: from,
        duration_ns: to - from,
        segments,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of many some are taken, the first and the last among them; of few all.
    #[test]
    fn some_of_many() {
        let all: Vec<usize> = (0..100).collect();
        let taken: Vec<usize> = evenly(&all).collect();
        assert_eq!((taken.len(), taken[0], taken[5]), (6, 0, 99));
        assert!(taken.is_sorted());
        for few in [&all[..0], &all[..1], &all[..4]] {
            assert_eq!(evenly(few).collect::<Vec<_>>(), few);
        }
    }
}

//! The causal chain: from the root of a problem back to what started it, a user's input if it comes
//! to that.
//!
//! Each piece of work was begun by an event ([`begun`](crate::begun)); where that was another
//! thread's doing, the question goes on to what began that thread's work. It stops at a device, at
//! a timer, at the outside world, where the trace begins, or at a thread that it came by twice
//! already.

use hangdog_graph::Evidence;
use hangdog_trace::ids::{StackId, Utid};
use std::ops::Range;

use crate::begun;
use crate::verdict::SliceStep;
use crate::verdict::who;

/// A thread that asked for something and got it is visited twice.
const MOST_VISITS: usize = 2;
/// No slice that a person reads is longer.
const LONGEST: usize = 32;

/// The slice back from what `thread` did in `windows`; `is_within` as for [`begun::of`].
pub(crate) fn back(
    evidence: &Evidence<'_>,
    thread: Utid,
    windows: &[Range<u64>],
    is_within: impl Fn(StackId) -> bool,
) -> Vec<SliceStep> {
    let mut steps = Vec::new();
    let mut seen: Vec<Utid> = vec![thread];
    let mut thread = thread;
    let mut next = begun::of(evidence, thread, windows, is_within);
    while let Some((begun, by)) = next.take() {
        let at = begun.at_ns;
        steps.push(SliceStep {
            who: who(evidence, thread),
            begun,
        });
        let Some(by) = by.filter(|_| steps.len() < LONGEST) else {
            break;
        };
        // Two threads that work for each other turn by turn lead back through all their turns.
        if seen.iter().filter(|&&other| other == by).count() == MOST_VISITS {
            break;
        }
        seen.push(by);
        thread = by;
        let moment = at.saturating_sub(1)..at;
        next =
            begun::of(evidence, thread, &[moment], |_| false).filter(|(begun, _)| begun.at_ns < at);
    }
    steps
}

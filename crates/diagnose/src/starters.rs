//! Who answers for many short-lived processes: whoever started them one after the other.
//!
//! A loop that starts a program each time has its time attributed to hundreds of processes, of which
//! none took much. Summed for the thread that started them they say where the time went.

use hangdog_graph::Evidence;
use hangdog_trace::ids::Utid;
use std::collections::HashMap;
use std::ops::Range;

use crate::blame::Blame;

/// Who started each of many short-lived processes of which none took much of a window.
pub(crate) fn of(
    evidence: &Evidence<'_>,
    blame: &Blame,
    window: &Range<u64>,
) -> HashMap<Utid, Utid> {
    /// From so many on they are many.
    const FEWEST: usize = 10;
    /// Each lives for at most this part of the window.
    const PART: u64 = 20;
    /// So far up is looked; in a damaged trace parents may form a circle.
    const DEEPEST: usize = 16;
    let mut times: HashMap<Utid, u64> = HashMap::new();
    for piece in &blame.pieces {
        *times.entry(piece.thread).or_default() += piece.ns();
    }
    let most = (window.end - window.start) / PART;
    let mut starters: HashMap<Utid, Utid> = HashMap::new();
    for (&thread, &ns) in &times {
        let known = evidence.threads.thread(thread);
        let life = evidence.timeline.life(thread);
        let is_short = life.end.saturating_sub(life.start) <= most;
        let has_parent = evidence.threads.known(known.parent).is_some();
        if ns <= most && is_short && known.is_main() && has_parent {
            starters.insert(thread, known.parent);
        }
    }
    // Who was started by one of them may have been so for the same.
    let of_starter: HashMap<Utid, Utid> = (starters.iter())
        .map(|(&thread, &parent)| {
            let mut first = parent;
            for _ in 0..DEEPEST {
                match starters.get(&first) {
                    Some(&above) => first = above,
                    None => break,
                }
            }
            (thread, first)
        })
        .collect();
    let mut counts: HashMap<Utid, usize> = HashMap::new();
    for &starter in of_starter.values() {
        *counts.entry(starter).or_default() += 1;
    }
    let is_one_of_many = |starter: &Utid| counts[starter] >= FEWEST;
    (of_starter.into_iter())
        .filter(|(_, starter)| is_one_of_many(starter))
        .collect()
}

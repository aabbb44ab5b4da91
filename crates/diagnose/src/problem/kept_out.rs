//! Threads that were kept from a file's lock: refused it again and again, or made to wait for it.

use hangdog_graph::Evidence;
use hangdog_trace::ids::{NONE, Utid};
use hangdog_trace::words::{HandoffKind, HandoffStep};
use std::collections::HashMap;

use super::family::Family;
use super::{Problem, ProblemKind, worth};

/// Who is refused and does not ask again for so long has given up.
const GIVES_UP_NS: u64 = 2_000_000_000;
/// Shorter ones are how locks work.
const SHORTEST_NS: u64 = 50_000_000;

/// What is taken is not what was wanted, if more is refused so soon after: some locks have parts.
const SOON_NS: u64 = 1_000_000;

/// A time in which a thread was kept out.
struct Stretch {
    from: u64,
    /// When it was refused last.
    refused: u64,
    /// When it got a lock of the file.
    taken: Option<u64>,
}

impl Stretch {
    fn is_over(&self, ts: u64) -> bool {
        match self.taken {
            Some(taken) => ts.saturating_sub(taken) > SOON_NS,
            None => ts.saturating_sub(self.refused) > GIVES_UP_NS,
        }
    }
}

pub(super) fn find(evidence: &Evidence<'_>, family: &Family) -> Vec<Problem> {
    let handoffs = evidence.handoffs;
    let mut kept_out: HashMap<(Utid, u64), Stretch> = HashMap::new();
    let mut problems = Vec::new();
    let mut end = |thread: Utid, stretch: &Stretch| {
        let window = stretch.from..stretch.taken.unwrap_or(stretch.refused);
        let length = window.end.saturating_sub(window.start);
        if length >= SHORTEST_NS {
            let felt = family.share(evidence, thread);
            problems.push(Problem {
                thread,
                window,
                kind: ProblemKind::Wait,
                felt,
                owed: felt,
                score: worth(length as f64) * felt,
            });
        }
    };
    for row in 0..handoffs.len() {
        if HandoffKind::from(handoffs.kind[row]) != HandoffKind::FileLock {
            continue;
        }
        let (thread, ts) = (handoffs.thread[row], handoffs.ts[row]);
        let key = (thread, handoffs.object[row]);
        match HandoffStep::from(handoffs.step[row]) {
            HandoffStep::Refused | HandoffStep::Waiting
                if !matches!(handoffs.other[row], NONE) && handoffs.other[row] != thread =>
            {
                let new = Stretch {
                    from: ts,
                    refused: ts,
                    taken: None,
                };
                match kept_out.get_mut(&key) {
                    Some(stretch) if stretch.is_over(ts) => {
                        end(thread, stretch);
                        *stretch = new;
                    }
                    Some(stretch) => (stretch.refused, stretch.taken) = (ts, None),
                    None => drop(kept_out.insert(key, new)),
                }
            }
            HandoffStep::Taken => {
                if let Some(stretch) = kept_out.get_mut(&key) {
                    stretch.taken.get_or_insert(ts);
                }
            }
            HandoffStep::Released => {
                if let Some(stretch) = kept_out.remove(&key) {
                    match stretch.taken {
                        Some(taken) if ts.saturating_sub(taken) > SOON_NS => end(thread, &stretch),
                        _ => drop(kept_out.insert(key, stretch)),
                    }
                }
            }
            _ => {}
        }
    }
    for ((thread, _), stretch) in &kept_out {
        end(*thread, stretch);
    }
    problems
}

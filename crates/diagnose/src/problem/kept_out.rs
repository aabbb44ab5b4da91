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

pub(super) fn find(evidence: &Evidence<'_>, family: &Family) -> Vec<Problem> {
    let handoffs = evidence.handoffs;
    // Since when, and when it was kept out last, by thread and file.
    let mut kept_out: HashMap<(Utid, u64), (u64, u64)> = HashMap::new();
    let mut problems = Vec::new();
    let mut end = |thread: Utid, from: u64, to: u64| {
        if to.saturating_sub(from) >= SHORTEST_NS {
            let felt = family.share(evidence, thread);
            problems.push(Problem {
                thread,
                window: from..to,
                kind: ProblemKind::Wait,
                felt,
                score: worth((to - from) as f64) * felt,
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
                let stretch = kept_out.entry(key).or_insert((ts, ts));
                if ts.saturating_sub(stretch.1) > GIVES_UP_NS {
                    end(thread, stretch.0, stretch.1);
                    *stretch = (ts, ts);
                }
                stretch.1 = ts;
            }
            HandoffStep::Taken => {
                if let Some((from, _)) = kept_out.remove(&key) {
                    end(thread, from, ts);
                }
            }
            _ => {}
        }
    }
    for ((thread, _), (from, to)) in kept_out {
        end(thread, from, to);
    }
    problems
}

//! Threads that were kept from a file's lock: refused it again and again, or made to wait for it.

use hangdog_graph::{Evidence, Wait, WaitKind};
use hangdog_timeline::State;
use hangdog_trace::ids::{NONE, Utid};
use hangdog_trace::words::{HandoffKind, HandoffStep};
use std::collections::HashMap;
use std::ops::Range;

use super::family::Family;
use super::{Problem, ProblemKind, worth};

/// Who is refused and does not ask again for so long has given up.
const GIVES_UP_NS: u64 = 2_000_000_000;
/// Shorter ones are how locks work.
const SHORTEST_NS: u64 = 50_000_000;

/// What is taken is not what was wanted, if more is refused so soon after: locks by fcntl have parts.
const SOON_NS: u64 = 1_000_000;
/// How the detail of a handoff tells a lock by flock, which has none.
const FORM: Range<u32> = 8..16;
const FLOCK: u64 = 1;

/// A time in which a thread was kept out.
struct Stretch {
    from: u64,
    /// When it was refused last.
    refused: u64,
    /// When it got a lock of the file.
    taken: Option<u64>,
    /// It may have got a part of what it wanted.
    has_parts: bool,
}

impl Stretch {
    fn is_over(&self, ts: u64) -> bool {
        match self.taken {
            Some(taken) => !self.has_parts || ts.saturating_sub(taken) > SOON_NS,
            None => ts.saturating_sub(self.refused) > GIVES_UP_NS,
        }
    }
}

/// From when to when a thread was kept out, with the naps between two tries that the recording cut off.
fn whole(evidence: &Evidence<'_>, thread: Utid, stretch: &Stretch) -> Range<u64> {
    /// Most intervals between a refusal and the nap beside it, in which the thread is not blocked.
    const NEAR: usize = 8;
    let intervals = evidence.timeline.intervals(thread);
    let nap = |at: usize| {
        let interval = intervals.get(at)?;
        let is_blocked = interval.state == State::Blocked;
        let wait = is_blocked.then(|| Wait::new(evidence, thread, &interval))?;
        Some((wait.kind == WaitKind::Sleep).then_some(wait))
    };
    let place = |wait: &Wait| evidence.same_frames(wait.user_stack(evidence));
    let after = |ts: u64| {
        let at = intervals.index_at(ts)?;
        (at..intervals.len()).take(NEAR).find_map(nap)?
    };
    let before = || {
        let at = intervals.index_at(stretch.from)?;
        (0..at).rev().take(NEAR).find_map(nap)?
    };
    let is_first = |nap: &Wait| {
        nap.start == 0 && after(stretch.from).is_some_and(|next| place(&next) == place(nap))
    };
    let lasts = |nap: &Wait| nap.end >= evidence.timeline.end();
    let begin = before()
        .filter(is_first)
        .map_or(stretch.from, |nap| nap.start);
    let end = stretch.taken.unwrap_or_else(|| {
        let last = after(stretch.refused).filter(lasts);
        last.map_or(stretch.refused, |nap| nap.end)
    });
    begin..end
}

pub(super) fn find(evidence: &Evidence<'_>, family: &Family) -> Vec<Problem> {
    let handoffs = evidence.handoffs;
    let mut kept_out: HashMap<(Utid, u64), Stretch> = HashMap::new();
    let mut problems = Vec::new();
    let mut end = |thread: Utid, stretch: &Stretch| {
        let window = whole(evidence, thread, stretch);
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
                many: None,
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
                let form = handoffs.detail[row] >> FORM.start & ((1 << FORM.len()) - 1);
                let new = Stretch {
                    from: ts,
                    refused: ts,
                    taken: None,
                    has_parts: form != FLOCK,
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
                        Some(_) if stretch.is_over(ts) => end(thread, &stretch),
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

//! Which thread stands for a program: its first, or the one whose end that only waits for, as Java's
//! launcher does.

use hangdog_timeline::{Cause, State};
use hangdog_trace::Thread;
use hangdog_trace::ids::Utid;
use std::collections::HashMap;
use std::ops::Range;

use crate::evidence::Evidence;
use crate::marks::Mark;
use crate::wait::{Wait, WaitKind};

impl Evidence<'_> {
    /// Whether a thread stands for its program: it is the first, or the one whose end that awaits.
    pub fn stands_for_program(&self, thread: Utid) -> bool {
        let known = self.threads.thread(thread);
        match known.is_main() {
            true => !self.joined().contains_key(&thread),
            false => self.joined().values().any(|&joined| joined == thread),
        }
    }

    /// The thread whose end a program's first thread does nothing but wait for.
    pub fn joined_by(&self, first: Utid) -> Option<Utid> {
        self.joined().get(&first).copied()
    }

    /// A thread's life without a wait in front of it of which the trace saw no beginning: that of a
    /// command for its recording to begin, or of a thread that was there before.
    pub fn seen_life(&self, thread: Utid) -> Range<u64> {
        let life = self.timeline.life(thread);
        match self.timeline.intervals(thread).get(0) {
            Some(first) if first.state == State::Blocked && first.cause == Cause::Unknown => {
                first.end..life.end
            }
            _ => life,
        }
    }

    fn joined(&self) -> &HashMap<Utid, Utid> {
        self.memo.joined.get_or_init(|| joined(self))
    }
}

/// The threads that stand for a program though they are not its first, by the first.
fn joined(evidence: &Evidence<'_>) -> HashMap<Utid, Utid> {
    evidence
        .threads
        .iter()
        .filter(|thread| thread.is_main() && !thread.is_kernel())
        .filter_map(|thread: &Thread| Some((thread.utid, only_joins(evidence, thread.utid)?)))
        .collect()
}

/// A thread with more intervals than this does more than wait for another's end.
const MOST_INTERVALS: usize = 10_000;

/// The thread whose end another waits for in nearly all of its life, or for most of it and in nearly all of
/// that thread's, as a launcher does that first loads what is to run.
fn only_joins(evidence: &Evidence<'_>, thread: Utid) -> Option<Utid> {
    let life = evidence.seen_life(thread);
    let mut waited: HashMap<Utid, u64> = HashMap::new();
    let intervals = evidence.timeline.intervals(thread);
    if intervals.len() > MOST_INTERVALS {
        return None;
    }
    for interval in intervals.iter() {
        // A signal cuts a wait in two.
        if interval.state == State::Blocked {
            let wait = Wait::new(evidence, thread, &interval);
            // A script's join says less: its threads are known by what they run.
            if let (WaitKind::Condition, Some(joined)) = (wait.kind, wait.holder)
                && !evidence.shows(wait.user_stack(evidence), Mark::Joins)
            {
                let waited = waited.entry(joined).or_default();
                *waited = waited.saturating_add(wait.duration());
            }
        }
    }
    let most = waited.into_iter().max_by_key(|&(joined, ns)| (ns, joined));
    let (joined, ns) = most?;
    let is_most = ns >= (life.end - life.start) / 2;
    let only_joins =
        is_nearly_all(ns, &life) || is_most && is_nearly_all(ns, &evidence.timeline.life(joined));
    only_joins.then_some(joined)
}

/// Whether so much of a life is nearly all of it.
pub fn is_nearly_all(ns: u64, life: &Range<u64>) -> bool {
    const NEARLY_ALL: f64 = 0.9;
    ns as f64 >= NEARLY_ALL * (life.end - life.start) as f64
}

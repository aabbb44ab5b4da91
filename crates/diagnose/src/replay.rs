//! What if: when the problem would have ended without its root cause.
//!
//! The problem is played again. Each thread goes through what it did, at its own pace, except that
//! what the root is to blame for takes no time; a wait for another thread ends when that thread
//! comes to the point at which it ended it, which may be earlier now, and not before. So what was
//! hidden behind the root shows: a second cause that ended at the same moment keeps the problem as
//! long as it was. This is the idea of causal profiling (Curtsinger and Berger, "Coz", 2015),
//! applied to a recorded run instead of a running one.
//!
//! It ends: a wake lies in the past of the wait that it ends, so each question goes to an earlier
//! moment; a thread's answers are kept.

use hangdog_graph::edge::ended_by;
use hangdog_graph::{Evidence, Source};
use hangdog_trace::ids::Utid;
use std::collections::HashMap;
use std::ops::Range;

use crate::blame::Blame;
use crate::problem::Problem;
use crate::stretch::{Stretch, Waiting, each_stretch};
use crate::suspect::Suspect;

/// Shorter waits than this part of the problem take as long as they did.
const RESOLUTION: u64 = 2_000;
/// No real program has a chain this long.
const DEEPEST: usize = 64;
/// A thread with more stretches than this is not played: its time stays what it was, and where it
/// is the root's or the problem's own, what is laid to the root is taken off as it is.
const MOST_STRETCHES: usize = 200_000;

/// How long the problem would have lasted had `suspect` taken no time for what it is to blame for.
pub(crate) fn without(
    evidence: &Evidence<'_>,
    problem: &Problem,
    blame: &Blame,
    suspect: &Suspect,
) -> u64 {
    let window = &problem.window;
    let is_too_much = |&thread: &Utid| {
        let intervals = evidence.timeline.intervals(thread);
        intervals.indexes(window.start, window.end).len() > MOST_STRETCHES
    };
    if [problem.thread, suspect.thread].iter().any(is_too_much) {
        return problem.duration().saturating_sub(suspect.time);
    }
    let mut removed: HashMap<Utid, Vec<Range<u64>>> = HashMap::new();
    for piece in &blame.pieces {
        if piece.thread == suspect.thread {
            // What is laid to a thread on behalf of another was taken where the step was.
            let wait = piece.wait.as_ref();
            let of = wait.map_or(piece.thread, |(waiting, _)| waiting.wait.thread);
            let windows = removed.entry(of).or_default();
            windows.extend(piece.parts.iter().cloned());
        }
    }
    for windows in removed.values_mut() {
        windows.sort_by_key(|window| window.start);
    }
    let mut replay = Replay {
        evidence,
        start: problem.window.start,
        finest: problem.duration() / RESOLUTION,
        removed,
        believed: believed(blame),
        played: HashMap::new(),
        depth: 0,
    };
    let end = replay.moment(problem.thread, problem.window.end);
    end.saturating_sub(problem.window.start)
        .min(problem.duration())
}

fn believed(blame: &Blame) -> HashMap<(Utid, u64), (Utid, Option<usize>)> {
    let reached = blame.steps.iter().filter_map(|step| step.reached.as_ref());
    let pairs = reached.filter_map(|(waiting, edge)| match edge.source {
        Source::Thread(by) => Some(((waiting.wait.thread, waiting.from), (by, edge.wake))),
        _ => None,
    });
    pairs.collect()
}

/// What a thread did up to a moment, with when it then did it.
struct Played {
    /// Moments as they were and as they are now, ascending.
    points: Vec<(u64, u64)>,
}

struct Replay<'a, 'e> {
    evidence: &'a Evidence<'e>,
    start: u64,
    finest: u64,
    /// What takes no time now, by thread, ascending.
    removed: HashMap<Utid, Vec<Range<u64>>>,
    /// Who is believed to have ended a wait, by who waited since when.
    believed: HashMap<(Utid, u64), (Utid, Option<usize>)>,
    played: HashMap<Utid, Played>,
    depth: usize,
}

impl Replay<'_, '_> {
    /// When `thread` now comes to what it did at `at`.
    fn moment(&mut self, thread: Utid, at: u64) -> u64 {
        let (start, evidence) = (self.start, self.evidence);
        if at <= start || self.depth == DEEPEST {
            return at;
        }
        let (mut was, mut now) = match self.played.get(&thread) {
            Some(played) => {
                let next = played.points.partition_point(|&(was, _)| was <= at);
                let known = played.points[..next]
                    .last()
                    .copied()
                    .unwrap_or((start, start));
                if next < played.points.len() || known.0 == at {
                    // Within a stretch the pace is what it was, up to its end.
                    let end = played.points.get(next).map_or(known.1, |&(_, now)| now);
                    return known.1.saturating_add(at - known.0).min(end.max(known.1));
                }
                known
            }
            None => {
                let played = Played {
                    points: vec![(start, start)],
                };
                self.played.insert(thread, played);
                (start, start)
            }
        };
        let intervals = evidence.timeline.intervals(thread);
        if intervals.indexes(was, at).len() > MOST_STRETCHES {
            return now.saturating_add(at.saturating_sub(was));
        }
        let mut stretches = Vec::new();
        each_stretch(evidence, thread, was..at, |stretch| stretches.push(stretch));
        self.depth += 1;
        for stretch in stretches {
            let (from, to) = match &stretch {
                Stretch::Busy(interval) => (interval.start, interval.end),
                Stretch::Waiting(waiting) => (waiting.from, waiting.to),
            };
            // Before its birth a thread did nothing that could be earlier.
            now = now.saturating_add(from.saturating_sub(was));
            let takes = (to - from) - self.removed_of(thread, from, to);
            now = match stretch {
                Stretch::Waiting(waiting) if to - from >= self.finest => {
                    match self.ended(&waiting) {
                        Some((waker, wake)) if takes == to - from => {
                            // Nobody ended it in time: then when all was done that it waited for.
                            let woken = wake.map_or(to, |wake| evidence.wakes.ts[wake].min(to));
                            now.max(self.moment(waker, woken))
                        }
                        _ => now.saturating_add(takes),
                    }
                }
                _ => now.saturating_add(takes),
            };
            was = to;
            if let Some(played) = self.played.get_mut(&thread)
                && played.points.last().is_none_or(|&(last, _)| last < to)
            {
                played.points.push((to, now));
            }
        }
        self.depth -= 1;
        now.saturating_add(at.saturating_sub(was))
    }

    /// The thread that ended a wait, and by which wake.
    fn ended(&self, waiting: &Waiting) -> Option<(Utid, Option<usize>)> {
        let wait = (waiting.wait.thread, waiting.from);
        self.believed.get(&wait).copied().or_else(|| {
            let edge = ended_by(self.evidence, &waiting.wait, waiting.wake);
            match (edge.source, edge.wake) {
                (Source::Thread(waker), Some(wake)) => Some((waker, Some(wake))),
                _ => None,
            }
        })
    }

    /// How much of a thread's time from `from` to `to` takes no time now.
    fn removed_of(&self, thread: Utid, from: u64, to: u64) -> u64 {
        let Some(windows) = self.removed.get(&thread) else {
            return 0;
        };
        let first = windows.partition_point(|window| window.end <= from);
        windows[first..]
            .iter()
            .take_while(|window| window.start < to)
            .map(|window| window.end.min(to) - window.start.max(from))
            .sum::<u64>()
            .min(to - from)
    }
}

//! What if: when the problem would have ended without its root cause.
//!
//! The problem is played again. Each thread goes through what it did, at its own pace, except that
//! what the root is to blame for takes no time; a wait for another thread ends when that thread
//! comes to the point at which it ended it, which may be earlier now, and not before. So what was
//! hidden behind the root shows: a second cause that ended at the same moment keeps the problem as
//! long as it was. This is the idea of causal profiling (Curtsinger and Berger, "Coz", 2015),
//! applied to a recorded run instead of a running one.
//!
//! A server takes what comes in the order in which it comes: where its event loop waited for the next
//! request, it goes on when that comes now, whatever came to it before.
//!
//! It ends: a wake lies in the past of the wait that it ends, so each question goes to an earlier
//! moment; a thread's answers are kept.

use hangdog_graph::{EdgeKind, Evidence, Source, WaitKind};
use hangdog_trace::ids::{IDLE, Utid};
use std::collections::HashMap;
use std::ops::Range;

use crate::blame::Blame;
use crate::kind::BlameKind;
use crate::owed::is_home;
use crate::problem::Problem;
use crate::stretch::{Stretch, Waiting, each_stretch};
use crate::suspect::Suspect;
use crate::walk::maker;

/// Shorter waits than this part of the problem take as long as they did.
const RESOLUTION: u64 = 2_000;
/// No real program has a chain this long.
const DEEPEST: usize = 64;
/// A thread with more intervals than this is not played: its time stays what it was, and where it
/// is the root's or the problem's own, what is attributed to the root is taken off as it is.
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
    // Threads that did one after the other what they may do in any order would have passed the lock on in
    // another order too, which is not played. What one of many did came after what the other did.
    if !suspect.alike.is_empty() || problem.many.is_some() {
        return problem.duration().saturating_sub(suspect.time_of_class);
    }
    let is_thinned = (blame.pieces_of(suspect)).any(|piece| piece.parts.stands_for() > 1.0);
    if is_thinned || [problem.thread, suspect.thread].iter().any(is_too_much) {
        return problem.duration().saturating_sub(suspect.time);
    }
    let mut removed: HashMap<Utid, Vec<Range<u64>>> = HashMap::new();
    let mut stopped = Vec::new();
    for piece in &blame.pieces {
        if blame.answerable(piece) == suspect.thread {
            // What is attributed to a thread on behalf of another was taken where the step was.
            let wait = piece.wait.as_ref();
            let of = wait.map_or(piece.thread, |(waiting, _)| waiting.wait.thread);
            let windows = removed.entry(of).or_default();
            windows.extend(piece.parts.iter().cloned());
            if piece.kind == BlameKind::Stopped {
                stopped.extend(piece.parts.iter().cloned());
            }
        }
    }
    // A process is stopped as a whole.
    let process = |thread| evidence.threads.thread(thread).upid;
    let of_process = evidence.threads.iter().map(|thread| thread.utid);
    let of_process = of_process.filter(|&other| process(other) == process(suspect.thread));
    for other in of_process.filter(|&other| other != suspect.thread && !stopped.is_empty()) {
        removed
            .entry(other)
            .or_default()
            .extend(stopped.iter().cloned());
    }
    for windows in removed.values_mut() {
        windows.sort_by_key(|window| window.start);
    }
    let mut replay = Replay {
        evidence,
        start: problem.window.start,
        finest: problem.duration() / RESOLUTION,
        removed_until: removed
            .values()
            .flatten()
            .map(|it| it.end)
            .max()
            .unwrap_or(0),
        removed,
        believed: believed(blame),
        played: HashMap::new(),
        depth: 0,
        asked: problem.window.start,
    };
    let end = replay.moment(problem.thread, problem.window.end);
    end.saturating_sub(problem.window.start)
        .min(problem.duration())
}

fn believed(blame: &Blame) -> HashMap<Utid, Vec<Believed>> {
    let mut believed: HashMap<Utid, Vec<Believed>> = HashMap::new();
    for step in blame.steps.iter().filter(|step| step.times == 1) {
        if let Some((waiting, edge)) = &step.reached
            && let Source::Thread(by) = edge.source
            // Who made the one who ended it only comes before it, which its birth tells.
            && edge.kind != EdgeKind::Fork
        {
            let of_thread = believed.entry(waiting.wait.thread).or_default();
            of_thread.push((waiting.from..waiting.to, (by, edge.wake)));
        }
    }
    for of_thread in believed.values_mut() {
        of_thread.sort_by_key(|(window, _)| window.start);
    }
    believed
}

/// When a wait was, and who is believed to have ended it, by which wake.
type Believed = (Range<u64>, (Utid, Option<usize>));

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
    /// When the last of it ended.
    removed_until: u64,
    /// Who is believed to have ended a wait, by who waited, in the order of time.
    believed: HashMap<Utid, Vec<Believed>>,
    played: HashMap<Utid, Played>,
    depth: usize,
    /// When the thread that waits for the one that is played now begins to wait.
    asked: u64,
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
                    // Within an interval the pace is what it was, up to its end.
                    let end = played.points.get(next).map_or(known.1, |&(_, now)| now);
                    return known.1.saturating_add(at - known.0).min(end.max(known.1));
                }
                known
            }
            None => {
                let known = self.began(thread);
                if at <= known.0 {
                    return at;
                }
                let points = vec![known];
                self.played.insert(thread, Played { points });
                known
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
            let takes = (to - from) - self.removed_of(thread, from, to);
            now = match stretch {
                Stretch::Waiting(waiting) if to - from >= self.finest && takes > 0 => {
                    self.waited(&waiting, now, takes)
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

    /// When a wait that now begins at `now` ends, of which `takes` ns are not the root's.
    fn waited(&mut self, waiting: &Waiting, now: u64, takes: u64) -> u64 {
        let (evidence, to) = (self.evidence, waiting.to);
        let as_long = now.saturating_add(takes);
        // Of an event loop that others wait for it is the next request.
        let is_next = self.depth > 1 && is_home(evidence, &waiting.wait);
        let Some((waker, wake)) = self.ended(waiting) else {
            // If the trace does not show whose request it was, the thread that waits for it made it.
            return match is_next {
                true => self.asked.min(as_long),
                false => as_long,
            };
        };
        // Nobody ended it in time: then when all was done that it waited for. One that looked again and again
        // found that after its last pause.
        let pause = match waiting.timed_out {
            0 => 0,
            _ => (to - waiting.from) / waiting.parts.max(1) as u64,
        };
        let woken = wake.map_or(to - pause, |wake| evidence.wakes.ts[wake].min(to));
        // Of what nobody ended it is not known what was to come after the root: that takes as long as it did.
        let after = match wake {
            None => woken.saturating_sub(self.removed_until),
            Some(_) => 0,
        };
        let asked = std::mem::replace(&mut self.asked, now);
        let brought = self.moment(waker, woken - after).saturating_add(after);
        self.asked = asked;
        let end = if is_next { brought } else { brought.max(now) };
        // A lock may be had in another order; of what is the root's a part takes no time.
        let is_root = takes < to - waiting.from;
        match waiting.wait.kind == WaitKind::Lock || is_root {
            true => end.min(as_long),
            false => end,
        }
    }

    /// When what a thread did begins, and when it begins now: with the problem, or when its maker
    /// comes to make it.
    fn began(&mut self, thread: Utid) -> (u64, u64) {
        let born = self.evidence.timeline.life(thread).start;
        if born <= self.start {
            return (self.start, self.start);
        }
        let now = maker(self.evidence, thread).map(|maker| {
            self.depth += 1;
            let now = self.moment(maker, born);
            self.depth -= 1;
            now
        });
        (born, now.unwrap_or(born))
    }

    /// The thread that ended a wait, and by which wake.
    fn ended(&self, waiting: &Waiting) -> Option<(Utid, Option<usize>)> {
        let of_thread = self.believed.get(&waiting.wait.thread);
        let believed = of_thread.and_then(|of_thread| {
            let behind = of_thread.partition_point(|(window, _)| window.start <= waiting.from);
            let (window, by) = of_thread[..behind].last()?;
            (waiting.from < window.end).then_some(*by)
        });
        // Otherwise who woke it, whether or not that brought what it waited for: so it went on.
        believed.or_else(|| {
            let wake = waiting.wake.filter(|&wake| self.evidence.is_own(wake))?;
            let waker = self.evidence.wakes.waker[wake];
            (waker != IDLE && waker != waiting.wait.thread).then_some((waker, Some(wake)))
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

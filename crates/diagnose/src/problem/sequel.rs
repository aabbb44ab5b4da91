//! Intervals of one thread that belong together: pieces of one wait or of one turn of an event loop, which are
//! joined, and repeats of the same problem, which count together.

use hangdog_graph::{Evidence, Mark, Wait, WaitKind};
use hangdog_timeline::State;
use hangdog_trace::ids::Utid;
use std::collections::HashMap;
use std::ops::Range;

use super::chained::{Chained, main_wait};
use super::family::Family;
use super::finder::is_between_naps;
use super::{ManyWaits, Problem, ProblemKind, STANDS_OUT, ns_worth, worth};

/// Joins what is one interval but for a moment in which a thread took up again what it was kept from: it
/// asked once more, or had what little had come.
pub(super) fn join_sequels(
    evidence: &Evidence<'_>,
    family: &Family,
    mut all: Vec<Chained>,
) -> Vec<Chained> {
    all.sort_by_key(|one| (one.problem.thread, one.problem.window.start));
    // With the longest of the pieces that each consists of, ns.
    let mut joined: Vec<(Chained, u64)> = Vec::new();
    for next in all {
        let length = next.problem.duration();
        // What the thread computed in between stands before it.
        let mut before = (joined.iter_mut().rev())
            .take_while(|(last, _)| last.problem.thread == next.problem.thread);
        let goes_on = before.find(|(last, longest)| {
            last.goes_on_in(evidence, &next, *longest) || last.is_one_turn(evidence, family, &next)
        });
        match goes_on {
            Some((last, longest)) => {
                *longest = length.max(*longest);
                last.append(next);
            }
            None => joined.push((next, length)),
        }
    }
    joined.into_iter().map(|(one, _)| one).collect()
}

/// What comes again and again is as bad as all of it together: the worst of a thread's problems that have the
/// same thread at their end counts for those that are nearly as long, too.
pub(super) fn sum_repeats(evidence: &Evidence<'_>, kept: &mut [Chained]) {
    const ALIKE: f64 = 0.5;
    /// So many count: what comes more often is how the thread works.
    const MOST: usize = 16;
    let mut sums: HashMap<(Utid, ProblemKind, Utid), (f64, Vec<f64>)> = HashMap::new();
    for chained in kept.iter() {
        let problem = &chained.problem;
        if let Some(repeats) = chained.repeats(evidence)
            && problem.felt > 0.0
        {
            let ns = ns_worth(problem.score / problem.felt);
            let (longest, all) = sums.entry(repeats).or_insert((ns, Vec::new()));
            if ns >= ALIKE * *longest && all.len() < MOST {
                all.push(ns);
            }
        }
    }
    for chained in kept.iter_mut() {
        let repeats = chained.repeats(evidence);
        if let Some((_, all)) = repeats.and_then(|repeats| sums.remove(&repeats)) {
            chained.problem.score = worth(all.iter().sum()) * chained.problem.felt;
        }
    }
    kept.sort_by(|a, b| b.problem.score.total_cmp(&a.problem.score));
}

impl Chained {
    /// Whether another follows this one at once, at the same thread and by the same cause. A turn that took much
    /// longer than those before it, or than the one before, stands out: `longest` is the longest piece of this
    /// one, ns.
    fn goes_on_in(&self, evidence: &Evidence<'_>, next: &Chained, longest: u64) -> bool {
        const SHORTEST_NS: u64 = 5_000_000;
        const GAP_PART: u64 = 20;
        const GAP_PART_WITHIN: u64 = 5;
        // Where one thread of a program hands on to another, a turn so many times as long is another matter.
        const FAR: u64 = 50;
        let (own, other) = (&self.problem, &next.problem);
        let Some(gap) = other.window.start.checked_sub(own.window.end) else {
            return false;
        };
        if own.thread != other.thread
            || own.kind != other.kind
            || !matches!(own.kind, ProblemKind::Wait | ProblemKind::Turn)
            || own.many.is_some()
            || other.many.is_some()
            || own.duration().min(other.duration()) < SHORTEST_NS
        {
            return false;
        }
        let wait = |problem: &Problem| {
            let waiting = main_wait(evidence, problem.thread, problem.window.clone());
            waiting.map(|waiting| waiting.wait)
        };
        // What holds up a program from within does so again as soon as it goes on.
        let is_within = |problem: &Problem| {
            wait(problem)
                .is_some_and(|it| it.kind == WaitKind::Condition && it.is_within_process(evidence))
        };
        let is_short = |part: u64| gap <= (own.duration() + other.duration()) / part;
        let follows =
            is_short(GAP_PART) || is_short(GAP_PART_WITHIN) && is_within(own) && is_within(other);
        if !follows {
            return false;
        }
        let length = other.duration();
        let (shorter, longer) = (longest.min(length), longest.max(length));
        let is_own = |problem: &Problem| {
            wait(problem).is_some_and(|it| {
                matches!(it.kind, WaitKind::Condition | WaitKind::Lock)
                    && it.is_within_process(evidence)
            })
        };
        if longer >= shorter.saturating_mul(FAR) && (is_own(own) || is_own(other)) {
            return false;
        }
        let stands_out = longer >= shorter.saturating_mul(STANDS_OUT);
        let between = own.window.end..other.window.start;
        let got_something = || {
            let got = evidence.received(own.thread, between.start, between.end);
            got.is_some()
        };
        if stands_out && (got_something() || ends_turn(evidence, own.thread, between.clone())) {
            return false;
        }
        // One disk is slow throughout. Which of the kernel's threads takes part in writing is nobody's choice.
        let is_disk = |one: &Chained| {
            let is_kernel = |thread: Utid| evidence.threads.thread(thread).is_kernel();
            one.awaits_disk && one.links.iter().all(|link| is_kernel(link.thread))
        };
        if is_disk(self) && is_disk(next) {
            return true;
        }
        // What comes through a pipe came: the next piece of it is another.
        let is_piece = |wait: Option<Wait>| {
            wait.is_some_and(|it| it.kind == WaitKind::Message && it.object(evidence).is_pipe())
        };
        let streams = is_piece(wait(own)) || is_piece(wait(other));
        match (self.links.last(), next.links.last()) {
            _ if streams => false,
            (Some(a), Some(b)) => a.thread == b.thread,
            _ => false,
        }
    }

    /// Whether another is of the same turn of the event loop of a program with a window: whatever it did and
    /// waited for, it did not come back in between.
    fn is_one_turn(&self, evidence: &Evidence<'_>, family: &Family, next: &Chained) -> bool {
        let (own, other) = (&self.problem, &next.problem);
        let gap = own.window.end..other.window.start;
        own.thread == other.thread
            && own.kind == ProblemKind::Turn
            && other.kind == ProblemKind::Turn
            && gap.start <= gap.end
            && gap.end - gap.start <= own.duration() + other.duration()
            && family.is_window(evidence, own.thread)
            && !comes_round(evidence, own.thread, gap)
    }

    /// Takes in the one that follows.
    fn append(&mut self, next: Chained) {
        let window = self.problem.window.start..next.problem.window.end;
        let felt = match self.problem.kind {
            // Whatever it did in its turn, it is one turn.
            ProblemKind::Turn => self.problem.felt.max(next.problem.felt),
            _ => 0.0,
        };
        let many = self.problem.many.take();
        let many = ManyWaits::joined(many, next.problem.many.as_ref(), window.clone());
        if next.problem.duration() > self.problem.duration() {
            *self = next;
        }
        let problem = &mut self.problem;
        problem.many = many;
        let longer = worth((window.end - window.start) as f64);
        problem.score *= longer / worth(problem.duration() as f64);
        if felt > problem.felt && problem.felt > 0.0 {
            problem.score *= felt / problem.felt;
            (problem.felt, problem.owed) = (felt, problem.owed.max(felt));
        }
        problem.window = window;
    }

    /// What a problem has in common with those that are the same again: whose it is, and who is at its end.
    /// What a thread computes comes again only where it works at a pace.
    fn repeats(&self, evidence: &Evidence<'_>) -> Option<(Utid, ProblemKind, Utid)> {
        let Problem { thread, kind, .. } = self.problem;
        match (self.links.last(), kind) {
            (Some(last), ProblemKind::Wait | ProblemKind::Request) => {
                Some((thread, kind, last.thread))
            }
            (None, ProblemKind::Turn)
                if is_between_naps(evidence, thread, &self.problem.window) =>
            {
                Some((thread, kind, thread))
            }
            _ => None,
        }
    }
}

/// Whether a thread sleeps or waits for a message within a time: then what came before may have been done.
fn ends_turn(evidence: &Evidence<'_>, thread: Utid, window: Range<u64>) -> bool {
    let mut parts = evidence.timeline.between(thread, window.start, window.end);
    parts.any(|part| {
        part.state == State::Blocked
            && matches!(
                Wait::new(evidence, thread, &part).kind,
                WaitKind::Poll
                    | WaitKind::Sleep
                    | WaitKind::Timer
                    | WaitKind::Idle
                    | WaitKind::Message
            )
    })
}

/// Whether a thread waits for its next turn within a time. In the middle of an event it waits for something
/// else.
fn comes_round(evidence: &Evidence<'_>, thread: Utid, window: Range<u64>) -> bool {
    let mut parts = evidence.timeline.between(thread, window.start, window.end);
    parts.any(|part| {
        let is_round = || {
            let wait = Wait::new(evidence, thread, &part);
            matches!(
                wait.kind,
                WaitKind::Poll | WaitKind::Sleep | WaitKind::Timer | WaitKind::Idle
            ) && !evidence.shows(wait.user_stack(evidence), Mark::AmidEvent)
        };
        part.state == State::Blocked && is_round()
    })
}

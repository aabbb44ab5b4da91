//! Intervals that are one problem: a thread that waits, and those that it waits for.
//!
//! A freeze is found once at each thread that it holds up, and where its cause runs. What somebody
//! feels is at the end of the chain: the one that asked. So of two intervals of which one waits for
//! the other, that one stays which waits; of several that wait for the same thread, the first.
//! Whoever only started a program and waits for its end did not ask for a part of what it does:
//! then the program's own interval stays.

use hangdog_graph::Evidence;
use hangdog_graph::owed::is_descendant;
use hangdog_trace::ids::Utid;
use rayon::prelude::*;

use super::chained::{Chained, Link, MAIN_SHARE, SAME_TIME, is_as_long, is_one_time, overlap};
use super::family::Family;
use super::sequel::{join_sequels, sum_repeats};
use super::starter::{is_shell, of_starter, sleeps_meanwhile};
use super::{Problem, ProblemKind, start_up};
use crate::owed::ASKED;

/// So many of the worst are held against each other.
const MOST: usize = 64;

/// Who asked stands for who was asked if it suffers at least so much of what that does.
const AS_MUCH: f64 = 0.5;
/// A program that waits for a thread of its own several times stands for it from this share on: a wait that was as long
/// as those before is no problem, and does not count.
const IN_TURNS: f64 = 0.3;

/// The problems that are left of `problems`, which are sorted, the worst first.
/// Of programs that somebody `named`, the wait for their own work is felt.
pub(super) fn merge(
    evidence: &Evidence<'_>,
    family: &Family,
    problems: Vec<Problem>,
    named: bool,
) -> Vec<Problem> {
    let mut kept: Vec<Chained> = Vec::new();
    let mut all: Vec<Chained> = problems
        .into_par_iter()
        .take(MOST)
        .map(|problem| Chained::new(evidence, family, problem, named))
        .collect();
    all = join_sequels(evidence, family, all);
    for Chained { problem, .. } in &mut all {
        let left = start_up::felt(evidence, family, problem);
        problem.felt *= left;
        problem.score *= left;
    }
    all.sort_by(|a, b| b.problem.score.total_cmp(&a.problem.score));
    let held_up: Vec<u64> = all.iter().map(|of| of.holds_up(evidence, &all)).collect();
    for (chained, held_up) in all.iter_mut().zip(held_up) {
        chained.holds_up = held_up;
    }
    for new in all {
        if kept
            .iter()
            .any(|old| old.is_same(&new) || old.has_piece(evidence, &new))
        {
            continue;
        }
        if let Some(old) = kept
            .iter_mut()
            .find(|old| old.is_felt && old.waits_for(&new))
        {
            if old.only_started(&new) && new.says_more_than(old)
                || new.is_loop_of_reader(evidence, old)
                || old.serves(evidence, &new) && new.suffers_itself(evidence)
            {
                old.replace(new);
            }
            continue;
        }
        if let Some(old) = kept.iter_mut().find(|old| new.waits_for(old)) {
            let started_shell = new.started_shell(evidence, old);
            let in_turns = new.is_held_up_in_turns_by(evidence, old);
            let is_head = (new.is_felt_like(old)
                || new.is_felt && new.only_asked(old)
                || old.stopped_most_of(&new)
                    && !new.only_may_wait_for(old)
                    && !new.passes_on(evidence)
                || new.is_program_of(evidence, old)
                || in_turns
                || new.is_kept_waiting_by_turn(evidence, family, old)
                || started_shell)
                && !old.is_loop_of_reader(evidence, &new)
                && !(new.serves(evidence, old) && old.suffers_itself(evidence));
            // Nobody asked that one to have its lock for so long.
            let is_kept_out = (new.link_to(old)).is_some_and(|link| new.links[link].by_lock);
            let is_long = in_turns
                || match old.suffers_itself(evidence) && !is_kept_out {
                    true => is_as_long(&new.problem.window, &old.problem.window),
                    false => new.takes_much_of(&old.problem),
                };
            let is_starter = started_shell || new.is_as_long_as(evidence, old);
            if is_head && is_long && (!new.only_started(old) || is_starter) {
                old.replace(new);
            }
            continue;
        }
        match kept.iter_mut().find(|old| old.ends_alike(&new)) {
            Some(old) if old.links.iter().all(|link| link.is_started) => {
                if new.says_more_than(old) {
                    old.replace(new);
                }
            }
            // One that may be idle stands for none to which something was owed.
            Some(old) if old.problem.may_be_idle() && !new.problem.may_be_idle() => {
                old.replace(new);
            }
            Some(old) if new.is_locked_out_by_work_of(old) => old.replace(new),
            Some(old)
                if new.is_felt
                    && old.is_guess()
                    && !new.is_guess()
                    && new.takes_much_of(&old.problem) =>
            {
                old.replace(new);
            }
            Some(_) => {}
            None => kept.push(new),
        }
    }
    sum_repeats(evidence, &mut kept);
    let mut merged: Vec<Problem> = Vec::new();
    for chained in kept {
        let problem = match named {
            true => chained.problem,
            false => of_starter(evidence, chained.problem, |_| false),
        };
        let is_same = |other: &Problem| other.thread == problem.thread && other.overlaps(&problem);
        if !merged.iter().any(is_same) {
            merged.push(problem);
        }
    }
    merged
}

impl Chained {
    /// Puts another in the place of this one.
    fn replace(&mut self, other: Chained) {
        let Problem {
            score, felt, owed, ..
        } = self.problem;
        let stopped = self.stopped.take();
        *self = other;
        self.stopped = self.stopped.take().or(stopped);
        self.problem.score = score;
        self.problem.felt = self.problem.felt.max(felt);
        self.problem.owed = self.problem.owed.max(owed);
    }

    /// Whether it is a program's own wait for most of the time of another problem, that of whoever only
    /// started the program.
    fn says_more_than(&self, starter: &Chained) -> bool {
        self.is_felt && self.waits_itself() && self.takes_much_of(&starter.problem)
    }

    /// Whether it is the wait of a program to which something is surely owed: who waits for that, and not as long,
    /// suffers less.
    fn suffers_itself(&self, evidence: &Evidence<'_>) -> bool {
        self.problem.kind == ProblemKind::Wait
            && self.problem.owed >= ASKED
            && evidence.stands_for_program(self.problem.thread)
    }

    /// Whether it lasts for a good part of another problem's time.
    fn takes_much_of(&self, other: &Problem) -> bool {
        self.problem.duration() as f64 >= AS_MUCH * other.duration() as f64
    }

    fn is_same(&self, other: &Chained) -> bool {
        self.problem.thread == other.problem.thread && self.problem.overlaps(&other.problem)
    }

    /// Whether another is what one of many did that were asked or started for pieces of this one's work.
    fn has_piece(&self, evidence: &Evidence<'_>, other: &Chained) -> bool {
        let process = |chained: &Chained| evidence.threads.thread(chained.problem.thread).upid;
        let (own, other_process) = (process(self), process(other));
        let Some(many) = &self.problem.many else {
            return false;
        };
        own != other_process
            && overlap(&self.problem.window, &other.problem.window) as f64
                >= SAME_TIME * other.problem.duration() as f64
            && (many.asked.contains(&other_process) || is_descendant(evidence, other_process, own))
    }

    /// Whether it is a program itself that waits for another thread of it, just as long as that is held up:
    /// directly, or by threads of it alone.
    fn is_program_of(&self, evidence: &Evidence<'_>, other: &Chained) -> bool {
        self.awaits_mate(evidence, other) && is_as_long(&self.problem.window, &other.problem.window)
    }

    /// Whether it is a program itself that waits for another thread of it, directly or by threads of it alone.
    fn awaits_mate(&self, evidence: &Evidence<'_>, mate: &Chained) -> bool {
        let process = |thread: Utid| evidence.threads.thread(thread).upid;
        let own = process(self.problem.thread);
        let is_within = |to: usize| self.links[..=to].iter().all(|it| process(it.thread) == own);
        self.is_felt
            && evidence.stands_for_program(self.problem.thread)
            && self.link_to(mate).is_some_and(is_within)
    }

    /// How long its own program waits for this thread, in turns, ns.
    fn holds_up(&self, evidence: &Evidence<'_>, all: &[Chained]) -> u64 {
        let is_wait = |other: &&Chained| other.problem.kind == ProblemKind::Wait;
        let waits = all.iter().filter(is_wait);
        let held_up = waits.filter(|other| other.awaits_mate(evidence, self));
        held_up.map(|other| other.problem.duration()).sum()
    }

    /// Whether it is one of the times when a program waits for another thread of it, which together are much of
    /// what that thread is held up: nobody feels that but the program, as with a queue that is written in the background.
    fn is_held_up_in_turns_by(&self, evidence: &Evidence<'_>, mate: &Chained) -> bool {
        mate.holds_up as f64 >= IN_TURNS * mate.problem.duration() as f64
            && self.awaits_mate(evidence, mate)
    }

    /// Whether it is the blocked event loop of a program, and the other the wait of a thread of that program
    /// that reads from the display: without the loop's next request, nothing comes.
    fn is_loop_of_reader(&self, evidence: &Evidence<'_>, reader: &Chained) -> bool {
        let process = |thread: Utid| evidence.threads.thread(thread).upid;
        let own = process(self.problem.thread);
        self.is_felt
            && self.problem.kind == ProblemKind::Turn
            && evidence.stands_for_program(self.problem.thread)
            && process(reader.problem.thread) == own
            && reader.links.iter().any(|link| process(link.thread) != own)
            && is_as_long(&self.problem.window, &reader.problem.window)
    }

    /// Whether it surely waits for a turn of an event loop, and directly, just as long as that takes; and the
    /// loop is no window's, at which somebody looks.
    fn is_kept_waiting_by_turn(
        &self,
        evidence: &Evidence<'_>,
        family: &Family,
        turn: &Chained,
    ) -> bool {
        self.is_felt
            && turn.problem.kind == ProblemKind::Turn
            && !family.is_window(evidence, turn.problem.thread)
            && self.link_to(turn) == Some(0)
            && !self.only_may_wait_for(turn)
            && is_as_long(&self.problem.window, &turn.problem.window)
    }

    /// Whether its thread was stopped for most of another one: it did not feel that itself, but whoever asked
    /// it for something did, also through others.
    fn stopped_most_of(&self, other: &Chained) -> bool {
        self.stopped.as_ref().is_some_and(|stopped| {
            overlap(stopped, &other.problem.window) as f64
                >= MAIN_SHARE * other.problem.duration() as f64
        })
    }

    /// Whether it is a relay's, as a display server is one: somebody else asked.
    fn passes_on(&self, evidence: &Evidence<'_>) -> bool {
        evidence.passes_on(evidence.threads.thread(self.problem.thread).upid)
    }

    /// Whether what this one suffers is worth as much as what the other does.
    fn is_felt_like(&self, other: &Chained) -> bool {
        self.is_felt && self.problem.owed >= AS_MUCH * other.problem.owed
    }

    /// Whether a program waits for what it started just as long as that computes, and does so for
    /// somebody: a shell only starts what its user wants.
    fn is_as_long_as(&self, evidence: &Evidence<'_>, other: &Chained) -> bool {
        other.problem.kind != ProblemKind::Wait
            && is_as_long(&self.problem.window, &other.problem.window)
            && !is_shell(evidence, self.problem.thread)
            && !sleeps_meanwhile(evidence, self.problem.thread, self.problem.window.clone())
    }

    /// Whether a program waits for what a shell runs for it, which it started: a person looks at the program.
    fn started_shell(&self, evidence: &Evidence<'_>, other: &Chained) -> bool {
        // Another thread of it may only be there to see the shell end.
        (self.is_felt || evidence.stands_for_program(self.problem.thread))
            && other.problem.kind == ProblemKind::Wait
            && is_shell(evidence, other.problem.thread)
            && !is_shell(evidence, self.problem.thread)
            && self.only_started(other)
            && !sleeps_meanwhile(evidence, self.problem.thread, self.problem.window.clone())
    }

    /// Whether it waits for a lock that a thread has while it does what another one's program asked of it: that
    /// program gets what it asked for, and this one is kept out.
    fn is_locked_out_by_work_of(&self, other: &Chained) -> bool {
        let asked = |link: &Link| link.is_asked && !link.by_lock;
        self.is_felt_like(other)
            && self.takes_much_of(&other.problem)
            && self.links.last().is_some_and(|link| link.by_lock)
            && other.links.iter().all(asked)
    }

    /// Whether both wait for the same thread at the same time.
    fn ends_alike(&self, other: &Chained) -> bool {
        match (self.links.last(), other.links.last()) {
            (Some(a), Some(b)) => a.thread == b.thread && is_one_time(&a.window, &b.window),
            _ => false,
        }
    }
}

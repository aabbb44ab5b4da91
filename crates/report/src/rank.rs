//! In which order a person reads the problems of a trace, once it is known what caused the worst of them.
//!
//! [`problem::find`] orders them by how long each took and how surely it was felt, before anything is
//! explained. The first few are explained then, and weighted by what that shows. Threads that wait for each
//! other come first, and then what was surely felt for long. A cause that is known is read before one that
//! is not. That many programs share the CPUs, each in its turn, is how a busy machine is, and a shell's loop of
//! naps is what somebody chose. What lasted from the recording's begin to its end may be as it should be; it is
//! not if it comes down to something that another thread does.

use hangdog_diagnose::problem::Scope;
use hangdog_diagnose::verdict::{Class, Verdict};
use hangdog_diagnose::{Answers, Problem, diagnose, problem, signature};
use hangdog_graph::{EdgeKind, Evidence};
use hangdog_trace::ids::Utid;
use rayon::prelude::*;
use std::cmp::Ordering;
use std::collections::HashMap;

use crate::case::{Case, Recording};
use crate::repeats::Repeats;

/// So many of the worst are explained.
const LOOKED_AT: usize = 8;
/// What scores less than this share of the worst cannot come before it.
const COMPARABLE: f64 = 0.05;
/// What is left where it is not known what caused it, and it was hardly felt; and where it was.
const UNKNOWN: f64 = 0.25;
const UNKNOWN_BUT_FELT: f64 = 0.8;
/// From so much confidence on, what lasted all along counts like what did not.
const SURE: f64 = 0.8;
/// From so much confidence on, a circle of waits is one.
const CIRCULAR: f64 = 0.3;
/// What is felt less counts as this much where nothing is felt less for being usual.
const LEAST_FELT: f64 = 0.02;
/// What is left of a shell's loop that looks again and again whether something is there, and of pieces that
/// are sent at their own pace.
const NAPS: f64 = 0.1;
/// What is left where hardly anybody felt that a script let time pass.
const CHOSEN: f64 = 0.5;
/// What is left where several threads of a pool computed, as they should.
const IN_PARALLEL: f64 = 0.3;
/// So many other threads make a pool.
const POOL: usize = 2;
/// What is left where it only shared the CPUs.
const SHARED: f64 = 0.3;

/// The verdicts that were needed to find the order, as they are without anybody's answers.
#[derive(Debug, Default)]
pub struct Known(Vec<(Problem, Verdict)>);

impl Known {
    /// How often the problems that were explained have the cause of this verdict; none where they do not repeat.
    pub fn repeats(&self, verdict: &Verdict) -> Option<Repeats> {
        let cause = signature(verdict);
        let alike = (self.0.iter()).filter(|(_, other)| signature(other) == cause);
        let repeats = Repeats::of(alike.map(|(problem, _)| problem.window.clone()));
        (repeats.times > 1).then_some(repeats)
    }

    /// The verdict on a problem, in view of the answers.
    pub fn verdict(
        &self,
        case: &Case,
        evidence: &Evidence<'_>,
        problem: &Problem,
        answers: &Answers,
    ) -> Verdict {
        let mut known = self.0.iter();
        let is_unanswered = answers.iter().len() == 0;
        let known = known.find(|(known, _)| is_unanswered && known == problem);
        match known {
            Some((_, verdict)) => verdict.clone(),
            None => diagnose(evidence, problem, case.setting(answers, None)),
        }
    }
}

/// The problems of a trace, the first to be read first, and what is known of them by then.
pub fn problems(case: &Case, evidence: &Evidence<'_>) -> (Vec<Problem>, Known) {
    explained(
        &case.recording,
        evidence,
        problem::find(evidence, case.scope()),
    )
}

/// The same of the threads that somebody named.
pub fn problems_of(
    recording: &Recording,
    evidence: &Evidence<'_>,
    is_named: impl Fn(Utid) -> bool + Sync,
) -> (Vec<Problem>, Known) {
    let scope = Scope::of(recording.trace.meta());
    let found = problem::find_of(evidence, scope, is_named);
    explained(recording, evidence, found)
}

fn explained(
    recording: &Recording,
    evidence: &Evidence<'_>,
    problems: Vec<Problem>,
) -> (Vec<Problem>, Known) {
    let answers = Answers::default();
    let setting = recording.setting(&answers, None);
    let end = evidence.timeline.end();
    let explain = |problem: &Problem| diagnose(evidence, problem, setting);
    let (problems, verdicts) = ranked(problems, end, explain);
    let known = problems.iter().cloned().zip(verdicts).collect();
    (problems, Known(known))
}

/// The problems in the order that their verdicts give, and those of the first ones, which are felt as their
/// verdicts say; `end` is the trace's.
pub fn ranked(
    problems: Vec<Problem>,
    end: u64,
    explain: impl Fn(&Problem) -> Verdict + Sync,
) -> (Vec<Problem>, Vec<Verdict>) {
    let best = problems.first().map_or(0.0, |worst| worst.score);
    let count = (problems.iter().take(LOOKED_AT))
        .take_while(|problem| problem.score >= COMPARABLE * best)
        .count();
    if count == 0 {
        return (problems, Vec::new());
    }
    let mut rest = problems;
    let later = rest.split_off(count);
    let mut looked_at: Vec<(Weight, Verdict, Problem)> = rest
        .into_par_iter()
        .map(|mut problem| {
            let verdict = explain(&problem);
            let factor = factor(&problem, &verdict, end);
            problem.felt *= factor;
            problem.score *= factor;
            (Weight::of(&problem), verdict, problem)
        })
        .collect();
    add_up_repeats(&mut looked_at);
    let (_, worst, problem) = &looked_at[0];
    let (worst, at_its_pace) = (worst.root.who.tid, is_paced(problem, worst));
    let first = (1..count).fold(0, |first, at| match looked_at[at].0 > looked_at[first].0 {
        true => at,
        false => first,
    });
    // What the worst names as its root speaks for the worst, unless that is as it should be.
    if looked_at[first].1.root.who.tid == worst && !at_its_pace {
        looked_at[0].0 = looked_at[first].0;
    }
    looked_at.sort_by(|a, b| b.0.partial_cmp(&a.0).unwrap_or(Ordering::Equal));
    outermost_first(&mut looked_at);
    let (mut problems, verdicts): (Vec<_>, Vec<_>) = (looked_at.into_iter())
        .map(|(_, verdict, problem)| (problem, verdict))
        .unzip();
    problems.extend(later);
    (problems, verdicts)
}

/// Puts before the worst problem that of another program that waited for the same root by way of its thread, for about as
/// long or longer: a person sees the program that asked, not the server between. One that waits for a program that it
/// started, as a shell does, says less than that.
fn outermost_first(looked_at: &mut [(Weight, Verdict, Problem)]) {
    /// About as long is this part of it.
    const ABOUT: u64 = 5;
    let by_child = [EdgeKind::Exit.text(), EdgeKind::Awaited.text()];
    for _ in 0..looked_at.len() {
        let Some((worst, others)) = looked_at.split_first() else {
            return;
        };
        let (between, root) = (&worst.1.problem.who, &worst.1.root.who);
        let asks = |(_, verdict, problem): &(Weight, Verdict, Problem)| {
            let mut steps = verdict.path.iter();
            let first = steps.next().and_then(|first| first.edge.as_ref());
            let awaits_child = first.is_some_and(|edge| by_child.contains(&edge.kind));
            let is_as_long = problem.duration() >= worst.2.duration() / ABOUT * (ABOUT - 1);
            !awaits_child
                && !problem.may_be_idle()
                && is_as_long
                && problem.overlaps(&worst.2)
                && verdict.problem.who.pid != between.pid
                && verdict.root.who.tid == root.tid
                && steps.any(|step| step.who.tid == between.tid)
        };
        if between.tid == root.tid {
            return;
        }
        let Some(at) = others.iter().position(asks) else {
            return;
        };
        looked_at[..=at + 1].rotate_right(1);
    }
}

/// A cause that came several times is felt each time: beside the worst of all, if that is about as long or
/// may be idle, the worst of its problems weighs as much as all of them that do not overlap. One long wait is
/// worse than many short ones.
fn add_up_repeats(looked_at: &mut [(Weight, Verdict, Problem)]) {
    const ABOUT_AS_LONG: u64 = 2;
    let worst = (looked_at.iter()).max_by(|a, b| a.0.partial_cmp(&b.0).unwrap_or(Ordering::Equal));
    let Some((_, _, worst)) = worst else { return };
    let (longest, may_be_idle) = (worst.duration(), worst.may_be_idle());
    let mut causes: HashMap<String, Vec<usize>> = HashMap::new();
    for (at, (_, verdict, problem)) in looked_at.iter().enumerate() {
        let is_long = problem.duration().saturating_mul(ABOUT_AS_LONG) >= longest;
        if !problem.may_be_idle() && (may_be_idle || is_long) {
            causes.entry(signature(verdict)).or_default().push(at);
        }
    }
    for mut alike in causes.into_values() {
        alike.sort_by(|&a, &b| looked_at[b].0.score.total_cmp(&looked_at[a].0.score));
        let mut counted: Vec<usize> = Vec::new();
        for at in alike {
            let overlaps = |&other: &usize| looked_at[other].2.overlaps(&looked_at[at].2);
            if !counted.iter().any(overlaps) {
                counted.push(at);
            }
        }
        let sum = counted.iter().map(|&at| looked_at[at].0.score).sum();
        looked_at[counted[0]].0.score = sum;
    }
}

/// Whether a verdict names a root with some confidence: of two problems a person first reads the one
/// that they can act on.
pub(crate) fn is_convincing(verdict: &Verdict) -> bool {
    const LEAST: f64 = 0.37;
    verdict.root.class != Class::Unknown && verdict.root.confidence >= LEAST
}

/// How bad a problem is, in view of its verdict: first whether somebody was surely kept waiting for long,
/// then by how much.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
struct Weight {
    is_severe: bool,
    score: f64,
}

impl Weight {
    fn of(problem: &Problem) -> Weight {
        Weight {
            is_severe: problem.severity() == problem::Severity::High,
            score: problem.score,
        }
    }
}

/// Whether it is many small waits, and for most of their time somebody only let time pass: what comes in
/// pieces comes as it is meant to.
fn is_paced(problem: &Problem, verdict: &Verdict) -> bool {
    let most = verdict.blame.first();
    problem.many.is_some() && most.is_some_and(|most| most.kind == EdgeKind::Timer.text())
}

/// Whether somebody waited for threads of one program that all computed the same, and none of them for a
/// lock that another had.
fn is_pool_at_work(verdict: &Verdict) -> bool {
    let by_lock = |kind: &str| kind == EdgeKind::Unlock.text() || kind == EdgeKind::Holder.text();
    let edges = verdict.path.iter().filter_map(|step| step.edge.as_ref());
    verdict.root.class == Class::LongRunning
        && verdict.root.others >= POOL
        && verdict.root.in_parallel
        && !edges.into_iter().any(|edge| by_lock(edge.kind))
}

/// What a problem's verdict makes of its score.
fn factor(problem: &Problem, verdict: &Verdict, end: u64) -> f64 {
    let root = &verdict.root;
    match () {
        // Nothing but a person ends it, whoever felt it by now.
        () if root.class == Class::Circular && root.confidence >= CIRCULAR => {
            1.0 / problem.felt.clamp(LEAST_FELT, 1.0)
        }
        () if !is_convincing(verdict) => match problem.severity() {
            problem::Severity::High => UNKNOWN_BUT_FELT,
            _ => UNKNOWN,
        },
        () if root.by_naps => NAPS,
        () if root.by_crowd => SHARED,
        () if is_pool_at_work(verdict) => IN_PARALLEL,
        () if is_paced(problem, verdict) => NAPS,
        () if root.is_sleep && problem.severity() != problem::Severity::High => CHOSEN,
        () if problem.lasts_all_along(end) && root.who.tid != verdict.problem.who.tid => {
            let sure = (root.confidence / SURE).min(1.0) * root.share;
            1.0 + (1.0 / problem::ALL_ALONG - 1.0) * sure
        }
        () => 1.0,
    }
}

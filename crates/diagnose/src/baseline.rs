//! The baseline: how the same wait went when it went well, in this trace or in another recording.
//!
//! A similar wait has the same [`Shape`] and came about the same way: of the waits before it, as
//! many have the shapes of those before the problem's, in the same order, that at most 40 % are
//! left over (Argus's rule, on waits in place of events). It went well if it took half as long or
//! less. Its own chain of waits is then laid beside the problem's: who takes longer now.
//!
//! Where this trace has nobody who ever ended such a wait, a baseline from another recording tells
//! by its role who should have.

use hangdog_graph::history::History;
use hangdog_graph::{Belief, Edge, EdgeKind, Evidence, Source, Strength, Wait};
use hangdog_timeline::State;
use hangdog_trace::ids::Utid;
use hangdog_trace::object::Object;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use crate::answers::Answers;
use crate::blame::Blame;
use crate::kind::BlameKind;
use crate::problem::Problem;
use crate::setting::Setting;
use crate::shape::{Shape, full_name, role_of};
use crate::stretch::{Stretch, Waiting, each_stretch};
use crate::verdict::who;
use crate::verdict::{BaselineReport, Comparison};

/// So many waits before one tell how it came about.
const BEFORE: usize = 3;
/// At most this share of them may be left over.
const SKIPPED: f64 = 0.4;
/// So many intervals of a thread are looked at, before the problem and after it.
const MEMORY: usize = 20_000;
/// At so many threads of one role.
const MOST_ALIKE: usize = 16;
/// So many roles are compared.
const MOST_ROWS: usize = 8;

/// A similar wait that went well.
struct Good {
    thread: Utid,
    window: Range<u64>,
}

/// The baseline of the problem's longest wait, of which `now` is the blame: from `other` if there
/// is such a recording, otherwise from the problem's own trace. None if the problem did not wait,
/// or no such wait ever went better.
pub(crate) fn find(
    evidence: &Evidence<'_>,
    other: Option<&Evidence<'_>>,
    problem: &Problem,
    now: &Blame,
) -> Option<BaselineReport> {
    let mut longest: Option<Waiting> = None;
    each_stretch(
        evidence,
        problem.thread,
        problem.window.clone(),
        |stretch| match stretch {
            Stretch::Waiting(waiting)
                if longest.is_none_or(|most| length(&waiting) > length(&most)) =>
            {
                longest = Some(waiting);
            }
            _ => {}
        },
    );
    let longest = longest.filter(|most| length(most) >= problem.duration() / 2)?;
    let shape = Shape::of(evidence, &longest.wait);
    let before = shapes_before(evidence, problem.thread, longest.from);
    let there = other.unwrap_or(evidence);
    let here = other.is_none().then_some(longest.from..longest.to);
    let mut good = similar(there, &shape, &before, length(&longest) / 2, here);
    good.sort_by_key(|good| good.window.end - good.window.start);
    let found = good.len();
    let example = good.get(found / 2)?;
    let window = example.window.clone();
    let nothing = Setting {
        lost: false,
        answers: &Answers::default(),
        baseline: None,
        yardstick: None,
        instant: false,
    };
    let then = Blame::of(there, example.thread, window.clone(), nothing);
    Some(BaselineReport {
        from_other: other.is_some(),
        found,
        who: who(there, example.thread),
        start_ns: window.start,
        duration_ns: window.end - window.start,
        now_ns: length(&longest),
        compared: compare(evidence, now, there, &then),
    })
}

fn length(waiting: &Waiting) -> u64 {
    waiting.to - waiting.from
}

/// The shapes of the last few waits of a thread before `at`, the last first.
fn shapes_before(evidence: &Evidence<'_>, thread: Utid, at: u64) -> Vec<Shape> {
    let intervals = evidence.timeline.intervals(thread);
    (0..intervals.indexes(0, at).end)
        .rev()
        .filter_map(|at| intervals.get(at))
        .filter(|interval| interval.state == State::Blocked && interval.end <= at)
        .take(BEFORE)
        .map(|interval| Shape::of(evidence, &Wait::new(evidence, thread, &interval)))
        .collect()
}

/// The waits of this shape that took no longer than `longest`, and came about like this, if `before`
/// tells how; around a window, but not in it, if one is given.
fn similar(
    evidence: &Evidence<'_>,
    shape: &Shape,
    before: &[Shape],
    longest: u64,
    around: Option<Range<u64>>,
) -> Vec<Good> {
    let alike = evidence
        .timeline
        .threads()
        .filter(|&thread| evidence.threads.known(thread).is_some())
        .filter(|&thread| role_of(evidence, thread) == shape.waiter)
        .take(MOST_ALIKE);
    let mut found = Vec::new();
    for thread in alike {
        let mut waits: Vec<Waiting> = Vec::new();
        let is_in_it = |waiting: &Waiting| {
            let overlaps = |it: &Range<u64>| waiting.from < it.end && it.start < waiting.to;
            around.as_ref().is_some_and(overlaps)
        };
        let part = near(evidence, thread, around.as_ref().map_or(0, |it| it.start));
        each_stretch(evidence, thread, part, |stretch| match stretch {
            Stretch::Waiting(waiting) if length(&waiting) <= longest && !is_in_it(&waiting) => {
                waits.push(waiting);
            }
            _ => {}
        });
        for waiting in waits {
            if waiting.wake.is_none() || Shape::of(evidence, &waiting.wait) != *shape {
                continue;
            }
            if !before.is_empty() {
                let own = shapes_before(evidence, thread, waiting.from);
                let most = before.len().max(own.len());
                if (most - in_order(before, &own)) as f64 > SKIPPED * most as f64 {
                    continue;
                }
            }
            found.push(Good {
                thread,
                window: waiting.from..waiting.to,
            });
        }
    }
    found
}

/// The part of a thread's life that is looked at: so many intervals before and after a moment.
fn near(evidence: &Evidence<'_>, thread: Utid, moment: u64) -> Range<u64> {
    let intervals = evidence.timeline.intervals(thread);
    let here = intervals.index_at(moment).unwrap_or(0);
    let first = intervals.get(here.saturating_sub(MEMORY));
    let last = intervals.get((here + MEMORY).min(intervals.len().saturating_sub(1)));
    first.map_or(0, |first| first.start)..last.map_or(0, |last| last.end)
}

/// How many of two sequences are the same, in the same order (their longest common subsequence).
fn in_order(one: &[Shape], other: &[Shape]) -> usize {
    match (one.split_first(), other.split_first()) {
        (Some((a, rest)), Some((b, others))) if a == b => 1 + in_order(rest, others),
        (Some((_, rest)), Some((_, others))) => in_order(rest, other).max(in_order(one, others)),
        _ => 0,
    }
}

/// Who takes how long now and then, by role and kind; those first that take so much longer.
fn compare(
    here: &Evidence<'_>,
    now: &Blame,
    there: &Evidence<'_>,
    then: &Blame,
) -> Vec<Comparison> {
    let mut rows: BTreeMap<(String, BlameKind), (u64, u64)> = BTreeMap::new();
    // Those that have a role by their full names, where all that have it have one name.
    let mut names: HashMap<String, Option<String>> = HashMap::new();
    for (evidence, blame, is_now) in [(here, now, true), (there, then, false)] {
        for piece in &blame.pieces {
            let (role, name) = (
                role_of(evidence, piece.thread),
                full_name(evidence, piece.thread),
            );
            let known = names
                .entry(role.clone())
                .or_insert_with(|| Some(name.clone()));
            if known.as_ref() != Some(&name) {
                *known = None;
            }
            let row = rows.entry((role, piece.kind)).or_default();
            let time = if is_now { &mut row.0 } else { &mut row.1 };
            *time = time.saturating_add(piece.ns());
        }
    }
    let mut rows: Vec<Comparison> = rows
        .into_iter()
        .map(|((role, kind), (now_ns, then_ns))| Comparison {
            role: names.get(&role).cloned().flatten().unwrap_or(role),
            kind: kind.text(),
            now_ns,
            then_ns,
        })
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.now_ns.abs_diff(row.then_ns)));
    rows.truncate(MOST_ROWS);
    rows
}

/// Who should have ended a wait, by who ended such waits in another recording: the threads of this
/// one that have the role, each as likely as the others. All together they are less than 1: what
/// is left is for what this recording tells by itself.
pub(crate) fn beliefs(here: &Evidence<'_>, there: &Evidence<'_>, wait: &Wait) -> Vec<Belief> {
    let shape = Shape::of(here, wait);
    let mut roles: BTreeMap<String, usize> = BTreeMap::new();
    let mut others = 0;
    let last = similar(there, &shape, &[], u64::MAX, None).pop();
    let last = last.and_then(|good| {
        let intervals = there.timeline.intervals(good.thread);
        let at = intervals.index_at(good.window.start)?;
        Some((good, intervals.get(at)?))
    });
    if let Some((good, last)) = last {
        let history = History::of(there, &Wait::new(there, good.thread, &last));
        others = history.by_timer + history.by_others;
        for (&thread, ended) in &history.by_thread {
            *roles.entry(role_of(there, thread)).or_default() += ended.brought_on;
        }
    }
    let total = roles.values().sum::<usize>() + others;
    // By thread that may have done it, its role; and how many have each.
    let mut able: Vec<(Utid, String)> = Vec::new();
    let mut sharing: HashMap<String, usize> = HashMap::new();
    for thread in here.timeline.threads() {
        if here.threads.known(thread).is_none()
            || thread == wait.thread
            || here.timeline.life(thread).end <= wait.start
        {
            continue;
        }
        let role = role_of(here, thread);
        if roles.get(&role).is_some_and(|&times| times > 0) {
            *sharing.entry(role.clone()).or_default() += 1;
            able.push((thread, role));
        }
    }
    let mut beliefs: Vec<Belief> = able
        .into_iter()
        .map(|(thread, role)| {
            let times = roles[&role];
            let probability = times as f64 / (total + 1) as f64 / sharing[&role] as f64;
            Belief {
                probability,
                edge: Edge {
                    kind: EdgeKind::Habit,
                    strength: Strength::Weak,
                    reason: format!("in the baseline {role} ended {times} such waits"),
                    source: Source::Thread(thread),
                    wake: None,
                    connection: Object::NONE,
                },
            }
        })
        .collect();
    beliefs.sort_by(|a, b| b.probability.total_cmp(&a.probability));
    beliefs
}

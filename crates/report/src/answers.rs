//! The problems of a trace and the verdicts on them, as values.

use crate::case::Case;
use crate::loss::Loss;
use crate::rank::Known;
use crate::regions::Picked;
use crate::repeats::Repeats;
use hangdog_diagnose::verdict::{Class, Who};
use hangdog_diagnose::{Answers, Problem, Verdict, signature, verdict};
use hangdog_graph::Evidence;
use hangdog_trace::ids::Utid;
use rayon::prelude::*;
use serde::Serialize;
use std::collections::HashMap;
use std::path::Path;

/// A problem with the verdict on it in a sentence.
#[derive(Clone, Serialize, Debug)]
pub struct ProblemRow {
    /// From 1, worst first.
    pub number: usize,
    /// Whose time it was.
    #[serde(flatten)]
    pub who: Who,
    /// The thread's id within the trace.
    pub utid: Utid,
    /// When it began, ns since the trace's start.
    pub start_ns: u64,
    /// How long it took, ns.
    pub duration_ns: u64,
    /// What makes it a problem.
    pub kind: &'static str,
    /// low, medium, high.
    pub severity: &'static str,
    /// How surely something was owed and somebody felt it.
    pub felt: f64,
    /// What the thread itself did for most of it.
    pub class: Class,
    /// The class of the root.
    pub root_class: Class,
    /// How sure the verdict is, 0 to 1.
    pub confidence: f64,
    /// The verdict in a sentence.
    pub sentence: String,
    /// What the cause is known by: that of repeats is the same.
    pub signature: String,
    /// The first of the list with the same cause; none where it is this one.
    pub repeat_of: Option<usize>,
    /// How often the list has that cause, and for how long in all.
    pub repeats: Repeats,
}

/// The problems with their sentences, in the order in which they are given.
pub fn problem_rows(
    case: &Case,
    evidence: &Evidence<'_>,
    problems: &[Problem],
    known: &Known,
    answers: &Answers,
) -> Vec<ProblemRow> {
    let mut rows: Vec<ProblemRow> = (problems.par_iter())
        .enumerate()
        .map(|(at, problem)| {
            let verdict = known.verdict(case, evidence, problem, answers);
            ProblemRow {
                signature: signature(&verdict),
                number: at + 1,
                who: verdict.problem.who,
                utid: problem.thread,
                start_ns: verdict.problem.start_ns,
                duration_ns: verdict.problem.duration_ns,
                kind: problem.kind.text(),
                severity: problem.severity().text(),
                felt: problem.felt,
                class: verdict.problem.class,
                root_class: verdict.root.class,
                confidence: verdict.root.confidence,
                sentence: verdict.sentence,
                repeat_of: None,
                repeats: Repeats::of([problem.window.clone()].into_iter()),
            }
        })
        .collect();
    let mut causes: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, row) in rows.iter().enumerate() {
        causes.entry(&row.signature).or_default().push(at);
    }
    let causes: Vec<Vec<usize>> = causes.into_values().collect();
    for places in causes {
        let repeats = Repeats::of(places.iter().map(|&at| problems[at].window.clone()));
        for &at in &places {
            rows[at].repeats = repeats;
            rows[at].repeat_of = (at != places[0]).then(|| places[0] + 1);
        }
    }
    rows
}

/// A verdict with what stands around it.
#[derive(Serialize)]
pub struct VerdictAnswer<'a> {
    /// None of a moment that is not kept.
    pub trace: Option<&'a Path>,
    /// What the trace lost.
    pub loss: &'a Loss,
    /// The verdict.
    #[serde(flatten)]
    pub verdict: &'a Verdict,
    /// What the cause is known by on other occasions.
    pub signature: String,
    /// How often the worst problems have that cause; none where they do not repeat, or that was not looked at.
    pub repeats: Option<Repeats>,
    /// What its page-ins were for, where much of the time went to them.
    pub paging: Option<String>,
    /// All problems that were found, worst first.
    pub problems: Vec<Found>,
    /// Which of them this is, from 1; none where the user said what to explain.
    pub number: Option<usize>,
    /// The region that is explained, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<Picked<'a>>,
}

/// A problem that was found.
#[derive(Serialize, Clone, Debug)]
pub struct Found {
    /// Whose time it was.
    #[serde(flatten)]
    pub who: Who,
    /// When it began, ns since the trace's start.
    pub start_ns: u64,
    /// How long it took, ns.
    pub duration_ns: u64,
}

impl Found {
    /// Of a problem.
    pub fn new(evidence: &Evidence<'_>, problem: &Problem) -> Found {
        Found {
            who: verdict::who(evidence, problem.thread),
            start_ns: problem.window.start,
            duration_ns: problem.duration(),
        }
    }
}

//! `hangdog why`: the problems of a trace, and why the worst of them took so long; or where the time
//! of the recorded command went; or who waits for whom at this moment.

mod ask;
pub mod now;
mod print;
mod ran;

pub use print::name;

use crate::answers_file;
use crate::args::WhyArgs;
use crate::case::Case;
use crate::loss::Loss;
use crate::output::{self, Paint};
use crate::which::{choose, whole_run};
use anyhow::{Result, bail};
use ask::Said;
use hangdog_diagnose::problem::Scope;
use hangdog_diagnose::shape::Shape;
use hangdog_diagnose::verdict::{Question, Verdict, Who};
use hangdog_diagnose::{
    Answers, Problem, Setting, diagnose, diagnose_run, judge, problem, signature,
};
use hangdog_graph::Evidence;
use serde::Serialize;
use std::io::{self, IsTerminal};
use std::path::Path;

/// The answer in JSON.
#[derive(Serialize)]
struct Answer<'a> {
    /// None of a moment that is not kept.
    trace: Option<&'a Path>,
    loss: &'a Loss,
    #[serde(flatten)]
    verdict: &'a Verdict,
    /// What the cause is known by on other occasions.
    signature: String,
    /// All problems that were found, worst first.
    problems: Vec<Found>,
    /// Which of them this is, from 1; none where the user said what to explain.
    number: Option<usize>,
}

/// A problem that was found.
#[derive(Serialize)]
struct Found {
    #[serde(flatten)]
    who: Who,
    start_ns: u64,
    duration_ns: u64,
}

impl Found {
    fn new(evidence: &Evidence<'_>, problem: &Problem) -> Found {
        Found {
            who: judge::who(evidence, problem.thread),
            start_ns: problem.window.start,
            duration_ns: problem.duration(),
        }
    }
}

/// How a problem is explained.
type Diagnose = fn(&Evidence<'_>, &Problem, Setting<'_>) -> Verdict;

/// Finds and explains.
pub fn run(args: &WhyArgs) -> Result<()> {
    match &args.trace {
        Some(trace) => of_trace(trace, args),
        None => now::run(args),
    }
}

fn of_trace(trace: &Path, args: &WhyArgs) -> Result<()> {
    let case = Case::load(trace)?;
    let mut answers = answers_file::read(trace)?;
    for &number in &args.forget {
        forget(trace, &mut answers, number)?;
    }
    let recording = &case.recording;
    let meta = recording.trace.meta();
    let evidence = case.evidence();
    let problems = problem::find(&evidence, Scope::of(meta));
    let (chosen, number, diagnose) = match whole_run(args, &evidence, meta, &problems)? {
        Some(run) => (run, None, diagnose_run as Diagnose),
        None => {
            let (chosen, number) = choose(&args.which, &evidence, recording, &problems)?;
            (chosen, number, diagnose as Diagnose)
        }
    };
    let good = args.which.baseline.as_deref().map(Case::load).transpose()?;
    let baseline = good.as_ref().map(Case::evidence);
    let lost = recording.loss.total > 0;
    let explain = |answers: &Answers| {
        diagnose(
            &evidence,
            &chosen,
            Setting {
                lost,
                answers,
                baseline: baseline.as_ref(),
                yardstick: meta.yardstick.as_ref(),
                instant: meta.is_instant(),
            },
        )
    };
    let mut verdict = explain(&answers);
    let is_asked =
        !args.yes && !args.json && io::stdin().is_terminal() && io::stdout().is_terminal();
    if is_asked {
        let mut left_at_default: Vec<Shape> = Vec::new();
        while let Some(question) = next_question(&verdict, &left_at_default) {
            let paint = Paint::for_stdout();
            match ask::ask(question, &mut io::stdin().lock(), &mut io::stdout(), &paint)? {
                Said::Enough => break,
                Said::Default => left_at_default.push(question.wait.clone()),
                Said::Chosen(at) => {
                    let choice = &question.possibilities[at].choice;
                    answers.add(&question.text, question.wait.clone(), choice)?;
                    answers_file::write(trace, &answers)?;
                    verdict = explain(&answers);
                }
            }
        }
    }
    let found: Vec<Found> = problems
        .iter()
        .map(|problem| Found::new(&evidence, problem))
        .collect();
    if args.json {
        return output::json(&Answer {
            trace: Some(trace),
            loss: &recording.loss,
            verdict: &verdict,
            signature: signature(&verdict),
            problems: found,
            number,
        });
    }
    let defaults = match (args.yes, is_asked) {
        (true, _) => "default, as --yes asks for",
        (_, true) => "default",
        (false, false) => "default, since this is no terminal; without --yes a terminal asks",
    };
    match &verdict.whole {
        Some(whole) => print::print_whole(&verdict, whole, &recording.loss, &found, defaults),
        None => print::print(&verdict, &recording.loss, &found, number, defaults),
    }
}

/// The first question that has no answer, and was not left at its default.
fn next_question<'v>(verdict: &'v Verdict, left_at_default: &[Shape]) -> Option<&'v Question> {
    verdict
        .questions
        .iter()
        .find(|question| question.answer.is_none() && !left_at_default.contains(&question.wait))
}

fn forget(trace: &Path, answers: &mut Answers, number: u32) -> Result<()> {
    if !answers.forget(number)? {
        let known: Vec<String> = answers.iter().map(|a| a.number.to_string()).collect();
        let known = match known.is_empty() {
            true => "there is none".to_owned(),
            false => format!("there are: {}", known.join(", ")),
        };
        bail!(
            "{} has no answer {number}; {known}",
            answers_file::path(trace).display()
        );
    }
    answers_file::write(trace, answers)
}

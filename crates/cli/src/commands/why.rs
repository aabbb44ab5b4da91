//! `hangdog why`: the problems of a trace, and why the worst of them took so long; or where the time
//! of the recorded command went; or who waits for whom at this moment.

mod ask;
mod name;
pub mod now;
mod print;
mod ran;

pub use name::name;
use print::Around;

use crate::args::WhyArgs;
use crate::load;
use crate::output::{self, Paint};
use anyhow::{Result, bail};
use ask::Said;
use hangdog_diagnose::shape::Shape;
use hangdog_diagnose::verdict::{Question, Verdict};
use hangdog_diagnose::{Answers, Problem, diagnose, diagnose_run, signature};
use hangdog_report::answers::{Found, VerdictAnswer};
use hangdog_report::answers_file;
use hangdog_report::paging::of_verdict;
use hangdog_report::rank;
use hangdog_report::regions::Marked;
use hangdog_report::which::{choose, laid_to_process, whole_run};
use std::io::{self, IsTerminal};
use std::path::Path;

/// Finds and explains.
pub fn run(args: &WhyArgs) -> Result<()> {
    match &args.trace {
        Some(trace) => of_trace(trace, args),
        None => now::run(args),
    }
}

fn of_trace(trace: &Path, args: &WhyArgs) -> Result<()> {
    let case = load::case(trace)?;
    let mut answers = answers_file::read(trace)?;
    for &number in &args.forget {
        forget(trace, &mut answers, number)?;
    }
    let recording = &case.recording;
    let meta = recording.trace.meta();
    let evidence = case.evidence();
    let (problems, known) = rank::problems(&case, &evidence);
    let wanted = args.which.wanted();
    let run = whole_run(&wanted, args.whole, &evidence, meta, &problems)?;
    let is_run = run.is_some();
    let (mut chosen, mut number) = match run {
        Some(run) => (run, None),
        None => choose(&wanted, &evidence, recording, &problems)?,
    };
    let good = args.which.baseline.as_deref().map(load::case).transpose()?;
    let baseline = good.as_ref().map(|good| good.evidence());
    let explain = |problem: &Problem, answers: &Answers| match (&baseline, is_run) {
        (None, false) => known.verdict(&case, &evidence, problem, answers),
        (_, false) => diagnose(&evidence, problem, case.setting(answers, baseline.as_ref())),
        (_, true) => diagnose_run(&evidence, problem, case.setting(answers, baseline.as_ref())),
    };
    let mut verdict = explain(&chosen, &answers);
    let is_answered = answers.iter().next().is_some();
    let explain_as_answered = |problem: &Problem| explain(problem, &answers);
    let better = match is_answered {
        true => None,
        false => laid_to_process(&wanted, &chosen, recording, &problems, explain_as_answered)?,
    };
    if let Some((at, other)) = better {
        (chosen, number, verdict) = (problems[at].clone(), Some(at + 1), other);
    }
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
                    verdict = explain(&chosen, &answers);
                }
            }
        }
    }
    let found: Vec<Found> = problems
        .iter()
        .map(|problem| Found::new(&evidence, problem))
        .collect();
    let marked = match wanted.region {
        Some(_) => Some(Marked::load(recording, None)?),
        None => None,
    };
    let region = match &marked {
        Some(marked) => {
            let (region, all) = marked.nth(recording, &wanted.marks(), wanted.nth)?;
            Some(marked.picked(recording, &region, &all, wanted.nth))
        }
        None => None,
    };
    let paging = of_verdict(&case, &verdict);
    if args.json {
        return output::json(&VerdictAnswer {
            trace: Some(trace),
            loss: &recording.loss,
            verdict: &verdict,
            signature: signature(&verdict),
            repeats: known.repeats(&verdict),
            paging,
            problems: found,
            number,
            region,
        });
    }
    if let Some(region) = &region {
        print::print_region(region)?;
    }
    let defaults = match (args.yes, is_asked) {
        (true, _) => "default, because of --yes",
        (_, true) => "default",
        (false, false) => "default, because this is not a terminal",
    };
    let around = Around {
        loss: &recording.loss,
        found: &found,
        number,
        paging: paging.as_deref(),
    };
    match &verdict.whole {
        Some(whole) => print::print_whole(&verdict, whole, &around, defaults),
        None => {
            let repeats = known.repeats(&verdict);
            print::print(&verdict, &around, repeats, defaults)
        }
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

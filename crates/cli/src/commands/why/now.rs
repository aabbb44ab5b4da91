//! `hangdog why --live`: who waits for whom at this moment.

use super::{Answer, Found, print};
use crate::args::WhyArgs;
use crate::case::Case;
use crate::output;
use crate::select::NothingFound;
use crate::yardstick;
use anyhow::{Context, Result};
use hangdog_capture::Options;
use hangdog_capture::live::look;
use hangdog_diagnose::problem::Scope;
use hangdog_diagnose::{Answers, Problem, Setting, diagnose, problem, signature};
use hangdog_graph::Evidence;
use hangdog_trace::ids::Utid;
use std::path::Path;

/// Memory for unwind tables, bytes.
const UNWIND_MEMORY: u64 = 64 << 20;

/// Looks, and explains.
pub fn run(args: &WhyArgs) -> Result<()> {
    let process = args.live.as_deref().unwrap_or_default();
    if let Some(trace) = &args.output {
        return tell(trace, Some(trace), process, args.json);
    }
    let folder = tempfile::tempdir().context("cannot make a directory for what is seen")?;
    tell(&folder.path().join("now.hang"), None, process, args.json)
}

/// `kept` is the trace if it stays.
fn tell(trace: &Path, kept: Option<&Path>, process: &str, json: bool) -> Result<()> {
    let options = Options {
        memory: 0,
        stacks: true,
        unwind_memory: UNWIND_MEMORY,
        sample_hz: 0,
        transfers: false,
        yardstick: yardstick::of_this_machine(),
    };
    look(&options, trace)?;
    let case = Case::load(trace)?;
    let evidence = case.evidence();
    let scope = Scope::of(case.recording.trace.meta());
    let (problems, chosen) = match process {
        "" => {
            let problems = problem::find(&evidence, scope);
            let worst = problems.first().cloned();
            let nobody = || NothingFound::new("nobody waits for what somebody owes");
            (problems, worst.ok_or_else(nobody)?)
        }
        process => of_process(&evidence, scope, process)?,
    };
    let number = problems.iter().position(|problem| *problem == chosen);
    let setting = Setting {
        lost: case.recording.loss.total > 0,
        answers: &Answers::default(),
        baseline: None,
        yardstick: None,
        instant: true,
    };
    let verdict = diagnose(&evidence, &chosen, setting);
    let found: Vec<Found> = (problems.iter())
        .map(|problem| Found::new(&evidence, problem))
        .collect();
    let loss = &case.recording.loss;
    let number = number.map(|at| at + 1);
    match json {
        true => output::json(&Answer {
            trace: kept,
            loss,
            signature: signature(&verdict),
            verdict: &verdict,
            problems: found,
            number,
        }),
        false => print::print_now(&verdict, loss, &found, number),
    }
}

/// The problems of a process, and the worst of them: where it has none, what its first thread does.
fn of_process(
    evidence: &Evidence<'_>,
    scope: Scope,
    process: &str,
) -> Result<(Vec<Problem>, Problem)> {
    let threads = evidence.threads.find(&format!("{process}/"));
    let is_main = |&thread: &Utid| evidence.threads.thread(thread).is_main();
    let main = threads.iter().copied().find(is_main);
    let Some(first) = main.or(threads.first().copied()) else {
        let text = format!("no process is named or numbered '{process}'");
        return Err(NothingFound::new(text).into());
    };
    let scope = Scope {
        command_tid: Some(evidence.threads.thread(first).tid),
        ..scope
    };
    let problems = problem::find_of(evidence, scope, |thread| threads.contains(&thread));
    let chosen = match problems.first() {
        Some(worst) => worst.clone(),
        None => Problem::picked(first, evidence.timeline.life(first)),
    };
    Ok((problems, chosen))
}

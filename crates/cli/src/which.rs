//! Which problem of a trace a person means.

use crate::args::{Which, WhyArgs};
use crate::format;
use crate::load::Recording;
use crate::select::{self, NothingFound, Window};
use anyhow::{Result, bail};
use hangdog_diagnose::problem::Scope;
use hangdog_diagnose::{Problem, problem, whole};
use hangdog_graph::Evidence;
use hangdog_trace::Meta;
use hangdog_trace::ids::Utid;

/// Whether the user left it open.
fn is_open(args: &Which) -> bool {
    let is_named = args.problem.is_some() || args.thread.is_some() || args.process.is_some();
    !is_named && args.window.from.is_none() && args.window.to.is_none()
}

/// A problem that a person named was felt.
fn named(problem: &Problem) -> Problem {
    Problem {
        felt: problem.felt.max(1.0),
        ..problem.clone()
    }
}

/// The recorded command's run, if there is one and it is what to explain: because the user asks
/// for it by `--whole`, or left it open where none of the `problems` stands out.
///
/// # Errors
/// It is asked for, and the trace is not of a command.
pub fn whole_run(
    args: &WhyArgs,
    evidence: &Evidence<'_>,
    meta: &Meta,
    problems: &[Problem],
) -> Result<Option<Problem>> {
    let run = meta
        .command_tid
        .and_then(|tid| whole::run_of(evidence, tid));
    match run {
        None if args.whole => {
            bail!("this trace has no run of a command; hangdog record -- COMMAND records one")
        }
        Some(run) if args.whole => Ok(Some(run)),
        run => Ok(run.filter(|run| is_open(&args.which) && !whole::stands_out(problems, run))),
    }
}

/// The worst problem of a process; where it has none, the life of its first thread.
fn of_process(
    selector: &str,
    evidence: &Evidence<'_>,
    recording: &Recording,
    window: Window,
) -> Result<Problem> {
    let processes = select::processes(&recording.threads, selector)?;
    let is_meant = |thread| processes.contains(&recording.threads.thread(thread).upid);
    let scope = Scope::of(recording.trace.meta());
    let within =
        |problem: &Problem| problem.window.start < window.to && window.from < problem.window.end;
    let mut own = problem::find_of(evidence, scope, is_meant).into_iter();
    if let Some(worst) = own.find(within) {
        return Ok(worst);
    }
    let threads = || {
        recording
            .timeline
            .threads()
            .filter(|&thread| is_meant(thread))
    };
    let is_main = |&thread: &Utid| recording.threads.thread(thread).is_main();
    let Some(first) = threads().find(is_main).or_else(|| threads().next()) else {
        return Err(NothingFound::new(format!("'{selector}' did nothing in this trace")).into());
    };
    let life = recording.timeline.life(first);
    let part = window.from.max(life.start)..window.to.min(life.end);
    Ok(Problem::picked(first, part))
}

/// What to explain: what the user named, or the worst of the `problems` that were found; with its
/// number among them.
///
/// # Errors
/// An empty window, or [`NothingFound`].
pub fn choose(
    args: &Which,
    evidence: &Evidence<'_>,
    recording: &Recording,
    problems: &[Problem],
) -> Result<(Problem, Option<usize>)> {
    let window = Window::new(args.window, recording.timeline.end())?;
    if let Some(selector) = &args.thread {
        let thread = select::thread(&recording.threads, &recording.timeline, window, selector)?;
        let life = recording.timeline.life(thread);
        let part = window.from.max(life.start)..window.to.min(life.end);
        // A part of a thread's life is explained as it is; of a whole life, its worst problem.
        let asked_for_part = args.window.from.is_some() || args.window.to.is_some();
        if !asked_for_part {
            let listed = problems.iter().position(|problem| problem.thread == thread);
            if let Some(at) = listed {
                return Ok((named(&problems[at]), Some(at + 1)));
            }
            let scope = Scope::of(recording.trace.meta());
            let own = problem::find_of(evidence, scope, |other| other == thread);
            if let Some(worst) = own.into_iter().next() {
                return Ok((named(&worst), None));
            }
        }
        return Ok((Problem::picked(thread, part), None));
    }
    if let Some(selector) = &args.process {
        return Ok((of_process(selector, evidence, recording, window)?, None));
    }
    let within =
        |problem: &&Problem| problem.window.start < window.to && window.from < problem.window.end;
    let mut candidates = problems
        .iter()
        .enumerate()
        .filter(|(_, problem)| within(problem));
    let wanted = args.problem.unwrap_or(1) as usize;
    match candidates.nth(wanted - 1) {
        Some((at, problem)) if is_open(args) => Ok((problem.clone(), Some(at + 1))),
        Some((at, problem)) => Ok((named(problem), Some(at + 1))),
        None if problems.is_empty() => Err(NothingFound::new(
            "nothing took long: no thread of a program waited, computed or wanted a CPU for more \
             than a moment beyond what is usual for it; hangdog threads shows what each did",
        )
        .into()),
        None => {
            let count = format::things(problems.len() as u64, "problem was", "problems were");
            Err(NothingFound::new(format!("{count} found, there is no number {wanted}")).into())
        }
    }
}

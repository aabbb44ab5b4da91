//! Which problem of a trace a person means.

use crate::case::Recording;
use crate::format;
use crate::rank::{self, is_convincing};
use crate::regions::{Chosen, Marked};
use crate::select::{self, Bounds, NothingFound, Window};
use anyhow::{Result, bail};
use hangdog_diagnose::problem::Scope;
use hangdog_diagnose::verdict::Verdict;
use hangdog_diagnose::{Problem, problem, whole};
use hangdog_graph::Evidence;
use hangdog_trace::Meta;
use hangdog_trace::ids::Utid;

/// What a person names, as far as they do.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted<'a> {
    /// A number among the problems, from 1, the worst.
    pub problem: Option<u32>,
    /// A thread: tid, name, or process/thread.
    pub thread: Option<&'a str>,
    /// A process: pid, name, or how the name begins.
    pub process: Option<&'a str>,
    /// When.
    pub window: Bounds,
    /// A region that a program marked: a code, a name, or how it begins. Thread, process and time then
    /// say which of its occurrences are meant.
    pub region: Option<&'a str>,
    /// Which of them by duration, from 1, the longest; 0 is the longest too.
    pub nth: u32,
}

impl Wanted<'_> {
    /// Which marks are meant, where a region is.
    pub fn marks(&self) -> Chosen<'_> {
        Chosen {
            name: self.region,
            arguments: &[],
            thread: self.thread,
            process: self.process,
            window: self.window,
        }
    }

    /// Whether it is left open.
    pub fn is_open(&self) -> bool {
        let is_named = self.problem.is_some()
            || self.thread.is_some()
            || self.process.is_some()
            || self.region.is_some();
        !is_named && self.window == Bounds::default()
    }
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
    wanted: &Wanted<'_>,
    is_asked_for: bool,
    evidence: &Evidence<'_>,
    meta: &Meta,
    problems: &[Problem],
) -> Result<Option<Problem>> {
    let run = meta
        .command_tid
        .and_then(|tid| whole::run_of(evidence, tid));
    match run {
        None if is_asked_for => {
            bail!("this trace was not recorded with a command; use hangdog record -- COMMAND")
        }
        Some(run) if is_asked_for => Ok(Some(run)),
        run => {
            let is_clock = |tid| problem::is_clock(evidence, tid);
            let run = run.filter(|_| !meta.command_tid.is_some_and(is_clock));
            Ok(run.filter(|run| wanted.is_open() && !whole::stands_out(problems, run)))
        }
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
    let within =
        |problem: &Problem| problem.window.start < window.to && window.from < problem.window.end;
    let (own, _) = rank::problems_of(recording, evidence, is_meant);
    if let Some(worst) = own.into_iter().find(within) {
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
        return Err(
            NothingFound::new(format!("'{selector}' has no activity in this trace")).into(),
        );
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
    wanted: &Wanted<'_>,
    evidence: &Evidence<'_>,
    recording: &Recording,
    problems: &[Problem],
) -> Result<(Problem, Option<usize>)> {
    if wanted.region.is_some() {
        let marked = Marked::load(recording, None)?;
        let (region, _) = marked.nth(recording, &wanted.marks(), wanted.nth)?;
        let (thread, part) = marked.place(recording, &region)?;
        return Ok((Problem::picked(thread, part), None));
    }
    let window = Window::new(wanted.window, recording.timeline.end())?;
    if let Some(selector) = wanted.thread {
        let thread = select::thread(&recording.threads, &recording.timeline, window, selector)?;
        let life = recording.timeline.life(thread);
        let part = window.from.max(life.start)..window.to.min(life.end);
        // A part of a thread's life is explained as it is; of a whole life, its worst problem.
        let asked_for_part = wanted.window != Bounds::default();
        if !asked_for_part {
            let listed = problems.iter().position(|problem| problem.thread == thread);
            if let Some(at) = listed {
                return Ok((named(&problems[at]), Some(at + 1)));
            }
            let scope = Scope::of(recording.trace.meta());
            let own = problem::find_of(evidence, scope, |other| other == thread);
            // Those of other threads of its program, and of what it started, are among them.
            if let Some(worst) = own.iter().find(|problem| problem.thread == thread) {
                return Ok((named(worst), None));
            }
        }
        return Ok((Problem::picked(thread, part), None));
    }
    if let Some(selector) = wanted.process {
        return Ok((of_process(selector, evidence, recording, window)?, None));
    }
    let within =
        |problem: &&Problem| problem.window.start < window.to && window.from < problem.window.end;
    let mut candidates = problems
        .iter()
        .enumerate()
        .filter(|(_, problem)| within(problem));
    let number = wanted.problem.unwrap_or(1) as usize;
    match candidates.nth(number - 1) {
        Some((at, problem)) if wanted.is_open() => Ok((problem.clone(), Some(at + 1))),
        Some((at, problem)) => Ok((named(problem), Some(at + 1))),
        None if problems.is_empty() => Err(NothingFound::new(
            "no problems found: no thread waited, ran or was runnable for much longer than usual; \
             hangdog threads shows what each did",
        )
        .into()),
        None => {
            let count = format::things(problems.len() as u64, "problem was", "problems were");
            Err(NothingFound::new(format!("{count} found; there is no number {number}")).into())
        }
    }
}

/// So many of the worst problems may be what somebody who named a process means.
const ALTERNATIVES: usize = 5;
/// What is shorter than this share of the chosen one's time is not.
const AS_LONG: f64 = 0.33;

/// Who names a process that is idle by itself may mean one that does not answer: its own thread sleeps
/// or waits, and it is a client that is held up. Of the worst `problems` in the window that last nearly
/// as long as the `chosen` one, the first whose verdict names a thread of that process as its root: its
/// index, and that verdict. None where the chosen problem is more than an idle thread's.
///
/// # Errors
/// An empty window, or [`NothingFound`].
pub fn laid_to_process(
    wanted: &Wanted<'_>,
    chosen: &Problem,
    recording: &Recording,
    problems: &[Problem],
    explain: impl Fn(&Problem) -> Verdict,
) -> Result<Option<(usize, Verdict)>> {
    let is_whole = chosen.may_be_idle() && wanted.region.is_none();
    let Some(selector) = wanted.process.filter(|_| is_whole) else {
        return Ok(None);
    };
    let window = Window::new(wanted.window, recording.timeline.end())?;
    let meant: Vec<u32> = select::processes(&recording.threads, selector)?
        .into_iter()
        .map(|upid| recording.threads.process(upid).pid)
        .collect();
    let shortest = chosen.duration() as f64 * AS_LONG;
    let others = problems.iter().enumerate().take(ALTERNATIVES);
    Ok(others
        .filter(|(_, problem)| !problem.may_be_idle() && problem.duration() as f64 >= shortest)
        .filter(|(_, problem)| problem.window.start < window.to && window.from < problem.window.end)
        .map(|(at, problem)| (at, explain(problem)))
        .find(|(_, verdict)| is_convincing(verdict) && meant.contains(&verdict.root.who.pid)))
}

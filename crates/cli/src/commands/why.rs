//! `hangdog why`: the problems of a trace, and why the worst of them took so long.

mod ran;

use crate::args::WhyArgs;
use crate::format;
use crate::load::{self, Recording};
use crate::loss::Loss;
use crate::output::{self, Colour, Paint};
use crate::select::{self, NothingFound, Window};
use anyhow::Result;
use hangdog_diagnose::verdict::{Verdict, Who};
use hangdog_diagnose::{Problem, diagnose, judge, problem};
use hangdog_graph::{Evidence, Tables};
use hangdog_trace::calls::Calls;
use hangdog_trace::tables::{Samples, Transfers};
use serde::Serialize;
use std::io::Write;
use std::path::Path;

/// The answer in JSON.
#[derive(Serialize)]
struct Answer<'a> {
    trace: &'a Path,
    loss: &'a Loss,
    #[serde(flatten)]
    verdict: &'a Verdict,
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

/// Finds and explains.
pub fn run(args: &WhyArgs) -> Result<()> {
    let recording = Recording::load(&args.trace)?;
    let stacks = load::stacks(&recording.trace)?;
    let samples: Samples = recording.trace.read()?;
    let transfers: Transfers = recording.trace.read()?;
    let evidence = Evidence::new(Tables {
        switches: &recording.switches,
        wakes: &recording.wakes,
        samples: &samples,
        transfers: &transfers,
        threads: &recording.threads,
        timeline: &recording.timeline,
        stacks: &stacks,
        calls: Calls::new(&recording.trace.meta().arch),
    });
    let problems = problem::find(&evidence, recording.trace.meta().command_tid);
    let (chosen, number) = choose(args, &recording, &problems)?;
    let verdict = diagnose(&evidence, &chosen, recording.loss.total > 0);
    let found: Vec<Found> = problems
        .iter()
        .map(|problem| Found::new(&evidence, problem))
        .collect();
    if args.json {
        return output::json(&Answer {
            trace: &args.trace,
            loss: &recording.loss,
            verdict: &verdict,
            problems: found,
            number,
        });
    }
    print(&verdict, &recording.loss, &found, number)
}

/// What to explain: what the user named, or the worst problem of those found.
fn choose(
    args: &WhyArgs,
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
        let worst = problems.iter().position(|problem| problem.thread == thread);
        if let (false, Some(at)) = (asked_for_part, worst) {
            return Ok((problems[at].clone(), Some(at + 1)));
        }
        return Ok((
            Problem {
                thread,
                window: part,
                score: 0.0,
            },
            None,
        ));
    }
    let within =
        |problem: &&Problem| problem.window.start < window.to && window.from < problem.window.end;
    let mut candidates = problems
        .iter()
        .enumerate()
        .filter(|(_, problem)| within(problem));
    let wanted = args.problem.unwrap_or(1) as usize;
    match candidates.nth(wanted - 1) {
        Some((at, problem)) => Ok((problem.clone(), Some(at + 1))),
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

fn share(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn name(who: &Who) -> String {
    let text = match who.process == who.thread {
        true => who.thread.clone(),
        false => format!("{}/{}", who.process, who.thread),
    };
    format!("{} ({})", format::printable(&text), who.tid)
}

const MOST_FRAMES: usize = 6;
const MOST_ROWS: usize = 6;

fn print(verdict: &Verdict, loss: &Loss, found: &[Found], number: Option<usize>) -> Result<()> {
    let paint = Paint::for_stdout();
    let mut out = output::stdout();
    let heading = |text: &str| paint.text(Colour::Heading, text);
    let problem = &verdict.problem;
    let root = &verdict.root;
    writeln!(out, "{}", heading(&format::printable(&verdict.sentence)))?;
    writeln!(out)?;
    writeln!(
        out,
        "{}  {}, from {} for {}: {:?}",
        heading("Problem"),
        name(&problem.who),
        format::moment(problem.start_ns),
        format::duration(problem.duration_ns),
        problem.class,
    )?;
    write!(
        out,
        "{}     {}: {:?}",
        heading("Root"),
        name(&root.who),
        root.class
    )?;
    if let Some(function) = &root.function {
        write!(out, " in {}", format::printable(function))?;
    }
    if let Some(outer) = &root.inlined_into {
        write!(out, " (inlined into {})", format::printable(outer))?;
    }
    if let Some(place) = &root.place {
        write!(out, ", {}", format::printable(place))?;
    }
    writeln!(out)?;
    writeln!(
        out,
        "         {} of the time; confidence {:.0} %",
        share(root.share),
        root.confidence * 100.0
    )?;
    if let Some(knot) = &verdict.knot {
        let names: Vec<String> = knot.iter().map(name).collect();
        writeln!(
            out,
            "{}     {} wait for each other",
            heading("Knot"),
            names.join(", ")
        )?;
    }

    writeln!(out, "\n{}", heading("Where the time went"))?;
    for row in verdict.blame_by_thread.iter().take(MOST_ROWS) {
        writeln!(
            out,
            "  {:>9}  {:>7}  {:<10} {}",
            format::duration(row.ns),
            share(row.share),
            row.kind,
            name(&row.who)
        )?;
    }
    if let Some(rest) = verdict
        .blame_by_thread
        .get(MOST_ROWS..)
        .filter(|rest| !rest.is_empty())
    {
        let ns = rest.iter().map(|row| row.ns).sum();
        let part = rest.iter().map(|row| row.share).sum();
        let count = format::things(rest.len() as u64, "more entry", "more entries");
        writeln!(
            out,
            "  {:>9}  {:>7}  {count}",
            format::duration(ns),
            share(part)
        )?;
    }

    if let Some(ran) = &verdict.ran {
        ran::print(&mut out, &paint, ran)?;
    }

    writeln!(out, "\n{}", heading("How it came about"))?;
    for (at, step) in verdict.path.iter().enumerate() {
        let who = match step.process == step.thread {
            true => step.thread.clone(),
            false => format!("{}/{}", step.process, step.thread),
        };
        writeln!(
            out,
            "  {}. {}  {} {}",
            at + 1,
            format::duration(step.to_ns.saturating_sub(step.from_ns)),
            paint.text(Colour::Heading, &format::printable(&who)),
            format::printable(&step.doing),
        )?;
        if !step.stack.is_empty() {
            let shown: Vec<&str> = step
                .stack
                .iter()
                .take(MOST_FRAMES)
                .map(String::as_str)
                .collect();
            let more = match step.stack_end {
                _ if step.stack.len() > MOST_FRAMES => " < ...".to_owned(),
                Some(end) => format!(" < ... (not known further out: {end})"),
                None => String::new(),
            };
            let joined = shown.join(" < ");
            let line = format::printable(&joined);
            writeln!(
                out,
                "     {}",
                paint.text(Colour::Quiet, &format!("at {line}{more}"))
            )?;
        }
        if let Some(edge) = &step.edge {
            let line = format!("{} ({}, {})", edge.reason, edge.kind, edge.strength);
            let line = format::printable(&line);
            writeln!(
                out,
                "     {}",
                paint.text(Colour::Quiet, &format!("because {line}"))
            )?;
        }
    }
    for question in &verdict.questions {
        writeln!(
            out,
            "\n{}  {}",
            heading("Question"),
            format::printable(&question.text)
        )?;
        writeln!(out, "          {}", format::printable(&question.how))?;
    }
    writeln!(out, "\nLost: {}", loss.text())?;
    let others = found
        .iter()
        .enumerate()
        .filter(|(at, _)| Some(at + 1) != number);
    let others: Vec<_> = others.take(4).collect();
    if !others.is_empty() {
        writeln!(out, "Other candidates, see --problem N:")?;
        for (at, other) in others {
            writeln!(
                out,
                "  {}. {} from {} for {}",
                at + 1,
                name(&other.who),
                format::moment(other.start_ns),
                format::duration(other.duration_ns)
            )?;
        }
    }
    Ok(out.flush()?)
}

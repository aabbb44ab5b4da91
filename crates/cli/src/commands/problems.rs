//! `hangdog problems`: what took too long in a trace, worst first.

use crate::answers_file;
use crate::args::ProblemsArgs;
use crate::case::Case;
use crate::format;
use crate::loss::Loss;
use crate::output::{self, Colour, Paint};
use crate::select::{self, NothingFound};
use crate::units::Span;
use anyhow::Result;
use hangdog_diagnose::problem::Scope;
use hangdog_diagnose::verdict::{Class, Who};
use hangdog_diagnose::{Setting, diagnose, problem};
use rayon::prelude::*;
use serde::Serialize;
use std::io::Write;
use std::path::Path;

#[derive(Serialize)]
struct Answer<'a> {
    trace: &'a Path,
    loss: &'a Loss,
    problems: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    number: usize,
    #[serde(flatten)]
    who: Who,
    start_ns: u64,
    duration_ns: u64,
    /// What makes it a problem.
    kind: &'static str,
    severity: &'static str,
    felt: f64,
    class: Class,
    root_class: Class,
    confidence: f64,
    sentence: String,
}

/// Lists them.
pub fn run(args: &ProblemsArgs) -> Result<()> {
    let answers = answers_file::read(&args.trace)?;
    let case = Case::load(&args.trace)?;
    let recording = &case.recording;
    let evidence = case.evidence();
    let setting = Setting {
        lost: recording.loss.total > 0,
        answers: &answers,
        baseline: None,
        yardstick: recording.trace.meta().yardstick.as_ref(),
        instant: recording.trace.meta().is_instant(),
    };
    let scope = Scope::of(recording.trace.meta());
    let mut found = match &args.process {
        None => problem::find(&evidence, scope),
        Some(selector) => {
            let processes = select::processes(&recording.threads, selector)?;
            problem::find_of(&evidence, scope, |thread| {
                processes.contains(&recording.threads.thread(thread).upid)
            })
        }
    };
    let least = args.min.map_or(0, Span::ns);
    found.retain(|problem| problem.duration() >= least);
    if found.is_empty() {
        return Err(NothingFound::new("nothing took long").into());
    }
    let rows: Vec<Row> = found
        .par_iter()
        .enumerate()
        .map(|(at, problem)| {
            let verdict = diagnose(&evidence, problem, setting);
            Row {
                number: at + 1,
                who: verdict.problem.who,
                start_ns: verdict.problem.start_ns,
                duration_ns: verdict.problem.duration_ns,
                kind: problem.kind.text(),
                severity: problem.severity().text(),
                felt: problem.felt,
                class: verdict.problem.class,
                root_class: verdict.root.class,
                confidence: verdict.root.confidence,
                sentence: verdict.sentence,
            }
        })
        .collect();
    if args.json {
        return output::json(&Answer {
            trace: &args.trace,
            loss: &recording.loss,
            problems: rows,
        });
    }
    let paint = Paint::for_stdout();
    let mut out = output::stdout();
    for row in &rows {
        writeln!(
            out,
            "{:>2}. {}  {:?}, {}, severity {}; from {}",
            row.number,
            paint.text(Colour::Heading, &format::printable(&row.sentence)),
            row.class,
            row.kind,
            row.severity,
            format::moment(row.start_ns),
        )?;
    }
    writeln!(out, "\nLost: {}", recording.loss.text())?;
    Ok(out.flush()?)
}

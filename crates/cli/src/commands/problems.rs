//! `hangdog problems`: what took too long in a trace, worst first.

use crate::args::ProblemsArgs;
use crate::load;
use crate::output::{self, Colour, Paint};
use anyhow::Result;
use hangdog_report::answers::{ProblemRow, problem_rows};
use hangdog_report::answers_file;
use hangdog_report::format;
use hangdog_report::loss::Loss;
use hangdog_report::rank;
use hangdog_report::select::{self, NothingFound};
use hangdog_report::units::Span;
use serde::Serialize;
use std::io::Write;
use std::path::Path;

#[derive(Serialize)]
struct Answer<'a> {
    trace: &'a Path,
    loss: &'a Loss,
    problems: Vec<ProblemRow>,
}

/// Lists them.
pub fn run(args: &ProblemsArgs) -> Result<()> {
    let answers = answers_file::read(&args.trace)?;
    let case = load::case(&args.trace)?;
    let recording = &case.recording;
    let evidence = case.evidence();
    let (mut found, known) = match &args.process {
        None => rank::problems(&case, &evidence),
        Some(selector) => {
            let processes = select::processes(&recording.threads, selector)?;
            rank::problems_of(recording, &evidence, |thread| {
                processes.contains(&recording.threads.thread(thread).upid)
            })
        }
    };
    let least = args.min.map_or(0, Span::ns);
    found.retain(|problem| problem.duration() >= least);
    if found.is_empty() {
        return Err(NothingFound::new("no problems found").into());
    }
    let rows = problem_rows(&case, &evidence, &found, &known, &answers);
    if args.json {
        return output::json(&Answer {
            trace: &args.trace,
            loss: &recording.loss,
            problems: rows,
        });
    }
    let paint = Paint::for_stdout();
    let mut out = output::stdout();
    for row in rows.iter().filter(|row| row.repeat_of.is_none()) {
        writeln!(
            out,
            "{:>2}. {}  {:?}, {}, severity {}; from {}{}",
            row.number,
            paint.text(Colour::Heading, &format::printable(&row.sentence)),
            row.class,
            row.kind,
            row.severity,
            format::moment(row.start_ns),
            repeats(row, &rows),
        )?;
    }
    writeln!(out, "\nLost: {}", recording.loss.text())?;
    Ok(out.flush()?)
}

/// How often the cause of a problem is in the list, and by which other numbers.
fn repeats(row: &ProblemRow, rows: &[ProblemRow]) -> String {
    const MOST_NUMBERS: usize = 6;
    let others = rows
        .iter()
        .filter(|other| other.repeat_of == Some(row.number));
    let numbers: Vec<String> = others.map(|other| other.number.to_string()).collect();
    if numbers.is_empty() {
        return String::new();
    }
    let more = if numbers.len() > MOST_NUMBERS {
        ", ..."
    } else {
        ""
    };
    let shown = numbers[..numbers.len().min(MOST_NUMBERS)].join(", ");
    let times = match row.repeats.times {
        1 => "at once for several threads".to_owned(),
        times => format!("{times} times"),
    };
    let total = format::duration(row.repeats.total_ns);
    format!("; {times}, {total} in all (also {shown}{more})")
}

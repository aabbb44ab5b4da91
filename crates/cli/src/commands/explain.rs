//! `hangdog explain`: why an edge of a verdict is believed.

use super::why;
use crate::answers_file;
use crate::args::ExplainArgs;
use crate::case::Case;
use crate::format;
use crate::loss::Loss;
use crate::output::{self, Colour, Paint};
use crate::select::NothingFound;
use crate::which::choose;
use anyhow::Result;
use hangdog_diagnose::explain::{Explanation, Seen, explain};
use hangdog_diagnose::problem::Scope;
use hangdog_diagnose::{Setting, problem};
use serde::Serialize;
use std::io::Write;
use std::path::Path;

#[derive(Serialize)]
struct Answer<'a> {
    trace: &'a Path,
    loss: &'a Loss,
    #[serde(flatten)]
    explanation: &'a Explanation,
}

/// Explains it.
pub fn run(args: &ExplainArgs) -> Result<()> {
    let answers = answers_file::read(&args.trace)?;
    let case = Case::load(&args.trace)?;
    let recording = &case.recording;
    let evidence = case.evidence();
    let problems = problem::find(&evidence, Scope::of(recording.trace.meta()));
    let (chosen, _) = choose(&args.which, &evidence, recording, &problems)?;
    let good = args.which.baseline.as_deref().map(Case::load).transpose()?;
    let baseline = good.as_ref().map(Case::evidence);
    let setting = Setting {
        lost: recording.loss.total > 0,
        answers: &answers,
        baseline: baseline.as_ref(),
        yardstick: recording.trace.meta().yardstick.as_ref(),
        instant: recording.trace.meta().is_instant(),
    };
    let step = args.step as usize;
    let Some(explanation) = explain(&evidence, &chosen, setting, step) else {
        return Err(NothingFound::new(format!(
            "the verdict has no edge {step}: the numbers are those of the steps of 'How it came \
             about' in hangdog why, and a step that did not wait has no edge"
        ))
        .into());
    };
    if args.json {
        return output::json(&Answer {
            trace: &args.trace,
            loss: &recording.loss,
            explanation: &explanation,
        });
    }
    print(&explanation, &recording.loss)
}

fn print(explanation: &Explanation, loss: &Loss) -> Result<()> {
    let paint = Paint::for_stdout();
    let mut out = output::stdout();
    let heading = |text: &str| paint.text(Colour::Heading, text);
    let line = |stack: &[String]| format::printable(&stack.join(" < ")).into_owned();
    writeln!(
        out,
        "{} {}, from {} for {}",
        heading(&why::name(&explanation.waiter)),
        format::printable(&explanation.doing),
        format::moment(explanation.from_ns),
        format::duration(explanation.to_ns - explanation.from_ns),
    )?;
    if !explanation.at.is_empty() {
        writeln!(out, "  at {}", line(&explanation.at))?;
    }
    if explanation.woken_in_vain > 0 {
        let times = match explanation.woken_in_vain {
            1 => "once".to_owned(),
            times => format!("{times} times"),
        };
        writeln!(out, "  it was woken {times} in vain before")?;
    }
    let edge = &explanation.edge;
    writeln!(
        out,
        "\n{} {} ({}, {})",
        heading("Believed:"),
        format::printable(&edge.reason),
        edge.kind,
        edge.strength
    )?;
    writeln!(out, "\n{}", heading("What was seen"))?;
    match &explanation.wake {
        Some(seen) => print_seen(&mut out, seen, line)?,
        None => writeln!(out, "  nothing made it runnable within the trace")?,
    }
    writeln!(out, "\n{}", heading("Such waits before"))?;
    for before in &explanation.before {
        writeln!(
            out,
            "  {} woke it {}; it went on after {} of them",
            why::name(&before.who),
            format::things(before.times as u64, "time", "times"),
            before.went_on
        )?;
    }
    let others = explanation.before_by_timer + explanation.before_by_others;
    if others > 0 {
        writeln!(
            out,
            "  time-outs ended {}, devices and what is not known {}",
            explanation.before_by_timer, explanation.before_by_others
        )?;
    } else if explanation.before.is_empty() {
        writeln!(out, "  none")?;
    }
    if let Some(median) = explanation.before_median_ns {
        writeln!(
            out,
            "  half of them took {} or less",
            format::duration(median)
        )?;
    }
    writeln!(out, "\n{}", heading("What it could have been"))?;
    for possibility in &explanation.possibilities {
        writeln!(
            out,
            "  {} {:>3.0} %  {}: {}",
            if possibility.chosen { "*" } else { " " },
            possibility.probability * 100.0,
            format::printable(&possibility.text),
            format::printable(&possibility.because)
        )?;
    }
    writeln!(out, "\nLost: {}", loss.text())?;
    Ok(out.flush()?)
}

fn print_seen(out: &mut impl Write, seen: &Seen, line: impl Fn(&[String]) -> String) -> Result<()> {
    let call = match seen.call.as_str() {
        "" => String::new(),
        call => format!(", in {call}"),
    };
    writeln!(
        out,
        "  {}: woken on CPU {} while {} was there: {}{call}",
        format::moment(seen.at_ns),
        seen.cpu,
        why::name(&seen.on_cpu),
        seen.context,
    )?;
    for stack in [&seen.stack, &seen.kernel_stack] {
        if !stack.is_empty() {
            writeln!(out, "  at {}", line(stack))?;
        }
    }
    Ok(())
}

//! `hangdog explain`: why an edge of a verdict is believed.

use super::why;
use crate::args::ExplainArgs;
use crate::load;
use crate::output::{self, Colour, Paint};
use anyhow::Result;
use hangdog_diagnose::explain::{Explanation, Seen, explain};
use hangdog_report::answers_file;
use hangdog_report::format;
use hangdog_report::loss::Loss;
use hangdog_report::rank;
use hangdog_report::select::NothingFound;
use hangdog_report::which::choose;
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
    let case = load::case(&args.trace)?;
    let recording = &case.recording;
    let evidence = case.evidence();
    let (problems, _) = rank::problems(&case, &evidence);
    let (chosen, _) = choose(&args.which.wanted(), &evidence, recording, &problems)?;
    let good = args.which.baseline.as_deref().map(load::case).transpose()?;
    let baseline = good.as_ref().map(|good| good.evidence());
    let setting = case.setting(&answers, baseline.as_ref());
    let step = args.step as usize;
    let Some(explanation) = explain(&evidence, &chosen, setting, step) else {
        return Err(NothingFound::new(format!(
            "the verdict has no edge {step}: edges have the numbers of the steps under 'How it \
             came about' in hangdog why; a step that did not wait has no edge"
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
        let wakeups = format::things(
            explanation.woken_in_vain as u64,
            "spurious wakeup",
            "spurious wakeups",
        );
        writeln!(out, "  {wakeups} before")?;
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
    writeln!(out, "\n{}", heading("Observed"))?;
    match &explanation.wake {
        Some(seen) => print_seen(&mut out, seen, line)?,
        None => writeln!(out, "  nothing made it runnable within the trace")?,
    }
    writeln!(out, "\n{}", heading("Earlier waits like this"))?;
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
            "  timeouts ended {}, devices and unknown wakers {}",
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
    writeln!(out, "\n{}", heading("Candidates"))?;
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
        "  {}: woken on CPU {} while {} was on it: {}{call}",
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

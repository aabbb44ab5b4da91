//! A verdict as text.

use super::name::name;
use super::ran;
use crate::output::{self, Colour, Paint};
use anyhow::Result;
use hangdog_diagnose::verdict::{BaselineReport, Entry, PathStep, Question, Verdict, Whole};
use hangdog_report::answers::Found;
use hangdog_report::format;
use hangdog_report::loss::Loss;
use hangdog_report::regions::Picked;
use hangdog_report::repeats::Repeats;
use std::io::Write;
use std::ops::Range;

/// A share in percent.
pub fn share(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Prints which occurrence of a region is explained, and where its time differs from the others'.
pub fn print_region(picked: &Picked<'_>) -> Result<()> {
    let paint = Paint::for_stdout();
    let mut out = output::stdout();
    let occurrence = &picked.occurrence;
    let number = occurrence.nth.unwrap_or(1);
    let order = match number {
        1 => "the longest".to_owned(),
        _ => format!("number {number} by duration"),
    };
    writeln!(
        out,
        "{}  {}, {order} of {}: {}{} at {} on {}; the median is {}",
        paint.text(Colour::Heading, "Region"),
        format::printable(&occurrence.name),
        picked.of,
        format::duration(occurrence.duration_ns),
        if occurrence.open {
            " without an end"
        } else {
            ""
        },
        format::moment(occurrence.start_ns),
        occurrence.thread.text(),
        format::duration(picked.median_ns),
    )?;
    if picked.of > 1 {
        for state in &picked.states {
            writeln!(
                out,
                "        {:<11} {:>8}, on average of the others {:>8}",
                state.state,
                format::duration(state.ns),
                format::duration(state.others_ns),
            )?;
        }
    }
    writeln!(out)?;
    Ok(out.flush()?)
}

/// The report says how long a thread waited before the recording if it was at least this long.
const NOTED_NS: u64 = 100_000_000;
const MOST_FRAMES: usize = 8;
const MOST_FRAMES_OF_ROOT: usize = 12;
const MOST_ROWS: usize = 6;
/// So many other problems are listed.
const MOST_OTHERS: usize = 4;
/// What has less of a run's time is told in one line with all else.
const LEAST_SHARE: f64 = 0.01;

/// What stands around a verdict.
pub struct Around<'a> {
    /// What the trace lost.
    pub loss: &'a Loss,
    /// All problems.
    pub found: &'a [Found],
    /// Which of them it is, from 1.
    pub number: Option<usize>,
    /// What its page-ins were for.
    pub paging: Option<&'a str>,
}

/// Prints it. Its cause repeats as `repeats` says; `defaults` says how the questions came to be answered where the
/// user was not asked.
pub fn print(
    verdict: &Verdict,
    around: &Around<'_>,
    repeats: Option<Repeats>,
    defaults: &str,
) -> Result<()> {
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
    if let Some(all_ns) = problem.all_ns {
        let all = format::duration(all_ns);
        writeln!(
            out,
            "         the first of its waits, which are explained; {all} in all"
        )?;
    }
    // Only the worst problems were looked at for it.
    if let Some(repeats) = repeats {
        writeln!(
            out,
            "         at least {} times for this cause, {} in all; hangdog problems counts them",
            repeats.times,
            format::duration(repeats.total_ns)
        )?;
    }
    write_root(&mut out, &paint, verdict)?;
    writeln!(
        out,
        "         {} of the time; confidence {:.0} %",
        share(root.share),
        root.confidence * 100.0
    )?;
    // What saves less than can be read here saves nothing.
    let (all, left) = [problem.duration_ns, verdict.without_root_ns]
        .map(format::duration)
        .into();
    if verdict.without_root_ns == 0 && problem.duration_ns > 0 {
        writeln!(out, "         without it: 0 ms")?;
    } else if left != all && verdict.without_root_ns < problem.duration_ns {
        writeln!(out, "         without it: {left} instead of {all}")?;
    }
    if let Some(knot) = &verdict.knot {
        let names: Vec<String> = knot.iter().map(name).collect();
        let who = match &names[..] {
            [only] => format!("{only} waits for itself"),
            _ => format!("{} wait for each other", names.join(", ")),
        };
        writeln!(out, "{}    {who}", heading("Cycle"))?;
    }

    writeln!(out, "\n{}", heading("Where the time went"))?;
    for row in verdict.blame_by_thread.iter().take(MOST_ROWS) {
        write!(
            out,
            "  {:>9}  {:>7}  {:<10} {}",
            format::duration(row.ns),
            share(row.share),
            row.kind,
            name(&row.who)
        )?;
        match &row.compared {
            Some(compared) => {
                writeln!(out, "  {}", paint.text(Colour::Quiet, &compared.text))?;
            }
            None => writeln!(out)?,
        }
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

    write_estimated(&mut out, verdict)?;
    if let Some(paging) = around.paging {
        writeln!(out, "\n{}   {paging}", heading("Paging"))?;
    }

    if let Some(ran) = &verdict.ran {
        ran::print(&mut out, &paint, ran)?;
    }

    writeln!(out, "\n{}", heading("How it came about"))?;
    write_steps(&mut out, &paint, &verdict.path, |step| {
        let during = format::duration(step.to_ns.saturating_sub(step.from_ns));
        match step.before_ns {
            before if before < NOTED_NS => format!("{during}  "),
            before => format!("{during}, and {} before  ", format::duration(before)),
        }
    })?;
    if verdict.slice.len() > 1 {
        writeln!(out, "\n{}", heading("What led to it, latest first"))?;
        for step in &verdict.slice {
            writeln!(
                out,
                "  {}  {}: {}",
                format::moment(step.begun.at_ns),
                name(&step.who),
                format::printable(&step.begun.text)
            )?;
        }
    }
    if let Some(baseline) = &verdict.baseline {
        write_baseline(&mut out, &heading("When it went well"), baseline)?;
    }
    write_end(&mut out, &paint, verdict, around, defaults)?;
    Ok(out.flush()?)
}

/// Writes who waits for whom at one moment.
pub fn write_now(
    out: &mut impl Write,
    paint: &Paint,
    verdict: &Verdict,
    around: &Around<'_>,
) -> std::io::Result<()> {
    let heading = |text: &str| paint.text(Colour::Heading, text);
    writeln!(out, "{}", heading(&format::printable(&verdict.sentence)))?;
    writeln!(out, "\n{}", heading("Who waits for whom"))?;
    write_steps(out, paint, &verdict.path, |step| match step.before_ns {
        before if before < NOTED_NS => String::new(),
        before => format!("for {}  ", format::duration(before)),
    })?;
    write_root(out, paint, verdict)?;
    write_open(out, paint, verdict, "default")?;
    if around.loss.total > 0 {
        writeln!(out, "\nLost: {}", around.loss.text())?;
    }
    let others: Vec<String> = (around.found.iter().zip(1..))
        .filter(|(_, at)| Some(*at) != around.number)
        .take(MOST_OTHERS)
        .map(|(other, _)| name(&other.who))
        .collect();
    if !others.is_empty() {
        writeln!(out, "\nOther waiting threads: {}", others.join(", "))?;
    }
    out.flush()
}

/// Prints where the time of a command's run went.
pub fn print_whole(
    verdict: &Verdict,
    whole: &Whole,
    around: &Around<'_>,
    defaults: &str,
) -> Result<()> {
    let paint = Paint::for_stdout();
    let mut out = output::stdout();
    let heading = |text: &str| paint.text(Colour::Heading, text);
    writeln!(out, "{}", heading(&format::printable(&verdict.sentence)))?;
    writeln!(
        out,
        "\n{}  {}, from {} for {}; confidence {:.0} %",
        heading(if around.number.is_some() {
            "Problem"
        } else {
            "Command"
        }),
        name(&verdict.problem.who),
        format::moment(verdict.problem.start_ns),
        format::duration(verdict.problem.duration_ns),
        whole.confidence * 100.0
    )?;
    writeln!(out, "\n{}", heading("Where the time went"))?;
    let is_shown = |entry: &&Entry| entry.share >= LEAST_SHARE;
    for entry in whole.entries.iter().filter(is_shown) {
        let processes = match entry.processes {
            1 => String::new(),
            count => format!(" ({count} processes)"),
        };
        write!(
            out,
            "  {:>9}  {:>7}  {}{processes}: {}",
            format::duration(entry.ns),
            share(entry.share),
            format::printable(&entry.process),
            format::printable(&entry.what)
        )?;
        match (&entry.function, &entry.place) {
            (Some(function), Some(place)) => {
                let text = format!("{function}, {place}");
                let text = format::printable(&text);
                writeln!(out, "  {}", paint.text(Colour::Quiet, &text))?;
            }
            _ => writeln!(out)?,
        }
    }
    let rest = || whole.entries.iter().filter(|entry| !is_shown(entry));
    let count = rest().count();
    if count > 0 {
        writeln!(
            out,
            "  {:>9}  {:>7}  {}",
            format::duration(rest().map(|entry| entry.ns).sum()),
            share(rest().map(|entry| entry.share).sum()),
            format::things(count as u64, "more entry", "more entries")
        )?;
    }
    write_estimated(&mut out, verdict)?;
    if let Some(paging) = around.paging {
        writeln!(out, "\n{}   {paging}", heading("Paging"))?;
    }
    write_end(&mut out, &paint, verdict, around, defaults)?;
    Ok(out.flush()?)
}

/// That a part of the time is estimated, if it is.
fn write_estimated(out: &mut impl Write, verdict: &Verdict) -> Result<()> {
    if verdict.estimated_ns > 0 {
        let estimated = format::duration(verdict.estimated_ns);
        writeln!(
            out,
            "  {estimated:>9} of it is estimated from a sample of the short waits, which are too many to look at each"
        )?;
    }
    Ok(())
}

/// What is the same behind every verdict: what is open, what was lost, what else there is.
fn write_end(
    out: &mut impl Write,
    paint: &Paint,
    verdict: &Verdict,
    around: &Around<'_>,
    defaults: &str,
) -> std::io::Result<()> {
    write_open(out, paint, verdict, defaults)?;
    writeln!(out, "\nLost: {}", around.loss.text())?;
    let others = (around.found.iter().enumerate()).filter(|(at, _)| Some(at + 1) != around.number);
    let others: Vec<_> = others.take(MOST_OTHERS).collect();
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
    Ok(())
}

/// Who is to blame most, and where.
fn write_root(out: &mut impl Write, paint: &Paint, verdict: &Verdict) -> std::io::Result<()> {
    let root = &verdict.root;
    write!(
        out,
        "{}     {}: {:?}",
        paint.text(Colour::Heading, "Root"),
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
    writeln!(out)
}

/// What the verdict leaves open, and how to find out.
fn write_open(
    out: &mut impl Write,
    paint: &Paint,
    verdict: &Verdict,
    defaults: &str,
) -> std::io::Result<()> {
    for question in &verdict.questions {
        write_question(out, paint, question, defaults)?;
    }
    for hint in &verdict.hints {
        let heading = paint.text(Colour::Heading, "Hint");
        writeln!(out, "\n{heading}  {}", format::printable(&hint.text))?;
        writeln!(out, "      {}", format::printable(&hint.how))?;
    }
    Ok(())
}

/// The steps from the problem's thread to the root; `before` is what stands in front of a name.
fn write_steps(
    out: &mut impl Write,
    paint: &Paint,
    steps: &[PathStep],
    before: impl Fn(&PathStep) -> String,
) -> std::io::Result<()> {
    for (at, step) in steps.iter().enumerate() {
        writeln!(
            out,
            "  {}. {}{} {}",
            at + 1,
            before(step),
            paint.text(Colour::Heading, &name(&step.who)),
            format::printable(&step.doing),
        )?;
        if !step.stack.is_empty() {
            let most = match at + 1 == steps.len() {
                true => MOST_FRAMES_OF_ROOT,
                false => MOST_FRAMES,
            };
            let line = stack_line(step, most);
            let line = format!("at {}", format::printable(&line));
            let line = paint.text(Colour::Quiet, &line);
            writeln!(out, "     {line}")?;
        }
        if let Some(edge) = &step.edge {
            let line = format!("{} ({}, {})", edge.reason, edge.kind, edge.strength);
            let line = format::printable(&line);
            let line = paint.text(Colour::Quiet, &format!("because {line}"));
            writeln!(out, "     {line}")?;
        }
    }
    Ok(())
}

/// The innermost frames of a step's stack, at most so many; where the program's own function is not among them,
/// it comes after the first two, with some that it called and some that called it. What the C library calls
/// within itself to wait is left out.
fn stack_line(step: &PathStep, most: usize) -> String {
    const WITHIN: [&str; 4] = [
        "__futex_abstimed_wait_common",
        "__pthread_cond_wait_common",
        "__new_sem_wait_slow",
        "do_futex_wait",
    ];
    let is_within = |frame: &String| WITHIN.iter().any(|start| frame.starts_with(start));
    let left_out = step.stack.iter().take_while(|it| is_within(it)).count();
    let frames = &step.stack[left_out.min(step.stack.len().saturating_sub(1))..];
    let left_out = step.stack.len() - frames.len();
    let own = step.own_frame.and_then(|own| own.checked_sub(left_out));
    let (front, shown) = shown_frames(frames.len(), own, most);
    let mut line = frames[shown.clone()].join(" < ");
    if front > 0 {
        line = format!("{} < ... < {line}", frames[..front].join(" < "));
    }
    let until = shown.end;
    match step.stack_end {
        _ if frames.len() > until => line.push_str(" < ..."),
        Some(end) => line.push_str(&format!(" < ... (outer frames unknown: {end})")),
        None => {}
    }
    line
}

/// How many frames stand in front, and which are shown then, of so many with the program's own one among them.
fn shown_frames(count: usize, own: Option<usize>, most: usize) -> (usize, Range<usize>) {
    const IN_FRONT: usize = 2;
    match own.filter(|&own| own >= most && own < count) {
        Some(own) => {
            let beneath = most / 2 - IN_FRONT;
            (IN_FRONT, own - beneath..count.min(own + most / 2))
        }
        None => (0, 0..count.min(most)),
    }
}

fn write_question(
    out: &mut impl Write,
    paint: &Paint,
    question: &Question,
    defaults: &str,
) -> std::io::Result<()> {
    let by = match question.answer {
        Some(number) => format!("answer {number}; hangdog why --forget {number} takes it back"),
        None => defaults.to_owned(),
    };
    let heading = paint.text(Colour::Heading, "Question");
    writeln!(out, "\n{heading}  {}", format::printable(&question.text))?;
    for possibility in &question.possibilities {
        let mark = if possibility.chosen { "*" } else { " " };
        writeln!(
            out,
            "        {mark} {} ({:.0} %): {}; the root is then: {}",
            format::printable(&possibility.text),
            possibility.probability * 100.0,
            format::printable(&possibility.because),
            format::printable(&possibility.root),
        )?;
    }
    writeln!(
        out,
        "          {}",
        paint.text(Colour::Quiet, &format!("* by {by}"))
    )
}

fn write_baseline(
    out: &mut impl Write,
    heading: &str,
    baseline: &BaselineReport,
) -> std::io::Result<()> {
    const MOST: usize = 3;
    let place = match baseline.from_other {
        true => "in the other recording",
        false => "in this recording",
    };
    writeln!(
        out,
        "\n{heading}\n  {} {place}; the one at {} took {} instead of {}",
        format::things(baseline.found as u64, "similar wait", "similar waits"),
        format::moment(baseline.start_ns),
        format::duration(baseline.duration_ns),
        format::duration(baseline.now_ns),
    )?;
    for row in baseline.compared.iter().take(MOST) {
        writeln!(
            out,
            "  {:>9} instead of {:>9}  {:<10} {}",
            format::duration(row.then_ns),
            format::duration(row.now_ns),
            row.kind,
            format::printable(&row.role)
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::shown_frames;

    /// The program's own function is always shown, with what it called, however far out it is.
    #[test]
    fn own_function_is_among_the_frames() {
        assert_eq!(shown_frames(4, Some(3), 6), (0, 0..4));
        assert_eq!(shown_frames(20, None, 6), (0, 0..6));
        assert_eq!(shown_frames(20, Some(5), 6), (0, 0..6));
        assert_eq!(shown_frames(20, Some(6), 6), (2, 5..9));
        assert_eq!(shown_frames(20, Some(17), 12), (2, 13..20));
        assert_eq!(shown_frames(3, Some(9), 6), (0, 0..3), "no such frame");
    }
}

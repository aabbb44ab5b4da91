//! `hangdog compare`: why the same work is now fast and now slow.

use crate::args::CompareArgs;
use crate::load;
use crate::output::{self, Colour, Paint};
use crate::table;
use anyhow::Result;
use comfy_table::CellAlignment;
use hangdog_diagnose::compare::{Comparison, Difference, Split};
use hangdog_report::compare::{Found, Wanted, slowest};
use hangdog_report::select::Window;
use hangdog_report::{Case, Loss, format};
use serde::Serialize;
use std::io::Write;
use std::path::Path;

/// The answer in JSON.
#[derive(Serialize)]
struct Answer<'a> {
    trace: &'a Path,
    loss: &'a Loss,
    /// The trace that it is compared with; none if it is compared with itself.
    with: Option<&'a Path>,
    from_ns: u64,
    to_ns: u64,
    /// What was compared.
    what: &'a str,
    #[serde(flatten)]
    comparison: &'a Comparison,
}

/// Compares.
pub fn run(args: &CompareArgs) -> Result<()> {
    let wanted = match (&args.region, &args.calls, args.requests) {
        (Some(name), ..) => Wanted::Region(name),
        (None, Some(call), _) => Wanted::Calls(call),
        (None, None, true) => Wanted::Requests,
        (None, None, false) => Wanted::Turns {
            call: args.turn_call.as_deref(),
        },
    };
    let thread = args.thread.as_deref();
    let split = match args.slowest {
        Some(percent) => slowest(percent)?,
        None => Split::Apart,
    };
    let case = load::case(&args.trace)?;
    let window = Window::new(args.window, case.recording.timeline.end())?;
    let evidence = case.evidence();
    let found = Found::new(&case, &evidence, thread, window, wanted)?;
    let comparison = match &args.other {
        None => found.compare(&evidence, split)?,
        Some(path) => {
            let other: Case = load::case(path)?;
            let evidence_of_other = other.evidence();
            let whole = Window {
                from: 0,
                to: other.recording.timeline.end(),
            };
            let others = Found::new(&other, &evidence_of_other, thread, whole, wanted)?;
            found.compare_with(&evidence, &others, &evidence_of_other)?
        }
    };
    let loss = &case.recording.loss;
    if !args.json {
        return print(loss, &comparison);
    }
    output::json(&Answer {
        trace: &args.trace,
        loss,
        with: args.other.as_deref(),
        from_ns: window.from,
        to_ns: window.to,
        what: &found.what,
        comparison: &comparison,
    })
}

fn print(loss: &Loss, comparison: &Comparison) -> Result<()> {
    let paint = Paint::for_stdout();
    let mut out = output::stdout();
    let sentence = format::printable(&comparison.sentence);
    writeln!(out, "{}", paint.text(Colour::Heading, &sentence))?;
    if let Some(difference) = &comparison.difference {
        writeln!(out)?;
        write_difference(&mut out, paint, difference)?;
    }
    writeln!(out, "\n{}", table::lost(paint, loss))?;
    Ok(out.flush()?)
}

fn write_difference(out: &mut impl Write, paint: Paint, difference: &Difference) -> Result<()> {
    let time = |ns: f64| format::duration(ns.max(0.0).round() as u64);
    let signed = |ns: f64| match ns < 0.0 {
        true => format!("-{}", time(-ns)),
        false => time(ns),
    };
    let percent = |share: f64| format!("{:.0} %", 100.0 * share);
    let headings = [
        "",
        "fast",
        "slow",
        "difference",
        "share",
        "9 of 10",
        "first in",
    ];
    let mut table = table::new(paint, &headings);
    let (fast, slow) = (difference.fast.mean_ns, difference.slow.mean_ns);
    table.add_row([
        "duration, on average".to_owned(),
        time(fast),
        time(slow),
        signed(slow - fast),
        percent(1.0),
    ]);
    for factor in &difference.factors {
        table.add_row([
            factor.factor.clone(),
            time(factor.fast_ns),
            time(factor.slow_ns),
            signed(factor.difference_ns),
            percent(factor.share),
            format!(
                "{} to {}",
                percent(factor.share_low),
                percent(factor.share_high)
            ),
            percent(factor.sure),
        ]);
        const SHOWN: usize = 4;
        let whole = (difference.slow.mean_ns - difference.fast.mean_ns).abs();
        let parts = factor.details.iter().take(SHOWN);
        for part in parts.filter(|part| (part.slow_ns - part.fast_ns).abs() >= whole / 100.0) {
            table.add_row([
                format!("  {}", format::printable(&part.what)),
                time(part.fast_ns),
                time(part.slow_ns),
                signed(part.slow_ns - part.fast_ns),
            ]);
        }
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table::write(out, &table)?;
    writeln!(
        out,
        "\n{} fast, up to {}; {} slow, from {} to {}.",
        format::count(difference.fast.count as u64),
        format::duration(difference.fast.max_ns),
        format::count(difference.slow.count as u64),
        format::duration(difference.slow.min_ns),
        format::duration(difference.slow.max_ns),
    )?;
    for other in &difference.others {
        writeln!(
            out,
            "Also: {}: fast {:.2}, slow {:.2}.",
            format::printable(&other.what),
            other.fast,
            other.slow
        )?;
    }
    if let Some(hardware) = &difference.hardware {
        writeln!(out, "Hardware: {}.", hardware.conclusion)?;
    }
    if !difference.ruled_out.is_empty() {
        writeln!(out, "It is not: {}.", difference.ruled_out.join(", "))?;
    }
    if let Some(next) = &difference.next {
        writeln!(out, "Next: {next}")?;
    }
    Ok(())
}

//! `hangdog calls`: the system calls of a trace that recorded them.

use crate::args::{CallsArgs, CallsBy};
use crate::load;
use crate::output::{self, Paint};
use crate::table;
use anyhow::Result;
use comfy_table::CellAlignment;
use hangdog_report::calls::{By, Kind, Selection, kinds};
use hangdog_report::select::{self, NothingFound, Window};
use hangdog_report::{Loss, format};
use hangdog_trace::calls::Calls;
use hangdog_trace::tables::SystemCalls;
use serde::Serialize;
use std::collections::HashSet;
use std::io::Write;
use std::path::Path;

/// The answer in JSON.
#[derive(Serialize)]
struct Answer<'a> {
    trace: &'a Path,
    loss: &'a Loss,
    from_ns: u64,
    to_ns: u64,
    calls: &'a [Kind<'a>],
}

/// Shows the calls.
pub fn run(args: &CallsArgs) -> Result<()> {
    let recording = load::recording(&args.trace)?;
    let (threads, timeline) = (&recording.threads, &recording.timeline);
    let window = Window::new(args.window, timeline.end())?;
    let log: SystemCalls = recording.trace.read()?;
    if log.is_empty() {
        let what = "the trace has no system calls; record them with --calls -- COMMAND, or \
                    --calls-of PROCESS";
        return Err(NothingFound::new(what).into());
    }
    let of_thread: Option<HashSet<_>> = match &args.thread {
        Some(selector) => Some(select::threads(threads, timeline, window, selector)?),
        None => None,
    }
    .map(|found| found.into_iter().collect());
    let of_process = match &args.process {
        Some(selector) => Some(select::processes(threads, selector)?),
        None => None,
    };
    let selected = |thread| {
        let process = threads.thread(thread).upid;
        of_thread.as_ref().is_none_or(|of| of.contains(&thread))
            && of_process.as_ref().is_none_or(|of| of.contains(&process))
    };
    let stacks = load::stacks(&recording.trace)?;
    let selection = Selection {
        window,
        of: &selected,
        by: match args.by {
            CallsBy::Call => By::Call,
            CallsBy::Thread => By::Thread,
            CallsBy::Function => By::Function,
        },
    };
    let names = Calls::new(&recording.trace.meta().arch);
    let kinds = kinds(&log, threads, &stacks, &names, &selection);
    if kinds.is_empty() {
        let what = "none of the recorded system calls is of that thread or process and begins within \
                    the time range";
        return Err(NothingFound::new(what).into());
    }
    if args.json {
        return output::json(&Answer {
            trace: &args.trace,
            loss: &recording.loss,
            from_ns: window.from,
            to_ns: window.to,
            calls: &kinds,
        });
    }
    print(&recording.loss, window, &kinds, args.by)
}

fn print(loss: &Loss, window: Window, kinds: &[Kind<'_>], by: CallsBy) -> Result<()> {
    let paint = Paint::for_stdout();
    let figures = [
        "count",
        "min",
        "mean",
        "max",
        "deviation",
        "sum",
        "errors",
        "by error",
    ];
    let of: &[&str] = match by {
        CallsBy::Call => &[],
        CallsBy::Thread => &["thread"],
        CallsBy::Function => &["function"],
    };
    let headings = [&["call"], of, &figures].concat();
    let mut table = table::new(paint, &headings);
    for kind in kinds {
        let mut row = vec![kind.call.clone()];
        row.extend(kind.thread.as_ref().map(|who| who.text()));
        row.extend(kind.function.as_ref().map(|function| match &**function {
            "" => "?".to_owned(),
            function => format::printable(function).into_owned(),
        }));
        let by_error: Vec<String> = (kind.by_error.iter())
            .map(|failed| format!("{} {}", failed.error, format::count(failed.count)))
            .collect();
        row.extend([
            format::count(kind.count),
            format::duration(kind.min_ns),
            format::duration(kind.mean_ns.round() as u64),
            format::duration(kind.max_ns),
            format::duration(kind.deviation_ns.round() as u64),
            format::duration(kind.sum_ns),
            format::count(kind.errors),
            by_error.join(", "),
        ]);
        table.add_row(row);
    }
    for column in table.column_iter_mut().skip(1 + of.len()).take(7) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let mut out = output::stdout();
    table::write(&mut out, &table)?;
    let count = kinds.iter().map(|kind| kind.count).sum();
    writeln!(
        out,
        "\n{} that begin from {} to {} and have returned. {}",
        format::things(count, "call", "calls"),
        format::moment(window.from),
        format::moment(window.to),
        table::lost(paint, loss)
    )?;
    Ok(out.flush()?)
}

//! `hangdog threads`: where each thread's time went.

use crate::args::{Column, ThreadsArgs};
use crate::commands::regions;
use crate::load;
use crate::output::{self, Paint};
use crate::table;
use anyhow::Result;
use comfy_table::CellAlignment;
use hangdog_report::format;
use hangdog_report::select::{self, NothingFound, Window};
use hangdog_report::threads::{ThreadRow, thread_rows};
use hangdog_report::{Loss, Recording};
use hangdog_timeline::State;
use serde::Serialize;
use std::cmp::Reverse;
use std::io::Write;
use std::path::Path;

/// The answer in JSON.
#[derive(Serialize)]
struct Answer<'a> {
    trace: &'a Path,
    loss: &'a Loss,
    from_ns: u64,
    to_ns: u64,
    threads: &'a [ThreadRow<'a>],
}

/// Shows the threads.
pub fn run(args: &ThreadsArgs) -> Result<()> {
    let recording = load::recording(&args.trace)?;
    let mut window = Window::new(args.window, recording.timeline.end())?;
    if let Some((_, of_region)) = regions::place(
        &recording,
        &args.region,
        args.window.into(),
        args.process.as_deref(),
        args.thread.as_deref(),
    )? {
        window = of_region;
    }
    let mut rows = thread_rows(&recording, window)?;
    retain(&mut rows, &recording, window, args)?;
    if rows.is_empty() {
        return Err(NothingFound::new("no such thread lives within the window").into());
    }
    sort(&mut rows, args.sort);
    if !args.json {
        return print(&recording.loss, window, &rows);
    }
    output::json(&Answer {
        trace: &args.trace,
        loss: &recording.loss,
        from_ns: window.from,
        to_ns: window.to,
        threads: &rows,
    })
}

/// Keeps the threads that the arguments mean.
fn retain(
    rows: &mut Vec<ThreadRow<'_>>,
    recording: &Recording,
    window: Window,
    args: &ThreadsArgs,
) -> Result<()> {
    let threads = &recording.threads;
    if let Some(selector) = &args.process {
        let processes = select::processes(threads, selector)?;
        rows.retain(|row| processes.contains(&threads.thread(row.who.utid).upid));
    }
    if let Some(selector) = &args.thread {
        let utids = select::threads(threads, &recording.timeline, window, selector)?;
        rows.retain(|row| utids.contains(&row.who.utid));
    }
    Ok(())
}

/// Sorts by a column; what is equal there stays in order of the threads' ids in the trace.
fn sort(rows: &mut [ThreadRow<'_>], column: Column) {
    match column {
        Column::Process => rows.sort_by_key(|row| (row.who.process, row.who.thread)),
        Column::Pid => rows.sort_by_key(|row| (row.who.pid, row.who.tid)),
        Column::Thread => rows.sort_by_key(|row| row.who.thread),
        Column::Tid => rows.sort_by_key(|row| row.who.tid),
        Column::Time => rows.sort_by_key(|row| Reverse(row.time_ns)),
        Column::Running => rows.sort_by_key(|row| Reverse(row.time(State::Running))),
        Column::Runnable => rows.sort_by_key(|row| Reverse(row.time(State::Runnable))),
        Column::Preempted => rows.sort_by_key(|row| Reverse(row.time(State::Preempted))),
        Column::Blocked => rows.sort_by_key(|row| Reverse(row.time(State::Blocked))),
        Column::Interrupted => rows.sort_by_key(|row| Reverse(row.time(State::Interrupted))),
        Column::Switches => rows.sort_by_key(|row| Reverse(row.switches)),
        Column::Longest => {
            rows.sort_by_key(|row| Reverse(row.longest_wait.map_or(0, |wait| wait.duration())));
        }
    }
}

fn print(loss: &Loss, window: Window, rows: &[ThreadRow<'_>]) -> Result<()> {
    let paint = Paint::for_stdout();
    let counted = rows.iter().any(|row| row.counters.is_some());
    let mut headings = vec![
        "process",
        "pid",
        "thread",
        "tid",
        "time",
        "running",
        "runnable",
        "preempted",
        "blocked",
        "interrupted",
        "switches",
        "longest wait",
    ];
    if counted {
        headings.extend(["instr/cycle", "cache misses/1000 instr"]);
    }
    let mut table = table::new(paint, &headings);
    for row in rows {
        let mut cells = vec![
            format::printable(row.who.process).into(),
            row.who.pid.to_string(),
            format::printable(row.who.thread).into(),
            row.who.tid.to_string(),
            format::duration(row.time_ns),
        ];
        cells.extend(State::ALL.map(|state| {
            let ns = row.time(state);
            match ns {
                0 => String::new(),
                _ => format!(
                    "{}  {:>6}",
                    format::duration(ns),
                    format::percent(ns, row.time_ns)
                ),
            }
        }));
        cells.push(format::count(row.switches));
        cells.push(row.longest_wait.map_or(String::new(), |wait| {
            format!(
                "{} {} at {}",
                format::duration(wait.duration()),
                wait.state.text(),
                format::moment(wait.start)
            )
        }));
        if counted {
            let figure = |value: Option<f64>| value.map_or(String::new(), |v| format!("{v:.2}"));
            let rates = row.counters.unwrap_or_default();
            cells.push(figure(rates.instructions.value()));
            cells.push(figure(rates.cache_misses.value().map(|each| each * 1000.0)));
        }
        table.add_row(cells);
    }
    for (i, column) in table.column_iter_mut().enumerate() {
        if i != 0 && i != 2 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut out = output::stdout();
    table::write(&mut out, &table)?;
    writeln!(
        out,
        "\n{} from {} to {}. {}",
        format::things(rows.len() as u64, "thread", "threads"),
        format::moment(window.from),
        format::moment(window.to),
        table::lost(paint, loss)
    )?;
    Ok(out.flush()?)
}

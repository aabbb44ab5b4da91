//! `hangdog threads`: where each thread's time went.

use crate::args::{Column, ThreadsArgs};
use crate::format;
use crate::load::Recording;
use crate::loss::Loss;
use crate::output::{self, Colour, Paint};
use crate::select::{self, NothingFound, Who, Window};
use anyhow::Result;
use comfy_table::{Attribute, Cell, CellAlignment, Table, presets};
use hangdog_timeline::counters::{self, Rate, Rates};
use hangdog_timeline::summary::{Summary, summaries};
use hangdog_timeline::{Interval, State};
use hangdog_trace::ids::Utid;
use hangdog_trace::tables::Counters;
use serde::{Serialize, Serializer};
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
    threads: &'a [Row<'a>],
}

/// A thread.
#[derive(Serialize)]
struct Row<'a> {
    #[serde(flatten)]
    who: Who<'a>,
    /// Its life within the window, ns.
    time_ns: u64,
    #[serde(serialize_with = "states")]
    states: Summary,
    switches: u64,
    #[serde(serialize_with = "wait")]
    longest_wait: Option<Interval>,
    /// None where the thread was not counted.
    #[serde(serialize_with = "rates", skip_serializing_if = "Option::is_none")]
    counters: Option<Rates>,
}

impl<'a> Row<'a> {
    fn new(who: Who<'a>, summary: Summary, counters: Option<Rates>) -> Row<'a> {
        Row {
            who,
            time_ns: summary.total(),
            states: summary,
            switches: summary.switches,
            longest_wait: summary.longest_wait,
            counters,
        }
    }

    fn time(&self, state: State) -> u64 {
        self.states.time_in(state)
    }
}

fn states<S: Serializer>(summary: &Summary, to: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Share {
        ns: u64,
        share: f64,
    }
    let total = summary.total().max(1) as f64;
    to.collect_map(State::ALL.into_iter().map(|state| {
        let ns = summary.time_in(state);
        let share = ns as f64 / total;
        (state.text(), Share { ns, share })
    }))
}

fn wait<S: Serializer>(wait: &Option<Interval>, to: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Wait {
        start_ns: u64,
        duration_ns: u64,
        state: &'static str,
    }
    wait.map(|wait| Wait {
        start_ns: wait.start,
        duration_ns: wait.duration(),
        state: wait.state.text(),
    })
    .serialize(to)
}

fn rates<S: Serializer>(rates: &Option<Rates>, to: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Counted {
        instructions_per_cycle: Option<f64>,
        cache_misses_per_1000_instructions: Option<f64>,
        tlb_misses_per_1000_instructions: Option<f64>,
    }
    let per_1000 = |rate: Rate| rate.value().map(|each| each * 1000.0);
    rates
        .map(|rates| Counted {
            instructions_per_cycle: rates.instructions.value(),
            cache_misses_per_1000_instructions: per_1000(rates.cache_misses),
            tlb_misses_per_1000_instructions: per_1000(rates.tlb_misses),
        })
        .serialize(to)
}

/// Shows the threads.
pub fn run(args: &ThreadsArgs) -> Result<()> {
    let recording = Recording::load(&args.trace)?;
    let window = Window::new(args.window, recording.timeline.end())?;
    let counters: Counters = recording.trace.read()?;
    let rates = counters::rates(&counters, window.from, window.to);
    let mut rows: Vec<Row<'_>> = chosen(&recording, window, args)?
        .into_iter()
        .map(|(utid, summary)| {
            let who = Who::new(&recording.threads, utid);
            Row::new(who, summary, rates.get(&utid).copied())
        })
        .collect();
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

/// The threads that live within the window and that the arguments mean.
fn chosen(
    recording: &Recording,
    window: Window,
    args: &ThreadsArgs,
) -> Result<Vec<(Utid, Summary)>> {
    let threads = &recording.threads;
    let mut found = summaries(&recording.timeline, window.from, window.to);
    if let Some(selector) = &args.process {
        let processes = select::processes(threads, selector)?;
        found.retain(|(utid, _)| processes.contains(&threads.thread(*utid).upid));
    }
    if let Some(selector) = &args.thread {
        let utids = select::threads(threads, &recording.timeline, window, selector)?;
        found.retain(|(utid, _)| utids.contains(utid));
    }
    Ok(found)
}

/// Sorts by a column; what is equal there stays in order of the threads' ids in the trace.
fn sort(rows: &mut [Row<'_>], column: Column) {
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

fn print(loss: &Loss, window: Window, rows: &[Row<'_>]) -> Result<()> {
    let paint = Paint::for_stdout();
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    if !paint.is_on() {
        table.force_no_tty();
    }
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
    let bold = |text| Cell::new(text).add_attribute(Attribute::Bold);
    table.set_header(headings.into_iter().map(bold));
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
    for line in table.lines() {
        writeln!(out, "{}", line.trim_end())?;
    }
    let lost = format!("Lost: {}", loss.text());
    let colour = if loss.is_none() {
        Colour::Quiet
    } else {
        Colour::Warning
    };
    writeln!(
        out,
        "\n{} from {} to {}. {}",
        format::things(rows.len() as u64, "thread", "threads"),
        format::moment(window.from),
        format::moment(window.to),
        paint.text(colour, &lost)
    )?;
    Ok(out.flush()?)
}

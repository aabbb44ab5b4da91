//! `hangdog paging`: what an operation waited for to be paged in, segment by segment.

mod prefetch;

use crate::args::{PagingArgs, Trial};
use crate::load;
use crate::output::{self, Colour, Paint};
use crate::table;
use anyhow::{Context, Result};
use comfy_table::CellAlignment;
use hangdog_report::paging::{
    Exchange, InOthers, Operation, Paging, Sum, life, order, other_regions, other_starts,
    own_processes, paging, with_descendants,
};
use hangdog_report::rank;
use hangdog_report::select::{self, Bounds, NothingFound, Window};
use hangdog_report::which::{Wanted, choose};
use hangdog_report::{Case, Loss, format};
use hangdog_symbols::linkage;
use serde::Serialize;
use std::io::Write;
use std::path::Path;

/// So many rows are printed.
const MOST_SEGMENTS: usize = 20;
const MOST_FUNCTIONS: usize = 10;

/// The answer in JSON.
#[derive(Serialize)]
struct Answer<'a> {
    trace: &'a Path,
    loss: &'a Loss,
    from_ns: u64,
    to_ns: u64,
    #[serde(flatten)]
    paging: &'a Paging,
}

/// Shows it.
pub fn run(args: &PagingArgs) -> Result<()> {
    if args.trial == Some(Trial::Prefetch) {
        return prefetch::run(args);
    }
    // The arguments are refused without one.
    let path = args.trace.as_deref().context("which trace?")?;
    let case = load::case(path)?;
    let operation = operation(args, &case)?;
    if let Some(file) = &args.order {
        return print_order(&case, &operation, file, args.gold);
    }
    let paging = paging(&case, &operation)?;
    let window = operation.window;
    let loss = &case.recording.loss;
    if args.json {
        return output::json(&Answer {
            trace: path,
            loss,
            from_ns: window.from,
            to_ns: window.to,
            paging: &paging,
        });
    }
    print(loss, window, &paging)
}

/// The functions of a file for a linker, a line each.
fn print_order(case: &Case, operation: &Operation, file: &str, gold: bool) -> Result<()> {
    let threads = &case.recording.threads;
    let is_chosen = |thread| {
        let known = threads.known(thread);
        known.is_some_and(|thread| operation.processes.contains(&thread.upid))
    };
    let nothing = || {
        NothingFound::new(format!(
            "no stack of {} has a function of a file '{file}'",
            operation.name
        ))
    };
    let found = order(case, file, operation.window, &is_chosen)?.ok_or_else(nothing)?;
    let names = linkage::names(Path::new(&found.path), &found.build_id, &found.offsets)?;
    if names.is_empty() {
        return Err(nothing().into());
    }
    let mut out = output::stdout();
    for name in names {
        match gold {
            true => writeln!(out, ".text.{name}")?,
            false => writeln!(out, "{name}")?,
        }
    }
    Ok(out.flush()?)
}

/// What is meant: the processes that are named, or those of the recorded command; over their life, a
/// region, a problem, or the time that is given.
fn operation(args: &PagingArgs, case: &Case) -> Result<Operation> {
    let recording = &case.recording;
    let (threads, meta) = (&recording.threads, recording.trace.meta());
    let whole = Window::new(args.window, recording.timeline.end())?;
    let found = match &args.process {
        Some(selector) => select::processes(threads, selector)?,
        None => Vec::new(),
    };
    let (mut name, mut processes) = match &args.process {
        Some(_) => {
            let name = found
                .first()
                .map(|&upid| threads.process(upid).name.clone());
            (name.unwrap_or_default(), with_descendants(threads, &found))
        }
        None if args.all => own_processes(threads, None, meta.recorder_pid),
        None => own_processes(threads, meta.command_tid, meta.recorder_pid),
    };
    if args.problem.is_none() && args.region.region.is_none() {
        let is_open = Bounds::from(args.window) == Bounds::default();
        let window = if is_open {
            life(case, &processes, whole)?
        } else {
            whole
        };
        // Where several processes are named, or all, there is one operation, of all of them.
        let others = match found.len() {
            1 => other_starts(case, &name, &processes, whole),
            _ => Vec::new(),
        };
        return Ok(Operation {
            window,
            name,
            processes,
            others,
        });
    }
    let evidence = case.evidence();
    let problems = match args.problem {
        Some(_) => rank::problems(case, &evidence).0,
        None => Vec::new(),
    };
    let wanted = Wanted {
        problem: args.problem,
        window: args.window.into(),
        region: args.region.region.as_deref(),
        process: args.region.region.as_ref().and(args.process.as_deref()),
        nth: args.region.nth,
        ..Wanted::default()
    };
    let (problem, _) = choose(&wanted, &evidence, recording, &problems)?;
    if args.process.is_none() && !args.all {
        let process = threads.process_of(problem.thread);
        (name, processes) = (process.name.clone(), [process.upid].into());
    }
    let others = match args.region.region {
        Some(_) => other_regions(case, &wanted)?,
        None => Vec::new(),
    };
    if problem.window.is_empty() {
        return Err(NothingFound::new("the problem takes no time").into());
    }
    Ok(Operation {
        window: Window {
            from: problem.window.start,
            to: problem.window.end,
        },
        name,
        processes,
        others,
    })
}

fn print(loss: &Loss, window: Window, paging: &Paging) -> Result<()> {
    let paint = Paint::for_stdout();
    let mut out = output::stdout();
    writeln!(out, "{}", paint.text(Colour::Heading, &paging.sentence))?;
    writeln!(
        out,
        "From {} to {}.",
        format::moment(window.from),
        format::moment(window.to)
    )?;
    print_segments(&mut out, paint, paging)?;
    print_functions(&mut out, paint, paging)?;
    if !paging.reasons.is_empty() {
        writeln!(out, "\nFaults that blocked waited for:")?;
        for waited in &paging.reasons {
            writeln!(
                out,
                "  {}: {} in {}",
                waited.reason,
                format::duration(waited.blocked_ns),
                format::things(waited.count, "fault", "faults"),
            )?;
        }
    }
    if !paging.stalls.is_empty() {
        writeln!(
            out,
            "\nBefore they got memory, threads had to make some free:"
        )?;
        for stalled in &paging.stalls {
            writeln!(
                out,
                "  {}: {}, {}, the longest {}, {} freed",
                stalled.kind,
                format::things(stalled.count, "time", "times"),
                format::duration(stalled.sum_ns),
                format::duration(stalled.longest_ns),
                format::bytes(stalled.pages * 4096),
            )?;
        }
    }
    print_exchanges(&mut out, &paging.exchanges)?;
    if paging.calls_read_bytes > 0 {
        let (read, again) = (paging.calls_read_bytes, paging.calls_read_again_bytes);
        let repeated = match again * 100 / read {
            0 => String::new(),
            _ => format!(", {} of it again", format::bytes(again)),
        };
        writeln!(
            out,
            "\nSystem calls of these processes read {} from disks{repeated}: no page-ins, and not in this table.",
            format::bytes(read)
        )?;
    }
    print_advice(&mut out, paging)?;
    for missing in missing(paging) {
        writeln!(out, "\n{missing}")?;
    }
    writeln!(out, "\n{}", table::lost(paint, loss))?;
    Ok(out.flush()?)
}

/// So many pairs of processes are printed.
const MOST_EXCHANGES: usize = 5;

/// Processes that wait for each other's answers and page meanwhile.
fn print_exchanges(out: &mut impl Write, exchanges: &[Exchange]) -> Result<()> {
    let paged = |exchange: &Exchange| exchange.paging_there_ns + exchange.paging_back_ns;
    let mut shown = (exchanges
        .iter()
        .filter(|it| paged(it) > 0)
        .take(MOST_EXCHANGES))
    .peekable();
    if shown.peek().is_none() {
        return Ok(());
    }
    writeln!(out, "\nProcesses that asked another one and waited for it:")?;
    for exchange in shown {
        let name = |name: &str, pid: u32| format!("{} ({pid})", format::printable(name));
        let own = name(&exchange.process, exchange.pid);
        let with = name(&exchange.with, exchange.with_pid);
        writeln!(
            out,
            "  {own} asked {with}: {}, {}, the longest {}",
            format::things(exchange.count, "time", "times"),
            format::duration(exchange.sum_ns),
            format::duration(exchange.longest_ns),
        )?;
        let back = match exchange.paged_back_bytes {
            0 => String::new(),
            bytes => format!(
                "; back in {own}, {} for {} that had been in memory before",
                format::duration(exchange.paging_back_ns),
                format::bytes(bytes)
            ),
        };
        let there = format::duration(exchange.paging_there_ns);
        writeln!(out, "    {there} of it {with} waited for pages{back}")?;
        writeln!(
            out,
            "    if {own} did not wait for the answer: at most {} less",
            format::duration(exchange.sum_ns)
        )?;
    }
    Ok(())
}

/// What may be done about it.
fn print_advice(out: &mut impl Write, paging: &Paging) -> Result<()> {
    if paging.advice.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\nWhat may help, and how much less it would wait at most:"
    )?;
    for advice in &paging.advice {
        let saves = format::duration(advice.saves_at_most_ns);
        let share = format::percent(advice.saves_at_most_ns, paging.operation_ns);
        writeln!(out, "  {saves} ({share}): {}", advice.text)?;
    }
    Ok(())
}

/// What was not recorded, and how it can be.
fn missing(paging: &Paging) -> Vec<&'static str> {
    let recorded = &paging.recorded;
    let mut missing = Vec::new();
    if !recorded.major {
        missing.push(
            "Not recorded: major faults that did not block (the trace is older, or the kernel did not \
             allow it; see hangdog info).",
        );
    }
    if !recorded.page_cache {
        missing.push(
            "Not recorded: minor faults, and which pages were read ahead, never used, evicted, or used \
             in no other occurrence of the operation. Record with --faults.",
        );
    }
    if !recorded.stalls && paging.stalls.is_empty() {
        missing.push(
            "Not recorded: reclaim (the trace is older, or the kernel has no such tracepoint).",
        );
    }
    missing
}

fn print_segments(out: &mut impl Write, paint: Paint, paging: &Paging) -> Result<()> {
    let recorded = &paging.recorded;
    let all = &paging.segments;
    let worth = all.iter().filter(|segment| {
        segment.sum.page_ins + segment.sum.minor_waits > 0 || segment.fetched_bytes > Some(0)
    });
    let shown: Vec<_> = worth.take(MOST_SEGMENTS).collect();
    if shown.is_empty() {
        return match paging.sum.minor {
            Some(minor) => Ok(writeln!(
                out,
                "\n{}, which waited for nothing.",
                format::things(minor, "minor fault", "minor faults")
            )?),
            None => Ok(()),
        };
    }
    let mut headings = vec![
        "process", "segment", "kind", "page-ins", "read", "waited", "of it", "longest", "again",
    ];
    if recorded.page_cache {
        headings.extend(["fetched", "unused", "evicted"]);
    }
    let has_others = recorded.page_cache && paging.other_occurrences > 0;
    if has_others {
        headings.push("cold");
    }
    if recorded.minor {
        headings.push("minor");
    }
    let mut table = table::new(paint, &headings);
    let figures = |sum: &Sum| {
        vec![
            match sum.minor_waits {
                0 => format::count(sum.page_ins),
                others => format!(
                    "{} + {}",
                    format::count(sum.page_ins),
                    format::count(others)
                ),
            },
            bytes(Some(sum.read_bytes)),
            format::duration(sum.waited_ns),
            format::percent(sum.waited_ns, paging.operation_ns),
            format::duration(sum.longest_ns),
            format::count(sum.again),
        ]
    };
    for segment in &shown {
        let process = format!("{} ({})", segment.process, segment.pid);
        let mut row = vec![
            format::printable(&process).into_owned(),
            format::printable(&segment.name).into_owned(),
            segment.kind.to_owned(),
        ];
        row.extend(figures(&segment.sum));
        if recorded.page_cache {
            row.extend([
                bytes(segment.fetched_bytes),
                bytes(segment.unused_bytes),
                bytes(segment.evicted_bytes),
            ]);
        }
        if has_others {
            row.push(bytes(segment.in_others.map(|it| it.cold_bytes)));
        }
        if recorded.minor {
            row.push(format::count(segment.sum.minor.unwrap_or(0)));
        }
        table.add_row(row);
    }
    let mut row = vec!["all".to_owned(), String::new(), String::new()];
    row.extend(figures(&paging.sum));
    if recorded.page_cache {
        let sum = |of: fn(&hangdog_report::paging::Segment) -> Option<u64>| {
            bytes(Some(all.iter().filter_map(of).sum()))
        };
        row.extend([
            sum(|segment| segment.fetched_bytes),
            sum(|segment| segment.unused_bytes),
            sum(|segment| segment.evicted_bytes),
        ]);
        if has_others {
            row.push(sum(|segment| segment.in_others.map(|it| it.cold_bytes)));
        }
    }
    if recorded.minor {
        row.push(format::count(paging.sum.minor.unwrap_or(0)));
    }
    table.add_row(row);
    for column in table.column_iter_mut().skip(3) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    writeln!(out)?;
    table::write(out, &table)?;
    if shown.iter().any(|segment| segment.sum.minor_waits > 0) {
        writeln!(
            out,
            "\"1 + 2\": 1 page-in, and 2 minor faults that waited all the same, as for a page that was \
             being read already."
        )?;
    }
    if has_others {
        let of_others = |of: fn(&InOthers) -> u64| -> u64 {
            let known = all.iter().filter_map(|segment| segment.in_others.as_ref());
            known.map(of).sum()
        };
        let others = format::things(
            paging.other_occurrences as u64,
            "other occurrence",
            "other occurrences",
        );
        let unknown = match of_others(|it| it.unknown_bytes) {
            0 => String::new(),
            unknown => format!(
                "; of {} that cannot be told, as it stayed in memory",
                format::bytes(unknown)
            ),
        };
        writeln!(
            out,
            "\"cold\": it was fetched and used, and {others} of the operation did not use it. They did use {}{unknown}.",
            format::bytes(of_others(|it| it.used_bytes)),
        )?;
    }
    let left = all
        .iter()
        .filter(|segment| segment.sum.waited_ns > 0)
        .count();
    if left > shown.len() {
        writeln!(
            out,
            "and {} more segments (--json has all)",
            left - shown.len()
        )?;
    }
    Ok(())
}

/// In words; a dash for none.
fn bytes(bytes: Option<u64>) -> String {
    match bytes {
        None | Some(0) => "-".to_owned(),
        Some(bytes) => format::bytes(bytes),
    }
}

fn print_functions(out: &mut impl Write, paint: Paint, paging: &Paging) -> Result<()> {
    if paging.functions.is_empty() {
        return Ok(());
    }
    let mut table = table::new(paint, &["function", "in", "page-ins", "waited"]);
    for function in paging.functions.iter().take(MOST_FUNCTIONS) {
        table.add_row([
            format::printable(&function.function).into_owned(),
            format::printable(&function.module).into_owned(),
            format::count(function.count),
            format::duration(function.waited_ns),
        ]);
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    writeln!(out)?;
    table::write(out, &table)?;
    Ok(())
}

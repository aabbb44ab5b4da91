//! `hangdog regions`: what programs marked, by name or each.

use crate::args::{RegionChoice, RegionOrder, RegionsArgs};
use crate::load;
use crate::output::{self, Paint};
use crate::table;
use anyhow::Result;
use comfy_table::{CellAlignment, Table};
use hangdog_report::regions::{Chosen, Marked, Occurrence, RegionRow};
use hangdog_report::select::{Bounds, NothingFound, Window};
use hangdog_report::{Loss, Recording, format};
use hangdog_trace::ids::Utid;
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
    /// Ends to which there is no begin, in the whole trace.
    stray_ends: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    regions: Option<&'a [RegionRow]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    occurrences: Option<&'a [Occurrence<'a>]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    points: Option<&'a [Occurrence<'a>]>,
}

/// Shows the regions, each of them, or the points.
pub fn run(args: &RegionsArgs) -> Result<()> {
    let recording = load::recording(&args.trace)?;
    let window = Window::new(args.window, recording.timeline.end())?;
    let marked = Marked::load(&recording, args.pair.map(Into::into))?;
    let chosen = Chosen {
        name: args.name.as_deref(),
        arguments: &args.arguments,
        thread: args.thread.as_deref(),
        process: args.process.as_deref(),
        window: args.window.into(),
    };
    let regions = marked.chosen(&recording, &chosen)?;
    let rows = marked.rows(&regions);
    let mut listed = match (args.points, args.list) {
        (true, _) => marked.points(&recording, &chosen)?,
        (_, true) => marked.occurrences(&recording, &regions),
        _ => Vec::new(),
    };
    let is_listed = args.points || args.list;
    if is_listed && listed.is_empty() || !is_listed && rows.is_empty() {
        let what = if args.points { "points" } else { "regions" };
        let is_limited = args.name.is_some()
            || !args.arguments.is_empty()
            || args.thread.is_some()
            || args.process.is_some()
            || chosen.window != Bounds::default();
        let such = if is_limited { "such " } else { "" };
        let what = format!("no program marked any {such}{what} (docs/MARKS.md)");
        return Err(NothingFound::new(what).into());
    }
    if args.sort == RegionOrder::Duration {
        listed.sort_by_key(|occurrence| Reverse(occurrence.duration_ns));
    }
    let all = listed.len();
    listed.truncate(args.limit.unwrap_or(usize::MAX));
    if args.json {
        return output::json(&Answer {
            trace: &args.trace,
            loss: &recording.loss,
            from_ns: window.from,
            to_ns: window.to,
            stray_ends: marked.regions.stray_ends.len(),
            regions: (!is_listed).then_some(rows.as_slice()),
            occurrences: args.list.then_some(listed.as_slice()),
            points: args.points.then_some(listed.as_slice()),
        });
    }
    let paint = Paint::for_stdout();
    let mut out = output::stdout();
    let summed = match is_listed {
        true => list(paint, &listed, args.points),
        false => sums(paint, &rows),
    };
    table::write(&mut out, &summed)?;
    let mut text = match (args.points, args.list) {
        (true, _) => format::things(all as u64, "point", "points"),
        _ => format::things(regions.len() as u64, "region", "regions"),
    };
    if listed.len() < all {
        text += &format!(", {} shown", format::count(listed.len() as u64));
    }
    let open = regions.iter().filter(|region| region.end.is_none()).count();
    if open > 0 && !args.points {
        text += &format!("; {} did not end", format::count(open as u64));
    }
    let stray = marked.regions.stray_ends.len() as u64;
    if stray > 0 && !args.points {
        let ends = format::things(stray, "end has", "ends have");
        text += &format!("; {ends} no begin in the trace");
    }
    let lost = table::lost(paint, &recording.loss);
    writeln!(out, "\n{text}. {lost}")?;
    Ok(out.flush()?)
}

fn sums(paint: Paint, rows: &[RegionRow]) -> Table {
    let headings = [
        "region",
        "count",
        "open",
        "sum",
        "min",
        "mean",
        "max",
        "deviation",
        "50 %",
        "90 %",
        "99 %",
    ];
    let mut table = table::new(paint, &headings);
    for row in rows {
        let times = [
            row.sum_ns,
            row.min_ns,
            row.mean_ns,
            row.max_ns,
            row.deviation_ns,
            row.p50_ns,
            row.p90_ns,
            row.p99_ns,
        ];
        let mut cells = vec![
            format::printable(&row.name).into_owned(),
            format::count(row.count as u64),
            match row.open {
                0 => String::new(),
                open => format::count(open as u64),
            },
        ];
        // Of none that ended there are no times.
        cells.extend(times.map(|ns| match row.count {
            0 => String::new(),
            _ => format::duration(ns),
        }));
        table.add_row(cells);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn list(paint: Paint, listed: &[Occurrence<'_>], is_points: bool) -> Table {
    let headings: &[&str] = match is_points {
        true => &["time", "point", "thread", "arguments"],
        false => &[
            "time",
            "duration",
            "nth",
            "region",
            "thread",
            "arguments",
            "",
        ],
    };
    let mut table = table::new(paint, headings);
    for occurrence in listed {
        let arguments = occurrence.arguments.map(|argument| argument.to_string());
        let mut note = Vec::new();
        if occurrence.open {
            note.push("did not end".to_owned());
        }
        if let Some(who) = &occurrence.ended_by {
            note.push(format!("ended by {}", who.text()));
        }
        if occurrence.colour != "none" {
            note.push(occurrence.colour.to_owned());
        }
        let mut cells = vec![format::moment(occurrence.start_ns)];
        if !is_points {
            cells.push(format::duration(occurrence.duration_ns));
            cells.push(occurrence.nth.map_or(String::new(), |nth| nth.to_string()));
        }
        cells.push(format::printable(&occurrence.name).into_owned());
        cells.push(occurrence.thread.text());
        cells.push(arguments.join(" "));
        if !is_points {
            cells.push(note.join(", "));
        }
        table.add_row(cells);
    }
    for column in table.column_iter_mut().take(if is_points { 1 } else { 3 }) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// The thread and the time of the region that is chosen, if one is.
pub fn place(
    recording: &Recording,
    choice: &RegionChoice,
    window: Bounds,
    process: Option<&str>,
    thread: Option<&str>,
) -> Result<Option<(Utid, Window)>> {
    let Some(name) = choice.region.as_deref() else {
        return Ok(None);
    };
    let marked = Marked::load(recording, None)?;
    let chosen = Chosen {
        name: Some(name),
        arguments: &[],
        thread,
        process,
        window,
    };
    let (region, _) = marked.nth(recording, &chosen, choice.nth)?;
    let (thread, part) = marked.place(recording, &region)?;
    let window = Window {
        from: part.start,
        to: part.end,
    };
    Ok(Some((thread, window)))
}

//! The answer as text.

use super::{Changes, Sum, View, data};
use crate::output::{self, Colour, Paint};
use crate::table;
use anyhow::Result;
use comfy_table::CellAlignment;
use hangdog_report::format;
use hangdog_trace::residence::{Bytes, Cached, Process};
use std::io::Write;

pub(super) fn print(sentence: &str, view: &View, most: usize) -> Result<()> {
    let paint = Paint::for_stdout();
    let mut out = output::stdout();
    let changes = Changes::new(view);
    writeln!(out, "{}", paint.text(Colour::Heading, sentence))?;
    if let Some(traced) = &view.traced {
        let since = match &traced.first {
            Some((first, _)) => format!("; \"change\" is since {}", format::moment(*first)),
            None => String::new(),
        };
        writeln!(out, "At {}{since}.", format::moment(traced.at))?;
    }
    if let [process] = &*view.snapshot.processes {
        print_segments(&mut out, paint, process, &changes, most)?;
    } else {
        print_processes(&mut out, paint, &view.snapshot.processes, &changes, most)?;
    }
    print_files(&mut out, paint, &view.snapshot.files, most)?;
    if let Some(traced) = &view.traced {
        print_moments(&mut out, paint, &traced.moments)?;
    }
    if view.hot
        && view
            .snapshot
            .processes
            .iter()
            .any(|it| it.bytes.touched.is_none())
    {
        writeln!(
            out,
            "\nWhat is used is not known of every process: its marks may not be cleared; run as root."
        )?;
    }
    if view.unreadable > 0 {
        writeln!(
            out,
            "\n{} may not be looked at; run as root.",
            format::things(view.unreadable as u64, "process", "processes")
        )?;
    }
    Ok(out.flush()?)
}

/// So many moments are printed: the first and the last ones.
const MOST_MOMENTS: usize = 20;

fn print_moments(out: &mut impl Write, paint: Paint, moments: &[Sum]) -> Result<()> {
    if moments.len() < 2 {
        return Ok(());
    }
    let headings = [
        "snapshot at",
        "processes",
        "proportional",
        "swapped",
        "data",
    ];
    let mut table = table::new(paint, &headings);
    let left_out = moments.len().saturating_sub(MOST_MOMENTS);
    for (at, moment) in moments.iter().enumerate() {
        if at > 0 && at <= left_out {
            continue;
        }
        table.add_row([
            format::moment(moment.at_ns),
            format::count(moment.processes as u64),
            bytes_or_dash(moment.proportional_bytes),
            bytes_or_dash(moment.swapped_bytes),
            format!("{:.1} %", moment.data_share * 100.0),
        ]);
    }
    for column in table.column_iter_mut() {
        column.set_cell_alignment(CellAlignment::Right);
    }
    writeln!(out)?;
    table::write(out, &table)?;
    if left_out > 0 {
        let moments = format::things(left_out as u64, "snapshot", "snapshots");
        writeln!(out, "without {moments} after the first (--json has all)")?;
    }
    writeln!(out, "Another one: --at TIME.")?;
    Ok(())
}

fn change(bytes: i64) -> String {
    match bytes {
        0 => "-".to_owned(),
        1.. => format!("+{}", format::bytes(bytes.unsigned_abs())),
        _ => format!("-{}", format::bytes(bytes.unsigned_abs())),
    }
}

fn bytes_or_dash(bytes: u64) -> String {
    match bytes {
        0 => "-".to_owned(),
        bytes => format::bytes(bytes),
    }
}

fn print_processes(
    out: &mut impl Write,
    paint: Paint,
    processes: &[Process],
    changes: &Changes,
    most: usize,
) -> Result<()> {
    let mut headings = vec![
        "process",
        "proportional",
        "resident",
        "private",
        "swapped",
        "locked",
        "data",
    ];
    headings.extend(changes.0.as_ref().map(|_| "change"));
    let is_hot = processes.iter().any(|it| it.bytes.touched.is_some());
    headings.extend(is_hot.then_some("touched"));
    let mut table = table::new(paint, &headings);
    for process in processes.iter().take(most) {
        let name = format!("{} ({})", process.name, process.pid);
        let mut row = vec![format::printable(&name).into_owned()];
        row.extend(figures(process.bytes));
        row.push(format::percent(data(process), process.bytes.resident));
        row.extend(changes.of_process(process).map(change));
        row.extend(is_hot.then(|| touched(process.bytes)));
        table.add_row(row);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    writeln!(out)?;
    table::write(out, &table)?;
    more(out, processes.len(), most, "processes")
}

fn print_segments(
    out: &mut impl Write,
    paint: Paint,
    process: &Process,
    changes: &Changes,
    most: usize,
) -> Result<()> {
    let mut headings = vec![
        "kind",
        "segment",
        "proportional",
        "resident",
        "private",
        "swapped",
        "locked",
    ];
    headings.extend(changes.0.as_ref().map(|_| "change"));
    let is_hot = process.bytes.touched.is_some();
    headings.extend(is_hot.then_some("touched"));
    let mut table = table::new(paint, &headings);
    for segment in process.segments.iter().take(most) {
        let mut row = vec![
            segment.kind.text().to_owned(),
            format::printable(&segment.path).into_owned(),
        ];
        row.extend(figures(segment.bytes));
        row.extend(changes.of_segment(process.pid, segment).map(change));
        row.extend(is_hot.then(|| touched(segment.bytes)));
        table.add_row(row);
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    writeln!(out)?;
    table::write(out, &table)?;
    more(out, process.segments.len(), most, "segments")
}

fn touched(bytes: Bytes) -> String {
    bytes.touched.map_or_else(|| "?".to_owned(), bytes_or_dash)
}

fn figures(bytes: Bytes) -> [String; 5] {
    let Bytes {
        resident,
        proportional,
        swapped,
        private,
        locked,
        touched: _,
    } = bytes;
    [proportional, resident, private, swapped, locked].map(bytes_or_dash)
}

fn print_files(out: &mut impl Write, paint: Paint, files: &[Cached], most: usize) -> Result<()> {
    if files.is_empty() {
        return Ok(());
    }
    let headings = [
        "mapped file",
        "size",
        "in the page cache",
        "",
        "dirty",
        "recently evicted",
    ];
    let mut table = table::new(paint, &headings);
    let known = |bytes: Option<u64>| bytes.map_or_else(|| "?".to_owned(), bytes_or_dash);
    for file in files.iter().take(most) {
        table.add_row([
            format::printable(&file.path).into_owned(),
            format::bytes(file.size),
            format::bytes(file.cached),
            // The last page may go beyond the file's end.
            format::percent(file.cached.min(file.size), file.size),
            known(file.dirty),
            known(file.recently_evicted),
        ]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    writeln!(out)?;
    table::write(out, &table)?;
    more(out, files.len(), most, "files")
}

fn more(out: &mut impl Write, all: usize, most: usize, what: &str) -> Result<()> {
    if all > most {
        writeln!(out, "and {} more {what} (-n, --json)", all - most)?;
    }
    Ok(())
}

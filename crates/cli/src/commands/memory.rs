//! `hangdog memory`: what memory processes have now, by segment, and what of their files is in the page cache.

use crate::args::MemoryArgs;
use crate::output::{self, Colour, Paint};
use crate::table;
use anyhow::Result;
use comfy_table::CellAlignment;
use hangdog_capture::residence::{Bytes, Cached, Process, look};
use hangdog_report::format;
use hangdog_report::select::NothingFound;
use hangdog_trace::words::AreaKind;
use serde::Serialize;
use std::io::Write;

/// The answer in JSON.
#[derive(Serialize)]
struct Answer {
    sentence: String,
    unreadable: usize,
    processes: Vec<ProcessLine>,
    files: Vec<FileLine>,
}

#[derive(Serialize)]
struct ProcessLine {
    process: String,
    pid: u32,
    #[serde(flatten)]
    figures: Figures,
    /// Heap, stack, anonymous and shared memory, of what is resident.
    data_share: f64,
    segments: Vec<SegmentLine>,
}

#[derive(Serialize)]
struct SegmentLine {
    kind: &'static str,
    path: Option<String>,
    #[serde(flatten)]
    figures: Figures,
}

#[derive(Serialize)]
struct Figures {
    resident_bytes: u64,
    proportional_bytes: u64,
    private_bytes: u64,
    swapped_bytes: u64,
    locked_bytes: u64,
}

#[derive(Serialize)]
struct FileLine {
    path: String,
    size_bytes: u64,
    cached_bytes: u64,
    dirty_bytes: Option<u64>,
    recently_evicted_bytes: Option<u64>,
}

impl From<Bytes> for Figures {
    fn from(bytes: Bytes) -> Figures {
        Figures {
            resident_bytes: bytes.resident,
            proportional_bytes: bytes.proportional,
            private_bytes: bytes.private,
            swapped_bytes: bytes.swapped,
            locked_bytes: bytes.locked,
        }
    }
}

/// Shows it.
pub fn run(args: &MemoryArgs) -> Result<()> {
    let number: Option<u32> = args.process.as_ref().and_then(|it| it.parse().ok());
    let wanted = |pid: u32, name: &str| match (&args.process, number) {
        (None, _) => true,
        (Some(_), Some(number)) => pid == number,
        (Some(selector), None) => name == selector,
    };
    let (processes, files, unreadable) = look(wanted);
    if processes.is_empty() {
        let what = match (&args.process, unreadable.processes) {
            (Some(selector), 0) => format!("no process is named or numbered '{selector}'"),
            (Some(selector), _) => {
                format!("the memory of '{selector}' may not be looked at; run as root")
            }
            (None, _) => "no process may be looked at; run as root".to_owned(),
        };
        return Err(NothingFound::new(what).into());
    }
    let sentence = sentence(&processes);
    if args.json {
        return output::json(&answer(sentence, unreadable.processes, processes, files));
    }
    let paint = Paint::for_stdout();
    let mut out = output::stdout();
    let most = args.most as usize;
    writeln!(out, "{}", paint.text(Colour::Heading, &sentence))?;
    if let [process] = &*processes {
        print_segments(&mut out, paint, process, most)?;
    } else {
        print_processes(&mut out, paint, &processes, most)?;
    }
    print_files(&mut out, paint, &files, most)?;
    if unreadable.processes > 0 {
        writeln!(
            out,
            "\n{} may not be looked at; run as root.",
            format::things(unreadable.processes as u64, "process", "processes")
        )?;
    }
    Ok(out.flush()?)
}

fn answer(
    sentence: String,
    unreadable: usize,
    processes: Vec<Process>,
    files: Vec<Cached>,
) -> Answer {
    let processes = processes.into_iter().map(|process| ProcessLine {
        data_share: data_share(&process),
        process: process.name,
        pid: process.pid,
        figures: process.bytes.into(),
        segments: (process.segments.into_iter())
            .map(|segment| SegmentLine {
                kind: segment.kind.text(),
                path: (!segment.path.is_empty()).then_some(segment.path),
                figures: segment.bytes.into(),
            })
            .collect(),
    });
    let files = files.into_iter().map(|file| FileLine {
        path: file.path,
        size_bytes: file.size,
        cached_bytes: file.cached,
        dirty_bytes: file.dirty,
        recently_evicted_bytes: file.recently_evicted,
    });
    Answer {
        sentence,
        unreadable,
        processes: processes.collect(),
        files: files.collect(),
    }
}

fn is_data(kind: AreaKind) -> bool {
    matches!(
        kind,
        AreaKind::Heap | AreaKind::Stack | AreaKind::Anonymous | AreaKind::Shared
    )
}

fn data(process: &Process) -> u64 {
    let data = process.segments.iter().filter(|it| is_data(it.kind));
    data.map(|segment| segment.bytes.resident).sum()
}

fn data_share(process: &Process) -> f64 {
    match process.bytes.resident {
        0 => 0.0,
        resident => data(process) as f64 / resident as f64,
    }
}

fn sentence(processes: &[Process]) -> String {
    let sum = |of: fn(&Process) -> u64| processes.iter().map(of).sum::<u64>();
    let resident = sum(|process| process.bytes.resident);
    let swapped = sum(|process| process.bytes.swapped);
    let mut text = match processes {
        [process] => format!(
            "{} ({}) has {} in memory, of which {} is its own share",
            format::printable(&process.name),
            process.pid,
            format::bytes(resident),
            format::bytes(process.bytes.proportional),
        ),
        _ => format!(
            "{} have {} in memory, shared memory counted once",
            format::things(processes.len() as u64, "process", "processes"),
            format::bytes(sum(|process| process.bytes.proportional)),
        ),
    };
    if swapped > 0 {
        text += &format!(", and {} swapped out", format::bytes(swapped));
    }
    let share = format::percent(sum(data), resident);
    text + &format!(
        "; data segments (heap, stack, anonymous, shared memory) are {share} of what is resident."
    )
}

fn print_processes(
    out: &mut impl Write,
    paint: Paint,
    processes: &[Process],
    most: usize,
) -> Result<()> {
    let headings = [
        "process",
        "proportional",
        "resident",
        "private",
        "swapped",
        "locked",
        "data",
    ];
    let mut table = table::new(paint, &headings);
    for process in processes.iter().take(most) {
        let name = format!("{} ({})", process.name, process.pid);
        let mut row = vec![format::printable(&name).into_owned()];
        row.extend(figures(process.bytes));
        row.push(format::percent(data(process), process.bytes.resident));
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
    most: usize,
) -> Result<()> {
    let headings = [
        "kind",
        "segment",
        "proportional",
        "resident",
        "private",
        "swapped",
        "locked",
    ];
    let mut table = table::new(paint, &headings);
    for segment in process.segments.iter().take(most) {
        let mut row = vec![
            segment.kind.text().to_owned(),
            format::printable(&segment.path).into_owned(),
        ];
        row.extend(figures(segment.bytes));
        table.add_row(row);
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    writeln!(out)?;
    table::write(out, &table)?;
    more(out, process.segments.len(), most, "segments")
}

fn figures(bytes: Bytes) -> [String; 5] {
    let Bytes {
        resident,
        proportional,
        swapped,
        private,
        locked,
    } = bytes;
    [proportional, resident, private, swapped, locked].map(|bytes| match bytes {
        0 => "-".to_owned(),
        bytes => format::bytes(bytes),
    })
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
    let known = |bytes: Option<u64>| match bytes {
        None => "?".to_owned(),
        Some(0) => "-".to_owned(),
        Some(bytes) => format::bytes(bytes),
    };
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

//! `hangdog info`: what a trace holds.

use crate::args::InfoArgs;
use crate::output::{self, Colour, Paint};
use anyhow::{Result, bail};
use comfy_table::{CellAlignment, Table, presets};
use hangdog_report::format;
use hangdog_report::loss::Loss;
use hangdog_trace::meta::{Hook, Meta, Mode, RecordingState, Unread, Unwinding};
use hangdog_trace::tables::{
    Counters, Faults, FlagAccesses, Handoffs, Interrupts, Ios, Lifecycle, Losses, Marks, PageCache,
    Samples, Stalls, Switches, SystemCalls, Transfers, Wakes,
};
use hangdog_trace::{TableInfo, Trace};
use serde::Serialize;
use std::io::Write;
use std::path::Path;

/// Tables whose rows are events; of the others, a row is a definition or a loss.
const EVENTS: [&str; 15] = [
    Switches::NAME,
    Wakes::NAME,
    Interrupts::NAME,
    Ios::NAME,
    Faults::NAME,
    Stalls::NAME,
    PageCache::NAME,
    Transfers::NAME,
    Handoffs::NAME,
    SystemCalls::NAME,
    Samples::NAME,
    Counters::NAME,
    Marks::NAME,
    FlagAccesses::NAME,
    Lifecycle::NAME,
];

/// The answer.
#[derive(Serialize)]
struct Answer<'a> {
    trace: &'a Path,
    loss: Loss,
    /// What the recorder wrote about the recording.
    meta: &'a Meta,
    /// Where the data ends; of a recording that was cut short, its last switch or wake.
    duration_ns: u64,
    processes: usize,
    threads: usize,
    kernel_threads: usize,
    events: Vec<Kind>,
    definitions: Vec<Kind>,
    event_count: u64,
    bytes: u64,
    /// All bytes by all events; none if there are no events.
    bytes_per_event: Option<f64>,
    /// What was checked, if that was asked for and can be.
    #[serde(skip_serializing_if = "Option::is_none")]
    verified: Option<Checked>,
}

/// Parts that are as they were recorded.
#[derive(Serialize)]
struct Checked {
    parts: usize,
    bytes: u64,
}

/// A table.
#[derive(Serialize)]
struct Kind {
    name: &'static str,
    rows: u64,
    bytes: u64,
}

impl From<TableInfo> for Kind {
    fn from(info: TableInfo) -> Kind {
        Kind {
            name: info.name,
            rows: info.rows,
            bytes: info.bytes,
        }
    }
}

/// Says what the trace holds.
pub fn run(args: &InfoArgs) -> Result<()> {
    let trace = Trace::open(&args.trace)?;
    let verified = match args.verify {
        true => verify(&trace)?,
        false => None,
    };
    let threads = trace.threads()?;
    let tables = trace.tables_info()?;
    let bytes = tables.iter().map(|table| table.bytes).sum();
    let (events, others): (Vec<_>, Vec<_>) = tables
        .into_iter()
        .partition(|table| EVENTS.contains(&table.name));
    let event_count = events.iter().map(|table| table.rows).sum();
    let is_definition = |table: &TableInfo| table.name != Losses::NAME;
    let answer = Answer {
        trace: &args.trace,
        loss: Loss::of(&trace)?,
        meta: trace.meta(),
        duration_ns: duration(&trace)?,
        // Neither the idle thread nor the kernel counts as one that was seen.
        processes: threads.processes().len() - 1,
        threads: threads.iter().len() - 1,
        kernel_threads: threads.iter().filter(|t| t.is_kernel()).count() - 1,
        events: events.into_iter().map(Kind::from).collect(),
        definitions: others
            .into_iter()
            .filter(is_definition)
            .map(Kind::from)
            .collect(),
        event_count,
        bytes,
        bytes_per_event: (event_count > 0).then(|| bytes as f64 / event_count as f64),
        verified,
    };
    if args.json {
        output::json(&answer)
    } else {
        print(&answer, args.verify)
    }
}

/// Looks at every byte; nothing if the trace has no checksums.
fn verify(trace: &Trace) -> Result<Option<Checked>> {
    let Some(verified) = trace.verify() else {
        return Ok(None);
    };
    if let Some(first) = verified.damaged.first() {
        let parts = format::things(verified.parts as u64, "part", "parts");
        bail!("{} of {parts} damaged; {first}", verified.damaged.len());
    }
    Ok(Some(Checked {
        parts: verified.parts,
        bytes: verified.bytes,
    }))
}

/// Where the data ends. A recorder that was killed could not write it down.
fn duration(trace: &Trace) -> Result<u64> {
    match trace.meta().duration_ns {
        0 => {
            let switch = trace.read::<Switches>()?.ts.last().copied();
            let wake = trace.read::<Wakes>()?.ts.last().copied();
            Ok(switch.max(wake).unwrap_or(0))
        }
        duration => Ok(duration),
    }
}

fn print(answer: &Answer<'_>, verify: bool) -> Result<()> {
    let paint = Paint::for_stdout();
    let mut out = output::stdout();
    let meta = answer.meta;
    let mut line = |name: &str, text: &str| {
        let colour = match name {
            "lost" if !answer.loss.is_none() => Colour::Bad,
            _ => Colour::Heading,
        };
        let name = paint.text(colour, &format!("{name:<10}"));
        writeln!(out, "{name}  {}", format::printable(text))
    };
    line("trace", &answer.trace.display().to_string())?;
    line("recorded", &recorded(answer))?;
    line("kernel", &kernel(meta))?;
    if !meta.command.is_empty() {
        line("command", &command(meta))?;
    }
    line("options", &options(meta))?;
    line("processes", &format::count(answer.processes as u64))?;
    let kernel = format::count(answer.kernel_threads as u64);
    let threads = format::count(answer.threads as u64);
    line(
        "threads",
        &format!("{threads}, {kernel} of them the kernel's"),
    )?;
    if let Some(taken) = &meta.unwinding {
        line("unwinding", &unwinding(taken))?;
    }
    for unread in &meta.unread {
        let count = format::things(unread.files, "file", "files");
        let Unread {
            reason, example, ..
        } = unread;
        line("unread", &format!("{count}, such as {example}: {reason}"))?;
    }
    line("size", &size(answer))?;
    line("lost", &answer.loss.text())?;
    if verify {
        line("verified", &checked(answer.verified.as_ref()))?;
    }
    let absent: Vec<&Hook> = meta.hooks.iter().filter(|hook| !hook.attached).collect();
    let attached = meta.hooks.len() - absent.len();
    line("hooks", &format!("{attached} of {}", meta.hooks.len()))?;
    for (reason, names) in by_reason(&absent) {
        line("", &format!("without {}: {reason}", names.join(", ")))?;
    }
    for (title, kinds) in [
        ("events", &answer.events),
        ("definitions", &answer.definitions),
    ] {
        writeln!(out, "\n{}", paint.text(Colour::Heading, title))?;
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        for kind in kinds {
            table.add_row([
                kind.name.to_string(),
                format::count(kind.rows),
                format::bytes(kind.bytes),
            ]);
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        for line in table.lines() {
            writeln!(out, " {}", line.trim_end())?;
        }
    }
    Ok(out.flush()?)
}

/// The hooks of each reason, in the order in which they first come.
fn by_reason<'a>(absent: &[&'a Hook]) -> Vec<(&'a str, Vec<&'a str>)> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for hook in absent {
        match reasons
            .iter_mut()
            .find(|(reason, _)| *reason == hook.reason)
        {
            Some((_, names)) => names.push(&hook.name),
            None => reasons.push((&hook.reason, vec![&hook.name])),
        }
    }
    reasons
}

fn recorded(answer: &Answer<'_>) -> String {
    let meta = answer.meta;
    let mode = match meta.mode {
        Mode::Record => "record",
        Mode::Flight => "flight",
        Mode::Instant => "instant",
    };
    let mut text = format!(
        "{} for {} on {}, by hangdog {mode} {}",
        known(&meta.started),
        format::duration(answer.duration_ns),
        known(&meta.host),
        meta.hangdog
    );
    if meta.state == RecordingState::Recording {
        text.push_str("; cut short, or still running");
    }
    text
}

fn kernel(meta: &Meta) -> String {
    let cpus = format::things(meta.cpus.into(), "CPU", "CPUs");
    format!("{} {}, {cpus}", known(&meta.kernel), known(&meta.arch))
}

fn command(meta: &Meta) -> String {
    let command = meta.command.join(" ");
    match meta.command_tid {
        Some(tid) => format!("{command} (tid {tid})"),
        None => command,
    }
}

fn options(meta: &Meta) -> String {
    let options = &meta.options;
    let stacks = if options.stacks {
        "stacks"
    } else {
        "no stacks"
    };
    let samples = match options.sample_hz {
        0 => "no samples".into(),
        hz => format!("{hz} samples a second"),
    };
    let transfers = if options.transfers {
        "transfers"
    } else {
        "no pipe I/O"
    };
    let calls = if options.calls { ", calls" } else { "" };
    let faults = if options.faults {
        ", minor faults and page cache"
    } else {
        ""
    };
    format!("{stacks}, {samples}, {transfers}{calls}{faults}")
}

fn unwinding(taken: &Unwinding) -> String {
    let mut text = format!(
        "{} of tables (limit {}) for {}; {} copied before their tables were loaded",
        format::bytes(taken.memory),
        format::bytes(taken.memory_limit),
        format::things(taken.files, "file", "files"),
        format::things(taken.copied_stacks, "stack", "stacks"),
    );
    if taken.evicted > 0 {
        let count = format::things(taken.evicted, "table", "tables");
        text.push_str(&format!("; {count} evicted (--unwind-memory)"));
    }
    if taken.unreadable_files > 0 {
        let count = format::things(taken.unreadable_files, "file", "files");
        text.push_str(&format!("; {count} could not be read"));
    }
    if taken.unread_interpreters > 0 {
        let count = format::things(taken.unread_interpreters, "interpreter", "interpreters");
        text.push_str(&format!(
            "; {count} without function names (not Python 3.11 to 3.13, Ruby 3.1, PHP 8.2 or Perl 5.36)"
        ));
    }
    text
}

fn size(answer: &Answer<'_>) -> String {
    let (bytes, events) = (
        format::bytes(answer.bytes),
        format::things(answer.event_count, "event", "events"),
    );
    match answer.bytes_per_event {
        Some(each) => format!("{bytes}, {events}, {each:.1} bytes an event"),
        None => format!("{bytes}, {events}"),
    }
}

fn checked(verified: Option<&Checked>) -> String {
    match verified {
        Some(checked) => format!(
            "{} in {} as recorded",
            format::bytes(checked.bytes),
            format::things(checked.parts as u64, "part", "parts")
        ),
        None => "not possible: the trace was cut short, or its version has no checksums".to_owned(),
    }
}

fn known(text: &str) -> &str {
    if text.is_empty() { "(unknown)" } else { text }
}

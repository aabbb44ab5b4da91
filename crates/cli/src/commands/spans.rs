//! `hangdog spans`: spans of OpenTelemetry become regions of a trace.

use crate::args::SpansArgs;
use crate::load;
use crate::output;
use anyhow::{Context, Result, bail};
use hangdog_report::select::{self, NothingFound};
use hangdog_report::spans::{self, Ground, Tally};
use hangdog_report::{Loss, Recording, format};
use serde::Serialize;
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

/// No more is read of a file of spans, bytes.
const LONGEST: u64 = 2 << 30;

/// The answer in JSON.
#[derive(Serialize)]
struct Answer<'a> {
    trace: &'a Path,
    loss: &'a Loss,
    spans: usize,
    #[serde(flatten)]
    tally: Tally,
}

/// Reads the spans and keeps them beside the trace.
pub fn run(args: &SpansArgs) -> Result<()> {
    let recording = load::recording(&args.trace)?;
    let (found, tally) = read(args, &recording)?;
    if found.is_empty() {
        let left_out = left_out(tally);
        let what = match left_out.is_empty() {
            true => "the file has no spans".to_owned(),
            false => format!("no span is in the trace: {}", left_out.join(", ")),
        };
        return Err(NothingFound::new(what).into());
    }
    spans::store(&args.trace, found)?;
    if args.json {
        return output::json(&Answer {
            trace: &args.trace,
            loss: &recording.loss,
            spans: tally.kept(),
            tally,
        });
    }
    let mut out = output::stdout();
    writeln!(out, "{}", text(tally))?;
    writeln!(out, "next: hangdog regions {}", args.trace.display())?;
    Ok(out.flush()?)
}

fn read(args: &SpansArgs, recording: &Recording) -> Result<(Vec<spans::Span>, Tally)> {
    let processes = match &args.process {
        Some(selector) => select::processes(&recording.threads, selector)?,
        None => Vec::new(),
    };
    let ground = Ground {
        threads: &recording.threads,
        started_unix_ns: recording.trace.meta().started_unix_ns,
        end: recording.timeline.end(),
        processes: &processes,
    };
    let name = || args.file.display().to_string();
    let source: Box<dyn Read> = match args.file.as_os_str() == "-" {
        true => Box::new(io::stdin().lock()),
        false => {
            Box::new(File::open(&args.file).with_context(|| format!("cannot read {}", name()))?)
        }
    };
    let mut source = BufReader::new(source).take(LONGEST);
    let laid = spans::lay(&mut source, &ground);
    if source.limit() == 0 {
        bail!(
            "{}: it has {} GB or more; give a part of it",
            name(),
            LONGEST >> 30
        );
    }
    laid.with_context(name)
}

/// How many there are, and how their threads were found.
fn text(tally: Tally) -> String {
    let mut parts = Vec::new();
    for (count, how) in [
        (tally.by_thread_id, "by thread id"),
        (tally.by_thread_name, "by thread name"),
        (
            tally.by_process,
            "on the first thread of their process, since they name no thread of the trace",
        ),
    ] {
        if count > 0 {
            parts.push(format!("{} {how}", format::count(count as u64)));
        }
    }
    let kept = format::things(tally.kept() as u64, "span", "spans");
    let mut text = format!("{kept}: {}", parts.join(", "));
    let left_out = left_out(tally);
    if !left_out.is_empty() {
        text += &format!("; left out {}", left_out.join(", "));
    }
    text
}

fn left_out(tally: Tally) -> Vec<String> {
    let reasons = [
        (tally.of_no_process, "of no process in the trace"),
        (
            tally.of_another_time,
            "that did not begin while it was recorded",
        ),
    ];
    let reasons = reasons.into_iter().filter(|(count, _)| *count > 0);
    let text = |(count, why): (usize, &str)| format!("{} {why}", format::count(count as u64));
    reasons.map(text).collect()
}

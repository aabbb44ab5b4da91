//! `hangdog hangs`: what the watch caught.

use crate::args::{HangsArgs, Which, WhyArgs, WindowArgs};
use crate::commands::why;
use crate::output::{self, Colour, Paint};
use anyhow::{Context, Result};
use hangdog_capture::clock;
use hangdog_report::format;
use hangdog_report::select::NothingFound;
use hangdog_report::units::Moment;
use hangdog_watch::archive::{Archive, Occasion, Report};
use serde::Serialize;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The answer in JSON.
#[derive(Serialize)]
struct Answer<'a> {
    dir: &'a Path,
    hangs: Vec<Listed<'a>>,
    /// Files that should be reports and cannot be read.
    damaged: Vec<Unread>,
}

/// All hangs of one cause.
#[derive(Serialize)]
struct Listed<'a> {
    signature: &'a str,
    program: &'a str,
    sign: &'a str,
    sentence: &'a str,
    count: u64,
    first_unix_ns: u64,
    /// The last times, newest first.
    occasions: Vec<Time>,
}

/// One time.
#[derive(Serialize)]
struct Time {
    unix_ns: u64,
    duration_ns: u64,
    goes_on: bool,
    pid: u32,
    tid: u32,
    /// The trace; none if it was removed.
    trace: Option<PathBuf>,
    from_ns: u64,
    to_ns: u64,
}

impl Time {
    fn new(archive: &Archive, occasion: &Occasion) -> Time {
        Time {
            unix_ns: occasion.unix_ns,
            duration_ns: occasion.duration_ns,
            goes_on: occasion.goes_on,
            pid: occasion.pid,
            tid: occasion.tid,
            trace: archive.trace_of(occasion),
            from_ns: occasion.from_ns,
            to_ns: occasion.to_ns,
        }
    }
}

#[derive(Serialize)]
struct Unread {
    path: PathBuf,
    why: String,
}

/// Lists all, or tells one in full.
pub fn run(args: &HangsArgs) -> Result<()> {
    let archive = Archive::at(&args.dir);
    if matches!(args.dir.try_exists(), Ok(false)) {
        let folder = args.dir.display();
        let what = format!("{folder} is not there: `sudo hangdog watch` makes it");
        return Err(NothingFound::new(what).into());
    }
    let (mut reports, damaged) = archive.reports().context(
        "only the user who ran hangdog watch can read its hangs: try sudo hangdog hangs",
    )?;
    for file in &damaged {
        say!("hangdog: {}: {}; skipped", file.path.display(), file.why);
    }
    if let Some(signature) = &args.signature {
        reports.retain(|report| report.signature.starts_with(signature.as_str()));
        if reports.len() > 1 {
            reports.retain(|report| report.signature == *signature);
        }
    }
    if reports.is_empty() {
        let folder = args.dir.display();
        return Err(NothingFound::new(match &args.signature {
            Some(signature) => {
                format!("no hang, or more than one, has a signature that begins with {signature}")
            }
            None => format!("no hangs in {folder} yet"),
        })
        .into());
    }
    if args.json {
        let damaged = damaged.into_iter();
        return output::json(&Answer {
            dir: &args.dir,
            hangs: reports
                .iter()
                .map(|report| listed(&archive, report))
                .collect(),
            damaged: damaged
                .map(|file| Unread {
                    path: file.path,
                    why: file.why,
                })
                .collect(),
        });
    }
    match (&args.signature, &reports[..]) {
        (Some(_), [report]) => in_full(&archive, report),
        _ => list(&archive, &reports),
    }
}

fn listed<'a>(archive: &Archive, report: &'a Report) -> Listed<'a> {
    let occasions = report.occasions.iter().rev();
    Listed {
        signature: &report.signature,
        program: &report.program,
        sign: &report.sign,
        sentence: &report.sentence,
        count: report.count,
        first_unix_ns: report.first_unix_ns,
        occasions: occasions
            .map(|occasion| Time::new(archive, occasion))
            .collect(),
    }
}

fn list(archive: &Archive, reports: &[Report]) -> Result<()> {
    let paint = Paint::for_stdout();
    let mut out = output::stdout();
    for report in reports {
        let Some(last) = report.last() else { continue };
        let head = format!(
            "{}  {:>7}  {}  {}",
            clock::text(last.unix_ns),
            lasted(last),
            format::printable(&report.program),
            format::things(report.count, "time", "times"),
        );
        writeln!(
            out,
            "{}  {}",
            paint.text(Colour::Heading, &head),
            report.signature
        )?;
        writeln!(out, "    {}", format::printable(&report.sentence))?;
        let trace = paint.text(Colour::Quiet, &place(archive, last));
        writeln!(out, "    {trace}")?;
    }
    Ok(out.flush()?)
}

/// One cause: every time that is remembered, and what `why` says of the newest trace there is.
fn in_full(archive: &Archive, report: &Report) -> Result<()> {
    let mut out = output::stdout();
    let count = format::things(report.count, "time", "times");
    writeln!(
        out,
        "{}: {}, {count} since {}",
        report.signature,
        format::printable(&report.program),
        clock::text(report.first_unix_ns)
    )?;
    for occasion in report.occasions.iter().rev() {
        writeln!(
            out,
            "  {}  {:>7}  {}",
            clock::text(occasion.unix_ns),
            lasted(occasion),
            place(archive, occasion)
        )?;
    }
    writeln!(out)?;
    let kept = report.occasions.iter().rev();
    let newest = kept
        .filter(|occasion| occasion.from_ns < occasion.to_ns)
        .find_map(|occasion| Some((occasion, archive.trace_of(occasion)?)));
    let Some((occasion, trace)) = newest else {
        writeln!(out, "{}", format::printable(&report.sentence))?;
        return Ok(out.flush()?);
    };
    out.flush()?;
    drop(out);
    why::run(&WhyArgs {
        trace: Some(trace),
        which: Which {
            region: None,
            nth: 1,
            baseline: None,
            problem: None,
            thread: Some(occasion.tid.to_string()),
            process: None,
            window: WindowArgs {
                from: Some(Moment::At(occasion.from_ns)),
                to: Some(Moment::At(occasion.to_ns)),
            },
        },
        live: None,
        output: None,
        whole: false,
        yes: true,
        forget: Vec::new(),
        json: false,
    })
}

/// How long it stood.
fn lasted(occasion: &Occasion) -> String {
    let more = if occasion.goes_on { ">" } else { "" };
    format!("{more}{}", format::duration(occasion.duration_ns))
}

/// Where the trace is.
fn place(archive: &Archive, occasion: &Occasion) -> String {
    match archive.trace_of(occasion) {
        Some(path) => path.display().to_string(),
        None => "trace removed to stay within --keep".to_owned(),
    }
}

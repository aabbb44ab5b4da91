//! `hangdog doctor`: what this machine allows, what it lacks, and what to do about it.

use crate::args::DoctorArgs;
use crate::commands::NOTHING_FOUND;
use crate::output::{self, Colour, Paint};
use anyhow::Result;
use hangdog_capture::doctor::{Check, Finding, examine};
use serde::Serialize;
use std::io::Write;
use std::process::ExitCode;

/// The answer in JSON.
#[derive(Serialize)]
struct Answer {
    /// Whether anything can be recorded.
    works: bool,
    checks: Vec<Line>,
}

#[derive(Serialize)]
struct Line {
    name: String,
    finding: &'static str,
    detail: String,
    /// What to do; none if nothing need or can be done.
    fix: Option<String>,
}

impl From<Check> for Line {
    fn from(check: Check) -> Line {
        Line {
            finding: match check.finding {
                Finding::Good => "good",
                Finding::Limited => "limited",
                Finding::Bad => "bad",
            },
            name: check.name,
            detail: check.detail,
            fix: (!check.fix.is_empty()).then_some(check.fix),
        }
    }
}

/// Examines the machine; the exit status says whether recording works.
pub fn run(args: &DoctorArgs) -> Result<ExitCode> {
    let checks = examine();
    let works = checks.iter().all(|check| check.finding != Finding::Bad);
    if args.json {
        let checks = checks.into_iter().map(Line::from).collect();
        output::json(&Answer { works, checks })?;
    } else {
        print(&checks, works)?;
    }
    Ok(match works {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(NOTHING_FOUND),
    })
}

fn print(checks: &[Check], works: bool) -> Result<()> {
    let paint = Paint::for_stdout();
    let mut out = output::stdout();
    let width = checks.iter().map(|check| check.name.chars().count()).max();
    let width = width.unwrap_or(0);
    for check in checks {
        let (colour, mark) = match check.finding {
            Finding::Good => (Colour::Good, "✓"),
            Finding::Limited => (Colour::Warning, "!"),
            Finding::Bad => (Colour::Bad, "✗"),
        };
        let (mark, name) = (paint.text(colour, mark), &check.name);
        writeln!(out, "{mark} {name:width$}  {}", check.detail)?;
        if !check.fix.is_empty() {
            writeln!(out, "  {:width$}  → {}", "", check.fix)?;
        }
    }
    let limited = checks.iter().any(|check| check.finding == Finding::Limited);
    let (colour, verdict) = match (works, limited) {
        (true, false) => (Colour::Good, "Recording works."),
        (true, true) => (Colour::Warning, "Recording works, with limits."),
        (false, _) => (Colour::Bad, "Recording does not work here."),
    };
    writeln!(out, "\n{}", paint.text(colour, verdict))?;
    Ok(out.flush()?)
}

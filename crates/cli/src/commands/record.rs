//! `hangdog record`: everything that the system does, into a trace.
//!
//! Standard output belongs to the recorded command, and so does the terminal while it runs: a
//! progress line shows only where there is no command. What became of the recording is told in one
//! line at the end, and of a command that hangs, what it waits for: on standard error too.

use super::why::now;
use crate::args::RecordArgs;
use crate::flag_place;
use crate::new_trace::{self, Saved};
use crate::probes;
use crate::status::StatusLine;
use crate::template;
use crate::yardstick;
use anyhow::Result;
use hangdog_capture::error::Error;
use hangdog_capture::record::{Progress, Request, record};
use hangdog_capture::{CallsOf, Options};
use hangdog_report::format;
use std::cell::RefCell;
use std::io::ErrorKind;
use std::process::ExitCode;
use std::time::Duration;

/// What a shell answers where there is no such command.
const NOT_FOUND: u8 = 127;
/// What a shell answers where the command cannot be executed.
const NOT_EXECUTABLE: u8 = 126;

/// Records, and gives the exit code of the command that was recorded.
pub fn run(args: &RecordArgs) -> Result<ExitCode> {
    let template = args.template.template.as_deref();
    let template = template.map(template::find).transpose()?;
    let next = template.and_then(|template| template.next());
    let request = Request {
        output: args.output.clone().unwrap_or_else(new_trace::default_path),
        options: Options {
            memory: args.memory.bytes(),
            unwind_memory: args.unwind_memory.bytes(),
            stacks: !args.no_stacks,
            sample_hz: if args.no_stacks { 0 } else { args.sample },
            transfers: args.transfers,
            calls: CallsOf {
                command: args.calls,
                processes: args.calls_of.clone(),
            },
            faults: args.faults,
            yardstick: yardstick::of_this_machine(),
            flags: flag_place::flags(&args.watch)?,
            probes: probes::probes(&args.probes)?,
        },
        command: args.command.clone(),
        duration: args.duration.map(|span| Duration::from_nanos(span.ns())),
        limit: args.limit.map(|span| Duration::from_nanos(span.ns())),
        memory_every: args
            .memory_every
            .map(|span| Duration::from_nanos(span.ns())),
    };
    let line = RefCell::new(StatusLine::new());
    let progress = |progress| match progress {
        Progress::Recording { .. } if !request.command.is_empty() => {}
        progress => line.borrow_mut().show(|| text(progress)),
    };
    let outcome = record(&request, progress, || {
        line.borrow_mut().clear();
        say!("hangdog: the command exceeded --limit; this is what it waits for:");
        if let Err(why) = now::of_hung(&request.output) {
            say!("hangdog: {why:#}");
        }
    });
    line.borrow_mut().clear();
    let outcome = match outcome {
        Err(Error::Command { command, cause }) => {
            say!("hangdog: cannot run {command}: {cause}");
            return Ok(ExitCode::from(match cause.kind() {
                ErrorKind::NotFound => NOT_FOUND,
                _ => NOT_EXECUTABLE,
            }));
        }
        outcome => outcome?,
    };
    Saved {
        path: &request.output,
        events: outcome.events,
        duration_ns: outcome.duration_ns,
        lost: Some(outcome.lost),
        next: &next.unwrap_or_default(),
    }
    .tell();
    // The command still runs if it did not heed the request to end: the recording is whole.
    let code = outcome.exit_code.unwrap_or(0);
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)))
}

fn text(progress: Progress) -> String {
    match progress {
        Progress::Recording { elapsed, events } => format!(
            "recording for {} s, {} (Ctrl-C stops)",
            elapsed.as_secs(),
            format::things(events, "event", "events")
        ),
        Progress::Naming { done, of } => format!(
            "naming functions: {} of {} frames",
            format::count(done as u64),
            format::count(of as u64)
        ),
    }
}

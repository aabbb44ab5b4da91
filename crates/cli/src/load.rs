//! Opening a trace, with a progress bar where somebody waits.

use crate::status::StatusLine;
use anyhow::Result;
use hangdog_report::case::STEPS;
use hangdog_report::{Case, Loading, Recording};
use hangdog_symbols::boot::is_this_boot;
use hangdog_symbols::{Namer, Origin, Process};
use hangdog_trace::ids::ModuleId;
use hangdog_trace::tables::{Frames, Mappings, Modules, Symbols};
use hangdog_trace::{Meta, StackTable, Trace};
use indicatif::{ProgressBar, ProgressStyle};
use std::collections::HashMap;
use std::path::Path;

/// A trace with what every report on threads needs of it.
///
/// # Errors
/// What is wrong with the trace, in a sentence.
pub fn recording(path: &Path) -> Result<Recording> {
    Recording::load(path, &mut Steps::new())
}

/// A trace with all that a diagnosis reads of it.
///
/// # Errors
/// What is wrong with the trace, in a sentence.
pub fn case(path: &Path) -> Result<Case> {
    Case::load(path, &mut Steps::new())
}

/// A trace's stacks.
///
/// # Errors
/// What is wrong with the trace, in a sentence.
pub fn stacks(trace: &Trace) -> Result<StackTable> {
    hangdog_report::case::stacks(trace, &mut Steps::new())
}

/// Names the functions of a recording that was cut short, as far as this machine still has what
/// was recorded.
///
/// # Errors
/// What is wrong with the trace, in a sentence.
pub fn name_functions(
    trace: &Trace,
    modules: &Modules,
    frames: &Frames,
    symbols: &mut Symbols,
    progress: impl FnMut(usize, usize),
) -> Result<()> {
    let meta = trace.meta();
    let threads = trace.threads()?;
    let mappings: Mappings = trace.read()?;
    let mut mapped_from: HashMap<ModuleId, u64> = HashMap::new();
    for (&module, &offset) in mappings.module.iter().zip(&mappings.file_offset) {
        let lowest = mapped_from.entry(module).or_insert(offset);
        *lowest = offset.min(*lowest);
    }
    let process = |upid| {
        let process = threads.process(upid);
        let first = process.threads.first().map(|&utid| threads.thread(utid))?;
        Some(Process {
            pid: process.pid,
            started_unix_ns: began(meta, first.start),
        })
    };
    let origin = Origin {
        same_boot: is_this_boot(&meta.host, &meta.kernel, meta.started_unix_ns),
        process: &process,
        mapped_from: &|module| mapped_from.get(&module).copied(),
    };
    Namer::default().name(modules, frames, &origin, symbols, progress);
    Ok(())
}

/// When a thread began, ns since 1970; `None` if it was there before the recording.
fn began(meta: &Meta, start: u64) -> Option<u64> {
    (start > 0).then(|| meta.started_unix_ns.saturating_add(start))
}

/// A progress bar on standard error; none if that is no terminal. It is gone when it is dropped.
struct Steps(ProgressBar);

impl Steps {
    fn new() -> Steps {
        let bar = ProgressBar::new(STEPS);
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg} {elapsed}");
        if let Ok(style) = style {
            bar.set_style(style);
        }
        Steps(bar)
    }
}

impl Loading for Steps {
    fn step(&mut self, what: &'static str) {
        self.0.set_message(what);
        self.0.inc(1);
    }

    fn name_functions(
        &mut self,
        trace: &Trace,
        modules: &Modules,
        frames: &Frames,
        symbols: &mut Symbols,
    ) -> Result<()> {
        self.0.finish_and_clear();
        let mut line = StatusLine::new();
        name_functions(trace, modules, frames, symbols, |done, of| {
            line.show(|| format!("naming functions: {done} of {of} frames"));
        })
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread's begin is counted from the recording's, and a recording that says that it was made at
    /// the end of time has no later ones.
    #[test]
    fn begins_are_of_the_wall_clock() {
        let at = |started_unix_ns, start| {
            let meta = Meta {
                started_unix_ns,
                ..Meta::default()
            };
            began(&meta, start)
        };
        assert_eq!(at(1_000, 7), Some(1_007));
        assert_eq!(at(1_000, 0), None);
        assert_eq!(at(u64::MAX, 7), Some(u64::MAX));
    }
}

//! Opening a trace and making its timeline, with a progress bar where somebody waits.

use crate::loss::Loss;
use crate::status::StatusLine;
use anyhow::Result;
use hangdog_capture::symbols::{Namer, Origin, Process};
use hangdog_capture::system::is_this_boot;
use hangdog_timeline::Timeline;
use hangdog_trace::ids::ModuleId;
use hangdog_trace::meta::RecordingState;
use hangdog_trace::stacks::StackTable;
use hangdog_trace::tables::{
    Frames, Interrupts, Lifecycle, Mappings, Modules, Switches, Symbols, Wakes,
};
use hangdog_trace::{Threads, Trace};
use indicatif::{ProgressBar, ProgressStyle};
use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// A trace with what every report on threads needs of it.
pub struct Recording {
    pub trace: Trace,
    pub loss: Loss,
    pub switches: Switches,
    pub wakes: Wakes,
    pub interrupts: Interrupts,
    pub threads: Threads,
    pub timeline: Timeline,
    /// How long it took to make the timeline, of the whole time to load.
    pub timeline_took: Duration,
}

impl Recording {
    /// Reads the trace at `path`.
    ///
    /// # Errors
    /// What is wrong with the trace, in a sentence.
    pub fn load(path: &Path) -> Result<Recording> {
        let trace = Trace::open(path)?;
        let steps = Steps::new(5);
        steps.next("switches");
        let switches: Switches = trace.read()?;
        steps.next("wakes");
        let wakes: Wakes = trace.read()?;
        steps.next("interrupts");
        let interrupts: Interrupts = trace.read()?;
        steps.next("threads");
        let threads = Threads::new(&trace.read::<Lifecycle>()?);
        let mut loss = Loss::of(&trace)?;
        steps.next("timeline");
        let end = trace.meta().duration_ns;
        let began = Instant::now();
        let timeline = Timeline::build(&switches, &wakes, &interrupts, &threads, end);
        let timeline_took = began.elapsed();
        loss.missing_switches = Some(timeline.missing_switches());
        Ok(Recording {
            trace,
            loss,
            switches,
            wakes,
            interrupts,
            threads,
            timeline,
            timeline_took,
        })
    }
}

/// The stacks of a trace. Functions get their names at the end of a recording: if it was cut
/// short, they are named now, as far as this machine still has what was recorded.
///
/// # Errors
/// What is wrong with the trace, in a sentence.
pub fn stacks(trace: &Trace) -> Result<StackTable> {
    let frames: Frames = trace.read()?;
    let modules: Modules = trace.read()?;
    let mut symbols: Symbols = trace.read()?;
    if trace.meta().state == RecordingState::Recording {
        name_now(trace, &modules, &frames, &mut symbols)?;
    }
    Ok(StackTable::new(trace.read()?, frames, modules, symbols))
}

fn name_now(
    trace: &Trace,
    modules: &Modules,
    frames: &Frames,
    symbols: &mut Symbols,
) -> Result<()> {
    let meta = trace.meta();
    let threads = Threads::new(&trace.read::<Lifecycle>()?);
    let mappings: Mappings = trace.read()?;
    let mut mapped_from: HashMap<ModuleId, u64> = HashMap::new();
    for (&module, &offset) in mappings.module.iter().zip(&mappings.file_offset) {
        let lowest = mapped_from.entry(module).or_insert(offset);
        *lowest = offset.min(*lowest);
    }
    let process = |upid| {
        let process = threads.process(upid);
        let first = process.threads.first().map(|&utid| threads.thread(utid))?;
        let started = (first.start > 0).then_some(meta.started_unix_ns + first.start);
        Some(Process {
            pid: process.pid,
            started_unix_ns: started,
        })
    };
    let origin = Origin {
        same_boot: is_this_boot(&meta.host, &meta.kernel, meta.started_unix_ns),
        process: &process,
        mapped_from: &|module| mapped_from.get(&module).copied(),
    };
    let mut line = StatusLine::new();
    Namer::default().name(modules, frames, &origin, symbols, |done, of| {
        line.show(|| format!("naming functions: {done} of {of} frames"));
    });
    Ok(())
}

/// A progress bar on standard error; none if that is no terminal. It is gone when it is dropped.
struct Steps(ProgressBar);

impl Steps {
    fn new(count: u64) -> Steps {
        let bar = ProgressBar::new(count);
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg} {elapsed}");
        if let Ok(style) = style {
            bar.set_style(style);
        }
        Steps(bar)
    }

    fn next(&self, what: &'static str) {
        self.0.set_message(what);
        self.0.inc(1);
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

//! Opening a trace and making its timeline, with a progress bar where somebody waits.

use crate::loss::Loss;
use crate::status::StatusLine;
use anyhow::Result;
use hangdog_capture::symbols::name_frames;
use hangdog_capture::system::is_this_boot;
use hangdog_timeline::Timeline;
use hangdog_trace::meta::RecordingState;
use hangdog_trace::stacks::StackTable;
use hangdog_trace::tables::{Frames, Interrupts, Lifecycle, Modules, Switches, Symbols, Wakes};
use hangdog_trace::{Threads, Trace};
use indicatif::{ProgressBar, ProgressStyle};
use std::path::Path;

/// A trace with what every report on threads needs of it.
pub struct Recording {
    pub trace: Trace,
    pub loss: Loss,
    pub switches: Switches,
    pub wakes: Wakes,
    pub interrupts: Interrupts,
    pub threads: Threads,
    pub timeline: Timeline,
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
        let timeline = Timeline::build(&switches, &wakes, &interrupts, &threads, end);
        loss.missing_switches = Some(timeline.missing_switches());
        Ok(Recording {
            trace,
            loss,
            switches,
            wakes,
            interrupts,
            threads,
            timeline,
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
    let meta = trace.meta();
    if meta.state == RecordingState::Recording {
        let same_kernel = is_this_boot(&meta.host, &meta.kernel, meta.started_unix_ns);
        let mut line = StatusLine::new();
        symbols = name_frames(&modules, &frames, same_kernel, |done, of| {
            line.show(|| format!("naming functions: {done} of {of} frames"));
        });
    }
    Ok(StackTable::new(trace.read()?, frames, modules, symbols))
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

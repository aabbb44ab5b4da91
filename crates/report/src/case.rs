//! A trace opened: the tables that answers are made of, and what is derived from them.
//!
//! A [`Recording`] is what the timeline needs, and is there first; a [`Case`] has the rest.

use crate::loss::Loss;
use anyhow::Result;
use hangdog_diagnose::problem::Scope;
use hangdog_diagnose::{Answers, Setting};
use hangdog_export::Source;
use hangdog_graph::{Evidence, Tables};
use hangdog_timeline::Timeline;
use hangdog_trace::calls::Calls;
use hangdog_trace::meta::RecordingState;
use hangdog_trace::sockets::SocketTable;
use hangdog_trace::stacks::StackTable;
use hangdog_trace::tables::{
    FlagAccesses, Flags, FoundWaitings, Frames, Goroutines, Handoffs, Interrupts, Limits, Modules,
    Samples, Switches, Symbols, Transfers, Wakes,
};
use hangdog_trace::{Threads, Trace};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What happens while a trace is read: whoever waits can be told, and functions can be named.
pub trait Loading {
    /// The step that begins, a noun: `switches`, `timeline`. There are [`STEPS`] of them in a
    /// [`Recording`].
    fn step(&mut self, what: &'static str);

    /// Names the functions of a recording that was cut short, as far as this machine can. They
    /// get their names at the end of a recording otherwise.
    ///
    /// # Errors
    /// What is wrong with the trace, in a sentence.
    fn name_functions(
        &mut self,
        trace: &Trace,
        modules: &Modules,
        frames: &Frames,
        symbols: &mut Symbols,
    ) -> Result<()>;
}

/// How many steps it takes to read a [`Recording`].
pub const STEPS: u64 = 5;

/// A trace with what every report on threads needs of it.
pub struct Recording {
    /// The trace.
    pub trace: Trace,
    /// What it lost.
    pub loss: Loss,
    /// CPUs going from one thread to another.
    pub switches: Switches,
    /// Threads made runnable.
    pub wakes: Wakes,
    /// Interrupts and softirqs.
    pub interrupts: Interrupts,
    /// Who the threads are.
    pub threads: Threads,
    /// What each thread did when.
    pub timeline: Timeline,
    /// How long it took to make the timeline, of the whole time to load.
    pub timeline_took: Duration,
}

impl Recording {
    /// What a diagnosis goes by beside the trace.
    pub fn setting<'a>(
        &'a self,
        answers: &'a Answers,
        baseline: Option<&'a Evidence<'a>>,
    ) -> Setting<'a> {
        let meta = self.trace.meta();
        Setting {
            lost: self.loss.total > 0,
            answers,
            baseline,
            yardstick: meta.yardstick.as_ref(),
            instant: meta.is_instant(),
        }
    }

    /// Reads the trace at `path`.
    ///
    /// # Errors
    /// What is wrong with the trace, in a sentence.
    pub fn load(path: &Path, loading: &mut dyn Loading) -> Result<Recording> {
        let trace = Trace::open(path)?;
        loading.step("switches");
        let switches: Switches = trace.read()?;
        loading.step("wakes");
        let wakes: Wakes = trace.read()?;
        loading.step("interrupts");
        let interrupts: Interrupts = trace.read()?;
        loading.step("threads");
        let threads = trace.threads()?;
        let mut loss = Loss::of(&trace)?;
        loading.step("timeline");
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

/// The stacks of a trace, named now where the recording was cut short.
///
/// # Errors
/// What is wrong with the trace, in a sentence.
pub fn stacks(trace: &Trace, loading: &mut dyn Loading) -> Result<StackTable> {
    let frames: Frames = trace.read()?;
    let modules: Modules = trace.read()?;
    let mut symbols: Symbols = trace.read()?;
    if trace.meta().state == RecordingState::Recording {
        loading.name_functions(trace, &modules, &frames, &mut symbols)?;
    }
    Ok(StackTable::new(trace.read()?, frames, modules, symbols))
}

/// All that was read of a trace: evidence borrows from it.
pub struct Case {
    /// What the timeline was made of, shared with whoever shows that before the rest is read.
    pub recording: Arc<Recording>,
    /// Stacks with their names.
    pub stacks: StackTable,
    /// What CPUs were running when sampled.
    pub samples: Samples,
    /// System calls of the machine that was recorded.
    pub calls: Calls,
    transfers: Transfers,
    handoffs: Handoffs,
    flags: Flags,
    flag_accesses: FlagAccesses,
    found_waiting: FoundWaitings,
    goroutines: Goroutines,
    limits: Limits,
    sockets: SocketTable,
}

impl Case {
    /// Reads the trace at `path`.
    ///
    /// # Errors
    /// What is wrong with the trace, in a sentence.
    pub fn load(path: &Path, loading: &mut dyn Loading) -> Result<Case> {
        Case::of(Arc::new(Recording::load(path, loading)?), loading)
    }

    /// Reads what is missing beside `recording`.
    ///
    /// # Errors
    /// What is wrong with the trace, in a sentence.
    pub fn of(recording: Arc<Recording>, loading: &mut dyn Loading) -> Result<Case> {
        let trace = &recording.trace;
        Ok(Case {
            stacks: stacks(trace, loading)?,
            samples: trace.read()?,
            calls: Calls::new(&trace.meta().arch),
            transfers: trace.read()?,
            handoffs: trace.read()?,
            flags: trace.read()?,
            flag_accesses: trace.read()?,
            found_waiting: trace.read()?,
            goroutines: trace.read()?,
            limits: trace.read()?,
            sockets: SocketTable::new(trace.read()?, &trace.read()?),
            recording,
        })
    }

    /// What diagnoses go by.
    pub fn evidence(&self) -> Evidence<'_> {
        let recording = &*self.recording;
        Evidence::new(Tables {
            switches: &recording.switches,
            wakes: &recording.wakes,
            samples: &self.samples,
            transfers: &self.transfers,
            handoffs: &self.handoffs,
            flags: &self.flags,
            flag_accesses: &self.flag_accesses,
            found_waiting: &self.found_waiting,
            goroutines: &self.goroutines,
            limits: &self.limits,
            sockets: &self.sockets,
            threads: &recording.threads,
            timeline: &recording.timeline,
            stacks: &self.stacks,
            calls: Calls::new(&recording.trace.meta().arch),
            recorder: recording.trace.meta().recorder_pid,
        })
    }

    /// The trace as the export knows it.
    pub fn source(&self) -> Source<'_> {
        let recording = &*self.recording;
        Source {
            meta: recording.trace.meta(),
            switches: &recording.switches,
            wakes: &recording.wakes,
            interrupts: &recording.interrupts,
            samples: &self.samples,
            threads: &recording.threads,
            timeline: &recording.timeline,
            stacks: &self.stacks,
            calls: &self.calls,
        }
    }

    /// What a diagnosis goes by beside the trace.
    pub fn setting<'a>(
        &'a self,
        answers: &'a Answers,
        baseline: Option<&'a Evidence<'a>>,
    ) -> Setting<'a> {
        self.recording.setting(answers, baseline)
    }

    /// Whose problems there can be.
    pub fn scope(&self) -> Scope {
        Scope::of(self.recording.trace.meta())
    }
}

//! What `top`, `flame` and `export` need of a trace, and the part of it that a person means.

use crate::args::{FoldView, SelectionArgs};
use crate::format;
use crate::load::{self, Recording};
use crate::select::{self, NothingFound, Who, Window};
use anyhow::Result;
use hangdog_export::{Fold, Selection, Source, View};
use hangdog_trace::calls::Calls;
use hangdog_trace::ids::Utid;
use hangdog_trace::stacks::StackTable;
use hangdog_trace::tables::Samples;
use std::path::Path;

/// A trace with its stacks and samples.
pub struct Material {
    pub recording: Recording,
    pub stacks: StackTable,
    pub samples: Samples,
    calls: Calls,
}

impl Material {
    /// Reads the trace at `path`.
    ///
    /// # Errors
    /// What is wrong with the trace, in a sentence.
    pub fn load(path: &Path) -> Result<Material> {
        let recording = Recording::load(path)?;
        Ok(Material {
            stacks: load::stacks(&recording.trace)?,
            samples: recording.trace.read()?,
            calls: Calls::new(&recording.trace.meta().arch),
            recording,
        })
    }

    /// The trace as the export knows it.
    pub fn source(&self) -> Source<'_> {
        let recording = &self.recording;
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

    /// What the arguments mean.
    ///
    /// # Errors
    /// An empty window, or [`NothingFound`].
    pub fn select(&self, args: &SelectionArgs) -> Result<Selected> {
        let recording = &self.recording;
        let window = Window::new(args.window, recording.timeline.end())?;
        let threads = match &args.thread {
            None => None,
            Some(selector) => Some(select::threads(
                &recording.threads,
                &recording.timeline,
                window,
                selector,
            )?),
        };
        let selection = match &threads {
            None => Selection::all(window.from, window.to),
            Some(threads) => Selection::of(threads.clone(), window.from, window.to),
        };
        Ok(Selected { threads, selection })
    }

    /// The weighted stacks of a selection.
    ///
    /// # Errors
    /// [`NothingFound`] if there are none.
    pub fn fold(&self, selected: &Selected, view: FoldView) -> Result<Fold> {
        let view = match view {
            FoldView::OnCpu => View::OnCpu,
            FoldView::OffCpu => View::OffCpu,
            FoldView::Wakes => View::Wakes,
        };
        let fold = Fold::new(&self.source(), &selected.selection, view);
        if !fold.rows.is_empty() {
            return Ok(fold);
        }
        Err(NothingFound::new(match view {
            View::OnCpu if self.samples.is_empty() => {
                "the trace has no samples of what ran: record it with --sample 1000"
            }
            View::OnCpu => "nothing of what is selected was running when the sampling clock fired",
            View::OffCpu | View::Wakes => "nothing of what is selected ever blocked",
        })
        .into())
    }
}

/// A part of a trace.
pub struct Selected {
    /// The threads that were named; none if none were.
    threads: Option<Vec<Utid>>,
    pub selection: Selection,
}

impl Selected {
    /// What it is, in a line: whose time, and when.
    pub fn text(&self, material: &Material) -> String {
        let who = match self.threads.as_deref() {
            None => "all threads".into(),
            Some(&[thread]) => Who::new(&material.recording.threads, thread).text(),
            Some(threads) => {
                let first = Who::new(&material.recording.threads, threads[0]).text();
                let more = threads.len() as u64 - 1;
                format!(
                    "{first} and {}",
                    format::things(more, "more thread", "more threads")
                )
            }
        };
        format!(
            "{who} from {} to {}",
            format::moment(self.selection.from),
            format::moment(self.selection.to)
        )
    }
}

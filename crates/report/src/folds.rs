//! Weighted stacks of the part of a trace that a person means.

use crate::case::Case;
use crate::format;
use crate::select::{self, Bounds, NothingFound, Who, Window};
use anyhow::Result;
use hangdog_export::{Fold, Selection, View};
use hangdog_trace::ids::Utid;

/// A part of a trace.
pub struct Selected {
    /// The threads that were named; none if none were.
    threads: Option<Vec<Utid>>,
    /// The same as the export knows it.
    pub selection: Selection,
}

impl Case {
    /// The threads that `thread` names, or all, within a time.
    ///
    /// # Errors
    /// An empty window, or [`NothingFound`].
    pub fn select(&self, thread: Option<&str>, bounds: impl Into<Bounds>) -> Result<Selected> {
        let recording = &self.recording;
        let window = Window::new(bounds, recording.timeline.end())?;
        let threads = match thread {
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
    pub fn fold(&self, selected: &Selected, view: View) -> Result<Fold> {
        let fold = Fold::new(&self.source(), &selected.selection, view);
        if !fold.rows.is_empty() {
            return Ok(fold);
        }
        Err(NothingFound::new(match view {
            View::OnCpu if self.samples.is_empty() => {
                "the trace has no CPU samples: record with --sample 1000"
            }
            View::OnCpu => {
                "no samples: nothing in the selection was running when the sampling clock fired"
            }
            View::OffCpu | View::Wakes => "nothing in the selection blocked",
        })
        .into())
    }
}

impl Selected {
    /// What it is, in a line: whose time, and when.
    pub fn text(&self, case: &Case) -> String {
        let threads = &case.recording.threads;
        let who = match self.threads.as_deref() {
            None => "all threads".into(),
            Some(&[thread]) => Who::new(threads, thread).text(),
            Some(named) => {
                let first = Who::new(threads, named[0]).text();
                let more = named.len() as u64 - 1;
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

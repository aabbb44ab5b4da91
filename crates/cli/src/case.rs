//! A trace with all that a diagnosis reads of it.

use crate::load::{self, Recording};
use anyhow::Result;
use hangdog_graph::{Evidence, Tables};
use hangdog_trace::calls::Calls;
use hangdog_trace::stacks::StackTable;
use hangdog_trace::tables::{Samples, Transfers};
use std::path::Path;

/// What was read of a trace: evidence borrows from it.
pub struct Case {
    pub recording: Recording,
    stacks: StackTable,
    samples: Samples,
    transfers: Transfers,
}

impl Case {
    /// Reads the trace at `path`.
    ///
    /// # Errors
    /// What is wrong with the trace, in a sentence.
    pub fn load(path: &Path) -> Result<Case> {
        let recording = Recording::load(path)?;
        let stacks = load::stacks(&recording.trace)?;
        let samples = recording.trace.read()?;
        let transfers = recording.trace.read()?;
        Ok(Case {
            recording,
            stacks,
            samples,
            transfers,
        })
    }

    /// What diagnoses go by.
    pub fn evidence(&self) -> Evidence<'_> {
        Evidence::new(Tables {
            switches: &self.recording.switches,
            wakes: &self.recording.wakes,
            samples: &self.samples,
            transfers: &self.transfers,
            threads: &self.recording.threads,
            timeline: &self.recording.timeline,
            stacks: &self.stacks,
            calls: Calls::new(&self.recording.trace.meta().arch),
        })
    }
}

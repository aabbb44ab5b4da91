//! A trace with all that a diagnosis reads of it.

use crate::load::{self, Recording};
use anyhow::Result;
use hangdog_graph::{Evidence, Tables};
use hangdog_trace::Trace;
use hangdog_trace::calls::Calls;
use hangdog_trace::sockets::SocketTable;
use hangdog_trace::stacks::StackTable;
use hangdog_trace::tables::{Handoffs, Samples, Transfers};
use std::path::Path;

/// What ties what one thread did to what another did.
pub struct Links {
    transfers: Transfers,
    handoffs: Handoffs,
    sockets: SocketTable,
}

impl Links {
    /// Reads them.
    ///
    /// # Errors
    /// What is wrong with the trace, in a sentence.
    pub fn read(trace: &Trace) -> Result<Links> {
        Ok(Links {
            transfers: trace.read()?,
            handoffs: trace.read()?,
            sockets: SocketTable::new(trace.read()?, &trace.read()?),
        })
    }
}

/// What diagnoses go by.
pub fn evidence<'a>(
    recording: &'a Recording,
    stacks: &'a StackTable,
    samples: &'a Samples,
    links: &'a Links,
) -> Evidence<'a> {
    Evidence::new(Tables {
        switches: &recording.switches,
        wakes: &recording.wakes,
        samples,
        transfers: &links.transfers,
        handoffs: &links.handoffs,
        sockets: &links.sockets,
        threads: &recording.threads,
        timeline: &recording.timeline,
        stacks,
        calls: Calls::new(&recording.trace.meta().arch),
        recorder: recording.trace.meta().recorder_pid,
    })
}

/// What was read of a trace: evidence borrows from it.
pub struct Case {
    pub recording: Recording,
    stacks: StackTable,
    samples: Samples,
    links: Links,
}

impl Case {
    /// Reads the trace at `path`.
    ///
    /// # Errors
    /// What is wrong with the trace, in a sentence.
    pub fn load(path: &Path) -> Result<Case> {
        let recording = Recording::load(path)?;
        Ok(Case {
            stacks: load::stacks(&recording.trace)?,
            samples: recording.trace.read()?,
            links: Links::read(&recording.trace)?,
            recording,
        })
    }

    /// What diagnoses go by.
    pub fn evidence(&self) -> Evidence<'_> {
        evidence(&self.recording, &self.stacks, &self.samples, &self.links)
    }
}

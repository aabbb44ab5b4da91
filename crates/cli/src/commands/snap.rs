//! `hangdog snap`: what the flight recorder holds, as a trace.

use crate::args::SnapArgs;
use crate::new_trace::{self, Saved};
use anyhow::Result;
use hangdog_capture::flight::{snap, socket_path};
use hangdog_report::loss::Loss;
use hangdog_trace::Trace;

/// Has the flight recorder save.
pub fn run(args: &SnapArgs) -> Result<()> {
    let path = args.output.clone().unwrap_or_else(new_trace::default_path);
    let snapshot = snap(&socket_path(), &path)?;
    // A trace that belongs to another user says nothing.
    let lost = Trace::open(&path).and_then(|trace| Loss::of(&trace));
    Saved {
        path: &path,
        events: snapshot.events,
        duration_ns: snapshot.duration_ns,
        lost: lost.ok().map(|loss| loss.total),
        next: &[],
    }
    .tell();
    Ok(())
}

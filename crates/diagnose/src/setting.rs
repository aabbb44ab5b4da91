//! What a diagnosis goes by beside the trace.

use hangdog_graph::Evidence;
use hangdog_trace::Yardstick;

use crate::answers::Answers;

/// What a diagnosis goes by beside the trace.
#[derive(Clone, Copy)]
pub struct Setting<'a> {
    /// Events are missing from the trace, which makes everything less sure.
    pub lost: bool,
    /// What the user said.
    pub answers: &'a Answers,
    /// A recording in which it went well.
    pub baseline: Option<&'a Evidence<'a>>,
    /// What operations cost on the machine that recorded, if that is known.
    pub yardstick: Option<&'a Yardstick>,
    /// The trace is of a single moment: sentences are in the present tense, without durations.
    pub instant: bool,
}

/// Where events were lost, an answer is as much less sure.
pub(crate) const EVENTS_LOST: f64 = 0.7;

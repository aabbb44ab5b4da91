//! What a wait has in common with its like, in this run and in others: what an answer holds for.
//!
//! No address, id or time is part of it: the roles of threads ([`role`]), the system call, and the
//! functions that it waits in.

use hangdog_graph::role::role;
use hangdog_graph::{Edge, Evidence, Source, Wait};
use hangdog_trace::ids::Utid;
use serde::{Deserialize, Serialize};

/// The shape of a wait.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shape {
    /// Who waits, by role: `process/thread`.
    pub waiter: String,
    /// The system call that it waits in.
    pub call: String,
    /// The functions that it waits in, innermost first; few, and only those that have names.
    pub at: Vec<String>,
}

/// So many functions tell a place.
const FEW: usize = 4;

impl Shape {
    /// Of a wait.
    pub fn of(evidence: &Evidence<'_>, wait: &Wait) -> Shape {
        let call = wait.row.map_or(-1, |row| evidence.switches.call[row]);
        let stack = evidence.stacks.stack(wait.user_stack(evidence));
        Shape {
            waiter: role_of(evidence, wait.thread),
            call: evidence.calls.name(call).to_string(),
            at: stack
                .filter_map(|frame| frame.function.map(str::to_owned))
                .take(FEW)
                .collect(),
        }
    }
}

/// A thread's role with its process's: `process/thread`.
pub(crate) fn role_of(evidence: &Evidence<'_>, thread: Utid) -> String {
    let known = evidence.threads.thread(thread);
    let process = &evidence.threads.process(known.upid).name;
    format!("{}/{}", role(process), role(known.name()))
}

/// A thread's name with its process's: `process/thread`.
pub(crate) fn full_name(evidence: &Evidence<'_>, thread: Utid) -> String {
    let known = evidence.threads.thread(thread);
    let process = &evidence.threads.process(known.upid).name;
    format!("{process}/{}", known.name())
}

/// Where an edge comes from, in words that hold from run to run.
pub(crate) fn source_of(evidence: &Evidence<'_>, edge: &Edge) -> String {
    match edge.source {
        Source::Thread(thread) => role_of(evidence, thread),
        Source::Timer => "a timer".to_owned(),
        Source::Disk => "a disk".to_owned(),
        Source::Network => "the network".to_owned(),
        Source::Device(_) => "a device".to_owned(),
        Source::Nobody => NOBODY.to_owned(),
    }
}

/// The choice of none of the possibilities.
pub const NOBODY: &str = "none of these";

//! What is worked out of a trace when it is first asked for, and kept beside its tables.
//!
//! Here is what such results are; they are made where the questions are answered.

use hangdog_trace::ids::{StackId, Upid, Utid};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock};

/// Where a thread waits: its call, and the user stack, as [`same_frames`](crate::Evidence::same_frames) has it.
pub type Site = (i16, StackId);

/// How often a thread ended such waits.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Ended {
    /// How often.
    pub times: usize,
    /// How often the woken thread then did more than look whether something had come.
    pub brought_on: usize,
}

/// The ends of earlier waits at one place.
#[derive(Clone, Default, Debug, PartialEq, Eq)]
pub struct History {
    /// Whose waits they are.
    pub(crate) waiter: Utid,
    /// By the thread that ended them.
    pub by_thread: BTreeMap<Utid, Ended>,
    /// Who ended the last of them.
    pub last: Option<Utid>,
    /// Ended by a timer.
    pub by_timer: usize,
    /// Ended by a device, or by what the trace does not tell.
    pub by_others: usize,
    /// The lengths of the waits, with all looks in between, ns, ascending.
    pub lengths: Vec<u64>,
}

/// The history that was last asked for, with the row that it was asked for, by thread and place.
type Histories = HashMap<(Utid, Site), (usize, Arc<History>)>;

/// All of it.
#[derive(Default)]
pub(crate) struct Memo {
    /// How waits ended before ([`history`](crate::history)).
    pub(crate) histories: Mutex<Histories>,
    /// The threads that stand for programs and are not their first, by those ([`fore`](crate::fore)).
    pub(crate) joined: OnceLock<HashMap<Utid, Utid>>,
    /// The processes with tasks of asyncio that have asked others something, and have no answer.
    pub(crate) asking: OnceLock<HashSet<Upid>>,
    /// Threads that were stopped at any time, in order.
    pub(crate) stopped: OnceLock<Vec<Utid>>,
    /// The first threads of processes that a signal killed, in order.
    pub(crate) killed: OnceLock<Vec<Utid>>,
    /// Of each process the looks at which it had hardly any file left to open: when, and the row of `limits`, in order.
    pub(crate) used_up: OnceLock<HashMap<Upid, Vec<(u64, usize)>>>,
}

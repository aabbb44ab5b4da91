//! Which part of a trace is meant.

use hangdog_trace::ids::{IDLE, Utid};

/// Some threads, within a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// The threads, ascending; none for all but idle.
    threads: Option<Vec<Utid>>,
    /// Since when, ns since the trace's start.
    pub from: u64,
    /// Up to but without when, ns since the trace's start.
    pub to: u64,
}

impl Selection {
    /// All threads within `[from, to)`.
    pub fn all(from: u64, to: u64) -> Selection {
        Selection {
            threads: None,
            from,
            to,
        }
    }

    /// These threads within `[from, to)`.
    pub fn of(mut threads: Vec<Utid>, from: u64, to: u64) -> Selection {
        threads.sort_unstable();
        threads.dedup();
        Selection {
            threads: Some(threads),
            from,
            to,
        }
    }

    /// Whether a thread is among those meant.
    pub fn has_thread(&self, thread: Utid) -> bool {
        match &self.threads {
            None => thread != IDLE,
            Some(threads) => threads.binary_search(&thread).is_ok(),
        }
    }

    /// Whether a moment is meant.
    pub fn has_time(&self, ts: u64) -> bool {
        (self.from..self.to).contains(&ts)
    }
}

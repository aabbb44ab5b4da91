//! The state of every thread at one instant: who ran, and who wanted to.

use crate::case::Recording;
use crate::select::Who;
use hangdog_timeline::{Cause, State};
use hangdog_trace::ids::Utid;
use serde::Serialize;

/// A thread that was not blocked at an instant.
#[derive(Serialize)]
pub struct Awake<'a> {
    /// Who.
    #[serde(flatten)]
    pub who: Who<'a>,
    /// running, runnable, preempted, interrupted.
    pub state: &'static str,
    /// Since when, ns since the trace's start.
    pub since_ns: u64,
    /// The CPU that it had, or had last; none if that is not known.
    pub cpu: Option<u16>,
    /// Its kernel priority when it last came on a CPU: 0-98 realtime, 100-139 nice -20 to 19.
    pub priority: Option<u8>,
}

/// The threads that ran, or waited for a CPU, at `t`: those that ran first, then by priority.
pub fn awake(recording: &Recording, t: u64) -> Vec<Awake<'_>> {
    let mut found: Vec<Awake<'_>> = recording
        .timeline
        .threads()
        .filter_map(|utid| awake_thread(recording, utid, t))
        .collect();
    found.sort_by_key(|awake| {
        let is_on_cpu = matches!(awake.state, "running" | "interrupted");
        (!is_on_cpu, awake.priority, awake.who.utid)
    });
    found
}

fn awake_thread(recording: &Recording, utid: Utid, t: u64) -> Option<Awake<'_>> {
    /// So far back is looked for how the thread last came on a CPU.
    const BACK: usize = 64;
    let intervals = recording.timeline.intervals(utid);
    let index = intervals.index_at(t)?;
    let interval = intervals.get(index)?;
    if interval.state == State::Blocked {
        return None;
    }
    let came = (0..=index)
        .rev()
        .take(BACK)
        .filter_map(|i| intervals.get(i))
        .find_map(|earlier| match (earlier.state, earlier.cause) {
            (State::Running, Cause::Switch(row)) => Some(row as usize),
            _ => None,
        })
        .filter(|&row| recording.switches.next[row] == utid);
    Some(Awake {
        who: Who::new(&recording.threads, utid),
        state: interval.state.text(),
        since_ns: interval.start,
        cpu: came.map(|row| recording.switches.cpu[row]),
        priority: came.map(|row| recording.switches.next_priority[row]),
    })
}

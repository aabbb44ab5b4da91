//! The system calls of a trace that recorded them all (`record --calls`), as a track for each thread that
//! made some.
//!
//! A thread is in one call at a time. Where a damaged trace has two at once, the first ends where the second
//! begins.

use hangdog_levels::source::{IDLE_STATE, Source};
use hangdog_report::Recording;
use hangdog_timeline::State;
use hangdog_trace::calls::Calls;
use hangdog_trace::ids::Utid;
use hangdog_trace::tables::SystemCalls;
use serde::Serialize;
use std::collections::BTreeMap;

/// In the place of a state: a call that returned without an error.
const RETURNED: u8 = State::Running as u8;
/// In the place of a state: a call that failed.
const FAILED: u8 = State::Preempted as u8;
/// In the place of a state: no call.
const NONE: u8 = IDLE_STATE as u8;

/// The calls of all threads, by thread.
#[derive(Default)]
pub struct CallTracks {
    of: BTreeMap<Utid, CallTrack>,
    names: BTreeMap<u16, String>,
}

/// The calls of one thread.
pub struct CallTrack {
    row: Row,
    starts: Vec<u64>,
    /// By what a tile says of an interval: 0 where there is no call, otherwise the call's number and one.
    calls: Vec<u16>,
    states: Vec<u8>,
    end: u64,
}

/// A thread in the list of tracks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// The thread.
    pub utid: Utid,
    /// How many calls.
    pub count: u64,
    /// What they took together, ns.
    pub sum_ns: u64,
}

impl CallTracks {
    /// Of a trace.
    ///
    /// # Errors
    /// What is wrong with the trace, in a sentence.
    pub fn load(recording: &Recording) -> anyhow::Result<CallTracks> {
        let log: SystemCalls = recording.trace.read()?;
        let known = Calls::new(&recording.trace.meta().arch);
        let mut rows: Vec<usize> = (0..log.len())
            .filter(|&row| log.call[row] >= 0 && recording.threads.known(log.thread[row]).is_some())
            .collect();
        rows.sort_by_key(|&row| (log.thread[row], log.ts[row]));
        let end = recording.timeline.end();
        let mut tracks = CallTracks::default();
        for row in rows {
            let call = log.call[row];
            let number = call.cast_unsigned() + 1;
            let name = || known.name(call).into_owned();
            tracks.names.entry(number).or_insert_with(name);
            let thread = log.thread[row];
            let track = (tracks.of.entry(thread)).or_insert_with(|| CallTrack::new(thread, end));
            let state = match log.error[row] {
                0 => RETURNED,
                _ => FAILED,
            };
            track.add(log.ts[row], log.duration[row], number, state);
        }
        Ok(tracks)
    }

    /// The threads that made calls, and what the numbers in tiles mean.
    pub fn listed(&self) -> (Vec<&Row>, &BTreeMap<u16, String>) {
        (
            self.of.values().map(|track| &track.row).collect(),
            &self.names,
        )
    }

    /// A thread's track; none if it made no call.
    pub fn track(&self, thread: Utid) -> Option<&CallTrack> {
        self.of.get(&thread)
    }
}

impl CallTrack {
    fn new(utid: Utid, end: u64) -> CallTrack {
        CallTrack {
            row: Row {
                utid,
                count: 0,
                sum_ns: 0,
            },
            starts: vec![0],
            calls: vec![0],
            states: vec![NONE],
            end,
        }
    }

    /// An empty one.
    pub(crate) const fn nothing() -> CallTrack {
        CallTrack {
            row: Row {
                utid: 0,
                count: 0,
                sum_ns: 0,
            },
            starts: Vec::new(),
            calls: Vec::new(),
            states: Vec::new(),
            end: 0,
        }
    }

    /// Adds a call that begins no earlier than those before it.
    fn add(&mut self, from: u64, duration: u64, number: u16, state: u8) {
        self.row.count += 1;
        self.row.sum_ns = self.row.sum_ns.saturating_add(duration);
        // The last interval is the time behind the call before, which may not be over yet.
        while self.starts.last().is_some_and(|&last| last >= from) {
            self.starts.pop();
            self.calls.pop();
            self.states.pop();
        }
        self.push(from, number, state);
        self.push(from.saturating_add(duration), 0, NONE);
    }

    fn push(&mut self, start: u64, number: u16, state: u8) {
        self.starts.push(start);
        self.calls.push(number);
        self.states.push(state);
    }

    /// The number of the call at `i`, as a tile has it.
    pub fn call(&self, i: usize) -> u32 {
        self.calls.get(i).copied().unwrap_or(0).into()
    }
}

impl Source for &CallTrack {
    fn len(&self) -> usize {
        self.starts.len()
    }

    fn start(&self, i: usize) -> u64 {
        self.starts[i]
    }

    fn end(&self) -> u64 {
        self.end.max(self.starts.last().copied().unwrap_or(0))
    }

    fn state(&self, i: usize) -> usize {
        self.states[i].into()
    }
}

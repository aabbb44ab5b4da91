//! Occurrences that a trace shows by itself, without marks: turns of a thread's loop, requests that it
//! made, calls that it made.

use hangdog_graph::{Evidence, Wait, WaitKind};
use hangdog_timeline::State;
use hangdog_trace::ids::Utid;
use hangdog_trace::tables::SystemCalls;
use std::collections::{BTreeMap, HashMap};

/// One of many intervals of threads' time that are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// Whose time.
    pub thread: Utid,
    /// Since when, ns since the trace's start.
    pub from: u64,
    /// Until when.
    pub to: u64,
}

impl Occurrence {
    /// How long it is, ns.
    pub fn ns(&self) -> u64 {
        self.to - self.from
    }
}

/// Where a thread waits for the next thing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Home {
    /// The call.
    pub call: i16,
    /// What it works on, where that tells it from other waits in the same call.
    pub object: Option<u64>,
}

/// In waits on one object must be this share of those in the call, for it to tell them apart.
const MOST_OF_CALL: f64 = 0.5;

/// Where a thread waits for the next thing to do: of the calls in which it waits for a message, descriptors, a
/// condition or time, that in which it waited the longest altogether; on one object, if most of that was there.
pub fn home(evidence: &Evidence<'_>, thread: Utid) -> Option<Home> {
    let mut calls: BTreeMap<i16, u64> = BTreeMap::new();
    let mut objects: BTreeMap<(i16, u64), u64> = BTreeMap::new();
    for interval in evidence.timeline.between(thread, 0, u64::MAX) {
        if interval.state != State::Blocked {
            continue;
        }
        let wait = Wait::new(evidence, thread, &interval);
        let is_for_work = matches!(
            wait.kind,
            WaitKind::Poll
                | WaitKind::Message
                | WaitKind::Condition
                | WaitKind::Idle
                | WaitKind::Sleep
                | WaitKind::Timer
                | WaitKind::Signal
        );
        if let Some(row) = wait.row.filter(|_| is_for_work) {
            let (call, object) = (evidence.switches.call[row], evidence.switches.object[row]);
            *calls.entry(call).or_default() += wait.duration();
            *objects.entry((call, object)).or_default() += wait.duration();
        }
    }
    let (call, whole) = calls.into_iter().max_by_key(|&(_, ns)| ns)?;
    let of_call = objects.into_iter().filter(|((of, _), _)| *of == call);
    let ((_, object), most) = of_call.max_by_key(|&(_, ns)| ns)?;
    let is_most = object != 0 && most as f64 >= MOST_OF_CALL * whole as f64;
    Some(Home {
        call,
        object: is_most.then_some(object),
    })
}

/// The turns of a thread's loop: from when a wait at its home ends, and the thread wants a CPU again, until
/// it waits there the next time. Work that it takes up without waiting is part of the turn before.
pub fn turns(evidence: &Evidence<'_>, thread: Utid, home: Home) -> Vec<Occurrence> {
    let mut turns = Vec::new();
    let mut began = None;
    let switches = evidence.switches;
    for interval in evidence.timeline.between(thread, 0, u64::MAX) {
        let is_home = interval.state == State::Blocked
            && (Wait::new(evidence, thread, &interval).row).is_some_and(|row| {
                let object = switches.object[row];
                switches.call[row] == home.call && home.object.is_none_or(|of| of == object)
            });
        if !is_home {
            continue;
        }
        if let Some(from) = began.filter(|&from| from < interval.start) {
            turns.push(Occurrence {
                thread,
                from,
                to: interval.start,
            });
        }
        began = Some(interval.end);
    }
    turns
}

/// The requests that a thread made: from the first bytes that it sent over a connection, or into a pipe,
/// until the first that it then received over it.
pub fn requests(evidence: &Evidence<'_>, thread: Utid) -> Vec<Occurrence> {
    let transfers = evidence.transfers;
    let mut asked: HashMap<u64, u64> = HashMap::new();
    let mut requests = Vec::new();
    for row in 0..transfers.len() {
        if transfers.thread[row] != thread {
            continue;
        }
        let (object, ts) = (transfers.object[row], transfers.ts[row]);
        if transfers.sent[row] {
            asked.entry(object).or_insert(ts);
        } else if let Some(from) = asked.remove(&object).filter(|&from| from < ts) {
            requests.push(Occurrence {
                thread,
                from,
                to: ts,
            });
        }
    }
    requests
}

/// The calls of one number that a thread made, where calls were recorded.
pub fn calls(log: &SystemCalls, thread: Utid, call: i16) -> Vec<Occurrence> {
    (0..log.len())
        .filter(|&row| log.thread[row] == thread && log.call[row] == call && log.duration[row] > 0)
        .map(|row| Occurrence {
            thread,
            from: log.ts[row],
            to: log.ts[row].saturating_add(log.duration[row]),
        })
        .collect()
}

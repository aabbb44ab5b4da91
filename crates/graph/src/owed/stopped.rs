//! A stopped process among those that a waiting one is connected to.
//!
//! Through how many hands a request went, a pipe to a helper, a bus, a display server, need not be
//! known: where nothing else names who owes the answer, and one of those within reach is stopped, it
//! is that one.

use hangdog_trace::ids::{Upid, Utid};
use hangdog_trace::object::{Object, ObjectKind};
use hangdog_trace::words::Left;
use std::collections::{HashSet, VecDeque};

use super::last::process_of;
use super::who::wait_at;
use crate::edge::{Edge, EdgeKind, Source, Strength};
use crate::evidence::Evidence;
use crate::wait::{Wait, WaitKind};

/// Shorter waits need no such explanation, ns.
const LONG_NS: u64 = 100_000_000;
/// A request goes through so many hands.
const FARTHEST: usize = 4;
/// So many processes are looked at.
const MOST: usize = 256;

/// Threads that were stopped at any time, in order.
fn all_stopped<'e>(evidence: &'e Evidence<'_>) -> &'e [Utid] {
    evidence.memo.stopped.get_or_init(|| find_stopped(evidence))
}

fn find_stopped(evidence: &Evidence<'_>) -> Vec<Utid> {
    let switches = evidence.switches;
    let rows = (0..switches.len()).filter(|&row| Left::from(switches.left[row]) == Left::Stopped);
    let threads: HashSet<Utid> = rows.map(|row| switches.prev[row]).collect();
    let mut threads: Vec<Utid> = threads.into_iter().collect();
    threads.sort_unstable();
    threads
}

/// The nearest process within reach of the one that waits that was stopped meanwhile.
pub(crate) fn within_reach(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    if all_stopped(evidence).is_empty() || wait.duration() < LONG_NS {
        return None;
    }
    let own = evidence.threads.thread(wait.thread).upid;
    let lasts = wait.end >= evidence.timeline.end();
    // One that was let go on, and a wait that lasts all the same, have nothing to do with each other.
    let middle = (!lasts).then_some(wait.start + wait.duration() / 2);
    let stopped_of = |process: Upid| {
        let threads = all_stopped(evidence).iter().copied();
        let mut of_it = threads.filter(|&it| evidence.threads.thread(it).upid == process);
        of_it.find(|&it| {
            let waits = |moment| wait_at(evidence, it, moment);
            (middle.into_iter().chain([wait.end]))
                .any(|moment| waits(moment).is_some_and(|wait| wait.kind == WaitKind::Stopped))
        })
    };
    let mut seen: HashSet<Upid> = [own].into();
    let mut next: VecDeque<(Upid, usize)> = [(own, 0)].into();
    while let Some((process, steps)) = next.pop_front() {
        if let Some(stopped) = stopped_of(process).filter(|_| process != own) {
            let reason = format!("{} is stopped, and connected to it", evidence.name(stopped));
            let source = Source::Thread(stopped);
            return Some(Edge::new(EdgeKind::Peer, Strength::Weak, source, reason));
        }
        if steps == FARTHEST {
            continue;
        }
        // What goes through one that passes on what all send lies unread where it was meant for, as
        // long as nobody has read it since.
        let passes_on = lasts && evidence.passes_on(process);
        for other in connected(evidence, process) {
            if passes_on && !has_unread(evidence, other) {
                continue;
            }
            if seen.len() < MOST && seen.insert(other) {
                next.push_back((other, steps + 1));
            }
        }
    }
    None
}

/// Whether something lies unread in a socket of a process.
pub fn has_unread(evidence: &Evidence<'_>, process: Upid) -> bool {
    let holders = |object: Object| evidence.sockets.holders(object).iter();
    let mut all = evidence.sockets.had(process).flat_map(holders);
    all.any(|holder| holder.process == process && holder.unread > 0)
}

/// The processes at the other ends of what a process has open.
fn connected(evidence: &Evidence<'_>, process: Upid) -> Vec<Upid> {
    let sockets = evidence.sockets;
    let others = |object: Object| -> Vec<Upid> {
        match object.kind() {
            ObjectKind::Pipe | ObjectKind::MessageQueue => {
                let holders = sockets.holders(object).iter();
                holders.map(|holder| holder.process).collect()
            }
            _ => {
                let by_peer = sockets
                    .peer(object)
                    .and_then(|end| process_of(evidence, end));
                by_peer
                    .or_else(|| sockets.peer_process(object))
                    .into_iter()
                    .collect()
            }
        }
    };
    sockets.had(process).flat_map(others).collect()
}

//! A thread that runs all the time and waits all the same: it asks again and again whether a child has ended, as a
//! supervisor that has told a program to stop; or it looks for messages of another process of a parallel program.
//!
//! No such call leaves a switch. Samples show them, and the thread never waits for long.

use hangdog_graph::{Edge, Evidence, Mark, WaitKind};
use hangdog_trace::ids::Utid;
use std::ops::Range;

use crate::profile::samples_of;
use crate::stretch::wait_before;

/// A shorter time may be a turn of a loop that looks after its children as well.
const LEAST_NS: u64 = 1_000_000_000;
/// It runs for at least this share of the time.
const RUNS: f64 = 0.7;
/// It asks in at least so many samples, and in this share of them.
const FEWEST: usize = 5;
const ASKS: f64 = 0.01;
/// A child that ends so soon around the end of the time ended it.
const SOON_NS: u64 = 200_000_000;

/// A look for messages is what a thread does if so many of its samples lie in it,
const LOOKS: f64 = 0.7;
/// in a time that is long enough for some.
const LEAST_LOOKED_NS: u64 = 50_000_000;

/// Whom a thread waits for in `window` while it runs, for what, and why that is believed.
pub(crate) fn awaited(
    evidence: &Evidence<'_>,
    thread: Utid,
    window: &Range<u64>,
) -> Option<(Utid, WaitKind, Edge)> {
    if let Some(child) = child_asked_after(evidence, thread, window) {
        return Some((child, WaitKind::Child, Edge::of_asking(evidence, child)));
    }
    let peer = late_peer(evidence, thread, window)?;
    Some((peer, WaitKind::Message, Edge::of_looking(evidence, peer)))
}

/// Of the processes of a parallel program, of which `thread` looks for messages for most of the time, the one that
/// does so least, and for less than half of it.
fn late_peer(evidence: &Evidence<'_>, thread: Utid, window: &Range<u64>) -> Option<Utid> {
    let length = window.end.saturating_sub(window.start);
    if length < LEAST_LOOKED_NS {
        return None;
    }
    let looking = |thread: Utid| {
        let samples = samples_of(evidence, thread, std::slice::from_ref(window));
        let looks =
            |&&row: &&usize| evidence.shows(evidence.samples.user_stack[row], Mark::SpinsForPeers);
        let looks = samples.iter().filter(looks).count();
        (samples.len() >= FEWEST).then(|| looks as f64 / samples.len() as f64)
    };
    if looking(thread).is_none_or(|share| share < LOOKS) {
        return None;
    }
    let threads = evidence.threads;
    let own = threads.process_of(thread);
    let middle = window.start + length / 2;
    let peers = threads.processes().filter(|other| {
        other.upid != own.upid && other.parent == own.parent && other.name == own.name
    });
    let peers = peers
        .filter_map(|peer| peer.threads.first().copied())
        .filter(|&peer| evidence.timeline.life(peer).contains(&middle));
    // One that waits has no samples, and does not look for messages either.
    let peers = peers.map(|peer| (peer, looking(peer).unwrap_or(0.0)));
    peers
        .filter(|&(_, share)| share < 0.5)
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(peer, _)| peer)
}

/// The main thread of the child that `thread` asks after in `window`: the only one that is at work then.
fn child_asked_after(evidence: &Evidence<'_>, thread: Utid, window: &Range<u64>) -> Option<Utid> {
    let length = window.end.saturating_sub(window.start);
    if length < LEAST_NS {
        return None;
    }
    let parts = evidence.timeline.between(thread, window.start, window.end);
    let busy: u64 = parts
        .filter(|part| part.state.is_on_cpu() || part.state.wants_cpu())
        .map(|part| part.duration())
        .sum();
    if (busy as f64) < RUNS * length as f64 || !asks(evidence, thread, window) {
        return None;
    }
    let own = evidence.threads.thread(thread).upid;
    let middle = window.start + length / 2;
    let children: Vec<Utid> = (evidence.threads.processes())
        .filter(|child| child.parent == own && child.upid != own)
        .filter_map(|child| child.threads.first().copied())
        .filter(|&child| is_at_work(evidence, child, middle))
        .collect();
    let ends_it = |&child: &Utid| {
        let end = evidence.timeline.life(child).end;
        end < evidence.timeline.end() && end.abs_diff(window.end) < SOON_NS
    };
    let mut ending = children.iter().copied().filter(ends_it);
    match (ending.next(), &children[..]) {
        (Some(child), _) if ending.next().is_none() => Some(child),
        (None, &[child]) => Some(child),
        _ => None,
    }
}

/// Whether samples show a thread in calls that ask whether a child has ended.
fn asks(evidence: &Evidence<'_>, thread: Utid, window: &Range<u64>) -> bool {
    const CALLS: [&str; 3] = ["wait4", "waitpid", "waitid"];
    let samples = samples_of(evidence, thread, std::slice::from_ref(window));
    let is_asking = |&&row: &&usize| {
        let mut frames = evidence.stacks.stack(evidence.samples.user_stack[row]);
        frames.any(|frame| {
            let function = frame.function.unwrap_or_default();
            CALLS.iter().any(|call| function.contains(call))
        })
    };
    let asking = samples.iter().filter(is_asking).count();
    asking >= FEWEST && asking as f64 >= ASKS * samples.len() as f64
}

/// Whether a thread does something at a moment, or waits for one that it has started.
fn is_at_work(evidence: &Evidence<'_>, thread: Utid, moment: u64) -> bool {
    let life = evidence.timeline.life(thread);
    let does = |kind| matches!(kind, WaitKind::Child | WaitKind::Disk | WaitKind::Paging);
    life.contains(&moment)
        && wait_before(evidence, thread, moment).is_none_or(|there| does(there.kind))
}

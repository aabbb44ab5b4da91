//! Whose work came last before a wait ended, where threads in between only pass on what many bring.
//!
//! A thread that polls connections for a whole program, or that hands tasks to others, waits only moments each time, and each
//! of these waits ends by something else. Its timeline does not show what a thread waited for that it woke. That is found backwards from
//! the wake: what began the turn in which it was made, what began the turn in which that was sent, and so on, as long as these turns
//! are short, until a thread is found that was at one thing for most of the time.

use hangdog_graph::ended::ended_by;
use hangdog_graph::{Edge, EdgeKind, Evidence, Source, Strength, WaitKind};
use hangdog_trace::ids::Utid;
use std::ops::Range;

use crate::owed::is_home;
use crate::relay::{Relay, waiting_for};
use crate::stretch::{Stretch, Waiting, each_stretch};
use crate::turns::sender_to;

/// So many threads pass a thing on at most.
const MOST_LINKS: usize = 16;
/// They take so small a part of the time for it, together.
const SHORT: u64 = 10;
/// Of a thread with more intervals than this in the time nothing is sought.
const MOST_INTERVALS: usize = 100_000;

/// Who was at one thing for most of `parts`, when a thread `passer`, which was not, had a wait end as `edge` says.
pub(crate) fn of(
    evidence: &Evidence<'_>,
    passer: Utid,
    (waiting, edge): (&Waiting, &Edge),
    parts: &[Range<u64>],
) -> Option<Relay> {
    let from = parts.first()?.start;
    let total: u64 = parts.iter().map(|part| part.end - part.start).sum();
    let is_long = |ns: u64| ns.saturating_mul(2) > total;
    let mut thread = passer;
    let mut led = edge.clone();
    let mut passed_ns = 0_u64;
    // The passer's own wait, and who was at one thing since when, with all who followed on it.
    let mut own: Option<Waiting> = None;
    let mut found: Option<(Range<u64>, Edge)> = None;
    for _ in 0..MOST_LINKS {
        let moment = moment_of(evidence, waiting, &led).filter(|&moment| moment > from)?;
        let (last, longest) = last_wait(evidence, thread, from..moment, is_long)?;
        let ran = last.map_or(from, |last| last.to)..moment;
        if is_long(ran.end - ran.start) {
            found = found.or(Some((ran, led)));
            return relay(own?, found);
        }
        passed_ns += ran.end - ran.start;
        if passed_ns.saturating_mul(SHORT) > total {
            return None;
        }
        let last = last?;
        let waited = last.from..last.to;
        found = match is_long(waited.end - waited.start) && !is_home(evidence, &last.wait) {
            true => found.or(Some((waited, led))),
            false => None,
        };
        let is_first = own.is_none();
        let own_wait = *own.get_or_insert(last);
        if is_first && is_long(longest) {
            return None;
        }
        led = ending(evidence, &last);
        match led.source {
            Source::Thread(waiter) if waiter == waiting.wait.thread => return None,
            Source::Thread(by) if by != thread => thread = by,
            // It let the time pass itself, until it went on with what it was asked for.
            Source::Timer if thread == passer && !is_first && is_long(last.to - from) => {
                return relay(last, Some((from..last.to, led)));
            }
            // It went on by itself.
            _ => return relay(own_wait, found),
        }
    }
    None
}

fn relay(own: Waiting, found: Option<(Range<u64>, Edge)>) -> Option<Relay> {
    let (window, edge) = found?;
    Some(Relay {
        waiting: waiting_for(&own.wait, &window, own.wake),
        window,
        edge,
    })
}

/// Who let the turn begin in which a thread on the way had a wait end as `edge` says, where that is none of those on the `way`:
/// one that passes on both a question and its answer is on the way twice.
pub(crate) fn beyond(
    evidence: &Evidence<'_>,
    (waiting, edge): (&Waiting, &Edge),
    way: &[Utid],
) -> Option<Edge> {
    let mut led = edge.clone();
    for _ in 0..MOST_LINKS {
        let Source::Thread(thread) = led.source else {
            return None;
        };
        let moment = moment_of(evidence, waiting, &led)?;
        if !way.contains(&thread) {
            let reason = format!("{}, once {}", edge.reason, led.reason);
            return Some(Edge { reason, ..led });
        }
        let before = waiting.from.min(moment)..moment;
        let (last, _) = last_wait(evidence, thread, before, |_| false)?;
        led = ending(evidence, &last?);
    }
    None
}

/// When an edge's source surely had a wait end, by what it did: not after the wait that all is about.
fn moment_of(evidence: &Evidence<'_>, waiting: &Waiting, edge: &Edge) -> Option<u64> {
    let wake = edge.wake.filter(|_| is_sure(edge))?;
    Some(evidence.wakes.ts[wake].min(waiting.to))
}

/// Whether an edge leads to who surely had a wait end, by what it did.
fn is_sure(edge: &Edge) -> bool {
    let kinds = [
        EdgeKind::Message,
        EdgeKind::Signal,
        EdgeKind::Unlock,
        EdgeKind::Exit,
    ];
    edge.strength == Strength::Strong && kinds.contains(&edge.kind)
}

/// The last wait of a thread that ended within a time, if there is one, and how long the longest time was in which it was at
/// one thing, ns. A short wait for a lock belongs to the turn in which it was. Nothing where they are too many to look at.
fn last_wait(
    evidence: &Evidence<'_>,
    thread: Utid,
    during: Range<u64>,
    is_long: impl Fn(u64) -> bool,
) -> Option<(Option<Waiting>, u64)> {
    let intervals = evidence.timeline.intervals(thread);
    if intervals.indexes(during.start, during.end).len() > MOST_INTERVALS {
        return None;
    }
    let (mut last, mut longest) = (None, 0);
    each_stretch(evidence, thread, during, |stretch| match stretch {
        Stretch::Busy(interval) => longest = longest.max(interval.duration()),
        Stretch::Waiting(waiting) => {
            let ns = waiting.to - waiting.from;
            longest = longest.max(ns);
            if waiting.wait.kind != WaitKind::Lock || is_long(ns) {
                last = Some(waiting);
            }
        }
    });
    Some((last, longest))
}

/// By what a wait ended; of what came over a connection within this machine, by who sent it.
fn ending(evidence: &Evidence<'_>, waiting: &Waiting) -> Edge {
    let edge = ended_by(evidence, &waiting.wait, waiting.wake);
    match edge.source {
        Source::Network => sender_to(evidence, &waiting.wait).unwrap_or(edge),
        _ => edge,
    }
}

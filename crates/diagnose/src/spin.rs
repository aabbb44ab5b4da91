//! A thread that asks again and again whether a child has ended, by calls that do not wait: it runs all the time, and
//! waits for the child all the same, as a supervisor that has told a program to stop.
//!
//! No such call leaves a switch. Samples show them: a few of a hundred lie in them, and the thread never waits for
//! long.

use hangdog_graph::{Evidence, WaitKind};
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

/// The main thread of the child that `thread` asks after in `window`: the only one that is at work then.
pub(crate) fn child_asked_after(
    evidence: &Evidence<'_>,
    thread: Utid,
    window: &Range<u64>,
) -> Option<Utid> {
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

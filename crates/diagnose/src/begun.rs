//! What began a piece of work: the event that woke the thread before it, or was delivered to it.
//!
//! Work is what lies between two waits that bring something to do. A wait for a lock, a disk or
//! memory never does; a wait for time or a condition does, unless it is a moment within the very
//! function that the work is named after (an interpreter's lock, a nap in a loop). Of several
//! pieces of work the one that took the most of the CPU is told.

use std::ops::Range;

use hangdog_graph::ended::ended_by;
use hangdog_graph::{EdgeKind, Evidence, Source, Wait, WaitKind};
use hangdog_timeline::{Cause, Interval, State};
use hangdog_trace::ids::{NONE, StackId, Utid};
use hangdog_trace::object::{Object, ObjectKind};
use hangdog_trace::words::Context;

use crate::stretch::wake_of;
use crate::verdict::Begun;
use crate::verdict::who;

/// A wait within the work takes no longer than this: whoever has what it takes a moment to get
/// may be off its CPU.
const MOMENT_NS: u64 = 10_000_000;
/// No more intervals than these are looked at: the last ones.
const MOST: usize = 500_000;
/// What was delivered is taken no later than this after the thread came on a CPU for it.
const DELIVERY_NS: u64 = 1_000_000;

/// What began the work of `thread` in `windows`, with the thread that did, if it was one; none for
/// a thread of which nothing is known. `is_within` tells whether a stack is one of the work.
pub(crate) fn of(
    evidence: &Evidence<'_>,
    thread: Utid,
    windows: &[Range<u64>],
    is_within: impl Fn(StackId) -> bool,
) -> Option<(Begun, Option<Utid>)> {
    let (from, to) = (windows.first()?.start, windows.last()?.end);
    let intervals = evidence.timeline.intervals(thread);
    let begins = |interval: &Interval| {
        interval.state == State::Blocked
            && begins_work(evidence, &Wait::new(evidence, thread, interval), &is_within)
    };
    let mut longest: Option<(u64, Option<usize>)> = None;
    let mut consider = |ran: u64, wait: Option<usize>| {
        if longest.is_none_or(|(most, _)| ran >= most) {
            longest = Some((ran, wait));
        }
    };
    let mut ran = 0;
    let mut is_whole = false;
    for at in (0..intervals.indexes(from, to).end).rev().take(MOST) {
        let interval = intervals.get(at)?;
        if begins(&interval) {
            consider(std::mem::take(&mut ran), Some(at));
            is_whole = interval.end <= from;
        } else if interval.state.is_on_cpu() {
            ran += interval
                .end
                .min(to)
                .saturating_sub(interval.start.max(from));
        }
        if is_whole {
            break;
        }
    }
    if !is_whole {
        consider(ran, None);
    }
    match longest?.1 {
        Some(at) => after_wait(evidence, thread, at),
        None => from_the_start(evidence, thread),
    }
}

fn begins_work(evidence: &Evidence<'_>, wait: &Wait, is_within: impl Fn(StackId) -> bool) -> bool {
    match wait.kind {
        WaitKind::Lock | WaitKind::Disk | WaitKind::Paging | WaitKind::Stopped => false,
        WaitKind::Message
        | WaitKind::Poll
        | WaitKind::Idle
        | WaitKind::Child
        | WaitKind::Flag
        | WaitKind::Signal
        | WaitKind::Timer
        | WaitKind::Device => true,
        WaitKind::Condition | WaitKind::Sleep | WaitKind::Kernel | WaitKind::Unknown => {
            wait.duration() > MOMENT_NS || !is_within(wait.user_stack(evidence))
        }
    }
}

/// What ended the wait at an interval of the thread.
fn after_wait(evidence: &Evidence<'_>, thread: Utid, at: usize) -> Option<(Begun, Option<Utid>)> {
    let intervals = evidence.timeline.intervals(thread);
    let wait = Wait::new(evidence, thread, &intervals.get(at)?);
    let wake = wake_of(evidence, thread, &intervals.get(at + 1)?);
    let until_then = match wake.is_some_and(|row| evidence.wakes.new[row]) {
        // Before it was created it was nothing.
        true => String::new(),
        false => format!("; until then it {}", wait.phrase(evidence)),
    };
    let by_timer = wake.is_some_and(|row| {
        let context = Context::from(evidence.wakes.context[row]);
        context.is_timer()
    });
    let (kind, what, source) = match (wait.kind, wake) {
        (WaitKind::Sleep, _) => (EdgeKind::Timer, "its sleep ended".to_owned(), Source::Timer),
        (_, None) => return Some((unknown(wait.end, until_then), None)),
        (kind, _) if by_timer && kind != WaitKind::Timer => (
            EdgeKind::Timer,
            "its timeout expired".to_owned(),
            Source::Timer,
        ),
        (_, wake) => {
            let edge = ended_by(evidence, &wait, wake);
            (edge.kind, edge.reason, edge.source)
        }
    };
    let received = received(evidence, &wait, at);
    let bytes = received.map(|(bytes, object)| match bytes {
        1 => format!(", 1 byte through {object}"),
        bytes => format!(", {bytes} bytes through {object}"),
    });
    let by = match source {
        Source::Thread(by) => Some(by),
        _ => None,
    };
    let begun = Begun {
        kind: kind.text(),
        at_ns: wait.end,
        by: by.map(|by| who(evidence, by)),
        bytes: received.map(|(bytes, _)| bytes),
        text: format!("{what}{}{until_then}", bytes.unwrap_or_default()),
    };
    Some((begun, by))
}

fn unknown(at_ns: u64, until_then: String) -> Begun {
    Begun {
        kind: EdgeKind::Unknown.text(),
        at_ns,
        by: None,
        bytes: None,
        text: format!("the trace does not show what woke it{until_then}"),
    }
}

/// What a thread received right after a wait for it: bytes, and by what.
fn received(evidence: &Evidence<'_>, wait: &Wait, at: usize) -> Option<(u32, Object)> {
    if !matches!(wait.kind, WaitKind::Message | WaitKind::Poll) {
        return None;
    }
    let intervals = evidence.timeline.intervals(wait.thread);
    let on_cpu = (at..intervals.len())
        .filter_map(|at| intervals.get(at))
        .find(|interval| interval.state.is_on_cpu())?;
    let object = wait.object(evidence);
    // A poll's object, if it has one, is the set that it waits for.
    let is_set = matches!(object.kind(), ObjectKind::None | ObjectKind::Epoll);
    let transfers = evidence.transfers;
    let first = transfers.ts.partition_point(|&ts| ts < wait.end);
    let row = (first..transfers.len())
        .take_while(|&row| transfers.ts[row] <= on_cpu.start.saturating_add(DELIVERY_NS))
        .find(|&row| {
            transfers.thread[row] == wait.thread
                && !transfers.sent[row]
                && (is_set || transfers.object[row] == object.0)
        })?;
    Some((transfers.bytes[row], Object(transfers.object[row])))
}

/// A thread that had nothing to wait for before its work.
fn from_the_start(evidence: &Evidence<'_>, thread: Utid) -> Option<(Begun, Option<Utid>)> {
    let known = evidence.threads.known(thread)?;
    let first = evidence.timeline.intervals(thread).get(0)?;
    let is_new = known.start > 0 || matches!(first.cause, Cause::Wake(_));
    let parent = (known.parent != NONE).then_some(known.parent);
    let begun = match (is_new, parent) {
        (true, Some(parent)) => Begun {
            kind: EdgeKind::Fork.text(),
            at_ns: known.start,
            by: Some(who(evidence, parent)),
            bytes: None,
            text: format!("{} created the thread for this work", evidence.name(parent)),
        },
        (true, None) => Begun {
            kind: EdgeKind::Fork.text(),
            at_ns: known.start,
            by: None,
            bytes: None,
            text: "the thread was created for this work".to_owned(),
        },
        (false, _) => Begun {
            kind: "before",
            at_ns: 0,
            by: None,
            bytes: None,
            text: "it was already doing this when the recording began".to_owned(),
        },
    };
    Some((begun, parent.filter(|_| is_new)))
}

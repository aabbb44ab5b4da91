//! Who owes a thread what it waits for, where no wake and no habit tells.
//!
//! - A thread that sent over a connection and waits for what comes back waits for the process at
//!   the other end.
//! - A thread that woke another before it waited may have asked it for what it waits for.
//! - One that was refused a file's lock, or waits for it, waits for the process that has the lock.

use hangdog_timeline::{Interval, State};
use hangdog_trace::ids::{NONE, Upid, Utid};
use hangdog_trace::object::ObjectKind;
use hangdog_trace::words::HandoffStep;

use crate::edge::{Edge, EdgeKind, Source, Strength};
use crate::evidence::Evidence;
use crate::file_locks::{self, File};
use crate::marks::Mark;
use crate::wait::{Wait, WaitKind};

/// So many rows back it is looked for what a thread sent last.
const MEMORY: usize = 1_000_000;

/// Who owes the reply that a thread waits for.
pub(crate) fn reply(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    let object = wait.object(evidence);
    if !matches!(wait.kind, WaitKind::Message | WaitKind::Poll)
        || !matches!(object.kind(), ObjectKind::Unix | ObjectKind::Inet)
    {
        return None;
    }
    let transfers = evidence.transfers;
    let until = transfers.ts.partition_point(|&ts| ts < wait.end);
    let last = (until.saturating_sub(MEMORY)..until)
        .rev()
        .find(|&row| transfers.object[row] == object.0 && transfers.thread[row] == wait.thread)?;
    if !transfers.sent[last] {
        return None;
    }
    let peer = evidence.sockets.peer(object);
    // Whoever used the other end last is more surely the one than whoever made it.
    let user = peer.and_then(|peer| {
        (until.saturating_sub(MEMORY)..until)
            .rev()
            .find(|&row| transfers.object[row] == peer.0)
            .map(|row| transfers.thread[row])
    });
    let owner = || thread_of(evidence, evidence.sockets.peer_process(object)?);
    let thread = user
        .or_else(owner)
        .filter(|&thread| thread != wait.thread)?;
    let reason = format!(
        "it sent {} bytes over {object} and waits for what comes back; {} is at the other end",
        transfers.bytes[last],
        evidence.name(thread)
    );
    Some(Edge::new(
        EdgeKind::Peer,
        Strength::Weak,
        Source::Thread(thread),
        reason,
    ))
}

/// Whom a thread woke before it waited, the last first: not by giving back a lock, and not longer
/// ago than a few short waits.
pub(crate) fn asked(evidence: &Evidence<'_>, wait: &Wait) -> Vec<Edge> {
    const VERTICES: usize = 3;
    const MOST: usize = 3;
    let intervals = evidence.timeline.intervals(wait.thread);
    let here = intervals.index_at(wait.start).unwrap_or(0);
    let is_blocked = |interval: &Interval| interval.state == State::Blocked;
    let since = (0..here)
        .rev()
        .filter_map(|at| intervals.get(at))
        .filter(is_blocked)
        .take(VERTICES)
        .take_while(|before| wait.start.saturating_sub(before.end) <= ASKED_WITHIN_NS)
        .last()
        .map_or(wait.start, |before| before.end);
    let woken: Vec<usize> = evidence
        .wakes_by(wait.thread, since, wait.start)
        .filter(|&row| !evidence.shows(evidence.wakes.user_stack[row], Mark::Unlock))
        .collect();
    let mut asked: Vec<Utid> = Vec::new();
    for &row in woken.iter().rev() {
        let other = evidence.wakes.wakee[row];
        let is_kernel = evidence.threads.thread(other).is_kernel();
        if asked.len() < MOST && !is_kernel && other != wait.thread && !asked.contains(&other) {
            asked.push(other);
        }
    }
    asked
        .into_iter()
        .map(|other| {
            let reason = format!(
                "it woke {} right before it waited, as one who asks for something",
                evidence.name(other)
            );
            Edge::new(
                EdgeKind::Asked,
                Strength::Weak,
                Source::Thread(other),
                reason,
            )
        })
        .collect()
}

/// What was asked for longer ago is not what is waited for now.
const ASKED_WITHIN_NS: u64 = 5_000_000;

/// A refusal longer before a wait than this is not what it is about.
const REFUSED_WITHIN_NS: u64 = 5_000_000;

/// Who has the lock of the file that `wait` is for, or that its thread was refused in the course of
/// the wait or right before it; `until` is where the wait ends, or the part of it that is looked at.
pub fn file_lock(evidence: &Evidence<'_>, wait: &Wait, until: u64) -> Option<Edge> {
    struct Held {
        file: File,
        holder: Utid,
        count: usize,
        last: usize,
    }
    let handoffs = evidence.handoffs;
    let since = wait.start.saturating_sub(REFUSED_WITHIN_NS);
    // A wait for the lock itself names the file, a sleep between two tries does not.
    let wanted = (wait.kind == WaitKind::Lock).then(|| wait.object(evidence).0);
    let mut all: Vec<Held> = Vec::new();
    for row in evidence.file_lock_steps(wait.thread, since, until) {
        let file = file_locks::file(handoffs, row);
        let holder = handoffs.other[row];
        match HandoffStep::from(handoffs.step[row]) {
            HandoffStep::Refused | HandoffStep::Waiting
                if holder != NONE
                    && holder != wait.thread
                    && wanted.is_none_or(|object| object == handoffs.object[row]) =>
            {
                let known = all
                    .iter_mut()
                    .find(|held| (held.file, held.holder) == (file, holder));
                match known {
                    Some(held) => {
                        held.count += 1;
                        held.last = row;
                    }
                    None => all.push(Held {
                        file,
                        holder,
                        count: 1,
                        last: row,
                    }),
                }
            }
            // It has got it before it waited.
            HandoffStep::Taken if handoffs.ts[row] <= wait.start => {
                all.retain(|held| held.file != file);
            }
            _ => {}
        }
    }
    let most = all.into_iter().max_by_key(|held| (held.count, held.last))?;
    let holder = evidence.file_lock_taker(most.file, most.holder, most.last);
    let times = match most.count {
        1 => String::new(),
        count => format!(", and refused it {count} times"),
    };
    let reason = format!("{} has the lock of the file{times}", evidence.name(holder));
    Some(Edge::new(
        EdgeKind::Holder,
        Strength::Strong,
        Source::Thread(holder),
        reason,
    ))
}

/// The thread that stands for a process: the one that there is, or its first.
fn thread_of(evidence: &Evidence<'_>, process: Upid) -> Option<Utid> {
    let threads = &evidence.threads.process(process).threads;
    let is_main = |&&thread: &&Utid| evidence.threads.thread(thread).is_main();
    threads.iter().find(is_main).or(threads.first()).copied()
}

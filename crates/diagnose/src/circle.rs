//! Whether a chain of waits that comes back to where it began is a circle: threads that wait for each
//! other, so that none of them can go on.
//!
//! It is none where one of them could have acted, or is a server that waits for its next request:
//! that one keeps the others waiting, and they do not keep it.

use hangdog_graph::owed::has_lock_of;
use hangdog_graph::wake::was_death;
use hangdog_graph::{Edge, EdgeKind, Evidence, Source, Strength, Wait, WaitKind};
use hangdog_timeline::{Cause, State};
use hangdog_trace::ids::{Upid, Utid};
use hangdog_trace::object::ObjectKind;
use hangdog_trace::sockets::Holder;
use hangdog_trace::words::LastTransfer;

use crate::owed::is_home;
use crate::starvation::is_instant;
use crate::stretch::Waiting;
use crate::stretch::wait_before;

/// So many earlier waits at the same place tell what is usual.
const USUAL: usize = 16;

/// Whether the edge leads to a thread that could not act, since it waited itself: either it did not
/// act, or only after the window, which ends at `to`.
pub(crate) fn cannot_act(evidence: &Evidence<'_>, edge: &Edge, to: u64) -> bool {
    match edge.wake {
        Some(wake) => evidence.wakes.ts[wake] >= to,
        None => !matches!(edge.kind, EdgeKind::Habit | EdgeKind::Asked),
    }
}

/// Whether it is only guessed whom a thread waits for, though another was seen to end its wait; or by what
/// others do, of a wait that is not for a lock. Two who wait for locks may have each other's.
pub(crate) fn is_guess(evidence: &Evidence<'_>, waiting: &Waiting, edge: &Edge) -> bool {
    let wait = &waiting.wait;
    // The end of the thread brought nothing.
    let is_ended = || {
        waiting
            .wake
            .is_some_and(|wake| !was_death(evidence, wait, wake))
    };
    match edge.kind {
        EdgeKind::Habit | EdgeKind::Asked => {
            waiting.wake.is_some_and(|row| evidence.is_own(row)) && is_ended()
        }
        // Which process has the other end is not known, and the wait came to an end other than by its thread's
        // death: then there is no circle.
        EdgeKind::Peer if edge.strength == Strength::Weak => {
            let process = |thread: Utid| evidence.threads.thread(thread).upid;
            let is_other = |source: &Source| match *source {
                Source::Thread(other) => process(other) != process(wait.thread),
                _ => false,
            };
            is_other(&edge.source) && is_ended()
        }
        EdgeKind::Amid => {
            // The other waits for a lock that this one has.
            let keeps_out = match edge.source {
                Source::Thread(other) => wait_before(evidence, other, wait.end)
                    .is_some_and(|there| has_lock_of(evidence, wait.thread, &there)),
                _ => false,
            };
            wait.kind != WaitKind::Lock && !wait.is_for_own_lock(evidence) && !keeps_out
        }
        _ => false,
    }
}

/// Whether one of these waits is that of a server that nobody asks for anything.
pub(crate) fn is_anybody_home(evidence: &Evidence<'_>, waits: &[Wait]) -> bool {
    let mut servers = waits.iter().filter(|wait| is_home(evidence, wait));
    servers.any(|server| {
        let mut clients = waits.iter();
        !clients.any(|client| read_from_each_other(evidence, client, server))
            && !is_fed_by(evidence, server, waits)
    })
}

/// Whether a thread reads a pipe to which only processes can write that wait themselves in the same circle,
/// and none of them has another thread: nothing will come.
fn is_fed_by(evidence: &Evidence<'_>, reader: &Wait, waits: &[Wait]) -> bool {
    let process = |wait: &Wait| evidence.threads.thread(wait.thread).upid;
    let pipe = reader.object(evidence);
    let mut writers = (evidence.sockets.holders(pipe).iter())
        .filter(|holder| holder.writes)
        .peekable();
    let is_single = |process: Upid| evidence.threads.process(process).threads.len() == 1;
    let is_member = |holder: &Holder| {
        let mut members = waits.iter().map(process);
        members.any(|member| member == holder.process) && is_single(holder.process)
    };
    pipe.is_pipe() && writers.peek().is_some() && writers.all(is_member)
}

/// Whether, of a single moment, one of these waits was so young that what it is for may still have been under
/// way: TCP sends a small segment after 0.2 s at the latest, when the one before is acknowledged.
pub(crate) fn may_be_under_way(evidence: &Evidence<'_>, waits: &[Wait]) -> bool {
    const LONG_NS: i64 = 500_000_000;
    let is_short = |wait: &Wait| {
        let since = evidence.away_since(wait.thread);
        since.is_some_and(|since| since > -LONG_NS) && is_instant(evidence)
    };
    let mut over_network = waits.iter().filter(|wait| {
        wait.kind == WaitKind::Message && wait.object(evidence).kind() == ObjectKind::Inet
    });
    over_network.any(is_short)
}

/// Whether two threads wait for each other by the two ends of one connection, all the time: one said
/// what it had to say, if anything, and the other, which has read all that came, waits for more.
fn read_from_each_other(evidence: &Evidence<'_>, client: &Wait, server: &Wait) -> bool {
    let lasts = |wait: &Wait| (wait.start..wait.end) == evidence.timeline.life(wait.thread);
    let object = client.object(evidence);
    let mut holders = evidence.sockets.holders(object).iter();
    let is_message = |wait: &Wait| wait.kind == WaitKind::Message && lasts(wait);
    is_message(client)
        && is_message(server)
        && evidence.sockets.peer(object) == Some(server.object(evidence))
        // Of other sockets it is not known which way the last bytes went.
        && object.kind() == ObjectKind::Inet
        && holders.all(|holder| !matches!(holder.last, LastTransfer::Received | LastTransfer::Lost))
}

/// Whether a thread waits for `other` without having asked it for anything, though it usually
/// does before such a wait: one that serves `other` and did not answer this time is not kept
/// waiting by it.
pub(crate) fn asked_for_nothing(evidence: &Evidence<'_>, waiting: &Waiting, other: Utid) -> bool {
    let wait = &waiting.wait;
    if matches!(wait.kind, WaitKind::Lock) || wait.holder.is_some() {
        return false;
    }
    let Some(row) = wait.row else {
        return false;
    };
    let intervals = evidence.timeline.intervals(wait.thread);
    let here = intervals.index_at(wait.start).unwrap_or(0);
    // Since the wait before, it woke the other.
    let asked = |at: usize| {
        let until = intervals.get(at).map_or(0, |wait| wait.start);
        let since = (0..at)
            .rev()
            .filter_map(|before| intervals.get(before))
            .find(|before| before.state == State::Blocked)
            .map_or(0, |before| before.end);
        let mut woken = evidence.wakes_by(wait.thread, since, until);
        woken.any(|wake| evidence.wakes.wakee[wake] == other)
    };
    let site = evidence.site(row);
    let is_there = |at: &usize| match intervals.get(*at).map(|it| (it.state, it.cause)) {
        Some((State::Blocked, Cause::Switch(row))) => evidence.site(row as usize) == site,
        _ => false,
    };
    let earlier: Vec<bool> = (0..here)
        .rev()
        .filter(is_there)
        .take(USUAL)
        .map(asked)
        .collect();
    let usually = earlier.iter().filter(|&&asked| asked).count();
    usually > 0 && usually * 2 >= earlier.len() && !asked(here)
}

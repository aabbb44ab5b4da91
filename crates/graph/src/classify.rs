//! The kind of edge that a wake is, without its text.
//!
//! The graph has an edge for every wake that ended a wait, of which there are millions; the
//! sentences of [`ended_by`](crate::ended::ended_by) are for the few that a person reads. A wake by
//! a timeout is here what it was, and not who should have come instead.

use hangdog_timeline::State;
use hangdog_trace::calls::Call;
use hangdog_trace::ids::{IDLE, Utid};
use hangdog_trace::object::ObjectKind;
use hangdog_trace::words::Context;

use crate::edge::EdgeKind as Kind;
use crate::edge::Source;
use crate::edge::Strength::{self, Strong, Weak};
use crate::evidence::Evidence;
use crate::marks::Mark;
use crate::names;
use crate::wait::{Wait, WaitKind};
use crate::wake::DEATH_NS;

/// The number of the softirq that runs kernel timers.
const TIMER_SOFTIRQ: u16 = 1;

/// How and by what `wait` was ended, given the row of `wakes` that ended it.
pub fn classify(evidence: &Evidence<'_>, wait: &Wait, row: usize) -> (Kind, Strength, Source) {
    match wait.kind {
        WaitKind::Disk | WaitKind::Paging if evidence.is_served_by_waker(row) => {
            return (
                Kind::Message,
                Strong,
                Source::Thread(evidence.wakes.waker[row]),
            );
        }
        WaitKind::Disk | WaitKind::Paging => return (Kind::Disk, Strong, Source::Disk),
        WaitKind::Sleep => return (Kind::Timer, Strong, Source::Timer),
        _ => {}
    }
    let wakes = evidence.wakes;
    let (kernel_stack, vector) = (wakes.kernel_stack[row], wakes.vector[row]);
    match Context::from(wakes.context[row]) {
        Context::Task => by_thread(evidence, wait, row),
        Context::Hrtimer | Context::Timer => (Kind::Timer, Strong, Source::Timer),
        Context::Softirq if evidence.is_own(row) && wakes.waker[row] != wait.thread => {
            (Kind::Message, Strong, Source::Thread(wakes.waker[row]))
        }
        Context::Softirq if names::NETWORK_SOFTIRQS.contains(&vector) => {
            match sender(evidence, wait, row) {
                Some(sender) => (Kind::Message, Strong, Source::Thread(sender)),
                None => (Kind::Network, Strong, Source::Network),
            }
        }
        Context::Softirq if names::BLOCK_SOFTIRQS.contains(&vector) => {
            (Kind::Disk, Strong, Source::Disk)
        }
        Context::Softirq if vector == TIMER_SOFTIRQ => (Kind::Timer, Weak, Source::Timer),
        Context::Hardirq if evidence.shows(kernel_stack, Mark::DiskWake) => {
            (Kind::Disk, Strong, Source::Disk)
        }
        Context::Softirq | Context::Hardirq | Context::Unknown => {
            (Kind::Interrupt, Weak, Source::Device(vector))
        }
    }
}

/// So soon a woken thread reads.
const SOON_NS: u64 = 10_000_000;

/// Who sent the packet that ended a wait, where that was sent on this machine and delivered only after
/// the sender's call: what the woken thread reads first came from there.
fn sender(evidence: &Evidence<'_>, wait: &Wait, row: usize) -> Option<Utid> {
    /// A send that delivers what it sent returns so soon after that.
    const CALL_NS: u64 = 100_000;
    let woken = evidence.wakes.ts[row];
    let object = evidence.received(wait.thread, woken, woken.saturating_add(SOON_NS))?;
    let end = evidence.sockets.peer(object)?;
    let transfers = evidence.transfers;
    let mut uses = evidence.uses_before(end, woken.saturating_add(CALL_NS));
    // What was sent earlier was on its way for most of the time.
    let middle = wait.start + woken.saturating_sub(wait.start) / 2;
    let is_late = |row: usize| transfers.sent[row] && transfers.ts[row] >= middle;
    let sent = uses.next().filter(|&row| is_late(row))?;
    let sender = transfers.thread[sent];
    (sender != wait.thread).then_some(sender)
}

/// Who sent what the thread then read first, where that came after the timeout of its wait and before it ran
/// again: the call looks once more before it returns, so that the message ended it as well.
pub(crate) fn sender_at_timeout(evidence: &Evidence<'_>, wait: &Wait, row: usize) -> Option<Utid> {
    let woken = evidence.wakes.ts[row];
    let after = (evidence.timeline).between(wait.thread, woken, evidence.timeline.end());
    let runs = (after.take_while(|interval| interval.state != State::Blocked))
        .find(|interval| interval.state.is_on_cpu())?
        .start;
    let object = evidence.received(wait.thread, woken, runs.saturating_add(SOON_NS))?;
    let end = evidence.sockets.peer(object)?;
    let transfers = evidence.transfers;
    let mut uses = evidence.uses_before(end, runs);
    let sent = uses
        .next()
        .filter(|&row| transfers.sent[row] && transfers.ts[row] >= woken)?;
    let sender = transfers.thread[sent];
    (sender != wait.thread).then_some(sender)
}

/// Whether a thread waits for a lock that is no futex.
fn is_locked_otherwise(evidence: &Evidence<'_>, wait: &Wait) -> bool {
    let object = wait.object(evidence).kind();
    wait.kind == WaitKind::Lock && matches!(object, ObjectKind::KernelLock | ObjectKind::File)
}

/// Whether the waker died in a call that has nothing to do with the futex that is the lock which was waited for.
fn is_given_back(evidence: &Evidence<'_>, wait: &Wait, row: usize) -> bool {
    let call = evidence.call(evidence.wakes.call[row]);
    wait.kind == WaitKind::Lock && !matches!(call, Call::Futex | Call::Kill) && dies(evidence, row)
}

/// Whether a waker ends right after a row of `wakes`.
fn dies(evidence: &Evidence<'_>, row: usize) -> bool {
    let wakes = evidence.wakes;
    let life = evidence.timeline.life(wakes.waker[row]);
    life.end < evidence.timeline.end() && life.end.saturating_sub(wakes.ts[row]) < DEATH_NS
}

fn by_thread(evidence: &Evidence<'_>, wait: &Wait, row: usize) -> (Kind, Strength, Source) {
    let wakes = evidence.wakes;
    let waker = wakes.waker[row];
    if waker == IDLE || waker == wait.thread {
        return (Kind::Unknown, Weak, Source::Nobody);
    }
    let sure_if = |sure| if sure { Strong } else { Weak };
    if evidence.shows(wakes.kernel_stack[row], Mark::Terminal) {
        return (Kind::Input, Strong, Source::Nobody);
    }
    if let Some(first) = ended_with_it(evidence, wait, row) {
        return (Kind::Exit, Strong, Source::Thread(first));
    }
    let stack = wakes.user_stack[row];
    let (kind, strength) = match evidence.call(wakes.call[row]) {
        _ if wakes.new[row] => (Kind::Fork, Strong),
        // Whatever the waker was at, it gave back a lock of the kernel or of a file on the way, or as it ended one
        // that the kernel gives back for it.
        call if call != Call::Exit
            && (is_locked_otherwise(evidence, wait) || is_given_back(evidence, wait, row)) =>
        {
            let process = |thread| evidence.threads.thread(thread).upid;
            let held = wait
                .holder
                .is_some_and(|holder| process(holder) == process(waker));
            (Kind::Unlock, sure_if(held))
        }
        Call::Futex if evidence.shows(stack, Mark::Signal) => (Kind::Signal, Strong),
        Call::Futex if wait.kind == WaitKind::Lock || evidence.shows(stack, Mark::Unlock) => {
            (Kind::Unlock, sure_if(wait.holder == Some(waker)))
        }
        Call::Futex => {
            let object = wait.object(evidence);
            let same = !object.is_none() && object.0 == wakes.object[row];
            (Kind::Signal, sure_if(same))
        }
        Call::Exit | Call::Exec => (Kind::Exit, Strong),
        Call::Kill => (Kind::Kill, Strong),
        Call::Fork => (Kind::Fork, Strong),
        Call::Write | Call::Send | Call::Read | Call::Receive => (Kind::Message, Strong),
        _ => (Kind::Wake, Weak),
    };
    (kind, strength, Source::Thread(waker))
}

/// The thread that stands for a process whose end closed the other end of a pipe, or ended the wait of its
/// parent: the kernel does that where the last of its threads dies, in whatever call that was.
fn ended_with_it(evidence: &Evidence<'_>, wait: &Wait, row: usize) -> Option<Utid> {
    let wakes = evidence.wakes;
    let waker = wakes.waker[row];
    let call = evidence.call(wakes.call[row]);
    let process = |thread| evidence.threads.thread(thread).upid;
    // One of several that are polled may be the pipe.
    let object = wait.object(evidence);
    let may_be_pipe = object.is_pipe() || wait.kind == WaitKind::Poll && object.is_none();
    let by_end = may_be_pipe && matches!(call, Call::Futex | Call::Poll | Call::Sleep)
        || wait.kind == WaitKind::Child && call != Call::Exit;
    let is_of_another = process(waker) != process(wait.thread);
    if !(by_end && is_of_another && dies(evidence, row)) {
        return None;
    }
    let threads = evidence.threads.process_of(waker).threads.iter();
    threads
        .copied()
        .find(|&thread| evidence.stands_for_program(thread))
}

//! What ended a wait; and where nothing did, or only a time-out, who could have.
//!
//! The waker is what the kernel saw, read with its context: a wake out of an interrupt is the
//! device's or the timer's, never the interrupted thread's. A wake that did not bring what was
//! waited for (a time-out, a signal that killed) is not the cause of the wait: then the edge leads
//! to the thread that the wait's own evidence names: the holder of the lock, the thread or child
//! that should have ended. What else it may have been, [`belief`](crate::belief) weighs.

use hangdog_trace::calls::Call;
use hangdog_trace::ids::{IDLE, Utid};
use hangdog_trace::words::Context;

use crate::evidence::Evidence;
use crate::marks::Mark;
use crate::names;
use crate::wait::{Wait, WaitKind};

/// How a cause reaches its effect.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum EdgeKind {
    /// A lock was given back.
    Unlock,
    /// A condition was signalled.
    Signal,
    /// Bytes were sent, or taken so that there is room.
    Message,
    /// A thread or process ended, or executed.
    Exit,
    /// A signal was sent.
    Kill,
    /// A work item was queued.
    Work,
    /// A thread was made.
    Fork,
    /// A timer fired, as it was asked to.
    Timer,
    /// A block device finished.
    Disk,
    /// A packet arrived.
    Network,
    /// Another device raised an interrupt.
    Interrupt,
    /// The lock's holder, where it was not given back in time.
    Holder,
    /// The one who is waited for, where it did not end in time.
    Awaited,
    /// The one at the other end of a connection, where no reply came.
    Peer,
    /// The one who brought it the last time, where nobody did this time.
    Habit,
    /// The same thread went on, perhaps with other work.
    Next,
    /// Woken in a way that the evidence does not name.
    Wake,
    /// Nothing is known.
    Unknown,
}

impl EdgeKind {
    /// The word that reports print.
    pub fn text(self) -> &'static str {
        match self {
            EdgeKind::Unlock => "unlock",
            EdgeKind::Signal => "signal",
            EdgeKind::Message => "message",
            EdgeKind::Exit => "exit",
            EdgeKind::Kill => "kill",
            EdgeKind::Work => "work item",
            EdgeKind::Fork => "fork",
            EdgeKind::Timer => "timer",
            EdgeKind::Disk => "disk",
            EdgeKind::Network => "network",
            EdgeKind::Interrupt => "interrupt",
            EdgeKind::Holder => "holder",
            EdgeKind::Awaited => "awaited",
            EdgeKind::Peer => "peer",
            EdgeKind::Habit => "habit",
            EdgeKind::Next => "next",
            EdgeKind::Wake => "wake",
            EdgeKind::Unknown => "unknown",
        }
    }
}

/// Whether an edge surely is a cause.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Strength {
    /// It is what the wait was for.
    Strong,
    /// It ended the wait, or would have, but need not be what it was for.
    Weak,
}

impl Strength {
    /// The word that reports print.
    pub fn text(self) -> &'static str {
        match self {
            Strength::Strong => "strong",
            Strength::Weak => "weak",
        }
    }
}

/// Where an edge comes from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Source {
    /// Another thread: go on with what it did meanwhile.
    Thread(Utid),
    /// A timer.
    Timer,
    /// A block device.
    Disk,
    /// The network.
    Network,
    /// A device, by interrupt number.
    Device(u16),
    /// The trace does not say.
    Nobody,
}

/// What ended a wait, or should have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edge {
    /// How.
    pub kind: EdgeKind,
    /// How surely.
    pub strength: Strength,
    /// Why this is believed, as a sentence's part.
    pub reason: String,
    /// Where it comes from.
    pub source: Source,
    /// The row of `wakes` that it is, if it is one.
    pub wake: Option<usize>,
}

impl Edge {
    pub(crate) fn new(
        kind: EdgeKind,
        strength: Strength,
        source: Source,
        reason: impl Into<String>,
    ) -> Edge {
        Edge {
            kind,
            strength,
            reason: reason.into(),
            source,
            wake: None,
        }
    }
}

use EdgeKind as Kind;
use Strength::{Strong, Weak};

/// How soon after a wake a thread must die for the wake to have been its death.
const DEATH_NS: u64 = 5_000_000;

/// What ended `wait`; `wake` is the row of `wakes` that made the thread runnable, if there is one.
pub fn ended_by(evidence: &Evidence<'_>, wait: &Wait, wake: Option<usize>) -> Edge {
    // Waits whose object tells the source, whoever was on the CPU that finished them.
    match wait.kind {
        WaitKind::Disk => {
            return Edge::new(
                Kind::Disk,
                Strong,
                Source::Disk,
                "its kernel stack waits for a block device",
            );
        }
        WaitKind::Paging => {
            let reason = "it was in no system call: a page fault that had to wait";
            return Edge::new(Kind::Disk, Strong, Source::Disk, reason);
        }
        WaitKind::Stopped => {
            let reason = "it was stopped; whoever lets it go on is not the cause";
            return Edge::new(Kind::Kill, Strong, Source::Nobody, reason);
        }
        WaitKind::Sleep => {
            return Edge::new(Kind::Timer, Strong, Source::Timer, "it asked to sleep");
        }
        _ => {}
    }
    match wake {
        Some(row) if !was_death(evidence, wait, row) => {
            let mut edge = woken(evidence, wait, row);
            edge.wake = Some(row);
            edge
        }
        _ => expected(evidence, wait).unwrap_or_else(|| {
            Edge::new(
                Kind::Unknown,
                Weak,
                Source::Nobody,
                "nothing ended the wait, and nothing names who should have",
            )
        }),
    }
}

/// Whether the wake only made the thread die.
fn was_death(evidence: &Evidence<'_>, wait: &Wait, wake: usize) -> bool {
    let end = evidence.timeline.life(wait.thread).end;
    let waker_call = evidence.call(evidence.wakes.call[wake]);
    end < evidence.timeline.end()
        && end - wait.end.min(end) < DEATH_NS
        && !matches!(wait.kind, WaitKind::Child | WaitKind::Signal)
        && matches!(waker_call, Call::Exit | Call::Kill)
}

fn woken(evidence: &Evidence<'_>, wait: &Wait, row: usize) -> Edge {
    let wakes = evidence.wakes;
    let kernel_stack = wakes.kernel_stack[row];
    let waker = wakes.waker[row];
    let vector = wakes.vector[row];
    match Context::from(wakes.context[row]) {
        Context::Task => by_thread(evidence, wait, row),
        Context::Hrtimer | Context::Timer if wait.kind == WaitKind::Timer => Edge::new(
            Kind::Timer,
            Strong,
            Source::Timer,
            "the timer that it waited for fired",
        ),
        // A time-out ended the wait: what it waited for did not come.
        Context::Hrtimer | Context::Timer => expected(evidence, wait).unwrap_or_else(|| {
            Edge::new(
                Kind::Timer,
                Strong,
                Source::Timer,
                "its time-out ended the wait",
            )
        }),
        Context::Softirq if evidence.is_own(row) => {
            let reason = format!(
                "{} sent over a connection within this machine",
                evidence.name(waker)
            );
            Edge::new(Kind::Message, Strong, Source::Thread(waker), reason)
        }
        Context::Softirq if names::NETWORK_SOFTIRQS.contains(&vector) => {
            Edge::new(Kind::Network, Strong, Source::Network, "a packet arrived")
        }
        Context::Softirq if names::BLOCK_SOFTIRQS.contains(&vector) => {
            Edge::new(Kind::Disk, Strong, Source::Disk, "a block device finished")
        }
        Context::Softirq if vector == TIMER_SOFTIRQ => {
            Edge::new(Kind::Timer, Weak, Source::Timer, "a kernel timer fired")
        }
        Context::Hardirq if evidence.shows(kernel_stack, Mark::DiskWake) => {
            Edge::new(Kind::Disk, Strong, Source::Disk, "a block device finished")
        }
        Context::Softirq | Context::Hardirq | Context::Unknown => {
            let reason = format!("an interrupt ended the wait (number {vector})");
            Edge::new(Kind::Interrupt, Weak, Source::Device(vector), reason)
        }
    }
}

const TIMER_SOFTIRQ: u16 = 1;

fn by_thread(evidence: &Evidence<'_>, wait: &Wait, row: usize) -> Edge {
    let wakes = evidence.wakes;
    let waker = wakes.waker[row];
    if waker == IDLE || waker == wait.thread {
        return Edge::new(
            Kind::Unknown,
            Weak,
            Source::Nobody,
            "the waker is not in the trace",
        );
    }
    let source = Source::Thread(waker);
    let name = evidence.name(waker);
    let call = evidence.calls.name(wakes.call[row]);
    let stack = wakes.user_stack[row];
    let same_object = {
        let object = wait.object(evidence);
        !object.is_none() && object.0 == wakes.object[row]
    };
    match evidence.call(wakes.call[row]) {
        Call::Futex if evidence.shows(stack, Mark::Signal) => Edge::new(
            Kind::Signal,
            Strong,
            source,
            format!("{name} signalled what it waited for"),
        ),
        Call::Futex if evidence.shows(stack, Mark::Unlock) || wait.kind == WaitKind::Lock => {
            let held = wait.holder == Some(waker);
            let reason = match held {
                true => format!("{name}, which held the lock, gave it back"),
                false => format!("{name} gave the lock back; others may have held it before"),
            };
            Edge::new(
                Kind::Unlock,
                if held { Strong } else { Weak },
                source,
                reason,
            )
        }
        Call::Futex => {
            let reason = format!("{name} woke the futex that it waited on");
            Edge::new(
                Kind::Signal,
                if same_object { Strong } else { Weak },
                source,
                reason,
            )
        }
        Call::Exit => Edge::new(Kind::Exit, Strong, source, format!("{name} ended")),
        Call::Exec => Edge::new(
            Kind::Exit,
            Strong,
            source,
            format!("{name} executed its program"),
        ),
        Call::Kill => Edge::new(
            Kind::Kill,
            Strong,
            source,
            format!("{name} sent it a signal"),
        ),
        Call::Fork => Edge::new(Kind::Fork, Strong, source, format!("{name} made it")),
        Call::Write | Call::Send if same_object => Edge::new(
            Kind::Message,
            Strong,
            source,
            format!(
                "{name} wrote to the same {} ({call})",
                wait.object(evidence)
            ),
        ),
        Call::Write | Call::Send => Edge::new(
            Kind::Message,
            Strong,
            source,
            format!("{name} sent ({call})"),
        ),
        Call::Read | Call::Receive => Edge::new(
            Kind::Message,
            Strong,
            source,
            format!("{name} read and made room ({call})"),
        ),
        Call::KernelThread => Edge::new(
            Kind::Wake,
            Weak,
            source,
            format!("the kernel thread {name} woke it"),
        ),
        _ => Edge::new(
            Kind::Wake,
            Weak,
            source,
            format!("{name} woke it in {call}"),
        ),
    }
}

/// Who should have ended the wait, by what the wait itself names.
fn expected(evidence: &Evidence<'_>, wait: &Wait) -> Option<Edge> {
    if let Some(holder) = wait.holder {
        let name = evidence.name(holder);
        return Some(match wait.kind {
            WaitKind::Lock => {
                let reason = format!("the lock itself names {name} as its holder");
                Edge::new(Kind::Holder, Strong, Source::Thread(holder), reason)
            }
            _ => {
                let reason = format!("it waits for {name} to end");
                Edge::new(Kind::Awaited, Strong, Source::Thread(holder), reason)
            }
        });
    }
    if wait.kind == WaitKind::Child
        && let Some(child) = child(evidence, wait)
    {
        let reason = format!("it waits for its child {} to end", evidence.name(child));
        return Some(Edge::new(
            Kind::Awaited,
            Strong,
            Source::Thread(child),
            reason,
        ));
    }
    None
}

/// The child that is waited for: the one whose pid was asked for, or the only one alive.
fn child(evidence: &Evidence<'_>, wait: &Wait) -> Option<Utid> {
    let asked = wait.row.map(|row| evidence.switches.arg[row])?;
    let process = evidence.threads.thread(wait.thread).upid;
    let mut alive = evidence.threads.iter().filter(|thread| {
        thread.is_main()
            && !thread.is_kernel()
            && thread.start <= wait.start
            && thread.end.is_none_or(|end| end >= wait.end)
            && evidence
                .threads
                .known(thread.parent)
                .is_some_and(|parent| parent.upid == process)
    });
    if asked != u64::MAX {
        return alive
            .find(|thread| u64::from(thread.pid) == asked)
            .map(|thread| thread.utid);
    }
    let first = alive.next()?;
    alive.next().is_none().then_some(first.utid)
}

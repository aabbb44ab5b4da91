//! An edge: what ended a wait, or should have; by which way, how surely, and why that is believed.
//!
//! [`ended_by`](crate::ended::ended_by) makes them.

use hangdog_trace::ids::{NONE, Utid};
use hangdog_trace::object::Object;

use crate::evidence::Evidence;
use crate::flags::FlagWait;

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
    /// A flag in memory was written, which had been looked at again and again.
    Flag,
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
    /// One that it woke right before it waited, as if to ask for something.
    Asked,
    /// Nothing names who should have done it; this thread of the same process is in the middle of
    /// work.
    Amid,
    /// The one who brought it the last time, where nobody did this time.
    Habit,
    /// A child of its process that a signal killed as it began.
    Killed,
    /// The same thread went on, perhaps with other work.
    Next,
    /// Something was typed, or came by a terminal otherwise.
    Input,
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
            EdgeKind::Flag => "flag",
            EdgeKind::Timer => "timer",
            EdgeKind::Disk => "disk",
            EdgeKind::Network => "network",
            EdgeKind::Interrupt => "interrupt",
            EdgeKind::Holder => "holder",
            EdgeKind::Awaited => "awaited",
            EdgeKind::Peer => "peer",
            EdgeKind::Asked => "asked",
            EdgeKind::Amid => "amid",
            EdgeKind::Habit => "habit",
            EdgeKind::Killed => "killed",
            EdgeKind::Next => "next",
            EdgeKind::Input => "input",
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
    /// The waiter's end of the connection by which it was asked for; none where it was something else, or is not known.
    pub connection: Object,
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
            connection: Object::NONE,
        }
    }

    /// The same, where it was asked for by a connection of the waiter's.
    #[must_use]
    pub(crate) fn over(self, connection: Object) -> Edge {
        Edge { connection, ..self }
    }

    /// Of a wait that nothing ended, where nothing tells who should have.
    pub(crate) fn nobody() -> Edge {
        let reason = "nothing ended the wait, and nothing names who should have";
        Edge::new(EdgeKind::Unknown, Strength::Weak, Source::Nobody, reason)
    }
}

impl Edge {
    /// The write that a wait for a flag ended by.
    pub fn of_flag(evidence: &Evidence<'_>, wait: &FlagWait) -> Edge {
        let name = evidence.flag_name(wait.write);
        let value = evidence.flag_accesses.value[wait.write];
        let looks = wait.looks;
        let reason = match (wait.by_handler, wait.writer) {
            (false, writer) => {
                let writer = evidence.name(writer);
                format!("{writer} wrote {value:#x} to {name}, which it had looked at {looks} times")
            }
            (true, NONE) => format!("its own signal handler wrote {value:#x} to {name}"),
            (true, sender) => {
                let sender = evidence.name(sender);
                format!(
                    "{sender} sent it a signal, whose handler wrote {value:#x} to {name}, which it \
                     had looked at {looks} times"
                )
            }
        };
        let source = match wait.writer {
            NONE => Source::Nobody,
            writer => Source::Thread(writer),
        };
        Edge::new(EdgeKind::Flag, Strength::Strong, source, reason)
    }

    /// Of a thread that asks again and again whether `child` has ended.
    pub fn of_asking(evidence: &Evidence<'_>, child: Utid) -> Edge {
        let reason = format!(
            "it asks again and again, without waiting, whether its child {} has ended",
            evidence.name(child)
        );
        Edge::new(
            EdgeKind::Awaited,
            Strength::Strong,
            Source::Thread(child),
            reason,
        )
    }

    /// Of a thread that looks again and again, without waiting, for what `other` is to send, which was started with it.
    pub fn of_looking(evidence: &Evidence<'_>, other: Utid) -> Edge {
        let name = evidence.name(other);
        let reason = format!(
            "it looks for messages without waiting, and of what was started with it {name} does not"
        );
        Edge::new(
            EdgeKind::Awaited,
            Strength::Weak,
            Source::Thread(other),
            reason,
        )
    }

    /// The end of a sleep.
    pub fn of_sleep(reason: impl Into<String>) -> Edge {
        Edge::new(EdgeKind::Timer, Strength::Strong, Source::Timer, reason)
    }
}

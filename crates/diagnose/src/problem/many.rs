//! A thread's work that others do piece by piece: a loop that starts a program each time, or asks a
//! server each time.
//!
//! Each wait is short, and so is what is computed between two of them, so that none of them is a
//! problem alone. What is held up is the thread's work as a whole: from the first of these waits until
//! the thread waits for something that nobody owes it, as a server does for the next request.

use hangdog_graph::owed::is_descendant;
use hangdog_graph::{Evidence, WaitKind};
use hangdog_timeline::Interval;
use hangdog_trace::ids::{StackId, Upid, Utid};
use hangdog_trace::object::{Object, ObjectKind};
use hangdog_trace::sockets::Role;
use std::ops::Range;

use super::{NOTED_NS, awaits_child, stands_out};
use crate::stretch::Waiting;

/// From so many waits on they are many.
const FEWEST: u64 = 10;
/// So many are explained: what follows is the same again, and explaining takes as long as there are waits.
const MOST_EXPLAINED: u64 = 20_000;
/// Who polls reads so soon what came.
const SOON_NS: u64 = 1_000_000;
/// Less than this part of the time in waits is a computation that waits now and then.
const LEAST_PART: u64 = 10;

/// Many small waits for others.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ManyWaits {
    /// From the first to the end of the last, ns since the trace's start.
    pub(super) window: Range<u64>,
    /// How many.
    pub waits: u64,
    /// How long they took together, ns.
    pub waited_ns: u64,
    /// The longest of them, ns.
    pub longest_ns: u64,
    /// The user stack that this one was in.
    pub stack: StackId,
    /// The processes that were asked by connections.
    pub asked: Vec<Upid>,
    /// The end of the last of those that are explained: the first 20,000.
    pub(super) explained_until: u64,
}

/// From this length on, on average, a wait is for a piece of work; a shorter one is little more than what it
/// costs to hand it over.
const PIECE_NS: f64 = 50_000.0;

impl ManyWaits {
    /// How much of it is work that others do, 0 to 1, by how long its waits are.
    pub(super) fn weight(&self) -> f64 {
        let mean = self.waited_ns as f64 / self.waits.max(1) as f64;
        (mean / PIECE_NS).min(1.0)
    }

    /// The small waits of two problems, one after the other, that last for `window` together; of either there may be
    /// none.
    pub(super) fn joined(
        one: Option<ManyWaits>,
        next: Option<&ManyWaits>,
        window: Range<u64>,
    ) -> Option<ManyWaits> {
        let Some(mut sum) = one else {
            return Some(ManyWaits {
                window,
                ..next?.clone()
            });
        };
        let are_all_explained = sum.explained_until == sum.window.end;
        if are_all_explained {
            sum.explained_until = next.map_or(window.end, |next| next.explained_until);
        }
        if let Some(next) = next {
            sum.waits += next.waits;
            sum.waited_ns += next.waited_ns;
            if next.longest_ns > sum.longest_ns {
                (sum.longest_ns, sum.stack) = (next.longest_ns, next.stack);
            }
            let new = next.asked.iter().filter(|peer| !sum.asked.contains(peer));
            let new: Vec<Upid> = new.copied().collect();
            sum.asked.extend(new);
        }
        Some(ManyWaits { window, ..sum })
    }

    /// How long it took from the first to the end of the last, ns.
    pub(crate) fn duration(&self) -> u64 {
        self.window.end - self.window.start
    }
}

/// The work of a thread.
#[derive(Default)]
pub(super) struct Many {
    sum: ManyWaits,
    /// What the thread did since the last of them, and the most that it did between two.
    busy: u64,
    longest_busy: u64,
    /// The connection that was asked last, and whether it is one by which the thread asks.
    last: Option<(Object, bool)>,
    /// What was waited for last.
    seen: Option<Object>,
    turns: Turns,
}

/// The turns of the work: from one message to the next.
#[derive(Default)]
struct Turns {
    begun: Option<u64>,
    /// The longest and the second longest, ns.
    longest: u64,
    second: u64,
}

impl Turns {
    /// Counts the turn that ends at `from`, with a wait until `to`.
    fn end(&mut self, from: u64, to: u64) {
        if let Some(begun) = self.begun.replace(to) {
            let turn = from.saturating_sub(begun);
            self.second = self.second.max(turn.min(self.longest));
            self.longest = self.longest.max(turn);
        }
    }
}

impl Many {
    /// Counts a wait; the work that it ends, if that took long.
    pub(super) fn wait(&mut self, evidence: &Evidence<'_>, waiting: &Waiting) -> Option<ManyWaits> {
        match self.part(evidence, waiting) {
            Part::Other => self.end(),
            Part::Pause => {
                self.busy += waiting.to - waiting.from;
                None
            }
            // One that is noticed by itself is a problem of its own, but for a nap of a shell's loop.
            Part::Help(_) if each(waiting) >= NOTED_NS && !is_nap(evidence, waiting) => self.end(),
            Part::Help(asked) => {
                self.help(evidence, waiting, asked);
                None
            }
        }
    }

    fn help(&mut self, evidence: &Evidence<'_>, waiting: &Waiting, asked: Object) {
        let sum = &mut self.sum;
        if sum.waits == 0 {
            (sum.window.start, self.busy) = (waiting.from, 0);
        }
        if matches!(waiting.wait.kind, WaitKind::Message | WaitKind::Poll) {
            self.turns.end(waiting.from, waiting.to);
        }
        sum.window.end = waiting.to;
        if sum.waits < MOST_EXPLAINED {
            sum.explained_until = waiting.to;
        }
        sum.waits += waiting.parts as u64;
        sum.waited_ns += waiting.to - waiting.from;
        if each(waiting) > sum.longest_ns {
            sum.longest_ns = each(waiting);
            sum.stack = waiting.wait.user_stack(evidence);
        }
        let is_known = self.seen.replace(asked) == Some(asked);
        if let Some(peer) = evidence.sockets.peer_process(asked).filter(|_| !is_known)
            && !sum.asked.contains(&peer)
        {
            sum.asked.push(peer);
        }
        self.longest_busy = self.longest_busy.max(self.busy);
        self.busy = 0;
    }

    /// Counts an interval between waits.
    pub(super) fn busy(&mut self, interval: &Interval) {
        self.busy += interval.duration();
    }

    /// The work so far, if it took long; what comes is new work.
    pub(super) fn end(&mut self) -> Option<ManyWaits> {
        let last = self.last;
        let done = std::mem::replace(
            self,
            Many {
                last,
                ..Many::default()
            },
        );
        let (sum, mut turns) = (done.sum, done.turns);
        turns.end(sum.window.end, sum.window.end);
        let length = sum.window.end - sum.window.start;
        let most = sum.longest_ns.max(done.longest_busy);
        let is_many = sum.waits >= FEWEST
            && length >= NOTED_NS
            && most < length / 2
            // A turn that stands out is a problem of its own.
            && !stands_out(turns.longest, turns.second, length)
            && sum.waited_ns >= length / LEAST_PART;
        is_many.then_some(sum)
    }

    fn part(&mut self, evidence: &Evidence<'_>, waiting: &Waiting) -> Part {
        let wait = &waiting.wait;
        let object = wait.object(evidence);
        match wait.kind {
            _ if wait.is_idle(evidence) => Part::Other,
            WaitKind::Child | WaitKind::Disk | WaitKind::Paging | WaitKind::Lock => {
                Part::Help(object)
            }
            WaitKind::Message | WaitKind::Poll if awaits_child(evidence, wait) => {
                Part::Help(object)
            }
            // The first bytes that it receives after the poll show which connection it polled.
            WaitKind::Poll if object == Object::NONE && !wait.by_epoll(evidence) => {
                let soon = waiting.to.saturating_add(SOON_NS);
                let came = evidence.received(wait.thread, waiting.to, soon);
                match came.filter(|&came| self.asks(evidence, came)) {
                    Some(came) => Part::Help(came),
                    None => Part::Other,
                }
            }
            WaitKind::Message | WaitKind::Poll => {
                let asks = match object.kind() {
                    ObjectKind::Pipe => {
                        !wait.writes(evidence) && is_from_child(evidence, wait.thread, waiting.wake)
                    }
                    ObjectKind::Inet | ObjectKind::Unix => self.asks(evidence, object),
                    _ => false,
                };
                if asks {
                    Part::Help(object)
                } else {
                    Part::Other
                }
            }
            WaitKind::Kernel | WaitKind::Stopped | WaitKind::Device | WaitKind::Unknown => {
                Part::Pause
            }
            WaitKind::Condition
            | WaitKind::Flag
            | WaitKind::Sleep
            | WaitKind::Timer
            | WaitKind::Signal
            | WaitKind::Idle => Part::Other,
        }
    }

    fn asks(&mut self, evidence: &Evidence<'_>, object: Object) -> bool {
        if let Some((last, asks)) = self.last
            && last == object
        {
            return asks;
        }
        // What comes through a bus or from a display comes when it likes.
        let passes_on = |object| {
            let peer = evidence.sockets.peer_process(object);
            peer.is_some_and(|peer| evidence.passes_on(peer))
        };
        let asks = evidence.sockets.role(object) == Some(Role::Client) && !passes_on(object);
        self.last = Some((object, asks));
        asks
    }
}

/// How long a wait is from one look to the next, on average, ns.
fn each(waiting: &Waiting) -> u64 {
    (waiting.to - waiting.from) / waiting.parts.max(1) as u64
}

/// Whether a wait is for a program that does nothing but sleep, as a shell's loop has one between two looks.
fn is_nap(evidence: &Evidence<'_>, waiting: &Waiting) -> bool {
    const LONGEST_NS: u64 = 2_000_000_000;
    let child = || {
        let waker = evidence.wakes.waker[waiting.wake?];
        Some(
            evidence
                .threads
                .process(evidence.threads.known(waker)?.upid),
        )
    };
    waiting.wait.kind == WaitKind::Child
        && each(waiting) < LONGEST_NS
        && child().is_some_and(|child| child.name == "sleep")
}

/// What a wait is to a thread's work.
enum Part {
    /// Somebody else does a piece of the work, who was asked for it by this, if by anything.
    Help(Object),
    /// Nobody's doing, and no end of the work.
    Pause,
    /// The thread waits for more work, or for time to pass.
    Other,
}

/// Whether a wait for a pipe was ended by a process that the waiter's started.
fn is_from_child(evidence: &Evidence<'_>, waiter: Utid, wake: Option<usize>) -> bool {
    let Some(waker) = wake.and_then(|row| evidence.threads.known(evidence.wakes.waker[row])) else {
        return false;
    };
    let process = evidence.threads.thread(waiter).upid;
    waker.upid != process && is_descendant(evidence, waker.upid, process)
}

//! A thread's work that others do piece by piece: a loop that starts a program each time, or asks a
//! server each time.
//!
//! Each wait is short, and so is what is computed between two of them, so that none of them is a
//! problem alone. What is held up is the thread's work as a whole: from the first of these waits until
//! the thread waits for something that nobody owes it, as a server does for the next request.

use hangdog_graph::owed::is_descendant;
use hangdog_graph::{Evidence, Wait, WaitKind};
use hangdog_timeline::Interval;
use hangdog_trace::ids::{Upid, Utid};
use hangdog_trace::object::{Object, ObjectKind};
use hangdog_trace::sockets::Role;
use std::ops::Range;

use super::{NOTED_NS, Problem};
use crate::stretch::{Stretch, Waiting, each_stretch};

/// From so many waits on they are many.
const FEWEST: usize = 10;
/// Less than this part of the time in waits is a computation that waits now and then.
const LEAST_PART: u64 = 10;

/// The work of a thread.
#[derive(Default)]
pub(super) struct Many {
    window: Range<u64>,
    /// The waits for others.
    waits: usize,
    waited: u64,
    longest_wait: u64,
    /// What the thread did since the last of them, and the most that it did between two.
    busy: u64,
    longest_busy: u64,
    /// The connection that was asked last, and whether it is one by which the thread asks.
    last: Option<(Object, bool)>,
}

impl Many {
    /// Counts a wait; the work that it ends, if that took long.
    pub(super) fn wait(
        &mut self,
        evidence: &Evidence<'_>,
        waiting: &Waiting,
    ) -> Option<Range<u64>> {
        match self.part(evidence, waiting) {
            Part::Other => self.end(),
            Part::Pause => {
                self.busy += waiting.to - waiting.from;
                None
            }
            // One that is noticed by itself is a problem of its own.
            Part::Help if each(waiting) >= NOTED_NS => self.end(),
            Part::Help => {
                if self.waits == 0 {
                    (self.window.start, self.busy) = (waiting.from, 0);
                }
                let length = waiting.to - waiting.from;
                self.window.end = waiting.to;
                self.waits += waiting.parts;
                self.waited += length;
                self.longest_wait = self.longest_wait.max(each(waiting));
                self.longest_busy = self.longest_busy.max(self.busy);
                self.busy = 0;
                None
            }
        }
    }

    /// Counts an interval between waits.
    pub(super) fn busy(&mut self, interval: &Interval) {
        self.busy += interval.duration();
    }

    /// The work so far, if it took long; what comes is new work.
    pub(super) fn end(&mut self) -> Option<Range<u64>> {
        let last = self.last;
        let done = std::mem::replace(
            self,
            Many {
                last,
                ..Many::default()
            },
        );
        let length = done.window.end - done.window.start;
        let most = done.longest_wait.max(done.longest_busy);
        let is_many = done.waits >= FEWEST
            && length >= NOTED_NS
            && most < length / 2
            && done.waited >= length / LEAST_PART;
        is_many.then_some(done.window)
    }

    fn part(&mut self, evidence: &Evidence<'_>, waiting: &Waiting) -> Part {
        let wait = &waiting.wait;
        match wait.kind {
            WaitKind::Child | WaitKind::Disk | WaitKind::Paging | WaitKind::Lock => Part::Help,
            WaitKind::Message | WaitKind::Poll => {
                let object = wait.object(evidence);
                let asks = match object.kind() {
                    ObjectKind::Pipe => {
                        !wait.writes(evidence) && is_from_child(evidence, wait.thread, waiting.wake)
                    }
                    ObjectKind::Inet | ObjectKind::Unix => self.asks(evidence, object),
                    _ => false,
                };
                if asks { Part::Help } else { Part::Other }
            }
            WaitKind::Kernel | WaitKind::Stopped | WaitKind::Device | WaitKind::Unknown => {
                Part::Pause
            }
            WaitKind::Condition
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

/// What many small waits come to.
pub(crate) struct Sum {
    pub(crate) waits: u64,
    /// How long they took together, ns.
    pub(crate) waited: u64,
    /// The longest.
    pub(crate) longest: Option<Wait>,
    /// The processes that were asked by connections.
    pub(crate) asked: Vec<Upid>,
}

/// The waits for others that a problem's thread made in its time.
pub(crate) fn sum(evidence: &Evidence<'_>, problem: &Problem) -> Sum {
    let mut work = Many::default();
    let mut sum = Sum {
        waits: 0,
        waited: 0,
        longest: None,
        asked: Vec::new(),
    };
    let mut longest = 0;
    let mut last = Object::NONE;
    each_stretch(
        evidence,
        problem.thread,
        problem.window.clone(),
        |stretch| {
            let Stretch::Waiting(waiting) = stretch else {
                return;
            };
            if !matches!(work.part(evidence, &waiting), Part::Help) {
                return;
            }
            let length = waiting.to - waiting.from;
            sum.waits += waiting.parts as u64;
            sum.waited += length;
            if length > longest {
                longest = length;
                sum.longest = Some(waiting.wait);
            }
            let object = waiting.wait.object(evidence);
            if object != last {
                last = object;
                let peer = evidence.sockets.peer_process(object);
                sum.asked
                    .extend(peer.filter(|peer| !sum.asked.contains(peer)));
            }
        },
    );
    sum
}

/// How long a wait is from one look to the next, on average, ns.
fn each(waiting: &Waiting) -> u64 {
    (waiting.to - waiting.from) / waiting.parts.max(1) as u64
}

/// What a wait is to a thread's work.
enum Part {
    /// Somebody else does a piece of the work.
    Help,
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

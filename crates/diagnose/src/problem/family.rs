//! How likely it is that somebody waited for what a thread did.
//!
//! Where a command was recorded, its main thread stands for its user. Otherwise the threads that
//! take turns in an event loop do: a program that computes from its start to its end keeps nobody
//! waiting that the trace knows of.

use hangdog_graph::fore::is_nearly_all;
use hangdog_graph::{Evidence, Wait, WaitKind};
use hangdog_timeline::{Cause, State};
use hangdog_trace::Thread;
use hangdog_trace::calls::Call;
use hangdog_trace::ids::{NONE, Upid, Utid};
use hangdog_trace::object::ObjectKind;
use std::collections::HashSet;

use super::{Doing, display};
use crate::owed::is_helper;

/// The processes that a recorded command consists of.
pub(super) struct Family {
    /// The main threads that stand for the user: the command's, and, where that does nothing but
    /// wait for its children, as a shell does, theirs.
    pub(super) first: Vec<Utid>,
    members: Vec<Upid>,
    /// Programs that a display server sent something to.
    on_display: HashSet<Upid>,
    /// Programs that have a connection to a display server open.
    has_display: HashSet<Upid>,
}

/// A program that is on the display has somebody in front of it.
const ON_DISPLAY: f64 = 1.5;

impl Family {
    pub(super) fn new(evidence: &Evidence<'_>, command_tid: Option<u32>) -> Family {
        let is_command = |thread: &&Thread| Some(thread.tid) == command_tid && thread.is_main();
        let command = evidence.threads.iter().find(is_command);
        let mut first: Vec<Utid> = command.map(|thread| thread.utid).into_iter().collect();
        let mut members: Vec<Upid> = command.map(|thread| thread.upid).into_iter().collect();
        let mut at = 0;
        while let Some(&parent) = first.get(at) {
            at += 1;
            if let Some(joined) = evidence.joined_by(parent) {
                first[at - 1] = joined;
                continue;
            }
            if !only_waits_for_children(evidence, parent) {
                continue;
            }
            let process = evidence.threads.thread(parent).upid;
            let children = evidence
                .threads
                .processes()
                .filter(|child| child.parent == process)
                .filter_map(|child| {
                    let is_main = |&&thread: &&Utid| evidence.threads.thread(thread).is_main();
                    child.threads.iter().find(is_main)
                });
            for &child in children {
                // Parents can form a circle in a damaged trace.
                if !first.contains(&child) {
                    first.push(child);
                }
            }
        }
        // Children come after their parents in the order of ids.
        for process in evidence.threads.processes() {
            if process.parent != NONE && members.contains(&process.parent) {
                members.push(process.upid);
            }
        }
        Family {
            first,
            members,
            on_display: display::clients(evidence),
            has_display: (evidence.threads.processes())
                .filter(|process| has_display(evidence, process.upid))
                .map(|process| process.upid)
                .collect(),
        }
    }

    /// Whether a process is the recorded command's, or one that it started.
    pub(super) fn has(&self, process: Upid) -> bool {
        self.members.contains(&process)
    }

    /// The part of a thread in what the user waits for: 1 where no command was recorded and it is not
    /// known to be on the display.
    pub(super) fn share(&self, evidence: &Evidence<'_>, thread: Utid) -> f64 {
        let known = evidence.threads.thread(thread);
        let process = known.upid;
        match self.first.is_empty() || self.first.contains(&thread) {
            true if self.first.is_empty() && self.on_display.contains(&process) => ON_DISPLAY,
            true => 1.0,
            false if self.members.contains(&process) => 0.1,
            false => 0.02,
        }
    }

    /// How much a wait of which so much is owed is felt.
    pub(super) fn felt_wait(&self, evidence: &Evidence<'_>, wait: &Wait, owed: f64) -> f64 {
        let known = evidence.threads.thread(wait.thread);
        if self.first.is_empty() {
            return owed;
        }
        match (
            self.first.contains(&wait.thread),
            self.members.contains(&known.upid),
        ) {
            // Whoever recorded a command asks where its time went, also where that was as it wished;
            // an event loop that waits for its user is not known from one that does not.
            (true, _) => match wait.kind {
                WaitKind::Poll if is_for_one(evidence, wait) => owed.max(0.1),
                WaitKind::Poll | WaitKind::Device | WaitKind::Idle => owed.max(0.05),
                // Those that it serves ask its other threads.
                WaitKind::Condition if only_lets_others_serve(evidence, wait) => owed.max(0.1),
                WaitKind::Condition => owed.max(0.8),
                WaitKind::Child | WaitKind::Signal => owed.max(0.3),
                _ => owed.max(0.1),
            },
            (_, true) if evidence.stands_for_program(wait.thread) => owed * 0.5,
            (_, true) => owed * 0.3,
            _ => owed * 0.1,
        }
    }

    /// Whether a thread that waits for a child keeps the turns of an event loop from coming round:
    /// that of a program on the display, or of a server that was seen to take turns.
    pub(super) fn holds_up_turns(
        &self,
        evidence: &Evidence<'_>,
        thread: Utid,
        takes_turns: bool,
    ) -> bool {
        self.is_window(evidence, thread) || takes_turns && self.serves(evidence, thread)
    }

    /// Whether a thread's program is on the display, or others ask it by connections, or tell it what to do.
    pub(super) fn serves(&self, evidence: &Evidence<'_>, thread: Utid) -> bool {
        let process = evidence.threads.thread(thread).upid;
        self.on_display.contains(&process)
            || evidence.sockets.served_by(process).next().is_some()
            || is_helper(evidence, process)
    }

    /// How much a turn is felt that a thread computes which works at a pace, frame by frame.
    pub(super) fn felt_frame(&self, evidence: &Evidence<'_>, thread: Utid) -> f64 {
        let felt = self.felt(evidence, thread, Doing::Busy, true);
        match self.first.is_empty() {
            true => felt.max(FRAME),
            false => felt,
        }
    }

    /// Whether a thread stands for a program that is on a display.
    pub(super) fn is_window(&self, evidence: &Evidence<'_>, thread: Utid) -> bool {
        let process = evidence.threads.thread(thread).upid;
        self.has_display.contains(&process) && evidence.stands_for_program(thread)
    }

    /// How much what a thread computes is felt, or a series of small waits; `takes_turns` says that
    /// it does so in an event loop.
    pub(super) fn felt(
        &self,
        evidence: &Evidence<'_>,
        thread: Utid,
        doing: Doing,
        takes_turns: bool,
    ) -> f64 {
        let known = evidence.threads.thread(thread);
        if !self.first.is_empty() {
            return match (
                self.first.contains(&thread),
                self.members.contains(&known.upid),
            ) {
                (true, _) => 0.9,
                (_, true) => 0.3,
                _ => 0.02,
            };
        }
        match doing {
            // Its window does not answer meanwhile.
            Doing::Busy | Doing::Many if self.is_window(evidence, thread) => 0.3,
            Doing::Busy | Doing::Many if !takes_turns => BATCH,
            Doing::Waiting(WaitKind::Sleep) => BATCH,
            // Whoever waits for a turn of an event loop, and is in the trace, is found waiting.
            Doing::Busy | Doing::Many if !self.on_display.contains(&known.upid) => TURN,
            _ => 0.3,
        }
    }
}

/// Nobody is known to wait for a part of what a batch job does.
pub(super) const BATCH: f64 = 0.05;
const TURN: f64 = 0.15;
/// What works at a pace is seen or heard, or controls something.
const FRAME: f64 = 0.3;

/// Whether a process has a connection to a display server.
fn has_display(evidence: &Evidence<'_>, process: Upid) -> bool {
    let mut peers =
        (evidence.sockets.asks(process)).filter_map(|object| evidence.sockets.peer_process(object));
    peers.any(|peer| evidence.serves_display(peer))
}

/// Whether a poll is for what comes by one pipe, socket or eventfd, as a read of it would be.
fn is_for_one(evidence: &Evidence<'_>, wait: &Wait) -> bool {
    let is_one = matches!(
        wait.object(evidence).kind(),
        ObjectKind::Pipe | ObjectKind::Unix | ObjectKind::Inet | ObjectKind::Eventfd
    );
    is_one && !wait.by_epoll(evidence)
}

/// Whether a thread of a server does nothing but wait for all of its life.
fn only_lets_others_serve(evidence: &Evidence<'_>, wait: &Wait) -> bool {
    let process = evidence.threads.thread(wait.thread).upid;
    let life = evidence.seen_life(wait.thread);
    is_nearly_all(wait.duration(), &life) && evidence.sockets.served_by(process).next().is_some()
}

/// Whether a thread does nothing but wait for a child for nearly all of its life, as a shell does.
/// One that waits for many, one after the other, has a use for each.
fn only_waits_for_children(evidence: &Evidence<'_>, thread: Utid) -> bool {
    let life = evidence.seen_life(thread);
    let longest = evidence
        .timeline
        .intervals(thread)
        .iter()
        .filter(|interval| interval.state == State::Blocked)
        .filter(|interval| match interval.cause {
            Cause::Switch(row) => {
                evidence.call(evidence.switches.call[row as usize]) == Call::WaitChild
            }
            _ => false,
        })
        .map(|interval| interval.duration())
        .max();
    longest.is_some_and(|longest| is_nearly_all(longest, &life))
}
